/**
 * Streams of the package `openai`, and of services with its interface, without depending on it: `@tambour/core/openai`.
 *
 * Chunks of chat completions and events of responses are read by their fields: text goes to the reply, reasoning apart
 * from it, complete tool calls to `tool_call`, and the finish reason decides whether the reply counts as truncated.
 *
 * @example
 * const stream = await client.chat.completions.create({ model, messages, stream: true });
 * for await (const event of decode(stream, { dialect: "plain" })) console.log(event);
 */

import { CallCollector, get, getText } from "./calls.js";
import { checkSource, isAsync } from "./chunks.js";
import type { Options } from "./options.js";
import { type FinishReason, Pipeline, type PipelineSettings } from "./pipeline.js";
import { type Adapter, AsyncReader, SyncReader } from "./readers.js";
import type { Event } from "./types.js";

/** Finish reasons of chat completions; another one is a normal end. */
const REASONS = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["content_filter", "content_filter"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
]);

/** Passes chunks of chat completions, or events of responses, to a pipeline. Only the first choice is read. */
class OpenAiAdapter implements Adapter<unknown> {
  #calls: CallCollector;
  /** Finish reason; `null` before it has come. */
  #reason: FinishReason = null;
  #failure: { message: string; code: string } | undefined;
  #hasCall = false;

  constructor(options: Options) {
    this.#calls = new CallCollector(options);
  }

  push(pipeline: Pipeline, item: unknown): Event[] {
    if (typeof item === "string" || ArrayBuffer.isView(item)) {
      throw new TypeError("expected chunks of a stream, not text; was `stream: true` left out?");
    }
    const kind = get(item, "type");
    const isEvent = typeof kind === "string" && get(item, "choices") === undefined;
    return isEvent ? this.#pushEvent(pipeline, kind, item) : this.#pushChunk(pipeline, item);
  }

  #pushChunk(pipeline: Pipeline, chunk: unknown): Event[] {
    const events: Event[][] = [];
    setUsage(pipeline, get(chunk, "usage"));
    const error = get(chunk, "error");
    if (error !== undefined && error !== null) this.#fail(error);
    const choices = get(chunk, "choices");
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (![undefined, null, 0].includes(get(choice, "index") as number | undefined)) continue;
      const delta = get(choice, "delta");
      // Services name the field of reasoning in two ways.
      const reasoning = getText(delta, "reasoning_content") || getText(delta, "reasoning");
      if (reasoning !== "") events.push(pipeline.pushReasoning(reasoning));
      for (const name of ["content", "refusal"]) {
        const text = getText(delta, name);
        if (text !== "") events.push(pipeline.push(text));
      }
      const calls = get(delta, "tool_calls");
      for (const call of Array.isArray(calls) ? calls : []) this.#addCall(call, get(call, "function"));
      // The older field, from before `tool_calls` existed: at most one call, without an id.
      const older = get(delta, "function_call");
      if (older !== undefined && older !== null) this.#addCall(undefined, older);
      // Some services write an empty reason into each chunk.
      const reason = getText(choice, "finish_reason");
      if (reason !== "") this.#reason = REASONS.get(reason) ?? "stop";
    }
    return events.flat();
  }

  #addCall(call: unknown, definition: unknown): void {
    const [index, id] = [get(call, "index"), getText(call, "id")];
    this.#calls.add(index, id, getText(definition, "name"), get(definition, "arguments"));
  }

  #pushEvent(pipeline: Pipeline, kind: string, event: unknown): Event[] {
    switch (kind) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return pipeline.push(getText(event, "delta"));
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        return pipeline.pushReasoning(getText(event, "delta"));
      case "response.output_item.done": {
        const item = get(event, "item");
        if (get(item, "type") !== "function_call") return [];
        this.#hasCall = true;
        return pipeline.pushCall(getText(item, "name"), getText(item, "arguments"));
      }
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        this.#end(pipeline, kind, get(event, "response"));
        return [];
      case "error":
        this.#fail(event);
        return [];
      default:
        return [];
    }
  }

  #end(pipeline: Pipeline, kind: string, response: unknown): void {
    setUsage(pipeline, get(response, "usage"));
    if (kind === "response.completed") {
      this.#reason = this.#hasCall ? "tool_calls" : "stop";
    } else if (kind === "response.incomplete") {
      const reason = get(get(response, "incomplete_details"), "reason");
      this.#reason = reason === "content_filter" ? "content_filter" : "length";
    } else {
      this.#fail(get(response, "error"));
    }
  }

  #fail(error: unknown): void {
    this.#failure = {
      message: getText(error, "message") || "the service reported an error",
      code: getText(error, "code") || "upstream_failed",
    };
  }

  finish(pipeline: Pipeline): Event[] {
    if (this.#failure !== undefined) return pipeline.fail(this.#failure.message, { code: this.#failure.code });
    // A call of a stream that broke off may be cut in its arguments; the pipeline refuses it then.
    const events = this.#calls.pushAll(pipeline);
    return [...events, ...pipeline.finish(this.#reason)];
  }
}

/** Sets the token counts; those of an unknown form are left out. */
function setUsage(pipeline: Pipeline, usage: unknown): void {
  if (typeof usage !== "object" || usage === null) return;
  try {
    pipeline.setUsage(usage);
  } catch {
    // Not JSON.
  }
}

/**
 * Reads a stream of `client.chat.completions.create({ stream: true })` or `client.responses.create({ stream: true })`.
 *
 * Settings are those of `decode`; `tools` may be the list that the request had. A stream that ends without a finish
 * reason is a truncated reply: nothing in it acts.
 */
export function decode(
  stream: AsyncIterable<unknown> | ReadableStream<unknown>,
  settings?: PipelineSettings,
): AsyncReader<unknown>;
export function decode(stream: Iterable<unknown>, settings?: PipelineSettings): SyncReader<unknown>;
export function decode(
  stream: Iterable<unknown> | AsyncIterable<unknown> | ReadableStream<unknown>,
  settings: PipelineSettings = {},
): SyncReader<unknown> | AsyncReader<unknown> {
  checkSource(stream);
  const pipeline = new Pipeline(settings);
  const adapter = new OpenAiAdapter(settings);
  if (isAsync(stream)) return new AsyncReader(pipeline, adapter, stream);
  return new SyncReader(pipeline, adapter, stream);
}
