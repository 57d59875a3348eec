import { UploadOutlined } from "@ant-design/icons";
import { Alert, Button, Modal, Upload } from "antd";
import { useState } from "react";
import { api, send } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import { type Replayed } from "./model.ts";
import styles from "./ReplayTest.module.css";

type ReplayTestProps = { dialogue: string; script: string; onClose: () => void };

/** Runs a test of the script without a model: of this run, or of a file. */
export function ReplayTest({ dialogue, script, onClose }: ReplayTestProps) {
  const t = useText(run);
  const { line } = useProblemText();
  const [result, setResult] = useState<Replayed | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);

  async function replay(read: () => Promise<string>) {
    setBusy(true);
    setError(null);
    setResult(null);
    try {
      const { data } = await api.post("/api/v1/scripts/{id}/replay", { test: await read() }, { path: { id: script } });
      setResult(data);
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  const own = async () => (await send(`/api/v1/dialogues/${encodeURIComponent(dialogue)}/test`)).text();
  return (
    <Modal open title={t("replay")} footer={null} onCancel={onClose} width={640}>
      <p className={styles["hint"]}>{t("replayHint")}</p>
      <div className={styles["ways"]}>
        <Button type="primary" loading={busy} onClick={() => void replay(own)}>
          {t("replayThis")}
        </Button>
        <Upload
          accept=".yaml,.yml,.json"
          showUploadList={false}
          beforeUpload={(file) => {
            void replay(() => file.text());
            return false;
          }}
        >
          <Button icon={<UploadOutlined />}>{t("replayFile")}</Button>
        </Upload>
      </div>
      {error !== null && <Alert type="error" showIcon title={line(error)} />}
      {result !== null && <Outcome result={result} />}
    </Modal>
  );
}

function Outcome({ result }: { result: Replayed }) {
  const t = useText(run);
  const { passed, turns, version, differences } = result;
  if (passed) return <Alert type="success" showIcon role="status" title={t("passed", { turns, version })} />;
  return (
    <>
      <Alert type="error" showIcon role="status" title={t("differs", { count: differences.length, version })} />
      {/* Keys scroll what has the focus. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={styles["table"]} tabIndex={0} role="region" aria-label={t("replay")}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t("round")}</th>
              <th scope="col">{t("field")}</th>
              <th scope="col">{t("expected")}</th>
              <th scope="col">{t("found")}</th>
            </tr>
          </thead>
          <tbody>
            {differences.map(({ turn, field, expected, found }) => (
              <tr key={`${turn} ${field}`}>
                <th scope="row">{t("turn", { turn })}</th>
                <td>
                  <code>{field}</code>
                </td>
                <td>{JSON.stringify(expected)}</td>
                <td>{JSON.stringify(found)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
