import { type MessageRecord } from "./MessageRun.ts";

/** A call of a model, as far as the record of its message tells. */
export type ModelCall = {
  readonly request: unknown;
  readonly parameters: unknown;
  readonly response: string;
  /** What the model was told after it: results of tools. */
  readonly told: string | null;
  readonly used: boolean;
  readonly finishReason: string | null;
  readonly upstream: string | null;
  readonly usage: unknown;
  readonly totalMs: number | null;
};

type Prompt = readonly unknown[];

/** Fields of a request that are no parameters of the model. */
const OTHERS = new Set(["text", "messages", "system_prompt", "stream", "wait", "skein", "context"]);

/** Calls in their order: attempts that were thrown away, turns with tools, and the reply. */
export function callsOf(record: MessageRecord): ModelCall[] {
  const request = record.request as Readonly<Record<string, unknown>>;
  const parameters = Object.fromEntries(Object.entries(request).filter(([name]) => !OTHERS.has(name)));
  const prompt: Prompt = record.prompt ?? [];
  const attempts = (record.attempts ?? []) as { raw: string; finish_reason?: string; upstream?: string }[];
  const thrown = attempts.map(({ raw, finish_reason, upstream }): ModelCall => {
    const finishReason = finish_reason ?? null;
    const name = upstream ?? null;
    return { request: prompt, parameters, response: raw, told: null, used: false, finishReason, upstream: name, usage: null, totalMs: null };
  });
  const timings = (record.timings ?? {}) as { total_ms?: number };
  const last = {
    parameters,
    used: true,
    finishReason: record.finish_reason ?? null,
    upstream: typeof request["upstream"] === "string" ? request["upstream"] : null,
    usage: record.usage ?? null,
    totalMs: timings.total_ms ?? null,
  };
  const turns = record.turns ?? [];
  if (turns.length === 0) {
    return [...thrown, { ...last, request: prompt, response: record.reply ?? "", told: null }];
  }
  let said: Prompt = prompt;
  const made = turns.map(({ reply, told }, index): ModelCall => {
    const before = said;
    said = [...said, { role: "assistant", content: reply }, ...(told === undefined ? [] : [{ role: "user", content: told }])];
    const ended = index === turns.length - 1;
    const one = { ...last, request: before, response: reply, told: told ?? null };
    return ended ? one : { ...one, finishReason: null, usage: null, totalMs: null };
  });
  return [...thrown, ...made];
}
