import { api } from "../../../api/client.ts";
import { RemoveButton } from "../../../components/RemoveButton.tsx";
import { imports } from "../../../i18n/texts/imports.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { useText } from "../../../i18n/useText.ts";

type RemoveProps = { kind: "cards" | "lorebooks"; id: string; name: string; onRemoved: () => void; text?: boolean };

/** Deletes a card or a book after a confirmation. */
export function RemoveImport({ kind, id, name, onRemoved, text = false }: RemoveProps) {
  const t = useText(imports);
  const shared = useText(prompts);
  const path = { id };
  return (
    <RemoveButton
      label={t("removeNamed", { name })}
      text={text ? shared("remove") : undefined}
      question={{
        title: t("removeTitle", { name }),
        content: t("removeText"),
        ok: shared("remove"),
        cancel: shared("cancel"),
      }}
      removed={shared("removed", { name })}
      remove={() =>
        kind === "cards" ? api.remove("/api/v1/cards/{id}", { path }) : api.remove("/api/v1/lorebooks/{id}", { path })
      }
      onRemoved={onRemoved}
    />
  );
}
