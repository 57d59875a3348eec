/**
 * Middleware for language models of the AI SDK (package `ai`, version 7), without depending on it:
 * `@tambour/core/ai-sdk`.
 *
 * The reply of any model is read by a pipeline, and what the AI SDK sees is the answer as text, the thinking as
 * reasoning, and the calls that may run as tool calls. Where the AI SDK asks for JSON (`Output.object`), the reply is
 * read as a JSON value of that schema, with repairs; where it sends tools, as `toolcall`, unless `dialect` is set.
 *
 * @example
 * const model = wrapLanguageModel({ model: openai("local"), middleware: tambourMiddleware() });
 */

import { getText } from "./calls.js";
import { DecodeError } from "./errors.js";
import type { Dialect, FinishReason } from "./pipeline.js";
import { Pipeline, type PipelineSettings } from "./pipeline.js";
import type { Event, Finding, Outcome, ToolCall } from "./types.js";

/** Settings of the middleware, with the options of the reading by their public names. */
export interface MiddlewareSettings extends Omit<PipelineSettings, "extensions" | "findings" | "state" | "message"> {
  /** Called at the end of each reply, with what is known about it. */
  onEnd?: (outcome: Outcome, findings: Finding[]) => void;
}

/** Part of a stream, or of the content of a reply. */
interface Part {
  type: string;
}

/** Parameters of a call of a model, as far as they are read. */
interface CallParameters {
  readonly responseFormat?: { readonly type: string; readonly schema?: unknown } | undefined;
  readonly tools?: readonly object[] | undefined;
}

/** Reason why a reply ended, in the form of the AI SDK. */
interface SdkFinishReason {
  unified: string;
  raw: string | undefined;
}

/** Reply that a model returns at once. */
interface Generated {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- parts of the AI SDK, whose types it owns
  content: any[];
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  finishReason: any;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  providerMetadata?: any;
}

/** Reply that a model returns as a stream. */
interface Streamed {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- parts of the AI SDK, whose types it owns
  stream: ReadableStream<any>;
}

/** Middleware of the AI SDK. */
export interface Middleware {
  readonly specificationVersion: "v4";
  wrapGenerate: <Result extends Generated>(call: {
    doGenerate: () => PromiseLike<Result>;
    params: CallParameters;
  }) => Promise<Result>;
  wrapStream: <Result extends Streamed>(call: {
    doStream: () => PromiseLike<Result>;
    params: CallParameters;
  }) => Promise<Result>;
}

/** Finish reasons of the AI SDK; of another one nothing is known. */
const REASONS = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["length", "length"],
  ["content-filter", "content_filter"],
  ["tool-calls", "tool_calls"],
]);

/** Makes a middleware that repairs and checks the replies of a model in place. */
export function tambourMiddleware(settings: MiddlewareSettings = {}): Middleware {
  // Settings that are wrong are refused here, not at the first request.
  new Reply(settings, {}).close();
  return {
    specificationVersion: "v4",
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      const reply = new Reply(settings, params);
      const parts = result.content.flatMap((part: Part) => reply.read(part));
      const end = reply.end(result.finishReason as SdkFinishReason);
      if (reply.error !== undefined) throw reply.error;
      return {
        ...result,
        content: joinParts([...parts, ...end.parts]),
        finishReason: end.finishReason,
        providerMetadata: { ...(result.providerMetadata as object | undefined), ...end.metadata },
      };
    },
    async wrapStream({ doStream, params }) {
      const result = await doStream();
      const reply = new Reply(settings, params);
      const stream = result.stream.pipeThrough(
        new TransformStream<Part, Part>({
          transform(part, controller) {
            for (const read of reply.read(part)) controller.enqueue(read);
          },
          flush(controller) {
            // A stream without an end is a truncated reply.
            if (!reply.hasEnded) for (const part of reply.end(undefined).parts) controller.enqueue(part);
          },
        }),
      );
      return { ...result, stream };
    },
  };
}

/** End of a reply. */
interface ReplyEnd {
  parts: Part[];
  finishReason: SdkFinishReason;
  metadata: object;
}

/** Reader of one reply: parts of the model in, parts for the AI SDK out. */
class Reply {
  readonly #pipeline: Pipeline;
  readonly #onEnd: MiddlewareSettings["onEnd"];
  /** Ids that the service gave to calls, by the name of the tool, in order. */
  readonly #ids = new Map<string, string[]>();
  /** Type and id of the open block of text. */
  #block: { type: "text" | "reasoning"; id: string } | undefined;
  #blocks = 0;
  #calls = 0;
  /** Failure that ended the reply. */
  error: Error | undefined;
  hasEnded = false;

  constructor(settings: MiddlewareSettings, params: CallParameters) {
    const { onEnd, ...rest } = settings;
    this.#onEnd = onEnd;
    const all: PipelineSettings = { ...rest };
    if (params.responseFormat?.type === "json" && settings.dialect === undefined) {
      all.dialect = "json_value" satisfies Dialect;
      const { schema } = params.responseFormat;
      if (schema !== undefined) all["json_value.schema"] = toPlain(schema);
    }
    const tools = params.tools?.filter((tool) => getText(tool, "type") === "function") ?? [];
    if (tools.length > 0) {
      all.dialect ??= "toolcall";
      all.tools ??= toPlain(tools);
      // The AI SDK runs the calls and asks again, so a reply of calls alone needs no answer.
      all.tool_loop = true;
    }
    this.#pipeline = new Pipeline(all);
  }

