export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Line of the tree. */
export type TreeRow = {
  /** Path in the form of state operations (F-112). */
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  readonly value: Json;
  readonly kind: "object" | "list" | "text" | "number" | "boolean" | "null";
  /** Number of members; 0 for single values. */
  readonly size: number;
  readonly open: boolean;
};

/** Path of a member, in the server's notation. */
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

/** Value on one line, shortened. */
export function preview(value: Json, most = 200): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

type TreeOptions = {
  /** Paths whose state differs from the default: open instead of closed, or closed instead of open. */
  toggled: ReadonlySet<string>;
  /** Number of levels that are open by default. */
  openDepth?: number;
  /** Search text: only matching rows (name, path or value) and their parents are shown. */
  search?: string;
};

/** Visible lines of a tree. */
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
        // Children of a row that matched by name are shown with it.
        if (add(String(key), member, pathOf(path, key), depth + 1, own && wanted !== "")) found = true;
      }
    }
    if (!found) rows.length = at;
    return found;
  }

  for (const [key, member] of membersOf(state)) add(String(key), member, pathOf("", key), 0, false);
  return rows;
}
