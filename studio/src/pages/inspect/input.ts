import { kindOf } from "./kind.ts";
import { MOST_BYTES } from "./large.ts";
import { RecordFile } from "./records/RecordFile.ts";

/** Input of an inspection, each with a number of its own. */
export type Input =
  | { readonly kind: "reply" | "transcript"; readonly text: string; readonly name: string; readonly number: number }
  | { readonly kind: "large"; readonly of: "reply" | "transcript"; readonly file: Blob; readonly name: string; readonly number: number }
  | { readonly kind: "records"; readonly file: RecordFile; readonly number: number };

let inputs = 0;

/** Length of the beginning that tells the kind of a text, in characters and in bytes. */
const HEAD = 256 * 1024;

export function inputOf(text: string, name = "reply.txt"): Input {
  inputs += 1;
  const kind = kindOf(text.slice(0, HEAD), text.length <= HEAD);
  if (kind === "records") {
    return { kind, file: new RecordFile(new Blob([text]), name === "reply.txt" ? "records.jsonl" : name), number: inputs };
  }
  const file = new Blob([text]);
  return file.size > MOST_BYTES ? { kind: "large", of: kind, file, name, number: inputs } : { kind, text, name, number: inputs };
}

/**
 * Input of a text that is being typed, after the one before. It keeps the number of that one, so that what is chosen on the
 * page stays. `null` for nothing, and for records, which are read when the user asks for it.
 */
export function inputOfTyped(text: string, before: Input | null): Input | null {
  const next = text.trim() === "" ? null : inputOf(text);
  if (next === null || next.kind === "records") return null;
  return next.kind !== "large" && before?.kind === next.kind ? { ...next, number: before.number } : next;
}

/** Input of a file: records stay in it, and so does a text that is too large; another is read as a whole. */
export async function inputOfFile(file: File): Promise<Input> {
  inputs += 1;
  const head = await file.slice(0, HEAD).text();
  const kind = kindOf(head, file.size <= HEAD);
  if (kind === "records") return { kind, file: new RecordFile(file, file.name), number: inputs };
  if (file.size > MOST_BYTES) return { kind: "large", of: kind, file, name: file.name, number: inputs };
  return { kind, text: await file.text(), name: file.name, number: inputs };
}
