import { createParser } from "eventsource-parser";
import { addressOf, send } from "../../api/client.ts";
import { ApiError, isAbort } from "../../api/errors.ts";
import { followEvents, type Stream } from "../../api/stream.ts";

export type Input = { readonly text?: string; readonly answer?: { readonly call_id: string; readonly value: unknown } };

export type InputHandlers = {
  /** Called with the next text of the message. */
  onText: (text: string) => void;
  /** Called with true when the connection is lost, and with false when it is back. */
  onDropped: (dropped: boolean) => void;
  /** Called at the end: `error` if the input was refused, `failed` if the turn failed. */
  onEnd: (error: ApiError | null, failed: boolean) => void;
};

const TRIES = 8;
const WAIT_MS = 700;

/**
 * Sends an input and reads the stream of its turn. After a loss before the first event, it sends the same input again with
 * the same id, which the server accepts once; after a later loss the stream resumes after the last event received.
 */
export function sendInput(dialogue: string, input: Input, handlers: InputHandlers): { close: () => void } {
  const word = crypto.randomUUID();
  const stop = new AbortController();
  let turn: string | null = null;
  let lastEventId: string | undefined;
  let over = false;
  let rest: Stream | null = null;

  function see(name: string, data: unknown, id: string | undefined): void {
    const fields = data as Record<string, unknown>;
    if (typeof fields["message_id"] === "string") turn = fields["message_id"];
    if (id !== undefined) lastEventId = id;
    if (name === "final_delta" && typeof fields["text"] === "string") handlers.onText(fields["text"]);
    if (name === "completed" || name === "error") end(null, name === "error");
  }

  function end(error: ApiError | null, failed = error !== null): void {
    if (over) return;
    over = true;
    handlers.onEnd(error, failed);
  }

  function follow(id: string): void {
    const address = addressOf("/api/v1/dialogues/{id}/turns/{turn}/events", { id: dialogue, turn: id });
    rest = followEvents(address, {
      lastEventId,
      onEvent: ({ id: number, event }) => see(event.event, event.data, number ?? undefined),
      onState: (state, { error }) => {
        if (state === "open") handlers.onDropped(false);
        if (state === "waiting") handlers.onDropped(true);
        if (state === "ended") end(null);
        if (state === "failed") end(error ?? null);
      },
    });
  }

  async function post(): Promise<void> {
    const parser = createParser({
      onEvent: ({ id, event, data }) => see(event ?? "message", JSON.parse(data), id),
    });
    const response = await send(addressOf("/api/v1/dialogues/{id}/input", { id: dialogue }), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ ...input, request_id: word, stream: true }),
      signal: stop.signal,
    });
    handlers.onDropped(false);
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    for (;;) {
      const part = await reader?.read();
      if (part === undefined || part.done) return;
      parser.feed(decoder.decode(part.value, { stream: true }));
    }
  }

  async function run(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      try {
        await post();
      } catch (error) {
        if (stop.signal.aborted || isAbort(error)) return;
        if (error instanceof ApiError && !error.isTemporary) {
          end(error);
          return;
        }
        if (tries === TRIES - 1 && turn === null) {
          end(error instanceof ApiError ? error : new ApiError(0, { code: "unreachable" }));
          return;
        }
      }
      if (over || stop.signal.aborted) return;
      handlers.onDropped(true);
      if (turn !== null) {
        follow(turn);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
    end(new ApiError(0, { code: "unreachable" }));
  }

  void run();
  return {
    close: () => {
      over = true;
      stop.abort();
      rest?.close();
    },
  };
}
