import { type Diagnostic as Mark } from "@codemirror/lint";
import { type Text } from "@codemirror/state";

/** Finding at a place of a text, counted from 1 in Unicode characters, as the server reports it. */
export type Diagnostic = {
  line: number;
  column?: number | null | undefined;
  endLine?: number | undefined;
  endColumn?: number | undefined;
  severity: "error" | "warning" | "info";
  message: string;
  code?: string | undefined;
};

/** Offset of a place; a place outside the text is clamped. */
function offsetOf(text: Text, line: number, column: number): number {
  const at = text.line(Math.min(Math.max(1, line), text.lines));
  // Columns count characters; offsets count UTF-16 units.
  const before = Array.from(at.text).slice(0, Math.max(0, column - 1)).join("");
  return at.from + before.length;
}

/** Diagnostics for the editor: at least one character wide, where the line has one. */
export function marksOf(text: Text, diagnostics: readonly Diagnostic[]): Mark[] {
  const marks = diagnostics.map(({ line, column, endLine, endColumn, severity, message, code }): Mark => {
    const from = offsetOf(text, line, column ?? 1);
    const end = text.lineAt(from).to;
    const to =
      endLine !== undefined || endColumn !== undefined
        ? offsetOf(text, endLine ?? line, endColumn ?? 1)
        : column === undefined || column === null
          ? end
          : wordEnd(text, from, end);
    return { from, to: Math.max(to, Math.min(from + 1, end)), severity, message, ...(code ? { source: code } : {}) };
  });
  return marks.sort((a, b) => a.from - b.from || a.to - b.to);
}

function wordEnd(text: Text, from: number, end: number): number {
  const word = /^[\p{L}\p{N}_.-]+/u.exec(text.sliceString(from, end));
  return from + (word?.[0].length ?? 1);
}
