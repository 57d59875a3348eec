/** `Pipeline`: chunks of one reply in, events out. */

import engine from "#engine";

import { type Chunk, encodeText, isWellFormed, splitHalf, toPieces } from "./chunks.js";
import { checkReason, type FinishReason, checkSettings, Handle, toEvents } from "./engine.js";
import { StateError } from "./errors.js";
import type { Options } from "./options.js";
import type { State } from "./state.js";
import type { Event, Finding, Outcome, ToolCall } from "./types.js";

/** Name of a dialect; `auto` finds out how the model writes. */
export type Dialect =
  | "auto"
  | "thinkingml"
  | "jsonseq"
  | "aiplan"
  | "filament"
  | "ai_say"
  | "toolcall"
  | "json_value"
  | "plain";

export type { FinishReason } from "./engine.js";

/** Settings of a pipeline, with the options of the reading by their public names. */
export interface PipelineSettings extends Options {
  /** Dialect of the reply; default `auto`. */
  dialect?: Dialect;
  /** Also events beside the contract, such as `tool_call`; default true. */
  extensions?: boolean;
  /** Also findings as events; default false. */
  findings?: boolean;
  /** State that operations of the reply are applied to. */
  state?: State;
  /** Id of the reply in the history of the state. */
  message?: string;
}

/** End of a reply. */
interface EndOfReply {
  events: Event[];
  error?: { message: string };
}

/** Pairs of settings that are not options of the reading. */
type Separated = Required<Omit<PipelineSettings, keyof Options | "state">> & { options: Options };

/** Separates settings of a pipeline from the options of its reading. */
function separate(settings: PipelineSettings): Separated & { state?: State } {
  const { dialect = "auto", extensions = true, findings = false, state, message = "", ...options } = settings;
  return { dialect, extensions, findings, message, options, state };
}

/**
 * Reader of one reply.
 *
 * @example
 * const pipeline = new Pipeline({ dialect: "plain" });
 * pipeline.push("<think>2 + 2</think>It is 4."); // [..., { event: "final_delta", data: { text: "It is 4." } }]
 * pipeline.finish(); // [{ event: "final_end", data: {} }, { event: "completed", ... }]
 */
export class Pipeline {
  #handle: Handle;
  /** First half of a character whose second half comes with the next text. */
  #half = "";
  /** The same of the reasoning. */
  #reasoningHalf = "";

  /** @throws TambourError if the dialect or an option is unknown, or an option does not accept its value. */
  constructor(settings: PipelineSettings = {}) {
    if (settings instanceof Handle) {
      // Made by `nextReply`.
      this.#handle = settings;
      return;
    }
    checkSettings(settings);
    const { state, ...rest } = separate(settings);
    this.#handle = state === undefined ? Handle.open(engine, "pipeline", rest) : openAttached(state, rest);
  }

