/** What the preview is given and what is typed there, kept in the browser. */
const KEY = "tambour.skein";

/** Hands a Skein to the preview: an object, or YAML. */
export function keepSkein(skein: object | string): void {
  try {
    if (skein === "") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, typeof skein === "string" ? skein : JSON.stringify(skein));
  } catch {
    // A browser that keeps nothing begins with nothing.
  }
}

export function keptSkein(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
