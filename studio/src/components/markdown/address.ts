const LONGEST = 2048;
/** What an address never holds: control characters, and signs that a browser reads as others. */
// eslint-disable-next-line no-control-regex
const NEVER = /[\u0000-\u001f\u007f-\u009f\\<>"]|&#/;

/** A text whose bytes that are written with `%` are decoded, over and over. */
function decoded(text: string): string | null {
  let now = text;
  for (let round = 0; round < 4; round += 1) {
    let next: string;
    try {
      next = decodeURIComponent(now);
    } catch {
      return now.includes("%25") ? null : now;
    }
    if (next === now) break;
    now = next;
  }
  return now;
}

/** Where an address leads, of those that may be followed; `null` for all others, as the server has it (F-134). */
export function kindOfAddress(address: string): "relative" | "https" | "asset" | null {
  const text = address.trim();
  if (text === "" || text.length > LONGEST || NEVER.test(text)) return null;
  const plain = decoded(text);
  if (plain === null || NEVER.test(plain)) return null;
  const path = plain.split(/[?#]/, 1)[0] ?? "";
  if (path.split("/").some((part) => [".", ".."].includes(part.trim()))) return null;
  const scheme = /^([^/:]*):(.*)$/s.exec(path);
  if (scheme === null) return path.startsWith("/") ? null : "relative";
  const [, name = "", rest = ""] = scheme;
  if (/^https$/i.test(name.trim())) return /^\/\/[^/]/.test(rest) ? "https" : null;
  if (/^asset$/i.test(name.trim())) return rest.trim() === "" ? null : "asset";
  return null;
}
