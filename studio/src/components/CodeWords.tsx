import { codeParts } from "./codeParts.ts";

/** Message of the server, with text between backticks as code. */
export function CodeWords({ text }: { text: string }) {
  return codeParts(text).map(({ words, isCode }, index) => (isCode ? <code key={index}>{words}</code> : words));
}
