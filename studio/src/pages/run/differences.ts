import { type Replayed } from "./model.ts";

type Difference = Replayed["differences"][number];

/** Field of a claim, with its value. */
export type Claim = { readonly field: string; readonly value: unknown };

/** Claims about one subject of a turn that differ, as expected and as found. */
export type DifferenceRow = {
  readonly turn: number;
  /** First part of the field: `position` of `position.phase`. */
  readonly subject: string;
  readonly expected: readonly Claim[];
  readonly found: readonly Claim[];
};

/** Differences by turn and subject, in order: fields of one decision or place belong together. */
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
