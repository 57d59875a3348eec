import { createParser } from "eventsource-parser";
import { api, send } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { type Draft, messageBody, responseBody } from "./request.ts";
import { targetOf } from "./targets.ts";

/** Sends a message and returns its id. */
export async function ask(draft: Draft, target: string | undefined, model: string | undefined): Promise<string> {
  const named = targetOf(target);
  if (named?.kind === "alias") return askAlias(draft, named.name);
  const { data } = await api.post("/api/v1/messages", messageBody(draft, target, model));
  return data.message_id;
}

/** Aliases use a route of another protocol; its first event names the response, and with it the message. */
async function askAlias(draft: Draft, alias: string): Promise<string> {
  const response = await send("/v1/responses", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify(responseBody(draft, alias)),
  });
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let id: string | null = null;
  const parser = createParser({
    onEvent: ({ data }) => {
      const named = (JSON.parse(data) as { response?: { id?: string } }).response?.id;
      if (named !== undefined) id ??= named.replace(/^resp_/, "");
    },
  });
  const found = () => id;
  while (found() === null) {
    const part = await reader?.read();
    if (part === undefined || part.done) throw new ApiError(0, { code: "no_response" });
    parser.feed(decoder.decode(part.value, { stream: true }));
  }
  // The response continues in the background.
  void reader?.cancel().catch(() => undefined);
  return found() ?? "";
}
