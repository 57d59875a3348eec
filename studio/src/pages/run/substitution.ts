export type Piece = { readonly text: string; readonly name: string | null };

const PLACE = /\{%\s*([^{}%]+?)\s*%\}|\{([^{}\s"':,]+)\}/gu;

/**
 * Splits a prompt into pieces: literal text of its template, and values with the names of their variables. `null` if
 * the prompt was not made from this template.
 */
export function substituted(template: string, prompt: string): Piece[] | null {
  const pieces: Piece[] = [];
  let at = 0;
  let from = 0;
  let name: string | null = null;
  const put = (literal: string, last: boolean): boolean => {
    // A value may contain the literal after it: the last literal ends the prompt, the others match at the first occurrence.
    const found = last && literal !== "" && prompt.endsWith(literal) ? prompt.length - literal.length : prompt.indexOf(literal, at);
    const end = literal === "" && last ? prompt.length : found;
    if (end < at || (name === null && end !== at)) return false;
    if (name !== null) pieces.push({ text: prompt.slice(at, end), name });
    if (literal !== "") pieces.push({ text: literal, name: null });
    at = end + literal.length;
    return true;
  };
  for (const match of template.matchAll(PLACE)) {
    if (!put(template.slice(from, match.index), false)) return null;
    name = match[1] ?? match[2] ?? "";
    from = match.index + match[0].length;
  }
  const rest = template.slice(from);
  if (!put(rest, prompt.endsWith(rest))) return null;
  if (at < prompt.length) pieces.push({ text: prompt.slice(at), name: null });
  return pieces;
}
