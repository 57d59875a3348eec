import { isScalar, isSeq, type Node, type YAMLSeq } from "yaml";
import { hasComments, indented, withoutBrackets } from "./brackets.ts";
import { type FieldValue, inline, itemLines, setField } from "./fields.ts";
import { colonOf, dashesOf, endOf, mapAt, pairAt, parse, type Parsed, seqAt, startOf } from "./parse.ts";
import { applyChange, breakOf, columnOf, indentBy, lineEnd, lineStart, type Path } from "./text.ts";

/** Inserts an item into the list in the field `key` of the map at `path`; creates the list if there is none. */
export function insertItem(text: string, path: Path, key: string, index: number, item: FieldValue): string {
  const parsed = parse(text);
  const seq = seqAt(parsed, [...path, key]);
  const linesAt = (column: number) => `${" ".repeat(column)}- ${itemLines(item, column + 2, breakOf(text))}`;
  if (seq === null || seq.items.length === 0) {
    return withLines(parsed, path, key, linesAt) ?? setField(text, path, key, [item]);
  }
  if (isInLines(text, seq)) return insertLines(text, seq, index, linesAt(columnOfList(text, seq)));
  return isInBrackets(seq) ? insertInBrackets(text, seq, index, inline(item)) : text;
}

/** True if each item begins on a line of its own. A list behind an explicit key does not: it is edited as text only. */
function isInLines(text: string, seq: YAMLSeq): boolean {
  const dashes = dashesOf(seq);
  return dashes.length > 0 && dashes.every((dash) => text.slice(lineStart(text, dash), dash).trim() === "");
}

const isInBrackets = (seq: YAMLSeq): boolean => seq.flow === true;

const columnOfList = (text: string, seq: YAMLSeq): number => columnOf(text, dashesOf(seq)[0] ?? 0);

function insertLines(text: string, seq: YAMLSeq, index: number, lines: string): string {
  const at = index < seq.items.length ? linesOf(text, seq, index).from : linesOf(text, seq, seq.items.length - 1).to;
  const before = at > 0 && text[at - 1] !== "\n" ? breakOf(text) : "";
  return applyChange(text, { from: at, to: at, insert: before + lines });
}

function insertInBrackets(text: string, seq: YAMLSeq, index: number, source: string): string {
  const at = seq.items[index] as Node | undefined;
  if (at !== undefined) return applyChange(text, { from: startOf(at), to: startOf(at), insert: `${source}, ` });
  const end = endOf(seq.items.at(-1) as Node);
  return applyChange(text, { from: end, to: end, insert: `, ${source}` });
}

/**
 * Fills an empty list with one item on lines of its own. The line of the field keeps its comment. Null if the field is absent, or
 * its map stands in brackets itself.
 */
