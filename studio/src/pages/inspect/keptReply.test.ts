// @vitest-environment jsdom
import { beforeEach, expect, test } from "vitest";
import { keepReply, keptReply, LONGEST_KEPT } from "./keptReply.ts";

beforeEach(() => sessionStorage.clear());

test("a text is kept with how it is read", () => {
  expect(keptReply()).toBeNull();
  keepReply({ text: "<final>hi</final>", dialect: "thinkingml", profile: "lenient" });
  expect(keptReply()).toEqual({ text: "<final>hi</final>", dialect: "thinkingml", profile: "lenient" });
});

test("neither an emptied nor a very long text is kept, nor what was kept before it", () => {
  for (const text of [" ", "x".repeat(LONGEST_KEPT + 1)]) {
    keepReply({ text: "before", dialect: "auto", profile: "strict" });
    keepReply({ text, dialect: "auto", profile: "strict" });
    expect(keptReply()).toBeNull();
  }
});
