import { CheckCircleOutlined, CloudOutlined, EditOutlined, LoadingOutlined, WarningOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { ApiError } from "../api/errors.ts";
import { common } from "../i18n/texts/common.ts";
import { useText } from "../i18n/useText.ts";
import styles from "./SaveState.module.css";
import { type DebouncedSave } from "./useDebouncedSave.ts";
import { useProblemText } from "./useProblemText.ts";

type SaveStateProps = {
  save: Pick<DebouncedSave<never>, "state" | "error" | "flush">;
  /** Text in place of the failure when the browser keeps unfinished work that the server refuses. */
  kept?: string | null;
};

/** State of unsaved changes, in words, in a box of constant size. */
export function SaveState({ save, kept = null }: SaveStateProps) {
  const t = useText(common);
  const { line } = useProblemText();
  const { state, error } = save;
  const reason = error instanceof ApiError ? line(error) : (error?.message ?? "");
  const failed = state === "failed" && kept === null;
  const words = failed
    ? t("saveFailed", { reason })
    : state === "failed"
      ? (kept ?? "")
      : state === "offline"
        ? t("saveOffline")
        : t(state);
  return (
    <span role="status" className={failed ? `${styles["state"] ?? ""} ${styles["failed"] ?? ""}` : styles["state"]}>
      <span className={styles["words"]} title={words}>
        {state === "saved" && <CheckCircleOutlined aria-hidden="true" />}
        {state === "unsaved" && <EditOutlined aria-hidden="true" />}
        {state === "saving" && <LoadingOutlined aria-hidden="true" />}
        {state === "failed" && (failed ? <WarningOutlined aria-hidden="true" /> : <EditOutlined aria-hidden="true" />)}
        {state === "offline" && <CloudOutlined aria-hidden="true" />} {words}
      </span>
      {(failed || state === "offline") && (
        <Button type="link" size="small" onClick={() => void save.flush()}>
          {t("retry")}
        </Button>
      )}
    </span>
  );
}
