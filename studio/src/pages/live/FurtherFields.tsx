import { Checkbox, Collapse, Form, Input, InputNumber, Select } from "antd";
import { useTools } from "../../api/useTools.ts";
import { live } from "../../i18n/texts/live.ts";
import { useText } from "../../i18n/useText.ts";
import styles from "./Live.module.css";

/** Message fields that are seldom changed. */
export function FurtherFields() {
  const t = useText(live);
  return (
    <Collapse
      ghost
      size="small"
      className={styles["further"] ?? ""}
      items={[{ key: "more", label: t("more"), forceRender: true, children: <Fields /> }]}
    />
  );
}

function Fields() {
  const t = useText(live);
  const tools = useTools();
  return (
    <>
      <Form.Item name="systemPrompt" label={t("systemPrompt")}>
        <Input.TextArea autoSize={{ minRows: 1, maxRows: 8 }} />
      </Form.Item>
      <div className={styles["fields"]}>
        <Form.Item name="tools" label={t("tools")}>
          <Select
            mode="multiple"
            loading={tools.loading}
            options={(tools.data ?? []).map(({ name, description }) => ({ value: name, label: name, title: description ?? name }))}
            notFoundContent={t("noTools")}
          />
        </Form.Item>
        <Form.Item name="profile" label={t("profile")}>
          <Select
            allowClear
            placeholder={t("lenient")}
            options={[
              { value: "lenient", label: t("lenient") },
              { value: "strict", label: t("strict") },
            ]}
          />
        </Form.Item>
        <Form.Item name="hold" label={t("hold")}>
          <Select
            allowClear
            placeholder={t("holdNone")}
            options={[
              { value: "none", label: t("holdNone") },
              { value: "until_final", label: t("holdFinal") },
              { value: "all", label: t("holdAll") },
            ]}
          />
        </Form.Item>
        <Form.Item name="protocol" label={t("protocol")}>
          <Select allowClear placeholder="jsonseq_v1" options={[{ value: "jsonseq_v1" }, { value: "legacy" }]} />
        </Form.Item>
        <Form.Item name="temperature" label={t("temperature")}>
          <InputNumber min={0} max={2} step={0.1} className={styles["number"] ?? ""} />
        </Form.Item>
        <Form.Item name="maxTokens" label={t("maxTokens")}>
          <InputNumber min={1} precision={0} className={styles["number"] ?? ""} />
        </Form.Item>
        <Form.Item name="maxReasks" label={t("maxReasks")}>
          <InputNumber min={0} max={5} precision={0} className={styles["number"] ?? ""} />
        </Form.Item>
      </div>
      <Form.Item name="instructions" valuePropName="checked">
        <Checkbox>{t("instructions")}</Checkbox>
      </Form.Item>
    </>
  );
}
