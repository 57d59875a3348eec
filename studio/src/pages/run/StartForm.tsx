import { MinusCircleOutlined, PlusOutlined } from "@ant-design/icons";
import { Alert, Button, Form, Input, InputNumber, Modal, Radio, Select } from "antd";
import { useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";
import { parse } from "yaml";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useResource } from "../../api/useResource.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import { placesIn } from "./places.ts";
import { type Script, versionsToRun } from "./scripts.ts";
import styles from "./StartForm.module.css";
import { type Play } from "./usePlay.ts";
import { declaredIn, type Variable, variablesOf } from "./variables.ts";

type Mode = "self" | "answers" | "role";

const STATES = { draft: "versionDraft", published: "versionPublished", other: "version" } as const;

/** Navigation state that makes the page of a dialogue play it. */
export type StartState = { readonly play?: Play };

type StartFormProps = {
  scripts: readonly Script[];
  /** Script chosen at first. */
  scriptId: string | null;
  /** Version of that script; `null` for the last one. */
  version: number | null;
  onClose: () => void;
};

/** Form for a new run: script, session, step, variables, and who answers. */
export function StartForm({ scripts, scriptId, version, onClose }: StartFormProps) {
  const t = useText(run);
  const { line } = useProblemText();
  const navigate = useNavigate();
  const [script, setScript] = useState(scriptId ?? scripts[0]?.script_id ?? null);
  const [picked, setPicked] = useState<number | null>(null);
  const [session, setSession] = useState<string | null>(null);
  const [start, setStart] = useState<string | null>(null);
  const [mode, setMode] = useState<Mode>("self");
  const [answers, setAnswers] = useState("");
  const [role, setRole] = useState("");
  const [maxTurns, setMaxTurns] = useState(20);
  const [changed, setChanged] = useState<readonly Variable[] | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);

  const row = scripts.find(({ script_id: id }) => id === script);
  const given = script === scriptId ? version : null;
  // The published version may not exist; the last one always does.
  const asked = picked ?? given ?? row?.latest ?? null;
  const text = useResource(script === null ? null : `script ${script} ${asked ?? ""}`, async (signal) => {
    const { data } = await api.get("/api/v1/scripts/{id}", { path: { id: script ?? "" }, query: { version: asked }, signal });
    return (data as { yaml?: string }).yaml ?? "";
  });
  const parsed = useMemo(() => {
    try {
      return parse(text.data ?? "") as unknown;
    } catch {
      return null;
    }
  }, [text.data]);
  const sessions = placesIn(parsed);
  const places = (sessions.find(({ name }) => name === session) ?? sessions[0])?.steps ?? [];
  const declared = useMemo(() => declaredIn(parsed), [parsed]);
  const variables = changed ?? declared;

  const pick = (number: number | null) => {
    setPicked(number);
    setSession(null);
    setStart(null);
    setChanged(null);
  };
  const choose = (id: string) => {
    setScript(id);
    pick(null);
  };

  async function begin() {
    if (script === null) return;
    setBusy(true);
    setError(null);
    const own = variables.filter(({ name, value }) => declared.find((one) => one.name === name)?.value !== value);
    try {
      const { data } = await api.post("/api/v1/dialogues", {
        script_id: script,
        ...(asked === null ? {} : { version: asked }),
        variables: variablesOf(own),
        ...(session === null ? {} : { session }),
        ...(start === null ? {} : { start }),
      });
      const lines = answers.split("\n").map((line) => line.trim()).filter((line) => line !== "");
      const play: Play | undefined =
        mode === "answers" ? { answers: lines, maxTurns } : mode === "role" ? { role, maxTurns } : undefined;
      const state: StartState = play === undefined ? {} : { play };
      await navigate(`/run/${data.dialogue_id}`, { state });
    } catch (failure) {
      setBusy(false);
      if (failure instanceof ApiError) setError(failure);
      else throw failure;
    }
  }

  const ready = script !== null && (mode !== "role" || role.trim() !== "") && (mode !== "answers" || answers.trim() !== "");
  return (
    <Modal
      open
      title={t("newRun")}
      okText={t("begin")}
      cancelText={t("cancel")}
      okButtonProps={{ disabled: !ready, loading: busy }}
      onOk={() => void begin()}
      onCancel={onClose}
      width={640}
    >
      {scripts.length === 0 && (
        <Alert type="info" title={t("noScripts")} action={<Link to="/scripts">{t("writeScript")}</Link>} />
      )}
      <Form layout="vertical" component="div">
        <div className={styles["pair"]}>
          <Form.Item label={t("script")} htmlFor="run-script">
            <Select
              id="run-script"
              value={script}
              onChange={choose}
              showSearch={{ optionFilterProp: "label" }}
              options={scripts.map(({ script_id: value, name: label }) => ({ value, label }))}
            />
          </Form.Item>
          <Form.Item label={t("scriptVersion")} htmlFor="run-version">
            <Select
              id="run-version"
              value={asked}
              onChange={pick}
              options={versionsToRun(row, given).map(({ version: value, state }) => ({ value, label: t(STATES[state], { version: value }) }))}
            />
          </Form.Item>
        </div>
        <div className={styles["pair"]}>
          <Form.Item label={t("session")} htmlFor="run-session">
            <Select
              id="run-session"
              value={session ?? sessions[0]?.name ?? null}
              onChange={(name) => {
                setSession(name);
                setStart(null);
              }}
              options={sessions.map(({ name }) => ({ value: name, label: name }))}
            />
          </Form.Item>
          <Form.Item label={t("start")} htmlFor="run-start">
            <Select
              id="run-start"
              value={start ?? ""}
              onChange={(path) => setStart(path === "" ? null : path)}
              options={[{ value: "", label: t("startFirst") }, ...places.map(({ path, label }) => ({ value: path, label }))]}
            />
          </Form.Item>
        </div>
        <Form.Item label={t("variables")} extra={t("variablesHint")}>
          <Variables rows={variables} onChange={setChanged} />
        </Form.Item>
        <Form.Item label={t("mode")}>
          <Radio.Group
            value={mode}
            onChange={(event) => setMode(event.target.value as Mode)}
            options={[
              { value: "self", label: t("modeSelf") },
              { value: "answers", label: t("modeAnswers") },
              { value: "role", label: t("modeRole") },
            ]}
          />
        </Form.Item>
        {mode === "answers" && (
          <Form.Item label={t("answers")} htmlFor="run-answers">
            <Input.TextArea id="run-answers" rows={5} value={answers} onChange={(event) => setAnswers(event.target.value)} />
          </Form.Item>
        )}
        {mode === "role" && (
          <Form.Item label={t("role")} htmlFor="run-role">
            <Input.TextArea
              id="run-role"
              rows={4}
              value={role}
              placeholder={t("rolePlaceholder")}
              onChange={(event) => setRole(event.target.value)}
            />
          </Form.Item>
        )}
        {mode !== "self" && (
          <Form.Item label={t("maxTurns")} htmlFor="run-turns">
            <InputNumber id="run-turns" min={1} max={100} value={maxTurns} onChange={(value) => setMaxTurns(value ?? 20)} />
          </Form.Item>
        )}
      </Form>
      {error !== null && (
        // Scrolls to the error, as the form may be longer than the window.
        <div ref={(shown) => shown?.scrollIntoView({ block: "nearest" })}>
          <Alert type="error" showIcon role="alert" title={line(error)} />
        </div>
      )}
    </Modal>
  );
}

function Variables({ rows, onChange }: { rows: readonly Variable[]; onChange: (rows: readonly Variable[]) => void }) {
  const t = useText(run);
  const change = (index: number, next: Partial<Variable>) =>
    onChange(rows.map((row, at) => (at === index ? { ...row, ...next } : row)));
  return (
    <div className={styles["variables"]}>
      {rows.map((row, index) => (
        <div key={index} className={styles["variable"]}>
          <Input aria-label={t("name")} value={row.name} onChange={(event) => change(index, { name: event.target.value })} />
          <Input
            aria-label={row.name === "" ? t("value") : row.name}
            value={row.value}
            onChange={(event) => change(index, { value: event.target.value })}
          />
          <Button
            type="text"
            icon={<MinusCircleOutlined />}
            aria-label={t("removeVariable")}
            onClick={() => onChange(rows.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <Button type="dashed" icon={<PlusOutlined />} onClick={() => onChange([...rows, { name: "", value: "" }])}>
        {t("addVariable")}
      </Button>
    </div>
  );
}
