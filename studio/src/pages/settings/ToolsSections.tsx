import { Table, Tag } from "antd";
import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { KeyValue } from "../../components/KeyValue.tsx";
import { Content } from "../../components/Page.tsx";
import { ScrollBox } from "../../components/ScrollBox.tsx";
import { Section } from "../../components/Section.tsx";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";

type Tool = Schemas["Tool"];

/** A field of what runs a tool. */
const executorOf = (tool: Tool, name: "kind" | "server"): string => {
  const value = (tool.executor as Readonly<Record<string, unknown>>)[name];
  return typeof value === "string" ? value : "";
};

/** Tools of the registry, and those among them that come from MCP servers. */
export function ToolsSections() {
  const t = useText(texts);
  const { data, error, reload } = useResource("tools", (signal) =>
    api.get("/api/v1/tools", { query: { limit: 100 }, signal }).then((answer) => answer.data.data),
  );
  const servers = new Map<string, string[]>();
  for (const tool of data ?? []) {
    if (executorOf(tool, "kind") !== "mcp") continue;
    const server = executorOf(tool, "server");
    servers.set(server, [...(servers.get(server) ?? []), tool.name]);
  }
  return (
    <>
      <Section title={t("tools")} hint={t("toolsHint")}>
        <Content loading={data === null} error={error} onRetry={reload}>
          {data?.length === 0 ? (
            <EmptyState title={t("noTools")} />
          ) : (
            <ScrollBox label={t("tools")}>
            <Table<Tool>
              size="small"
              rowKey="name"
              pagination={false}
              dataSource={data ?? []}
              columns={[
                { title: t("name"), dataIndex: "name" },
                { title: t("executor"), key: "executor", render: (_, tool) => executorOf(tool, "kind") },
                {
                  title: t("confirmation"),
                  dataIndex: "confirm",
                  render: (confirm: boolean) => t(confirm ? "yes" : "no"),
                },
              ]}
            />
            </ScrollBox>
          )}
        </Content>
      </Section>
      <Section title={t("mcp")} hint={t("mcpHint")}>
        {servers.size === 0 ? (
          t("noMcp")
        ) : (
          <KeyValue
            items={[...servers].map(([server, names]) => [
              server,
              names.map((name) => <Tag key={name}>{name}</Tag>),
            ])}
          />
        )}
      </Section>
    </>
  );
}
