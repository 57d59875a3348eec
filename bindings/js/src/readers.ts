/** Iterators of events over a pipeline and a source. */

import { iterate } from "./chunks.js";
import { StateError } from "./errors.js";
import type { Dialect, Pipeline } from "./pipeline.js";
import type { Event, Finding, Outcome } from "./types.js";

/** Passes the items of a source to a pipeline. */
export interface Adapter<Item> {
  /** Reads an item; returns the events. */
  push(pipeline: Pipeline, item: Item): Event[];
  /** Ends the reply after the last item; returns the events. */
  finish(pipeline: Pipeline): Event[];
}

/** Shared part of both kinds of readers. */
abstract class Reader {
  protected constructor(protected readonly pipeline: Pipeline) {}

  /** Findings so far, in order. */
  get findings(): Finding[] {
    return this.pipeline.findings;
  }

  /** Calls, notices, decisions and updates of the reply so far. */
  get outcome(): Outcome {
    return this.pipeline.outcome;
  }

  /** Name of the dialect; `auto` until it is detected. */
  get dialect(): Dialect {
    return this.pipeline.dialect;
  }
}

/** Describes what a source threw, which may be anything. */
function describeThrown(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    return "the source threw an object without a description";
  }
}

/** Ends a reply whose source threw. */
function fail(pipeline: Pipeline, error: unknown): Event[] {
  const message = describeThrown(error);
  try {
    return pipeline.fail(message, { code: "input_failed", retryable: false });
  } catch (conflict) {
    if (conflict instanceof StateError) return conflict.events;
    throw conflict;
  }
}

/** Ends a reply; returns the events, and the error of a state that could not take the updates. */
export function finish<Item>(pipeline: Pipeline, adapter: Adapter<Item>): [Event[], StateError | undefined] {
  try {
    return [adapter.finish(pipeline), undefined];
  } catch (conflict) {
    if (conflict instanceof StateError) return [conflict.events, new StateError(conflict.message)];
    throw conflict;
  }
}

/** Iterator of events whose source is there. `findings` and `outcome` have what is known so far. */
export class SyncReader<Item> extends Reader implements IterableIterator<Event> {
  #events: Generator<Event, undefined>;
  /** Source that nothing has read from yet. */
  #unread: Iterable<Item> | undefined;

  constructor(pipeline: Pipeline, adapter: Adapter<Item>, source: Iterable<Item>) {
    super(pipeline);
    this.#unread = source;
    this.#events = read(pipeline, adapter, source);
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Event, undefined> {
    this.#unread = undefined;
    return this.#events.next();
  }

  /** Stops reading, and closes the source. */
  return(): IteratorResult<Event, undefined> {
    const unread = this.#unread;
    this.#unread = undefined;
    const end = this.#events.return(undefined);
    if (unread !== undefined) unread[Symbol.iterator]().return?.();
    return end;
  }
}

function* read<Item>(
  pipeline: Pipeline,
  adapter: Adapter<Item>,
  source: Iterable<Item>,
): Generator<Event, undefined> {
  const items = source[Symbol.iterator]();
  // A source that threw has closed itself.
  let isOpen = false;
  let hasFailed = false;
  try {
    for (;;) {
      let events: Event[];
      try {
        isOpen = false;
        const item = items.next();
        if (item.done === true) break;
        isOpen = true;
        events = adapter.push(pipeline, item.value);
      } catch (error) {
        hasFailed = true;
        yield* fail(pipeline, error);
        throw error;
      }
      yield* events;
    }
  } finally {
    try {
      if (isOpen) items.return?.();
    } catch (error) {
      // The first error counts.
      if (!hasFailed) throw error;
    }
  }
  const [events, error] = finish(pipeline, adapter);
  yield* events;
  if (error !== undefined) throw error;
  return undefined;
}

/** Asynchronous iterator of events. `findings` and `outcome` have what is known so far. */
export class AsyncReader<Item> extends Reader implements AsyncIterableIterator<Event> {
  #events: AsyncGenerator<Event, undefined>;
  /** Source that nothing has read from yet. */
  #unread: AsyncIterable<Item> | undefined;

  constructor(pipeline: Pipeline, adapter: Adapter<Item>, source: AsyncIterable<Item> | ReadableStream<Item>) {
    super(pipeline);
    this.#unread = iterate(source);
    this.#events = readAsync(pipeline, adapter, this.#unread);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Event, undefined>> {
    this.#unread = undefined;
    return this.#events.next();
  }

  /** Stops reading, and closes the source. */
  async return(): Promise<IteratorResult<Event, undefined>> {
    const unread = this.#unread;
    this.#unread = undefined;
    const end = await this.#events.return(undefined);
    if (unread !== undefined) await unread[Symbol.asyncIterator]().return?.();
    return end;
  }
}

async function* readAsync<Item>(
  pipeline: Pipeline,
  adapter: Adapter<Item>,
  source: AsyncIterable<Item>,
): AsyncGenerator<Event, undefined> {
  const items = source[Symbol.asyncIterator]();
  // A source that threw has closed itself.
  let isOpen = false;
  let hasFailed = false;
  try {
    for (;;) {
      let events: Event[];
      try {
        isOpen = false;
        const item = await items.next();
        if (item.done === true) break;
        isOpen = true;
        events = adapter.push(pipeline, item.value);
      } catch (error) {
        hasFailed = true;
        yield* fail(pipeline, error);
        throw error;
      }
      yield* events;
    }
  } finally {
    try {
      if (isOpen) await items.return?.();
    } catch (error) {
      // The first error counts.
      if (!hasFailed) throw error;
    }
  }
  const [events, error] = finish(pipeline, adapter);
  yield* events;
  if (error !== undefined) throw error;
  return undefined;
}
