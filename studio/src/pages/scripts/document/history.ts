/** Texts before and after the present one. */
export type History = {
  readonly past: readonly string[];
  readonly present: string;
  readonly future: readonly string[];
  /** Group and time of the last change, which further ones join. */
  readonly group: { readonly name: string; readonly at: number } | null;
};

/** Most changes that can be undone. */
export const MOST_CHANGES = 200;
const JOIN_MS = 1200;

export const beginHistory = (text: string): History => ({ past: [], present: text, future: [], group: null });

/** Records a change; those of one group in close succession are undone together. */
export function record(history: History, text: string, group: string | null, now: number): History {
  if (text === history.present) return history;
  const joins = group !== null && history.group?.name === group && now - history.group.at < JOIN_MS;
  const past = joins ? history.past : [...history.past, history.present].slice(-MOST_CHANGES);
  return { past, present: text, future: [], group: group === null ? null : { name: group, at: now } };
}

export function undo({ past, present, future }: History): History | null {
  const before = past.at(-1);
  return before === undefined
    ? null
    : { past: past.slice(0, -1), present: before, future: [present, ...future], group: null };
}

export function redo({ past, present, future }: History): History | null {
  const [next, ...rest] = future;
  return next === undefined ? null : { past: [...past, present], present: next, future: rest, group: null };
}
