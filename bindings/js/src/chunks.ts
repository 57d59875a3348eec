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
  const parts: number[][] = [];
  for (const character of text) {
    const unit = character.charCodeAt(0);
    const isLone = character.length === 1 && unit >= 0xd800 && unit <= 0xdfff;
    parts.push(
      isLone
        ? [0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f)]
        : [...encoder.encode(character)],
    );
  }
  return Uint8Array.from(parts.flat());
}

/** Returns whether a text has no lone surrogate. */
export function isWellFormed(text: string): boolean {
  // Older browsers lack the method.
  const method = (text as { isWellFormed?: () => boolean }).isWellFormed;
  return method === undefined ? !/\p{Surrogate}/u.test(text) : method.call(text);
}

/** Bytes of a text or a file of the caller. */
export function toBytes(value: unknown): Uint8Array {
  if (typeof value === "string") return encodeText(value);
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
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

/** Iterates over a stream, also where streams are not iterable. */
export function iterate<T>(source: AsyncIterable<T> | ReadableStream<T>): AsyncIterable<T> {
  return Symbol.asyncIterator in source ? source : readStream(source);
}

async function* readStream<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  let isComplete = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isComplete = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!isComplete) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

function describe(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}