  /** Reads the next chunk, cut anywhere; returns the events. Nothing happens after the end. */
  push(chunk: Chunk): Event[] {
    const pieces = toPieces(chunk);
    const [first = ""] = pieces;
    return pieces.length > 1 ? pieces.flatMap((piece) => this.#pushPiece(piece)) : this.#pushPiece(first);
  }

  #pushPiece(chunk: Chunk): Event[] {
    if (typeof chunk !== "string") return [...this.#flush(), ...toEvents(this.#handle.pushBytes(chunk))];
    const before = this.#flushReasoning();
    const [text, half] = splitHalf(this.#half + chunk);
    this.#half = half;
    if (text === "") return before;
    const read = isWellFormed(text) ? this.#handle.pushText(text) : this.#handle.pushBytes(encodeText(text));
    return before.length === 0 ? toEvents(read) : [...before, ...toEvents(read)];
  }

  /** Reads reasoning that the service sent apart from the reply. */
  pushReasoning(text: string): Event[] {
    const before = this.#flushText();
    const [whole, half] = splitHalf(this.#reasoningHalf + String(text));
    this.#reasoningHalf = half;
    return whole === "" ? before : [...before, ...toEvents(this.#handle.call("push_reasoning", whole))];
  }

  /**
   * Takes a complete call that the service sent apart from the reply, with its arguments as JSON text. At the end of
   * the reply it becomes a `tool_call`, if it fits a tool of the option `tools`.
   */
  pushCall(name: string, parameters: string): Event[] {
    return [
      ...this.#flush(),
      ...toEvents(this.#handle.call("push_call", { name: String(name), arguments: String(parameters) })),
    ];
  }

  /**
   * Ends the reply. `incomplete` says that part of it was lost.
   *
   * @throws StateError, with the events, if the attached state could not take the updates.
   */
  finish(reason: FinishReason = "stop", { incomplete = false }: { incomplete?: boolean } = {}): Event[] {
    checkReason(reason);
    return this.#end("finish", { reason, incomplete });
  }

  /** Ends a reply that broke off; the last event is an `error`. */
  fail(message: string, { code = "upstream_failed", retryable = true } = {}): Event[] {
    return this.#end("fail", { message: String(message), code, retryable });
  }

  /**
   * Ends a stream that `finish` left open for the results of calls (option `tool_loop`), when no further reply
   * follows. Otherwise does nothing.
   */
  abandon(reason: FinishReason = "stop"): Event[] {
    checkReason(reason);
    return toEvents(this.#handle.call("abandon", { reason, incomplete: false }));
  }

  /**
   * Puts an extension event into the stream that does not come from the reply, such as a `tool_result`. Returns the
   * events; it cannot break their order.
   */
  insert(event: Event): Event[] {
    return [...this.#flush(), ...toEvents(this.#handle.call("insert", { event: event.event, data: event.data }))];
  }

  /** Creates the pipeline of the next reply of a tool loop, which continues the same stream. */
  nextReply(settings: Omit<PipelineSettings, "extensions" | "findings" | "state" | "message"> = {}): Pipeline {
    const { dialect, options } = separate(settings);
    return new Pipeline(this.#handle.openNext("next_reply", { dialect, options }) as object);
  }

  /** Sets the token counts for `completed.usage`: any JSON value. */
  setUsage(usage: unknown): void {
    this.#handle.call("set_usage", usage ?? null);
  }

  /** Lets the memory go before the garbage collector does. The pipeline cannot be used any more. */
  close(): void {
    this.#handle.close();
  }

  /** Findings so far, in order. */
  get findings(): Finding[] {
    return this.#handle.call("findings") as Finding[];
  }

  /** Calls, notices, decisions and updates of the reply so far. */
  get outcome(): Outcome {
    return this.#handle.call("outcome") as Outcome;
  }

  /** Calls whose results a tool loop waits for, after `finish`. */
  get pendingCalls(): ToolCall[] {
    return this.#handle.call("pending_calls") as ToolCall[];
  }

  /** Name of the dialect; `auto` until it is detected. */
  get dialect(): Dialect {
    return this.#handle.call("dialect") as Dialect;
  }

  /** Number of bytes held back until what follows decides what they are. */
  get heldBytes(): number {
    return this.#handle.call("held_bytes") as number;
  }

  /** Reads half a character that nothing completed. */
  #flush(): Event[] {
    return [...this.#flushReasoning(), ...this.#flushText()];
  }

  #flushReasoning(): Event[] {
    const half = this.#reasoningHalf;
    this.#reasoningHalf = "";
    return half === "" ? [] : toEvents(this.#handle.call("push_reasoning", half));
  }

  #flushText(): Event[] {
    if (this.#half === "") return [];
    const bytes = encodeText(this.#half);
    this.#half = "";
    return toEvents(this.#handle.pushBytes(bytes));
  }

  #end(method: string, parameters: unknown): Event[] {
    const flushed = this.#flush();
    const end = this.#handle.call(method, parameters) as EndOfReply;
    const all = [...flushed, ...end.events];
    if (end.error !== undefined) throw new StateError(end.error.message, all);
    return all;
  }
}

/** Opens the session of a pipeline that changes a state; `state.ts` sets it, so that the modules make no circle. */
let openAttached: (state: State, parameters: unknown) => Handle = () => {
  throw new TypeError("`state` must be a State");
};

/** Sets how pipelines of states are opened. */
export function setStateOpener(opener: typeof openAttached): void {
  openAttached = opener;
}
