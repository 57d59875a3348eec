import { Button, Space, Table, Tag } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { Content } from "../../components/Page.tsx";
import { Section } from "../../components/Section.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { AdminOnly } from "./AdminOnly.tsx";

type Upstream = Schemas["Upstreams"]["data"][number];
type Alias = Schemas["Upstreams"]["aliases"][number];

/** Upstreams and aliases, with a test of each connection; only an admin sees them. */
export function UpstreamsSection() {
  const t = useText(texts);
  const { data, error, reload } = useResource("upstreams", (signal) =>
    api.get("/api/v1/upstreams", { signal }).then((answer) => answer.data),
  );
  if (error?.status === 403) return <AdminOnly title={t("upstreams")} />;
  return (
    <>
      <Section title={t("upstreams")} hint={t("upstreamsHint")}>
        <Content loading={data === null} error={error} onRetry={reload}>
          <Table<Upstream>
            size="small"
            rowKey="name"
            pagination={false}
            scroll={{ x: "max-content" }}
            dataSource={data?.data ?? []}
            columns={[
              {
                title: t("name"),
                dataIndex: "name",
                render: (name: string, upstream) => (
                  <Space>
                    {name}
                    {upstream.default && <Tag>{t("isDefault")}</Tag>}
                    {upstream.resting && <Tag title={t("restingHint")}>{t("resting")}</Tag>}
                  </Space>
                ),
              },
              { title: t("kind"), dataIndex: "kind" },
              { title: t("address"), dataIndex: "url", render: (url: string) => (url === "" ? "–" : <code>{url}</code>) },
              { title: t("model"), dataIndex: "model", render: (model: string | null) => model ?? "–" },
              { title: t("key"), key: "key", render: (_, upstream) => keyOf(upstream) ?? t("noKey") },
              { title: t("test"), dataIndex: "name", key: "test", render: (name: string) => <Test label={t("testOf", { name })} run={() => testUpstream(name)} /> },
              {
                title: t("prices", { currency: data?.currency ?? "" }),
                key: "prices",
                render: (_, upstream) => <Prices prices={upstream.prices} />,
              },
            ]}
          />
        </Content>
      </Section>
      <Section title={t("aliases")} hint={t("aliasesHint")}>
        {data?.aliases.length === 0 ? (
          t("noAliases")
        ) : (
          <Table<Alias>
            size="small"
            rowKey="name"
            pagination={false}
            scroll={{ x: "max-content" }}
            dataSource={data?.aliases ?? []}
            columns={[
              { title: t("name"), dataIndex: "name" },
              { title: t("upstream"), dataIndex: "upstream", render: (name: string | null) => name ?? "–" },
              { title: t("model"), dataIndex: "model", render: (model?: string) => model ?? "–" },
              { title: t("dialect"), dataIndex: "dialect", render: (dialect?: string) => dialect ?? "–" },
              { title: t("prompt"), dataIndex: "has_prompt", render: (has: boolean) => t(has ? "yes" : "no") },
              { title: t("fallbacks"), dataIndex: "fallback", render: (names: string[]) => names.join(", ") || "–" },
              {
                title: t("test"),
                dataIndex: "name",
                key: "test",
                render: (name: string) => <Test label={t("testOfAlias", { name })} run={() => testAlias(name)} />,
              },
            ]}
          />
        )}
      </Section>
    </>
  );
}

/** Masked key, with its source. */
function keyOf({ key, key_env: variable, key_file: file }: Upstream): string | null {
  const from = variable ?? file;
  if (key === null) return from;
  return from === null ? key : `${key} (${from})`;
}

/** Prices of a million tokens by model. */
function Prices({ prices }: { prices: Upstream["prices"] }) {
  const t = useText(texts);
  const { number } = useFormat();
  const rows = Object.entries(prices);
  if (rows.length === 0) return "–";
  return rows.map(([model, { input, output }]) => (
    <div key={model}>
      {model === "*" ? t("anyModel") : <code>{model}</code>}: {t("inOut", { input: number(input, 4), output: number(output, 4) })}
    </div>
  ));
}

type Outcome = Schemas["UpstreamTest"] | Schemas["AliasTest"];

const testUpstream = async (name: string): Promise<Outcome> =>
  (await api.post("/api/v1/upstreams/{name}/test", undefined, { path: { name } })).data;

const testAlias = async (name: string): Promise<Outcome> =>
  (await api.post("/api/v1/aliases/{name}/test", undefined, { path: { name } })).data;

/** Test of a connection, with its result. */
function Test({ label, run }: { label: string; run: () => Promise<Outcome> }) {
  const t = useText(texts);
  const { line } = useProblemText();
  const { number } = useFormat();
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<string | null>(null);

  async function test(): Promise<void> {
    setBusy(true);
    setOutcome(null);
    try {
      const came = await run();
      const ms = number(came.elapsed_ms);
      // The test of an alias names the upstream and model asked, as the alias may leave them to defaults.
      const asked = "upstream" in came ? [came.upstream, came.model].filter((one) => one !== null).join(" · ") : null;
      const text = came.ok ? t("testFine", { ms }) : t("testFailed", { reason: came.error?.message ?? "" });
      setOutcome(asked === null ? text : t("testAsked", { asked, text }));
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setOutcome(t("testFailed", { reason: line(caught) }));
    } finally {
      setBusy(false);
    }
  }

  return (
    <Space wrap>
      <Button size="small" loading={busy} aria-label={label} onClick={() => void test()}>
        {t("test")}
      </Button>
      <span role="status">{outcome}</span>
    </Space>
  );
}
