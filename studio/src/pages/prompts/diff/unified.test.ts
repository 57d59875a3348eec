import { describe, expect, it } from "vitest";
import { linesOf } from "./unified.ts";

describe("a unified diff", () => {
  it("is read line by line", () => {
    const diff = "--- version 1\n+++ version 2\n@@ -1,2 +1,2 @@\n same\n---- a\n+++ b\n\\ No newline at end of file\n";
    expect(linesOf(diff)).toEqual([
      { kind: "head", text: "--- version 1" },
      { kind: "head", text: "+++ version 2" },
      { kind: "place", text: "@@ -1,2 +1,2 @@" },
      { kind: "same", text: "same" },
      { kind: "removed", text: "--- a" },
      { kind: "added", text: "++ b" },
      { kind: "note", text: "No newline at end of file" },
    ]);
  });

  it("of equal texts has no lines", () => {
    expect(linesOf("")).toEqual([]);
  });
});
