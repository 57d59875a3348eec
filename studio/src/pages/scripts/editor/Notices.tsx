import { Alert, Button, Space } from "antd";
import { download } from "../../../components/download.ts";
import { common } from "../../../i18n/texts/common.ts";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import { type ScriptSession, type ScriptSnapshot } from "../store/ScriptSession.ts";
import { typedIn } from "../store/waiting.ts";
import styles from "./Editor.module.css";

type NoticesProps = {
  session: ScriptSession;
  now: ScriptSnapshot;
  /** Path of the part whose form is shown. */
  chosen: string | null;
  onChoose: (part: string) => void;
};

/** Notices about unsaved work: restored from the browser, not kept by it, or in invalid forms. */
export function Notices({ session, now, chosen, onChoose }: NoticesProps) {
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
          description={
            <Space wrap>
              <span>{t("restoredHint")}</span>
              <Button size="small" type="primary" onClick={() => session.keepRestored()}>
                {t("keepThem")}
              </Button>
              <Button size="small" onClick={() => session.discardRestored()}>
                {t("discardThem")}
              </Button>
            </Space>
          }
        />
      )}
      {now.waiting.some(({ part }) => part !== null && part !== chosen) && (
        <Alert
          className={styles["notice"] ?? ""}
          type="warning"
          showIcon
          title={t("waiting")}
          description={now.waiting.map(({ part, title, form }) =>
            part === null || part === chosen ? null : (
              <Button key={`${part} ${form}`} size="small" type="link" onClick={() => onChoose(part)}>
                {title === "" ? part : title}
              </Button>
            ),
          )}
        />
      )}
      {now.waiting.map((form, index) =>
        form.part !== null ? null : (
          <Alert
            key={index}
            className={styles["notice"] ?? ""}
            type="warning"
            showIcon
            role="alert"
            title={t("placeless", { title: form.title })}
            description={
              <pre className={styles["typed"]}>
                {typedIn(form)
                  .map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
                  .join("\n")}
              </pre>
            }
            action={
              <Button size="small" onClick={() => session.letGo(form)}>
                {t("discard")}
              </Button>
            }
          />
        ),
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
