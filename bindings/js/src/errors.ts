/** Errors. What a model writes never throws one: it is events and findings. */

import type { Event, Finding, ScriptProblem } from "./types.js";

/** A mistake of the caller: an unknown option, a malformed value, a file of the wrong shape. */
export class TambourError extends Error {
  override readonly name: string = "TambourError";

  /**
   * @param message - Description.
   * @param code - Public code, such as `template_not_found`, if there is one.
   * @param line - Line in the caller's text, from 1, if it is known.
   * @param column - Column in Unicode scalar values, from 1, if it is known.
   */
  constructor(
    message: string,
    readonly code?: string,
    readonly line?: number,
    readonly column?: number,
  ) {
    const place = `line ${line}, column ${column}`;
    super(line === undefined || message.includes(place) ? message : `${message} (${place})`);
  }
}

/** A reply without the value that was asked for: no JSON, or one that does not fit its schema. */
export class DecodeError extends TambourError {
  override readonly name = "DecodeError";

  /**
   * @param message - Description.
   * @param code - Code of the failure.
   * @param findings - Findings on the reply.
   * @param issues - What the schema of the caller found, in its own form.
   */
  constructor(
    message: string,
    code: string,
    readonly findings: Finding[] = [],
    readonly issues: readonly unknown[] = [],
  ) {
    super(message, code);
  }
}

/** A script that cannot run. */
export class ScriptError extends TambourError {
  override readonly name = "ScriptError";

  /** @param problems - All problems of the script, in source order. */
  constructor(message: string, readonly problems: ScriptProblem[]) {
    const finding = problems.find((problem) => problem.finding.severity === "error")?.finding;
    super(message, finding?.code, finding?.line, finding?.column);
  }
}

/**
 * A `State` that cannot take over the updates of a reply, since it has changed so that they do not fit. It is as it
 * was. The reply itself has ended; another `finish` of its `Pipeline` tries again.
 */
export class StateError extends TambourError {
  override readonly name = "StateError";

  /** @param events - Events of the end of the reply, unless an iterator has given them before. */
  constructor(message: string, readonly events: Event[] = []) {
    super(message, "state_conflict");
  }
}

/** Error of the engine as it is thrown there: JSON text. */
interface EngineFault {
  message: string;
  code?: string | null;
  line?: number;
  column?: number;
  problems?: ScriptProblem[];
}

/** Converts what the engine threw. Errors that are not its own, such as a wrong type of argument, stay as they are. */
export function convertError(error: unknown): unknown {
  const text = typeof error === "string" ? error : error instanceof Error ? error.message : "";
  if (!text.startsWith("{")) {
    // A module of WebAssembly that has trapped cannot go on.
    const isTrap = error instanceof Error && error.name === "RuntimeError";
    return isTrap ? new TambourError("the library has failed; please report the input", "internal") : error;
  }
  const fault = JSON.parse(text) as EngineFault;
  if (fault.problems !== undefined) return new ScriptError(fault.message, fault.problems);
  return new TambourError(fault.message, fault.code ?? undefined, fault.line, fault.column);
}
