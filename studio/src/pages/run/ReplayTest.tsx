import { UploadOutlined } from "@ant-design/icons";
import { Alert, Button, Modal, Upload } from "antd";
import { useState } from "react";
import { api, send } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import { type Claim, rowsOf } from "./differences.ts";
import { type Replayed } from "./model.ts";
import styles from "./ReplayTest.module.css";
import { useDecisionWords } from "./useDecisionWords.ts";
import { shownValue } from "./variables.ts";

/** Result of a replay; `isDraft` if the version is not in use. */
type Outcome = Replayed & { readonly isDraft: boolean };

type ReplayTestProps = { dialogue: string; script: string; onClose: () => void };

/** Runs a test of the script without a model, from this run or from a file. */
export function ReplayTest({ dialogue, script, onClose }: ReplayTestProps) {
  const t = useText(run);
  const { line } = useProblemText();
  const [result, setResult] = useState<Outcome | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);

  async function replay(read: () => Promise<string>) {
    setBusy(true);
    setError(null);
    setResult(null);
    try {
      const { data } = await api.post("/api/v1/scripts/{id}/replay", { test: await read() }, { path: { id: script } });
      const { data: stored } = await api.get("/api/v1/scripts/{id}", { path: { id: script } });
      setResult({ ...data, isDraft: stored.published !== data.version });
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  const own = async () => (await send(`/api/v1/dialogues/${encodeURIComponent(dialogue)}/test`)).text();
  return (
    <Modal open title={t("replay")} footer={null} onCancel={onClose} width={760}>
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
      {result !== null && <Result result={result} />}
    </Modal>
  );
}

const SUBJECTS = {
  replies: "differsReplies",
  input: "differsInput",
  status: "status",
  position: "place",
  current_round: "differsRound",
  exit_decision: "decision",
  ai_message: "differsMessage",
  error: "differsError",
} as const;

type StatusName = "active" | "awaiting_ack" | "awaiting_answer" | "completed" | "failed";

function Result({ result }: { result: Outcome }) {
  const t = useText(run);
  const words = useClaimWords();
  const { passed, turns, differences, isDraft } = result;
  const version = t(isDraft ? "versionIsDraft" : "version", { version: result.version });
  if (passed) return <Alert type="success" showIcon role="status" title={t("passed", { turns, version })} />;
  return (
    <>
      <Alert type="error" showIcon role="status" title={t("differs", { count: differences.length, version })} />
      {/* Keys scroll the focused element. */}
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
            {rowsOf(differences).map(({ turn, subject, expected, found }) => (
              <tr key={`${turn} ${subject}`}>
                <th scope="row">{t("turn", { turn })}</th>
                <td className={styles["subject"]}>{subject in SUBJECTS ? t(SUBJECTS[subject as keyof typeof SUBJECTS]) : <code>{subject}</code>}</td>
                <td>{words(expected)}</td>
                <td>{words(found)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Words for claims about a turn. */
function useClaimWords(): (claims: readonly Claim[]) => string {
  const t = useText(run);
  const decision = useDecisionWords();
  const word = ({ field, value }: Claim): string => {
    if (value === null) return t("none");
    if (field === "exit_decision.should_exit") return decision.outcome(value === true);
    if (field === "exit_decision.decision_source") return decision.source(shownValue(value));
    if (field === "exit_decision.unmet" && Array.isArray(value)) {
      return value.length === 0 ? t("allMet") : value.map((name) => decision.unmet(String(name))).join(t("comma"));
    }
    if (field === "status" && shownValue(value) in run) return t(value as StatusName);
    if (field === "position.action") return t("actionNumber", { number: shownValue(value) });
    return shownValue(value);
  };
  return (claims) => claims.map(word).join(t("comma"));
}
