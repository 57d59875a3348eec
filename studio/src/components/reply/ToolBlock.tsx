import { reply } from "../../i18n/texts/reply.ts";
import { useText } from "../../i18n/useText.ts";
import { Badge } from "./Badge.tsx";
import { JsonText } from "./JsonText.tsx";
import styles from "./Reply.module.css";
import { type ToolRun } from "./ReplyModel.ts";

const RUN_TONES = { called: "muted", running: "accent", done: "success", failed: "danger" } as const;

/** Tool call with its result. */
export function ToolBlock({ run }: { run: ToolRun }) {
  const t = useText(reply);
  const ended = run.state === "done" || run.state === "failed";
  return (
    <div className={styles["block"]}>
      <p className={styles["blockHead"]}>
        {t("tool", { name: run.name })}
        <Badge tone={RUN_TONES[run.state]}>{t(run.state)}</Badge>
        {run.elapsedMs !== null && <span>{t("milliseconds", { count: run.elapsedMs })}</span>}
      </p>
      <details className={styles["fold"]}>
        <summary>{t("arguments")}</summary>
        <JsonText value={run.args} label={t("arguments")} />
      </details>
      {ended && (
        <details className={styles["fold"]} open>
          <summary>{t("result")}</summary>
          <JsonText value={run.result} label={t("result")} />
        </details>
      )}
    </div>
  );
}
