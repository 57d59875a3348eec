import { describe, expect, it } from "vitest";
import { closest, fill, piecesOf, placeOf, variablesOf } from "./templateText.ts";

const fillText = (source: string, values: Record<string, string> = {}) =>
  fill(piecesOf(source), values)
    .map(({ text }) => text)
    .join("");

describe("a template of two layers", () => {
  it("has variables of both, in any script", () => {
    const source = "{用户名}，现在是{%time%}。{a.b-c_1} {用户名}";
    expect(variablesOf(piecesOf(source)).map(({ layer, name, uses }) => [layer, name, uses])).toEqual([
      ["script", "用户名", 2],
      ["system", "time", 1],
      ["script", "a.b-c_1", 1],
    ]);
  });

  it("leaves everything else in braces alone", () => {
    for (const text of ['{"level": 0-100}', "{}", "{ a }", "{...}", "{%%}", "{%a}", "{a%}", "{{ user }}", "{{a}} {{b", "{a\nb}"]) {
      expect(variablesOf(piecesOf(text)), text).toEqual([]);
      expect(fillText(text), text).toBe(text);
    }
    expect(fillText("{{{a}}}", { "{a}": "x" })).toBe("{{{a}}}");
    expect(fillText("{{ a\n{b}", { "{b}": "x" })).toBe("{{ a\nx");
  });

  it("takes backslashes as the server does", () => {
    expect(fillText("\\{a}", { "{a}": "x" })).toBe("{a}");
    expect(fillText("\\\\{a}", { "{a}": "x" })).toBe("\\x");
    expect(fillText("\\\\\\{a}", { "{a}": "x" })).toBe("\\{a}");
    expect(fillText("a\\b", {})).toBe("a\\b");
  });

  it("puts values in and does not read them again", () => {
    expect(fillText("{a} {%b%}", { "{a}": "{%b%}", "{%b%}": "1" })).toBe("{%b%} 1");
  });

  it("keeps what has no value, and tells it", () => {
    expect(fill(piecesOf("{a}{%a%}"), { "{%a%}": "1" })).toEqual([
      { text: "{a}", kind: "open", key: "{a}" },
      { text: "1", kind: "value", key: "{%a%}" },
    ]);
  });

  it("knows places and names that are nearly right", () => {
    expect(placeOf("a\n😀b", 4)).toEqual({ line: 2, column: 2 });
    expect(closest("tiem")).toBe("time");
    expect(closest("chat_histroy")).toBe("chat_history");
    expect(closest("weather")).toBeNull();
  });
});
