import { isMap } from "yaml";
import { textAt, writeOptional } from "../document/actions.ts";
import { keyOf } from "../document/aliases.ts";
import { removeField, setField } from "../document/fields.ts";
import { writeItems } from "../document/items.ts";
import { mapAt, nodeAt, pairAt, type Parsed, parse, valueAt } from "../document/parse.ts";
import { type Path } from "../document/text.ts";
import { linesOf, outputAt, outputOf, writeOutput } from "./output.ts";

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
    question: textAt(parsed, [...path, keyOf(parsed, path, "question")]),
    // The older layout names the variable as `ai_think` does.
    variable: textAt(parsed, [...path, keyOf(parsed, path, "answerVariable")]) || (outputAt(parsed, path)[0]?.name ?? ""),
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
  const parsed = parse(text);
  const before = askValues(parsed, path);
  const question = keyOf(parsed, path, "question");
  let changed = text;
  if (values.question !== before.question) changed = setField(changed, path, question, values.question, AFTER_TYPE);
  if (values.variable !== before.variable) {
    changed = writeOptional(changed, path, keyOf(parsed, path, "answerVariable"), values.variable, [...AFTER_TYPE, question]);
  }
  changed = writeAnswer(changed, path, before, values);
  if (values.max_rounds !== before.max_rounds) changed = setField(changed, path, "max_rounds", values.max_rounds);
  if (values.required !== before.required) changed = setField(changed, path, "required", values.required);
  return changed;
}

function writeAnswer(text: string, path: Path, before: AskValues, values: AskValues): string {
  const keys = ["answer", "options", "min", "max"] as const;
  if (keys.every((key) => values[key] === before[key])) return text;
  const options = optionsOf(values.options);
  const bounded = values.answer === "number" || values.answer === "date";
  const bound = (value: string) => (values.answer === "number" ? Number(value) : value);
  const fields = {
    ...(values.answer === "choice" ? { options } : {}),
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
  const present = valueAt(parse(text), [...inner, "options"]);
  const listed = Array.isArray(present) ? present.map(String) : [];
  let changed = values.answer === before.answer ? text : setField(text, inner, "type", values.answer);
  for (const key of ["options", "min", "max"] as const) {
    const value = (fields as Record<string, string | number | string[] | undefined>)[key];
    if (value === undefined) changed = removeField(changed, inner, key);
    else if (key === "options" && listed.length === optionsOf(before.options).length) {
      changed = writeItems(changed, inner, key, listed, options, (at) => options[at] ?? "");
    } else if (values[key] !== before[key] || valueAt(parse(changed), [...inner, key]) === null) {
      changed = setField(changed, inner, key, value, ["type"]);
    }
  }
  return changed;
}

/** Lines that are not blank. */
export const optionsOf = (lines: string): string[] => lines.split("\n").map((line) => line.trim()).filter((line) => line !== "");

export type ThinkValues = { prompt: string; output: string };

export function thinkValues(parsed: Parsed, path: Path): ThinkValues {
  return { prompt: textAt(parsed, [...path, keyOf(parsed, path, "prompt")]), output: linesOf(outputAt(parsed, path)) };
}

export function writeThink(text: string, path: Path, values: ThinkValues): string {
  const parsed = parse(text);
  const before = thinkValues(parsed, path);
  const prompt = keyOf(parsed, path, "prompt");
  const changed = values.prompt === before.prompt ? text : setField(text, path, prompt, values.prompt, AFTER_TYPE);
  return values.output === before.output ? changed : writeOutput(changed, path, outputOf(values.output) ?? []);
}

export type ClientValues = { subject: string; title: string; fields: string; variable: string };

/** Field that names the skill or the picture of a client's action. */
export const subjectOf = (type: string): "skill" | "src" | null =>
  type === "use_skill" ? "skill" : type === "show_pic" ? "src" : null;

/** Map that has a field of a form, or would get it: the action, or `form` in it. */
function formPath(parsed: Parsed, path: Path, key: string): Path {
  const inner = [...path, "form"];
  if (mapAt(parsed, inner) === null) return path;
  return pairAt(parsed, inner, key) === undefined && pairAt(parsed, path, key) !== undefined ? path : inner;
}

/** Names of the fields of a form; null if they are more than names, and are edited as text. */
export function formFields(parsed: Parsed, path: Path): string[] | null {
  const fields = valueAt(parsed, [...formPath(parsed, path, "fields"), "fields"]);
  if (fields === null) return [];
  return Array.isArray(fields) && fields.every((field) => typeof field === "string" || typeof field === "number") ? fields.map(String) : null;
}

export function clientValues(parsed: Parsed, path: Path, type: string): ClientValues {
  const subject = subjectOf(type);
  return {
    subject: subject === null ? "" : textAt(parsed, [...path, subject]),
    title: textAt(parsed, [...formPath(parsed, path, "title"), "title"]),
    fields: (formFields(parsed, path) ?? []).join("\n"),
    variable: textAt(parsed, [...path, keyOf(parsed, path, "variable")]),
  };
}

export function writeClient(text: string, path: Path, type: string, values: ClientValues): string {
  const parsed = parse(text);
  const before = clientValues(parsed, path, type);
  const subject = subjectOf(type);
  let changed = text;
  if (subject !== null && values.subject !== before.subject) changed = writeOptional(changed, path, subject, values.subject);
  if (values.title !== before.title) {
    changed = writeOptional(changed, formPath(parsed, path, "title"), "title", values.title, [...AFTER_TYPE, "skill", "src"]);
  }
  const old = formFields(parsed, path);
  if (old !== null && values.fields !== before.fields) {
    const next = optionsOf(values.fields);
    changed = writeItems(changed, formPath(parsed, path, "fields"), "fields", old, next, (at) => next[at] ?? "");
  }
  if (values.variable !== before.variable) {
    const key = keyOf(parsed, path, "variable");
    changed = writeOptional(changed, path, key, values.variable, [...AFTER_TYPE, "skill", "src", "title", "form"]);
  }
  return changed;
}
