import { type Finding, type Schemas, type TypedEvent } from "../api/types.ts";
import { defaults } from "../i18n/texts/defaults.ts";

type Options = Readonly<Record<string, unknown>>;

/** Functions of the package that the studio calls. */
export type Core = {
  check(text: string, settings: Options): { contract: string; passed: boolean; findings: Finding[] };
  decode(text: string, settings: Options): Iterable<TypedEvent>;
  repair(text: string, settings: Options): { text: string; is_fallback: boolean };
  TambourError: new (...given: never[]) => Error & { readonly code?: string };
};

let loaded: Promise<Core | null> | null = null;

/** Loads the package once; `null` in a build without it, or in a browser without WebAssembly. */
export function loadCore(): Promise<Core | null> {
  loaded ??= import("@tambour/core").then(
    (core) => core as Core,
    () => null,
  );
  return loaded;
}

/** Limits that are options of the library; the others have these values unless the server's configuration says otherwise. */
const LIMIT_OPTIONS = new Set(["input", "depth", "hold", "value", "items", "phases", "findings"]);
const LIMITS: Readonly<Record<string, number>> = { tag: 1024, line: 1024, delta: 2048, detect: 256 };

/**
 * Options with which the package reads as the server does. `null` if it cannot: the operator wrote texts of their own, or
 * set limits that are no options.
 */
export function optionsOf({ text_language, texts, limits }: Pick<Schemas["Settings"], "text_language" | "texts" | "limits">): Options | null {
  const ownText = (["fallback", "phase_title"] as const).some((name) => texts[name] !== defaults[name][text_language]);
  const ownLimit = Object.entries(limits).some(([name, value]) => !LIMIT_OPTIONS.has(name) && LIMITS[name] !== value);
  if (ownText || ownLimit) return null;
  const known = Object.entries(limits).filter(([name]) => LIMIT_OPTIONS.has(name));
  return { text_language, ...Object.fromEntries(known.map(([name, value]) => [`limits.${name}`, value])) };
}

/** Result of reading a reply. */
export type Decoded = {
  readonly contract: string;
  readonly verdict: "pass" | "fail";
  readonly findings: readonly Finding[];
  readonly events: readonly TypedEvent[];
  /** Repaired reply; `null` if nothing of it can be used. */
  readonly repaired: string | null;
};

/** Reader of replies in the browser, with the results of `/api/v1/check` and `/api/v1/decode`. */
export class Decoder {
  readonly #core: Core;
  readonly #options: Options;

  constructor(core: Core, options: Options) {
    this.#core = core;
    this.#options = options;
  }

  /** Checks a text against a contract: a dialect, or `events` for a transcript. */
  check(text: string, contract: string, profile: "strict" | "lenient"): Pick<Decoded, "contract" | "verdict" | "findings"> {
    const { passed, ...verdict } = this.#core.check(text, { ...this.#options, profile, contract });
    return { contract: verdict.contract, verdict: passed ? "pass" : "fail", findings: verdict.findings };
  }

  read(text: string, dialect: string, profile: "strict" | "lenient"): Decoded {
    const events: TypedEvent[] = [];
    for (const event of this.#core.decode(text, { ...this.#options, dialect })) join(events, event);
    return { ...this.check(text, dialect, profile), events, repaired: this.#repair(text, dialect) };
  }

  #repair(text: string, dialect: string): string | null {
    try {
      const repaired = this.#core.repair(text, { ...this.#options, dialect });
      return repaired.is_fallback ? null : repaired.text;
    } catch (error) {
      // Not every dialect can be written, and a reply may have failed.
      if (error instanceof this.#core.TambourError && error.code !== "internal") return null;
      throw error;
    }
  }
}

const TEXTS = new Set(["final_delta", "draft_delta", "phase_delta"]);

/** Adds an event; a piece of text joins the one before it, as in the server's response. */
export function join(events: TypedEvent[], event: TypedEvent): void {
  const last = events.at(-1);
  const before = last?.data as { text?: string; id?: number; kind?: string } | undefined;
  const piece = event.data as { text?: string; id?: number; kind?: string };
  const isText = TEXTS.has(event.event) || (event.event === "aside" && piece.kind === "thought");
  if (isText && before !== undefined && last?.event === event.event && before.id === piece.id && before.kind === piece.kind) {
    before.text = `${before.text ?? ""}${piece.text ?? ""}`;
  } else {
    events.push(event);
  }
}
