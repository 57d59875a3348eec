import { describe, expect, it } from "vitest";
import { type LoreEntry } from "../imports/lore.ts";
import { causeOf, keysIn, splitByTitle } from "./loreKeys.ts";

const entry = (title: string, more: Partial<LoreEntry> = {}): LoreEntry => ({
  id: title,
  title,
  keys: [],
  secondary_keys: [],
  logic: "and_any",
  selective: false,
  content: "",
  enabled: true,
  order: 100,
  constant: false,
  regex: false,
  case_sensitive: null,
  position: "before_char",
  depth: 4,
  role: "system",
  outlet: "",
  probability: 100,
  sticky: 0,
  cooldown: 0,
  delay: 0,
  ...more,
});

describe("what woke an entry", () => {
  it("is a key that stands in the messages", () => {
    expect(keysIn(entry("a", { keys: ["Ship", "mast", "/m.st/i", ""] }), ["A SHIP!"])).toEqual(["Ship"]);
    expect(keysIn(entry("a", { keys: ["Ship"], case_sensitive: true }), ["a ship"])).toEqual([]);
    expect(keysIn(entry("a", { keys: ["s.ip"], regex: true }), ["s.ip"])).toEqual([]);
  });

  it("is nothing, for constant entries, and unknown otherwise", () => {
    expect(causeOf(entry("a", { constant: true }), [])).toEqual({ kind: "constant" });
    expect(causeOf(entry("a", { keys: ["x"] }), ["y"])).toEqual({ kind: "other" });
    expect(causeOf(entry("a", { keys: ["x"] }), ["x"])).toEqual({ kind: "keys", keys: ["x"] });
  });

  it("is found by the title, each entry once", () => {
    const entries = [entry("a"), entry("a"), entry("b", { enabled: false }), entry("c")];
    const { woken, asleep } = splitByTitle(entries, ["a", "a", "b", "depth prompt"]);
    expect(woken.map(({ entry: one }) => one === null)).toEqual([false, false, true, true]);
    expect(asleep.map(({ title }) => title)).toEqual(["b", "c"]);
  });
});
