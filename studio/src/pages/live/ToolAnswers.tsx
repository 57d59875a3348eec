import { App, Button, Input } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { JsonText } from "../../components/reply/JsonText.tsx";
import { type ReplyModel, type Waiting } from "../../components/reply/ReplyModel.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { live } from "../../i18n/texts/live.ts";
import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";

type ToolAnswersProps = { id: string; model: ReplyModel; waiting: Waiting };

/** Asks for the input that a message waits for: approval of a tool call, or its result. */
export function ToolAnswers({ id, model, waiting }: ToolAnswersProps) {
  return (
    <div className={styles["answers"]}>
      {waiting.calls.map(({ call_id: callId, name }) => (
        <ToolAnswer
          key={`${waiting.state} ${callId}`}
          {...{ id, callId, name }}
          args={model.argsOf(callId)}
          confirm={waiting.state === "awaiting_confirmation"}
        />
      ))}
    </div>
  );
}

type ToolAnswerProps = { id: string; callId: string; name: string; args: unknown; confirm: boolean };

function ToolAnswer({ id, callId, name, args, confirm }: ToolAnswerProps) {
  const t = useText(live);
  const texts = useText(reply);
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const [value, setValue] = useState("");
  const [sent, setSent] = useState(false);

  function run(send: Promise<unknown>): void {
    setSent(true);
    send.catch((error: unknown) => {
      setSent(false);
      message.error(lineOf(error));
    });
  }
  const decide = (allow: boolean) =>
    run(
      api.post(
        "/api/v1/messages/{id}/tool_confirmations",
        { confirmations: [{ call_id: callId, allow }] },
        { path: { id } },
      ),
    );
  const give = (result: object) =>
    run(
      api.post(
        "/api/v1/messages/{id}/tool_results",
        { results: [{ call_id: callId, ...result }] } as never,
        { path: { id } },
      ),
    );
  return (
    <section className={styles["answer"]} aria-label={texts("tool", { name })}>
      <strong>{t(confirm ? "confirmTitle" : "resultTitle")}</strong> <code>{name}</code>
      <JsonText value={args ?? null} label={texts("arguments")} maxHeight={160} />
      {confirm ? (
        <div className={styles["paneActions"]}>
          <Button type="primary" disabled={sent} onClick={() => decide(true)}>
            {t("allow")}
          </Button>
          <Button disabled={sent} onClick={() => decide(false)}>
            {t("deny")}
          </Button>
        </div>
      ) : (
        <>
          <Input.TextArea
            aria-label={t("resultOf", { name })}
            placeholder={t("resultOf", { name })}
            autoSize={{ minRows: 2, maxRows: 8 }}
            value={value}
            onChange={(change) => setValue(change.target.value)}
          />
          <div className={styles["paneActions"]}>
            <Button type="primary" disabled={sent} onClick={() => give({ ok: true, result: valueOf(value) })}>
              {t("sendResult")}
            </Button>
            <Button
              disabled={sent}
              onClick={() => give({ ok: false, error: { code: "failed", message: value || t("failureText") } })}
            >
              {t("sendFailure")}
            </Button>
          </div>
        </>
      )}
    </section>
  );
}

/** Parses JSON if valid, otherwise returns the text. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
