import { Table } from "antd";
import { Plot } from "../../components/Plot.tsx";
import { ScrollBox } from "../../components/ScrollBox.tsx";
import { Section } from "../../components/Section.tsx";
import { LOCALES } from "../../i18n/language.ts";
import { overview } from "../../i18n/texts/overview.ts";
import { useFormat, useLanguage, useText } from "../../i18n/useText.ts";
import { type Overview } from "./load.ts";
import styles from "./OverviewPage.module.css";
import { Repairs } from "./Repairs.tsx";

/** What changed over time, and what differs by rule and upstream. */
export function Plots({ summary, usage }: Overview) {
  const t = useText(overview);
  const { number, percent } = useFormat();
  const locale = LOCALES[useLanguage()];
  const { times } = summary;
  const byHour = times.length > 0 && (times.at(-1)?.start ?? 0) - (times[0]?.start ?? 0) < 48 * 3_600_000;
  const labels = times.map(({ start }) =>
    new Date(start).toLocaleString(
      locale,
      byHour ? { day: "numeric", hour: "2-digit", minute: "2-digit" } : { month: "numeric", day: "numeric" },
    ),
  );
  const days = [...new Set(usage.map(({ day }) => day))].sort();
  const ofDay = (day: string, name: "requests" | "input_tokens" | "output_tokens") =>
    usage.filter((row) => row.day === day).reduce((sum, row) => sum + row[name], 0);
  return (
    <>
      <div className={styles["plots"]}>
        <Section title={t("messages")}>
          <Plot
            titled={false}
            title={t("messages")}
            kind="bar"
            labels={labels}
            labelName={t("time")}
            format={(value) => number(value)}
            series={[
              { name: t("completed"), values: times.map(({ completed }) => completed) },
              { name: t("failed"), values: times.map(({ failed }) => failed) },
            ]}
          />
        </Section>
        <Section title={t("validity")} hint={t("validityHint")}>
          <Plot
            titled={false}
            title={t("validity")}
            labels={labels}
            labelName={t("time")}
            format={percent}
            series={[{ name: t("valid"), values: times.map(({ valid }) => valid) }]}
          />
        </Section>
        <Section title={t("firstText")} hint={t("firstTextHint")}>
          <Plot
            titled={false}
            title={t("firstText")}
            labels={labels}
            labelName={t("time")}
            format={(value) => t("milliseconds", { value: number(value) })}
            series={[{ name: t("firstText"), values: times.map(({ firstTextMs }) => firstTextMs) }]}
          />
        </Section>
        <Section title={t("repairs")}>
          <Repairs rules={summary.rules} />
        </Section>
        <Section title={t("usage")}>
          <Plot
            title={t("requests")}
            kind="bar"
            labels={days}
            labelName={t("day")}
            format={(value) => number(value)}
            series={[{ name: t("requests"), values: days.map((day) => ofDay(day, "requests")) }]}
          />
          <Plot
            title={t("tokens")}
            kind="bar"
            labels={days}
            labelName={t("day")}
            format={(value) => number(value)}
            series={[
              { name: t("inputTokens"), values: days.map((day) => ofDay(day, "input_tokens")) },
              { name: t("outputTokens"), values: days.map((day) => ofDay(day, "output_tokens")) },
            ]}
          />
        </Section>
        <Section title={t("upstreams")}>
          <ScrollBox label={t("upstreams")}>
          <Table
            size="small"
            rowKey="name"
            pagination={false}
            dataSource={[...summary.upstreams]}
            columns={[
              { title: t("upstream"), dataIndex: "name" },
              { title: t("messages"), dataIndex: "count", align: "right", render: (value: number) => number(value) },
              {
                title: t("firstText"),
                dataIndex: "firstTextMs",
                align: "right",
                render: (value: number | null) => (value === null ? "–" : t("milliseconds", { value: number(value) })),
              },
              { title: t("inputTokens"), dataIndex: "inputTokens", align: "right", render: (value: number) => number(value) },
              { title: t("outputTokens"), dataIndex: "outputTokens", align: "right", render: (value: number) => number(value) },
            ]}
          />
          </ScrollBox>
        </Section>
      </div>
    </>
  );
}
