import { SendOutlined, StopOutlined } from "@ant-design/icons";
import { Button, Input } from "antd";
import { type KeyboardEvent, useState } from "react";
import { KeyValue } from "../../components/KeyValue.tsx";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Composer.module.css";
import { isOver, type Result } from "./model.ts";
import { type Input as Said } from "./sendInput.ts";
import { shownValue, valueOf } from "./variables.ts";

/** Kinds of requests to the client, by event. */
const KINDS = { skill: "skill", form: "form", picture: "picture" } as const;

type Kind = keyof typeof KINDS;

type ComposerProps = {
  status: string;
  turn: Result | null;
  busy: boolean;
  onSay: (input: Said) => void;
  onCancel: () => void;
};

/** Field for the user's words, or for the answer to a request to the client. */
export function Composer({ status, turn, busy, onSay, onCancel }: ComposerProps) {
  const t = useText(run);
  const [text, setText] = useState("");
  if (busy) {
    return (
      <div className={styles["row"]}>
        <Button danger icon={<StopOutlined />} onClick={onCancel}>
          {t("stop")}
        </Button>
      </div>
    );
  }
  if (isOver(status)) return <p className={styles["over"]}>{t("over")}</p>;
  const request = turn?.request ?? null;
  const retry = turn?.error?.retryable === true;
  const silent = turn === null || turn.continues || retry || status === "awaiting_ack";

  function send() {
    if (request !== null) onSay({ answer: { call_id: request.data.call_id, value: valueOf(text) } });
    else if (text.trim() !== "") onSay({ text });
    else return;
    setText("");
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  }

  const label = request === null ? t("say") : t("answer");
  return (
    <div className={styles["composer"]}>
      {request !== null && (
        <div className={styles["request"]}>
          <strong>
            {t("answerRequest")}: {request.event in KINDS ? t(KINDS[request.event as Kind]) : request.event}
          </strong>
          <KeyValue
            items={Object.entries(request.data)
              .filter(([name]) => name !== "call_id")
              .map(([name, value]) => [name, shownValue(value)] as const)}
          />
        </div>
      )}
      <div className={styles["row"]}>
        <Input.TextArea
          value={text}
          aria-label={label}
          placeholder={label}
          autoSize={{ minRows: 1, maxRows: 6 }}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {turn === null && (
          <Button type="primary" onClick={() => onSay({})}>
            {t("letBegin")}
          </Button>
        )}
        <Button type={turn === null ? "default" : "primary"} icon={<SendOutlined />} onClick={send} disabled={request === null && text.trim() === ""}>
          {t("send")}
        </Button>
        {silent && turn !== null && request === null && <Button onClick={() => onSay({})}>{t(retry ? "again" : "proceed")}</Button>}
      </div>
    </div>
  );
}
