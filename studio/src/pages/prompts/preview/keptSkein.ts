/** Skein of the preview, given or typed, stored in the browser. */
const KEY = "tambour.skein";

/** Passes a Skein to the preview: an object, or YAML. */
export function keepSkein(skein: object | string): void {
  try {
    if (skein === "") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, typeof skein === "string" ? skein : JSON.stringify(skein));
  } catch {
    // Without storage the preview starts empty.
  }
}

export function keptSkein(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
