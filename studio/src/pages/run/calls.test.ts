import { expect, test } from "vitest";
import { callsIn } from "./calls.ts";
import { type Round } from "./model.ts";

const call = (number: number, more: Partial<Round> = {}): Round => ({
  number, turn: "t1", created: "", status: "completed", path: "a", round: 2, prompt: [], ...more,
});

test("calls for one round are attempts, and those that were of no use say so", () => {
  const calls = callsIn([call(1, { asked_again: true }), call(2), call(3, { turn: "t2" })], "t1");
  expect(calls.map(({ attempt, isUnusable }) => [attempt, isUnusable])).toEqual([
    [1, true],
    [2, false],
  ]);
});

test("a round that was asked for once has no attempts", () => {
  expect(callsIn([call(1), call(2, { path: "b", round: 1 })], "t1").map(({ attempt }) => attempt)).toEqual([null, null]);
});
