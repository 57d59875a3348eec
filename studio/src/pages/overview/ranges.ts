import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";

/** Figures, with the time at which they were loaded. */
export type FiguresOfRange = Schemas["Figures"] & { readonly until: number };

/** Selectable ranges: their days, and the length of their steps. */
export const RANGES = {
  "2d": { days: 2, by: "hour" },
  "7d": { days: 7, by: "day" },
  "30d": { days: 30, by: "day" },
  "90d": { days: 90, by: "day" },
} as const;

export type Range = keyof typeof RANGES;

const DAY_MS = 86_400_000;

/** Range of a name; a week for any other name. */
export function rangeOf(name: string | null): Range {
  return name !== null && Object.hasOwn(RANGES, name) ? (name as Range) : "7d";
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** Loads the figures of a range that ends now. */
export async function loadFigures(range: Range, signal: AbortSignal): Promise<FiguresOfRange> {
  const { days, by } = RANGES[range];
  const now = Date.now();
  const query = { from: dayOf(now - (days - 1) * DAY_MS), to: dayOf(now), by };
  const { data } = await api.get("/api/v1/figures", { query, signal });
  return { ...data, until: now };
}
