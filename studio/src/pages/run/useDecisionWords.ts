import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";

/** Conditions of an exit by their names in the trace. */
const UNMET = {
  should_exit: "unmetSuggestion",
  understanding_level: "unmetUnderstanding",
  has_questions: "unmetQuestions",
  expressed_understanding: "unmetExpressed",
} as const;

const SOURCES = { exit_criteria: "exit_criteria", llm_suggestion: "llm_suggestion", max_rounds: "max_rounds" } as const;

/** Words for the parts of an exit decision; an unknown name stays unchanged. */
export function useDecisionWords() {
  const t = useText(run);
  return {
    outcome: (exits: boolean) => t(exits ? "decisionExits" : "decisionGoesOn"),
    source: (name: string) => (name in SOURCES ? t(SOURCES[name as keyof typeof SOURCES]) : name),
    unmet: (name: string) => (name in UNMET ? t(UNMET[name as keyof typeof UNMET]) : name),
  };
}
