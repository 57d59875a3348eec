/** UTF-8 bytes of a UTF-16 unit; the halves of a surrogate pair have two each. */
function bytesOf(unit: number): number {
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xd800 && unit <= 0xdfff ? 2 : 3;
}

const STEP = 4096;

/** Maps UTF-8 byte offsets, as the server counts, to offsets in strings. */
export class ByteIndex {
  readonly #text: string;
  /** Byte offset of every 4096th unit. */
  readonly #steps: number[] = [0];
  readonly length: number;

  constructor(text: string) {
    this.#text = text;
    let bytes = 0;
    for (let at = 0; at < text.length; at += 1) {
      if (at > 0 && at % STEP === 0) this.#steps.push(bytes);
      bytes += bytesOf(text.charCodeAt(at));
    }
    this.length = bytes;
  }

  /** Returns the unit at or after a byte offset; the end of the text for an offset beyond it. */
  unitAt(byte: number): number {
    let low = 0;
    let high = this.#steps.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#steps[middle] ?? 0) <= byte) low = middle;
      else high = middle - 1;
    }
    let at = low * STEP;
    let bytes = this.#steps[low] ?? 0;
    while (at < this.#text.length && bytes < byte) {
      bytes += bytesOf(this.#text.charCodeAt(at));
      at += 1;
    }
    // Skips the second half of a surrogate pair.
    if (at < this.#text.length && /[\uDC00-\uDFFF]/.test(this.#text.charAt(at))) at += 1;
    return at;
  }
}
