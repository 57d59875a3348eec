/** Change of a text: `insert` replaces the characters from `from` to `to`. */
export type Change = { readonly from: number; readonly to: number; readonly insert: string };

export type Path = readonly (string | number)[];

export const applyChange = (text: string, { from, to, insert }: Change): string =>
  text.slice(0, from) + insert + text.slice(to);

/** Line break that a text uses. */
export const breakOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n");

export const lineStart = (text: string, at: number): number => text.lastIndexOf("\n", at - 1) + 1;

/** Offset after the line break of an offset's line, or the end of the text. */
export function lineEnd(text: string, at: number): number {
  const found = text.indexOf("\n", at);
  return found < 0 ? text.length : found + 1;
}

export const columnOf = (text: string, at: number): number => at - lineStart(text, at);

/** Line of an offset, counted from 1. */
export function lineOf(text: string, at: number): number {
  let line = 1;
  for (let found = text.indexOf("\n"); found >= 0 && found < at; found = text.indexOf("\n", found + 1)) line += 1;
  return line;
}

/** Lines with another indentation; empty ones stay empty. Lines of spaces may be part of a text, and move with it. */
export function indentBy(lines: string, by: number): string {
  if (by === 0) return lines;
  const shift = (line: string) => {
    if (line === "" || line === "\r") return line;
    return by > 0 ? " ".repeat(by) + line : line.slice(Math.min(-by, /^ */.exec(line)?.[0].length ?? 0));
  };
  return lines.split("\n").map(shift).join("\n");
}
