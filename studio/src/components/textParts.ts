/** Most characters shown at once. */
export const PART_LENGTH = 200_000;

/** Starts of the parts of a text, each after a line end where one is near, and never inside a character. */
export function partStarts(text: string, length = PART_LENGTH): number[] {
  const starts = [0];
  let start = 0;
  while (text.length - start > length) {
    const line = text.lastIndexOf("\n", start + length - 1);
    let next = line > start + length / 2 ? line + 1 : start + length;
    // The second half of a surrogate pair stays with the first.
    if (/[\uDC00-\uDFFF]/.test(text.charAt(next))) next -= 1;
    starts.push(next);
    start = next;
  }
  return starts;
}
