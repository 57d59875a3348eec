import { Alert, Button } from "antd";
import { download } from "../../../components/download.ts";
import { common } from "../../../i18n/texts/common.ts";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { type ScriptSession, type ScriptSnapshot } from "../store/ScriptSession.ts";
import styles from "./Editor.module.css";

/** What is to be known of unsaved work: put back from the browser, or not kept by it. */
export function Notices({ session, now }: { session: ScriptSession; now: ScriptSnapshot }) {
  const t = useText(scripts);
  const shared = useText(common);
  const format = useFormat();
  return (
    <>
      {now.restoredFrom !== null && now.conflict === null && (
        <Alert
          className={styles["notice"] ?? ""}
          type="info"
          showIcon
          role="alert"
          title={t("restored", { time: format.time(now.restoredFrom) })}
          description={t("restoredHint")}
          action={
            <>
              <Button size="small" type="primary" onClick={() => session.keepRestored()}>
                {t("keepThem")}
              </Button>{" "}
              <Button size="small" onClick={() => session.discardRestored()}>
                {t("discardThem")}
              </Button>
            </>
          }
        />
      )}
      {!now.kept && (
        <Alert
          className={styles["notice"] ?? ""}
          type="warning"
          showIcon
          title={t("keepsNothing")}
          description={t("keepsNothingHint")}
          action={
            <Button size="small" onClick={() => download("script.yaml", now.text, "application/yaml")}>
              {shared("download")}
            </Button>
          }
        />
      )}
    </>
  );
}
