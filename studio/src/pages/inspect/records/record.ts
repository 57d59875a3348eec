import { type Finding } from "../../../api/types.ts";

/** Record of a file, as far as its fields are known. */
export type InspectedRecord = {
  readonly id: string;
  readonly model: string;
  readonly dialect: string;
  readonly reply: string | null;
  /** Findings in the record itself, if any. */
  readonly findings: readonly Finding[] | null;
  readonly finishReason: string | null;
};

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

function firstText(fields: Fields, names: readonly string[]): string | null {
  for (const name of names) {
    const text = textOf(fields[name]);
    if (text !== null) return text;
  }
  return null;
}

/** Reply of a record: a text, its pieces, or the content of a service's answer. */
function replyOf(fields: Fields): string | null {
  const text = firstText(fields, ["reply", "raw", "output", "response", "completion", "text", "content", "in"]);
  if (text !== null) return text;
  const { chunks, choices } = fields;
  if (Array.isArray(chunks)) return chunks.map((chunk) => textOf(chunk) ?? "").join("");
  const choice: unknown = Array.isArray(choices) ? choices[0] : null;
  const message = isObject(choice) ? choice["message"] : null;
  return isObject(message) ? textOf(message["content"]) : null;
}

/** Parses a line of a file; `null` if it is no record. */
export function recordOf(line: string): InspectedRecord | null {
  let fields: unknown;
  try {
    fields = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(fields)) return null;
  const request = isObject(fields["request"]) ? fields["request"] : {};
  const metadata = isObject(fields["metadata"]) ? fields["metadata"] : {};
  const id = fields["id"] ?? fields["message_id"] ?? fields["conversation_id"];
  const findings = fields["findings"];
  return {
    id: typeof id === "string" || typeof id === "number" ? String(id) : "",
    model: firstText(fields, ["model"]) ?? firstText(request, ["model", "upstream"]) ?? "",
    dialect: firstText(fields, ["protocol", "dialect", "contract"]) ?? firstText(metadata, ["dialect"]) ?? "",
    reply: replyOf(fields),
    findings: Array.isArray(findings) && findings.every(isFinding) ? findings : null,
    finishReason: firstText(fields, ["finish_reason"]),
  };
}

const isFinding = (value: unknown): value is Finding =>
  isObject(value) && typeof value["code"] === "string" && typeof value["severity"] === "string";

const PREVIEW = 120;

/** Beginning of a reply in one line. */
export const previewOf = (reply: string | null): string => (reply ?? "").slice(0, PREVIEW * 2).replace(/\s+/g, " ").trim().slice(0, PREVIEW);
