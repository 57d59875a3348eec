import {
  BranchesOutlined,
  DeleteOutlined,
  DiffOutlined,
  LeftOutlined,
  LinkOutlined,
  ReloadOutlined,
  RightOutlined,
  RollbackOutlined,
} from "@ant-design/icons";
import { Alert, Button, Tag, Tooltip } from "antd";
import { type ReactNode } from "react";
import { LongText } from "../../components/LongText.tsx";
import { Markdown } from "../../components/Markdown.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { type Turn, wordsOf } from "./swipes.ts";
import styles from "./TurnRow.module.css";
import { useCopy } from "./useCopy.ts";
import { type Message } from "./useConversation.ts";
import { noticesOf, useNotices } from "./useNotices.ts";

type TurnProps = {
  turn: Turn<Message>;
  version: number;
  chosen: string | null;
  changesState: (message: string) => boolean;
  /** Text of the running message so far. */
  streamed: string | null;
  onVersion: (version: number) => void;
  onRegenerate: (message: Message) => void;
  onRemove: (message: Message) => void;
  onCompare: (message: string) => void;
  onState: (message: string) => void;
  onRollback: (message: string) => void;
};

/** Longest answer shown as Markdown; a longer one is shown as text, in parts. */
const FORMATTED = 100_000;

/** User input with the versions of the answer, one of them visible. */
export function TurnRow(props: TurnProps) {
  const { turn, version, chosen } = props;
  const t = useText(conversations);
  const at = Math.min(Math.max(version, 0), turn.swipes.length - 1);
  const swipe = turn.swipes[at];
  if (swipe === undefined) return null;
  const { message, after } = swipe;
  const old = message.status === "superseded";
  return (
    <article className={`${styles["turn"] ?? ""} ${message.message_id === chosen ? (styles["chosen"] ?? "") : ""}`}>
      <Words message={message} />
      <div className={`${styles["reply"] ?? ""} ${old ? (styles["old"] ?? "") : ""}`}>
        <Head {...props} message={message} at={at} />
        {old && <p className={styles["hint"]}>{turn.live ? t("supersededHint") : t("successorGone")}</p>}
        <Answer message={message} streamed={props.streamed} />
        {after.length > 0 && (
          <details className={styles["more"]}>
            <summary>{t("followed", { count: after.length })}</summary>
            {after.map((one) => (
              <div key={one.message_id} className={styles["branch"]}>
                <Words message={one} />
                <Answer message={one} streamed={null} />
              </div>
            ))}
          </details>
        )}
      </div>
    </article>
  );
}

function Words({ message }: { message: Message }) {
  const t = useText(conversations);
  const words = wordsOf(message.request);
  return (
    <div className={styles["words"]}>
      <span className="visually-hidden">{t("user")}: </span>
      {words.length > FORMATTED ? <LongText text={words} label={t("user")} maxHeight={240} /> : words}
    </div>
  );
}

function Head(props: TurnProps & { message: Message; at: number }) {
  const { turn, message, at, onVersion } = props;
  const t = useText(conversations);
  const format = useFormat();
  const copy = useCopy();
  const { message_id: id, status, created, metadata } = message;
  const count = turn.swipes.length;
  const dialect = (metadata as { dialect?: unknown } | undefined)?.dialect;
  const stands = turn.live && at === count - 1;
  return (
    <div className={styles["head"]}>
      <span className={styles["meta"]}>
        {status !== "completed" && <Tag>{t(status)}</Tag>}
        {typeof dialect === "string" && <Tag>{dialect}</Tag>}
        <time dateTime={created}>{format.time(created)}</time>
      </span>
      {count > 1 && (
        <span className={styles["swipes"]}>
          <Action label={t("previousVersion")} icon={<LeftOutlined />} disabled={at === 0} onClick={() => onVersion(at - 1)} />
          <span role="status">{t("version", { number: at + 1, count })}</span>
          <Action
            label={t("nextVersion")}
            icon={<RightOutlined />}
            disabled={at === count - 1}
            onClick={() => onVersion(at + 1)}
          />
        </span>
      )}
      <span className={styles["actions"]}>
        {stands && status !== "running" && (
          <>
            <Action label={t("regenerate")} icon={<ReloadOutlined />} onClick={() => props.onRegenerate(message)} />
            {(status === "completed" || status === "cancelled") && (
              <>
                <Action label={t("stateAfter")} icon={<BranchesOutlined />} onClick={() => props.onState(id)} />
                <Action label={t("compareWithNow")} icon={<DiffOutlined />} onClick={() => props.onCompare(id)} />
                <Action label={t("rollbackTo")} icon={<RollbackOutlined />} onClick={() => props.onRollback(id)} />
              </>
            )}
          </>
        )}
        <Action
          label={t("copyLink")}
          icon={<LinkOutlined />}
          onClick={() => void copy(`${location.origin}${location.pathname}?message=${id}`)}
        />
        <Action label={t("removeMessage")} icon={<DeleteOutlined />} onClick={() => props.onRemove(message)} />
      </span>
    </div>
  );
}

type ActionProps = { label: string; icon: ReactNode; disabled?: boolean; onClick: () => void };

function Action({ label, icon, disabled = false, onClick }: ActionProps) {
  return (
    <Tooltip title={label}>
      <Button type="text" size="small" icon={icon} aria-label={label} disabled={disabled} onClick={onClick} />
    </Tooltip>
  );
}

function Answer({ message, streamed }: { message: Message; streamed: string | null }) {
  const t = useText(conversations);
  const { textOf } = useNotices();
  const { message_id: id, status, answer = "", reply = "", reasoning = "", error, metadata } = message;
  const text = status === "running" ? (streamed ?? answer) : answer;
  const failure = error as { code?: string; message?: string } | undefined;
  return (
    <>
      {text === "" ? (
        failure === undefined && <p className={styles["hint"]}>{status === "running" ? t("running") : t("noAnswer")}</p>
      ) : text.length > FORMATTED ? (
        <LongText text={text} label={t("model")} fileName={`${id}.txt`} />
      ) : (
        <Markdown text={text} />
      )}
      {failure !== undefined && (
        <Alert
          className={styles["notice"] ?? ""}
          type="error"
          title={failure.message ?? t("failed")}
          description={failure.code === undefined ? undefined : <code>{failure.code}</code>}
        />
      )}
      {noticesOf(metadata).map((notice, index) => (
        <p key={index} className={styles["toast"]}>
          {textOf(notice)}
          {notice.ref !== undefined && <code> {notice.ref}</code>}
        </p>
      ))}
      {reasoning !== "" && (
        <details className={styles["more"]}>
          <summary>{t("reasoning")}</summary>
          <LongText text={reasoning} label={t("reasoning")} maxHeight={320} fileName={`${id}-reasoning.txt`} />
        </details>
      )}
      {reply !== "" && reply !== answer && (
        <details className={styles["more"]}>
          <summary>{t("raw")}</summary>
          <LongText text={reply} label={t("raw")} maxHeight={320} fileName={`${id}-reply.txt`} />
        </details>
      )}
    </>
  );
}
