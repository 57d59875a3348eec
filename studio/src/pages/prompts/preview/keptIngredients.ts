import { type Ingredients } from "./renderPrompt.ts";

/** Manual input; cards and books are in the URL, the Skein is stored separately. */
export type Typed = Omit<Ingredients, "card" | "books">;

const KEY = "tambour.preview";

const EMPTY: Typed = {
  skein: "",
  user: "",
  persona: "",
  history: [{ role: "user", content: "" }],
  variables: "",
  maxContext: null,
  tokenizer: "o200k",
  strict: false,
  instructions: false,
};

export function keptIngredients(): Typed {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "null");
    return typeof value === "object" && value !== null ? { ...EMPTY, ...value } : EMPTY;
  } catch {
    return EMPTY;
  }
}

export function keepIngredients(typed: Typed): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...typed, skein: "" }));
  } catch {
    // Input stays on the page.
  }
}
