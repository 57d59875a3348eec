const LONGEST = 2048;
/** Characters that no address may have: control characters, and signs that a browser reads as others. */
// eslint-disable-next-line no-control-regex
const NEVER = /[\u0000-\u001f\u007f-\u009f\\<>"]|&#/;

/** Decodes nested `%` escapes of a text, up to four levels; `null` if an invalid escape hides another one. */
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

/** Kind of an address that may be followed; otherwise `null`, as on the server (F-134). */
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
