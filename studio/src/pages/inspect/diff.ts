import { linesOf } from "../../components/reply/lines.ts";

/** Line of a comparison. */
export type DiffLine = { readonly kind: "same" | "removed" | "added"; readonly text: string };

/** Most pairs of lines that are compared. */
const MOST_CELLS = 4_000_000;

/** Lines of two texts: common ones once, the others as removed and added. Long ones are broken, as in a list. */
export function diffLines(before: string, after: string): DiffLine[] {
  return wholeLines(before, after).flatMap((line) => linesOf(line.text).map(({ start, end }) => ({ ...line, text: line.text.slice(start, end) })));
}

function wholeLines(before: string, after: string): DiffLine[] {
  const one = before.split("\n");
  const other = after.split("\n");
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [
    ...one.slice(0, start).map(same),
    ...middle(one.slice(start, one.length - end), other.slice(start, other.length - end)),
    ...one.slice(one.length - end).map(same),
  ];
}

/** Longest common lines, by the table of their lengths; a part too large for it counts as changed as a whole. */
function middle(one: readonly string[], other: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  const [rows, columns] = [one.length, other.length];
  if (rows * columns > MOST_CELLS) return [...one.map(removed), ...other.map(added)];
  const wide = columns + 1;
  const lengths = new Uint32Array((rows + 1) * wide);
  const at = (row: number, column: number) => lengths[row * wide + column] ?? 0;
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      lengths[row * wide + column] =
        one[row] === other[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    if (row < rows && column < columns && one[row] === other[column]) {
      lines.push({ kind: "same", text: one[row] ?? "" });
      row += 1;
      column += 1;
    } else if (column >= columns || (row < rows && at(row + 1, column) >= at(row, column + 1))) {
      lines.push(removed(one[row] ?? ""));
      row += 1;
    } else {
      lines.push(added(other[column] ?? ""));
      column += 1;
    }
  }
  return lines;
}
