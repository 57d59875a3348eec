import { isMap, isScalar, type Node, type YAMLMap } from "yaml";
import { colonOf, endOf, endOfPair, type KnownPair, mapAt, pairAt, pairOf, pairsOf, type Parsed, parse, startOf } from "./parse.ts";
import { quoted, type Value, written } from "./scalar.ts";
import { applyChange, breakOf, type Change, columnOf, lineEnd, lineStart, type Path } from "./text.ts";

/** Value of a field: a single one, a list, or fields of its own. */
export type FieldValue = Value | readonly FieldValue[] | { readonly [key: string]: FieldValue };

/** Sets a field of the map at a path; a new one is inserted after the last present key of `after`, or at the end. */
export function setField(
  text: string,
  path: Path,
  key: string,
  value: FieldValue,
  after: readonly string[] = [],
): string {
  const parsed = parse(text);
  const map = mapAt(parsed, path);
  if (map === null) return text;
  const pair = pairOf(map, key);
  if (pair !== undefined && isWritten(pair.value, value)) return text;
  const change = pair === undefined ? newField(parsed, map, key, value, after) : changedField(parsed, map, pair, value);
  return applyChange(text, change);
}

/** True if a field already has a value, however it is written. */
const isWritten = (node: Node | null, value: FieldValue): boolean => (isScalar(node) ? node.value === value : node === null && value === null);

