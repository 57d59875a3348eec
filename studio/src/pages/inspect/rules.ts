import { api } from "../../api/client.ts";
import { type Finding, type Schemas } from "../../api/types.ts";

/** What a rule demands. */
export type Level = "must" | "should" | "info";

export type Rule = Schemas["Rules"]["data"][number];
export type ExplainedRule = Schemas["ExplainedRules"]["data"][number];

let loaded: Promise<readonly Rule[]> | null = null;

/** All rules; they are the same as long as the server is, so they are asked for once. */
export function allRules(): Promise<readonly Rule[]> {
  loaded ??= api.get("/api/v1/rules").then(
    ({ data }) => data.data,
    (error: unknown) => {
      loaded = null;
      throw error;
    },
  );
  return loaded;
}

export type RuleVerdict = { readonly rule: Rule; readonly findings: number; readonly repaired: number };

/** Parts of the product whose rules hold whatever a reply is written in. */
const EVERYWHERE = new Set(["json", "pipeline"]);

/** Rules that a text is held to, broken ones first, in the order of the server otherwise. */
export function verdictsOf(rules: readonly Rule[], contract: string, findings: readonly Finding[]): RuleVerdict[] {
  const verdicts: RuleVerdict[] = [];
  const named = (finding: Finding, rule: Rule) => finding.code === rule.code && rule.rows.includes(finding.rule);
  for (const rule of rules) {
    const of = findings.filter((finding) => named(finding, rule));
    // A finding of a rule that several parts have is told once, of the contract if that has it.
    const own = rule.owner === contract;
    const elsewhere = rules.some((other) => other !== rule && other.owner === contract && other.code === rule.code);
    if (!own && (elsewhere || (of.length === 0 && !EVERYWHERE.has(rule.owner)))) continue;
    verdicts.push({ rule, findings: of.length, repaired: of.filter(({ repair }) => repair !== null).length });
  }
  return verdicts.sort((one, other) => Number(other.findings > 0) - Number(one.findings > 0));
}

/** Rules that have a word in their code, rows or title, and belong to an owner. */
export function findRules(rules: readonly Rule[], text: string, owner: string | undefined): Rule[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return rules.filter((rule) => {
    const told = `${rule.code} ${rule.rows.join(" ")} ${rule.title} ${rule.owner}`.toLowerCase();
    return (owner === undefined || rule.owner === owner) && words.every((word) => told.includes(word));
  });
}
