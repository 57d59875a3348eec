import { callsOf, type Round } from "./model.ts";

/** Call of a model in a turn; `attempt` is its number if there were several for one round. */
export type Call = { readonly round: Round; readonly attempt: number | null; readonly isUnusable: boolean };

/** Calls of one turn, in order. */
export function callsIn(rounds: readonly Round[], turn: string): Call[] {
  const calls = callsOf(rounds).filter((round) => round.turn === turn);
  const placeOf = ({ path, round }: Round) => `${path ?? ""} ${round ?? ""}`;
  return calls.map((round, index) => {
    const same = calls.filter((other) => placeOf(other) === placeOf(round));
    const before = calls.slice(0, index).filter((other) => placeOf(other) === placeOf(round));
    return {
      round,
      attempt: same.length > 1 ? before.length + 1 : null,
      isUnusable: round.asked_again === true || round.status === "failed",
    };
  });
}
