import { api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Schemas } from "../../api/types.ts";
import { type MessageRecord, type Summary, summaryOf } from "./summary.ts";

/** Newest conversations that are looked at, and messages among them whose findings are read. */
const CONVERSATIONS = 60;
const WITH_FINDINGS = 60;
/** Requests at a time. */
const AT_ONCE = 6;

export type Overview = { readonly summary: Summary; readonly usage: Schemas["Usage"]["data"] };

/** Runs work for each item, a few at a time, and leaves out what is gone meanwhile. */
async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const rest = [...items];
  const results: R[] = [];
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
      try {
        results.push(await work(item));
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/** What the overview shows: the newest messages summed up, and use by day. */
export async function loadOverview(signal: AbortSignal): Promise<Overview> {
  const [settings, conversations, usage] = await Promise.all([
    api.get("/api/v1/settings", { signal }),
    api.get("/api/v1/conversations", { query: { limit: CONVERSATIONS }, signal }),
    api.get("/api/v1/usage", { query: { limit: 200 }, signal }),
  ]);
  const shown = await each(conversations.data.data, async ({ conversation_id: id }) => {
    const { data } = await api.get("/api/v1/conversations/{id}", { path: { id }, signal });
    return data.messages ?? [];
  });
  const records = shown.flat().sort((a, b) => b.created.localeCompare(a.created));
  const repaired = records.filter(({ metadata }) => (metadata?.repairs ?? 0) > 0).slice(0, WITH_FINDINGS);
  const findings = new Map<string, MessageRecord["findings"]>();
  await each(repaired, async ({ message_id: id }) => {
    const { data } = await api.get("/api/v1/messages/{id}", { path: { id }, signal });
    findings.set(id, data.findings);
  });
  const complete = records.map((record) => ({ ...record, findings: findings.get(record.message_id) ?? [] }));
  return { summary: summaryOf(complete, settings.data.default_upstream ?? ""), usage: usage.data.data };
}
