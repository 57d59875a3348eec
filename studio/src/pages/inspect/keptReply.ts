import { type InspectOptions } from "./SourceForm.tsx";

/** Text of the page, kept while another page is shown, such as that of a rule. */
export type KeptReply = InspectOptions & { readonly text: string };

const KEY = "tambour.inspect";

/** Most characters of a text that is kept. */
export const LONGEST_KEPT = 200_000;

export function keptReply(storage: Storage = sessionStorage): KeptReply | null {
  try {
    const value = JSON.parse(storage.getItem(KEY) ?? "null") as Partial<KeptReply> | null;
    if (typeof value?.text !== "string" || value.text === "") return null;
    return { text: value.text, dialect: value.dialect ?? "auto", profile: value.profile === "lenient" ? "lenient" : "strict" };
  } catch {
    return null;
  }
}

/** Keeps a text while the tab is open; an empty or a very long one is not kept. */
export function keepReply(reply: KeptReply, storage: Storage = sessionStorage): void {
  try {
    if (reply.text.trim() === "" || reply.text.length > LONGEST_KEPT) storage.removeItem(KEY);
    else storage.setItem(KEY, JSON.stringify(reply));
  } catch {
    // The text stays on the page.
  }
}
