import { valueAt, type Parsed } from "./parse.ts";
import { flatten, type OutlineNode } from "./outline.ts";

/** Variables of the system, written `{%name%}`. */
export const SYSTEM_VARIABLES = [
  "time",
  "who",
  "user",
  "chat_history",
  "understanding_threshold",
  "current_round",
  "round",
  "max_rounds",
] as const;

const SCRIPT_VARIABLE = /\{([\p{L}_][\p{L}\p{N}_]*)\}/gu;
const SYSTEM_VARIABLE = /\{%([\p{L}\p{N}_]+)%\}/gu;

export type UsedVariable = { readonly name: string; readonly system: boolean; readonly known: boolean };

/** Variables of the script known to a part: declared around it, or set by actions of its session. */
export function variablesAt(parsed: Parsed, nodes: readonly OutlineNode[], node: OutlineNode): string[] {
  const names = new Set<string>();
  const around = flatten(nodes).filter(({ id }) => node.id === id || node.id.startsWith(`${id}.`));
  for (const { path } of around) declaredAt(parsed, path).forEach(({ name }) => names.add(name));
  declaredAt(parsed, []).forEach(({ name }) => names.add(name));
  const session = around.find(({ kind }) => kind === "session");
  for (const action of flatten(session?.children ?? []).filter(({ kind }) => kind === "action")) {
    const fields = action.flat ? [...action.path, "config"] : action.path;
    for (const key of ["variable", "target_variable"]) {
      const name = valueAt(parsed, [...fields, key]);
      if (typeof name === "string" && name !== "") names.add(name);
    }
    for (const key of ["output", "output_variables"]) {
      const output = valueAt(parsed, [...fields, key]);
      if (typeof output === "object" && output !== null && !Array.isArray(output)) {
        Object.keys(output).forEach((name) => names.add(name));
      }
    }
  }
  return [...names];
}

export type Declared = { readonly name: string; readonly value: unknown };

export function declaredAt(parsed: Parsed, path: readonly (string | number)[]): Declared[] {
  const list = valueAt(parsed, [...path, "declare"]);
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: unknown): Declared[] => {
    if (typeof one !== "object" || one === null) return [];
    const { var: name, value = null } = one as { var?: unknown; value?: unknown };
    return typeof name === "string" || typeof name === "number" ? [{ name: String(name), value }] : [];
  });
}

/** Variables in a text, each once, marked as known or unknown. */
export function usedIn(text: string, known: readonly string[]): UsedVariable[] {
  const used = new Map<string, UsedVariable>();
  const system = new Set<string>(SYSTEM_VARIABLES);
  for (const [, name = ""] of text.matchAll(SYSTEM_VARIABLE)) {
    used.set(`%${name}`, { name, system: true, known: system.has(name) });
  }
  for (const [, name = ""] of text.matchAll(SCRIPT_VARIABLE)) {
    used.set(name, { name, system: false, known: known.includes(name) || name === "topic_content" });
  }
  return [...used.values()];
}

export const spelled = ({ name, system }: Pick<UsedVariable, "name" | "system">): string =>
  system ? `{%${name}%}` : `{${name}}`;
