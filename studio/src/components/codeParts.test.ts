import { expect, test } from "vitest";
import { codeParts } from "./codeParts.ts";

test("what stands between backticks is code, and a lone backtick stays", () => {
  expect(codeParts("the field `max_rounds` takes `1` to 20")).toEqual([
    { words: "the field ", isCode: false },
    { words: "max_rounds", isCode: true },
    { words: " takes ", isCode: false },
    { words: "1", isCode: true },
    { words: " to 20", isCode: false },
  ]);
  expect(codeParts("a ` alone")).toEqual([{ words: "a ` alone", isCode: false }]);
});
