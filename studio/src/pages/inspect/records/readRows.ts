import { MOST_BYTES } from "../large.ts";
import { type FileLine, LineSplitter } from "./LineSplitter.ts";
import { type Row, shortOf } from "./protocol.ts";
import { previewOf, recordOf } from "./record.ts";

/** Bytes that are read at once. */
const PIECE = 1024 * 1024;
const decoder = new TextDecoder();

function rowOf({ start, length, bytes }: FileLine): Row {
  const record = bytes.length < length ? null : recordOf(decoder.decode(bytes));
  return {
    start,
    length,
    id: record?.id ?? "",
    model: record?.model ?? "",
    dialect: record?.dialect ?? "",
    preview: previewOf(record === null ? decoder.decode(bytes.subarray(0, 500)) : record.reply),
    findings: record?.findings?.map(shortOf) ?? null,
    readable: typeof record?.reply === "string",
  };
}

/** Rows of a file in pieces, with the number of bytes read so far. No record is kept. */
export async function* readRows(file: Blob, piece = PIECE): AsyncGenerator<{ rows: Row[]; bytes: number }> {
  const lines = new LineSplitter(MOST_BYTES);
  for (let at = 0; at < file.size; at += piece) {
    const bytes = new Uint8Array(await file.slice(at, at + piece).arrayBuffer());
    yield { rows: Array.from(lines.push(bytes), rowOf), bytes: at + bytes.length };
  }
  yield { rows: Array.from(lines.finish(), rowOf), bytes: file.size };
}
