import { Alert, Button, Checkbox, Input, Select } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { useTools } from "../../api/useTools.ts";
import { CodeEditor } from "../../components/CodeEditor.tsx";
import { Content } from "../../components/Page.tsx";
import { JsonText } from "../../components/reply/JsonText.tsx";
import { Section } from "../../components/Section.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { live } from "../../i18n/texts/live.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";
import { blankArguments } from "./toolArguments.ts";

type Tool = Schemas["Tool"];
type Result = Schemas["ToolCallResult"];

/** Call of a registered tool, without a model. */
export function ToolCallForm() {
  const t = useText(live);
  const { data, error, reload } = useTools();
  const [name, setName] = useState<string | null>(null);
  // The client runs these tools itself.
  const tools = (data ?? []).filter(({ executor }) => (executor as { kind?: string }).kind !== "client");
  const chosen = tools.find((tool) => tool.name === name);
  return (
    <Section title={t("callTool")} hint={t("callToolHint")}>
      <Content loading={data === null} error={error} onRetry={reload}>
        {tools.length === 0 ? (
          t("noServerTools")
        ) : (
          <Select
            aria-label={t("toolName")}
            placeholder={t("toolName")}
            style={{ width: "min(420px, 100%)" }}
            showSearch
            value={name}
            options={tools.map((tool) => ({ value: tool.name, label: tool.name }))}
            onChange={setName}
          />
        )}
        {chosen !== undefined && <Call key={chosen.name} tool={chosen} />}
      </Content>
    </Section>
  );
}

function Call({ tool }: { tool: Tool }) {
  const t = useText(live);
  const { line } = useProblemText();
  const { number } = useFormat();
  const [text, setText] = useState(() => JSON.stringify(blankArguments(tool.schema), null, 2));
  const [caller, setCaller] = useState("");
  const [confirmed, setConfirmed] = useState(false);
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<Result | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const args = argumentsOf(text);

  async function run(): Promise<void> {
    setBusy(true);
    setResult(null);
    setFailure(null);
    try {
      const body = { args, confirmed, ...(caller.trim() === "" ? {} : { caller: caller.trim() }) };
      const { data } = await api.post("/api/v1/tools/{name}/calls", body as never, { path: { name: tool.name } });
      setResult(data);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(line(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <div className={styles["toolCall"]}>
      {typeof tool.description === "string" && <p>{tool.description}</p>}
      <details>
        <summary>{t("toolSchema")}</summary>
        <JsonText value={tool.schema} label={t("toolSchema")} maxHeight={240} />
      </details>
      <CodeEditor label={t("toolArgs")} language="json" value={text} onChange={setText} height="160px" />
      {args === undefined && <Alert type="warning" showIcon title={t("toolArgsBroken")} />}
      {Array.isArray(tool.callers) && (
        <Input aria-label={t("toolCaller")} placeholder={t("toolCaller")} value={caller} onChange={({ target }) => setCaller(target.value)} />
      )}
      {tool.confirm && (
        <Checkbox checked={confirmed} onChange={({ target }) => setConfirmed(target.checked)}>
          {t("toolConfirmed")}
        </Checkbox>
      )}
      <div className={styles["paneActions"]}>
        <Button type="primary" loading={busy} disabled={args === undefined || (tool.confirm && !confirmed)} onClick={() => void run()}>
          {t("callNow")}
        </Button>
      </div>
      {failure !== null && <Alert type="error" showIcon role="alert" title={failure} />}
      {result !== null && (
        <div role="status">
          <Alert
            type={result.ok ? "success" : "error"}
            showIcon
            title={t(result.ok ? "toolDone" : "toolFailed", { ms: number(result.elapsed_ms) })}
            description={result.error === undefined ? undefined : `${result.error.code}: ${result.error.message}`}
          />
          {result.ok && <JsonText value={result.result ?? null} label={t("toolResult")} maxHeight={320} />}
        </div>
      )}
    </div>
  );
}

/** Typed arguments; `undefined` if they are no JSON object. */
function argumentsOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}
