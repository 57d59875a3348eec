/** Entry of world info, in the server's format. */
export type LoreEntry = {
  readonly id: string;
  readonly title: string;
  readonly keys: readonly string[];
  readonly secondary_keys: readonly string[];
  readonly logic: string;
  readonly selective: boolean;
  readonly content: string;
  readonly enabled: boolean;
  readonly order: number;
  readonly constant: boolean;
  readonly regex: boolean;
  readonly case_sensitive: boolean | null;
  readonly position: string;
  readonly depth: number;
  readonly role: string;
  readonly outlet: string;
  readonly probability: number;
  readonly sticky: number;
  readonly cooldown: number;
  readonly delay: number;
};

/** True if an entry contains the search text. */
export function entryMatches({ title, keys, secondary_keys: secondary, content }: LoreEntry, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  return wanted === "" || [title, ...keys, ...secondary, content].join("\n").toLowerCase().includes(wanted);
}
