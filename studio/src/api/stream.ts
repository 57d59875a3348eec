import { createParser } from "eventsource-parser";
import { send } from "./client.ts";
import { ApiError, isAbort, unreachable } from "./errors.ts";
import { type TypedEvent } from "./types.ts";

export type StreamState = "connecting" | "open" | "waiting" | "ended" | "failed";

/** Event as received. */
export type Received = {
  /** Number in the log of the message; `null` for an event outside the log. */
  readonly id: string | null;
  /** Typed event; its name may be unknown to the schema, so check it. */
  readonly event: TypedEvent;
  /** Arrival time, from `performance.now()`. */
  readonly at: number;
};

export type StreamOptions = {
  onEvent: (received: Received) => void;
  /** Called on each change; `retryAt` is the `Date.now()` time of the next try after a drop. */
  onState?: (state: StreamState, more: { retryAt?: number; error?: ApiError }) => void;
  /** Number of the last event received. */
  lastEventId?: string | undefined;
  /** Longest silence before a connection counts as dropped. */
  silenceMs?: number;
  /** Delays before each further try; the last one repeats. */
  backoffMs?: readonly number[];
  /** Tries in a row without an event before the stream fails. */
  maxTries?: number;
};

export type Stream = {
  readonly state: () => StreamState;
  readonly lastEventId: () => string | undefined;
  /** Tries again at once while waiting or after a failure. */
  readonly retry: () => void;
  readonly close: () => void;
};

const SILENCE_MS = 45_000;
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15_000];
/** Events that end a stream. */
const LAST = new Set(["completed", "error"]);

/**
 * Follows an event stream of the server to its end.
 *
 * A connection that drops, or is silent for too long, resumes after the last event received; no event is lost or
 * repeated. Ends with `completed` or `error`, with `close`, or with a refusal that no retry can fix.
 */
export function followEvents(address: string, options: StreamOptions): Stream {
  const { onEvent, onState, silenceMs = SILENCE_MS, backoffMs = BACKOFF_MS, maxTries = 20 } = options;
  let lastEventId = options.lastEventId;
  let state: StreamState = "connecting";
  let tries = 0;
  let connection = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function become(next: StreamState, more: { retryAt?: number; error?: ApiError } = {}): void {
    state = next;
    onState?.(next, more);
  }

  function end(next: "ended" | "failed", error?: ApiError): void {
    clearTimeout(timer);
    become(next, error === undefined ? {} : { error });
    connection.abort();
  }

  function drop(error: ApiError): void {
    if (state === "ended" || state === "failed") return;
    tries += 1;
    if (!error.isTemporary || tries > maxTries) {
      end("failed", error);
      return;
    }
    const wait = backoffMs[Math.min(tries, backoffMs.length) - 1] ?? 0;
    become("waiting", { retryAt: Date.now() + wait, error });
    timer = setTimeout(() => void connect(), wait);
  }

  async function connect(): Promise<void> {
    clearTimeout(timer);
    const own = new AbortController();
    connection = own;
    become("connecting");
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    let silent = false;
    const wasSilent = () => silent;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => {
        silent = true;
        own.abort();
      }, silenceMs);
    };
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        if (own.signal.aborted) return;
        let value: unknown;
        try {
          value = JSON.parse(data);
        } catch {
          return;
        }
        tries = 0;
        if (id !== undefined) lastEventId = id;
        const name = event ?? "message";
        onEvent({ id: id ?? null, event: { event: name, data: value } as TypedEvent, at: performance.now() });
        if (LAST.has(name)) end("ended");
      },
    });
    try {
      watch();
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (lastEventId !== undefined) headers["last-event-id"] = lastEventId;
      const response = await send(address, { headers, signal: own.signal });
      become("open");
      const reader = response.body?.getReader();
      own.signal.addEventListener("abort", () => void reader?.cancel().catch(() => undefined));
      const decoder = new TextDecoder();
      for (;;) {
        const part = await reader?.read();
        if (part === undefined || part.done) break;
        watch();
        parser.feed(decoder.decode(part.value, { stream: true }));
      }
      if (own.signal.aborted && !wasSilent()) return;
      drop(unreachable(new Error("the stream stopped before its end")));
    } catch (error) {
      // Ended on purpose: by its last event, or by its caller.
      if (own.signal.aborted && !wasSilent()) return;
      if (error instanceof ApiError) drop(error);
      else drop(unreachable(isAbort(error) ? new Error("the stream was silent for too long") : error));
    } finally {
      clearTimeout(watchdog);
    }
  }

  void connect();
  return {
    state: () => state,
    lastEventId: () => lastEventId,
    retry: () => {
      if (state !== "waiting" && state !== "failed") return;
      tries = 0;
      void connect();
    },
    close: () => {
      if (state !== "ended" && state !== "failed") end("ended");
    },
  };
}
