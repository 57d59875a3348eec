import { Form, Input, Modal, Select } from "antd";
import { useState } from "react";
import { useNavigate } from "react-router";
import { type Schemas } from "../../../api/types.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { templates } from "../../../i18n/texts/templates.ts";
import { useText } from "../../../i18n/useText.ts";

type NewProps = { known: readonly Schemas["Template"][]; onClose: () => void };

const BLANK = "";

/** Asks for the id of a new template. Nothing is written until it is saved. */
export function NewTemplate({ known, onClose }: NewProps) {
  const t = useText(templates);
  const shared = useText(prompts);
  const navigate = useNavigate();
  const [id, setId] = useState("");
  const [copyOf, setCopyOf] = useState(BLANK);
  const [tried, setTried] = useState(false);
  const name = id.trim();
  const taken = known.some(({ template_id: one }) => one === name);

  function open(): void {
    setTried(true);
    if (name === "") return;
    const query = taken ? "" : `?new=${encodeURIComponent(copyOf === BLANK ? "1" : copyOf)}`;
    void navigate(`/prompts/templates/${encodeURIComponent(name)}${query}`);
  }

  return (
    <Modal open title={t("create")} okText={t("open")} cancelText={shared("cancel")} onOk={open} onCancel={onClose}>
      <Form layout="vertical" onFinish={open}>
        <Form.Item
          label={t("id")}
          htmlFor="template-id"
          extra={t("createHint")}
          validateStatus={tried && name === "" ? "error" : taken ? "warning" : ""}
          help={tried && name === "" ? t("idRequired") : taken ? t("idTaken") : undefined}
        >
          <Input id="template-id" maxLength={200} value={id} onChange={({ target }) => setId(target.value)} />
        </Form.Item>
        <Form.Item label={t("copyOf")} htmlFor="template-copy">
          <Select
            id="template-copy"
            value={copyOf}
            options={[
              { value: BLANK, label: t("blank") },
              ...known.map(({ template_id: one }) => ({ value: one, label: one })),
            ]}
            onChange={setCopyOf}
          />
        </Form.Item>
      </Form>
    </Modal>
  );
}
