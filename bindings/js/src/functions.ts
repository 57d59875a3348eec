/** Functions on whole texts. */

import engine from "#engine";

import { toBytes, toFile } from "./chunks.js";
import { callEngine, checkSettings } from "./engine.js";
import { DecodeError } from "./errors.js";
import type { Options } from "./options.js";
import type { Dialect, FinishReason } from "./pipeline.js";
import type { Finding, Repair, Verdict } from "./types.js";

/** Text, or bytes in UTF-8. */
export type Text = string | Uint8Array | ArrayBuffer;

/** Name of a contract: a dialect, or `events` for a stream as a client gets it. */
export type Contract = Dialect | "events";

/** Settings of `check`, with the options of the reading by their public names. */
export interface CheckSettings extends Options {
  /** Rules that the text must keep; default `auto`. */
  contract?: Contract;
}

/**
 * Checks a reply against the rules of its dialect, or with the contract `events` a stream as a client gets it. The
 * profile is `strict` unless the option `profile` says otherwise.
 *
 * @example
 * check("<final>\nHi.\n</final>", { contract: "thinkingml" }).first_error?.code; // "serp_block_missing"
 * @throws TambourError for an unknown contract or option.
 */
export function check(text: Text, settings: CheckSettings = {}): Verdict {
  checkSettings(settings);
  const { contract = "auto", ...options } = settings;
  return callEngine(engine, "check", { contract, options }, toBytes(text)) as Verdict;
}

/** Settings of `repair`, with the options of the reading by their public names. */
export interface RepairSettings extends Options {
  /** Dialect of the reply; default `auto`. */
  dialect?: Dialect;
  /** Reason why the reply ended; default `stop`. */
  finish?: FinishReason;
}

/**
 * Rewrites a reply so that it passes the strict check.
 *
 * @throws TambourError if replies of the dialect cannot be written, or the reply ended with a failure.
 */
export function repair(text: Text, settings: RepairSettings = {}): Repair {
  checkSettings(settings);
  const { dialect = "auto", finish = "stop", ...options } = settings;
  return callEngine(engine, "repair", { dialect, finish, options }, toBytes(text)) as Repair;
}

/** Settings of `loads`. */
export interface LoadSettings {
  /** The text must be nothing but valid JSON; default false. */
  strict?: boolean;
}

interface FoundJson {
  value?: unknown;
  findings?: Finding[];
}

function find(text: Text, strict: boolean, findings: boolean): FoundJson {
  const found = callEngine(engine, "find_json", { strict, findings }, toFile(text)) as FoundJson;
  if (!Object.hasOwn(found, "value")) {
    const message = found.findings?.[0]?.message ?? "there is no JSON value";
    throw new DecodeError(message, "json_missing", found.findings);
  }
  return found;
}

/**
 * Returns the one JSON value of a chatty, fenced or broken text, as `JSON.parse` would; whole numbers beyond 2^53
 * lose digits there.
 *
 * @example
 * loads("Sure, here you are:\n```json\n{'ok': True, 'n': 1,}\n```"); // { ok: true, n: 1 }
 * @throws DecodeError if there is no value, or none that is whole, since nesting is limited to 128 levels. Its
 *   `findings` say which limit, and with `strict` which fault.
 */
export function loads(text: Text, { strict = false }: LoadSettings = {}): unknown {
  return find(text, strict, false).value;
}

/** As `loads`, with the list of repairs. */
export function loadsWithFindings(
  text: Text,
  { strict = false }: LoadSettings = {},
): { value: unknown; findings: Finding[] } {
  const { value, findings = [] } = find(text, strict, true);
  return { value, findings };
}

/**
 * Leaves only harmless inline HTML in a Markdown text; other markup is shown as text, or removed with `strip`.
 *
 * @example
 * sanitize("<b>Hi</b> <img src=x>, 1 < 2"); // "<b>Hi</b> &lt;img src=x>, 1 < 2"
 */
export function sanitize(text: Text, settings: { mode?: "escape" | "strip" } = {}): string {
  return sanitizeWithFindings(text, settings).text;
}

/** As `sanitize`, with the findings. */
export function sanitizeWithFindings(
  text: Text,
  { mode = "escape" }: { mode?: "escape" | "strip" } = {},
): { text: string; findings: Finding[] } {
  return callEngine(engine, "sanitize", { mode }, toFile(text)) as { text: string; findings: Finding[] };
}

/** Form of a contract: text for `prompt`, `lark` and `gbnf`, JSON for `json-schema` and `structural-tag`. */
export type ContractFormat = "prompt" | "json-schema" | "lark" | "gbnf" | "structural-tag";

/** Settings of `contract`, with the options of the reading by their public names. */
export interface ContractSettings extends Options {
  /** Form of the contract; default `prompt`. */
  format?: ContractFormat;
}

/**
 * Returns what a model is told or constrained by, for a dialect.
 *
 * @throws TambourError if the dialect has no such form.
 */
export function contract(
  name: Dialect,
  settings?: ContractSettings & { format?: "prompt" | "lark" | "gbnf" },
): string;
export function contract(name: Dialect, settings: ContractSettings): unknown;
export function contract(name: Dialect, settings: ContractSettings = {}): unknown {
  checkSettings(settings);
  const { format = "prompt", ...options } = settings;
  return callEngine(engine, "contract", { name, format, options }, new Uint8Array());
}

/** Version of the library. */
export const version: string = engine.version();
