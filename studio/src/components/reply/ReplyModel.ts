import { type EventData, type Finding, isEvent, type TypedEvent } from "../../api/types.ts";

/** Part of the thinking. Thoughts after the start of an answer belong to no phase and have no title. */
export type Phase = { readonly id: number | null; readonly title: string | null; text: string };

type Calls = { readonly call_id: string; readonly name: string }[];

/** Outcome of a tool call. */
export type ToolRun = {
  readonly callId: string;
  readonly name: string;
  readonly args: unknown;
  state: "called" | "running" | "done" | "failed";
  result: unknown;
  elapsedMs: number | null;
};

/** Part of an answer, in stream order. `index` is that of its first event. */
export type Block =
  | { kind: "text"; index: number; text: string }
  | { kind: "tool"; index: number; run: ToolRun }
  | { kind: "event"; index: number; event: TypedEvent };

/** State of a waiting message, with the calls that need an answer. */
export type Waiting = { readonly state: string; readonly calls: Calls };

const SHOWN = new Set([
  "choice", "status_bar", "details", "ui_component", "media", "element", "plan", "state_update", "form", "picture",
  "skill", "exit_decision",
]);

/** Reply built from its events, one after the other. */
export class ReplyModel {
  readonly phases: Phase[] = [];
  readonly blocks: Block[] = [];
  readonly findings: Finding[] = [];
  readonly notices: EventData<"notice">[] = [];
  readonly #runs = new Map<string, ToolRun>();
  /** Set while the last phase is a thought after the start of the answer that may continue. */
  #thoughtOpen = false;
  summary = "";
  draft = "";
  queries: readonly string[] = [];
  /** Raw text, where the protocol exposes it. */
  raw = "";
  thinking = false;
  reasks = 0;
  waiting: Waiting | null = null;
  completed: EventData<"completed"> | null = null;
  error: EventData<"error"> | null = null;

  static of(events: readonly TypedEvent[]): ReplyModel {
    const model = new ReplyModel();
    events.forEach((event, index) => model.add(event, index));
    return model;
  }

  get answer(): string {
    return this.blocks.map((block) => (block.kind === "text" ? block.text : "")).join("");
  }

  add(event: TypedEvent, index: number): void {
    if (event.event !== "aside" && event.event !== "finding") this.#thoughtOpen = false;
    if (isEvent(event, "status")) this.#status(event.data);
    else if (isEvent(event, "serp_summary")) this.summary = event.data.text;
    else if (isEvent(event, "thinking_start")) this.thinking = true;
    else if (isEvent(event, "phase_start")) this.phases.push({ id: event.data.id, title: event.data.title, text: "" });
    else if (isEvent(event, "phase_delta")) this.#phase(event.data);
    else if (isEvent(event, "thinking_end")) this.thinking = false;
    else if (isEvent(event, "draft_delta")) this.draft += event.data.text;
    else if (isEvent(event, "final_delta")) this.#text(event.data.text, index);
    else if (isEvent(event, "serp_queries")) this.queries = event.data.queries;
    else if (isEvent(event, "content_delta")) this.raw += event.data.delta;
    else if (isEvent(event, "aside")) this.#aside(event.data);
    else if (isEvent(event, "finding")) this.findings.push(event.data as unknown as Finding);
    else if (isEvent(event, "notice")) this.notices.push(event.data);
    else if (isEvent(event, "tool_call")) this.#call(event.data, index);
    else if (isEvent(event, "tool_start")) this.#change(event.data.call_id, { state: "running" });
    else if (isEvent(event, "tool_result")) this.#result(event.data);
    else if (isEvent(event, "completed")) this.#end(() => (this.completed = event.data));
    else if (isEvent(event, "error")) this.#end(() => (this.error = event.data));
    else if (SHOWN.has(event.event)) this.blocks.push({ kind: "event", index, event });
  }

  #status({ state, calls }: EventData<"status">): void {
    if (state === "reasking") this.reasks += 1;
    const waits = state === "awaiting_tool_results" || state === "awaiting_confirmation";
    this.waiting = waits ? { state, calls: calls ?? [] } : null;
  }

  #phase({ id, text }: EventData<"phase_delta">): void {
    const phase = this.phases.findLast((one) => one.id === id);
    if (phase !== undefined) phase.text += text;
  }

  /** Thoughts arrive in pieces. Comments are not displayed (F-150); they are listed among the events. */
  #aside({ kind, text }: EventData<"aside">): void {
    if (kind !== "thought") return;
    const last = this.phases.at(-1);
    if (this.#thoughtOpen && last !== undefined) last.text += text;
    else this.phases.push({ id: null, title: null, text });
    this.#thoughtOpen = true;
  }

  #text(text: string, index: number): void {
    const last = this.blocks.at(-1);
    if (last?.kind === "text") last.text += text;
    else this.blocks.push({ kind: "text", index, text });
  }

  #call({ call_id, name, args }: EventData<"tool_call">, index: number): void {
    const run: ToolRun = { callId: call_id, name, args, state: "called", result: null, elapsedMs: null };
    this.#runs.set(call_id, run);
    this.blocks.push({ kind: "tool", index, run });
  }

  #change(callId: string, change: Partial<ToolRun>): void {
    const run = this.#runs.get(callId);
    if (run !== undefined) Object.assign(run, change);
  }

  #result({ call_id, ok, result, error, elapsed_ms }: EventData<"tool_result">): void {
    this.#change(call_id, { state: ok ? "done" : "failed", result: ok ? result : error, elapsedMs: elapsed_ms });
    const waiting = this.waiting;
    if (waiting === null) return;
    const calls = waiting.calls.filter((call) => call.call_id !== call_id);
    this.waiting = calls.length === 0 ? null : { ...waiting, calls };
  }

  #end(keep: () => void): void {
    this.waiting = null;
    this.thinking = false;
    keep();
  }

  /** Arguments of a call that ran. */
  argsOf(callId: string): unknown {
    return this.#runs.get(callId)?.args;
  }
}
