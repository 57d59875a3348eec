import { ALIASES } from "../document/aliases.ts";

const MORE = ["type", "condition", "template", "action_id"];

/** Keys whose findings are shown at a field of the form, by the type of an action. */
const OF_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  ai_say: [
    ...ALIASES.content,
    "ai_say",
    "require_acknowledgment",
    "max_rounds",
    "exit_criteria.understanding_threshold",
    "exit_criteria.has_questions",
  ],
  ai_ask: [...ALIASES.question, ...ALIASES.answerVariable, "answer", "max_rounds", "required"],
  ai_think: [...ALIASES.prompt, ...ALIASES.output],
};

/** Keys of a part whose findings its form shows at their fields; other findings stand above it. */
export const shownKeys = (kind: string, type: string | null): readonly string[] =>
  kind === "action" ? [...MORE, ...(OF_ACTIONS[type ?? ""] ?? ALIASES.variable)] : ["session", "phase", "topic"];
