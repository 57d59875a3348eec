/** Block of a rendered message: an element, or the text between elements. */
export type Block = { readonly tag: string | null; readonly text: string };

const OPENING = /^<([\p{L}\p{N}_.-]+)(\s[^<>]*)?>$/u;

/**
 * Splits a message into blocks: elements whose tags have lines of their own, as prompts are rendered, and the texts
 * between them. An element ends at the first line that closes it at its own level.
 */
export function blocksOf(content: string): Block[] {
  const blocks: Block[] = [];
  const lines = content.split("\n");
  let text: string[] = [];
  const flush = () => {
    const joined = text.join("\n").trim();
    if (joined !== "") blocks.push({ tag: null, text: joined });
    text = [];
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const tag = OPENING.exec(line)?.[1];
    const end = tag === undefined ? -1 : closingLine(lines, at, tag);
    if (tag === undefined || end < 0) {
      text.push(line);
      continue;
    }
    flush();
    blocks.push({ tag, text: lines.slice(at, end + 1).join("\n") });
    at = end;
  }
  flush();
  return blocks;
}

function closingLine(lines: readonly string[], start: number, tag: string): number {
  let depth = 0;
  for (let at = start; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (OPENING.exec(line)?.[1] === tag) depth += 1;
    if (line === `</${tag}>`) depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}
