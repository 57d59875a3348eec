import { Alert, App, Button } from "antd";
import { useState } from "react";
import { api, basedOn } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { CodeEditor } from "../../components/CodeEditor.tsx";
import { Content } from "../../components/Page.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./SchemaTab.module.css";
import { type Json } from "./stateTree.ts";
import { type ConversationData } from "./useConversation.ts";

type SchemaProps = { id: string; state: ConversationData["state"] };

type Mismatch = { pointer?: string; message?: string };

const EXAMPLE = '{\n  "type": "object",\n  "properties": {}\n}\n';

/** Schema of the state, and violations of the current state. */
export function SchemaTab({ id, state }: SchemaProps) {
  const t = useText(conversations);
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const [draft, setDraft] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [mismatches, setMismatches] = useState<readonly Mismatch[] | null>(null);
  const schema = state.data?.schema ?? null;
  const text = draft ?? (schema === null ? EXAMPLE : `${JSON.stringify(schema, null, 2)}\n`);
  const fault = faultOf(text);

  async function put(next: Json): Promise<void> {
    setBusy(true);
    try {
      const { data } = await api.put("/api/v1/conversations/{id}/state/schema", { schema: next } as never, {
        path: { id },
        ...basedOn(state.data?.etag),
      });
      setMismatches(next === null ? null : data.mismatches);
      void message.success(next === null ? t("schemaRemoved") : t("schemaSaved"));
      if (next === null) setDraft(null);
      state.reload();
    } catch (error) {
      void message.error(lineOf(error));
      // The next try is based on the state displayed then.
      if (error instanceof ApiError && error.code === "changed_meanwhile") state.reload();
    }
    setBusy(false);
  }

  return (
    <Content loading={state.loading && state.data === null} error={state.error} onRetry={state.reload}>
      <p className={styles["hint"]}>{t("schemaHint")} {state.data !== null && schema === null && t("schemaNone")}</p>
      <CodeEditor label={t("schema")} language="json" value={text} onChange={setDraft} height="min(50vh, 480px)" />
      <div className={styles["actions"]}>
        <Button
          type="primary"
          loading={busy}
          disabled={fault !== null}
          onClick={() => void put(JSON.parse(text) as Json)}
        >
          {t("schemaSave")}
        </Button>
        {schema !== null && (
          <Button danger disabled={busy} onClick={() => void put(null)}>
            {t("schemaRemove")}
          </Button>
        )}
        {fault !== null && (
          <span role="alert" className={styles["fault"]}>
            {t("schemaBroken", { reason: fault })}
          </span>
        )}
      </div>
      {mismatches !== null && (
        <Alert
          type={mismatches.length === 0 ? "success" : "warning"}
          role="status"
          title={mismatches.length === 0 ? t("fits") : t("mismatches", { count: mismatches.length })}
          description={
            mismatches.length === 0 ? undefined : (
              <ul className={styles["list"]}>
                {mismatches.map(({ pointer = "", message: words = "" }, index) => (
                  <li key={index}>
                    <code>{pointer}</code> {words}
                  </li>
                ))}
              </ul>
            )
          }
        />
      )}
    </Content>
  );
}

function faultOf(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
