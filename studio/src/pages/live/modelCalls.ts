import { type MessageRecord } from "./MessageRun.ts";

/**
 * Parts of a request that the record lacks: nothing; the re-ask prompts after each discarded reply; all of it, since
 * another upstream was called; or the turn of a tool loop in which replies were discarded.
 */
export type Gap = "none" | "complaints" | "upstream" | "turn";

/** Model call, as far as the record of its message describes it. */
export type ModelCall = {
  /** Messages sent, without those that `gap` names; `null` if the record has none of them. */
  readonly request: Prompt | null;
  readonly gap: Gap;
  readonly parameters: unknown;
  readonly response: string;
  /** Tool results sent to the model after it. */
  readonly told: string | null;
  readonly used: boolean;
  readonly finishReason: string | null;
  readonly upstream: string | null;
  /** Reason of the failure. */
  readonly error: string | null;
  readonly usage: unknown;
  readonly totalMs: number | null;
};

type Prompt = readonly unknown[];

type Attempt = {
  readonly raw: string;
  readonly finish_reason?: string;
  /** Name of the upstream, on its last attempt before a fallback. */
  readonly upstream?: string;
  readonly error?: { readonly code?: string; readonly message?: string };
};

type Told = Pick<ModelCall, "used" | "finishReason" | "upstream" | "usage" | "totalMs">;

/** Request fields that are no model parameters. */
const OTHERS = new Set(["text", "messages", "system_prompt", "stream", "wait", "skein", "context"]);

/** Calls in order: discarded attempts, turns with tools, and the reply. */
export function callsOf(record: MessageRecord): ModelCall[] {
  const request = record.request as Readonly<Record<string, unknown>>;
  const parameters = Object.fromEntries(Object.entries(request).filter(([name]) => !OTHERS.has(name)));
  const attempts = (record.attempts ?? []) as readonly Attempt[];
  const turns = record.turns ?? [];
  const timings = (record.timings ?? {}) as { total_ms?: number };
  // The recorded prompt is that of the last upstream; the parameters are those of the first.
  const firstGivenUp = attempts.findIndex(({ upstream }) => upstream !== undefined);
  const lastGivenUp = attempts.findLastIndex(({ upstream }) => upstream !== undefined);
  const inTheEnd = attempts.slice(lastGivenUp + 1);
  const own = firstGivenUp === -1;
  const last: Told = {
    used: true,
    finishReason: record.finish_reason ?? null,
    upstream: own && typeof request["upstream"] === "string" ? request["upstream"] : null,
    usage: record.usage ?? null,
    totalMs: timings.total_ms ?? null,
  };
  const base = { told: null, error: null, parameters: own ? parameters : null };
  // A reply that was kept because no later one was better is among the attempts, and no call followed them.
  const kept = inTheEnd.length > (record.metadata?.reasks ?? inTheEnd.length) && turns.length === 0;
  const reply = kept ? inTheEnd.findIndex(({ raw }) => raw === record.reply) : -1;

  let said: Prompt = record.prompt ?? [];
  const thrown = attempts.map((attempt, index): ModelCall => {
    const place = index - lastGivenUp - 1;
    const made = {
      ...base,
      ...discarded(attempt),
      ...(place >= 0 && place === reply ? last : {}),
      parameters: firstGivenUp === -1 || index <= firstGivenUp ? parameters : null,
    };
    if (place < 0) return { ...made, request: null, gap: "upstream" };
    if (turns.length > 0) return { ...made, request: null, gap: "turn" };
    const before = said;
    said = [...said, { role: "assistant", content: attempt.raw }];
    return { ...made, request: before, gap: place === 0 ? "none" : "complaints" };
  });
  if (reply !== -1) return thrown;
  if (turns.length === 0) {
    const gap = inTheEnd.length === 0 ? "none" : "complaints";
    return [...thrown, { ...base, ...last, request: said, gap, response: record.reply ?? "" }];
  }
  const made = turns.map(({ reply: response, history, told }, index): ModelCall => {
    const before = said;
    const back = history === undefined ? response : history;
    said = [
      ...said,
      ...(back === null ? [] : [{ role: "assistant", content: back }]),
      ...(told === undefined ? [] : [{ role: "user", content: told }]),
    ];
    const gap = inTheEnd.length === 0 ? "none" : "turn";
    const one = { ...base, ...last, request: before, gap, response, told: told ?? null } as const;
    return index === turns.length - 1 ? one : { ...one, finishReason: null, usage: null, totalMs: null };
  });
  return [...thrown, ...made];
}

function discarded({ raw, finish_reason: reason, upstream, error }: Attempt): Omit<ModelCall, "request" | "gap" | "parameters" | "told"> {
  return {
    response: raw,
    used: false,
    finishReason: reason ?? null,
    upstream: upstream ?? null,
    error: error === undefined ? null : (error.message ?? error.code ?? null),
    usage: null,
    totalMs: null,
  };
}
