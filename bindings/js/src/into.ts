/** `decodeInto`: a reply as a value of a schema, partial while it streams. */

import { type AsyncChunkSource, checkSource, type Chunk, type ChunkSource, isAsync, isChunk, iterate } from "./chunks.js";
import { checkReason, checkSettings } from "./engine.js";
import { DecodeError } from "./errors.js";
import type { Options } from "./options.js";
import { PartialValue } from "./partial.js";
import { type FinishReason, Pipeline } from "./pipeline.js";
import type { Event, Failure, Finding, Outcome } from "./types.js";

/** Schema of a validator such as zod, valibot or arktype: https://standardschema.dev. */
export interface StandardSchema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>;
    readonly types?: { readonly output: T } | undefined;
    readonly jsonSchema?: { readonly input: (settings: { target: string }) => Record<string, unknown> };
  };
}

type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** JSON Schema. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Part of a value: what has come of it. */
export type Partial<T> = T extends readonly (infer Item)[]
  ? Partial<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Partial<T[Key]> }
    : T;

/** Settings of `decodeInto`, with the options of the reading by their public names. */
export interface IntoSettings extends Omit<Options, "json_value.schema"> {
  /** Reason why the reply ended; default `stop`. */
  finish?: FinishReason;
  /** Part of the reply was lost; default false. */
  incomplete?: boolean;
}

/** Value of a reply in progress. */
class Target<T> {
  readonly pipeline: Pipeline;
  readonly partial: PartialValue;
  #answer: string[] = [];
  #failure: Failure | undefined;

  constructor(
    private readonly schema: StandardSchema<T> | JsonSchema,
    private readonly settings: IntoSettings,
  ) {
    const { finish = "stop", incomplete: _, ...options } = settings;
    checkReason(finish);
    const jsonSchema = toJsonSchema(schema);
    const all = jsonSchema === undefined ? options : { ...options, "json_value.schema": jsonSchema };
    this.pipeline = new Pipeline({ ...all, dialect: "json_value", extensions: false });
    const form = jsonSchema?.type;
    this.partial = new PartialValue(form === "object" || form === "array" ? form : undefined, all);
  }

  /** Reads a chunk; returns whether the partial value may have changed. */
  push(chunk: Chunk): boolean {
    const hasChanged = this.#failure === undefined && this.partial.push(chunk);
    this.#keep(this.pipeline.push(chunk));
    return hasChanged;
  }

