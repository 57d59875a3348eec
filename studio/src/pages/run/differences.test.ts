import { expect, test } from "vitest";
import { rowsOf } from "./differences.ts";

test("parts of one decision are one row, and those of another turn are another", () => {
  const rows = rowsOf([
    { turn: 2, field: "status", expected: "completed", found: "active" },
    { turn: 2, field: "exit_decision.should_exit", expected: true, found: false },
    { turn: 2, field: "exit_decision.unmet", expected: [], found: ["understanding_level"] },
    { turn: 3, field: "exit_decision.should_exit", expected: true, found: null },
  ]);
  expect(rows.map(({ turn, subject }) => `${turn} ${subject}`)).toEqual(["2 status", "2 exit_decision", "3 exit_decision"]);
  expect(rows[1]?.found).toEqual([
    { field: "exit_decision.should_exit", value: false },
    { field: "exit_decision.unmet", value: ["understanding_level"] },
  ]);
});
