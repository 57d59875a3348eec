/** Lines with their breaks. */
export const linesOf = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** Number of spaces at the beginning of every line of some texts; blank lines do not count. */
export function indentOf(texts: readonly string[]): number {
  const lines = texts.flatMap(linesOf).filter((line) => line.trim() !== "");
  return lines.length === 0 ? 0 : Math.min(...lines.map((line) => line.search(/[^ ]/)));
}

/** Common lines of two texts, as pairs of their numbers in order. */
export function commonLines(a: readonly string[], b: readonly string[]): [number, number][] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const pairs: [number, number][] = [];
  for (let at = 0; at < start; at += 1) pairs.push([at, at]);
  for (const [x, y] of longest(a.slice(start, a.length - end), b.slice(start, b.length - end))) {
    pairs.push([x + start, y + start]);
  }
  for (let at = end; at > 0; at -= 1) pairs.push([a.length - at, b.length - at]);
  return pairs;
}

/** Most differences; texts with more have nothing in common. */
const MOST = 2000;

/** Longest common lines, by the algorithm of Myers. */
function longest(a: readonly string[], b: readonly string[]): [number, number][] {
  const traces: Map<number, number>[] = [];
  const ends = new Map<number, number>([[1, 0]]);
  const most = Math.min(a.length + b.length, MOST);
  for (let edits = 0; edits <= most; edits += 1) {
    traces.push(new Map(ends));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const [left, right] = [ends.get(diagonal - 1) ?? -1, ends.get(diagonal + 1) ?? -1];
      let x = diagonal === -edits || (diagonal !== edits && left < right) ? right : left + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x += 1;
      ends.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return walkBack(traces, a.length, b.length);
    }
  }
  return [];
}

function walkBack(traces: readonly Map<number, number>[], endX: number, endY: number): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [endX, endY];
  for (let edits = traces.length - 1; edits >= 0; edits -= 1) {
    const ends = traces[edits] ?? new Map<number, number>();
    const diagonal = x - y;
    const [left, right] = [ends.get(diagonal - 1) ?? -1, ends.get(diagonal + 1) ?? -1];
    const before = diagonal === -edits || (diagonal !== edits && left < right) ? diagonal + 1 : diagonal - 1;
    const beforeX = Math.max(0, ends.get(before) ?? 0);
    const beforeY = beforeX - before;
    while (x > beforeX && y > beforeY && x > 0 && y > 0) {
      x -= 1;
      y -= 1;
      pairs.push([x, y]);
    }
    [x, y] = edits === 0 ? [0, 0] : [beforeX, beforeY];
  }
  return pairs.reverse();
}
