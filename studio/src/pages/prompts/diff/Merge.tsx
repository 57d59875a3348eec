import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { useDark } from "../../../app/preferences.ts";
import { themeOf } from "../../../components/editor/extensions.ts";
import { useLanguage } from "../../../i18n/useText.ts";
import styles from "./SideBySide.module.css";

export type MergeProps = { before: string; after: string; beforeLabel: string; afterLabel: string };

/** Two texts side by side, with differences marked. */
export function Merge({ before, after, beforeLabel, afterLabel }: MergeProps) {
  const place = useRef<HTMLDivElement>(null);
  const dark = useDark();
  const language = useLanguage();

  useEffect(() => {
    if (place.current === null) return undefined;
    const side = (label: string): Extension => [
      lineNumbers(),
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      EditorView.editable.of(false),
      themeOf(dark),
    ];
    const view = new MergeView({
      parent: place.current,
      a: { doc: before, extensions: side(beforeLabel) },
      b: { doc: after, extensions: side(afterLabel) },
      collapseUnchanged: { margin: 3, minSize: 8 },
      gutter: true,
    });
    return () => view.destroy();
  }, [before, after, beforeLabel, afterLabel, dark, language]);

  return <div ref={place} className={styles["merge"]} />;
}
