import { api } from "../../api/client.ts";
import { type Finding, type Schemas } from "../../api/types.ts";

/** Strength of a rule. */
export type Level = "must" | "should" | "info";

export type Rule = Schemas["Rules"]["data"][number];
export type ExplainedRule = Schemas["ExplainedRules"]["data"][number];

let loaded: Promise<readonly Rule[]> | null = null;

/** All rules; they change only with the server, so they are loaded once. */
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

/** Parts of the product whose rules apply to every dialect. */
const EVERYWHERE = new Set(["json", "pipeline"]);

/** Rules that a text is held to, broken ones first, otherwise in the server's order. */
export function verdictsOf(rules: readonly Rule[], contract: string, findings: readonly Finding[]): RuleVerdict[] {
  const verdicts: RuleVerdict[] = [];
  const named = (finding: Finding, rule: Rule) => finding.code === rule.code && rule.rows.includes(finding.rule);
  for (const rule of rules) {
    const of = findings.filter((finding) => named(finding, rule));
    // A finding of a rule with several owners is shown once, at the contract if that has the rule.
    const own = rule.owner === contract;
    const elsewhere = rules.some((other) => other !== rule && other.owner === contract && other.code === rule.code);
    if (!own && (elsewhere || (of.length === 0 && !EVERYWHERE.has(rule.owner)))) continue;
    verdicts.push({ rule, findings: of.length, repaired: of.filter(({ repair }) => repair !== null).length });
  }
  return verdicts.sort((one, other) => Number(other.findings > 0) - Number(one.findings > 0));
}

/** Rules of an owner with all search words in their code, rows, title or owner. */
export function findRules(rules: readonly Rule[], text: string, owner: string | undefined): Rule[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return rules.filter((rule) => {
    const told = `${rule.code} ${rule.rows.join(" ")} ${rule.title} ${rule.owner}`.toLowerCase();
    return (owner === undefined || rule.owner === owner) && words.every((word) => told.includes(word));
  });
}
