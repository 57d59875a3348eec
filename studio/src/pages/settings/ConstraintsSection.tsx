import { Space, Table, Tag } from "antd";
import { type Schemas } from "../../api/types.ts";
import { ScrollBox } from "../../components/ScrollBox.tsx";
import { Section } from "../../components/Section.tsx";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";

type Upstream = Schemas["Settings"]["upstreams"][number];
type Probe = Upstream["probes"][number];
type Row = { id: string; upstream: Upstream; probe: Probe | null };

const COLOURS = { obeyed: "green", ignored: "default", refused: "red", unknown: "orange" } as const;
const STATES = { obeyed: "formObeyed", ignored: "formIgnored", refused: "formRefused", unknown: "formUnknown" } as const;
const MODES = { auto: "constrainAuto", required: "constrainRequired", off: "constrainOff" } as const;

/** Forms in which the models of each upstream take contracts, as probes found. */
export function ConstraintsSection({ upstreams }: { upstreams: readonly Upstream[] }) {
  const t = useText(texts);
  const rows = upstreams.flatMap((upstream): Row[] =>
    upstream.probes.length === 0
      ? [{ id: upstream.name, upstream, probe: null }]
      : upstream.probes.map((probe) => ({ id: `${upstream.name} ${probe.model ?? ""}`, upstream, probe })),
  );
  return (
    <Section title={t("constraints")} hint={t("constraintsHint")}>
      <ScrollBox label={t("constraints")}>
        <Table<Row>
          size="small"
          rowKey="id"
          pagination={false}
          dataSource={rows}
          columns={[
            { title: t("name"), key: "name", render: (_, { upstream }) => upstream.name },
            { title: t("constrain"), key: "constrain", render: (_, { upstream }) => t(MODES[upstream.constrain]) },
            { title: t("model"), key: "model", render: (_, { upstream, probe }) => probe?.model ?? upstream.model ?? "–" },
            {
              title: t("constraintServer"),
              key: "server",
              render: (_, { probe }) => (probe === null ? t("notProbed") : (probe.server ?? t("noServer"))),
            },
            {
              title: t("forms"),
              key: "forms",
              render: (_, { probe }) => (
                <Space wrap size="small">
                  {probe?.forms.map(({ form, state }) => (
                    <Tag key={form} color={COLOURS[state]}>
                      {t("formState", { form, state: t(STATES[state]) })}
                    </Tag>
                  ))}
                </Space>
              ),
            },
          ]}
        />
      </ScrollBox>
    </Section>
  );
}
