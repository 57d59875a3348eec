import { describe, expect, it } from "vitest";
import { turnsOf, wordsOf } from "./swipes.ts";

const message = (message_id: string, current = true, before?: string) => ({
  message_id,
  current,
  ...(before === undefined ? {} : { in_place_of: before }),
});
const OLD = false;
const shape = (messages: Parameters<typeof turnsOf>[0]) =>
  turnsOf(messages).map(({ swipes, live }) => [
    swipes.map((swipe) => [swipe.message.message_id, ...swipe.after.map((one) => one.message_id)].join(">")).join("|"),
    live,
  ]);

describe("turns of a conversation", () => {
  it("are its messages, where nothing was regenerated", () => {
    expect(shape([message("a"), message("b")])).toEqual([
      ["a", true],
      ["b", true],
    ]);
  });

  it("have the versions of an answer, each with what came after it", () => {
    expect(shape([message("a"), message("b", OLD), message("c", OLD), message("b2", true, "b"), message("d")])).toEqual([
      ["a", true],
      ["b>c|b2", true],
      ["d", true],
    ]);
  });

  it("keep versions within versions", () => {
    const list = [
      message("b", OLD), message("c", OLD), message("c2", OLD, "c"), message("b2", OLD, "b"), message("b3", true, "b2"),
    ];
    expect(shape(list)).toEqual([["b>c>c2|b2|b3", true]]);
  });

  it("are told apart where the same was asked twice", () => {
    // Two messages "continue", the first of them regenerated: the second is no version of it.
    expect(shape([message("a", OLD), message("b", OLD), message("a2", true, "a")])).toEqual([["a>b|a2", true]]);
    expect(shape([message("a"), message("b", OLD), message("b2", true, "b")])).toEqual([
      ["a", true],
      ["b|b2", true],
    ]);
  });

  it("keep what was superseded by a message that was deleted, and what came after it", () => {
    expect(shape([message("a", OLD), message("b")])).toEqual([
      ["a", false],
      ["b", true],
    ]);
    expect(shape([message("a", OLD), message("b", OLD), message("c", OLD)])).toEqual([["a>b>c", false]]);
    expect(shape([message("a", OLD), message("a3", true, "a2")])).toEqual([
      ["a", false],
      ["a3", true],
    ]);
  });

  it("are called after the words of the user", () => {
    expect(wordsOf({ text: "hello" })).toBe("hello");
    expect(wordsOf({ messages: [{ role: "user", content: "a" }, { role: "assistant", content: "b" }] })).toBe("a");
    expect(wordsOf({})).toBe("");
  });
});
