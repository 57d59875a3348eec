import { type Finding } from "../../api/types.ts";
import { ByteIndex } from "./bytes.ts";

/** Displayed line of a text; a long line has several. */
export type Line = { readonly start: number; readonly end: number; readonly number: number; readonly first: boolean };

/** Most characters of a displayed line; longer ones are broken. */
const LONGEST = 400;

/** Lines of a text or of a part of it, without line ends; `first` is the number of the first one. */
export function linesOf(text: string, from = 0, to = text.length, first = 1): Line[] {
  const lines: Line[] = [];
  // Text after the last line end of a part belongs to the next part.
  const last = to < text.length && text[to - 1] === "\n" ? to - 1 : to;
  let start = from;
  let number = first;
  for (;;) {
    const found = text.indexOf("\n", start);
    const end = found === -1 || found > last ? last : found;
    let at = start;
    do {
      let next = Math.min(end, at + LONGEST);
      if (next < end && /[\uDC00-\uDFFF]/.test(text.charAt(next))) next += 1;
      lines.push({ start: at, end: next, number, first: at === start });
      at = next;
    } while (at < end);
    if (end === last) return lines;
    start = end + 1;
    number += 1;
  }
}

/** Numbers of the lines of places in a text. */
export function numbersAt(text: string, places: readonly number[]): number[] {
  let number = 1;
  let at = 0;
  return places.map((place) => {
    for (let found = text.indexOf("\n", at); found !== -1 && found < place; found = text.indexOf("\n", at)) {
      number += 1;
      at = found + 1;
    }
    return number;
  });
}

/** Index of the part that holds a place, given the starts of the parts. */
export const partAt = (starts: readonly number[], place: number): number => Math.max(0, starts.findLastIndex((start) => start <= place));

/** Line of an offset. */
export function lineAt(lines: readonly Line[], offset: number): number {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((lines[middle]?.start ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Place of a finding in a text. */
export type Mark = { readonly start: number; readonly end: number; readonly finding: number };

/** Places of findings in a text; a finding between characters takes the next one. */
export function marksOf(text: string, findings: readonly Finding[]): Mark[] {
  const index = new ByteIndex(text);
  return findings
    .map(({ span }, finding) => {
      const start = Math.min(index.unitAt(span.start), Math.max(0, text.length - 1));
      return { start, end: Math.min(text.length, Math.max(start + 1, index.unitAt(span.end))), finding };
    })
    .sort((one, other) => one.start - other.start || other.end - one.end);
}

export type Segment = { readonly text: string; readonly marks: readonly number[] };

/** Splits a line at the ends of marks. Each piece has its findings, the narrowest last. */
export function segmentsOf(text: string, line: Line, marks: readonly Mark[]): Segment[] {
  const here = marks.filter((mark) => mark.start < line.end && mark.end > line.start);
  // A mark on the line end is shown after the last character.
  const atEnd = marks.filter((mark) => mark.start === line.end && mark.end === line.end + 1);
  const cuts = new Set([line.start, line.end]);
  for (const { start, end } of here) {
    cuts.add(Math.max(start, line.start));
    cuts.add(Math.min(end, line.end));
  }
  const places = [...cuts].sort((one, other) => one - other);
  const segments = places.slice(0, -1).map((start, place): Segment => {
    const end = places[place + 1] ?? start;
    const over = here.filter((mark) => mark.start <= start && mark.end >= end);
    over.sort((one, other) => other.end - other.start - (one.end - one.start));
    return { text: text.slice(start, end), marks: over.map(({ finding }) => finding) };
  });
  if (atEnd.length > 0) segments.push({ text: "⏎", marks: atEnd.map(({ finding }) => finding) });
  return segments;
}
