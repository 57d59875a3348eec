import { SendOutlined } from "@ant-design/icons";
import { Button, Checkbox, Form, Input, type InputRef, Select, Tag } from "antd";
import { type Ref, useImperativeHandle, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { useResource } from "../../api/useResource.ts";
import { ErrorState } from "../../components/ErrorState.tsx";
import { live } from "../../i18n/texts/live.ts";
import { useText } from "../../i18n/useText.ts";
import { FurtherFields } from "./FurtherFields.tsx";
import styles from "./Live.module.css";
import { DIALECTS, type Draft } from "./request.ts";
import { type Target, targetOf, targetsOf, wordOf } from "./targets.ts";

export type ComposeHandle = {
  /** Fills in a text; with a conversation, the message continues it. */
  fill: (text: string, conversation: string | undefined) => void;
};

type ComposeFormProps = { ref?: Ref<ComposeHandle>; onSend: (draft: Draft) => Promise<void> };

/** Form for a message and its target. */
export function ComposeForm({ ref, onSend }: ComposeFormProps) {
  const t = useText(live);
  const [form] = Form.useForm<Draft>();
  const field = useRef<InputRef>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const targets = useResource("targets", async (signal) => {
    const [settings, models] = await Promise.all([
      api.get("/api/v1/settings", { signal }),
      api.get("/v1/models", { signal }),
    ]);
    return targetsOf(settings.data, models.data);
  });
  const compare = Form.useWatch("compare", form) === true;
  const target = Form.useWatch("target", form);
  const conversation = Form.useWatch("conversation", { form, preserve: true });

  useImperativeHandle(ref, () => ({
    fill: (text, continued) => {
      form.setFieldsValue({ text, conversation: continued });
      field.current?.focus();
    },
  }));

  async function finish(): Promise<void> {
    const draft = form.getFieldsValue(true) as Draft;
    setBusy(true);
    setError(null);
    try {
      await onSend({ ...draft, second: draft.second ?? draft.target });
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError(0, { code: "client_error", detail: String(failure) }));
    } finally {
      setBusy(false);
    }
  }

  const options = optionsOf(targets.data ?? [], t);
  return (
    <Form
      form={form}
      layout="vertical"
      requiredMark={false}
      className={styles["compose"] ?? ""}
      initialValues={{ text: "", dialect: "auto" }}
      onFinish={() => void finish()}
    >
      <Form.Item name="text" label={t("message")} rules={[{ required: true, whitespace: true, message: t("messageRequired") }]}>
        <Input.TextArea
          ref={field}
          autoSize={{ minRows: 2, maxRows: 10 }}
          placeholder={t("messagePlaceholder")}
          onKeyDown={(key) => {
            if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) form.submit();
          }}
        />
      </Form.Item>
      {conversation !== undefined && (
        <Tag
          closable={{ "aria-label": t("leaveConversation") }}
          onClose={() => form.setFieldValue("conversation", undefined)}
          className={styles["conversation"] ?? ""}
        >
          {t("conversation", { id: conversation })}
        </Tag>
      )}
      {conversation !== undefined && targetOf(target)?.kind === "alias" && (
        <p className={styles["hint"]}>{t("aliasConversation")}</p>
      )}
      {conversation !== undefined && compare && (
        <p role="note" className={styles["hint"]}>
          {t("compareConversation")}
        </p>
      )}
      <div className={styles["fields"]}>
        <Form.Item name="target" label={t("target")}>
          <Select<string, TargetOption> allowClear loading={targets.loading} options={options} placeholder={nameOfDefault(targets.data, t)} />
        </Form.Item>
        <Form.Item name="model" label={t("model")}>
          <Input placeholder={t("ownModel")} allowClear />
        </Form.Item>
        <Form.Item name="dialect" label={t("dialect")}>
          <Select
            options={DIALECTS.map((value) => ({ value, label: value === "auto" ? t("automatic") : value }))}
          />
        </Form.Item>
        {compare && (
          <>
            <Form.Item name="second" label={t("secondTarget")}>
              <Select<string, TargetOption> allowClear options={options} placeholder={nameOfDefault(targets.data, t)} />
            </Form.Item>
            <Form.Item name="secondModel" label={t("secondModel")}>
              <Input placeholder={t("ownModel")} allowClear />
            </Form.Item>
          </>
        )}
      </div>
      <FurtherFields />
      {error !== null && <ErrorState error={error} />}
      <div className={styles["sendBar"]}>
        <Form.Item name="compare" valuePropName="checked" noStyle>
          <Checkbox>{t("compare")}</Checkbox>
        </Form.Item>
        <span className={styles["hint"]}>{t("sendHint")}</span>
        <Button type="primary" htmlType="submit" icon={<SendOutlined />} loading={busy}>
          {t("send")}
        </Button>
      </div>
    </Form>
  );
}

type Translate = ReturnType<typeof useText<typeof live>>;

type TargetOption = ReturnType<typeof optionsOf>[number];

type Option = { value: string; label: string };

function optionsOf(targets: readonly Target[], t: Translate): (Option | { label: string; options: Option[] })[] {
  const group = (kind: Target["kind"]) =>
    targets
      .filter((target) => target.kind === kind)
      .map((target) => ({
        value: wordOf(target),
        label: target.isDefault ? t("defaultTarget", { name: target.name }) : target.name,
      }));
  const [upstreams, aliases] = [group("upstream"), group("alias")];
  if (aliases.length === 0) return upstreams;
  return [
    { label: t("upstreams"), options: upstreams },
    { label: t("aliases"), options: aliases },
  ];
}

function nameOfDefault(targets: readonly Target[] | null, t: Translate): string {
  const name = targets?.find(({ isDefault }) => isDefault)?.name;
  return name === undefined ? "" : t("defaultTarget", { name });
}
