/** Unsaved text, stored in the browser so that a crash loses nothing. */
export type KeptDraft = { readonly text: string; readonly version: number | null };

const keyOf = (id: string): string => `tambour.template.${id}`;

export function keepDraft(id: string, draft: KeptDraft): void {
  try {
    localStorage.setItem(keyOf(id), JSON.stringify(draft));
  } catch {
    // Without storage the text is still on the page.
  }
}

export function keptDraft(id: string): KeptDraft | null {
  try {
    const value = JSON.parse(localStorage.getItem(keyOf(id)) ?? "null") as Partial<KeptDraft> | null;
    return typeof value?.text === "string" ? { text: value.text, version: value.version ?? null } : null;
  } catch {
    return null;
  }
}

export function forgetDraft(id: string): void {
  try {
    localStorage.removeItem(keyOf(id));
  } catch {
    // Nothing was stored.
  }
}
