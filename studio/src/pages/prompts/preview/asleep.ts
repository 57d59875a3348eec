import { type LoreEntry } from "../imports/lore.ts";

/** Entries outside the prompt: `titles` are those of active or found entries, and each excludes one entry. */
export function asleepOf(entries: readonly LoreEntry[], titles: readonly string[]): LoreEntry[] {
  const left = [...entries];
  for (const title of titles) {
    const at = left.findIndex((entry) => entry.enabled && entry.title === title);
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}
