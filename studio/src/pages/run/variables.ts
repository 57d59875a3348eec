export type Variable = { readonly name: string; readonly value: string };

/** Parses a typed value: JSON if valid, else the text itself. */
export function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Variables of a form, without unnamed rows. */
export function variablesOf(rows: readonly Variable[]): Record<string, unknown> {
  return Object.fromEntries(rows.filter(({ name }) => name.trim() !== "").map(({ name, value }) => [name.trim(), valueOf(value)]));
}

export const shownValue = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** Variables declared by a script, with their first values, for the form. Of two with one name the last counts. */
export function declaredIn(script: unknown): Variable[] {
  const found = new Map<string, string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      node.forEach(visit);
      return;
    }
    if (typeof node !== "object" || node === null) return;
    for (const [key, value] of Object.entries(node)) {
      if (key === "declare" && Array.isArray(value)) {
        for (const one of value as { var?: unknown; value?: unknown }[]) {
          if (typeof one.var === "string") found.set(one.var, one.value === undefined ? "" : shownValue(one.value));
        }
      } else visit(value);
    }
  };
  visit(script);
  return [...found].map(([name, value]) => ({ name, value }));
}
