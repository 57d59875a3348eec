import { commonLines } from "../merge/lines.ts";
import { type Spot } from "./items.ts";
import { flatten, idOf, type Kind, type OutlineNode, outlineOf } from "./outline.ts";
import { endOf, nodeAt, type Parsed, startOf } from "./parse.ts";
import { columnOf, indentBy } from "./text.ts";

/** Path of a part after an edit, from its path before; null if the part is gone. */
export type Follow = (id: string) => string | null;

/** Edit inside a part, which moves no part. */
export const unmoved: Follow = (id) => id;

const listOf = ({ path, key }: Pick<Spot, "path" | "key">): string => idOf([...path, key]);

/** Index in a list of a part, or of its ancestor there, and the rest of its path. */
function placeIn(list: string, id: string): { index: number; rest: string } | null {
  const [, index, rest = ""] = (id.startsWith(`${list}[`) ? /^\[(\d+)\](.*)$/.exec(id.slice(list.length)) : null) ?? [];
  return index === undefined ? null : { index: Number(index), rest };
}

export function afterInsertion({ index, ...place }: Spot): Follow {
  const list = listOf(place);
  return (id) => {
    const found = placeIn(list, id);
    return found === null || found.index < index ? id : `${list}[${found.index + 1}]${found.rest}`;
  };
}

export function afterRemoval({ index, ...place }: Spot): Follow {
  return withoutItem(listOf(place), index);
}

function withoutItem(list: string, index: number): Follow {
  return (id) => {
    const found = placeIn(list, id);
    if (found === null || found.index < index) return id;
    return found.index === index ? null : `${list}[${found.index - 1}]${found.rest}`;
  };
}

/** Follows `moveItem`: an insertion, then a removal; in its own list the other way round. */
export function afterMove(from: Spot, to: Spot): Follow {
  const own = `${listOf(from)}[${from.index}]`;
  const moved = (id: string, place: string | null) => (place === null ? null : place + id.slice(own.length));
  const isOwn = (id: string) => id === own || id.startsWith(`${own}.`);
  const put = afterInsertion(to);
  if (listOf(from) === listOf(to)) {
    const taken = afterRemoval(from);
    return (id) => (isOwn(id) ? moved(id, `${listOf(to)}[${to.index}]`) : put(taken(id) ?? id));
  }
  const [, list = "", index = ""] = /^(.*)\[(\d+)\]$/.exec(put(own) ?? own) ?? [];
  const taken = withoutItem(list, Number(index));
  return (id) => (isOwn(id) ? moved(id, taken(`${listOf(to)}[${to.index}]`)) : taken(put(id) ?? id));
}

const KINDS: readonly Kind[] = ["session", "phase", "step", "action"];

/** Follows parts from one text to another: by their content, and by their order if that has changed. */
export function followText(before: Parsed, after: Parsed): Follow {
  const places = new Map<string, string>();
  const [old, now] = [flatten(outlineOf(before)), flatten(outlineOf(after))];
  for (const kind of KINDS) {
    const of = (parsed: Parsed, nodes: readonly OutlineNode[]) =>
      nodes.filter((node) => node.kind === kind).map((node) => ({ id: node.id, source: sourceOf(parsed, node) }));
    match(of(before, old), of(after, now), places);
  }
  return (id) => places.get(id) ?? null;
}

type Source = { readonly id: string; readonly source: string };

function match(old: readonly Source[], now: readonly Source[], places: Map<string, string>): void {
  const equal = commonLines(old.map(({ source }) => source), now.map(({ source }) => source));
  const [lost, found]: [Source[], Source[]] = [[], []];
  let [o, n] = [0, 0];
  for (const [x, y] of [...equal, [old.length, now.length] as const]) {
    const [gone, came] = [old.slice(o, x), now.slice(n, y)];
    // Parts between two equal ones were edited if there are as many as before.
    if (gone.length === came.length) gone.forEach(({ id }, at) => places.set(id, came[at]?.id ?? id));
    else {
      lost.push(...gone);
      found.push(...came);
    }
    const [same, place] = [old[x], now[y]];
    if (same !== undefined && place !== undefined) places.set(same.id, place.id);
    [o, n] = [x + 1, y + 1];
  }
  for (const { id, source } of lost) {
    const at = found.findIndex((one) => one.source === source);
    const [moved] = at < 0 ? [] : found.splice(at, 1);
    if (moved !== undefined) places.set(id, moved.id);
  }
}

/** Text of a part, independent of its place. */
function sourceOf(parsed: Parsed, { path }: OutlineNode): string {
  const node = nodeAt(parsed, path);
  if (node === null) return "";
  const { text } = parsed;
  return indentBy(text.slice(startOf(node), endOf(node)), -columnOf(text, startOf(node))).trimEnd();
}
