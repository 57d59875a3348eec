import { DeleteOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { api } from "../../../api/client.ts";
import { imports } from "../../../i18n/texts/imports.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { useText } from "../../../i18n/useText.ts";

type RemoveProps = { kind: "cards" | "lorebooks"; id: string; name: string; onRemoved: () => void; text?: boolean };

/** Deletes a card or a book, after it was asked. */
export function RemoveImport({ kind, id, name, onRemoved, text = false }: RemoveProps) {
  const t = useText(imports);
  const shared = useText(prompts);
  const { modal, message } = App.useApp();

  function ask(): void {
    modal.confirm({
      title: t("removeTitle", { name }),
      content: t("removeText"),
      okText: shared("remove"),
      okButtonProps: { danger: true },
      cancelText: shared("cancel"),
      onOk: async () => {
        try {
          const path = { id };
          await (kind === "cards"
            ? api.remove("/api/v1/cards/{id}", { path })
            : api.remove("/api/v1/lorebooks/{id}", { path }));
          void message.success(shared("removed", { name }));
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
      {text ? shared("remove") : null}
    </Button>
  );
}
