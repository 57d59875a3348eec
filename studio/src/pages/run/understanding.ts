import { type ActionCoverage, type Round } from "./model.ts";

export type Understanding = {
  readonly labels: readonly string[];
  readonly values: readonly number[];
  /** Threshold of the action that was assessed last. */
  readonly threshold: number | null;
};

/** Understanding as the model assessed it, round by round. */
export function understandingOf(rounds: readonly Round[], actions: readonly ActionCoverage[]): Understanding {
  const assessed = rounds.filter((round) => round.asked_again !== true && typeof round.assessment?.understanding_level === "number");
  const last = assessed.at(-1);
  const action = actions.find(({ path }) => path === last?.path);
  return {
    labels: assessed.map((_, index) => String(index + 1)),
    values: assessed.map((round) => round.assessment?.understanding_level ?? 0),
    threshold: action?.understanding_threshold ?? null,
  };
}
