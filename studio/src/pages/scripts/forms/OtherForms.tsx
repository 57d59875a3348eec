import { Form, Input, InputNumber, Select, Switch } from "antd";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { ALIASES } from "../document/aliases.ts";
import { Field, FormFrame } from "./FormFrame.tsx";
import styles from "./Forms.module.css";
import { type AskValues, type ClientValues, optionsOf, subjectOf, type ThinkValues } from "./otherValues.ts";
import { outputOf } from "./output.ts";
import { roundsRules } from "./SayForm.tsx";
import { type NodeFormProps, useNodeForm } from "./useNodeForm.ts";
import { VariableText } from "./VariableText.tsx";

type WithVariables = { known: readonly string[] };

/** Form of `ai_ask`. */
export function AskForm({ known, ...part }: NodeFormProps<AskValues> & WithVariables) {
  const t = useText(scripts);
  const { invalid, ...form } = useNodeForm(part);
  const answer = (Form.useWatch("answer", form.form) as string | undefined) ?? form.initialValues.answer;
  const kinds = [
    { value: "text", label: t("answerText") },
    { value: "number", label: t("answerNumber") },
    { value: "boolean", label: t("answerBoolean") },
    { value: "choice", label: t("answerChoice") },
    { value: "date", label: t("answerDate") },
  ];
  return (
    <FormFrame {...form} invalid={invalid}>
      <Field name="question" keys={ALIASES.question} label={t("question")} rules={[{ required: true, whitespace: true, message: t("questionNeeded") }]}>
        <VariableText known={known} rows={4} />
      </Field>
      <div className={styles["pair"]}>
        <Field name="variable" keys={ALIASES.answerVariable} label={t("variable")}>
          <Input />
        </Field>
        <Field name="answer" keys={["answer"]} label={t("answerType")}>
          <Select options={kinds} />
        </Field>
      </div>
      {answer === "choice" && (
        <Form.Item
          name="options"
          label={t("options")}
          rules={[{ validator: (_, value: string) => (optionsOf(value).length > 0 ? Promise.resolve() : Promise.reject(new Error(t("optionsNeeded")))) }]}
        >
          <Input.TextArea rows={4} />
        </Form.Item>
      )}
      {(answer === "number" || answer === "date") && (
        <div className={styles["pair"]}>
          <Form.Item name="min" label={t("smallest")}>
            <Input type={answer} step="any" />
          </Form.Item>
          <Form.Item name="max" label={t("greatest")}>
            <Input type={answer} step="any" />
          </Form.Item>
        </div>
      )}
      <div className={styles["pair"]}>
        <Field name="max_rounds" keys={["max_rounds"]} label={t("rounds")} rules={roundsRules(t("roundsRange"))}>
          <InputNumber className={styles["number"] ?? ""} step={1} />
        </Field>
        <Field name="required" keys={["required"]} label={t("required")} valuePropName="checked">
          <Switch />
        </Field>
      </div>
    </FormFrame>
  );
}

/** Form of `ai_think`. */
export function ThinkForm({ known, ...part }: NodeFormProps<ThinkValues> & WithVariables) {
  const t = useText(scripts);
  const { invalid, ...form } = useNodeForm(part);
  return (
    <FormFrame {...form} invalid={invalid}>
      <Field name="prompt" keys={ALIASES.prompt} label={t("prompt")} rules={[{ required: true, whitespace: true, message: t("promptNeeded") }]}>
        <VariableText known={known} rows={6} />
      </Field>
      <Field
        name="output"
        keys={ALIASES.output}
        label={t("output")}
        rules={[{ validator: (_, value: string) => (outputOf(value) === null ? Promise.reject(new Error(t("outputWrong"))) : Promise.resolve()) }]}
      >
        <Input.TextArea rows={4} />
      </Field>
    </FormFrame>
  );
}

/** Form of a client's action: a skill, a form or a picture. `plainFields`: the fields of a form are only names. */
export function ClientForm({ type, plainFields, ...part }: NodeFormProps<ClientValues> & { type: string; plainFields: boolean }) {
  const t = useText(scripts);
  const { invalid, ...form } = useNodeForm(part);
  const subject = subjectOf(type);
  return (
    <FormFrame {...form} invalid={invalid}>
      {subject !== null && (
        <Form.Item name="subject" label={subject === "skill" ? t("skill") : t("picture")}>
          <Input />
        </Form.Item>
      )}
      <Form.Item name="title" label={t("formTitle")}>
        <Input />
      </Form.Item>
      {type === "show_form" && !plainFields && <p className={styles["note"]}>{t("fieldsInText")}</p>}
      {type === "show_form" && plainFields && (
        <Form.Item name="fields" label={t("formFields")}>
          <Input.TextArea autoSize={{ minRows: 2, maxRows: 12 }} />
        </Form.Item>
      )}
      <Field name="variable" keys={ALIASES.variable} label={t("variable")}>
        <Input />
      </Field>
      <p className={styles["note"]}>{t("otherFields")}</p>
    </FormFrame>
  );
}
