import { keyOf } from "./aliases.ts";
import { removeField, renameField, setField } from "./fields.ts";
import { mapAt, pairOf, parse, type Parsed, valueAt } from "./parse.ts";
import { type Path } from "./text.ts";

/** Fields of the form of `ai_say`. */
export type SayValues = {
  content: string;
  require_acknowledgment: boolean;
  max_rounds: number | null;
  understanding_threshold: number | null;
  has_questions: boolean;
};

export const SAY_DEFAULTS: SayValues = {
  content: "",
  require_acknowledgment: true,
  max_rounds: 5,
  understanding_threshold: 80,
  has_questions: false,
};

const asText = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "number" || typeof value === "boolean" ? String(value) : "";

const asFlag = (value: unknown, otherwise: boolean): boolean => (typeof value === "boolean" ? value : otherwise);

/** Number as written, or the default if absent; `null` for any other value, which a form refuses. */
const asNumber = (value: unknown, otherwise: number | null): number | null =>
  value === null ? otherwise : typeof value === "number" ? value : null;

/** Initial values of a form: the fields of the action, the older key, or the defaults (S-092). */
export function sayValues(parsed: Parsed, path: Path): SayValues {
  const at = (...keys: string[]) => valueAt(parsed, [...path, ...keys]);
  return {
    content: asText(at(keyOf(parsed, path, "content")) ?? at("ai_say")),
    require_acknowledgment: asFlag(at("require_acknowledgment"), SAY_DEFAULTS.require_acknowledgment),
    max_rounds: asNumber(at("max_rounds"), SAY_DEFAULTS.max_rounds),
    understanding_threshold: asNumber(at("exit_criteria", "understanding_threshold"), SAY_DEFAULTS.understanding_threshold),
    has_questions: asFlag(at("exit_criteria", "has_questions"), SAY_DEFAULTS.has_questions),
  };
}

const ORDER = ["type", "action_id", "condition", "template", "ai_say", "content", "content_template", "require_acknowledgment", "max_rounds"];

/** Writes the differences: absent defaults stay absent, the older key becomes `content` (S-093, S-094). */
export function writeSay(text: string, path: Path, values: SayValues): string {
  const before = sayValues(parse(text), path);
  if (same(before, values)) return text;
  let changed = text;
  const has = (key: string) => hasField(changed, path, key);
  const key = keyOf(parse(text), path, "content");
  if (has("ai_say")) {
    changed = has(key) ? removeField(changed, path, "ai_say") : renameField(changed, path, "ai_say", "content");
  }
  const behind = (name: string) => ORDER.slice(0, ORDER.indexOf(name));
  if (values.content !== before.content || !has(key)) {
    changed = setField(changed, path, key, values.content, behind("content"));
  }
  for (const name of ["require_acknowledgment", "max_rounds"] as const) {
    if (values[name] !== before[name]) changed = setField(changed, path, name, values[name], behind(name));
  }
  for (const name of ["understanding_threshold", "has_questions"] as const) {
    if (values[name] === before[name]) continue;
    changed =
      mapAt(parse(changed), [...path, "exit_criteria"]) === null
        ? setField(changed, path, "exit_criteria", { [name]: values[name] }, [...ORDER, "exit_criteria"])
        : setField(changed, [...path, "exit_criteria"], name, values[name]);
  }
  return changed;
}

export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

export function hasField(text: string, path: Path, key: string): boolean {
  const map = mapAt(parse(text), path);
  return map !== null && pairOf(map, key) !== undefined;
}

/** Sets a field, or removes it if it is empty. */
export function writeOptional(text: string, path: Path, key: string, value: string | number | boolean | null, after: readonly string[] = ORDER): string {
  if (value === null || value === "") return removeField(text, path, key);
  return setField(text, path, key, value, after);
}

export const textAt = (parsed: Parsed, path: Path): string => asText(valueAt(parsed, path));
