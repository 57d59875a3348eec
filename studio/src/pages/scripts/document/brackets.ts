import { isMap, isPair, isSeq, type Node, type YAMLMap, type YAMLSeq } from "yaml";
import { colonOf, dashesOf, endOf, endOfPair, type KnownPair, nodeAt, pairAt, pairsOf, type Parsed, parse, seqAt, startOf } from "./parse.ts";
import { breakOf, columnOf, lineEnd, type Path } from "./text.ts";

type Collection = YAMLMap | YAMLSeq;

const isInBrackets = (node: unknown): node is Collection => (isMap(node) || isSeq(node)) && node.flow === true;

/** True if comments stand between the items of a list in brackets. */
export function hasComments(text: string, seq: YAMLSeq): boolean {
  return isInBrackets(seq) && gapsOf(text, seq).some((gap) => gap.includes("#"));
}

/** Entry between brackets, with the comments on lines above it and at the end of its own. */
type Entry = { readonly node: Node | KnownPair; readonly above: readonly string[]; readonly beside: string | null };

const placesOf = (node: Collection): (readonly [number, number])[] =>
  isMap(node)
    ? pairsOf(node).map((pair) => [startOf(pair.key), endOfPair(pair)])
    : (node.items as Node[]).map((item) => [startOf(item), endOf(item)]);

/** Texts before, between and after the entries. */
function gapsOf(text: string, node: Collection): string[] {
  const places = placesOf(node);
  const ends = [startOf(node), ...places.map(([, end]) => end)];
  return ends.map((end, at) => text.slice(end, places[at]?.[0] ?? endOf(node)));
}

/** Entries of a collection; null if more than commas and comments stands between them, such as an anchor. */
function entriesOf(text: string, node: Collection): { entries: Entry[]; below: readonly string[] } | null {
  const gaps = gapsOf(text, node);
  const nodes = isMap(node) ? pairsOf(node) : (node.items as Node[]);
  if (nodes.length !== node.items.length || !gaps.every((gap) => /^[\s[\]{},:]*$/.test(gap.replace(/#.*/g, "")))) return null;
  const comments = gaps.map((gap) => gap.split("\n").map((line) => /#[^\r]*/.exec(line)?.[0].trimEnd() ?? null));
  const further = (at: number) => (comments[at] ?? []).slice(at === 0 ? 0 : 1).filter((comment) => comment !== null);
  const entries = nodes.map((one, at) => ({ node: one, above: further(at), beside: comments[at + 1]?.[0] ?? null }));
  return { entries, below: further(nodes.length) };
}

/** Lines of a collection in brackets; inner collections only along the path. */
function linesOf(parsed: Parsed, node: Collection, path: Path, column: number): string[] | null {
  const found = entriesOf(parsed.text, node);
  if (found === null) return null;
  const margin = " ".repeat(column);
  const lines: string[] = [];
  for (const [at, entry] of found.entries.entries()) {
    const step = isPair(entry.node) ? String(entry.node.key.value) : at;
    const written = entryOf(parsed, entry, step === path[0] ? path.slice(1) : null, column);
    if (written === null) return null;
    lines.push(...entry.above.map((comment) => margin + comment), ...written);
  }
  // Deeper indentation keeps these comments with the last entry.
  return [...lines, ...found.below.map((comment) => `${margin}  ${comment}`)];
}

/** Lines of an entry; also those of its content if the path goes on. */
function entryOf(parsed: Parsed, { node, beside }: Entry, path: Path | null, column: number): string[] | null {
  const { text } = parsed;
  const pair = isPair(node) ? node : null;
  const value = isPair(node) ? node.value : node;
  const key = pair === null ? "-" : `${text.slice(startOf(pair.key), endOf(pair.key))}:`;
  if (key.includes("\n")) return null;
  const head = " ".repeat(column) + key;
  if (path === null || !isInBrackets(value) || value.items.length === 0) {
    const source = pair === null ? text.slice(startOf(node as Node), endOf(node as Node)) : sourceOfValue(text, pair);
    const [first = "", ...rest] = indented(source, column + 4);
    const lines = [`${head} ${first}`.trimEnd(), ...rest];
    return beside === null ? lines : [...lines.slice(0, -1), `${lines.at(-1) ?? ""} ${beside}`];
  }
  const within = linesOf(parsed, value, path, column + 2);
  if (within === null || (pair !== null && text.slice(colonOf(text, pair), startOf(value)).trim() !== "")) return null;
  const [first = "", ...rest] = within;
  if (beside !== null) return [`${head} ${beside}`, ...within];
  return pair === null ? [`${head} ${first.trimStart()}`, ...rest] : [head, ...within];
}

/** Value with any text before it, such as an anchor. */
function sourceOfValue(text: string, pair: KnownPair): string {
  const end = endOfPair(pair);
  return end === endOf(pair.key) ? "" : text.slice(colonOf(text, pair), end).trim();
}

/** Lines of a source between brackets, further ones at a column: their leading spaces mean nothing, if there are enough. */
export function indented(source: string, column: number): string[] {
  const [first = "", ...rest] = source.split(/\r?\n/);
  return [first, ...rest.map((line) => " ".repeat(column) + line.trimStart())];
}

/**
 * Puts the list in the field `key` of the map at `path`, and all that contains it, on lines of its own, so that comments have a
 * place; an empty list keeps its brackets. Null if more than commas and comments stands between the entries.
 */
export function withoutBrackets(text: string, path: Path, key: string): string | null {
  const parsed = parse(text);
  const whole = [...path, key];
  const depth = whole.findIndex((_, at) => isInBrackets(nodeAt(parsed, whole.slice(0, at))));
  const at = depth < 0 ? whole.length : depth;
  const node = nodeAt(parsed, whole.slice(0, at));
  if (!isInBrackets(node) || node.items.length === 0) return text;
  const around = whole.slice(0, at);
  const last = around.at(-1);
  const outer = around.slice(0, -1);
  const pair = typeof last === "string" ? pairAt(parsed, outer, last) : undefined;
  const list = typeof last === "number" ? seqAt(parsed, outer) : null;
  const dash = list === null ? undefined : dashesOf(list)[Number(last)];
  const column = pair !== undefined ? columnOf(text, startOf(pair.key)) + 2 : dash !== undefined ? columnOf(text, dash) + 2 : 0;
  const lines = linesOf(parsed, node, whole.slice(at), column);
  if (lines === null) return null;
  const eol = breakOf(text);
  const behind = lineEnd(text, endOf(node));
  const comment = text.slice(endOf(node), behind).trim();
  const before = text.slice(0, startOf(node)).replace(/[ \t]+$/, "");
  const rest = [...lines, ""].join(eol) + text.slice(behind);
  // The first line of an item follows its dash.
  if (dash !== undefined && before.length === dash + 1) {
    return comment === "" ? `${before} ${rest.trimStart()}` : `${before} ${comment}${eol}${rest}`;
  }
  if (before === "" || before.endsWith("\n")) return before + (comment === "" ? "" : " ".repeat(column) + comment + eol) + rest;
  return before + (comment === "" ? "" : ` ${comment}`) + eol + rest;
}
