import { type FieldValue } from "./fields.ts";
import { afterInsertion, afterMove, afterRemoval, type Follow, unmoved } from "./follow.ts";
import { duplicateItem, insertItem, moveItem, removeItem } from "./items.ts";
import { CHILD_LIST, flatten, idOf, type Kind, type OutlineNode, spotOf } from "./outline.ts";
import { type Path } from "./text.ts";

/** Text after a change of its structure, and the part chosen then. */
export type Restructured = {
  readonly text: string;
  readonly chosen: string | null;
  /** New places of the other parts. */
  readonly follow: Follow;
};

const unchanged = (text: string, node: OutlineNode): Restructured => ({ text, chosen: node.id, follow: unmoved });

/** Initial fields of a new part. */
export function newPart(kind: Kind, name: string): Record<string, FieldValue> {
  switch (kind) {
    case "session":
      return { session: name, phases: [] };
    case "phase":
      return { phase: name, steps: [] };
    case "step":
      return { topic: name, actions: [] };
    case "action":
      return { type: "ai_say", content: "" };
  }
}

/** Adds a part at the end of another; a session, at the end of the script. */
export function addPart(text: string, parent: OutlineNode | null, count: number, part: Record<string, FieldValue>): Restructured {
  const path: Path = parent?.path ?? [];
  const key = parent === null ? "sessions" : (parent.list ?? CHILD_LIST[parent.kind] ?? "actions");
  const follow = afterInsertion({ path, key, index: count });
  return { text: insertItem(text, path, key, count, part), chosen: idOf([...path, key, count]), follow };
}

export function duplicatePart(text: string, node: OutlineNode): Restructured {
  const spot = spotOf(node);
  if (spot === null) return unchanged(text, node);
  const copy = idOf([...spot.path, spot.key, spot.index + 1]);
  const follow = afterInsertion({ ...spot, index: spot.index + 1 });
  return { text: duplicateItem(text, spot.path, spot.key, spot.index), chosen: copy, follow };
}

export function removePart(text: string, node: OutlineNode): Restructured {
  const spot = spotOf(node);
  if (spot === null) return unchanged(text, node);
  const chosen = spot.index > 0 ? idOf([...spot.path, spot.key, spot.index - 1]) : idOf(spot.path);
  const removed = removeItem(text, spot.path, spot.key, spot.index);
  return { text: removed, chosen: chosen === "" ? null : chosen, follow: removed === text ? unmoved : afterRemoval(spot) };
}

/** Moves a part up or down: within its list, and from its end into the next one of the same kind. */
export function shiftPart(text: string, nodes: readonly OutlineNode[], node: OutlineNode, by: -1 | 1): Restructured {
  const spot = spotOf(node);
  if (spot === null) return unchanged(text, node);
  const siblings = siblingsOf(nodes, node);
  const index = spot.index + by;
  if (index >= 0 && index < siblings) {
    const to = { ...spot, index };
    return { text: moveItem(text, spot, to), chosen: idOf([...spot.path, spot.key, index]), follow: afterMove(spot, to) };
  }
  const parents = flatten(nodes).filter((other) => other.kind === parentKind(node.kind));
  const at = parents.findIndex(({ id }) => id === idOf(spot.path));
  const next = at < 0 ? undefined : parents[at + by];
  if (next === undefined) return unchanged(text, node);
  return placePart(text, node, next, by === 1 ? 0 : next.children.length);
}

/** Moves a part to a place in another, or to another place in its own parent. */
export function placePart(text: string, node: OutlineNode, parent: OutlineNode | null, index: number): Restructured {
  const spot = spotOf(node);
  if (spot === null) return unchanged(text, node);
  const path = parent?.path ?? [];
  const key = parent === null ? spot.key : (parent.list ?? spot.key);
  const to = { path, key, index };
  const moved = moveItem(text, spot, to);
  if (moved === text) return unchanged(text, node);
  const follow = afterMove(spot, to);
  return { text: moved, chosen: follow(node.id), follow };
}

export const parentKind = (kind: Kind): Kind | null =>
  ({ session: null, phase: "session", step: "phase", action: "step" } as const)[kind];

export const parentOf = (nodes: readonly OutlineNode[], node: OutlineNode): OutlineNode | null =>
  flatten(nodes).find(({ children }) => children.some(({ id }) => id === node.id)) ?? null;

/** Parent for a new part of a kind: the chosen part, or its nearest ancestor that fits. */
export function holderOf(nodes: readonly OutlineNode[], chosen: OutlineNode | null, kind: Kind): OutlineNode | null {
  const wanted = parentKind(kind);
  let part = chosen;
  while (part !== null && part.kind !== wanted) part = parentOf(nodes, part);
  return part;
}

function siblingsOf(nodes: readonly OutlineNode[], node: OutlineNode): number {
  return (parentOf(nodes, node)?.children ?? nodes).length;
}
