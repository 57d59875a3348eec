import { Alert, App, Button, Form, Input, Select } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { Section } from "../../components/Section.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";
import { changesIn, defaultText, FIELDS, type Values, valuesOf } from "./output.ts";

type Settings = Schemas["Settings"];

type OutputFormProps = { settings: Settings; onSaved: (settings: Settings) => void };

const valueAt = (values: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>> | undefined)?.[name], values);

/** Settings that can be changed. A write names its base version, so that no other user's change is lost. */
export function OutputForm({ settings, onSaved }: OutputFormProps) {
  const t = useText(texts);
  const { line } = useProblemText();
  const { message } = App.useApp();
  const [form] = Form.useForm<Values>();
  // Settings that the form was filled from, with the version that a write is based on.
  const [base, setBase] = useState(settings);
  const language = (Form.useWatch("text_language", form) as Settings["text_language"] | undefined) ?? settings.text_language;
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);

  async function save(values: Values): Promise<void> {
    setBusy(true);
    setFailure(null);
    try {
      const { data } = await api.put("/api/v1/settings", changesIn(values, base), { headers: { "if-match": `"${base.version}"` } });
      void message.success(t("saved"));
      onSaved(data);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(error);
      if (error.code === "changed_meanwhile") takeOver(error.problem["present"] as Settings);
    } finally {
      setBusy(false);
    }
  }

  /** Shows another user's saved values in untouched fields, and bases the next write on them. */
  function takeOver(present: Settings): void {
    const shown = valuesOf(present);
    const untouched = FIELDS.filter((path) => !form.isFieldTouched([...path]));
    form.setFields(untouched.map((path) => ({ name: [...path] as never, value: valueAt(shown, path) as never, touched: false })));
    setBase(present);
  }

  return (
    <Section title={t("output")}>
      <Form<Values>
        form={form}
        layout="vertical"
        requiredMark={false}
        initialValues={valuesOf(settings)}
        onFinish={(values) => void save(values)}
        style={{ maxWidth: 640 }}
      >
        <Form.Item name={["llm_app_settings", "app_output_protocol"]} label={t("protocol")} extra={t("protocolHint")}>
          <Select options={["legacy", "jsonseq_v1"].map((value) => ({ value, label: value }))} />
        </Form.Item>
        <Form.Item name="text_language" label={t("textLanguage")}>
          <Select
            options={[
              { value: "zh", label: t("chinese") },
              { value: "en", label: t("english") },
            ]}
          />
        </Form.Item>
        <Form.Item name="thought_display" label={t("thoughts")}>
          <Select
            options={(["collapsed", "hidden", "shown"] as const).map((value) => ({ value, label: t(value) }))}
          />
        </Form.Item>
        <Form.Item name={["texts", "fallback"]} label={t("fallback")} extra={t("fallbackHint")}>
          <Input.TextArea autoSize={{ minRows: 2, maxRows: 6 }} placeholder={defaultText("fallback", language)} />
        </Form.Item>
        <Form.Item name={["texts", "phase_title"]} label={t("phaseTitle")} extra={t("phaseTitleHint")}>
          <Input placeholder={defaultText("phase_title", language)} />
        </Form.Item>
        {failure !== null && (
          <Alert
            type="error"
            showIcon
            role="alert"
            style={{ marginBottom: 16 }}
            title={failure.code === "changed_meanwhile" ? t("changedMeanwhile") : line(failure)}
          />
        )}
        <Button type="primary" htmlType="submit" loading={busy}>
          {t("save")}
        </Button>
      </Form>
    </Section>
  );
}
