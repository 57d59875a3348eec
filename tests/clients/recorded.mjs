// What models said: the recorded replies, and those of the other fixtures that need nothing but their dialect.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const DIALECTS = ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament", "toolcall", "plain", "auto", "json_value"];
/** Keys with which a reply is read otherwise than a client can ask for in a word. */
const MORE = ["options", "tools", "reasoning", "round", "max_rounds", "criteria"];

const linesOf = (file) => readFileSync(file, "utf8").split("\n").filter((line) => line.trim().startsWith("{"));

/** The recorded replies: `{key, dialect, text, finish}`. */
export function recorded(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl")).sort();
  return files.flatMap((name) => linesOf(join(folder, name))).map((line) => {
    const { id, protocol, chunks, finish_reason } = JSON.parse(line);
    return { key: id, dialect: protocol ?? "auto", text: chunks.join(""), finish: finish_reason };
  });
}

/** The other fixtures, each once. */
export function authored(folder) {
  const found = new Map();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || !entry.name.endsWith(".jsonl") || file.includes("/recorded/")) continue;
    for (const line of linesOf(file)) {
      const fixture = JSON.parse(line);
      const text = fixture.input ?? fixture.chunks?.join("");
      const more = MORE.some((key) => key in fixture) || !["stop", "length", undefined].includes(fixture.finish);
      if (more || typeof text !== "string" || !text || !DIALECTS.includes(fixture.dialect)) continue;
      const key = `${fixture.dialect}-${fixture.id}`;
      if (!found.has(key)) found.set(key, { key, dialect: fixture.dialect, text, finish: fixture.finish });
    }
  }
  return [...found.values()];
}
