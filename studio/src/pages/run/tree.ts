import { type ActionCoverage } from "./model.ts";

export type ActionNode = { readonly action: ActionCoverage; readonly number: number };
export type StepNode = { readonly topic: string; readonly path: string; readonly actions: readonly ActionNode[] };
export type PhaseNode = { readonly phase: string; readonly steps: readonly StepNode[] };

export const stepOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf(".")));

/** Actions grouped into steps and phases, in the order of the script. */
export function treeOf(actions: readonly ActionCoverage[]): PhaseNode[] {
  const phases: { phase: string; path: string; steps: { topic: string; path: string; actions: ActionNode[] }[] }[] = [];
  for (const action of actions) {
    const path = stepOf(action.path);
    const ofPhase = stepOf(path);
    let phase = phases.at(-1);
    if (phase?.path !== ofPhase) {
      phase = { phase: action.phase, path: ofPhase, steps: [] };
      phases.push(phase);
    }
    let step = phase.steps.at(-1);
    if (step?.path !== path) {
      step = { topic: action.topic, path, actions: [] };
      phase.steps.push(step);
    }
    step.actions.push({ action, number: step.actions.length + 1 });
  }
  return phases;
}

export type Reach = "reached" | "left_out" | "never";

export function reachOf(action: ActionCoverage): Reach {
  if (action.reached > 0) return "reached";
  return action.left_out > 0 ? "left_out" : "never";
}

export type Summary = { readonly reached: number; readonly all: number; readonly exits: number; readonly allExits: number };

/** Coverage of a session: its actions, and their possible exits. */
export function summaryOf(actions: readonly ActionCoverage[]): Summary {
  const exits = actions.flatMap((action) => action.exits);
  return {
    reached: actions.filter((action) => action.reached > 0).length,
    all: actions.length,
    exits: exits.filter(({ count }) => count > 0).length,
    allExits: exits.length,
  };
}
