import { DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Button, Checkbox, Input, InputNumber, Select } from "antd";
import { type ReactNode, useId } from "react";
import { api } from "../../../api/client.ts";
import { useResource } from "../../../api/useResource.ts";
import { wholeList } from "../../../api/wholeList.ts";
import { type Diagnostic, YamlEditor } from "../../../components/CodeEditor.tsx";
import { Section } from "../../../components/Section.tsx";
import { preview } from "../../../i18n/texts/preview.ts";
import { useText } from "../../../i18n/useText.ts";
import styles from "./IngredientsForm.module.css";
import { type HistoryMessage, type Ingredients, type Role, type Tokenizer } from "./renderPrompt.ts";
import { yamlOf } from "./yaml.ts";

type FormProps = {
  given: Ingredients;
  diagnostics: readonly Diagnostic[];
  onChange: (part: Partial<Ingredients>) => void;
};

const NONE = "";
const ROLES: readonly Role[] = ["user", "assistant", "system"];
const TOKENIZERS: readonly Tokenizer[] = ["o200k", "cl100k", "estimate"];

/** Ingredients of a prompt: files, a Skein, the chat, limits. */
export function IngredientsForm({ given, diagnostics, onChange }: FormProps) {
  const t = useText(preview);
  const cards = useResource("preview-cards", (signal) =>
    wholeList(
      async (after) => (await api.get("/api/v1/cards", { query: { limit: 200, after }, signal })).data,
      ({ card_id: id }) => id,
    ),
  );
  const books = useResource("preview-books", (signal) =>
    wholeList(
      async (after) => (await api.get("/api/v1/lorebooks", { query: { limit: 200, after }, signal })).data,
      ({ lorebook_id: id }) => id,
    ),
  );

  async function beginWithCard(card: string): Promise<void> {
    const { data } = await api.get("/api/v1/cards/{id}", { path: { id: card } });
    if (data.skein !== undefined) onChange({ skein: yamlOf(data.skein) });
  }

  return (
    <>
      <Section title={t("ingredients")}>
        <div className={styles["fields"]}>
          <Field label={t("card")}>
            {(id) => (
              <Select
                id={id}
                showSearch={{ optionFilterProp: "label" }}
                loading={cards.loading}
                value={given.card ?? NONE}
                options={[
                  { value: NONE, label: t("noCard") },
                  ...(cards.data ?? []).map(({ card_id: value, name }) => ({ value, label: name })),
                ]}
                onChange={(card: string) => onChange({ card: card === NONE ? null : card })}
              />
            )}
          </Field>
          <Field label={t("books")}>
            {(id) => (
              <Select
                id={id}
                mode="multiple"
                showSearch={{ optionFilterProp: "label" }}
                loading={books.loading}
                value={[...given.books]}
                options={(books.data ?? []).map(({ lorebook_id: value, name }) => ({ value, label: name }))}
                onChange={(chosen: string[]) => onChange({ books: chosen })}
              />
            )}
          </Field>
          <div>
            <div className={styles["head"]}>
              <span className={styles["label"]}>{t("skein")}</span>
              <span>
                {given.card !== null && (
                  <Button type="link" size="small" onClick={() => void beginWithCard(given.card ?? "")}>
                    {t("skeinFrom")}
                  </Button>
                )}
                {given.skein !== "" && (
                  <Button type="link" size="small" onClick={() => onChange({ skein: "" })}>
                    {t("skeinClear")}
                  </Button>
                )}
              </span>
            </div>
            <YamlEditor
              label={t("skein")}
              value={given.skein}
              diagnostics={given.skein.trim() === "" ? NO_DIAGNOSTICS : diagnostics}
              height={given.skein === "" ? 80 : 320}
              onChange={(skein) => onChange({ skein })}
            />
            <p className={styles["hint"]}>{t("skeinHint")}</p>
          </div>
        </div>
      </Section>
      <Section title={t("context")}>
        <div className={styles["fields"]}>
          <Field label={t("user")}>
            {(id) => <Input id={id} value={given.user} onChange={({ target }) => onChange({ user: target.value })} />}
          </Field>
          <Field label={t("persona")}>
            {(id) => (
              <Input.TextArea
                id={id}
                autoSize={{ minRows: 1, maxRows: 6 }}
                value={given.persona}
                onChange={({ target }) => onChange({ persona: target.value })}
              />
            )}
          </Field>
          <History history={given.history} onChange={(history) => onChange({ history })} />
          <div>
            <span className={styles["label"]}>{t("variables")}</span>
            <YamlEditor
              label={t("variables")}
              value={given.variables}
              height={given.variables === "" ? 60 : 140}
              onChange={(variables) => onChange({ variables })}
            />
          </div>
        </div>
      </Section>
      <Section title={t("limits")}>
        <div className={styles["limits"]}>
          <Field label={t("maxContext")}>
            {(id) => (
              <InputNumber
                id={id}
                min={0}
                step={100}
                className={styles["number"] ?? ""}
                value={given.maxContext}
                onChange={(maxContext) => onChange({ maxContext })}
              />
            )}
          </Field>
          <Field label={t("tokenizer")}>
            {(id) => (
              <Select
                id={id}
                value={given.tokenizer}
                options={TOKENIZERS.map((value) => ({ value, label: value }))}
                onChange={(tokenizer) => onChange({ tokenizer })}
              />
            )}
          </Field>
        </div>
        <div className={styles["checks"]}>
          <Checkbox checked={given.strict} onChange={({ target }) => onChange({ strict: target.checked })}>
            {t("strict")}
          </Checkbox>
          <Checkbox checked={given.instructions} onChange={({ target }) => onChange({ instructions: target.checked })}>
            {t("instructions")}
          </Checkbox>
        </div>
      </Section>
    </>
  );
}

const NO_DIAGNOSTICS: readonly Diagnostic[] = [];

function Field({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className={styles["field"]}>
      <label htmlFor={id} className={styles["label"]}>
        {label}
      </label>
      {children(id)}
    </div>
  );
}

type HistoryProps = { history: readonly HistoryMessage[]; onChange: (history: readonly HistoryMessage[]) => void };

function History({ history, onChange }: HistoryProps) {
  const t = useText(preview);
  const change = (at: number, part: Partial<HistoryMessage>) =>
    onChange(history.map((one, index) => (index === at ? { ...one, ...part } : one)));
  const next: Role = history.at(-1)?.role === "user" ? "assistant" : "user";
  return (
    <div className={styles["field"]} role="group" aria-label={t("history")}>
      <span className={styles["label"]}>{t("history")}</span>
      {history.map(({ role, content }, at) => (
        <div key={at} className={styles["message"]}>
          <Select
            aria-label={t("role", { number: at + 1 })}
            value={role}
            options={ROLES.map((value) => ({ value, label: value }))}
            onChange={(chosen) => change(at, { role: chosen })}
          />
          <Input.TextArea
            aria-label={t("words", { number: at + 1 })}
            autoSize={{ minRows: 1, maxRows: 6 }}
            value={content}
            onChange={({ target }) => change(at, { content: target.value })}
          />
          <Button
            type="text"
            icon={<DeleteOutlined />}
            aria-label={t("removeMessage", { number: at + 1 })}
            onClick={() => onChange(history.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      <Button
        className={styles["add"] ?? ""}
        type="dashed"
        size="small"
        icon={<PlusOutlined />}
        onClick={() => onChange([...history, { role: next, content: "" }])}
      >
        {t("addMessage")}
      </Button>
    </div>
  );
}
