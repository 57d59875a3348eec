import { describe, expect, it } from "vitest";
import { hasIngredients, type Ingredients, requestOf, variablesOf } from "./renderPrompt.ts";

const nothing: Ingredients = {
  card: null,
  books: [],
  skein: "",
  user: "",
  persona: "",
  history: [],
  variables: "",
  maxContext: null,
  tokenizer: "o200k",
  strict: false,
  instructions: false,
};

describe("the request of a preview", () => {
  it("has only what was given", () => {
    expect(requestOf(nothing)).toEqual({ context: {}, tokenizer: "o200k", strict: false, instructions: false });
    expect(hasIngredients(nothing)).toBe(false);
  });

  it("has card, books, Skein and chat", () => {
    const given: Ingredients = {
      ...nothing,
      card: "card_1",
      books: ["book_1"],
      skein: "blocks: []",
      user: "Mia",
      persona: "a rower",
      history: [
        { role: "user", content: "The reef?" },
        { role: "user", content: " " },
      ],
      variables: "state:\n  hp: 3\n",
      maxContext: 300,
    };
    expect(hasIngredients(given)).toBe(true);
    expect(requestOf(given)).toMatchObject({
      card_id: "card_1",
      lorebook_ids: ["book_1"],
      skein: "blocks: []",
      max_context: 300,
      context: {
        state: { hp: 3 },
        user: { name: "Mia", persona: "a rower" },
        history: [{ role: "user", content: "The reef?" }],
      },
    });
  });

  it("names the user alone where there is no persona", () => {
    expect(requestOf({ ...nothing, user: "Mia" }).context).toEqual({ user: "Mia" });
  });

  it("refuses variables that are no mapping", () => {
    expect(variablesOf("# nothing")).toEqual({});
    expect(() => variablesOf("- a")).toThrow();
    expect(() => variablesOf("a: [")).toThrow();
  });
});
