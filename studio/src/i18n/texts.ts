/** Text in both languages. `{name}` is a parameter; `{count:word|words}` selects by number, in English. */
export type Entry = { readonly zh: string; readonly en: string };

export type Area = Readonly<Record<string, Entry>>;

/** Names of the parameters in a text. */
type Names<Text extends string> = Text extends `${string}{${infer Inner}}${infer Rest}`
  ? (Inner extends `${infer Name}:${string}` ? Name : Inner) | Names<Rest>
  : never;

export type Values = Readonly<Record<string, string | number>>;

/** Further arguments of a text: its parameters, if it has any. */
export type Parameters<E extends Entry> = [Names<E["en"] | E["zh"]>] extends [never]
  ? []
  : [values: Readonly<Record<Names<E["en"] | E["zh"]>, string | number>>];

/** Declares the texts of one area. */
export function defineTexts<const A extends Area>(area: A): A {
  return area;
}

/** Text with its parameters filled in. */
export function fill(text: string, values: Values = {}, locale = "en"): string {
  return text.replace(/\{(\w+)(?::([^|{}]*)\|([^|{}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined && many !== undefined) return value === 1 ? one : many;
    return typeof value === "number" ? value.toLocaleString(locale) : value;
  });
}
