import { type LoreEntry } from "../imports/lore.ts";

/** Why an entry is active, as far as it can be told from the messages. */
export type Cause =
  | { readonly kind: "constant" }
  | { readonly kind: "keys"; readonly keys: readonly string[] }
  /** A regular expression, another entry, an earlier turn: nothing that the studio can see. */
  | { readonly kind: "other" };

const REGEX = /^\/.+\/[a-z]*$/s;

/** Keys of an entry that stand in the messages, as they are written. Regular expressions are not run here. */
export function keysIn({ keys, regex, case_sensitive: strict }: LoreEntry, texts: readonly string[]): string[] {
  if (regex) return [];
  const text = texts.join("\n");
  const folded = text.toLowerCase();
  return keys.filter((key) => {
    if (key.trim() === "" || REGEX.test(key)) return false;
    return strict === true ? text.includes(key) : folded.includes(key.toLowerCase());
  });
}

export function causeOf(entry: LoreEntry, texts: readonly string[]): Cause {
  if (entry.constant) return { kind: "constant" };
  const keys = keysIn(entry, texts);
  return keys.length === 0 ? { kind: "other" } : { kind: "keys", keys };
}

/** Entries that woke and those that did not, by the titles that the server names. Each title is used once. */
export function splitByTitle(
  entries: readonly LoreEntry[],
  titles: readonly string[],
): { woken: { title: string; entry: LoreEntry | null }[]; asleep: LoreEntry[] } {
  const left = [...entries];
  const woken = titles.map((title) => {
    const at = left.findIndex((entry) => entry.enabled && entry.title === title);
    const entry = at < 0 ? null : (left.splice(at, 1)[0] ?? null);
    return { title, entry };
  });
  return { woken, asleep: left };
}
