import { DeleteOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { api } from "../../api/client.ts";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";

type RemoveProps = { id: string; name: string; onRemoved: () => void; text?: boolean };

/** Deletes a conversation, after it was asked. */
export function RemoveButton({ id, name, onRemoved, text = false }: RemoveProps) {
  const t = useText(conversations);
  const { modal, message } = App.useApp();

  function ask(): void {
    modal.confirm({
      title: t("removeTitle"),
      content: t("removeText", { name }),
      okText: t("remove"),
      okButtonProps: { danger: true },
      cancelText: t("cancel"),
      onOk: async () => {
        try {
          await api.remove("/api/v1/conversations/{id}", { path: { id } });
          void message.success(t("removed"));
          onRemoved();
        } catch (error) {
          void message.error(error instanceof Error ? error.message : String(error));
        }
      },
    });
  }

  return (
    <Button
      type={text ? "default" : "text"}
      danger={text}
      icon={<DeleteOutlined />}
      aria-label={t("removeNamed", { name })}
      onClick={ask}
    >
      {text ? t("remove") : null}
    </Button>
  );
}
