import { type Follow, followText } from "../document/follow.ts";
import { MOST_CHANGES } from "../document/history.ts";
import { flatten, outlineOf } from "../document/outline.ts";
import { parse } from "../document/parse.ts";

type Values = Readonly<Record<string, unknown>>;

/** Form with invalid values, which are not in the script. */
export type WaitingForm = {
  /** Path of its part; null once the part is gone. */
  readonly part: string | null;
  /** Name of the part, for people. */
  readonly title: string;
  /** Type of an action; `name` for other parts. */
  readonly form: string;
  readonly values: Values;
  /** Values in the script before the typing. */
  readonly base: Values;
};

export const sameValue = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Typed fields of a waiting form. */
export const typedIn = ({ values, base }: Pick<WaitingForm, "values" | "base">): [string, unknown][] =>
  Object.entries(values).filter(([key, value]) => !sameValue(value, base[key]));

/** Values of the script, with typed ones in their place. */
export const withTyped = <T extends object>(current: T, form: WaitingForm): T => ({
  ...current,
  ...Object.fromEntries(typedIn(form).filter(([key]) => key in current)),
});

type Waiting = {
  readonly form: WaitingForm;
  /** Places of the form in earlier texts: restoring a text restores its parts. */
  readonly places: Map<string, string | null>;
};

/** Forms that wait to become valid. They follow their parts through edits, and come back with them. */
export class WaitingForms {
  #waiting: readonly Waiting[] = [];
  /** Text that their paths belong to: the last one that could be parsed. */
  #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get list(): readonly WaitingForm[] {
    return this.#waiting.map(({ form }) => form);
  }

  get text(): string {
    return this.#text;
  }

  find(part: string, form: string): WaitingForm | null {
    return this.list.find((one) => one.part === part && one.form === form) ?? null;
  }

  put(form: WaitingForm): void {
    const isSame = ({ form: one }: Waiting) => one.part === form.part && one.form === form.form;
    const places = this.#waiting.find(isSame)?.places ?? new Map<string, string | null>();
    this.#waiting = [...this.#waiting.filter((one) => !isSame(one)), { form, places }];
  }

  remove(form: WaitingForm): void {
    this.#waiting = this.#waiting.filter((one) => one.form !== form);
  }

  clear(): void {
    this.#waiting = [];
  }

  /** Restores forms from the browser, with the text they belong to. */
  restore(forms: readonly WaitingForm[], text: string): void {
    this.#waiting = forms.map((form) => ({ form, places: new Map<string, string | null>() }));
    this.#text = text;
  }

  /** Moves on to another text. Forms whose part is gone, or has another type, have no place until it is back. */
  follow(text: string, follow?: Follow): void {
    if (this.#waiting.length > 0) {
      const after = parse(text);
      // Places of parts are unknown while the text cannot be parsed.
      if (after.error !== null) return;
      const place = follow ?? followText(parse(this.#text), after);
      const forms = new Map(flatten(outlineOf(after)).map((node) => [node.id, node.kind === "action" ? node.type : "name"]));
      const partOf = ({ form: { part, form }, places }: Waiting): string | null => {
        const known = part === null || follow === undefined ? places.get(text) : undefined;
        if (known !== undefined || part === null) return known ?? null;
        const next = place(part);
        return next !== null && forms.get(next) === form ? next : null;
      };
      const parts = this.#waiting.map(partOf);
      const isTaken = (at: number) =>
        this.#waiting.some(({ form: { form } }, other) => other !== at && parts[other] === parts[at] && form === this.#waiting[at]?.form.form);
      this.#waiting = this.#waiting.map(({ form, places }, at) => {
        const part = form.part === null && isTaken(at) ? null : (parts[at] ?? null);
        if (form.part !== null) remember(places, this.#text, form.part);
        if (form.part !== null && part === null) remember(places, text, null);
        return { form: { ...form, part }, places };
      });
    }
    this.#text = text;
  }
}

function remember(places: Map<string, string | null>, text: string, part: string | null): void {
  places.delete(text);
  places.set(text, part);
  const [oldest] = places.keys();
  if (places.size > MOST_CHANGES && oldest !== undefined) places.delete(oldest);
}
