import { describe, expect, it } from "vitest";
import { blocksOf } from "./blocks.ts";

describe("blocks of a message", () => {
  it("are its elements and what is between them", () => {
    const content = "Before.\n\n<a>\none\n</a>\n<lorebook_entry name=\"The bell\">\ntwo\n</lorebook_entry>\nAfter.";
    expect(blocksOf(content)).toEqual([
      { tag: null, text: "Before." },
      { tag: "a", text: "<a>\none\n</a>" },
      { tag: "lorebook_entry", text: '<lorebook_entry name="The bell">\ntwo\n</lorebook_entry>' },
      { tag: null, text: "After." },
    ]);
  });

  it("keep elements within elements, and names in any script", () => {
    expect(blocksOf("<森林>\n<森林>\nx\n</森林>\n</森林>")).toEqual([
      { tag: "森林", text: "<森林>\n<森林>\nx\n</森林>\n</森林>" },
    ]);
  });

  it("are text where a tag is not closed or not alone", () => {
    expect(blocksOf("<a>\nopen")).toEqual([{ tag: null, text: "<a>\nopen" }]);
    expect(blocksOf("say <b> here")).toEqual([{ tag: null, text: "say <b> here" }]);
    expect(blocksOf("")).toEqual([]);
  });
});
