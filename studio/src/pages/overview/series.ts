import { type FiguresOfRange } from "./ranges.ts";

type Row = FiguresOfRange["data"][number];
type Count = "input_tokens" | "output_tokens" | "cost";

/** Most upstreams, or rules, with a series of their own; the others share one. */
const MOST = 5;

/** Number of rows with a series of their own, out of `all`. */
const ownOf = (all: number): number => (all > MOST ? MOST - 1 : MOST);

type Steps = Pick<FiguresOfRange, "from" | "to" | "by" | "until">;

/** All steps of a range, also those without replies, in the server's notation. */
export function stepsOf({ from, to, by, until }: Steps): string[] {
  const [first, last] = [Date.parse(`${from}T00:00:00Z`), Date.parse(`${to}T00:00:00Z`)];
  const [length, count] = by === "hour" ? [3_600_000, 24] : [86_400_000, 1];
  const steps: string[] = [];
  for (let at = first; at < last + count * length && at <= until; at += length) {
    const time = new Date(at).toISOString();
    steps.push(by === "hour" ? `${time.slice(0, 19)}Z` : time.slice(0, 10));
  }
  return steps;
}

/** Value for each step: that of its row, or `none` without one. */
export function byStep<T, V>(
  steps: readonly string[],
  rows: readonly (T & { readonly time: string })[],
  valueOf: (row: T) => V,
  none: V,
): V[] {
  const known = new Map(rows.map((row) => [row.time, row]));
  return steps.map((step) => {
    const row = known.get(step);
    return row === undefined ? none : valueOf(row);
  });
}

/** Share of completed replies whose answer was neither replaced nor kept as prose. */
export function validOf({ completed, replaced }: Pick<Row, "completed" | "replaced">): number | null {
  return completed === 0 ? null : (completed - replaced) / completed;
}

/** Sums of counts for each step, one series an upstream: the largest ones first, the rest together. */
export function byUpstream(
  steps: readonly string[],
  figures: Pick<FiguresOfRange, "data" | "upstreams">,
  counts: readonly Count[],
  names: { readonly unknown: string; readonly others: string },
): { name: string; values: number[] }[] {
  const sumOf = (row: Readonly<Record<Count, number>>) => counts.reduce((sum, count) => sum + row[count], 0);
  const used = figures.upstreams.filter((row) => sumOf(row) > 0).sort((a, b) => sumOf(b) - sumOf(a));
  const own = used.slice(0, ownOf(used.length)).map(({ upstream }) => upstream);
  const seriesOf = (name: string, belongs: (row: Row) => boolean) => {
    const sums = new Map<string, number>();
    for (const row of figures.data) {
      if (belongs(row)) sums.set(row.time, (sums.get(row.time) ?? 0) + sumOf(row));
    }
    return { name, values: steps.map((step) => sums.get(step) ?? 0) };
  };
  const series = own.map((upstream) => seriesOf(upstream ?? names.unknown, (row) => row.upstream === upstream));
  return used.length > own.length ? [...series, seriesOf(names.others, (row) => !own.includes(row.upstream))] : series;
}

type Rule = FiguresOfRange["repairs"][number];

/** Repairs of each step, one series a rule: the most frequent ones first, the rest together. */
export function byRule(
  steps: readonly string[],
  { repairs, times }: { readonly repairs: readonly Rule[]; readonly times: readonly { readonly time: string; readonly repairs: readonly Rule[] }[] },
  others: string,
): { name: string; values: number[] }[] {
  const own = repairs.slice(0, ownOf(repairs.length));
  const seriesOf = (name: string, belongs: (rule: Rule) => boolean) => {
    const sumOf = (row: { readonly repairs: readonly Rule[] }) => row.repairs.filter(belongs).reduce((sum, { count }) => sum + count, 0);
    return { name, values: byStep(steps, times, sumOf, 0) };
  };
  const isOf = (a: Rule) => (b: Rule) => a.rule === b.rule && a.code === b.code;
  const series = own.map((rule) => seriesOf(`${rule.rule} ${rule.code}`, isOf(rule)));
  return repairs.length > own.length ? [...series, seriesOf(others, (rule) => !own.some(isOf(rule)))] : series;
}
