import { type Ingredients } from "./renderPrompt.ts";

/** What is typed by hand; cards and books stand in the address, the Skein by itself. */
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
    // They stay on the page.
  }
}
