import { App } from "antd";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";

/** Copies a text, and confirms it. */
export function useCopy(): (text: string) => Promise<void> {
  const t = useText(conversations);
  const { message } = App.useApp();
  return async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      void message.success(t("copied", { text: text.length > 80 ? `${text.slice(0, 80)}…` : text }));
    } catch {
      void message.error(t("copyFailed"));
    }
  };
}
