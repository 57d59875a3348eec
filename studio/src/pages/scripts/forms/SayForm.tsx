import { Collapse, Divider, Form, InputNumber, Switch } from "antd";
import { useState } from "react";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { type SayValues } from "../document/actions.ts";
import { ALIASES } from "../document/aliases.ts";
import { Field, FormFrame, hint, useFindingsOf } from "./FormFrame.tsx";
import styles from "./Forms.module.css";
import { type NodeFormProps, useNodeForm } from "./useNodeForm.ts";
import { VariableText } from "./VariableText.tsx";

/** Form of `ai_say` (S-090 to S-097). */
export function SayForm({ known, ...part }: NodeFormProps<SayValues> & { known: readonly string[] }) {
  const t = useText(scripts);
  const { invalid, ...form } = useNodeForm(part);
  const [unfolded, setUnfolded] = useState<readonly string[] | null>(null);
  const threshold = (Form.useWatch("understanding_threshold", form.form) as number | null | undefined) ?? form.initialValues.understanding_threshold;
  const questions = (Form.useWatch("has_questions", form.form) as boolean | undefined) ?? form.initialValues.has_questions;
  const isFaulty = useFindingsOf(["exit_criteria"]).length > 0;
  return (
    <FormFrame {...form} invalid={invalid}>
      <Field
        name="content"
        keys={[...ALIASES.content, "ai_say"]}
        label={t("content")}
        tooltip={hint(t("contentHint"))}
        rules={[{ required: true, whitespace: true, message: t("contentNeeded") }]}
      >
        <VariableText known={known} rows={10} placeholder={t("contentPlace", { sample: `{${t("variableSample")}}` })} />
      </Field>
      <Divider titlePlacement="start">{t("interaction")}</Divider>
      <Field name="require_acknowledgment" keys={["require_acknowledgment"]} label={t("acknowledge")} tooltip={hint(t("acknowledgeHint"))} valuePropName="checked">
        <Switch />
      </Field>
      <Field name="max_rounds" keys={["max_rounds"]} label={t("rounds")} tooltip={hint(t("roundsHint"))} rules={roundsRules(t("roundsRange"))}>
        <InputNumber className={styles["number"] ?? ""} step={1} />
      </Field>
      <Divider titlePlacement="start">{t("exit")}</Divider>
      <p className={styles["note"]}>{t(questions ? "exitRuleQuestions" : "exitRule")}</p>
      <Collapse
        className={styles["fold"] ?? ""}
        activeKey={[...(unfolded ?? (isFaulty ? ["exit"] : []))]}
        onChange={(keys) => setUnfolded(keys)}
        items={[
          {
            key: "exit",
            label: (
              <>
                {t("advancedExit")}{" "}
                <span className={styles["note"]}>{t(questions ? "exitWithQuestions" : "exitNoQuestions", { threshold: threshold ?? "–" })}</span>
              </>
            ),
            forceRender: true,
            children: (
              <>
                <Field
                  name="understanding_threshold"
                  keys={["exit_criteria.understanding_threshold"]}
                  label={t("threshold")}
                  tooltip={hint(t("thresholdHint"))}
                  rules={[{ required: true, type: "number", min: 0, max: 100, message: t("thresholdRange") }]}
                >
                  <InputNumber
                    className={styles["number"] ?? ""}
                    step={1}
                    formatter={(value) => (value === undefined || value === "" ? "" : `${value}%`)}
                    parser={(shown) => Number((shown ?? "").replace("%", "").trim() || Number.NaN)}
                  />
                </Field>
                <Field
                  name="has_questions"
                  keys={["exit_criteria.has_questions"]}
                  label={t("withQuestions")}
                  tooltip={hint(t("withQuestionsHint"))}
                  valuePropName="checked"
                >
                  <Switch />
                </Field>
              </>
            ),
          },
        ]}
      />
    </FormFrame>
  );
}

/** Validation of rounds: whole numbers from 1 to 20 (S-091). */
export const roundsRules = (message: string) => [
  {
    validator: (_: unknown, value: unknown) =>
      typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 20
        ? Promise.resolve()
        : Promise.reject(new Error(message)),
  },
];
