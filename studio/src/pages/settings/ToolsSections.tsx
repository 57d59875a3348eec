import { Table, Tag } from "antd";
import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useResource } from "../../api/useResource.ts";
import { useTools } from "../../api/useTools.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { Content } from "../../components/Page.tsx";
import { ScrollBox } from "../../components/ScrollBox.tsx";
import { Section } from "../../components/Section.tsx";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";
import { AdminOnly } from "./AdminOnly.tsx";

type Tool = Schemas["Tool"];

type McpServer = Schemas["McpServers"]["data"][number];

/** Kind of a tool's executor. */
const executorOf = (tool: Tool): string => {
  const { kind } = tool.executor as { kind?: unknown };
  return typeof kind === "string" ? kind : "";
};

/** Tools of the registry, and MCP servers with their tools. */
export function ToolsSections() {
  const t = useText(texts);
  const { data, error, reload } = useTools();
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
                { title: t("executor"), key: "executor", render: (_, tool) => executorOf(tool) },
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
      <McpSection />
    </>
  );
}

/** MCP servers with the state of their connections; only an admin sees them. */
function McpSection() {
  const t = useText(texts);
  const { data, error, reload } = useResource("mcp", (signal) =>
    api.get("/api/v1/mcp", { signal }).then((answer) => answer.data.data),
  );
  if (error?.status === 403) return <AdminOnly title={t("mcp")} />;
  const states = { connected: t("connected"), connecting: t("connecting"), failed: t("failed") };
  return (
    <Section title={t("mcp")} hint={t("mcpHint")}>
      <Content loading={data === null} error={error} onRetry={reload}>
        {data?.length === 0 ? (
          t("noMcp")
        ) : (
          <Table<McpServer>
            size="small"
            rowKey="name"
            pagination={false}
            scroll={{ x: "max-content" }}
            dataSource={data ?? []}
            columns={[
              { title: t("name"), dataIndex: "name" },
              {
                title: t("state"),
                dataIndex: "state",
                render: (state: McpServer["state"], server) => (
                  <>
                    <Tag>{states[state]}</Tag> {server.error}
                  </>
                ),
              },
              {
                title: t("tools"),
                dataIndex: "tools",
                render: (names: string[]) => names.map((name) => <Tag key={name}>{name}</Tag>),
              },
            ]}
          />
        )}
      </Content>
    </Section>
  );
}
