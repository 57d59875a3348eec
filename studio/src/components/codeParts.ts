export type CodePart = { readonly words: string; readonly isCode: boolean };

/** Parts of a message; an unpaired backtick is an ordinary character. */
export function codeParts(text: string): CodePart[] {
  return text
    .split(/(`[^`\n]+`)/)
    .filter((words) => words !== "")
    .map((words) => (/^`[^`]+`$/.test(words) ? { words: words.slice(1, -1), isCode: true } : { words, isCode: false }));
}
