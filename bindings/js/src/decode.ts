/** `decode`: chunks in, events out. */

import { type AsyncChunkSource, checkSource, type Chunk, type ChunkSource, isAsync, isChunk } from "./chunks.js";
import { checkReason, checkSettings } from "./engine.js";
import type { StateError } from "./errors.js";
import { type FinishReason, Pipeline, type PipelineSettings } from "./pipeline.js";
import { AsyncReader, type Adapter, finish, SyncReader } from "./readers.js";
import type { Event } from "./types.js";

/** Settings of `decode`. */
export interface DecodeSettings extends PipelineSettings {
  /** Reason why the reply ended; default `stop`. */
  finish?: FinishReason;
  /** Part of the reply was lost; default false. */
  incomplete?: boolean;
}

/** Passes text and bytes to a pipeline. */
class ChunkAdapter implements Adapter<Chunk> {
  constructor(
    private readonly reason: FinishReason,
    private readonly incomplete: boolean,
  ) {}

  push(pipeline: Pipeline, chunk: Chunk): Event[] {
    return pipeline.push(chunk);
  }

  finish(pipeline: Pipeline): Event[] {
    return pipeline.finish(this.reason, { incomplete: this.incomplete });
  }
}

/** Makes the pipeline and the adapter of settings. */
export function open(settings: DecodeSettings): [Pipeline, ChunkAdapter] {
  checkSettings(settings);
  const { finish = "stop", incomplete = false, ...rest } = settings;
  checkReason(finish);
  return [new Pipeline(rest), new ChunkAdapter(finish, incomplete)];
}

/**
 * Reads a reply; returns an iterator of events, an asynchronous one if the chunks come later.
 *
 * Each chunk is read when it is there. If the source throws, the stream is closed with an `error` event first, and
 * what it threw comes after it.
 *
 * @example
 * for await (const event of decode(response.body, { dialect: "thinkingml" })) {
 *   if (event.event === "final_delta") process.stdout.write(event.data.text);
 * }
 * @throws TambourError for an unknown dialect, option or finish reason.
 */
export function decode<Source extends ChunkSource | AsyncChunkSource>(
  chunks: Source,
  settings: DecodeSettings = {},
): Decoded<Source> {
  checkSource(chunks);
  const [pipeline, adapter] = open(settings);
  const reader = isAsync<Chunk>(chunks)
    ? new AsyncReader(pipeline, adapter, chunks)
    : new SyncReader(pipeline, adapter, isChunk(chunks) ? [chunks] : chunks);
  return reader as Decoded<Source>;
}

/** Iterator of the events of a source: an asynchronous one if its chunks come later. */
export type Decoded<Source> = Source extends AsyncChunkSource ? AsyncReader<Chunk> : SyncReader<Chunk>;

/** Stream of events, with the pipeline that makes them. */
export interface DecodeStream {
  readonly readable: ReadableStream<Event>;
  readonly writable: WritableStream<Chunk>;
  readonly pipeline: Pipeline;
}

/**
 * Makes a stream that turns chunks into events. A stream that is aborted has no further events; a `StateError` comes
 * after all events.
 *
 * @example
 * const events = response.body.pipeThrough(decodeStream({ dialect: "thinkingml" }));
 */
export function decodeStream(settings: DecodeSettings = {}): DecodeStream {
  const [pipeline, adapter] = open(settings);
  let conflict: StateError | undefined;
  const { readable, writable } = new TransformStream<Chunk, Event>({
    transform(chunk, controller) {
      for (const event of adapter.push(pipeline, chunk)) controller.enqueue(event);
    },
    flush(controller) {
      const [events, error] = finish(pipeline, adapter);
      for (const event of events) controller.enqueue(event);
      conflict = error;
    },
  });
  return { readable: endWith(readable, () => conflict), writable, pipeline };
}

/** Adds an error to the end of a stream. An error of the stream itself would take the place of what is not read yet. */
function endWith(stream: ReadableStream<Event>, getError: () => Error | undefined): ReadableStream<Event> {
  const reader = stream.getReader();
  return new ReadableStream<Event>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        const error = getError();
        if (!done) controller.enqueue(value);
        else if (error === undefined) controller.close();
        else controller.error(error);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
