/** Parts of a JSON Schema that describe the arguments of a tool. */
type ArgumentsSchema = {
  readonly type?: unknown;
  readonly default?: unknown;
  readonly enum?: unknown;
  readonly properties?: unknown;
  readonly required?: unknown;
};

const EMPTY: Readonly<Record<string, unknown>> = { string: "", number: 0, integer: 0, boolean: false, array: [], null: null };

/** Deepest level that is filled in. */
const DEEPEST = 8;

/** Initial arguments: required ones, with defaults, first choices and empty values. */
export function blankArguments(schema: unknown, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null) return {};
  const { type, default: given, enum: choices, properties, required } = schema as ArgumentsSchema;
  if (given !== undefined) return given;
  if (Array.isArray(choices) && choices.length > 0) return choices[0] as unknown;
  const name: unknown = Array.isArray(type) ? type[0] : type;
  if (typeof name === "string" && name !== "object") return EMPTY[name] ?? null;
  if (typeof properties !== "object" || properties === null || depth >= DEEPEST) return {};
  const names = Array.isArray(required) ? required.filter((one): one is string => typeof one === "string") : [];
  const fields = properties as Readonly<Record<string, unknown>>;
  return Object.fromEntries(names.map((field) => [field, blankArguments(fields[field], depth + 1)]));
}
