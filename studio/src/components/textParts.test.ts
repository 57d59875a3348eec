// @vitest-environment node

import { expect, it } from "vitest";
import { filePart, filePartCount, partStarts } from "./textParts.ts";

it("parts of a text begin behind lines, and never inside a character", () => {
  const text = `${"a".repeat(70)}\n${"😀".repeat(60)}${"b".repeat(90)}`;
  const starts = partStarts(text, 100);
  expect(starts.map((start, at) => text.slice(start, starts[at + 1])).join("")).toBe(text);
  expect(starts[1]).toBe(71);
  for (const start of starts) expect(text.charAt(start)).not.toMatch(/[\uDC00-\uDFFF]/);
});

it("parts of a long text without lines are found at once", () => {
  const begun = performance.now();
  expect(partStarts("x".repeat(50_000_000))).toHaveLength(250);
  expect(performance.now() - begun).toBeLessThan(1000);
});

it("parts of a file are those of its text, whatever they are cut at", async () => {
  const text = "\uFEFFa思😀é\n".repeat(20);
  const file = new Blob([text]);
  for (let size = 4; size < 12; size += 1) {
    const parts = Array.from({ length: filePartCount(file.size, size) }, (_, part) => filePart(file, part, size));
    expect((await Promise.all(parts)).join("")).toBe(text);
  }
  expect(filePartCount(0)).toBe(1);
});
