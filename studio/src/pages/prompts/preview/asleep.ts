import { type LoreEntry } from "../imports/lore.ts";

/** Entries that are not in the prompt, by the titles of those that are or were found. Each title is used once. */
export function asleepOf(entries: readonly LoreEntry[], titles: readonly string[]): LoreEntry[] {
  const left = [...entries];
  for (const title of titles) {
    const at = left.findIndex((entry) => entry.enabled && entry.title === title);
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}
