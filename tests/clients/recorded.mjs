// Replies of models: the recorded ones, and other fixtures that need only their dialect.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const DIALECTS = ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament", "toolcall", "plain", "auto", "json_value"];
/** Keys of fixtures whose reading no client can ask for. */
const SPECIAL_KEYS = ["options", "tools", "reasoning", "round", "max_rounds", "criteria"];

const linesOf = (file) => readFileSync(file, "utf8").split("\n").filter((line) => line.trim().startsWith("{"));

/** Reads the recorded replies: `{key, dialect, text, finish}`. */
export function recorded(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl")).sort();
  return files.flatMap((name) => linesOf(join(folder, name))).map((line) => {
    const { id, protocol, chunks, finish_reason } = JSON.parse(line);
    return { key: id, dialect: protocol ?? "auto", text: chunks.join(""), finish: finish_reason };
  });
}

/** Reads the other fixtures, without duplicates. */
export function authored(folder) {
  const found = new Map();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || !entry.name.endsWith(".jsonl") || file.includes("/recorded/")) continue;
    for (const line of linesOf(file)) {
      const fixture = JSON.parse(line);
      const text = fixture.input ?? fixture.chunks?.join("");
      const isSpecial = SPECIAL_KEYS.some((key) => key in fixture) || !["stop", "length", undefined].includes(fixture.finish);
      if (isSpecial || typeof text !== "string" || !text || !DIALECTS.includes(fixture.dialect)) continue;
      const key = `${fixture.dialect}-${fixture.id}`;
      if (!found.has(key)) found.set(key, { key, dialect: fixture.dialect, text, finish: fixture.finish });
    }
  }
  return [...found.values()];
}
