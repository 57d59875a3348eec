import { describe, expect, it } from "vitest";
import { invert, operationOf, pointOf, stepsOf, updateMatches, valueOf } from "./operations.ts";

const update = {
  position: 2,
  message_id: "msg_1",
  created: "2026-11-25T16:53:22.443Z",
  analysis: "spent",
  operations: [
    { op: "SUB", path: "gold", value: 3 },
    { op: "DIV", path: "gold", value: 0 },
  ],
  results: [
    { index: 1, ok: false, reason: "division_by_zero", message: "a division by 0" },
    { index: 0, ok: true, before: 10, after: 7 },
  ],
  reversible: true,
};

describe("operations", () => {
  it("take JSON, or a text as it is typed", () => {
    expect(valueOf("1.5")).toBe(1.5);
    expect(valueOf('{"a": [true]}')).toEqual({ a: [true] });
    expect(valueOf("old well")).toBe("old well");
    expect(valueOf("")).toBe("");
    expect(operationOf({ op: "SET", path: " a.b ", value: "1" })).toEqual(["SET", "a.b", 1]);
    expect(operationOf({ op: "POP", path: "a", value: "1" })).toEqual(["POP", "a"]);
  });

  it("stand with their results, in whatever order these come", () => {
    expect(stepsOf(update)).toEqual([
      { index: 0, ok: true, before: 10, after: 7, op: "SUB", path: "gold", value: 3 },
      { index: 1, ok: false, reason: "division_by_zero", message: "a division by 0", op: "DIV", path: "gold", value: 0 },
    ]);
  });

  it("are found by path, reason and analysis", () => {
    expect(updateMatches(update, "GOLD")).toBe(true);
    expect(updateMatches(update, "division")).toBe(true);
    expect(updateMatches(update, "spent")).toBe(true);
    expect(updateMatches(update, "silver")).toBe(false);
  });

  it("are named by their update, else by their message", () => {
    expect(pointOf(update)).toBe("msg_1");
    expect(pointOf({ ...update, message_id: null, update_id: "upd_1" })).toBe("upd_1");
  });

  it("are shown backwards before they are taken back", () => {
    expect(invert([{ path: "a", after: 1 }, { path: "b", before: 2, after: 3 }, { path: "c", before: null }])).toEqual([
      { path: "a", before: 1 },
      { path: "b", before: 3, after: 2 },
      { path: "c", after: null },
    ]);
  });
});
