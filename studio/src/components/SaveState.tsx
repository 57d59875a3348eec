import { CheckCircleOutlined, CloudOutlined, EditOutlined, LoadingOutlined, WarningOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { ApiError } from "../api/errors.ts";
import { common } from "../i18n/texts/common.ts";
import { useText } from "../i18n/useText.ts";
import styles from "./SaveState.module.css";
import { type DebouncedSave } from "./useDebouncedSave.ts";
import { useProblemText } from "./useProblemText.ts";

/** State of unsaved changes, in words. */
export function SaveState({ save }: { save: Pick<DebouncedSave<never>, "state" | "error" | "flush"> }) {
  const t = useText(common);
  const { line } = useProblemText();
  const { state, error } = save;
  const reason = error instanceof ApiError ? line(error) : (error?.message ?? "");
  return (
    <span role="status" className={state === "failed" ? `${styles["state"] ?? ""} ${styles["failed"] ?? ""}` : styles["state"]}>
      {state === "saved" && <CheckCircleOutlined aria-hidden="true" />}
      {state === "unsaved" && <EditOutlined aria-hidden="true" />}
      {state === "saving" && <LoadingOutlined aria-hidden="true" />}
      {state === "failed" && <WarningOutlined aria-hidden="true" />}
      {state === "offline" && <CloudOutlined aria-hidden="true" />}{" "}
      {state === "failed" && t("saveFailed", { reason })}
      {state === "offline" && t("saveOffline")}
      {state !== "failed" && state !== "offline" && t(state)}
      {(state === "failed" || state === "offline") && (
        <Button type="link" size="small" onClick={() => void save.flush()}>
          {t("retry")}
        </Button>
      )}
    </span>
  );
}
