import { mapAt, pairOf, type Parsed } from "./parse.ts";
import { type Path } from "./text.ts";

/** Keys that the server reads for one field of an action: the first present one. New ones are written under the first. */
export const ALIASES = {
  content: ["content", "content_template"],
  question: ["question", "question_template", "ai_ask", "content", "content_template"],
  answerVariable: ["variable", "target_variable", "extract_to"],
  variable: ["variable", "target_variable"],
  prompt: ["prompt", "think_goal", "ai_think", "content", "content_template", "prompt_template"],
  output: ["output", "output_variables"],
} as const;

export type Aliased = keyof typeof ALIASES;

/** Key of a field as written, or of a new one. */
export function keyOf(parsed: Parsed, path: Path, field: Aliased): string {
  const map = mapAt(parsed, path);
  const keys: readonly string[] = ALIASES[field];
  return (map === null ? undefined : keys.find((key) => pairOf(map, key) !== undefined)) ?? ALIASES[field][0];
}
