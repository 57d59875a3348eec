/** Prompts, cards, macros, scripts and dialogues: `@tambour/core/prompts`. */

import engine from "#prompt-engine";

import { isChunk, splitHalf, toBytes, toFile } from "./chunks.js";
import { attempt, callEngine, checkReason, type FinishReason, Handle, parse, toJson, toEvents } from "./engine.js";
import type { Text } from "./functions.js";
import type { Options } from "./options.js";
import type {
  Event,
  ImportedCard,
  MigratedText,
  ModelCall,
  PromptMessage,
  RenderedPrompt,
  ReplyEffect,
  ScriptProblem,
  Turn,
} from "./types.js";

/** Language of texts. */
export type Language = "zh" | "en";

/** Prompt: a Skein as YAML text or as an object, or the bytes of a card, a lorebook or a preset. */
export type PromptSource = string | Uint8Array | ArrayBuffer | { readonly [key: string]: unknown };

/** Settings of `renderPrompt`. */
export interface PromptSettings {
  /** Prompts whose world info is added. */
  others?: readonly PromptSource[];
  /** Largest number of tokens. */
  maxContext?: number;
  /** Language of format instructions; default `zh`. */
  language?: Language;
  /** Undefined variables are errors; default false. */
  strict?: boolean;
  /** Timed effects of the turn before. */
  timedEffects?: unknown;
  /** Makes random choices repeat: a whole number up to 2^53. */
  seed?: number;
  /** Counts the tokens of a text; without it they are estimated. */
  countTokens?: (text: string) => number;
}

/**
 * Renders a Skein with the variables of `context`, to text and to messages.
 *
 * @example
 * const skein = { blocks: [{ tag: "world_state", data: { place: "{{ place }}" } }] };
 * renderPrompt(skein, { place: "Ruins" }).text; // "<world_state>\nplace: Ruins\n</world_state>"
 * @throws TambourError if the prompt is malformed, or a template cannot be rendered within its limits.
 */
export function renderPrompt(
  prompt: PromptSource,
  context: { readonly [name: string]: unknown } = {},
  settings: PromptSettings = {},
): RenderedPrompt {
  const { others = [], maxContext, language = "zh", strict = false, timedEffects, countTokens } = settings;
  const seed = settings.seed ?? Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  const files = new Files();
  const parameters = toJson({
    prompt: files.add(prompt),
    context,
    others: others.map((other) => files.add(other)),
    max_context: maxContext,
    language,
    strict,
    timed_effects: timedEffects,
    seed,
  });
  // The first error of the caller's function is thrown at the end.
  let failure: { error: unknown } | undefined;
  const count =
    countTokens &&
    ((text: string): number => {
      try {
        const tokens = countTokens(text);
        if (Number.isSafeInteger(tokens) && tokens >= 0) return tokens;
        failure = { error: new TypeError(`countTokens must return a whole number, not ${String(tokens)}`) };
      } catch (error) {
        failure = { error };
      }
      return -1;
    });
  try {
    return parse(attempt(() => engine.renderPrompt(parameters, files.join(), count))) as RenderedPrompt;
  } catch (error) {
    throw failure === undefined ? error : failure.error;
  }
}

/** Files of a call, which cross to the engine as one. */
class Files {
  #parts: Uint8Array[] = [];
  #length = 0;

