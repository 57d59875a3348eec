import { describe, expect, it } from "vitest";
import { declaredIn, variablesOf } from "./variables.ts";

describe("variables of a form", () => {
  it("are JSON where they can be, and text else", () => {
    const rows = [
      { name: "age", value: "12" },
      { name: " name ", value: "小明" },
      { name: "on", value: "true" },
      { name: "", value: "lost" },
    ];
    expect(variablesOf(rows)).toEqual({ age: 12, name: "小明", on: true });
  });

  it("are those that any part of a script declares", () => {
    const script = { sessions: [{ declare: [{ var: "a", value: 1 }], phases: [{ declare: [{ var: "b" }], steps: [] }] }] };
    expect(declaredIn(script)).toEqual([
      { name: "a", value: "1" },
      { name: "b", value: "" },
    ]);
    expect(declaredIn(null)).toEqual([]);
  });
});
