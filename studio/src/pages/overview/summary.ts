import { type Schemas } from "../../api/types.ts";

export type MessageRecord = Schemas["Record"];

/** What is known of the newest messages, ready to be drawn. */
export type Summary = {
  readonly count: number;
  readonly completed: number;
  readonly failed: number;
  /** Completed messages that needed no repair, that were repaired, and whose answer was replaced or kept as prose. */
  readonly validity: { readonly clean: number; readonly repaired: number; readonly replaced: number };
  readonly firstTextMs: number | null;
  readonly tokens: number;
  readonly times: readonly Bucket[];
  readonly rules: readonly { readonly rule: string; readonly code: string; readonly count: number }[];
  readonly upstreams: readonly Upstream[];
};

/** Messages of one day, or of one hour where all are of two days at most. */
export type Bucket = {
  readonly start: number;
  readonly completed: number;
  readonly failed: number;
  /** Share of completed messages whose answer was neither replaced nor kept as prose. */
  readonly valid: number | null;
  readonly firstTextMs: number | null;
};

type Upstream = {
  readonly name: string;
  readonly count: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly firstTextMs: number | null;
};

const HOUR_MS = 3_600_000;

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;

const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0);

/** The middle of values; `null` of none. */
export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) return null;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

const firstTextOf = (record: MessageRecord): number[] => {
  const value = field(record.timings, "first_byte_ms");
  return typeof value === "number" ? [value] : [];
};

const isReplaced = ({ metadata }: MessageRecord): boolean =>
  metadata?.fallback_reason !== undefined || metadata?.unused_reason !== undefined;

/** Tokens as upstreams of all kinds are recorded: in the names of OpenAI. */
const tokensOf = ({ usage }: MessageRecord): { input: number; output: number } => ({
  input: numberOf(field(usage, "prompt_tokens")),
  output: numberOf(field(usage, "completion_tokens")),
});

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Beginning of the hour or the day that a time is in, where the user is. */
function bucketOf(time: string, byHour: boolean): number {
  const start = new Date(time);
  start.setMinutes(0, 0, 0);
  if (!byHour) start.setHours(0);
  return start.getTime();
}

function summedUp(start: number, records: readonly MessageRecord[]): Bucket {
  const completed = records.filter(({ status }) => status === "completed");
  return {
    start,
    completed: completed.length,
    failed: records.filter(({ status }) => status === "failed").length,
    valid: completed.length === 0 ? null : completed.filter((one) => !isReplaced(one)).length / completed.length,
    firstTextMs: median(records.flatMap(firstTextOf)),
  };
}

/** Sums up messages; those that still run are left out. */
export function summaryOf(all: readonly MessageRecord[], defaultUpstream: string): Summary {
  const records = all.filter(({ status }) => status !== "running");
  const completed = records.filter(({ status }) => status === "completed");
  const replaced = completed.filter(isReplaced).length;
  const repaired = completed.filter((one) => !isReplaced(one) && numberOf(one.metadata?.repairs) > 0).length;
  const times = records.map(({ created }) => Date.parse(created));
  const byHour = Math.max(...times) - Math.min(...times) < 48 * HOUR_MS;
  const buckets = [...grouped(records, ({ created }) => String(bucketOf(created, byHour)))];
  const findings = records.flatMap(({ findings }) => findings ?? []).filter(({ repair }) => repair !== null);
  const rules = [...grouped(findings, ({ rule, code }) => `${rule} ${code}`).values()].flatMap((group) =>
    group[0] === undefined ? [] : [{ rule: group[0].rule, code: group[0].code, count: group.length }],
  );
  const upstreamOf = ({ request }: MessageRecord) => {
    const name = field(request, "upstream");
    return typeof name === "string" ? name : defaultUpstream;
  };
  const upstreams = [...grouped(records, upstreamOf)].map(([name, group]) => {
    const tokens = group.map(tokensOf);
    return {
      name,
      count: group.length,
      inputTokens: tokens.reduce((sum, { input }) => sum + input, 0),
      outputTokens: tokens.reduce((sum, { output }) => sum + output, 0),
      firstTextMs: median(group.flatMap(firstTextOf)),
    };
  });
  return {
    count: records.length,
    completed: completed.length,
    failed: records.filter(({ status }) => status === "failed").length,
    validity: { clean: completed.length - repaired - replaced, repaired, replaced },
    firstTextMs: median(records.flatMap(firstTextOf)),
    tokens: upstreams.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
    times: buckets.map(([start, group]) => summedUp(Number(start), group)).sort((a, b) => a.start - b.start),
    rules: rules.sort((a, b) => b.count - a.count),
    upstreams: upstreams.sort((a, b) => b.count - a.count),
  };
}
