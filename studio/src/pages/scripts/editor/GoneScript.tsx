import { Alert, Button, Popconfirm, Space } from "antd";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api } from "../../../api/client.ts";
import { ApiError } from "../../../api/errors.ts";
import { download } from "../../../components/download.ts";
import { ErrorState } from "../../../components/ErrorState.tsx";
import { common } from "../../../i18n/texts/common.ts";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { keptWorkOf } from "../requests.ts";
import { type ScriptSession } from "../store/ScriptSession.ts";
import styles from "./Editor.module.css";

/** Notice that another user deleted the script, with ways to continue with its text. */
export function GoneScript({ name, session, text }: { name: string; session: ScriptSession; text: string }) {
  const t = useText(scripts);
  const shared = useText(common);
  const navigate = useNavigate();
  const [refused, setRefused] = useState<ApiError | null>(null);

  async function saveAnew() {
    setRefused(null);
    try {
      const { data } = await api.post("/api/v1/scripts", { name, yaml: text }, { query: { draft: true } });
      session.moveTo(keptWorkOf(data.script_id), data.version);
      await navigate(`/scripts/${encodeURIComponent(data.script_id)}`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setRefused(error);
    }
  }

  async function discard() {
    session.abandon();
    await navigate("/scripts");
  }

  return (
    <>
      <Alert
        className={styles["notice"] ?? ""}
        type="warning"
        showIcon
        role="alert"
        title={t("gone")}
        description={
          <Space wrap>
            <span>{t("goneHint")}</span>
            <Button size="small" type="primary" onClick={() => void saveAnew()}>
              {t("saveAnew")}
            </Button>
            <Button size="small" onClick={() => download("script.yaml", text, "application/yaml")}>
              {shared("download")}
            </Button>
            <Popconfirm title={t("discardAsk")} okText={t("discard")} cancelText={t("cancel")} onConfirm={() => void discard()}>
              <Button size="small" danger>
                {t("discard")}
              </Button>
            </Popconfirm>
          </Space>
        }
      />
      {refused !== null && <ErrorState error={refused} />}
    </>
  );
}
