import { describe, expect, it } from "vitest";
import { commonLines, indentOf, linesOf } from "./lines.ts";
import { type Choice, hunksOf, merged } from "./merge.ts";

const mergeTexts = (mine: string, theirs: string, base: string | null, choice: Choice | null = null) =>
  merged(hunksOf(mine, theirs, base).map((hunk) => (hunk.kind === "same" || choice === null ? hunk : { ...hunk, choice })));

describe("a merge", () => {
  it("takes what only one side changed", () => {
    expect(mergeTexts("a\nB\nc\nd\n", "a\nb\nc\nD\nnew\n", "a\nb\nc\nd\n")).toBe("a\nB\nc\nD\nnew\n");
    expect(mergeTexts("b\n", "a\nb\nc\n", "a\nb\n")).toBe("b\nc\n");
    expect(mergeTexts("a\n", "a\n", "b\n")).toBe("a\n");
  });

  it("leaves open what both changed", () => {
    const hunks = hunksOf("a\nmine\nc\n", "a\ntheirs\nc\n", "a\nb\nc\n");
    expect(merged(hunks)).toBeNull();
    expect(hunks).toHaveLength(3);
    expect(mergeTexts("a\nmine\nc\n", "a\ntheirs\nc\n", "a\nb\nc\n", "both")).toBe("a\nmine\ntheirs\nc\n");
  });

  it("gives either text whole, for texts made at random, with and without what they began from", () => {
    let seed = 7;
    const next = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const text = () => Array.from({ length: next(30) }, () => `${"abcdef"[next(6)] ?? ""}\n`).join("");
    for (let round = 0; round < 300; round += 1) {
      const [mine, theirs, base] = [text(), text(), text()];
      for (const from of [null, base]) {
        expect(mergeTexts(mine, theirs, from, "mine")).toBe(mine);
        expect(mergeTexts(mine, theirs, from, "theirs")).toBe(theirs);
      }
      expect(mergeTexts(mine, base, base)).toBe(mine);
      expect(mergeTexts(base, theirs, base)).toBe(theirs);
    }
  });

  it("finds the lines in common", () => {
    const pairs = commonLines(linesOf("a\nb\nc\n"), linesOf("b\nx\nc\n"));
    expect(pairs).toEqual([[1, 0], [2, 2]]);
  });
});

it("two sides lose the indent that they share, blank lines or not", () => {
  expect(indentOf(["    a\n\n      b\n", "      c\n"])).toBe(4);
  expect(indentOf(["\n", ""])).toBe(0);
});
