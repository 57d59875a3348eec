import { addressOf, api } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { followEvents, type Stream, type StreamState } from "../../api/stream.ts";
import { type Schemas, type TypedEvent } from "../../api/types.ts";
import { ReplyModel } from "../../components/reply/ReplyModel.ts";

export type MessageRecord = Schemas["Record"];

/** Displayed state of a message; a new object after each change. */
export type RunView = {
  readonly model: ReplyModel;
  readonly events: readonly TypedEvent[];
  /** Arrival time of each event, in milliseconds from the request. */
  readonly times: readonly number[];
  /** Intervals without a connection. */
  readonly outages: readonly { readonly from: number; readonly to: number | null }[];
  readonly stream: StreamState;
  readonly retryAt: number | null;
  readonly error: ApiError | null;
  readonly record: MessageRecord | null;
  readonly raw: string;
  /** True if watched from the start, so that times are meaningful. */
  readonly watched: boolean;
  readonly cancelling: boolean;
};

/** Longest and shortest interval between polls of the record of a running message. */
const LOOK_MS = { shortest: 700, longest: 10_000 };
const UNKNOWN = new Set(["heartbeat"]);

/** Watched message: its event stream, and its record for data that the stream lacks. */
export class MessageRun {
  readonly id: string;
  readonly #begun: number;
  readonly #listeners = new Set<() => void>();
  #events: TypedEvent[] = [];
  #times: number[] = [];
  #model = new ReplyModel();
  #outages: { from: number; to: number | null }[] = [];
  #stream: Stream | null = null;
  #state: StreamState = "connecting";
  #retryAt: number | null = null;
  #error: ApiError | null = null;
  #record: MessageRecord | null = null;
  #watched = true;
  #cancelling = false;
  #view: RunView;
  #frame: number | null = null;
  #look: ReturnType<typeof setTimeout> | undefined;

  /** `begun`: time of the request, from `performance.now()`; absent for an older message. */
  constructor(id: string, begun?: number) {
    this.id = id;
    this.#begun = begun ?? performance.now();
    this.#view = this.#made();
  }

  readonly view = (): RunView => this.#view;

  /** Watches while there are listeners. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#stream === null) this.#open();
    return () => {
      this.#listeners.delete(listener);
      // A listener that returns at once, as on another rendering, keeps the connection.
      setTimeout(() => {
        if (this.#listeners.size === 0) this.#close();
      });
    };
  };

  readonly retry = (): void => this.#stream?.retry();

  async cancel(): Promise<void> {
    this.#cancelling = true;
    this.#publish();
    try {
      await api.post("/api/v1/messages/{id}/cancel", undefined, { path: { id: this.id } });
    } catch (error) {
      this.#cancelling = false;
      this.#publish();
      throw error;
    }
  }

  #open(): void {
    const before = this.#stream?.lastEventId();
    this.#stream = followEvents(addressOf("/api/v1/messages/{id}/events", { id: this.id }), {
      lastEventId: before,
      onEvent: ({ event, at }) => this.#take(event, at),
      onState: (state, more) => this.#become(state, more),
    });
    void this.#read();
  }

  #close(): void {
    clearTimeout(this.#look);
    this.#stream?.close();
    this.#stream = null;
    this.#events = [];
    this.#times = [];
    this.#model = new ReplyModel();
  }

  #take(event: TypedEvent, at: number): void {
    if (UNKNOWN.has(event.event)) return;
    if (event.event === "status" && this.#events.length === 0) {
      this.#watched = (event.data as { state: string }).state !== "ended";
    }
    const index = this.#events.length;
    this.#events.push(event);
    this.#times.push(Math.max(0, at - this.#begun));
    this.#model.add(event, index);
    this.#schedule();
  }

  #become(state: StreamState, { retryAt, error }: { retryAt?: number; error?: ApiError }): void {
    const now = performance.now() - this.#begun;
    const open = this.#outages.at(-1);
    if (state === "waiting" && open?.to !== null) this.#outages.push({ from: now, to: null });
    if ((state === "open" || state === "ended") && open?.to === null) open.to = now;
    this.#state = state;
    this.#retryAt = retryAt ?? null;
    this.#error = error ?? null;
    if (state === "ended" || state === "failed") void this.#read();
    this.#publish();
  }

  /** Polls the record: now, and while the message runs, less often the longer it takes. */
  async #read(): Promise<void> {
    clearTimeout(this.#look);
    const asked = performance.now();
    try {
      const { data } = await api.get("/api/v1/messages/{id}", { path: { id: this.id } });
      this.#record = data;
      if (data.status !== "running") this.#cancelling = false;
      this.#publish();
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.#error = error;
      this.#publish();
    }
    if (this.#record !== null && this.#record.status !== "running") return;
    if (this.#stream === null || this.#error?.status === 404) return;
    const wait = Math.min(LOOK_MS.longest, Math.max(LOOK_MS.shortest, 5 * (performance.now() - asked)));
    this.#look = setTimeout(() => void this.#read(), wait);
  }

  /** Notifies listeners at most once a frame. */
  #schedule(): void {
    this.#frame ??= requestAnimationFrame(() => this.#publish());
  }

  #publish(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
    this.#view = this.#made();
    this.#listeners.forEach((listener) => listener());
  }

  #made(): RunView {
    const record = this.#record;
    const legacy = this.#model.raw !== "";
    // In `legacy` only the record has the blocks.
    const events = (record?.events ?? []);
    const shown = legacy && record !== null && record.status !== "running" ? ReplyModel.of(events) : this.#model;
    const ended = record?.findings;
    if (ended !== undefined && record?.status !== "running") {
      shown.findings.splice(0, shown.findings.length, ...ended);
    }
    return {
      model: shown,
      events: this.#events,
      times: this.#times,
      outages: this.#outages,
      stream: this.#state,
      retryAt: this.#retryAt,
      error: this.#error,
      record,
      raw: rawOf(record, this.#model),
      watched: this.#watched,
      cancelling: this.#cancelling,
    };
  }
}

/** Full output of the model: with tools, all turns are one stream, but findings refer to their own reply. */
function rawOf(record: MessageRecord | null, model: ReplyModel): string {
  const reply = record?.reply ?? "";
  return reply.length >= model.raw.length ? reply : model.raw;
}