/** Changes the value of an existing field: only its own characters. */
function changedField({ text }: Parsed, map: YAMLMap, pair: KnownPair, value: FieldValue): Change {
  const { value: node } = pair;
  const eol = breakOf(text);
  const column = columnOfKey(text, pair);
  const from = node === null ? keyEnd(pair) : startOf(node);
  const to = node === null ? from : endOf(node);
  const present = text.slice(from, to);
  const isBlockText = present.endsWith("\n");
  const behind = isBlockText ? "" : text.slice(to, lineEnd(text, to)).trim();
  const style = isScalar(node) ? (node).type : null;
  const context = { indent: column + 2, flow: map.flow === true, style, lines: behind === "", eol };
  if (isBlockText && typeof value === "string" && style !== "PLAIN") {
    const indent = /^[^\n]*\n(?:[ \t]*\r?\n)*( *)/.exec(present)?.[1]?.length ?? context.indent;
    context.indent = /^[|>][-+]?[1-9]/.test(present) ? column + 2 : Math.max(indent, column + 1);
  }
  let insert = isPrimitive(value) ? written(value, context) : structure(value, column, map.flow === true, eol);
  if (insert.endsWith("\n") && !isBlockText) insert = trimBreak(insert, text.slice(to));
  if (isBlockText && !insert.endsWith("\n")) insert += eol;
  // A collection in lines begins behind its key.
  if (!isPrimitive(value) && insert.startsWith(eol)) {
    const begin = colonOf(text, pair);
    return { from: begin, to, insert };
  }
  if (isMapInLines(node) || isSeqInLines(present, node)) {
    return { from: colonOf(text, pair), to, insert: ` ${insert}` };
  }
  const space = from > 0 && /[\s[{,]/.test(text[from - 1] ?? "") ? "" : " ";
  return { from, to, insert: space + insert };
}

const isMapInLines = (node: unknown) => isMap(node) && node.flow !== true;
const isSeqInLines = (present: string, node: unknown) => !isScalar(node) && /^-\s/.test(present);

/** Drops the final line break of a block text if one follows the old value. */
function trimBreak(insert: string, behind: string): string {
  return /^[ \t]*\r?\n/.test(behind) ? insert.replace(/\r?\n$/, "") : insert;
}

function newField({ text }: Parsed, map: YAMLMap, key: string, value: FieldValue, after: readonly string[]): Change {
  const eol = breakOf(text);
  const pairs = pairsOf(map);
  const behind = pairs.findLast((pair) => after.includes(String(pair.key.value))) ?? pairs.at(-1);
  if (map.flow === true || behind === undefined) {
    const insert = `${written(key, { indent: 0, flow: true, lines: false, eol })}: ${inline(value)}`;
    if (behind === undefined) return { from: startOf(map) + 1, to: startOf(map) + 1, insert };
    const at = endOfPair(behind);
    return { from: at, to: at, insert: `, ${insert}` };
  }
  const column = columnOfKey(text, behind);
  const lines = fieldInLines(key, value, column, eol);
  const end = endOfPair(behind);
  const at = end > 0 && text[end - 1] === "\n" ? end : lineEnd(text, end);
  const first = at > 0 && text[at - 1] !== "\n" ? eol : "";
  return { from: at, to: at, insert: first + lines };
}

/** Field on lines of its own. */
export function fieldInLines(key: string, value: FieldValue, column: number, eol: string): string {
  const name = written(key, { indent: 0, flow: true, lines: false, eol });
  const start = `${" ".repeat(column)}${name}:`;
  if (!isPrimitive(value)) {
    const inner = structure(value, column, false, eol);
    return `${start}${inner.startsWith(eol) ? inner : ` ${inner}`}${inner.endsWith("\n") ? "" : eol}`;
  }
  const one = written(value, { indent: column + 2, flow: false, lines: true, eol });
  return `${start} ${one}${one.endsWith("\n") ? "" : eol}`;
}

/** Removes a field with its line; between brackets, with its comma. */
export function removeField(text: string, path: Path, key: string): string {
  const parsed = parse(text);
  const map = mapAt(parsed, path);
  const pair = pairAt(parsed, path, key);
  if (map === null || pair === undefined) return text;
  const pairs = pairsOf(map);
  const index = pairs.indexOf(pair);
  const [start, end] = [startOf(pair.key), endOfPair(pair)];
  const next = pairs[index + 1];
  const before = pairs[index - 1];
  if (map.flow === true) {
    if (next !== undefined) return applyChange(text, { from: start, to: startOf(next.key), insert: "" });
    return applyChange(text, { from: before === undefined ? start : endOfPair(before), to: end, insert: "" });
  }
  const ownLine = text.slice(lineStart(text, start), start).trim() === "";
  const closed = text[end - 1] === "\n";
  if (pairs.length === 1) return applyChange(text, { from: start, to: end, insert: closed ? `{}${breakOf(text)}` : "{}" });
  const to = closed ? end : lineEnd(text, end);
  if (!ownLine && next !== undefined) {
    const between = text.slice(to, lineStart(text, startOf(next.key)));
    if (between.trim() === "") return applyChange(text, { from: start, to: startOf(next.key), insert: "" });
    // Comments above the next field stay below the dash.
    const dash = text.slice(0, start).trimEnd().length;
    return applyChange(text, { from: dash, to, insert: breakOf(text) });
  }
  return applyChange(text, { from: lineStart(text, start), to, insert: "" });
}

/** Renames the key of a field; its value stays unchanged. */
export function renameField(text: string, path: Path, key: string, name: string): string {
  const pair = pairAt(parse(text), path, key);
  if (pair === undefined) return text;
  return applyChange(text, { from: startOf(pair.key), to: keyEnd(pair), insert: written(name, { indent: 0, flow: true, lines: false, eol: "\n" }) });
}

const keyEnd = (pair: KnownPair): number => pair.key.range?.[1] ?? 0;

const columnOfKey = (text: string, pair: KnownPair): number => columnOf(text, startOf(pair.key));

const isPrimitive = (value: FieldValue): value is Value => value === null || typeof value !== "object";

/** Lists and fields below a key, in lines; in brackets if they are empty, or inside brackets. */
function structure(value: Exclude<FieldValue, Value>, column: number, flow: boolean, eol: string): string {
  if (flow) return inline(value);
  if (Array.isArray(value)) {
    const items = value as readonly FieldValue[];
    if (items.length === 0) return "[]";
    return eol + items.map((item) => `${" ".repeat(column + 2)}- ${inItem(item, column + 4, eol)}`).join(eol);
  }
  const entries = Object.entries(value as Record<string, FieldValue>);
  if (entries.length === 0) return "{}";
  const lines = entries.map(([key, one]) => fieldInLines(key, one, column + 2, eol)).join("");
  return eol + lines.replace(/\r?\n$/, "");
}

function inItem(item: FieldValue, column: number, eol: string): string {
  if (isPrimitive(item)) {
    return written(item, { indent: column, flow: false, lines: false, eol });
  }
  if (Array.isArray(item) || Object.keys(item).length === 0) return inline(item);
  return itemLines(item, column, eol).replace(/\r?\n$/, "");
}

/** Item of a list after its dash: a single value, or fields on lines of their own. */
export function itemLines(item: FieldValue, column: number, eol: string): string {
  if (isPrimitive(item) || Array.isArray(item) || Object.keys(item).length === 0) return inItem(item, column, eol) + eol;
  const lines = Object.entries(item as Readonly<Record<string, FieldValue>>).map(([key, value]) => fieldInLines(key, value, column, eol));
  return lines.join("").trimStart();
}

/** Value in brackets, on one line. */
export function inline(value: FieldValue): string {
  if (isPrimitive(value)) return written(value, { indent: 0, flow: true, lines: false, eol: "\n" });
  if (Array.isArray(value)) return `[${(value as readonly FieldValue[]).map(inline).join(", ")}]`;
  const fields = Object.entries(value as Record<string, FieldValue>);
  return `{${fields.map(([key, one]) => `${/^\w+$/.test(key) ? key : quoted(key)}: ${inline(one)}`).join(", ")}}`;
}
