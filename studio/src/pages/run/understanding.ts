import { type ActionCoverage, type Round } from "./model.ts";

export type Understanding = {
  readonly labels: readonly string[];
  readonly values: readonly number[];
  /** Threshold of the last assessed action. */
  readonly threshold: number | null;
};

/** Understanding as assessed by the model, round by round. */
export function understandingOf(rounds: readonly Round[], actions: readonly ActionCoverage[]): Understanding {
  const assessed = rounds.filter((round) => round.asked_again !== true && levelOf(round) !== null);
  const last = assessed.at(-1);
  const action = actions.find(({ path }) => path === last?.path);
  return {
    labels: assessed.map((_, index) => String(index + 1)),
    values: assessed.map((round) => levelOf(round) ?? 0),
    threshold: action?.understanding_threshold ?? null,
  };
}

function levelOf(round: Round): number | null {
  const level = (round.assessment ?? round.exit_decision?.assessment)?.understanding_level;
  return typeof level === "number" ? level : null;
}
