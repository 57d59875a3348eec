import { type TypedEvent } from "../../api/types.ts";

/** Events that carry a piece of text of the model. */
const PIECES = new Set(["phase_delta", "final_delta", "draft_delta", "content_delta", "serp_summary"]);

export const isPiece = ({ event }: TypedEvent): boolean => PIECES.has(event);

export type Gap = { readonly from: number; readonly to: number };

export type TimelineFigures = {
  /** Milliseconds from the request to the first piece of text, and to the first of the answer. */
  readonly firstText: number | null;
  readonly firstAnswer: number | null;
  readonly end: number;
  readonly pieces: number;
  readonly characters: number;
  readonly longestGap: Gap | null;
  readonly medianGap: number | null;
  /** Number of pieces in each of several equal intervals. */
  readonly spans: readonly number[];
  /** Unusual gaps. */
  readonly gaps: readonly Gap[];
};

const SPANS = 120;
/** A gap is unusual when it is this many times the median, and not short. */
const OUTSTANDING = 8;
const SHORTEST_MS = 250;

/** Computes the figures of a stream from arrival times in milliseconds from the request. */
export function timelineOf(events: readonly TypedEvent[], times: readonly number[]): TimelineFigures {
  const arrivals: number[] = [];
  let characters = 0;
  let firstAnswer: number | null = null;
  for (const [index, event] of events.entries()) {
    if (!isPiece(event)) continue;
    const at = times[index] ?? 0;
    arrivals.push(at);
    if (event.event === "final_delta") firstAnswer ??= at;
    const { text, delta } = event.data as { text?: string; delta?: string };
    characters += (text ?? delta ?? "").length;
  }
  const end = Math.max(times.at(-1) ?? 0, 1);
  const gaps = arrivals.slice(1).map((to, index): Gap => ({ from: arrivals[index] ?? 0, to }));
  const lengths = gaps.map(lengthOf).sort((one, other) => one - other);
  const medianGap = lengths.length === 0 ? null : (lengths[Math.floor(lengths.length / 2)] ?? 0);
  const longestGap = gaps.reduce<Gap | null>(
    (longest, gap) => (longest === null || lengthOf(gap) > lengthOf(longest) ? gap : longest),
    null,
  );
  const bound = Math.max(SHORTEST_MS, (medianGap ?? 0) * OUTSTANDING);
  const spans = new Array<number>(SPANS).fill(0);
  for (const at of arrivals) {
    const span = Math.min(SPANS - 1, Math.floor((at / end) * SPANS));
    spans[span] = (spans[span] ?? 0) + 1;
  }
  return {
    firstText: arrivals[0] ?? null,
    firstAnswer,
    end,
    pieces: arrivals.length,
    characters,
    longestGap,
    medianGap,
    spans,
    gaps: gaps.filter((gap) => lengthOf(gap) >= bound),
  };
}

export const lengthOf = ({ from, to }: Gap): number => to - from;
