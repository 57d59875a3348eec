import { conversations } from "../../i18n/texts/conversations.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { type StatePoint } from "./points.ts";

/** Labels of moments of the state. */
export function usePointLabel(): (point: StatePoint | null) => string {
  const t = useText(conversations);
  const format = useFormat();
  return (point) => {
    if (point === null) return t("beginning");
    const words = point.words.trim().replace(/\s+/g, " ");
    const short = words.length > 60 ? `${words.slice(0, 60)}…` : words;
    const parts = [point.byHand ? t("byHand") : null, short === "" ? null : short, format.time(point.created)];
    return parts.filter((part) => part !== null).join(" · ");
  };
}
