import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./StatusTag.module.css";

type Status = "active" | "awaiting_ack" | "awaiting_answer" | "completed" | "failed";

/** Status of a dialogue. */
export function StatusTag({ status }: { status: Status }) {
  const t = useText(run);
  return (
    <span className={`${styles["status"] ?? ""} ${styles[status] ?? ""}`}>
      <span className={styles["dot"]} aria-hidden="true" />
      {t(status)}
    </span>
  );
}
