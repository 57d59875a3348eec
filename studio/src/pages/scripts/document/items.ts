import { type Node, type YAMLSeq } from "yaml";
import { type FieldValue, inline, itemLines, setField } from "./fields.ts";
import { dashesOf, endOf, nodeAt, parse, seqAt, startOf } from "./parse.ts";
import { applyChange, breakOf, columnOf, indentBy, lineEnd, lineStart, type Path } from "./text.ts";

type Fields = Readonly<Record<string, FieldValue>>;

/** Inserts an item into the list in the field `key` of the map at `path`; the list is made if it is not there. */
export function insertItem(text: string, path: Path, key: string, index: number, item: Fields): string {
  const list = [...path, key];
  const seq = seqAt(parse(text), list);
  if (seq === null || seq.items.length === 0) return setField(text, path, key, [item]);
  const eol = breakOf(text);
  const dashes = dashesOf(seq);
  const [first = 0] = dashes;
  if (!inLines(text, seq)) {
    if (dashes.length > 0) return setField(text, path, key, inserted(seq.toJSON() as FieldValue[], index, item));
    const at = seq.items[index] as Node | undefined;
    if (at !== undefined) return applyChange(text, { from: startOf(at), to: startOf(at), insert: `${inline(item)}, ` });
    const end = endOf(seq.items.at(-1) as Node);
    return applyChange(text, { from: end, to: end, insert: `, ${inline(item)}` });
  }
  const column = columnOf(text, first);
  const lines = `${" ".repeat(column)}- ${itemLines(item, column + 2, eol)}`;
  return insertLines(text, seq, index, lines);
}

const inserted = (items: FieldValue[], index: number, item: FieldValue): FieldValue[] => items.toSpliced(index, 0, item);

/** Whether each item begins on a line of its own. */
function inLines(text: string, seq: YAMLSeq): boolean {
  const dashes = dashesOf(seq);
  return dashes.length > 0 && dashes.every((dash) => text.slice(lineStart(text, dash), dash).trim() === "");
}

function insertLines(text: string, seq: YAMLSeq, index: number, lines: string): string {
  const at = index < seq.items.length ? linesOf(text, seq, index).from : linesOf(text, seq, seq.items.length - 1).to;
  const eol = breakOf(text);
  const before = at > 0 && text[at - 1] !== "\n" ? eol : "";
  return applyChange(text, { from: at, to: at, insert: before + lines });
}

/** The lines of an item, with the comments directly above it; between two items all lines belong to the upper one. */
function linesOf(text: string, seq: YAMLSeq, index: number): { from: number; to: number } {
  const from = beginOf(text, seq, index);
  if (index + 1 < seq.items.length) return { from, to: beginOf(text, seq, index + 1) };
  const end = Math.max(endOf(seq.items[index] as Node), (dashesOf(seq)[index] ?? 0) + 1);
  return { from, to: text[end - 1] === "\n" ? end : lineEnd(text, end) };
}

