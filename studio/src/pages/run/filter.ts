import { type Dialogue } from "./model.ts";
import { nameOf, type Script } from "./scripts.ts";

/** Dialogues that contain every search word in the names of script and session, or in the id. */
export function found(dialogues: readonly Dialogue[], scripts: readonly Script[] | null, words: string): Dialogue[] {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return dialogues.filter((dialogue) => {
    const text = `${nameOf(scripts, dialogue.script_id)} ${dialogue.session ?? ""} ${dialogue.dialogue_id}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}
