import { type Follow, followText } from "../document/follow.ts";
import { flatten, outlineOf } from "../document/outline.ts";
import { parse } from "../document/parse.ts";

type Values = Readonly<Record<string, unknown>>;

/** A form with values that are not valid, and so not in the script. */
export type WaitingForm = {
  /** Path of its part; null once the part is gone. */
  readonly part: string | null;
  /** Name of the part, for people. */
  readonly title: string;
  /** Type of an action; `name` of other parts. */
  readonly form: string;
  readonly values: Values;
  /** Values of the script that the typing began from. */
  readonly base: Values;
};

export const sameValue = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Fields of a waiting form that were typed in. */
export const typedIn = ({ values, base }: Pick<WaitingForm, "values" | "base">): [string, unknown][] =>
  Object.entries(values).filter(([key, value]) => !sameValue(value, base[key]));

/** Values of the script, and what was typed in their place. */
export const withTyped = <T extends object>(current: T, form: WaitingForm): T => ({
  ...current,
  ...Object.fromEntries(typedIn(form).filter(([key]) => key in current)),
});

/** Forms that wait to become valid. They follow their parts through edits. */
export class WaitingForms {
  #forms: readonly WaitingForm[] = [];
  /** The text that their paths are those of: the last one that could be read. */
  #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get list(): readonly WaitingForm[] {
    return this.#forms;
  }

  get text(): string {
    return this.#text;
  }

  find(part: string, form: string): WaitingForm | null {
    return this.#forms.find((one) => one.part === part && one.form === form) ?? null;
  }

  put(form: WaitingForm): void {
    const others = this.#forms.filter((one) => one.part !== form.part || one.form !== form.form);
    this.#forms = [...others, form];
  }

  remove(form: WaitingForm): void {
    this.#forms = this.#forms.filter((one) => one !== form);
  }

  clear(): void {
    this.#forms = [];
  }

  /** Takes back what the browser kept, with the text it belonged to. */
  restore(forms: readonly WaitingForm[], text: string): void {
    this.#forms = forms;
    this.#text = text;
  }

  /** Goes on to another text. Forms whose part is gone, or has become another type, have no place any more. */
  follow(text: string, follow?: Follow): void {
    if (this.#forms.length > 0) {
      const after = parse(text);
      // While the text cannot be read it is not known where its parts are.
      if (after.error !== null) return;
      const place = follow ?? followText(parse(this.#text), after);
      const forms = new Map(flatten(outlineOf(after)).map((node) => [node.id, node.kind === "action" ? node.type : "name"]));
      this.#forms = this.#forms.map((one) => {
        const part = one.part === null ? null : place(one.part);
        return { ...one, part: part !== null && forms.get(part) === one.form ? part : null };
      });
    }
    this.#text = text;
  }
}
