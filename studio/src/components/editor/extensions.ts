import { closeBrackets } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { markdown } from "@codemirror/lang-markdown";
import { yaml } from "@codemirror/lang-yaml";
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type Language } from "../../i18n/language.ts";
import { editor } from "../../i18n/texts/editor.ts";

export type EditorLanguage = "yaml" | "json" | "markdown" | "text";

/** Extensions of every editor. */
export function baseExtensions(): Extension {
  return [
    lineNumbers(),
    foldGutter(),
    lintGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("  "),
    EditorState.tabSize.of(2),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    search({ top: true }),
    syntaxHighlighting(colours),
    EditorView.lineWrapping,
    keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, ...searchKeymap, ...lintKeymap, indentWithTab]),
  ];
}

export function grammarOf(language: EditorLanguage): Extension {
  switch (language) {
    case "yaml":
      return yaml();
    case "json":
      return json();
    case "markdown":
      return markdown();
    case "text":
      return [];
  }
}

/** Translations of CodeMirror's own phrases. */
export function phrasesOf(language: Language): Extension {
  return EditorState.phrases.of(Object.fromEntries(Object.values(editor).map((text) => [text.en, text[language]])));
}

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--plot-5)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--plot-1)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--plot-3)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.heading, fontWeight: "bold" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strong, fontWeight: "bold" },
  { tag: [tags.link, tags.url], color: "var(--accent)" },
  { tag: tags.invalid, color: "var(--danger)" },
]);

export function themeOf(dark: boolean): Extension {
  return EditorView.theme(
    {
      "&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "13px" },
      ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
      ".cm-content": { caretColor: "var(--text)" },
      ".cm-cursor": { borderLeftColor: "var(--text)" },
      ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--muted)", borderRight: "1px solid var(--border)" },
      ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: dark ? "#ffffff0a" : "#0000000a" },
      "&.cm-focused": { outline: "2px solid var(--accent)" },
      "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
        backgroundColor: dark ? "#2f5f59" : "#bfe3de",
      },
      ".cm-searchMatch": { backgroundColor: dark ? "#6b5b00" : "#ffe27a", outline: "1px solid var(--warning)" },
      ".cm-searchMatch-selected": { backgroundColor: dark ? "#a35200" : "#ffb454" },
      ".cm-selectionMatch": { backgroundColor: dark ? "#4d4a1f" : "#fff0b3" },
      ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
      ".cm-tooltip": { backgroundColor: "var(--surface)", border: "1px solid var(--border)", color: "var(--text)" },
      ".cm-foldPlaceholder": { backgroundColor: "var(--raised)", color: "var(--muted)", border: "none" },
    },
    { dark },
  );
}
