const NEWLINE = 10;

/** Line of a file, with its place in bytes; of one that is too long, only the beginning. */
export type FileLine = { readonly start: number; readonly length: number; readonly bytes: Uint8Array };

/** Splits a file that arrives in pieces into its lines, without the empty ones. Only the current line is kept. */
export class LineSplitter {
  /** Most bytes of a line that are kept; the rest of a longer one is dropped. */
  readonly #most: number;
  #rest: Uint8Array[] = [];
  #kept = 0;
  #restLength = 0;
  #offset = 0;

  constructor(most = Infinity) {
    this.#most = most;
  }

  *push(piece: Uint8Array): Generator<FileLine> {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      yield* this.#line(piece.subarray(from, end));
      this.#offset += 1;
      from = end + 1;
    }
    if (from < piece.length) this.#keep(piece.slice(from));
  }

  /** Returns the last line, if no line end followed it. */
  *finish(): Generator<FileLine> {
    yield* this.#line(new Uint8Array());
  }

  #keep(part: Uint8Array): void {
    const kept = part.subarray(0, Math.max(0, this.#most - this.#kept));
    this.#rest.push(kept);
    this.#kept += kept.length;
    this.#restLength += part.length;
  }

  *#line(end: Uint8Array): Generator<FileLine> {
    const start = this.#offset;
    let bytes = end.subarray(0, Math.min(end.length, this.#most));
    let length = end.length;
    if (this.#rest.length > 0) {
      this.#keep(end);
      length = this.#restLength;
      bytes = new Uint8Array(this.#kept);
      let at = 0;
      for (const part of this.#rest) {
        bytes.set(part, at);
        at += part.length;
      }
      this.#rest = [];
      this.#kept = 0;
      this.#restLength = 0;
    }
    this.#offset += length;
    // A line of white space is no record.
    if (bytes.some((byte) => byte > 32)) yield { start, length, bytes };
  }
}
