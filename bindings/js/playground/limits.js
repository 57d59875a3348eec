// Bounds of the work for one text, however hostile it is.

/** Most characters that are read. */
export const LONGEST = 4_000_000;
/** Most lines that the field takes; browsers need seconds to lay out more. */
export const MOST_LINES = 20_000;
/** Most events that are kept and listed; the answer is made of all. */
export const MOST_EVENTS = 500;
/** Most findings that are listed. */
export const MOST_FINDINGS = 500;
/** Milliseconds after which a reading is given up. */
export const LONGEST_READING = 30_000;

/** Beginning of a text with as many characters and lines as the field takes. */
export function cutText(text) {
  const short = text.slice(0, LONGEST);
  let at = -1;
  for (let line = 0; line < MOST_LINES; line += 1) {
    at = short.indexOf("\n", at + 1);
    if (at === -1) return short;
  }
  return short.slice(0, at);
}
