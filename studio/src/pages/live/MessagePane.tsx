import { App } from "antd";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { Link } from "react-router";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ReplyView } from "../../components/reply/ReplyView.tsx";
import { ValueText } from "../../components/reply/ValueText.tsx";
import { live } from "../../i18n/texts/live.ts";
import { useText } from "../../i18n/useText.ts";
import { wordsOf } from "../conversations/swipes.ts";
import styles from "./Live.module.css";
import { type MessageRun } from "./MessageRun.ts";
import { PaneHead } from "./PaneHead.tsx";
import { PaneNotes } from "./PaneNotes.tsx";
import { StreamParts } from "./StreamParts.tsx";
import { Timeline } from "./Timeline.tsx";
import { ToolAnswers } from "./ToolAnswers.tsx";

type MessagePaneProps = {
  run: MessageRun;
  /** Label next to another message. */
  label: string | undefined;
  narrow: boolean;
  onChoose: (text: string, conversation: string | undefined) => void;
  onClose: (() => void) | undefined;
};

/** Message: its result and its events. */
export function MessagePane({ run, label, narrow, onChoose, onClose }: MessagePaneProps) {
  const t = useText(live);
  const view = useSyncExternalStore(run.subscribe, run.view);
  const { message } = App.useApp();
  const told = useRef(0);
  const { notices } = view.model;
  const count = notices.length;

  useEffect(() => {
    for (const notice of notices.slice(told.current, count)) {
      message.warning({ content: notice.message, duration: 3, key: `${run.id} ${notice.code}` });
    }
    told.current = count;
  }, [notices, count, message, run.id]);

  if (view.error?.status === 404) {
    return (
      <EmptyState title={t("missing")} hint={t("missingHint")} action={<Link to="/live">{t("newMessage")}</Link>} />
    );
  }
  const running = view.record === null ? view.stream !== "ended" : view.record.status === "running";
  const conversation = view.record?.conversation_id;
  const asked = view.record === null ? "" : wordsOf(view.record.request);
  return (
    <section className={styles["pane"]} aria-label={label ?? t("message")}>
      <PaneHead run={run} view={view} label={label} running={running} onClose={onClose} />
      {asked !== "" && (
        <div className={styles["asked"]} role="group" aria-label={t("askedWords")}>
          <span className={styles["hint"]}>{t("askedWords")}</span>
          <ValueText value={asked} label={t("askedWords")} />
        </div>
      )}
      <PaneNotes run={run} view={view} />
      {view.model.waiting !== null && <ToolAnswers key={run.id} id={run.id} model={view.model} waiting={view.model.waiting} />}
      <div className={narrow ? styles["stack"] : styles["split"]}>
        <div className={styles["surface"]}>
          <ReplyView model={view.model} running={running} onChoose={(text) => onChoose(text, conversation)} />
        </div>
        <div className={styles["parts"]}>
          <Timeline view={view} running={running} />
          <StreamParts view={view} running={running} />
        </div>
      </div>
    </section>
  );
}
