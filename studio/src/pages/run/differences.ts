import { type Replayed } from "./model.ts";

type Difference = Replayed["differences"][number];

/** One field of a claim, with the value it has. */
export type Claim = { readonly field: string; readonly value: unknown };

/** Claims about one thing of a turn that came otherwise: what was expected, and what was found. */
export type DifferenceRow = {
  readonly turn: number;
  /** First part of the field: `position` of `position.phase`. */
  readonly subject: string;
  readonly expected: readonly Claim[];
  readonly found: readonly Claim[];
};

/** Differences by turn and subject, in their order: parts of one decision or place belong together. */
export function rowsOf(differences: readonly Difference[]): DifferenceRow[] {
  const rows = new Map<string, { turn: number; subject: string; expected: Claim[]; found: Claim[] }>();
  for (const { turn, field, expected, found } of differences) {
    const [subject = field] = field.split(".");
    const key = `${turn} ${subject}`;
    const row = rows.get(key) ?? { turn, subject, expected: [], found: [] };
    row.expected.push({ field, value: expected });
    row.found.push({ field, value: found });
    rows.set(key, row);
  }
  return [...rows.values()];
}
