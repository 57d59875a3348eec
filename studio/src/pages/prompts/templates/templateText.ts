/** Part of a template of two layers, by offsets. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "variable"; readonly layer: Layer; readonly name: string; readonly from: number; readonly to: number };

export type Layer = "script" | "system";

/** System variables of each round. */
export const SYSTEM_NAMES: readonly string[] = [
  "time",
  "who",
  "user",
  "chat_history",
  "understanding_threshold",
  "current_round",
  "round",
  "max_rounds",
];

const VARIABLE = /^\{(?:%([\p{L}\p{M}\p{N}_.-]+)%|([\p{L}\p{M}\p{N}_.-]+))\}/u;
const NAMED = /[\p{L}\p{N}]/u;

/**
 * Parses a template as the server does: `{name}` and `{%name%}` are variables; a backslash escapes a brace,
 * a double backslash is one; text in `{{` `}}` on one line is kept unchanged.
 */
export function piecesOf(source: string): Piece[] {
  const pieces: Piece[] = [];
  let text = 0;
  let at = 0;
  const push = (to: number) => {
    if (to > text) pieces.push({ kind: "text", text: source.slice(text, to) });
  };
  for (;;) {
    const brace = source.indexOf("{", at);
    if (brace < 0) break;
    let backslashes = 0;
    while (brace - backslashes > at && source[brace - backslashes - 1] === "\\") backslashes += 1;
    if (backslashes > 0) {
      push(brace - backslashes + Math.floor(backslashes / 2));
      text = brace;
    }
    if (backslashes % 2 === 1) {
      at = brace + 1;
      continue;
    }
    if (source.startsWith("{{", brace)) {
      at = reservedEnd(source, brace);
      continue;
    }
    // Names are short; a longer rest of the text need not be copied.
    const found = VARIABLE.exec(source.slice(brace, brace + 500));
    const name = found?.[1] ?? found?.[2];
    if (found === null || name === undefined || !NAMED.test(name)) {
      at = brace + 1;
      continue;
    }
    push(brace);
    const to = brace + found[0].length;
    pieces.push({ kind: "variable", layer: found[1] === undefined ? "script" : "system", name, from: brace, to });
    text = to;
    at = to;
  }
  push(source.length);
  return pieces;
}

/** End of the Jinja braces that open at an offset. */
function reservedEnd(source: string, start: number): number {
  let inside = start;
  while (source[inside] === "{") inside += 1;
  const stop = source.slice(inside).search(/[\n{}]/);
  const at = stop < 0 ? source.length : inside + stop;
  return source.startsWith("}}", at) ? at + 2 : inside;
}

export type Variable = { readonly layer: Layer; readonly name: string; readonly uses: number; readonly first: number };

/** Variables of a template in order of first use. */
export function variablesOf(pieces: readonly Piece[]): Variable[] {
  const found = new Map<string, { layer: Layer; name: string; uses: number; first: number }>();
  for (const piece of pieces) {
    if (piece.kind !== "variable") continue;
    const key = keyOf(piece);
    const known = found.get(key);
    if (known === undefined) found.set(key, { layer: piece.layer, name: piece.name, uses: 1, first: piece.from });
    else known.uses += 1;
  }
  return [...found.values()];
}

/** Variable as written. */
export const keyOf = ({ layer, name }: { layer: Layer; name: string }): string =>
  layer === "system" ? `{%${name}%}` : `{${name}}`;

/** Part of a filled template; `open` is a variable without a value, which stays as written. */
export type Filled = { readonly text: string; readonly kind: "text" | "value" | "open"; readonly key?: string };

/** Fills a template. Values are inserted verbatim and never parsed. */
export function fill(pieces: readonly Piece[], values: Readonly<Record<string, string>>): Filled[] {
  return pieces.map((piece): Filled => {
    if (piece.kind === "text") return { text: piece.text, kind: "text" };
    const key = keyOf(piece);
    const value = values[key];
    return value === undefined || value === "" ? { text: key, kind: "open", key } : { text: value, kind: "value", key };
  });
}

/** Line and column of an offset, from 1, columns in characters. */
export function placeOf(source: string, offset: number): { line: number; column: number } {
  const before = source.slice(0, offset).split("\n");
  return { line: before.length, column: Array.from(before.at(-1) ?? "").length + 1 };
}

/** Suggests a system variable with a similar name. */
export function closest(name: string): string | null {
  const scored = SYSTEM_NAMES.map((known) => [known, distance(name.toLowerCase(), known)] as const);
  const [best] = scored.sort((a, b) => a[1] - b[1]);
  return best !== undefined && best[1] <= 2 ? best[0] : null;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
