import { describe, expect, it } from "vitest";
import { turnsOf, wordsOf } from "./swipes.ts";

const message = (message_id: string, text: string, status = "completed") => ({ message_id, status, request: { text } });
const shape = (messages: Parameters<typeof turnsOf>[0]) =>
  turnsOf(messages).map(({ swipes, live }) => [
    swipes.map((swipe) => [swipe.message.message_id, ...swipe.after.map((one) => one.message_id)].join(">")).join("|"),
    live,
  ]);

describe("turns of a conversation", () => {
  it("are its messages, where nothing was regenerated", () => {
    expect(shape([message("a", "1"), message("b", "2")])).toEqual([
      ["a", true],
      ["b", true],
    ]);
  });

  it("have the versions of an answer, each with what came after it", () => {
    const old = "superseded";
    expect(
      shape([message("a", "1"), message("b", "2", old), message("c", "3", old), message("b2", "2"), message("d", "4")]),
    ).toEqual([
      ["a", true],
      ["b>c|b2", true],
      ["d", true],
    ]);
  });

  it("keep versions within versions", () => {
    const old = "superseded";
    const list = [message("b", "2", old), message("c", "3", old), message("c2", "3", old), message("b2", "2", old), message("b3", "2")];
    expect(shape(list)).toEqual([["b>c>c2|b2|b3", true]]);
  });

  it("keep what was superseded by a message that was deleted", () => {
    expect(shape([message("a", "1", "superseded"), message("b", "2")])).toEqual([
      ["a", false],
      ["b", true],
    ]);
    expect(shape([message("a", "1", "superseded")])).toEqual([["a", false]]);
  });

  it("are called after the words of the user", () => {
    expect(wordsOf({ text: "hello" })).toBe("hello");
    expect(wordsOf({ messages: [{ role: "user", content: "a" }, { role: "assistant", content: "b" }] })).toBe("a");
    expect(wordsOf({})).toBe("");
  });
});
