import { Alert, Form, Modal } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { settings as texts } from "../../i18n/texts/settings.ts";
import { useText } from "../../i18n/useText.ts";
import { LimitFields, NameField } from "./KeyFields.tsx";

type Key = Schemas["Key"];
type Values = Pick<Key, "name"> & { requests_per_minute?: number | null; tokens_per_day?: number | null; aliases?: string[] };

/** Changes the name and the limits of a key; an empty limit means none. */
export function EditKey({ of, onClose }: { of: Key; onClose: (changed: boolean) => void }) {
  const t = useText(texts);
  const { line } = useProblemText();
  const [form] = Form.useForm<Values>();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);

  async function save({ name, requests_per_minute: requests, tokens_per_day: tokens, aliases = [] }: Values): Promise<void> {
    setBusy(true);
    setFailure(null);
    const body: Schemas["KeyChange"] = {
      name,
      requests_per_minute: requests ?? null,
      tokens_per_day: tokens ?? null,
      aliases: aliases.length === 0 ? null : aliases,
    };
    try {
      await api.patch("/api/v1/keys/{id}", body, { path: { id: of.id } });
      onClose(true);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      setFailure(line(error));
      setBusy(false);
    }
  }

  const { name, requests_per_minute: requests, tokens_per_day: tokens, aliases } = of;
  return (
    <Modal
      open
      title={t("changeKeyOf", { name })}
      okText={t("save")}
      cancelText={t("cancel")}
      confirmLoading={busy}
      onOk={() => form.submit()}
      onCancel={() => onClose(false)}
    >
      <Form<Values>
        form={form}
        layout="vertical"
        requiredMark={false}
        initialValues={{ name, requests_per_minute: requests, tokens_per_day: tokens, aliases }}
        onFinish={(values) => void save(values)}
      >
        <NameField />
        <LimitFields />
        {failure !== null && <Alert type="error" showIcon role="alert" title={failure} />}
      </Form>
    </Modal>
  );
}
