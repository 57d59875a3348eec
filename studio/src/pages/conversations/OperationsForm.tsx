import { DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Alert, App, Button, Checkbox, Input, Select } from "antd";
import { useState } from "react";
import { api, basedOn } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";
import { type Draft, operationOf, OPERATIONS, type Step, stepsOf, takesValue, valueOf } from "./operations.ts";
import styles from "./OperationsForm.module.css";
import { Steps } from "./Steps.tsx";
import { useNotices } from "./useNotices.ts";

type FormProps = {
  id: string;
  drafts: readonly Draft[];
  onDrafts: (drafts: readonly Draft[]) => void;
  /** Point before the change; `undefined` while unknown. */
  undoTo: string | null | undefined;
  /** Version of the displayed state. */
  etag: string | null;
  onDone: () => void;
};

type Outcome = { steps: readonly Step[]; applied: number; refused: number; undoTo: string | null | undefined };

/** Form for manual operations, with their results. */
export function OperationsForm({ id, drafts, onDrafts, undoTo, etag, onDone }: FormProps) {
  const t = useText(conversations);
  const { message } = App.useApp();
  const { show } = useNotices();
  const [analysis, setAnalysis] = useState("");
  const [atomic, setAtomic] = useState(false);
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { line } = useProblemText();
  const textOf = (error: unknown): string => (error instanceof ApiError ? line(error) : String(error));

  const change = (at: number, part: Partial<Draft>) =>
    onDrafts(drafts.map((draft, index) => (index === at ? { ...draft, ...part } : draft)));

  async function apply(): Promise<void> {
    setTried(true);
    if (drafts.some(({ path }) => path.trim() === "")) return;
    setBusy(true);
    try {
      const operations = drafts.map(operationOf);
      const { data } = await api.post(
        "/api/v1/conversations/{id}/state/operations",
        { operations, atomic, results: "all", ...(analysis.trim() === "" ? {} : { analysis: analysis.trim() }) },
        { path: { id }, ...basedOn(etag) },
      );
      const typed = operations.map(([op, path, value]) => ({ op, path, ...(value === undefined ? {} : { value }) }));
      const { applied, refused } = data.counts;
      setOutcome({ steps: stepsOf({ operations: typed, results: data.results }), applied, refused, undoTo });
      show(data.notices);
      if (refused === 0) {
        onDrafts([{ op: "SET", path: "", value: "" }]);
        setAnalysis("");
        setTried(false);
      }
      onDone();
    } catch (error) {
      void message.error(textOf(error));
      // The next try is based on the state displayed then.
      if (error instanceof ApiError && error.code === "changed_meanwhile") onDone();
    }
    setBusy(false);
  }

  async function undo(to: string | null): Promise<void> {
    try {
      const { data } = await api.post("/api/v1/conversations/{id}/state/rollback", { to }, { path: { id } });
      void message.success(t("rolledBack", { count: data.taken_back }));
      setOutcome(null);
      onDone();
    } catch (error) {
      void message.error(textOf(error));
    }
  }

  return (
    <form
      className={styles["form"]}
      onSubmit={(event) => {
        event.preventDefault();
        void apply();
      }}
    >
      {drafts.map((draft, at) => (
        <fieldset key={at} className={styles["operation"]}>
          <legend className="visually-hidden">{`${t("operation")} ${at + 1}`}</legend>
          <div className={styles["line"]}>
            <Select
              aria-label={t("operation")}
              className={styles["name"] ?? ""}
              value={draft.op}
              options={OPERATIONS.map((value) => ({ value, label: value }))}
              onChange={(op) => change(at, { op })}
            />
            <Input
              aria-label={t("path")}
              placeholder={t("path")}
              value={draft.path}
              status={tried && draft.path.trim() === "" ? "error" : ""}
              onChange={({ target }) => change(at, { path: target.value })}
            />
            {drafts.length > 1 && (
              <Button
                type="text"
                icon={<DeleteOutlined />}
                aria-label={t("removeOperation", { number: at + 1 })}
                onClick={() => onDrafts(drafts.filter((_, index) => index !== at))}
              />
            )}
          </div>
          {tried && draft.path.trim() === "" && (
            <p role="alert" className={styles["fault"]}>
              {t("pathRequired")}
            </p>
          )}
          {takesValue(draft.op) && (
            <div className={styles["line"]}>
              <Input.TextArea
                aria-label={t("value")}
                placeholder={t("valueHint")}
                autoSize={{ minRows: 1, maxRows: 8 }}
                value={draft.value}
                onChange={({ target }) => change(at, { value: target.value })}
              />
              <span className={styles["read"]}>
                {typeof valueOf(draft.value) === "string" ? t("readAsText") : t("readAsJson")}
              </span>
            </div>
          )}
        </fieldset>
      ))}
      <Button
        type="dashed"
        block
        icon={<PlusOutlined />}
        onClick={() => onDrafts([...drafts, { op: "SET", path: "", value: "" }])}
      >
        {t("addOperation")}
      </Button>
      <Input
        aria-label={t("analysis")}
        placeholder={`${t("analysis")} · ${t("analysisHint")}`}
        value={analysis}
        onChange={({ target }) => setAnalysis(target.value)}
      />
      <div className={styles["foot"]}>
        <Checkbox checked={atomic} onChange={({ target }) => setAtomic(target.checked)}>
          {t("atomic")}
        </Checkbox>
        <Button type="primary" htmlType="submit" loading={busy}>
          {t("apply")}
        </Button>
      </div>
      {outcome !== null && (
        <Alert
          type={outcome.refused === 0 ? "success" : "warning"}
          role="status"
          title={
            outcome.refused === 0
              ? t("applied", { count: outcome.applied })
              : `${t("applied", { count: outcome.applied })} · ${t("refused", { count: outcome.refused })}`
          }
          description={<Steps steps={outcome.steps} />}
          action={<Undo outcome={outcome} onUndo={(to) => void undo(to)} />}
        />
      )}
    </form>
  );
}

/** Undoes a change, if the point before it is known. */
function Undo({ outcome: { applied, undoTo }, onUndo }: { outcome: Outcome; onUndo: (to: string | null) => void }) {
  const t = useText(conversations);
  if (applied === 0 || undoTo === undefined) return null;
  return (
    <Button size="small" onClick={() => onUndo(undoTo)}>
      {t("undo")}
    </Button>
  );
}
