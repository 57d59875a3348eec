import { Form, Input, InputNumber, Select } from "antd";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";

/** Name of a key within its form. */
export function NameField() {
  const t = useText(texts);
  return (
    <Form.Item
      name="name"
      label={t("keyName")}
      rules={[{ required: true, whitespace: true, message: t("keyNameRequired") }]}
    >
      <Input />
    </Form.Item>
  );
}

/** Limits of a key within its form; an empty one means none. */
export function LimitFields() {
  const t = useText(texts);
  const count = <InputNumber min={1} precision={0} style={{ width: "100%" }} placeholder={t("unlimited")} />;
  return (
    <>
      <Form.Item name="requests_per_minute" label={t("perMinute")}>
        {count}
      </Form.Item>
      <Form.Item name="tokens_per_day" label={t("perDay")}>
        {count}
      </Form.Item>
      <Form.Item name="aliases" label={t("keyAliases")}>
        <Select mode="tags" open={false} placeholder={t("unlimited")} />
      </Form.Item>
    </>
  );
}