  close(): void {
    this.#pipeline.close();
  }

  /** Reads a part of the model's stream or content; returns the parts that take its place. */
  read(part: Part): Part[] {
    const fields = part as Part & { text?: string; delta?: string; error?: unknown };
    switch (part.type) {
      case "text":
      case "text-delta":
        return this.#write(this.#pipeline.push(getText(part, part.type === "text" ? "text" : "delta")));
      case "reasoning":
      case "reasoning-delta": {
        const text = getText(part, part.type === "reasoning" ? "text" : "delta");
        return this.#write(this.#pipeline.pushReasoning(text));
      }
      case "tool-call":
        return this.#readCall(part);
      case "text-start":
      case "text-end":
      case "reasoning-start":
      case "reasoning-end":
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-end":
        return [];
      case "error": {
        const message = fields.error instanceof Error ? fields.error.message : String(fields.error);
        this.hasEnded = true;
        return [...this.#write(this.#pipeline.fail(message), false), ...this.#closeBlock(), part];
      }
      case "finish": {
        if (this.hasEnded) return [part];
        const { finishReason, providerMetadata } = part as Part & {
          finishReason: SdkFinishReason;
          providerMetadata?: object;
        };
        const end = this.end(finishReason);
        const metadata = { ...providerMetadata, ...end.metadata };
        return [...end.parts, { ...part, finishReason: end.finishReason, providerMetadata: metadata } as Part];
      }
      default:
        return [part];
    }
  }

  #readCall(part: Part): Part[] {
    // A call that the service has carried out itself is over.
    if ((part as { providerExecuted?: boolean }).providerExecuted === true) return [part];
    const name = getText(part, "toolName");
    const ids = this.#ids.get(name) ?? [];
    this.#ids.set(name, [...ids, getText(part, "toolCallId")]);
    return this.#write(this.#pipeline.pushCall(name, getText(part, "input")));
  }

  /** Ends the reply; without a reason it counts as truncated. */
  end(reason: SdkFinishReason | undefined): ReplyEnd {
    this.hasEnded = true;
    const { unified = "other", raw = undefined } = reason ?? {};
    const events =
      unified === "error"
        ? this.#pipeline.fail("the service reported an error")
        : this.#pipeline.finish(REASONS.get(unified) ?? null);
    const parts = [...this.#write(events), ...this.#closeBlock()];
    const { outcome, findings } = this.#pipeline;
    this.#onEnd?.(outcome, findings);
    const known = this.#calls > 0 ? "tool-calls" : unified === "tool-calls" ? "stop" : unified;
    const finishReason = { unified: this.error === undefined ? known : "error", raw };
    const metadata = { tambour: toPlain({ ...outcome.metadata, findings }) };
    return { parts, finishReason, metadata };
  }

  #write(events: Event[], showsErrors = true): Part[] {
    return events.flatMap((event): Part[] => {
      switch (event.event) {
        case "final_delta":
          return this.#writeText("text", event.data.text);
        case "phase_start":
          return this.#openBlock("reasoning", { tambour: { title: event.data.title } });
        case "phase_delta":
        case "draft_delta":
          return this.#writeText("reasoning", event.data.text);
        case "tool_call":
          return [...this.#closeBlock(), this.#writeCall(event.data)];
        case "error":
          this.error = new DecodeError(event.data.message, event.data.code, this.#pipeline.findings);
          return showsErrors ? [...this.#closeBlock(), { type: "error", error: this.error } as Part] : [];
        default:
          return [];
      }
    });
  }

  #writeCall(call: ToolCall): Part {
    const toolCallId = this.#ids.get(call.name)?.shift() ?? `call_${Math.random().toString(36).slice(2)}`;
    this.#calls += 1;
    const input = JSON.stringify(call.args);
    return { type: "tool-call", toolCallId, toolName: call.name, input } as Part;
  }

  #writeText(type: "text" | "reasoning", delta: string): Part[] {
    const opening = this.#block?.type === type ? [] : this.#openBlock(type);
    return [...opening, { type: `${type}-delta`, id: this.#block?.id, delta } as Part];
  }

  #openBlock(type: "text" | "reasoning", providerMetadata?: object): Part[] {
    const closing = this.#closeBlock();
    this.#block = { type, id: `tambour-${++this.#blocks}` };
    return [...closing, { type: `${type}-start`, id: this.#block.id, providerMetadata } as Part];
  }

  #closeBlock(): Part[] {
    if (this.#block === undefined) return [];
    const { type, id } = this.#block;
    this.#block = undefined;
    return [{ type: `${type}-end`, id } as Part];
  }
}

/** Joins the parts of blocks to whole ones. */
function joinParts(parts: Part[]): Part[] {
  const joined: Part[] = [];
  let open: { type: string; text: string } | undefined;
  for (const part of parts) {
    const [type, step] = part.type.split("-");
    if (type !== "text" && type !== "reasoning") {
      joined.push(part);
    } else if (step === "start") {
      const { providerMetadata } = part as Part & { providerMetadata?: object };
      open = { type, text: "", ...(providerMetadata === undefined ? {} : { providerMetadata }) };
      joined.push(open);
    } else if (step === "delta" && open !== undefined) {
      open.text += getText(part, "delta");
    }
  }
  return joined;
}

/** JSON form of a value. */
function toPlain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
