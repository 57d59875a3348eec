import { describe, expect, it } from "vitest";
import { pathOf, preview, rowsOf } from "./stateTree.ts";

const state = { hero: { name: "Mia", "a.b": 1, bag: [{ deep: { er: true } }] }, 好感度: 3, empty: {} };
const none = new Set<string>();

describe("the tree of a state", () => {
  it("has a line for each member that is open", () => {
    const rows = rowsOf(state, { toggled: none });
    expect(rows.map(({ path, depth, open }) => [path, depth, open])).toEqual([
      ["hero", 0, true],
      ["hero.name", 1, false],
      ['hero["a.b"]', 1, false],
      ["hero.bag", 1, true],
      ["hero.bag[0]", 2, false],
      ["好感度", 0, false],
      ["empty", 0, false],
    ]);
  });

  it("opens and closes by hand", () => {
    const paths = (toggled: string[]) => rowsOf(state, { toggled: new Set(toggled) }).map(({ path }) => path);
    expect(paths(["hero"])).toEqual(["hero", "好感度", "empty"]);
    expect(paths(["hero.bag[0]"])).toContain("hero.bag[0].deep");
  });

  it("finds names and values, however deep, with what they are in", () => {
    const found = (search: string) => rowsOf(state, { toggled: none, search }).map(({ path }) => path);
    expect(found("mia")).toEqual(["hero", "hero.name"]);
    expect(found("er")).toContain("hero.bag[0].deep.er");
    expect(found("deep")).toEqual(["hero", "hero.bag", "hero.bag[0]", "hero.bag[0].deep", "hero.bag[0].deep.er"]);
    expect(found("nothing of it")).toEqual([]);
  });

  it("writes paths as operations take them", () => {
    expect(pathOf("", "a b")).toBe("a b");
    expect(pathOf("x", 'q.["q')).toBe('x["q.[\\"q"]');
    expect(pathOf("x", "")).toBe('x[""]');
    expect(pathOf("x", " ")).toBe('x[" "]');
    expect(pathOf("x", 0)).toBe("x[0]");
  });

  it("shortens values", () => {
    expect(preview("abcdef", 3)).toBe("abc…");
    expect(preview({ a: [1] })).toBe('{"a":[1]}');
  });
});
