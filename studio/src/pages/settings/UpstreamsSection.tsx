import { Button, Space, Table, Tag } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { Section } from "../../components/Section.tsx";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { testUpstream } from "./testUpstream.ts";

type Settings = Schemas["Settings"];

/** Upstreams with a test of their connection, and aliases. */
export function UpstreamsSection({ settings }: { settings: Settings }) {
  const t = useText(texts);
  const { data: models } = useResource("models", (signal) =>
    api.get("/v1/models", { signal }).then(({ data }) => namesOf(data)),
  );
  const known = new Set(settings.upstreams.map(({ name }) => name));
  const aliases = (models ?? []).filter((name) => !known.has(name.split("/")[0] ?? name));
  return (
    <>
      <Section title={t("upstreams")} hint={t("upstreamsHint")}>
        <Table
          size="small"
          rowKey="name"
          pagination={false}
          scroll={{ x: "max-content" }}
          dataSource={settings.upstreams}
          columns={[
            {
              title: t("name"),
              dataIndex: "name",
              render: (name: string) => (
                <Space>
                  {name}
                  {name === settings.default_upstream && <Tag>{t("isDefault")}</Tag>}
                </Space>
              ),
            },
            { title: t("kind"), dataIndex: "kind" },
            { title: t("model"), dataIndex: "model", render: (model: string | null) => model ?? "–" },
            { title: t("test"), dataIndex: "name", key: "test", render: (name: string) => <Test name={name} /> },
          ]}
        />
      </Section>
      <Section title={t("aliases")} hint={t("aliasesHint")}>
        {aliases.length === 0 ? (
          t("noAliases")
        ) : (
          <Space wrap>
            {aliases.map((name) => (
              <Tag key={name}>{name}</Tag>
            ))}
          </Space>
        )}
      </Section>
    </>
  );
}

/** Ids of the models that clients of OpenAI are shown. */
function namesOf(list: Record<string, unknown>): string[] {
  const { data } = list;
  if (!Array.isArray(data)) return [];
  return data.flatMap((model: unknown) =>
    typeof model === "object" && model !== null && "id" in model && typeof model.id === "string" ? [model.id] : [],
  );
}

function Test({ name }: { name: string }) {
  const t = useText(texts);
  const { number } = useFormat();
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<string | null>(null);

  async function run(): Promise<void> {
    setBusy(true);
    setOutcome(null);
    const result = await testUpstream(name);
    setOutcome(result.ok ? t("testFine", { ms: number(result.ms) }) : t("testFailed", { reason: result.reason }));
    setBusy(false);
  }

  return (
    <Space wrap>
      <Button size="small" loading={busy} aria-label={t("testOf", { name })} onClick={() => void run()}>
        {t("test")}
      </Button>
      <span role="status">{outcome}</span>
    </Space>
  );
}
