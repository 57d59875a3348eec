import { ALIASES, keyOf } from "../document/aliases.ts";
import { removeField, renameField, setField } from "../document/fields.ts";
import { writeItems } from "../document/items.ts";
import { mapAt, type Parsed, parse, seqAt, valueAt } from "../document/parse.ts";
import { type Path } from "../document/text.ts";

/** Variable that `ai_think` fills, with a description of its content. */
export type Output = { readonly name: string; readonly about: string };

/** Keys of a variable and of its description in a list of variables. */
const NAMES = ["get", "var", "name"];
const ABOUTS = ["define", "description", "about"];

const shown = (value: unknown): string =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);

/** Variables of an action: a map of them with descriptions, or a list. */
export function outputAt(parsed: Parsed, path: Path): Output[] {
  const output = valueAt(parsed, [...path, keyOf(parsed, path, "output")]);
  if (Array.isArray(output)) return output.map(listed);
  if (typeof output !== "object" || output === null) return [];
  return Object.entries(output).map(([name, about]) => ({ name, about: shown(about) }));
}

function listed(item: unknown): Output {
  if (typeof item !== "object" || item === null) return { name: shown(item), about: "" };
  const fields = item as Record<string, unknown>;
  const of = (keys: readonly string[]) => shown(fields[keys.find((key) => key in fields) ?? ""]);
  return { name: of(NAMES), about: of(ABOUTS) };
}

/** Lines of variables, one each; further lines of a description are indented. */
export const linesOf = (output: readonly Output[]): string =>
  output.map(({ name, about }) => (about === "" ? name : `${name}: ${about.replaceAll("\n", "\n  ")}`)).join("\n");

/** Variables of such lines; null if one has no name, or two have the same. */
export function outputOf(lines: string): Output[] | null {
  const output: Output[] = [];
  for (const line of lines.split("\n")) {
    const last = output.at(-1);
    if (line === "") continue;
    if (/^\s/.test(line)) {
      if (last === undefined) return null;
      output[output.length - 1] = { ...last, about: `${last.about}\n${line.replace(/^(?: {1,2}|\t)/, "")}` };
      continue;
    }
    const [, name = "", about = ""] = /^([^:：]*)(?:[:：]\s*(.*))?$/.exec(line) ?? [];
    if (name.trim() === "" || output.some((one) => one.name === name.trim())) return null;
    output.push({ name: name.trim(), about });
  }
  return output;
}

/** Writes the changed variables, and leaves the others as written. */
export function writeOutput(text: string, path: Path, next: readonly Output[]): string {
  const parsed = parse(text);
  const key = keyOf(parsed, path, "output");
  const old = outputAt(parsed, path);
  if (seqAt(parsed, [...path, key]) !== null) return writeList(text, path, key, old, next);
  if (mapAt(parsed, [...path, key]) !== null && next.length > 0) return writeMap(text, [...path, key], old, next);
  const all = Object.fromEntries(next.map(({ name, about }) => [name, about]));
  return setField(text, path, key, all, ["type", "action_id", "condition", "template", ...ALIASES.prompt]);
}

function writeMap(text: string, path: Path, old: readonly Output[], next: readonly Output[]): string {
  let changed = text;
  const stays = new Set(next.map(({ name }) => name));
  for (const [at, { name, about }] of next.entries()) {
    // A name that was in this place, and is nowhere now, was changed.
    const before = old.find((one) => one.name === name) ?? [old[at]].find((one) => one !== undefined && !stays.has(one.name));
    if (before !== undefined && before.name !== name) changed = renameField(changed, path, before.name, name);
    if (before?.about !== about) changed = setField(changed, path, name, about, next.slice(0, at).map((one) => one.name));
  }
  for (const { name } of old) if (!stays.has(name)) changed = removeField(changed, path, name);
  return changed;
}

function writeList(text: string, path: Path, key: string, old: readonly Output[], next: readonly Output[]): string {
  let changed = text;
  const items = valueAt(parse(text), [...path, key]) as unknown[];
  const now = [...old];
  // Descriptions are changed in place, as long as the variables are the same ones.
  if (old.length === next.length) {
    for (const [at, one] of next.entries()) {
      const fields = items[at];
      const before = old[at];
      if (before === undefined || typeof fields !== "object" || fields === null) continue;
      const place = [...path, key, at];
      const keyIn = (keys: readonly string[]) => keys.find((name) => name in fields);
      const [name, about] = [keyIn(NAMES), keyIn(ABOUTS) ?? "description"];
      if (name === undefined) continue;
      if (before.name !== one.name) changed = setField(changed, place, name, one.name);
      if (before.about !== one.about) changed = setField(changed, place, about, one.about, [name]);
      now[at] = one;
    }
  }
  const item = ({ name, about }: Output) => (about === "" ? name : { var: name, description: about });
  return writeItems(changed, path, key, now.map((one) => JSON.stringify(one)), next.map((one) => JSON.stringify(one)), (at) =>
    item(next[at] ?? { name: "", about: "" }),
  );
}
