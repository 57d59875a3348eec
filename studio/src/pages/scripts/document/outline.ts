import { isMap, isSeq, type Node } from "yaml";
import { endOf, endOfPair, mapAt, pairOf, pairsOf, type Parsed, startOf } from "./parse.ts";
import { lineEnd, lineOf, type Path } from "./text.ts";

export type Kind = "session" | "phase" | "step" | "action";

/** Session, phase, step or action of a script. */
export type OutlineNode = {
  readonly kind: Kind;
  readonly path: Path;
  /** Path in the notation of findings: `sessions[0].phases[1]`. */
  readonly id: string;
  readonly name: string;
  /** Type of an action. */
  readonly type: string | null;
  readonly line: number;
  readonly children: readonly OutlineNode[];
  /** Field that holds the children. */
  readonly list: string | null;
  /** True for the older flat layout, which is edited as text. */
  readonly flat: boolean;
};

type Level = { kind: Kind; lists: readonly string[]; names: readonly string[] };

const LEVELS: readonly Level[] = [
  { kind: "session", lists: ["sessions"], names: ["session", "session_name"] },
  { kind: "phase", lists: ["phases"], names: ["phase", "phase_name"] },
  { kind: "step", lists: ["steps", "topics"], names: ["topic", "topic_name"] },
  { kind: "action", lists: ["actions"], names: ["type", "action_type"] },
];

/** Field for new children of a kind. */
export const CHILD_LIST: Readonly<Record<Kind, string | null>> = {
  session: "phases",
  phase: "steps",
  step: "actions",
  action: null,
};

export const CHILD_KIND: Readonly<Record<Kind, Kind | null>> = {
  session: "phase",
  phase: "step",
  step: "action",
  action: null,
};

export const idOf = (path: Path): string =>
  path.reduce<string>(
    (id, step) => (typeof step === "number" ? `${id}[${step}]` : id === "" ? step : `${id}.${step}`),
    "",
  );

/** Parts of a script, from its sessions on. */
export function outlineOf(parsed: Parsed): OutlineNode[] {
  if (parsed.error !== null) return [];
  const root = parsed.document.contents;
  if (!isMap(root)) return [];
  const single = pairOf(root, "session")?.value;
  if (isMap(single)) {
    const inner = pairOf(single, "sessions") === undefined ? null : childrenOf(parsed, single, ["session"], 0);
    return inner?.children ?? [nodeOf(parsed, single, ["session"], 0)];
  }
  return childrenOf(parsed, root, [], 0)?.children ?? [];
}

function childrenOf(parsed: Parsed, map: Node, path: Path, level: number) {
  const { lists = [] } = LEVELS[level] ?? {};
  if (!isMap(map)) return null;
  const list = lists.find((key) => pairOf(map, key) !== undefined);
  const seq = list === undefined ? null : pairOf(map, list)?.value;
  if (list === undefined || !isSeq(seq)) return null;
  const children = seq.items.flatMap((item, index) =>
    isMap(item) ? [nodeOf(parsed, item, [...path, list, index], level)] : [],
  );
  return { list, children };
}

function nodeOf(parsed: Parsed, map: Node, path: Path, level: number): OutlineNode {
  const { kind, names } = LEVELS[level] ?? { kind: "action", names: [] };
  const values = isMap(map) ? names.map((key) => pairOf(map, key)?.value?.toJS(parsed.document) as unknown) : [];
  const name = values.find((value) => typeof value === "string" || typeof value === "number");
  const below = childrenOf(parsed, map, path, level + 1);
  const title = name === undefined ? "" : String(name);
  // Fields in `config` are read by the server, and written by no form.
  const older = [names[1] ?? "", ...(kind === "action" ? ["config"] : [])];
  const flat = isMap(map) && older.some((key) => pairOf(map, key) !== undefined);
  return {
    kind: kind,
    path,
    id: idOf(path),
    name: kind === "action" ? summaryOf(map, parsed) : title,
    type: kind === "action" ? title : null,
    line: lineOf(parsed.text, startOf(map)),
    children: below?.children ?? [],
    list: below?.list ?? CHILD_LIST[kind],
    flat,
  };
}

/** First words that an action says or asks. */
function summaryOf(map: Node, parsed: Parsed): string {
  if (!isMap(map)) return "";
  for (const key of ["content", "ai_say", "question", "prompt", "title", "skill", "src"]) {
    const value: unknown = pairOf(map, key)?.value?.toJS(parsed.document);
    if (typeof value === "string" && value.trim() !== "") return value.trim().split("\n")[0]?.slice(0, 80) ?? "";
  }
  // A form has its title within it.
  const form = pairOf(map, "form")?.value;
  return isMap(form) ? summaryOf(form, parsed) : "";
}

/** All parts, from top to bottom. */
export const flatten = (nodes: readonly OutlineNode[]): OutlineNode[] =>
  nodes.flatMap((node) => [node, ...flatten(node.children)]);

export const findNode = (nodes: readonly OutlineNode[], id: string): OutlineNode | null =>
  flatten(nodes).find((node) => node.id === id) ?? null;

/** Innermost part at a line of the text. */
export function nodeAtLine(parsed: Parsed, nodes: readonly OutlineNode[], line: number): OutlineNode | null {
  let found: OutlineNode | null = null;
  for (const node of flatten(nodes)) {
    const map = parsed.document.getIn([...node.path], true) as Node | undefined;
    if (map !== undefined && line >= node.line && line <= lineOf(parsed.text, endOf(map))) found = node;
  }
  return found;
}

/** Field of a part at a place of the text, counted from 1 in characters; null at the part itself. */
export function fieldAt(parsed: Parsed, node: OutlineNode, line: number, column: number): string | null {
  const map = mapAt(parsed, node.path);
  if (map === null) return null;
  const { text } = parsed;
  let from = 0;
  for (let at = 1; at < line && from < text.length; at += 1) from = lineEnd(text, from);
  const place = from + Array.from(text.slice(from, lineEnd(text, from))).slice(0, column - 1).join("").length;
  const pair = place === startOf(map) ? undefined : pairsOf(map).find((one) => startOf(one.key) <= place && place <= endOfPair(one));
  return pair === undefined ? null : String(pair.key.value);
}

/** List and index of a part. */
export function spotOf(node: OutlineNode): { path: Path; key: string; index: number } | null {
  const index = node.path.at(-1);
  const key = node.path.at(-2);
  if (typeof index !== "number" || typeof key !== "string") return null;
  return { path: node.path.slice(0, -2), key, index };
}
