import { parse } from "yaml";
import { api } from "../../../api/client.ts";
import { type Schemas } from "../../../api/types.ts";

export type Role = "user" | "assistant" | "system";

export type HistoryMessage = { readonly role: Role; readonly content: string };

export type Tokenizer = Schemas["Tokenizer"];

/** Typed ingredients of a prompt. */
export type Ingredients = {
  readonly card: string | null;
  readonly books: readonly string[];
  readonly skein: string;
  readonly user: string;
  readonly persona: string;
  readonly history: readonly HistoryMessage[];
  /** Further variables, as YAML. */
  readonly variables: string;
  readonly maxContext: number | null;
  readonly tokenizer: Tokenizer;
  readonly strict: boolean;
  readonly instructions: boolean;
};

export type Part = Schemas["RenderedPrompt"]["parts"][number];

export type Rendered = Omit<Schemas["RenderedPrompt"], "messages"> & {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
};

export const hasIngredients = ({ card, books, skein }: Ingredients): boolean =>
  card !== null || books.length > 0 || skein.trim() !== "";

/** Parses the variables typed as YAML. Throws if they are no mapping. */
export function variablesOf(text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  const value: unknown = parse(text);
  if (value === null || value === undefined) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Error(typeof value);
  return value as Record<string, unknown>;
}

/** Request of a preview. */
export function requestOf(given: Ingredients): Schemas["RenderPrompt"] {
  const user =
    given.persona.trim() === "" ? given.user.trim() : { name: given.user.trim(), persona: given.persona.trim() };
  const history = given.history.filter(({ content }) => content.trim() !== "");
  const context = {
    ...variablesOf(given.variables),
    ...(given.user.trim() === "" && given.persona.trim() === "" ? {} : { user }),
    ...(history.length === 0 ? {} : { history }),
  };
  return {
    ...(given.card === null ? {} : { card_id: given.card }),
    ...(given.books.length === 0 ? {} : { lorebook_ids: [...given.books] }),
    ...(given.skein.trim() === "" ? {} : { skein: given.skein }),
    ...(given.maxContext === null ? {} : { max_context: given.maxContext }),
    context,
    tokenizer: given.tokenizer,
    strict: given.strict,
    instructions: given.instructions,
  };
}

export async function renderPrompt(given: Ingredients, signal?: AbortSignal): Promise<Rendered> {
  const { data } = await api.post("/api/v1/prompts/render", requestOf(given), { signal });
  return data as unknown as Rendered;
}
