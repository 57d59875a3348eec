export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A line of the tree. */
export type TreeRow = {
  /** Path as operations of the state take it (F-112). */
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly value: Json;
  readonly kind: "object" | "list" | "text" | "number" | "boolean" | "null";
  /** Number of members; 0 for single values. */
  readonly size: number;
  readonly open: boolean;
};

/** The path of a member, written as the server writes it. */
export function pathOf(parent: string, key: string | number): string {
  if (typeof key === "number") return `${parent}[${key}]`;
  if (key.trim() === "" || /[.[\]]/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === "" ? key : `${parent}.${key}`;
}

export function kindOf(value: Json): TreeRow["kind"] {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (typeof value === "string") return "text";
  if (typeof value === "number") return "number";
  return typeof value === "boolean" ? "boolean" : "object";
}

function membersOf(value: Json): [string | number, Json][] {
  if (Array.isArray(value)) return value.map((one: Json, index): [number, Json] => [index, one]);
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

/** A value on one line, shortened. */
export function preview(value: Json, most = 200): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

type TreeOptions = {
  /** Paths that are open although they are closed by themselves, and the other way round. */
  toggled: ReadonlySet<string>;
  /** Levels that are open by themselves. */
  openDepth?: number;
  /** Only rows whose name, path or value holds it, with what they are in. */
  search?: string;
};

/** The lines of a tree that are shown. */
export function rowsOf(state: Json, { toggled, openDepth = 2, search = "" }: TreeOptions): TreeRow[] {
  const wanted = search.trim().toLowerCase();
  const rows: TreeRow[] = [];

  function add(name: string, value: Json, path: string, depth: number, inside: boolean): boolean {
    const kind = kindOf(value);
    const single = kind !== "object" && kind !== "list";
    const own =
      wanted === "" ||
      inside ||
      name.toLowerCase().includes(wanted) ||
      path.toLowerCase().includes(wanted) ||
      (single && preview(value, Infinity).toLowerCase().includes(wanted));
    const at = rows.length;
    const open = wanted !== "" ? true : toggled.has(path) !== depth < openDepth;
    const size = single ? 0 : membersOf(value).length;
    rows.push({ path, name, depth, value, kind, size, open: size > 0 && open });
    let found = own;
    if (open) {
      for (const [key, member] of membersOf(value)) {
        // What is in a row that was found by its name is shown with it.
        if (add(String(key), member, pathOf(path, key), depth + 1, own && wanted !== "")) found = true;
      }
    }
    if (!found) rows.length = at;
    return found;
  }

  for (const [key, member] of membersOf(state)) add(String(key), member, pathOf("", key), 0, false);
  return rows;
}
