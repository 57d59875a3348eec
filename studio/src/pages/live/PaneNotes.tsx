import { Alert, Button } from "antd";
import { live } from "../../i18n/texts/live.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";
import { type MessageRun, type RunView } from "./MessageRun.ts";

/** Notes on a message: a lost connection, a failure, an answer that is not the model's. */
export function PaneNotes({ run, view }: { run: MessageRun; view: RunView }) {
  const t = useText(live);
  const metadata = view.record?.metadata ?? view.model.completed?.metadata;
  const error = (view.record?.error ?? view.model.error) as { message?: string; code?: string } | null | undefined;
  const lost = view.stream === "waiting" || view.stream === "failed";
  const reasks = metadata?.reasks ?? view.model.reasks;
  return (
    <div className={styles["notes"]}>
      {lost && (
        <Alert
          type="warning"
          showIcon
          role="alert"
          title={t("dropped")}
          description={view.stream === "failed" && view.error !== null ? view.error.detail : t("droppedHint")}
          action={
            <Button size="small" onClick={run.retry}>
              {t("retry")}
            </Button>
          }
        />
      )}
      {error !== null && error !== undefined && (
        <Alert type="error" showIcon title={t("upstreamFailed", { message: error.message ?? error.code ?? "" })} />
      )}
      {metadata?.fallback_reason !== undefined && (
        <Alert type="warning" showIcon title={t("fallback", { reason: metadata.fallback_reason })} />
      )}
      {metadata?.unused_reason !== undefined && (
        <Alert type="warning" showIcon title={t("unused", { reason: metadata.unused_reason })} />
      )}
      {metadata?.truncated === true && <Alert type="info" showIcon title={t("truncated")} />}
      {metadata?.yield === "constrained" && <Alert type="success" showIcon title={t("constrained")} />}
      {metadata?.yield === "repaired" && <Alert type="info" showIcon title={t("repaired")} />}
      {reasks > 0 && <Alert type="info" showIcon title={t("reasked", { count: reasks })} />}
    </div>
  );
}