  add(source: PromptSource): unknown {
    if (typeof source === "string") return { text: source };
    if (!isChunk(source)) return { value: source };
    const bytes = toBytes(source);
    const start = this.#length;
    this.#parts.push(bytes);
    this.#length += bytes.length;
    return { file: [start, this.#length] };
  }

  join(): Uint8Array {
    const all = new Uint8Array(this.#length);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

/**
 * Imports a character card, a lorebook or a preset: JSON, PNG, APNG or CHARX. `name` is the file name, for messages.
 *
 * @throws TambourError if the file is of no known kind, exceeds a limit or is broken.
 */
export function importCard(data: Text, { name = "card" }: { name?: string } = {}): ImportedCard {
  return callEngine(engine, "import_card", { name }, toFile(data)) as ImportedCard;
}

/**
 * Translates macros of SillyTavern and Tavern-Helper to Jinja. Unknown ones stay text, with a warning.
 *
 * @example
 * migrateMacros("Hi {{user}}, {{roll:2d6}}").text; // "Hi {{ user }}, {{ roll('2d6') }}"
 */
export function migrateMacros(text: Text): MigratedText {
  return callEngine(engine, "migrate_macros", {}, toFile(text)) as MigratedText;
}

/** Settings of a script. */
export interface ScriptSettings {
  /** Templates by their path below the folder of templates; the shipped ones need not be given. */
  templates?: { readonly [path: string]: string };
  /** Language of texts; default `zh`. */
  language?: Language;
}

const handles = new WeakMap<object, Handle>();

function handle(object: object): Handle {
  const found = handles.get(object);
  if (found === undefined) throw new TypeError("the object is not one of this package");
  return found;
}

/** A dialogue script that can run, with the templates of its prompts. */
export class Script {
  /** @throws ScriptError, which lists all its problems, if the script cannot run. */
  constructor(text: string, { templates = {}, language = "zh" }: ScriptSettings = {}) {
    handles.set(this, Handle.open(engine, "script", { text: String(text), templates, language }));
  }

  /** Warnings about the script, in source order. */
  get problems(): ScriptProblem[] {
    return handle(this).call("problems") as ScriptProblem[];
  }

  /** Names of the sessions. */
  get sessions(): string[] {
    return handle(this).call("sessions") as string[];
  }

  /** Number of actions of all sessions. */
  get actionCount(): number {
    return handle(this).call("action_count") as number;
  }
}

/** Settings of a dialogue, with the options of the reading by their public names. */
export interface DialogueSettings extends Options {
  /** Session of the script; default its first one. */
  session?: string;
  /** Variables at the start. */
  variables?: { readonly [name: string]: unknown };
  /** Largest number of history messages in a prompt. */
  history?: number;
  /** Largest number of times that a round asks the model again. */
  maxReasks?: number;
  /** Sampling temperature. */
  temperature?: number;
  /** Token limit of a reply. */
  maxTokens?: number;
  /** Dialogue to be continued, as `save` returned it. */
  saved?: unknown;
}

/** Request of a dialogue to its caller. */
export type DialogueStep =
  | { type: "call"; call: ModelCall }
  | { type: "event"; event: Event }
  | { type: "await_user"; continues: boolean }
  | { type: "await_answer"; call_id: string }
  | { type: "finished" };

/** Time in milliseconds since 1970, for prompts that show it. */
export interface At {
  now?: number;
}

/**
 * One run of a session of a script, without I/O: `next` says what to do, and its result is passed back.
 *
 * @example
 * const dialogue = new Dialogue(script);
 * dialogue.input();
 * for (let step = dialogue.next(); step.type === "call"; step = dialogue.next()) {
 *   dialogue.reply(await askModel(step.call.messages));
 * }
 * dialogue.turn.ai_message;
 */
export class Dialogue {
  /** @throws TambourError if the script has no such session, or `saved` is no saved dialogue. */
  constructor(script: Script, settings: DialogueSettings = {}) {
    const { session, variables = {}, history, maxReasks, temperature, maxTokens, saved, ...options } = settings;
    const parameters = {
      session,
      variables,
      history,
      max_reasks: maxReasks,
      temperature,
      max_tokens: maxTokens,
      saved,
      options,
    };
    handles.set(this, handle(script).openNext("dialogue", parameters));
  }

  /** Returns the dialogue as a JSON value, for the setting `saved`. */
  save(): unknown {
    return handle(this).call("save");
  }

  /** Takes an input of the user; without text, the model speaks on. */
  input(text?: string, { now = 0 }: At = {}): void {
    handle(this).call("input", { text, now: Math.trunc(now) });
  }

  /** Takes the client's answer to a `form`, `picture` or `skill` event. */
  answer(callId: string, value: unknown, { now = 0 }: At = {}): void {
    handle(this).call("answer", { call_id: callId, value: value ?? null, now: Math.trunc(now) });
  }

  /** Returns what to do. Repeated calls return the same, except that an event comes only once. */
  next({ now = 0 }: At = {}): DialogueStep {
    const [type, value] = handle(this).call("next", Math.trunc(now)) as [DialogueStep["type"], object];
    if (type === "call") return { type, call: value as ModelCall };
    if (type === "event") return { type, event: value as Event };
    return { type, ...value } as DialogueStep;
  }

  /** Takes the whole reply to the pending call; returns its effect. */
  reply(
    text: string,
    { finish = "stop", reasoning = "" }: { finish?: FinishReason; reasoning?: string } = {},
  ): ReplyEffect {
    checkReason(finish);
    const end = { reason: finish, incomplete: false };
    return handle(this).call("reply", { text: String(text), reasoning, end }) as ReplyEffect;
  }

  /** Creates a reader of the reply to the pending call, for a reply that streams; an earlier one is let go. */
  reader(): ReplyReader {
    const reader = new ReplyReader(handle(this).openNext("reader", null));
    readers.set(this, reader);
    return reader;
  }

  /** Takes the reply that a reader has read to its end; returns its effect. */
  accept(reader: ReplyReader): ReplyEffect {
    if (readers.get(this) !== reader) throw new TypeError("the reader is not the latest one of this dialogue");
    return handle(this).call("accept") as ReplyEffect;
  }

  /** Records that the pending call failed; the next input repeats it. */
  fail(message: string, { code = "upstream_failed", retryable = true } = {}): void {
    handle(this).call("fail", { message: String(message), code, retryable });
  }

  /** Outcome of the last input. */
  get turn(): Turn {
    return handle(this).call("turn") as Turn;
  }

  /** All visible variables. */
  get variables(): Record<string, unknown> {
    return handle(this).call("variables") as Record<string, unknown>;
  }

  /** Messages so far, in order. */
  get history(): PromptMessage[] {
    return handle(this).call("history") as PromptMessage[];
  }
}

const readers = new WeakMap<Dialogue, ReplyReader>();

/** Reader of the reply to a call of a dialogue. Made by `Dialogue.reader`. */
export class ReplyReader {
  #handle: Handle;
  /** First half of a character whose second half comes with the next text. */
  #half = "";

  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Reads the next text of the reply; returns the events. */
  push(text: string): Event[] {
    const [whole, half] = splitHalf(this.#half + text);
    this.#half = half;
    return whole === "" ? [] : toEvents(this.#handle.pushText(whole));
  }

  /** Reads reasoning that the service sent apart from the reply. */
  pushReasoning(text: string): Event[] {
    return toEvents(this.#handle.call("push_reasoning", String(text)));
  }

  /** Ends the reply; returns the last events. `Dialogue.accept` takes the reply then. */
  finish(reason: FinishReason = "stop", { incomplete = false }: { incomplete?: boolean } = {}): Event[] {
    checkReason(reason);
    return [...this.#flush(), ...toEvents(this.#handle.call("finish", { reason, incomplete }))];
  }

  /** Ends a reply that broke off. */
  fail(message: string, { code = "upstream_failed", retryable = true } = {}): Event[] {
    return [
      ...this.#flush(),
      ...toEvents(this.#handle.call("fail", { message: String(message), code, retryable })),
    ];
  }

  #flush(): Event[] {
    const half = this.#half;
    this.#half = "";
    return half === "" ? [] : toEvents(this.#handle.pushText("\ufffd"));
  }
}

export { ScriptError } from "./errors.js";
