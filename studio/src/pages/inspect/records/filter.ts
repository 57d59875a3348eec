import { type RecordIndex, type RecordState, SEVERITIES, type Severity, STATES } from "./RecordIndex.ts";

/** Filter of records; absent fields match all. */
export type RecordFilter = {
  /** Rule as `ROW code`. */
  readonly rule?: string | undefined;
  /** Lowest severity that at least one finding must have. */
  readonly severity?: Severity | undefined;
  readonly model?: string | undefined;
  readonly state?: RecordState | undefined;
  /** Part of the id, or of the beginning of the reply. */
  readonly text?: string | undefined;
};

/** Numbers of the records that pass a filter, in the order of the file. */
export function filtered(index: RecordIndex, filter: RecordFilter): Uint32Array {
  const rule = filter.rule === undefined ? -1 : index.rules.list.indexOf(filter.rule);
  const severity = filter.severity === undefined ? -1 : SEVERITIES.indexOf(filter.severity);
  const text = filter.text?.trim().toLowerCase() ?? "";
  const found = new Uint32Array(index.size);
  let count = 0;
  for (let at = 0; at < index.size; at += 1) {
    if (filter.state !== undefined && index.stateOf(at) !== filter.state) continue;
    if (filter.model !== undefined && index.modelOf(at) !== filter.model) continue;
    if (text !== "" && !`${index.idOf(at)} ${index.previewOf(at)}`.toLowerCase().includes(text)) continue;
    if ((filter.rule !== undefined || severity !== -1) && !breaks(index, at, filter.rule !== undefined, rule, severity)) continue;
    found[count] = at;
    count += 1;
  }
  return found.slice(0, count);
}

/** True if one finding of a record is of the rule and at least as severe. */
function breaks(index: RecordIndex, at: number, ofRule: boolean, rule: number, severity: number): boolean {
  let found = false;
  index.eachFinding(at, (number, bad) => {
    if ((!ofRule || number === rule) && bad >= severity) found = true;
  });
  return found;
}

/** Count of the violations of a rule. */
export type RuleCount = {
  readonly name: string;
  /** Records with a finding of the rule. */
  readonly records: number;
  readonly findings: number;
  readonly repaired: number;
  readonly worst: Severity;
};

/** Rules that the records break, most frequent first. */
export function rulesOf(index: RecordIndex, rows: Uint32Array): RuleCount[] {
  const rules = index.rules.list.map((name) => ({ name, records: 0, findings: 0, repaired: 0, worst: 0, last: -1 }));
  for (const at of rows) {
    index.eachFinding(at, (rule, severity, repaired) => {
      const count = rules[rule];
      if (count === undefined) return;
      if (count.last !== at) count.records += 1;
      count.last = at;
      count.findings += 1;
      count.repaired += Number(repaired);
      count.worst = Math.max(count.worst, severity);
    });
  }
  return rules
    .filter(({ records }) => records > 0)
    .map(({ name, records, findings, repaired, worst }) => ({ name, records, findings, repaired, worst: SEVERITIES[worst] ?? "info" }))
    .sort((one, other) => other.records - one.records || one.name.localeCompare(other.name));
}

/** Number of records in each state. */
export function statesOf(index: RecordIndex): Record<RecordState, number> {
  const counts = { unchecked: 0, pass: 0, fail: 0, unreadable: 0 };
  for (let at = 0; at < index.size; at += 1) counts[index.stateOf(at)] += 1;
  return counts;
}

export { STATES };
