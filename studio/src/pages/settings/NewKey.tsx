import { Alert, Form, Input, Modal, Select, Typography } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";
import { LimitFields, NameField } from "./KeyFields.tsx";

type Values = Pick<Schemas["NewKey"], "name" | "owner" | "rights" | "requests_per_minute" | "tokens_per_day" | "aliases">;

type NewKeyProps = {
  open: boolean;
  /** True if there is no key yet: the first one is an admin's. */
  first: boolean;
  onClose: (made: boolean) => void;
};

/** Creates a key, and shows its secret once. */
export function NewKey({ open, first, onClose }: NewKeyProps) {
  const t = useText(texts);
  const { line } = useProblemText();
  const [form] = Form.useForm<Values>();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const [secret, setSecret] = useState<string | null>(null);

  function close(): void {
    const made = secret !== null;
    setSecret(null);
    setFailure(null);
    form.resetFields();
    onClose(made);
  }

  async function make(values: Values): Promise<void> {
    setBusy(true);
    setFailure(null);
    // Empty fields are left out.
    const given = Object.entries<unknown>(values).filter(
      ([, value]) => value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
    );
    try {
      const { data } = await api.post("/api/v1/keys", { name: values.name, ...Object.fromEntries(given) });
      setSecret(data.key ?? "");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(line(error));
    } finally {
      setBusy(false);
    }
  }

  return (
    <Modal
      open={open}
      title={t("newKey")}
      okText={secret === null ? t("make") : t("done")}
      cancelText={t("cancel")}
      confirmLoading={busy}
      mask={{ closable: false }}
      onOk={() => {
        if (secret === null) form.submit();
        else close();
      }}
      onCancel={close}
      {...(secret === null ? {} : { cancelButtonProps: { style: { display: "none" } } })}
    >
      {secret === null ? (
        <Form<Values>
          form={form}
          layout="vertical"
          requiredMark={false}
          initialValues={{ rights: first ? "admin" : "plain" }}
          onFinish={(values) => void make(values)}
        >
          <NameField />
          <Form.Item name="rights" label={t("rights")}>
            <Select options={(["plain", "admin"] as const).map((value) => ({ value, label: t(value) }))} />
          </Form.Item>
          <Form.Item name="owner" label={t("owner")} extra={t("ownerHint")}>
            <Input />
          </Form.Item>
          <LimitFields />
          {failure !== null && <Alert type="error" showIcon role="alert" title={failure} />}
        </Form>
      ) : (
        <Alert
          type="warning"
          showIcon
          title={t("secretTitle")}
          description={
            <>
              <p>{t("secretHint")}</p>
              <Typography.Text code copyable>
                {secret}
              </Typography.Text>
            </>
          }
        />
      )}
    </Modal>
  );
}
