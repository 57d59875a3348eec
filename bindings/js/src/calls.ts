/** Calls whose arguments come in pieces. */

import type { Options } from "./options.js";
import type { Pipeline } from "./pipeline.js";
import type { Event } from "./types.js";

/** Largest number of calls of one reply; further ones are left out. */
const MAX_CALLS = 1024;

/** Characters of one reply unless the option `limits.input` says otherwise. */
const MAX_LENGTH = 16 << 20;

interface PartialCall {
  index: unknown;
  id: string;
  name: string;
  pieces: string[];
}

/** Field of a foreign object; `undefined` if there is none. */
export function get(item: unknown, name: string): unknown {
  return typeof item === "object" && item !== null ? (item as Record<string, unknown>)[name] : undefined;
}

/** Text of a foreign field; empty if it is none. */
export function getText(item: unknown, name: string): string {
  const value = get(item, name);
  return typeof value === "string" ? value : "";
}

/**
 * Collects the pieces of calls. Those beyond the size that a reply may have are left out but for one character, by
 * which the pipeline sees that the reply is too long.
 */
export class CallCollector {
  #calls: PartialCall[] = [];
  #left: number;

  /** @param options - Those of the pipeline. */
  constructor(options: Options) {
    // Options may be written with `_` as well.
    const { limits_input: limit = options["limits.input"] } = options as { limits_input?: number };
    this.#left = (limit ?? MAX_LENGTH) + 1;
  }

  /**
   * Adds a piece of a call, to the one that it continues or as a new one. Some services number the calls, some send
   * each call complete, some give all the same number.
   */
  add(index: unknown, id: string, name: string, pieceOfArguments: unknown): void {
    let call = this.#calls.findLast((call) => continues(call, index, id, name));
    if (call === undefined) {
      if (this.#calls.length >= MAX_CALLS) return;
      call = { index, id, name: this.#take(name), pieces: [] };
      this.#calls.push(call);
    }
    // Some services repeat name and id in each part.
    call.name ||= this.#take(name);
    call.id ||= id;
    const isObject = typeof pieceOfArguments === "object" && pieceOfArguments !== null;
    const text = isObject ? JSON.stringify(pieceOfArguments) : pieceOfArguments;
    if (typeof text === "string" && text !== "") {
      const piece = this.#take(text);
      if (piece !== "") call.pieces.push(piece);
    }
  }

  /** Passes the calls to the pipeline, in the order in which they began. */
  pushAll(pipeline: Pipeline): Event[] {
    const calls = this.#calls;
    this.#calls = [];
    return calls.flatMap((call) => pipeline.pushCall(call.name, call.pieces.join("") || "{}"));
  }

  /** The part of a text that still fits. */
  #take(text: string): string {
    const taken = text.slice(0, this.#left);
    this.#left -= taken.length;
    return taken;
  }
}

/** Returns whether a piece with these fields belongs to a call. */
function continues(call: PartialCall, index: unknown, id: string, name: string): boolean {
  if (index !== undefined && index !== null) {
    if (call.index !== index) return false;
    // Calls may share a number: a name with another id begins the next call.
    return !(id !== "" && name !== "") || call.id === "" || call.id === id;
  }
  if (id !== "") return call.id === id;
  // Without number and id, a name begins the next call.
  return name === "";
}
