import { useDeferredValue, useMemo } from "react";
import { common } from "../../i18n/texts/common.ts";
import { useText } from "../../i18n/useText.ts";
import { PART_LENGTH } from "../textParts.ts";
import { LongText } from "../LongText.tsx";
import styles from "./Markdown.module.css";
import { renderMarkdown } from "./render.ts";
import { SafeHtml } from "./SafeHtml.tsx";

/** Markdown of a reply, sanitised just before insertion. A text too long to format is shown as is. */
export function Markdown({ text, label }: { text: string; label?: string }) {
  const t = useText(common);
  // While text streams in, the last formatted version stays until the next is ready.
  const shown = useDeferredValue(text);
  const long = shown.length > PART_LENGTH;
  const html = useMemo(
    () => (long ? "" : renderMarkdown(shown, (alt) => t("foreignImage", { alt }))),
    [long, shown, t],
  );
  if (long) return <LongText text={shown} label={label ?? t("longText")} fileName="reply.md" />;
  return <SafeHtml html={html} className={styles["markdown"]} />;
}
