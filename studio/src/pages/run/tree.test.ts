import { describe, expect, it } from "vitest";
import { type ActionCoverage } from "./model.ts";
import { reachOf, summaryOf, treeOf } from "./tree.ts";
import { understandingOf } from "./understanding.ts";

const action = (path: string, more: Partial<ActionCoverage> = {}): ActionCoverage => ({
  path, phase: "p", topic: "t", action_type: "ai_say", action_id: null, condition: null, reached: 0, left_out: 0, rounds: 0,
  max_rounds: 5, understanding_threshold: 80, exits: [{ exit: "max_rounds", count: 0 }], ...more,
});

describe("the tree of a session", () => {
  const actions = [
    action("sessions[0].phases[0].steps[0].actions[0]", { reached: 1, exits: [{ exit: "max_rounds", count: 1 }] }),
    action("sessions[0].phases[0].steps[0].actions[1]", { left_out: 1 }),
    action("sessions[0].phases[0].steps[1].actions[0]"),
    action("sessions[0].phases[1].steps[0].actions[0]"),
  ];

  it("has phases, steps and actions in order, also where names are the same", () => {
    const tree = treeOf(actions);
    expect(tree.map(({ steps }) => steps.map((step) => step.actions.map(({ number }) => number)))).toEqual([[[1, 2], [1]], [[1]]]);
  });

  it("tells what was reached, left out, and never reached", () => {
    expect(actions.map(reachOf)).toEqual(["reached", "left_out", "never", "never"]);
    expect(summaryOf(actions)).toEqual({ reached: 1, all: 4, exits: 1, allExits: 4 });
  });

  it("knows the threshold of what was assessed last", () => {
    const path = actions[0]?.path ?? "";
    const round = { number: 1, created: "", status: "completed", path, assessment: { understanding_level: 45 } };
    const again = { ...round, asked_again: true };
    expect(understandingOf([again, round], actions)).toEqual({ labels: ["1"], values: [45], threshold: 80 });
  });
});
