import { codeParts } from "./codeParts.ts";

/** A message of the server: what stands between backticks is shown as code. */
export function CodeWords({ text }: { text: string }) {
  return codeParts(text).map(({ words, isCode }, index) => (isCode ? <code key={index}>{words}</code> : words));
}
