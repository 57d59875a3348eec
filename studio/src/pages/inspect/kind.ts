/** Kind of a text: one reply, the transcript of a stream, or records, one a line. */
export type Kind = "reply" | "transcript" | "records";

/** Events of the server's streams, mostly at their end, that no reply has. */
const ENDS = new Set(["completed", "error", "status", "heartbeat"]);
const ENDS_IN_TEXT = /^(?:event:\s*|\s*\{\s*"event"\s*:\s*")(?:status|heartbeat|completed|error)\b/m;

type Fields = Readonly<Record<string, unknown>>;

function objectOf(line: string): Fields | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
  } catch {
    return null;
  }
}

/** Fields that hold a reply in a record. */
const REPLY_FIELDS = ["reply", "raw", "chunks", "output", "response", "completion", "text", "content", "in", "message_id"];

/** Kind of a text, from its beginning; `whole` if nothing follows. */
export function kindOf(head: string, whole = true): Kind {
  const lines = head.split("\n").map((line) => line.trim());
  // The last line of a beginning may be cut.
  const complete = (whole ? lines : lines.slice(0, -1)).filter((line) => line !== "");
  const first = complete[0] ?? lines[0] ?? "";
  if (/^(?:event|data|id|retry):/.test(first) || (first.startsWith(":") && complete.some((line) => line.startsWith("data:")))) {
    return "transcript";
  }
  const object = objectOf(first);
  if (object === null) return !whole && complete.length === 0 && first.startsWith("{") ? "records" : "reply";
  if (typeof object["event"] === "string") {
    const ended = complete.some((line) => ENDS.has(String(objectOf(line)?.["event"])));
    return ended || ENDS_IN_TEXT.test(head) ? "transcript" : "reply";
  }
  // An exported conversation begins with itself.
  if (typeof object["conversation_id"] === "string") return "records";
  // A reply of one line may be an object too, such as a plan.
  const record = REPLY_FIELDS.some((name) => name in object) && ("id" in object || "message_id" in object || complete.length > 1);
  return record ? "records" : "reply";
}
