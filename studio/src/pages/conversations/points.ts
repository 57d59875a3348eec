import { type Update, pointOf } from "./operations.ts";
import { wordsOf } from "./swipes.ts";
import { type Message } from "./useConversation.ts";

/** Moment of the state, with a label for people. */
export type StatePoint = {
  /** Id for the API. */
  readonly id: string;
  /** User text before it, or the reason of a manual change; may be empty. */
  readonly words: string;
  readonly byHand: boolean;
  readonly position: number | null;
  readonly created: string;
};

/**
 * Moments of the state, oldest first: each current message, with or without an update, and each manual change, in
 * order of time.
 */
export function pointsOf(messages: readonly Message[], updates: readonly Update[]): StatePoint[] {
  const positions = new Map(updates.map((update) => [pointOf(update), update.position]));
  const ofMessages = messages
    .filter(({ status }) => status === "completed" || status === "cancelled")
    .map(({ message_id: id, request, created }): StatePoint => ({
      id,
      words: wordsOf(request),
      byHand: false,
      position: positions.get(id) ?? null,
      created,
    }));
  const known = new Set(ofMessages.map(({ id }) => id));
  const others = updates
    .filter((update) => !known.has(pointOf(update)))
    .map((update): StatePoint => ({
      id: pointOf(update),
      words: update.analysis ?? "",
      byHand: update.message_id === null,
      position: update.position,
      created: update.created,
    }));
  return [...ofMessages, ...others].sort((a, b) =>
    a.created === b.created ? (a.position ?? 0) - (b.position ?? 0) : a.created < b.created ? -1 : 1,
  );
}

/** Number of updates after a moment, which a rollback to it undoes. */
export function updatesAfter(point: StatePoint | null, points: readonly StatePoint[], updates: readonly Update[]): number {
  if (point === null) return updates.length;
  const last = points
    .slice(0, points.findIndex(({ id }) => id === point.id) + 1)
    .reduce((most, { position }) => Math.max(most, position ?? 0), 0);
  return updates.filter(({ position }) => position > last).length;
}