function beginOf(text: string, seq: YAMLSeq, index: number): number {
  const dash = dashesOf(seq)[index] ?? 0;
  const column = columnOf(text, dash);
  const floor = index === 0 ? 0 : endOf(seq.items[index - 1] as Node);
  let from = lineStart(text, dash);
  while (from > floor) {
    const above = lineStart(text, from - 1);
    const line = text.slice(above, from);
    if (above < floor || !/^ *#/.test(line) || /^ */.exec(line)?.[0].length !== column) break;
    from = above;
  }
  return from;
}

/** Removes an item of the list in the field `key` of the map at `path`. */
export function removeItem(text: string, path: Path, key: string, index: number): string {
  const seq = seqAt(parse(text), [...path, key]);
  if (seq === null || index >= seq.items.length) return text;
  if (seq.items.length === 1) return setField(text, path, key, []);
  if (inLines(text, seq)) return applyChange(text, { ...linesOf(text, seq, index), insert: "" });
  if (dashesOf(seq).length > 0) return setField(text, path, key, (seq.toJSON() as FieldValue[]).toSpliced(index, 1));
  const item = seq.items[index] as Node;
  const next = seq.items[index + 1] as Node | undefined;
  if (next !== undefined) return applyChange(text, { from: startOf(item), to: startOf(next), insert: "" });
  return applyChange(text, { from: endOf(seq.items[index - 1] as Node), to: endOf(item), insert: "" });
}

/** The same item once more, behind itself. */
export function duplicateItem(text: string, path: Path, key: string, index: number): string {
  const seq = seqAt(parse(text), [...path, key]);
  const item = seq?.items[index] as Node | undefined;
  if (seq === null || item === undefined) return text;
  if (!inLines(text, seq)) {
    if (dashesOf(seq).length > 0) {
      const items = seq.toJSON() as FieldValue[];
      return setField(text, path, key, inserted(items, index, items[index] ?? null));
    }
    const source = text.slice(startOf(item), endOf(item));
    return applyChange(text, { from: endOf(item), to: endOf(item), insert: `, ${source}` });
  }
  const { from, to } = linesOf(text, seq, index);
  const lines = text.slice(from, to);
  const whole = lines.endsWith("\n") ? lines : lines + breakOf(text);
  return applyChange(text, { from, to: from, insert: whole });
}

export type Spot = { readonly path: Path; readonly key: string; readonly index: number };

/** Moves an item to a place of its own list, or of another: `to.index` counts as if it were gone from where it was. */
export function moveItem(text: string, from: Spot, to: Spot): string {
  const parsed = parse(text);
  const source = seqAt(parsed, [...from.path, from.key]);
  const target = seqAt(parsed, [...to.path, to.key]);
  const item = source?.items[from.index] as Node | undefined;
  if (source === null || item === undefined) return text;
  const same = samePath([...from.path, from.key], [...to.path, to.key]);
  if (same && from.index === to.index) return text;
  const value = item.toJS(parsed.document) as FieldValue;
  const lines = inLines(text, source);
  if (same && lines) return moveLines(text, source, from.index, to.index);
  if (same && dashesOf(source).length === 0) return moveInBrackets(text, source, from.index, to.index);
  // What comes behind the gap in the text is changed first, so that the paths stay those of `text`.
  const gone = (after: string) => removeItem(after, shifted(from, to), from.key, from.index);
  if (lines && target !== null && target.items.length > 0 && inLines(text, target)) {
    const block = linesOf(text, source, from.index);
    const by = columnOf(text, dashesOf(target)[0] ?? 0) - columnOf(text, dashesOf(source)[from.index] ?? 0);
    const cut = text.slice(block.from, block.to);
    const moved = indentBy(cut.endsWith("\n") ? cut : cut + breakOf(text), by);
    return gone(insertLines(text, target, to.index, moved));
  }
  if (nodeAt(parsed, to.path) === null) return text;
  return gone(insertItem(text, to.path, to.key, to.index, value as Fields));
}

/** The path of a spot after the other was changed: an insertion into an own ancestor's list would shift it. */
function shifted(from: Spot, to: Spot): Path {
  const list = [...to.path, to.key];
  const inside = from.path.length > list.length && samePath(from.path.slice(0, list.length), list);
  const at = from.path[list.length];
  if (!inside || typeof at !== "number" || at < to.index) return from.path;
  return [...list, at + 1, ...from.path.slice(list.length + 1)];
}

export const samePath = (a: Path, b: Path): boolean => a.length === b.length && a.every((step, at) => step === b[at]);

function moveLines(text: string, seq: YAMLSeq, from: number, to: number): string {
  const eol = breakOf(text);
  const blocks = seq.items.map((_, index) => linesOf(text, seq, index));
  const [first, last] = [Math.min(from, to), Math.max(from, to)];
  const begin = blocks[first]?.from ?? 0;
  const end = blocks[last]?.to ?? begin;
  const parts = blocks.slice(first, last + 1).map((block) => text.slice(block.from, block.to));
  const open = !(parts.at(-1) ?? "").endsWith("\n");
  const closed = parts.map((part) => (part.endsWith("\n") ? part : part + eol));
  const [moved = ""] = closed.splice(from - first, 1);
  const joined = closed.toSpliced(to - first, 0, moved).join("");
  return applyChange(text, { from: begin, to: end, insert: open ? joined.slice(0, -eol.length) : joined });
}

function moveInBrackets(text: string, seq: YAMLSeq, from: number, to: number): string {
  const places = (seq.items as Node[]).map((item) => [startOf(item), endOf(item)] as const);
  const sources = places.map(([start, end]) => text.slice(start, end));
  const [moved = ""] = sources.splice(from, 1);
  const ordered = sources.toSpliced(to, 0, moved);
  let changed = text;
  for (let index = places.length - 1; index >= 0; index -= 1) {
    const [start, end] = places[index] ?? [0, 0];
    changed = applyChange(changed, { from: start, to: end, insert: ordered[index] ?? "" });
  }
  return changed;
}
