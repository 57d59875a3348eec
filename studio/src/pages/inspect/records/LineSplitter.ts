const NEWLINE = 10;

/** A line of a file, with its place in bytes. */
export type FileLine = { readonly start: number; readonly bytes: Uint8Array };

/** Cuts a file that comes in pieces into its lines, without the empty ones. Only the line that is cut is kept. */
export class LineSplitter {
  #rest: Uint8Array[] = [];
  #restLength = 0;
  #offset = 0;

  *push(piece: Uint8Array): Generator<FileLine> {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      yield* this.#line(piece.subarray(from, end));
      this.#offset += 1;
      from = end + 1;
    }
    if (from < piece.length) {
      this.#rest.push(piece.slice(from));
      this.#restLength += piece.length - from;
    }
  }

  /** The last line, if no end of a line was behind it. */
  *finish(): Generator<FileLine> {
    yield* this.#line(new Uint8Array());
  }

  *#line(end: Uint8Array): Generator<FileLine> {
    const length = this.#restLength + end.length;
    let bytes = end;
    if (this.#rest.length > 0) {
      bytes = new Uint8Array(length);
      let at = 0;
      for (const part of [...this.#rest, end]) {
        bytes.set(part, at);
        at += part.length;
      }
      this.#rest = [];
      this.#restLength = 0;
    }
    const start = this.#offset;
    this.#offset += length;
    // A line of white space is no record.
    if (bytes.some((byte) => byte > 32)) yield { start, bytes };
  }
}
