import { isMap } from "yaml";
import { textAt, writeOptional } from "../document/actions.ts";
import { removeField, setField } from "../document/fields.ts";
import { nodeAt, type Parsed, parse, valueAt } from "../document/parse.ts";
import { type Path } from "../document/text.ts";

export type AskValues = {
  question: string;
  variable: string;
  answer: string;
  options: string;
  min: string;
  max: string;
  max_rounds: number | null;
  required: boolean;
};

export const ASK_ROUNDS = 3;

export function askValues(parsed: Parsed, path: Path): AskValues {
  const answer = valueAt(parsed, [...path, "answer"]);
  const fields = (typeof answer === "object" && answer !== null ? answer : { type: answer ?? "text" }) as Record<string, unknown>;
  const shown = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");
  const rounds = valueAt(parsed, [...path, "max_rounds"]) ?? ASK_ROUNDS;
  return {
    question: textAt(parsed, [...path, "question"]),
    variable: textAt(parsed, [...path, "variable"]),
    answer: shown(fields["type"]) || "text",
    options: Array.isArray(fields["options"]) ? fields["options"].map(shown).join("\n") : "",
    min: shown(fields["min"]),
    max: shown(fields["max"]),
    max_rounds: typeof rounds === "number" ? rounds : null,
    required: valueAt(parsed, [...path, "required"]) === true,
  };
}

const AFTER_TYPE = ["type", "action_id", "condition", "template"];

export function writeAsk(text: string, path: Path, values: AskValues): string {
  const before = askValues(parse(text), path);
  let changed = text;
  if (values.question !== before.question) changed = setField(changed, path, "question", values.question, AFTER_TYPE);
  if (values.variable !== before.variable) {
    changed = writeOptional(changed, path, "variable", values.variable, [...AFTER_TYPE, "question"]);
  }
  changed = writeAnswer(changed, path, before, values);
  if (values.max_rounds !== before.max_rounds) changed = setField(changed, path, "max_rounds", values.max_rounds);
  if (values.required !== before.required) changed = setField(changed, path, "required", values.required);
  return changed;
}

function writeAnswer(text: string, path: Path, before: AskValues, values: AskValues): string {
  const keys = ["answer", "options", "min", "max"] as const;
  if (keys.every((key) => values[key] === before[key])) return text;
  const bounded = values.answer === "number" || values.answer === "date";
  const bound = (value: string) => (values.answer === "number" ? Number(value) : value);
  const fields = {
    ...(values.answer === "choice" ? { options: optionsOf(values.options) } : {}),
    ...(bounded && values.min.trim() !== "" ? { min: bound(values.min.trim()) } : {}),
    ...(bounded && values.max.trim() !== "" ? { max: bound(values.max.trim()) } : {}),
  };
  if (Object.keys(fields).length === 0) {
    return values.answer === "text" ? removeField(text, path, "answer") : setField(text, path, "answer", values.answer, [...AFTER_TYPE, "question", "variable"]);
  }
  if (!isMap(nodeAt(parse(text), [...path, "answer"]))) {
    return setField(text, path, "answer", { type: values.answer, ...fields }, [...AFTER_TYPE, "question", "variable"]);
  }
  const inner = [...path, "answer"];
  let changed = values.answer === before.answer ? text : setField(text, inner, "type", values.answer);
  for (const key of ["options", "min", "max"] as const) {
    const value = (fields as Record<string, string | number | string[] | undefined>)[key];
    if (value === undefined) changed = removeField(changed, inner, key);
    else if (values[key] !== before[key] || valueAt(parse(changed), [...inner, key]) === null) {
      changed = setField(changed, inner, key, value, ["type"]);
    }
  }
  return changed;
}

export const optionsOf = (lines: string): string[] => lines.split("\n").map((line) => line.trim()).filter((line) => line !== "");

export type ThinkValues = { prompt: string; output: string };

export function thinkValues(parsed: Parsed, path: Path): ThinkValues {
  const output = valueAt(parsed, [...path, "output"]);
  const entries = typeof output === "object" && output !== null ? Object.entries(output) : [];
  return {
    prompt: textAt(parsed, [...path, "prompt"]),
    output: entries.map(([name, about]) => `${name}: ${typeof about === "string" ? about : JSON.stringify(about)}`).join("\n"),
  };
}

/** Variables and what they are to hold; null where a line is neither. */
export function outputOf(lines: string): Record<string, string> | null {
  const output: Record<string, string> = {};
  for (const line of optionsOf(lines)) {
    const [, name, about] = /^([^:：]+)[:：]\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || about === undefined) return null;
    output[name.trim()] = about;
  }
  return output;
}

export function writeThink(text: string, path: Path, values: ThinkValues): string {
  const before = thinkValues(parse(text), path);
  let changed = text;
  if (values.prompt !== before.prompt) changed = setField(changed, path, "prompt", values.prompt, AFTER_TYPE);
  const [old, next] = [outputOf(before.output) ?? {}, outputOf(values.output) ?? {}];
  if (values.output === before.output) return changed;
  if (!isMap(nodeAt(parse(changed), [...path, "output"])) || Object.keys(next).length === 0) {
    return setField(changed, path, "output", next, [...AFTER_TYPE, "prompt"]);
  }
  const inner = [...path, "output"];
  for (const [name, about] of Object.entries(next)) {
    if (old[name] !== about) changed = setField(changed, inner, name, about);
  }
  for (const name of Object.keys(old)) if (!(name in next)) changed = removeField(changed, inner, name);
  return changed;
}

export type ClientValues = { subject: string; title: string; variable: string };

/** The field that says what a client is asked to do. */
export const subjectOf = (type: string): "skill" | "src" | null =>
  type === "use_skill" ? "skill" : type === "show_pic" ? "src" : null;

export function clientValues(parsed: Parsed, path: Path, type: string): ClientValues {
  const subject = subjectOf(type);
  return {
    subject: subject === null ? "" : textAt(parsed, [...path, subject]),
    title: textAt(parsed, [...path, "title"]),
    variable: textAt(parsed, [...path, "variable"]),
  };
}

export function writeClient(text: string, path: Path, type: string, values: ClientValues): string {
  const before = clientValues(parse(text), path, type);
  const subject = subjectOf(type);
  let changed = text;
  if (subject !== null && values.subject !== before.subject) changed = writeOptional(changed, path, subject, values.subject);
  for (const key of ["title", "variable"] as const) {
    if (values[key] !== before[key]) changed = writeOptional(changed, path, key, values[key], [...AFTER_TYPE, "skill", "src", "title"]);
  }
  return changed;
}
