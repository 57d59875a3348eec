/** Text and bytes of the caller. */

/** Piece of a reply, cut anywhere: text, or bytes in UTF-8. */
export type Chunk = string | Uint8Array;

/** Source of chunks that are there, or that come later. */
export type ChunkSource = Chunk | Iterable<Chunk>;
export type AsyncChunkSource = AsyncIterable<Chunk> | ReadableStream<Chunk>;

const encoder = new TextEncoder();

/**
 * Encodes text as UTF-8. Lone surrogates become three invalid bytes each, which a reader replaces and reports,
 * while a `TextEncoder` would replace them unnoticed.
 */
export function encodeText(text: string): Uint8Array {
  if (isWellFormed(text)) return encoder.encode(text);
  // A unit of UTF-16 takes three bytes at most.
  const bytes = new Uint8Array(3 * text.length);
  let length = 0;
  let start = 0;
  for (const { 0: surrogate, index } of text.matchAll(/\p{Surrogate}/gu)) {
    length += encoder.encodeInto(text.slice(start, index), bytes.subarray(length)).written;
    const unit = surrogate.charCodeAt(0);
    bytes[length++] = 0xe0 | (unit >> 12);
    bytes[length++] = 0x80 | ((unit >> 6) & 0x3f);
    bytes[length++] = 0x80 | (unit & 0x3f);
    start = index + 1;
  }
  length += encoder.encodeInto(text.slice(start), bytes.subarray(length)).written;
  return bytes.subarray(0, length);
}

/** Returns whether a text has no lone surrogate. */
export function isWellFormed(text: string): boolean {
  // Older browsers lack the method.
  const method = (text as { isWellFormed?: () => boolean }).isWellFormed;
  return method === undefined ? !/\p{Surrogate}/u.test(text) : method.call(text);
}

/** Largest piece that crosses to the engine, in bytes or units of UTF-16. */
const MAX_PIECE = 1 << 20;

/**
 * Cuts a chunk into pieces, so that a huge one takes no more memory of the engine than a reply may. Memory that
 * WebAssembly took once stays with it.
 */
export function toPieces(chunk: Chunk): Chunk[] {
  const data = typeof chunk === "string" ? chunk : toBytes(chunk);
  if (data.length <= MAX_PIECE) return [data];
  const pieces: Chunk[] = [];
  for (let start = 0; start < data.length; start += MAX_PIECE) {
    const end = start + MAX_PIECE;
    pieces.push(typeof data === "string" ? data.slice(start, end) : data.subarray(start, end));
  }
  return pieces;
}

/** Splits a text from half a character at its end. */
export function splitHalf(text: string): [text: string, half: string] {
  const last = text.charCodeAt(text.length - 1);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return isHalf ? [text.slice(0, -1), text.slice(-1)] : [text, ""];
}

/** Bytes of a text or a file of the caller, for functions without findings: lone surrogates become U+FFFD. */
export function toFile(value: unknown): Uint8Array {
  return typeof value === "string" ? encoder.encode(value) : toBytes(value);
}

/** Bytes of a text or a file of the caller. */
export function toBytes(value: unknown): Uint8Array {
  if (typeof value === "string") return encodeText(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  // A proxy of bytes is an instance of their class, but no view.
  if (ArrayBuffer.isView(value)) {
    return value instanceof Uint8Array ? value : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  throw new TypeError(`expected a string or bytes, not ${describe(value)}`);
}

/** Returns whether a value is a single chunk. */
export function isChunk(value: unknown): value is Chunk {
  return typeof value === "string" || value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}

/** Returns whether the items of a source come later. */
export function isAsync<T>(
  source: string | Uint8Array | Iterable<T> | AsyncIterable<T> | ReadableStream<T>,
): source is AsyncIterable<T> | ReadableStream<T> {
  return typeof source === "object" && (Symbol.asyncIterator in source || "getReader" in source);
}

/** Refuses what is no source of items. */
export function checkSource(source: unknown): void {
  if (typeof source === "string") return;
  const isObject = (typeof source === "object" && source !== null) || typeof source === "function";
  const isSource =
    isObject && (Symbol.iterator in source || Symbol.asyncIterator in source || "getReader" in source || isChunk(source));
  if (isSource) return;
  const hints: Record<string, string> = { Response: "pass its `body`", Promise: "await it" };
  const kind = describe(source);
  const hint = kind in hints ? `: ${hints[kind]}` : "";
  throw new TypeError(`expected a string, bytes, a stream or an iterable, not ${kind}${hint}`);
}

/** Iterates over a stream, also where streams are not iterable. */
export function iterate<T>(source: AsyncIterable<T> | ReadableStream<T>): AsyncIterable<T> {
  if (Symbol.asyncIterator in source) return source;
  return { [Symbol.asyncIterator]: () => readStream(source) };
}

function readStream<T>(stream: ReadableStream<T>): AsyncIterator<T, undefined> {
  const reader = stream.getReader();
  return {
    async next() {
      try {
        const { done, value } = await reader.read();
        if (!done) return { done, value };
      } catch (error) {
        reader.releaseLock();
        throw error;
      }
      reader.releaseLock();
      return { done: true, value: undefined };
    },
    async return() {
      try {
        await reader.cancel();
      } finally {
        reader.releaseLock();
      }
      return { done: true, value: undefined };
    },
  };
}

/** Name of a value for messages: its class, if it has one. */
function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  const name = typeof value === "object" ? (value.constructor as { name?: unknown } | undefined)?.name : undefined;
  return typeof name === "string" && name !== "" && name !== "Object" ? name : typeof value;
}
