import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useEffectEvent, useRef } from "react";
import { useDark } from "../../app/preferences.ts";
import { useLanguage } from "../../i18n/useText.ts";
import { type Diagnostic, marksOf } from "./diagnostics.ts";
import styles from "./Editor.module.css";
import { baseExtensions, type EditorLanguage, grammarOf, phrasesOf, themeOf } from "./extensions.ts";

/** Commands of a mounted editor. */
export type EditorHandle = {
  readonly view: EditorView;
  /** Moves the cursor to a place, counted from 1, and scrolls to it. */
  readonly goTo: (line: number, column?: number) => void;
};

export type EditorProps = {
  value: string;
  onChange?: (value: string) => void;
  label: string;
  language?: EditorLanguage;
  diagnostics?: readonly Diagnostic[];
  readOnly?: boolean;
  height?: number | string;
  /** Further extensions of CodeMirror; those of the first render are used. */
  extensions?: Extension;
  onReady?: (handle: EditorHandle) => void;
};

/** Text editor. Tab indents; Escape, then Tab leaves it. */
export function Editor(props: EditorProps) {
  const { value, label, language = "text", diagnostics = NONE, readOnly = false, height = 360 } = props;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const theme = useRef(new Compartment());
  const writable = useRef(new Compartment());
  const phrases = useRef(new Compartment());
  const dark = useDark();
  const userLanguage = useLanguage();
  const changed = useEffectEvent((text: string) => props.onChange?.(text));

  const make = useEffectEvent((parent: HTMLElement) => {
    const made = new EditorView({
      parent,
      state: EditorState.create({
        doc: value,
        extensions: [
          baseExtensions(),
          grammarOf(language),
          EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
          theme.current.of(themeOf(dark)),
          writable.current.of(EditorState.readOnly.of(readOnly)),
          phrases.current.of(phrasesOf(userLanguage)),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !update.transactions.some((one) => one.isUserEvent("set"))) {
              changed(update.state.doc.toString());
            }
          }),
          props.extensions ?? [],
        ],
      }),
    });
    props.onReady?.({ view: made, goTo: (line, column = 1) => goTo(made, line, column) });
    return made;
  });

  useEffect(() => {
    if (place.current === null) return undefined;
    const made = make(place.current);
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, [language, label]);

  useEffect(() => {
    const now = view.current;
    if (now === null || now.state.doc.toString() === value) return;
    now.dispatch({ changes: changeBetween(now.state.doc.toString(), value), userEvent: "set" });
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({ effects: theme.current.reconfigure(themeOf(dark)) });
  }, [dark]);

  useEffect(() => {
    view.current?.dispatch({ effects: writable.current.reconfigure(EditorState.readOnly.of(readOnly)) });
  }, [readOnly]);

  useEffect(() => {
    view.current?.dispatch({ effects: phrases.current.reconfigure(phrasesOf(userLanguage)) });
  }, [userLanguage]);

  useEffect(() => {
    const now = view.current;
    if (now !== null) now.dispatch(setDiagnostics(now.state, marksOf(now.state.doc, diagnostics)));
  }, [diagnostics, language, label]);

  return <div ref={place} className={styles["editor"]} style={{ height }} />;
}

const NONE: readonly Diagnostic[] = [];

function goTo(view: EditorView, line: number, column: number): void {
  const at = view.state.doc.line(Math.min(Math.max(1, line), view.state.doc.lines));
  const offset = Math.min(at.from + Array.from(at.text).slice(0, column - 1).join("").length, at.to);
  view.dispatch({ selection: { anchor: offset }, effects: EditorView.scrollIntoView(offset, { y: "center" }) });
  view.focus();
}

/** Smallest change from one text to the other, so that cursor and scroll position stay. */
function changeBetween(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
