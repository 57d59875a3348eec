/** `State`: a JSON tree that replies change, with its history. */

import engine from "#engine";

import { Handle } from "./engine.js";
import { setStateOpener } from "./pipeline.js";
import type { AppliedUpdate, StateDifference, StateUpdate } from "./types.js";

/** Point of a history: before or after a message. */
export interface HistoryPoint {
  before?: string;
  after?: string;
}

/** Operation: name, path, and value if it has one. */
export type Operation = [op: string, path: string, value?: unknown];

/** Settings of `State.apply`. */
export interface ApplySettings {
  /** Id of the message in the history. */
  message?: string;
  /** Reason for the operations. */
  analysis?: string;
  /** All operations or none; default false. */
  atomic?: boolean;
}

const handles = new WeakMap<State, Handle>();

/**
 * A JSON tree that replies change, with its history.
 *
 * @example
 * const state = new State({ trust: 5 });
 * state.apply([["ADD", "trust", 3]], { message: "m1" });
 * state.value; // { trust: 8 }
 * state.rollback({ before: "m1" });
 * state.value; // { trust: 5 }
 */
export class State {
  /**
   * @param value - Where the state begins.
   * @param settings - `schema`: JSON Schema that it must satisfy after each operation.
   * @throws TambourError if the schema is invalid.
   */
  constructor(value: unknown = {}, { schema }: { schema?: unknown } = {}) {
    handles.set(this, Handle.open(engine, "state", { value, schema }));
  }

  /** Restores a state from what `save` returned. */
  static restore(saved: unknown): State {
    const state = Object.create(State.prototype) as State;
    handles.set(state, Handle.open(engine, "state_restored", saved ?? null));
    return state;
  }

  /** Returns the state with its history as a JSON value, for `restore`. */
  save(): unknown {
    return handle(this).call("save");
  }

  /** A copy of the present state. */
  get value(): unknown {
    return handle(this).call("value");
  }

  /** All known updates in order. */
  get history(): AppliedUpdate[] {
    return handle(this).call("history") as AppliedUpdate[];
  }

  /** Applies operations, or the data of a `state_update`. Refused ones change nothing. */
  apply(operations: Operation[] | StateUpdate, settings: ApplySettings = {}): AppliedUpdate {
    const { message = "", analysis = "", atomic = false } = settings;
    return handle(this).call("apply", { operations, message, analysis, atomic }) as AppliedUpdate;
  }

  /** Undoes the updates from a point on, by default all; they leave the history. Returns them. */
  rollback(point: HistoryPoint = {}): AppliedUpdate[] {
    return handle(this).call("rollback", point) as AppliedUpdate[];
  }

  /** Returns the state at a point, by default the present one. */
  at(point: HistoryPoint = {}): unknown {
    return handle(this).call("at", point);
  }

  /** Compares the present state with that at a point, by default the first one. */
  diff(point: HistoryPoint = {}): StateDifference[] {
    return handle(this).call("diff", point) as StateDifference[];
  }

  /** Removes the updates of a message from the history; the state stays. Returns whether it had any. */
  forget(message: string): boolean {
    return handle(this).call("forget", message) as boolean;
  }
}

function handle(state: State): Handle {
  const found = handles.get(state);
  if (found === undefined) throw new TypeError("not a State");
  return found;
}

setStateOpener((state, parameters) => handle(state).openNext("pipeline", parameters));
