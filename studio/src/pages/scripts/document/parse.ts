import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { columnOf, lineOf, type Path } from "./text.ts";

export type Parsed = {
  readonly text: string;
  readonly document: Document.Parsed;
  /** First place at which the text is no YAML. */
  readonly error: { readonly line: number; readonly column: number; readonly message: string } | null;
};

/** Parses a text; one that is no YAML has an error, and is edited as text. */
export function parse(text: string): Parsed {
  const document = parseDocument(text, { keepSourceTokens: true, prettyErrors: false, version: "1.2" });
  const [first] = document.errors;
  if (first === undefined) return { text, document, error: null };
  const [at] = first.pos;
  return {
    text,
    document,
    error: { line: lineOf(text, at), column: columnOf(text, at) + 1, message: first.message },
  };
}

/** Node at a path; keys are compared as texts. */
export function nodeAt({ document }: Parsed, path: Path): Node | null {
  let node: unknown = document.contents;
  for (const step of path) {
    if (isMap(node)) node = pairOf(node, String(step))?.value;
    else if (isSeq(node) && typeof step === "number") node = node.items[step];
    else return null;
  }
  return isMap(node) || isSeq(node) || isScalar(node) ? node : null;
}

export const mapAt = (parsed: Parsed, path: Path): YAMLMap | null => {
  const node = nodeAt(parsed, path);
  return isMap(node) ? node : null;
};

export const seqAt = (parsed: Parsed, path: Path): YAMLSeq | null => {
  const node = nodeAt(parsed, path);
  return isSeq(node) ? node : null;
};

export type KnownPair = Pair<Scalar, Node | null>;

const keyOf = (pair: Pair): string | null => (isScalar(pair.key) ? String(pair.key.value) : null);

export const pairOf = (map: YAMLMap, key: string): KnownPair | undefined =>
  map.items.find((pair) => keyOf(pair) === key) as KnownPair | undefined;

export function pairAt(parsed: Parsed, path: Path, key: string): KnownPair | undefined {
  const map = mapAt(parsed, path);
  return map === null ? undefined : pairOf(map, key);
}

/** Offset behind the colon of a field. */
export const colonOf = (text: string, pair: KnownPair): number => text.indexOf(":", pair.key.range?.[1] ?? 0) + 1;

export const pairsOf = (map: YAMLMap): KnownPair[] => map.items.filter((pair) => isScalar(pair.key)) as KnownPair[];

/** Plain value at a path; null if there is none. */
export function valueAt(parsed: Parsed, path: Path): unknown {
  return nodeAt(parsed, path)?.toJS(parsed.document) ?? null;
}

export const startOf = (node: Node): number => node.range?.[0] ?? 0;

/** End of a node itself: after its last character, or after the last line of a block text. */
export function endOf(node: Node): number {
  if (isMap(node) && node.flow !== true) {
    const pair = pairsOf(node).at(-1);
    if (pair !== undefined) return endOfPair(pair);
  }
  if (isSeq(node) && node.flow !== true) {
    const item = node.items.at(-1) as Node | undefined;
    if (item !== undefined) return Math.max(endOf(item), dashesOf(node).at(-1) ?? 0);
  }
  return node.range?.[1] ?? 0;
}

export function endOfPair(pair: KnownPair): number {
  const key = pair.key.range?.[1] ?? 0;
  return pair.value === null ? key : Math.max(key, endOf(pair.value));
}

/** Offsets of the dashes of a list in lines. */
export function dashesOf(seq: YAMLSeq): number[] {
  const token = seq.srcToken;
  if (token?.type !== "block-seq") return [];
  return token.items.flatMap(({ start }) => {
    const dash = start.find(({ type }) => type === "seq-item-ind");
    return dash === undefined ? [] : [dash.offset];
  });
}
