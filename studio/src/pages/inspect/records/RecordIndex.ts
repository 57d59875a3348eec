import { type Finding } from "../../../api/types.ts";
import { type Row, type ShortFinding, shortOf } from "./protocol.ts";

export const SEVERITIES = ["info", "warning", "error"] as const;

export type Severity = (typeof SEVERITIES)[number];

/** States of a record. */
export const STATES = ["unchecked", "pass", "fail", "unreadable"] as const;

export type RecordState = (typeof STATES)[number];

/** Repeated words, each kept once. */
class Words {
  readonly list: string[] = [];
  readonly #numbers = new Map<string, number>();

  numberOf(word: string): number {
    let number = this.#numbers.get(word);
    if (number === undefined) {
      number = this.list.length;
      this.list.push(word);
      this.#numbers.set(word, number);
    }
    return number;
  }
}

function grown<T extends Uint8Array | Uint16Array | Uint32Array | Float64Array>(array: T, needed: number): T {
  if (needed <= array.length) return array;
  const larger = new (array.constructor as new (length: number) => T)(Math.max(needed, array.length * 2));
  larger.set(array);
  return larger;
}

const FIRST_SIZE = 1024;

/**
 * Records of a file in columns: their places, and a few words on each. The records themselves stay in the file.
 * A finding is one number: its rule, its severity and whether it was repaired.
 */
export class RecordIndex {
  readonly models = new Words();
  readonly dialects = new Words();
  readonly rules = new Words();
  readonly #ids: string[] = [];
  readonly #previews: string[] = [];
  #starts = new Float64Array(FIRST_SIZE);
  #lengths = new Uint32Array(FIRST_SIZE);
  #models = new Uint16Array(FIRST_SIZE);
  #dialects = new Uint16Array(FIRST_SIZE);
  #states = new Uint8Array(FIRST_SIZE);
  #firsts = new Uint32Array(FIRST_SIZE);
  #counts = new Uint16Array(FIRST_SIZE);
  #findings = new Uint32Array(FIRST_SIZE);
  #used = 0;
  /** Findings from the server, as JSON; those of the file stay in the file. */
  readonly #given = new Map<number, string>();
  size = 0;

  add(row: Row): void {
    const at = this.size;
    this.size += 1;
    this.#starts = grown(this.#starts, this.size);
    this.#lengths = grown(this.#lengths, this.size);
    this.#models = grown(this.#models, this.size);
    this.#dialects = grown(this.#dialects, this.size);
    this.#states = grown(this.#states, this.size);
    this.#firsts = grown(this.#firsts, this.size);
    this.#counts = grown(this.#counts, this.size);
    this.#starts[at] = row.start;
    this.#lengths[at] = row.length;
    this.#models[at] = this.models.numberOf(row.model);
    this.#dialects[at] = this.dialects.numberOf(row.dialect);
    this.#ids.push(row.id);
    this.#previews.push(row.preview);
    if (!row.readable && row.findings === null) this.#states[at] = STATES.indexOf("unreadable");
    else if (row.findings !== null) this.#keep(at, row.findings, verdictOf(row.findings));
  }

  /** Stores the server's verdict on a record. */
  check(at: number, verdict: "pass" | "fail", findings: readonly Finding[]): void {
    this.#keep(at, findings.map(shortOf), verdict);
    this.#given.set(at, JSON.stringify(findings));
  }

  #keep(at: number, findings: readonly ShortFinding[], verdict: "pass" | "fail"): void {
    const count = Math.min(findings.length, 0xffff);
    this.#findings = grown(this.#findings, this.#used + count);
    this.#firsts[at] = this.#used;
    this.#counts[at] = count;
    for (const finding of findings.slice(0, count)) {
      const rule = this.rules.numberOf(`${finding.rule} ${finding.code}`);
      this.#findings[this.#used] = (rule << 3) | (SEVERITIES.indexOf(finding.severity) << 1) | Number(finding.repaired);
      this.#used += 1;
    }
    this.#states[at] = STATES.indexOf(verdict);
  }

  idOf = (at: number): string => this.#ids[at] ?? "";
  previewOf = (at: number): string => this.#previews[at] ?? "";
  modelOf = (at: number): string => this.models.list[this.#models[at] ?? 0] ?? "";
  dialectOf = (at: number): string => this.dialects.list[this.#dialects[at] ?? 0] ?? "";
  stateOf = (at: number): RecordState => STATES[this.#states[at] ?? 0] ?? "unchecked";
  placeOf = (at: number): { start: number; end: number } => {
    const start = this.#starts[at] ?? 0;
    return { start, end: start + (this.#lengths[at] ?? 0) };
  };

  /** Findings of a record from the server. */
  givenOf(at: number): Finding[] | null {
    const text = this.#given.get(at);
    return text === undefined ? null : (JSON.parse(text) as Finding[]);
  }

  countOf = (at: number): number => this.#counts[at] ?? 0;

  /** Calls back with each finding of a record: number of its rule, its severity, true if repaired. */
  eachFinding(at: number, see: (rule: number, severity: number, repaired: boolean) => void): void {
    const first = this.#firsts[at] ?? 0;
    const end = first + (this.#counts[at] ?? 0);
    for (let place = first; place < end; place += 1) {
      const packed = this.#findings[place] ?? 0;
      see(packed >> 3, (packed >> 1) & 3, (packed & 1) === 1);
    }
  }

  /** Worst severity of a record's findings. */
  worstOf(at: number): Severity | null {
    let worst = -1;
    this.eachFinding(at, (_rule, severity) => {
      worst = Math.max(worst, severity);
    });
    return SEVERITIES[worst] ?? null;
  }
}

const verdictOf = (findings: readonly ShortFinding[]): "pass" | "fail" =>
  findings.some(({ severity }) => severity === "error") ? "fail" : "pass";
