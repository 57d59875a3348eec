import { commonLines, linesOf } from "./lines.ts";

export type Choice = "mine" | "theirs" | "both";

/** Part of two texts: the same in both, or a difference to choose from. */
export type Hunk =
  | { readonly kind: "same"; readonly text: string }
  | {
      readonly kind: "change";
      readonly mine: string;
      readonly theirs: string;
      /** Chosen side; at first the one that changed, null if both did. */
      readonly choice: Choice | null;
    };

/** Compares two texts. Their common base tells which side changed a part. */
export function hunksOf(mine: string, theirs: string, base: string | null): Hunk[] {
  return base === null ? twoWay(linesOf(mine), linesOf(theirs)) : threeWay(linesOf(mine), linesOf(theirs), linesOf(base));
}

function twoWay(mine: readonly string[], theirs: readonly string[]): Hunk[] {
  const hunks: Hunk[] = [];
  let [m, t] = [0, 0];
  for (const [x, y] of [...commonLines(mine, theirs), [mine.length, theirs.length] as const]) {
    push(hunks, mine.slice(m, x), theirs.slice(t, y), null);
    if (x < mine.length && y < theirs.length) same(hunks, mine[x] ?? "");
    [m, t] = [x + 1, y + 1];
  }
  return hunks;
}

function threeWay(mine: readonly string[], theirs: readonly string[], base: readonly string[]): Hunk[] {
  const inMine = new Map(commonLines(base, mine));
  const inTheirs = new Map(commonLines(base, theirs));
  const hunks: Hunk[] = [];
  let [b, m, t] = [0, 0, 0];
  for (let at = 0; at <= base.length; at += 1) {
    const end = at === base.length;
    const x = end ? mine.length : inMine.get(at);
    const y = end ? theirs.length : inTheirs.get(at);
    if (x === undefined || y === undefined) continue;
    const parts = [mine.slice(m, x), theirs.slice(t, y), base.slice(b, at)] as const;
    const [ours, other, before] = parts.map((lines) => lines.join(""));
    push(hunks, parts[0], parts[1], ours === before ? "theirs" : other === before ? "mine" : null);
    if (!end) same(hunks, base[at] ?? "");
    [b, m, t] = [at + 1, x + 1, y + 1];
  }
  return hunks;
}

function push(hunks: Hunk[], mine: readonly string[], theirs: readonly string[], choice: Choice | null): void {
  const [ours, other] = [mine.join(""), theirs.join("")];
  if (ours === other) same(hunks, ours);
  else hunks.push({ kind: "change", mine: ours, theirs: other, choice });
}

function same(hunks: Hunk[], text: string): void {
  const last = hunks.at(-1);
  if (text === "") return;
  if (last?.kind === "same") hunks[hunks.length - 1] = { kind: "same", text: last.text + text };
  else hunks.push({ kind: "same", text });
}

/** Text of the choices; null while one is open. */
export function merged(hunks: readonly Hunk[]): string | null {
  let text = "";
  for (const hunk of hunks) {
    if (hunk.kind === "same") text += hunk.text;
    else if (hunk.choice === null) return null;
    else text += hunk.choice === "mine" ? hunk.mine : hunk.choice === "theirs" ? hunk.theirs : hunk.mine + hunk.theirs;
  }
  return text;
}
