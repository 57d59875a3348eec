import { App } from "antd";
import { prompts } from "../../i18n/texts/prompts.ts";
import { useText } from "../../i18n/useText.ts";

/** Copies a text, and confirms it. */
export function useCopy(): (text: string) => Promise<void> {
  const t = useText(prompts);
  const { message } = App.useApp();
  return async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      void message.success(t("copied"));
    } catch {
      void message.error(t("copyFailed"));
    }
  };
}
