import { describe, expect, it } from "vitest";
import { rangeOf } from "./ranges.ts";
import { byRule, byStep, byUpstream, stepsOf, validOf } from "./series.ts";

const until = Date.parse("2026-01-02T01:30:00Z");

const row = (time: string, upstream: string | null, tokens: number) => ({
  time,
  upstream,
  completed: 1,
  failed: 0,
  cancelled: 0,
  repaired: 0,
  replaced: 0,
  input_tokens: tokens,
  output_tokens: 1,
  unpriced_tokens: 0,
  cost: tokens / 100,
  first_text_ms: null,
  first_text_p95_ms: null,
});

describe("series of figures", () => {
  it("have each step until now, also those without replies", () => {
    const days = { from: "2025-12-31", to: "2026-01-02", by: "day", until } as const;
    expect(stepsOf(days)).toEqual(["2025-12-31", "2026-01-01", "2026-01-02"]);
    const hours = stepsOf({ ...days, from: "2026-01-01", by: "hour" });
    expect(hours).toHaveLength(26);
    expect([hours[0], hours.at(-1)]).toEqual(["2026-01-01T00:00:00Z", "2026-01-02T01:00:00Z"]);
    const values = byStep(stepsOf(days), [row("2026-01-01", "a", 7)], ({ input_tokens: tokens }) => tokens, 0);
    expect(values).toEqual([0, 7, 0]);
  });

  it("are of the upstreams that use most, and of the others together", () => {
    const names = ["a", "b", "c", "d", "e", "f", null];
    const data = names.map((name, index) => row("2026-01-01", name, index));
    const upstreams = data;
    const series = byUpstream(["2026-01-01"], { data, upstreams }, ["input_tokens"], { unknown: "?", others: "others" });
    expect(series.map(({ name, values }) => [name, values[0]])).toEqual([
      ["?", 6],
      ["f", 5],
      ["e", 4],
      ["d", 3],
      ["others", 3],
    ]);
    const few = { data: data.slice(1, 3), upstreams: upstreams.slice(0, 3) };
    const both = byUpstream(["2026-01-01"], few, ["input_tokens", "output_tokens"], { unknown: "?", others: "others" });
    expect(both.map(({ name }) => name)).toEqual(["c", "b", "a"]);
    expect(byUpstream(["2026-01-01"], few, ["cost"], { unknown: "?", others: "others" }).map(({ name }) => name)).toEqual([
      "c",
      "b",
    ]);
  });

  it("are of the rules that repaired most, and of the others together", () => {
    const rule = (name: string, count: number) => ({ rule: name, code: "c", count });
    const repairs = ["a", "b", "c", "d", "e", "f"].map((name, at) => rule(name, 9 - at));
    const times = [
      { time: "2026-01-01", repairs: [rule("a", 4), rule("e", 3)] },
      { time: "2026-01-03", repairs: [rule("a", 5), rule("e", 2), rule("f", 1)] },
    ];
    const steps = ["2026-01-01", "2026-01-02", "2026-01-03"];
    const series = byRule(steps, { repairs, times }, "others");
    expect(series.map(({ name }) => name)).toEqual(["a c", "b c", "c c", "d c", "others"]);
    expect([series[0]?.values, series[4]?.values]).toEqual([[4, 0, 5], [3, 0, 3]]);
    expect(byRule(steps, { repairs: repairs.slice(0, 5), times }, "others").map(({ name }) => name)).toEqual(["a c", "b c", "c c", "d c", "e c"]);
  });

  it("has no share of valid replies where none has ended", () => {
    expect(validOf({ completed: 0, replaced: 0 })).toBeNull();
    expect(validOf({ completed: 4, replaced: 1 })).toBe(0.75);
  });

  it("is of a week unless another range is named", () => {
    expect([rangeOf(null), rangeOf("30d"), rangeOf("toString")]).toEqual(["7d", "30d", "7d"]);
  });
});
