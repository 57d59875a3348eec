import { Alert, Button, Card, Form, Input } from "antd";
import { useState } from "react";
import { api } from "../api/client.ts";
import { ApiError } from "../api/errors.ts";
import { signIn } from "../api/session.ts";
import { useProblemText } from "../components/useProblemText.ts";
import { app } from "../i18n/texts/app.ts";
import { useText } from "../i18n/useText.ts";
import styles from "./SignIn.module.css";

/** Asks for the key, and tries it before accepting it. */
export function SignIn() {
  const t = useText(app);
  const { lineOf } = useProblemText();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);

  async function attempt({ key }: { key: string }): Promise<void> {
    setBusy(true);
    setFailure(null);
    const trimmed = key.trim();
    try {
      await api.get("/api/v1/settings", { headers: { authorization: `Bearer ${trimmed}` } });
      signIn(trimmed);
    } catch (error) {
      const refused = error instanceof ApiError && error.status === 401;
      setFailure(refused ? t("keyRefused") : lineOf(error));
      setBusy(false);
    }
  }

  return (
    <div className={styles["place"]}>
      <Card className={styles["card"] ?? ""}>
        <h1 className={styles["title"]}>{t("signIn")}</h1>
        <p className={styles["hint"]}>{t("signInHint")}</p>
        <Form layout="vertical" requiredMark={false} onFinish={(values: { key: string }) => void attempt(values)}>
          <Form.Item
            name="key"
            label={t("key")}
            rules={[{ required: true, whitespace: true, message: t("keyRequired") }]}
          >
            <Input.Password autoComplete="off" disabled={busy} maxLength={500} />
          </Form.Item>
          {failure !== null && <Alert className={styles["failure"] ?? ""} type="error" showIcon title={failure} />}
          <Button type="primary" htmlType="submit" block loading={busy}>
            {t("signIn")}
          </Button>
        </Form>
      </Card>
    </div>
  );
}