function withLines(parsed: Parsed, path: Path, key: string, linesAt: (column: number) => string): string | null {
  const { text } = parsed;
  const pair = pairAt(parsed, path, key);
  if (pair === undefined || mapAt(parsed, path)?.flow === true) return null;
  const { value } = pair;
  const isList = isSeq(value) && isInBrackets(value);
  if (!isList && !isNothing(value)) return null;
  const colon = colonOf(text, pair);
  const [begin, end] = value === null ? [colon, colon] : [Math.max(colon, startOf(value)), Math.max(colon, endOf(value))];
  const eol = breakOf(text);
  const column = columnOf(text, startOf(pair.key)) + 2;
  const comments = text.slice(begin, end).match(/#[^\r\n]*/g) ?? [];
  const head = text.slice(0, begin).replace(/[ \t]+$/, "");
  const behind = text.slice(end);
  const line = behind.slice(0, lineEnd(behind, 0));
  const lines = [...comments.map((comment) => " ".repeat(column) + comment + eol), linesAt(column)];
  return [head, line, line.endsWith("\n") ? "" : eol, ...lines, behind.slice(line.length)].join("");
}

/** Lines of an item, with the comments directly above it; all other lines between two items belong to the upper one. */
function linesOf(text: string, seq: YAMLSeq, index: number): { from: number; to: number } {
  const from = beginOf(text, seq, index);
  if (index + 1 < seq.items.length) return { from, to: beginOf(text, seq, index + 1) };
  const dash = dashesOf(seq)[index] ?? 0;
  const end = Math.max(endOf(seq.items[index] as Node), dash + 1);
  let to = text[end - 1] === "\n" ? end : lineEnd(text, end);
  // Comments below the last item belong to it if they are indented further.
  for (let next = lineEnd(text, to); next > to; next = lineEnd(text, to)) {
    const indent = /^( *)#/.exec(text.slice(to, next))?.[1];
    if (indent === undefined || indent.length <= columnOf(text, dash)) break;
    to = next;
  }
  return { from, to };
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
  const parsed = parse(text);
  const seq = seqAt(parsed, [...path, key]);
  const item = seq?.items[index] as Node | undefined;
  if (seq === null || item === undefined) return text;
  if (isInLines(text, seq)) {
    const { from, to } = linesOf(text, seq, index);
    const pair = pairAt(parsed, path, key);
    if (seq.items.length > 1 || pair === undefined) return applyChange(text, { from, to, insert: "" });
    const colon = colonOf(text, pair);
    return `${text.slice(0, colon)} []${text.slice(colon, from)}${text.slice(to)}`;
  }
  if (!isInBrackets(seq)) return text;
  const inLines = hasComments(text, seq) ? withoutBrackets(text, path, key) : null;
  // Keeps the comments of neighbours.
  if (inLines !== null) return removeItem(inLines, path, key, index);
  const next = seq.items[index + 1] as Node | undefined;
  if (next !== undefined) return applyChange(text, { from: startOf(item), to: startOf(next), insert: "" });
  const before = seq.items[index - 1] as Node | undefined;
  if (before !== undefined) return applyChange(text, { from: endOf(before), to: endOf(item), insert: "" });
  const comma = /^\s*,/.exec(text.slice(endOf(item)))?.[0].length ?? 0;
  return applyChange(text, { from: startOf(item), to: endOf(item) + comma, insert: "" });
}

/** Duplicates an item, directly after it. */
export function duplicateItem(text: string, path: Path, key: string, index: number): string {
  const seq = seqAt(parse(text), [...path, key]);
  const item = seq?.items[index] as Node | undefined;
  if (seq === null || item === undefined) return text;
  if (isInBrackets(seq)) {
    const source = text.slice(startOf(item), endOf(item));
    return applyChange(text, { from: endOf(item), to: endOf(item), insert: `, ${source}` });
  }
  if (!isInLines(text, seq)) return text;
  const { from } = linesOf(text, seq, index);
  return applyChange(text, { from, to: from, insert: blockOf(text, seq, index, columnOfList(text, seq)) });
}

/** Item on lines of its own, with its comments and its style, its dash at a column. */
function blockOf(text: string, seq: YAMLSeq, index: number, column: number): string {
  const eol = breakOf(text);
  if (isInBrackets(seq)) {
    const item = seq.items[index] as Node;
    const [first = "", ...rest] = indented(text.slice(startOf(item), endOf(item)), column + 4);
    return [`${" ".repeat(column)}- ${first}`, ...rest, ""].join(eol);
  }
  const { from, to } = linesOf(text, seq, index);
  const lines = text.slice(from, to);
  return indentBy(lines.endsWith("\n") ? lines : lines + eol, column - columnOfList(text, seq));
}

/** Replaces the items `old` of a list by the items `next`; equal ones at its ends stay as written. */
export function writeItems(text: string, path: Path, key: string, old: readonly string[], next: readonly string[], itemAt: (at: number) => FieldValue): string {
  if (seqAt(parse(text), [...path, key]) === null) return setField(text, path, key, next.map((_, at) => itemAt(at)));
  const most = Math.min(old.length, next.length);
  let start = 0;
  while (start < most && old[start] === next[start]) start += 1;
  let end = 0;
  while (end < most - start && old.at(-1 - end) === next.at(-1 - end)) end += 1;
  let changed = text;
  // Insertions come first: a list that is empty in between would lose its style.
  for (let at = start; at < next.length - end; at += 1) changed = insertItem(changed, path, key, old.length - end + at - start, itemAt(at));
  for (let at = old.length - end - 1; at >= start; at -= 1) changed = removeItem(changed, path, key, at);
  return changed;
}

export type Spot = { readonly path: Path; readonly key: string; readonly index: number };

/** Moves an item within its list, or to another: `to.index` counts without the item. */
export function moveItem(text: string, from: Spot, to: Spot): string {
  const ready = withPlaces(text, from, to);
  if (ready === null) return text;
  const parsed = parse(ready);
  const source = seqAt(parsed, [...from.path, from.key]);
  if (source?.items[from.index] === undefined || mapAt(parsed, to.path) === null) return text;
  if (!isInLines(ready, source) && !isInBrackets(source)) return text;
  if (isSameList(from, to)) {
    if (from.index === to.index) return text;
    return isInBrackets(source) ? moveInBrackets(ready, source, from.index, to.index) : moveLines(ready, source, from.index, to.index);
  }
  const put = insertMoved(parsed, source, from, to);
  // The removed part is found again by its path, which an insertion above it would shift.
  return put === ready ? text : removeItem(put, shifted(from, to), from.key, from.index);
}

const isSameList = (from: Spot, to: Spot): boolean => samePath([...from.path, from.key], [...to.path, to.key]);

/**
 * Takes both lists of a move out of their brackets if the comments of an item would find no place there. Null if some text would be
 * lost: such a part is moved only in the text.
 */
function withPlaces(text: string, from: Spot, to: Spot): string | null {
  const source = seqAt(parse(text), [...from.path, from.key]);
  const out = source !== null && hasComments(text, source) ? withoutBrackets(text, from.path, from.key) : text;
  if (out === null || isSameList(from, to)) return out;
  const present = pairAt(parse(out), to.path, to.key);
  if (present !== undefined && !isSeq(present.value) && !isNothing(present.value)) return null;
  const wide = present === undefined ? setField(out, to.path, to.key, []) : out;
  const list = seqAt(parse(wide), [...from.path, from.key]);
  const isPlain = list?.items[from.index] === undefined || !isInLines(wide, list) || !blockOf(wide, list, from.index, 0).includes("#");
  return isPlain ? wide : withoutBrackets(wide, to.path, to.key);
}

const isNothing = (value: Node | null): boolean => value === null || (isScalar(value) && value.value === null);

/** Copies an item, as written, to a place of another list. */
function insertMoved(parsed: Parsed, source: YAMLSeq, from: Spot, to: Spot): string {
  const { text } = parsed;
  const item = source.items[from.index] as Node;
  const target = seqAt(parsed, [...to.path, to.key]);
  const linesAt = (column: number) => blockOf(text, source, from.index, column);
  const asValue = () => insertItem(text, to.path, to.key, to.index, item.toJS(parsed.document) as FieldValue);
  if (target === null || target.items.length === 0) return withLines(parsed, to.path, to.key, linesAt) ?? asValue();
  if (isInLines(text, target)) return insertLines(text, target, to.index, linesAt(columnOfList(text, target)));
  if (!isInBrackets(source)) return asValue();
  const lines = indented(text.slice(startOf(item), endOf(item)), columnOf(text, startOf(target)) + 2);
  return insertInBrackets(text, target, to.index, lines.join(breakOf(text)));
}

/** Path of a spot after a change of the other one, whose insertion into an ancestor's list would shift it. */
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
