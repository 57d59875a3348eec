import { Table } from "antd";
import { Plot } from "../../components/Plot.tsx";
import { ScrollBox } from "../../components/ScrollBox.tsx";
import { Section } from "../../components/Section.tsx";
import { LOCALES } from "../../i18n/language.ts";
import { overview } from "../../i18n/texts/overview.ts";
import { useFormat, useLanguage, useText } from "../../i18n/useText.ts";
import styles from "./OverviewPage.module.css";
import { type FiguresOfRange } from "./ranges.ts";
import { Repairs } from "./Repairs.tsx";
import { byRule, byStep, byUpstream, stepsOf, validOf } from "./series.ts";

/** Changes over time, and differences between rules and upstreams. */
export function Plots({ figures }: { figures: FiguresOfRange }) {
  const t = useText(overview);
  const { number, percent } = useFormat();
  const locale = LOCALES[useLanguage()];
  const { times, currency, by } = figures;
  const steps = stepsOf(figures);
  const labels = steps.map((step) =>
    by === "hour"
      ? new Date(step).toLocaleString(locale, { day: "numeric", hour: "2-digit", minute: "2-digit" })
      : new Date(step).toLocaleDateString(locale, { month: "numeric", day: "numeric", timeZone: "UTC" }),
  );
  const common = { titled: false, labels, labelName: t(by === "hour" ? "time" : "day") } as const;
  // Axis ticks between small counts have halves.
  const count = (value: number) => number(value, 1);
  const milliseconds = (value: number) => t("milliseconds", { value: number(value) });
  const orNone = (value: number | null) => (value === null ? "–" : milliseconds(value));
  const names = { unknown: t("unknownUpstream"), others: t("otherUpstreams") };
  const cost = byUpstream(steps, figures, ["cost"], names);
  return (
    <div className={styles["plots"]}>
      <Section title={t("messages")}>
        <Plot
          {...common}
          title={t("messages")}
          kind="stacked"
          format={count}
          series={(["completed", "failed", "cancelled"] as const).map((status) => ({
            name: t(status),
            values: byStep(steps, times, (row) => row[status], 0),
          }))}
        />
      </Section>
      <Section title={t("validity")} hint={t("validityHint")}>
        <Plot
          {...common}
          title={t("validity")}
          format={percent}
          series={[{ name: t("valid"), values: byStep(steps, times, validOf, null) }]}
        />
      </Section>
      <Section title={t("firstText")} hint={t("firstTextAbout")}>
        <Plot
          {...common}
          title={t("firstText")}
          format={milliseconds}
          series={[
            { name: t("median"), values: byStep(steps, times, (row) => row.first_text_ms, null) },
            { name: t("p95"), values: byStep(steps, times, (row) => row.first_text_p95_ms, null) },
          ]}
        />
      </Section>
      <Section title={t("repairs")}>
        {figures.repairs.length > 0 && (
          <Plot
            {...common}
            title={t("repairs")}
            kind="stacked"
            format={count}
            series={byRule(steps, figures, t("otherRules"))}
          />
        )}
        <Repairs rules={figures.repairs} />
      </Section>
      <Section title={t("tokens")} hint={t("tokensHint")}>
        <Plot
          {...common}
          title={t("tokens")}
          kind="stacked"
          format={(value) => number(value)}
          series={byUpstream(steps, figures, ["input_tokens", "output_tokens"], names)}
        />
      </Section>
      <Section title={t("cost")} hint={t("costAbout")}>
        {cost.length === 0 ? (
          <p className={styles["hint"]}>{t("noCost")}</p>
        ) : (
          <Plot
            {...common}
            title={t("cost")}
            kind="stacked"
            format={(value) => `${number(value, 4)} ${currency}`}
            series={cost}
          />
        )}
      </Section>
      <div className={styles["wide"]}>
        <Section title={t("upstreams")}>
          <ScrollBox label={t("upstreams")}>
            <Table
              size="small"
              rowKey={({ upstream }) => upstream ?? ""}
              pagination={false}
              dataSource={figures.upstreams}
              columns={[
                { title: t("upstream"), dataIndex: "upstream", render: (name: string | null) => name ?? t("unknownUpstream") },
                {
                  title: t("messages"),
                  align: "right",
                  render: (_, { completed, failed, cancelled }) => number(completed + failed + cancelled),
                },
                {
                  title: t("valid"),
                  align: "right",
                  render: (_, row) => {
                    const valid = validOf(row);
                    return valid === null ? "–" : percent(valid);
                  },
                },
                { title: t("firstText"), dataIndex: "first_text_ms", align: "right", render: orNone },
                { title: t("inputTokens"), dataIndex: "input_tokens", align: "right", render: (value: number) => number(value) },
                { title: t("outputTokens"), dataIndex: "output_tokens", align: "right", render: (value: number) => number(value) },
                {
                  title: t("cost"),
                  align: "right",
                  render: (_, row) =>
                    row.unpriced_tokens > 0 && row.cost === 0 ? "–" : `${number(row.cost, 4)} ${currency}`,
                },
              ]}
            />
          </ScrollBox>
        </Section>
      </div>
    </div>
  );
}
