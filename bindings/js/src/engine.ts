/** Engine in Rust: an addon for Node, or a module of WebAssembly. Calls take and give JSON. */

import { convertError, TambourError } from "./errors.js";
import type { Event } from "./types.js";

/** Object of the engine. */
export interface Session {
  openNext(kind: string, parameters: string): Session;
  pushText(text: string): string;
  pushBytes(bytes: Uint8Array): string;
  call(method: string, parameters: string): string;
  close(): void;
}

/** Engine without prompts. */
export interface Engine {
  Session: { open(kind: string, parameters: string): Session };
  call(name: string, parameters: string, input: Uint8Array): string;
  version(): string;
}

/** Engine with prompts. */
export interface PromptEngine extends Engine {
  renderPrompt(parameters: string, input: Uint8Array, count?: (text: string) => number): string;
}

/** Object of the engine, whose results and errors are converted. */
export class Handle {
  constructor(private readonly session: Session) {}

  static open(engine: Engine, kind: string, parameters: unknown): Handle {
    const text = toJson(parameters);
    return new Handle(attempt(() => engine.Session.open(kind, text)));
  }

  openNext(kind: string, parameters: unknown): Handle {
    const text = toJson(parameters);
    return new Handle(attempt(() => this.session.openNext(kind, text)));
  }

  /** Reads text without lone surrogates; `undefined` stands for no result. */
  pushText(text: string): unknown {
    try {
      return parse(this.session.pushText(text));
    } catch (error) {
      throw convertError(error);
    }
  }

  pushBytes(bytes: Uint8Array): unknown {
    try {
      return parse(this.session.pushBytes(bytes));
    } catch (error) {
      throw convertError(error);
    }
  }

  call(method: string, parameters: unknown = null): unknown {
    const text = toJson(parameters);
    return parse(attempt(() => this.session.call(method, text)));
  }

  close(): void {
    this.session.close();
  }
}

/**
 * Writes a value as JSON. Lone surrogates, which JSON texts of services may have but Unicode has not, become U+FFFD.
 *
 * @throws TypeError if the value is none that JSON can say.
 */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} is not a JSON value`);
  // Surrogates are written as escapes only where they are alone. Other escapes are skipped, as in "\\ud800".
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|.)/g, (escape, lone) => (lone === undefined ? escape : "\ufffd"));
}

const FINISH_REASONS = ["stop", "length", "content_filter", "tool_calls", "cancelled"] as const;

/** Reason why a reply ended; `null` if the service gave none, after which the reply counts as truncated. */
export type FinishReason = (typeof FINISH_REASONS)[number] | null;

/** Refuses an unknown finish reason before anything is read. */
export function checkReason(reason: unknown): void {
  if (reason === null || FINISH_REASONS.some((known) => known === reason)) return;
  throw new TambourError(`unknown finish reason \`${String(reason)}\`; known: ${FINISH_REASONS.join(", ")}`);
}

/** Calls a function of the engine. */
export function callEngine(engine: Engine, name: string, parameters: unknown, input: Uint8Array): unknown {
  const text = toJson(parameters);
  return parse(attempt(() => engine.call(name, text, input)));
}

/** Runs a call of the engine. */
export function attempt<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw convertError(error);
  }
}

/** Events of a result, of which there may be none. */
export function toEvents(result: unknown): Event[] {
  return result === undefined ? [] : (result as Event[]);
}

/** Parses a result; an empty text stands for none. */
export function parse(text: string): unknown {
  return text === "" ? undefined : JSON.parse(text);
}

/** Refuses settings that are no object, such as the name of a dialect. */
export function checkSettings(settings: unknown): void {
  if (typeof settings === "object" && settings !== null && !Array.isArray(settings)) return;
  const given = typeof settings === "string" ? JSON.stringify(settings) : String(settings);
  throw new TypeError(`settings are an object such as { dialect: "plain" }, not ${given}`);
}
