import { type Json } from "./stateTree.ts";

/** Operations of the state, in display order (F-111). */
export const OPERATIONS = ["SET", "ADD", "SUB", "MUL", "DIV", "PUSH", "POP", "DELETE"] as const;

export type OperationName = (typeof OPERATIONS)[number];

/** Operation as typed. */
export type Draft = { readonly op: OperationName; readonly path: string; readonly value: string };

/** True if an operation has a value. */
export const takesValue = (op: OperationName): boolean => op !== "POP" && op !== "DELETE";

/** Parses a typed value: JSON if valid, else the text itself. */
export function valueOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** Operation in the server's format. */
export function operationOf({ op, path, value }: Draft): Json[] {
  return takesValue(op) ? [op, path.trim(), valueOf(value)] : [op, path.trim()];
}

/** Update of the state, from its history. */
export type Update = {
  readonly position: number;
  readonly message_id: string | null;
  readonly update_id?: string;
  readonly created: string;
  readonly analysis?: string;
  readonly operations: readonly object[];
  readonly results: readonly object[];
  readonly reversible: boolean;
};

/** Operation with its result. */
export type Step = {
  readonly op: string;
  readonly path: string;
  readonly value?: Json;
  readonly ok: boolean;
  readonly before?: Json;
  readonly after?: Json;
  readonly reason?: string;
  readonly message?: string;
};

/** Id for `rollback`, `from` and `to`. */
export const pointOf = ({ message_id, update_id }: Update): string => update_id ?? message_id ?? "";

/** Operations of an update, each with its result. */
export function stepsOf({ operations, results }: Pick<Update, "operations" | "results">): Step[] {
  const byIndex = new Map(results.map((result) => [(result as { index?: number }).index, result as Partial<Step>]));
  return operations.map((operation, index): Step => {
    const { op = "?", path = "", value } = operation as { op?: string; path?: unknown; value?: Json };
    const { ok = false, ...result } = byIndex.get(index) ?? {};
    return {
      ...result,
      ok,
      op,
      path: typeof path === "string" ? path : JSON.stringify(path),
      ...(value === undefined ? {} : { value }),
    };
  });
}

/** True if a step or a text of an update contains the search text. */
export function updateMatches(update: Update, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  if (wanted === "") return true;
  return `${update.analysis ?? ""} ${pointOf(update)} ${JSON.stringify(update.operations)} ${JSON.stringify(update.results)}`
    .toLowerCase()
    .includes(wanted);
}

/** Difference between two states. */
export type Difference = { readonly path: string; readonly before?: Json; readonly after?: Json };

/** Reverses differences, to show the effect of undoing them. */
export const invert = (differences: readonly Difference[]): Difference[] =>
  differences.map(({ path, before, after }) => ({
    path,
    ...(after === undefined ? {} : { before: after }),
    ...(before === undefined ? {} : { after: before }),
  }));
