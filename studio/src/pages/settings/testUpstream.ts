import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";

type Outcome = { readonly ok: true; readonly ms: number } | { readonly ok: false; readonly reason: string };

/** Asks an upstream for a word, and deletes the conversation that this was. */
export async function testUpstream(upstream: string): Promise<Outcome> {
  const started = performance.now();
  try {
    const body = { text: "ping", upstream, max_tokens: 1, dialect: "plain", max_reasks: 0, wait: true };
    const { data } = await api.post("/api/v1/messages", body);
    const record: Readonly<Record<string, unknown>> = data;
    const took = performance.now() - started;
    const id = record["conversation_id"];
    if (typeof id === "string") await api.remove("/api/v1/conversations/{id}", { path: { id } });
    if (record["status"] !== "completed") return { ok: false, reason: textOf(record["error"], "message") };
    const timings = record["timings"];
    const first = typeof timings === "object" && timings !== null && "first_byte_ms" in timings ? timings.first_byte_ms : took;
    return { ok: true, ms: typeof first === "number" ? first : took };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { ok: false, reason: error.detail };
  }
}

function textOf(value: unknown, name: string): string {
  const field = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return typeof field === "string" ? field : "";
}