  /** Ends the reply; returns its value before the validator of the caller has seen it. */
  finish(): unknown {
    const { finish = "stop", incomplete = false } = this.settings;
    this.#keep(this.pipeline.finish(finish, { incomplete }));
    const findings = this.pipeline.findings;
    if (this.#failure !== undefined) {
      throw new DecodeError(this.#failure.message, this.#failure.code, findings);
    }
    try {
      return JSON.parse(this.#answer.join(""));
    } catch (error) {
      throw new DecodeError(String(error), "json_missing", findings);
    }
  }

  /** Validates the value; the result of an asynchronous validator is a promise. */
  validate(value: unknown): T | Promise<T> {
    if (!isStandard(this.schema)) return value as T;
    const result = this.schema["~standard"].validate(value);
    return result instanceof Promise ? result.then((result) => this.#unwrap(result)) : this.#unwrap(result);
  }

  #unwrap(result: StandardResult<T>): T {
    if (result.issues === undefined) return result.value;
    const message = result.issues[0]?.message ?? "the value is not valid";
    throw new DecodeError(message, "schema_invalid", this.pipeline.findings, result.issues);
  }

  #keep(events: Event[]): void {
    for (const event of events) {
      if (event.event === "final_delta") this.#answer.push(event.data.text);
      else if (event.event === "error") this.#failure = event.data;
    }
  }
}

function isStandard<T>(schema: StandardSchema<T> | JsonSchema): schema is StandardSchema<T> {
  return "~standard" in schema;
}

/** Refuses what is neither a Standard Schema nor a JSON Schema. */
function checkSchema(schema: unknown): void {
  const isSchema =
    (typeof schema === "object" && schema !== null) || (typeof schema === "function" && "~standard" in schema);
  if (!isSchema) throw new TypeError("the schema is one of zod, valibot, arktype or the like, or a JSON Schema");
}

/** JSON Schema that the reply is checked against; `undefined` if the validator has none. */
function toJsonSchema<T>(schema: StandardSchema<T> | JsonSchema): JsonSchema | undefined {
  if (!isStandard(schema)) return schema;
  try {
    return schema["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  } catch {
    // A schema that JSON Schema cannot say: the validator alone decides.
    return undefined;
  }
}

/** Shared part of both kinds of partial values. */
abstract class PartialsBase<T> {
  protected readonly target: Target<T>;
  protected outcomeValue: { value: T } | undefined;

  constructor(schema: StandardSchema<T> | JsonSchema, settings: IntoSettings) {
    this.target = new Target(schema, settings);
  }

  /**
   * The valid value, once the reply has ended.
   *
   * @throws DecodeError before that, or if there was none.
   */
  get result(): T {
    if (this.outcomeValue === undefined) {
      throw new DecodeError("the reply has not ended, or it had no valid value", "not_ended");
    }
    return this.outcomeValue.value;
  }

  /** Findings so far, in order. */
  get findings(): Finding[] {
    return this.target.pipeline.findings;
  }

  /** Metadata of the reply so far. */
  get outcome(): Outcome {
    return this.target.pipeline.outcome;
  }
}

/** Iterator of a value as it grows; the last item is the valid value. */
export class Partials<T> extends PartialsBase<T> implements IterableIterator<Partial<T> | T> {
  #values: Generator<Partial<T> | T, undefined>;
  /** Source that nothing has read from yet. */
  #unread: Iterable<Chunk> | undefined;

  constructor(schema: StandardSchema<T> | JsonSchema, chunks: Iterable<Chunk>, settings: IntoSettings) {
    super(schema, settings);
    this.#unread = chunks;
    this.#values = this.#read(chunks);
  }

  *#read(chunks: Iterable<Chunk>): Generator<Partial<T> | T, undefined> {
    for (const chunk of chunks) {
      if (this.target.push(chunk)) yield this.target.partial.value as Partial<T>;
    }
    const value = this.target.validate(this.target.finish());
    if (value instanceof Promise) {
      value.catch(() => undefined);
      throw new TypeError("the schema validates asynchronously: pass the chunks as an asynchronous iterable");
    }
    this.outcomeValue = { value };
    yield value;
    return undefined;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Partial<T> | T, undefined> {
    this.#unread = undefined;
    return this.#values.next();
  }

  /** Stops reading, and closes the source. */
  return(): IteratorResult<Partial<T> | T, undefined> {
    const unread = this.#unread;
    this.#unread = undefined;
    const end = this.#values.return(undefined);
    if (unread !== undefined) unread[Symbol.iterator]().return?.();
    return end;
  }

  /** Reads the rest of the reply; returns the valid value. */
  final(): T {
    while (this.next().done !== true);
    return this.result;
  }
}

/** Asynchronous iterator of a value as it grows; the last item is the valid value. */
export class AsyncPartials<T> extends PartialsBase<T> implements AsyncIterableIterator<Partial<T> | T> {
  #values: AsyncGenerator<Partial<T> | T, undefined>;
  /** Source that nothing has read from yet. */
  #unread: AsyncIterable<Chunk> | undefined;

  constructor(schema: StandardSchema<T> | JsonSchema, chunks: AsyncChunkSource, settings: IntoSettings) {
    super(schema, settings);
    this.#unread = iterate(chunks);
    this.#values = this.#read(this.#unread);
  }

  async *#read(chunks: AsyncIterable<Chunk>): AsyncGenerator<Partial<T> | T, undefined> {
    for await (const chunk of chunks) {
      if (this.target.push(chunk)) yield this.target.partial.value as Awaited<Partial<T>>;
    }
    const value = await this.target.validate(this.target.finish());
    this.outcomeValue = { value };
    yield value;
    return undefined;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Partial<T> | T, undefined>> {
    this.#unread = undefined;
    return this.#values.next();
  }

  /** Stops reading, and closes the source. */
  async return(): Promise<IteratorResult<Partial<T> | T, undefined>> {
    const unread = this.#unread;
    this.#unread = undefined;
    const end = await this.#values.return(undefined);
    if (unread !== undefined) await unread[Symbol.asyncIterator]().return?.();
    return end;
  }

  /** Reads the rest of the reply; returns the valid value. */
  async final(): Promise<T> {
    while ((await this.next()).done !== true);
    return this.result;
  }
}

/**
 * Reads a reply into a value of a schema: one of zod, valibot, arktype and the like, or a JSON Schema.
 *
 * Returns an iterator of the value as it grows. It is the same object each time, changed in place, so that the work is
 * linear in the reply; `structuredClone` keeps a state of it. Text grows while it is written, other scalars come when
 * they are complete. The last item is the valid value, as the validator returns it. A reply without one throws
 * `DecodeError` there.
 *
 * @example
 * const Trip = z.object({ city: z.string(), days: z.number() });
 * for await (const trip of decodeInto(Trip, response.body)) console.log(trip.city, trip.days);
 */
export function decodeInto<T>(
  schema: StandardSchema<T> | JsonSchema,
  chunks: AsyncChunkSource,
  settings?: IntoSettings,
): AsyncPartials<T>;
export function decodeInto<T>(
  schema: StandardSchema<T> | JsonSchema,
  chunks: ChunkSource,
  settings?: IntoSettings,
): Partials<T>;
export function decodeInto<T>(
  schema: StandardSchema<T> | JsonSchema,
  chunks: ChunkSource | AsyncChunkSource,
  settings: IntoSettings = {},
): Partials<T> | AsyncPartials<T> {
  checkSchema(schema);
  checkSource(chunks);
  checkSettings(settings);
  if (isAsync(chunks)) return new AsyncPartials(schema, chunks, settings);
  return new Partials(schema, isChunk(chunks) ? [chunks] : chunks, settings);
}
