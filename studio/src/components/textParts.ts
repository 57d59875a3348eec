/** Most characters shown at once. */
export const PART_LENGTH = 200_000;

/** Starts of the parts of a text, each after a line end where one is near, and never inside a character. */
export function partStarts(text: string, length = PART_LENGTH): number[] {
  const starts = [0];
  let start = 0;
  while (text.length - start > length) {
    // Without a line end in it, a search would go back through the whole text before it.
    const line = text.slice(start, start + length).lastIndexOf("\n");
    let next = line > length / 2 ? start + line + 1 : start + length;
    // The second half of a pair stays with the first.
    if (/[\uDC00-\uDFFF]/.test(text.charAt(next))) next -= 1;
    starts.push(next);
    start = next;
  }
  return starts;
}

/** Bytes of the parts in which a file is shown. */
const FILE_PART = 256 * 1024;

export const filePartCount = (size: number, length = FILE_PART): number => Math.max(1, Math.ceil(size / length));

/** Part of a file as text. A character belongs to the part that it begins in. */
export async function filePart(file: Blob, part: number, length = FILE_PART): Promise<string> {
  const start = part * length;
  // A character has three bytes at most behind its first one.
  const bytes = new Uint8Array(await file.slice(start, start + length + 3).arrayBuffer());
  const from = start === 0 ? 0 : beginAt(bytes, 0);
  const to = start + length >= file.size ? bytes.length : beginAt(bytes, length);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from, to));
}

/** First byte of a character at or after a place. */
function beginAt(bytes: Uint8Array, place: number): number {
  let at = place;
  while (at < place + 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1;
  return at;
}
