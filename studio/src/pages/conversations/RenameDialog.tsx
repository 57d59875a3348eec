import { App, Form, Input, Modal } from "antd";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { useProblemText } from "../../components/useProblemText.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";

type RenameProps = {
  conversation: Schemas["Conversation"];
  onClose: () => void;
  onRenamed: (conversation: Schemas["Conversation"]) => void;
};

export function RenameDialog({ conversation, onClose, onRenamed }: RenameProps) {
  const t = useText(conversations);
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const [title, setTitle] = useState(conversation.title ?? "");
  const [busy, setBusy] = useState(false);

  async function save(): Promise<void> {
    setBusy(true);
    try {
      const { data } = await api.patch(
        "/api/v1/conversations/{id}",
        { title: title.trim() === "" ? null : title.trim() },
        { path: { id: conversation.conversation_id } },
      );
      onRenamed({ ...conversation, title: data.title });
      void message.success(t("renamed"));
      onClose();
    } catch (error) {
      void message.error(lineOf(error));
      setBusy(false);
    }
  }

  return (
    <Modal
      open
      title={t("rename")}
      okText={t("save")}
      cancelText={t("cancel")}
      confirmLoading={busy}
      onOk={() => void save()}
      onCancel={onClose}
    >
      <Form layout="vertical" onFinish={() => void save()}>
        <Form.Item label={t("title")} htmlFor="conversation-title">
          <Input
            id="conversation-title"
            maxLength={500}
            value={title}
            onChange={({ target }) => setTitle(target.value)}
          />
        </Form.Item>
      </Form>
    </Modal>
  );
}
