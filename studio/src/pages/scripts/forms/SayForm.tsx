import { Collapse, Divider, Form, InputNumber, Switch } from "antd";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { type SayValues } from "../document/actions.ts";
import { FormFrame, hint } from "./FormFrame.tsx";
import styles from "./Forms.module.css";
import { type NodeFormProps, useNodeForm } from "./useNodeForm.ts";
import { VariableText } from "./VariableText.tsx";

/** The form of `ai_say` (S-090 to S-097). */
export function SayForm({ known, ...part }: NodeFormProps<SayValues> & { known: readonly string[] }) {
  const t = useText(scripts);
  const { invalid, ...form } = useNodeForm(part);
  return (
    <FormFrame {...form} invalid={invalid}>
      <Form.Item
        name="content"
        label={t("content")}
        tooltip={hint(t("contentHint"))}
        rules={[{ required: true, whitespace: true, message: t("contentNeeded") }]}
      >
        <VariableText known={known} rows={10} placeholder={t("contentPlace", { sample: `{${t("variableSample")}}` })} />
      </Form.Item>
      <Divider titlePlacement="start">{t("interaction")}</Divider>
      <Form.Item name="require_acknowledgment" label={t("acknowledge")} tooltip={hint(t("acknowledgeHint"))} valuePropName="checked">
        <Switch />
      </Form.Item>
      <Form.Item name="max_rounds" label={t("rounds")} tooltip={hint(t("roundsHint"))} rules={roundsRules(t("roundsRange"))}>
        <InputNumber className={styles["number"] ?? ""} step={1} />
      </Form.Item>
      <Divider titlePlacement="start">{t("exit")}</Divider>
      <Collapse
        className={styles["fold"] ?? ""}
        items={[
          {
            key: "exit",
            label: t("advancedExit"),
            forceRender: true,
            children: (
              <>
                <Form.Item
                  name="understanding_threshold"
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
                </Form.Item>
                <Form.Item name="has_questions" label={t("withQuestions")} tooltip={hint(t("withQuestionsHint"))} valuePropName="checked">
                  <Switch />
                </Form.Item>
              </>
            ),
          },
        ]}
      />
    </FormFrame>
  );
}

/** Rounds are whole numbers from 1 to 20 (S-091). */
export const roundsRules = (message: string) => [
  {
    validator: (_: unknown, value: unknown) =>
      typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 20
        ? Promise.resolve()
        : Promise.reject(new Error(message)),
  },
];
