export type Scale = { readonly min: number; readonly max: number; readonly ticks: readonly number[] };

/** Scale with round ticks that covers all values; starts at zero unless all values are far from it. */
export function scaleOf(values: readonly number[], wanted = 4): Scale {
  const finite = values.filter(Number.isFinite);
  const low = Math.min(0, ...finite);
  const high = Math.max(...finite, low);
  const span = high === low ? 1 : high - low;
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step));
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
  return { min: first * step, max: last * step, ticks };
}

/** Indexes of at most `most` of `count` labels, evenly spread, first and last included. */
export function spread(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, index) => index);
  const step = (count - 1) / (most - 1);
  return [...new Set(Array.from({ length: most }, (_, index) => Math.round(index * step)))];
}
