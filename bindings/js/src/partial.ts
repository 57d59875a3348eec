/** A JSON value that grows while its text arrives. */

import engine from "#engine";

import { type Chunk, encodeText, splitHalf, toPieces } from "./chunks.js";
import { Handle } from "./engine.js";
import type { Options } from "./options.js";

/** Steps of the engine; a key, a piece of a string and a scalar are followed by their value. */
const START = 0;
const OBJECT = 1;
const ARRAY = 2;
const END = 3;
const KEY = 4;
const STRING = 5;
const DELTA = 6;
const SCALAR = 8;

type Container = Record<string, unknown> | unknown[];

/** Builds one value from chunks; it grows in place, so the work is linear in the reply. */
export class PartialValue {
  #handle: Handle;
  /** Open objects and arrays, the innermost last, and the key of the next value of each object. */
  #open: { container: Container; key: string }[] = [];
  /** First half of a character whose second half comes with the next text. */
  #half = "";
  /** The value so far; `undefined` before its first step. */
  value: Container | undefined;

  /**
   * @param form - Form of the value, if it is known: prose in brackets has another form.
   * @param options - Those of the pipeline that reads the same reply; their limits count here too.
   */
  constructor(
    private readonly form: "object" | "array" | undefined,
    options: Options,
  ) {
    this.#handle = Handle.open(engine, "partial", { options });
  }

  /** Reads the next chunk; returns whether the value may have changed. */
  push(chunk: Chunk): boolean {
    return toPieces(chunk).reduce((hasChanged, piece) => this.#pushPiece(piece) || hasChanged, false);
  }

  #pushPiece(chunk: Chunk): boolean {
    if (typeof chunk !== "string") {
      // Half a character that nothing completes.
      const hasChanged = this.#half !== "" && this.#apply(this.#handle.pushBytes(encodeText(this.#half)));
      this.#half = "";
      return this.#apply(this.#handle.pushBytes(chunk)) || hasChanged;
    }
    const [whole, half] = splitHalf(this.#half + chunk);
    this.#half = half;
    return whole !== "" && this.#apply(this.#handle.pushBytes(encodeText(whole)));
  }

  #apply(result: unknown): boolean {
    if (result === undefined) return false;
    const steps = result as unknown[];
    for (let at = 0; at < steps.length; at += 1) {
      switch (steps[at]) {
        case START:
          this.#open = [];
          break;
        case OBJECT:
          this.#begin({});
          break;
        case ARRAY:
          this.#begin([]);
          break;
        case END:
          this.#open.pop();
          break;
        case KEY:
          this.#innermost().key = steps[++at] as string;
          break;
        case STRING:
          this.#put("");
          break;
        case DELTA:
          this.#append(steps[++at] as string);
          break;
        case SCALAR:
          this.#put(steps[++at]);
          break;
      }
    }
    return this.value !== undefined;
  }

  #begin(container: Container): void {
    if (this.#open.length > 0) this.#put(container);
    else if (this.#isRoot(container)) this.value = container;
    this.#open.push({ container, key: "" });
  }

  /** Returns whether a value is the one of the reply: prose in brackets is empty, or has another form. */
  #isRoot(container: Container): boolean {
    const form = Array.isArray(container) ? "array" : "object";
    if (this.form !== undefined && this.form !== form) return false;
    return this.value === undefined || Object.keys(this.value).length === 0;
  }

  #innermost(): { container: Container; key: string } {
    const place = this.#open.at(-1);
    if (place === undefined) throw new RangeError("a value without a place");
    return place;
  }

  #put(value: unknown): void {
    const { container, key } = this.#innermost();
    if (Array.isArray(container)) container.push(value);
    else set(container, key, value);
  }

  #append(piece: string): void {
    const { container, key } = this.#innermost();
    if (Array.isArray(container)) container[container.length - 1] += piece;
    else set(container, key, (container[key] as string) + piece);
  }
}

/** Sets a field; `__proto__` is one as well. */
function set(container: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(container, key, { value, configurable: true, enumerable: true, writable: true });
  } else {
    container[key] = value;
  }
}
