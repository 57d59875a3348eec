import { api } from "../../api/client.ts";
import { RemoveButton } from "../../components/RemoveButton.tsx";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";

type RemoveProps = { id: string; name: string; onRemoved: () => void; text?: boolean };

/** Deletes a conversation after a confirmation. */
export function RemoveConversation({ id, name, onRemoved, text = false }: RemoveProps) {
  const t = useText(conversations);
  return (
    <RemoveButton
      label={t("removeNamed", { name })}
      text={text ? t("remove") : undefined}
      question={{ title: t("removeTitle"), content: t("removeText", { name }), ok: t("remove"), cancel: t("cancel") }}
      removed={t("removed")}
      remove={() => api.remove("/api/v1/conversations/{id}", { path: { id } })}
      onRemoved={onRemoved}
    />
  );
}
