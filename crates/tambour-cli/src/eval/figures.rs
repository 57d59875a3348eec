//! Figures of a run: what became of each prompt, and the rows of the report.

use serde::Serialize;
use serde_json::Value;
use tambour::event::{AnswerYield, Failure, ReplyWorth};
use tambour::texts::format_count;
use tambour::{Finding, Severity};
use tambour_server::upstream::Price;
use tambour_server::upstream::token_counts::{TokenCounts, add_usage};

use super::ask::best_reply;
use super::compare::Comparison;
use super::judge::Judgement;
use super::plan::EvalPlan;
use super::recorded::ReplyGroup;
use super::stats::{Quantiles, Share};
use crate::check::RuleSummary;
use crate::output::{self, severity_name};

/// Number of answers by the step of the ladder that gave them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct YieldCounts {
    /// Replies under a grammar or schema.
    pub(super) constrained: u64,
    /// First replies that needed no repair.
    pub(super) plain: u64,
    /// First replies that were repaired.
    pub(super) repaired: u64,
    /// Replies that followed a re-ask.
    pub(super) reasked: u64,
    /// The fallback text, or text that was kept without the requested format.
    pub(super) fallback: u64,
}

/// Result of one prompt.
pub(super) struct PairResult {
    /// Failure of the first call; nothing else counts then.
    pub(super) failure: Option<Failure>,
    /// True if the first reply passes the check as written.
    pub(super) is_valid: bool,
    /// Worth of the first reply.
    pub(super) first_worth: ReplyWorth,
    /// Worth of the reply that is used.
    pub(super) worth: ReplyWorth,
    /// True if the reply that is used had its structure.
    is_structured: bool,
    /// Step of the ladder that gave the answer.
    pub(super) step: AnswerYield,
    pub(super) reasks: u32,
    /// First error of the check of the first reply, in one line.
    pub(super) first_error: Option<String>,
    /// Code of that error.
    pub(super) error_code: Option<String>,
    /// First findings of the check of the first reply, one a line; none if the prompt has a usable reply.
    pub(super) finding_lines: Vec<String>,
    pub(super) first_text_ms: Option<u64>,
    /// Milliseconds of all attempts together.
    total_ms: Option<u64>,
    /// Token counts of all attempts together.
    usage: Value,
}

/// Report of a run.
#[derive(Serialize)]
pub(super) struct Report {
    version: u32,
    pub(super) name: String,
    pub(super) currency: String,
    /// Conditions of the figures besides the sources, from the manifest of the run.
    pub(super) basis: Value,
    pub(super) rows: Vec<ReportRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparison: Option<Comparison>,
    /// Results in the order of the plan, with the row of each.
    #[serde(skip)]
    pub(super) results: Vec<(usize, String, PairResult)>,
}

/// Row of the report: one model of one source, in one dialect.
#[derive(Serialize)]
pub(super) struct ReportRow {
    pub(super) source: String,
    pub(super) model: String,
    pub(super) dialect: &'static str,
    pub(super) prompts: u64,
    /// Prompts whose first call gave no complete reply.
    pub(super) failed: u64,
    /// Replies that the shares refer to: `prompts` without `failed`.
    pub(super) replies: u64,
    /// First replies that pass the check as written.
    pub(super) valid: Share,
    /// First replies that are usable, with or without repairs.
    pub(super) repaired: Share,
    /// Prompts with any text as answer.
    pub(super) text: Share,
    /// Prompts with a usable reply, re-asks included.
    pub(super) usable: Share,
    /// Prompts with a usable reply that had its structure.
    pub(super) structured: Share,
    #[serde(rename = "yield")]
    pub(super) yields: YieldCounts,
    /// Re-asks of all prompts together.
    pub(super) reasks: u64,
    /// Findings of the check of first replies, by rule.
    pub(super) rules: Vec<RuleFigure>,
    /// Failures by code.
    pub(super) failures: Vec<FailureFigure>,
    pub(super) first_text_ms: Option<Quantiles>,
    pub(super) total_ms: Option<Quantiles>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Tokens of models without a price.
    pub(super) unpriced_tokens: u64,
    /// Cost in units of the currency.
    pub(super) cost: f64,
}

/// Findings of one rule.
#[derive(Serialize)]
pub(super) struct RuleFigure {
    pub(super) rule: String,
    pub(super) code: String,
    pub(super) severity: Severity,
    pub(super) findings: usize,
    pub(super) replies: usize,
}

/// Failures with one code.
#[derive(Serialize)]
pub(super) struct FailureFigure {
    pub(super) code: String,
    pub(super) prompts: u64,
}

/// Accumulator of the figures of a row.
#[derive(Default)]
struct RowSums {
    rules: RuleSummary,
    first_texts: Vec<u64>,
    totals: Vec<u64>,
    valid: u64,
    repaired: u64,
    text: u64,
    usable: u64,
    structured: u64,
    /// Cost in millionths of the currency's unit.
    cost: i64,
}

/// Version of the report.
pub(super) const REPORT_VERSION: u32 = 1;
/// Maximum number of findings that are kept of a reply for reports.
const MAX_FINDINGS: usize = 5;
/// Maximum length in characters of a finding in reports.
const MAX_FINDING_CHARS: usize = 300;

impl YieldCounts {
    /// Returns the words of the steps with their counts.
    pub(super) fn entries(&self) -> [(&'static str, u64); 5] {
        AnswerYield::ALL.map(|step| (step.name(), self.count(step)))
    }

    /// Returns the number of answers of a step.
    fn count(&self, step: AnswerYield) -> u64 {
        match step {
            AnswerYield::Constrained => self.constrained,
            AnswerYield::Plain => self.plain,
            AnswerYield::Repaired => self.repaired,
            AnswerYield::Reasked => self.reasked,
            _ => self.fallback,
        }
    }

    /// Counts an answer.
    fn add(&mut self, step: AnswerYield) {
        let count = match step {
            AnswerYield::Constrained => &mut self.constrained,
            AnswerYield::Plain => &mut self.plain,
            AnswerYield::Repaired => &mut self.repaired,
            AnswerYield::Reasked => &mut self.reasked,
            _ => &mut self.fallback,
        };
        *count += 1;
    }
}

/// Builder of a report, which takes the replies of a run in any order.
pub(super) struct ReportBuilder<'a> {
    plan: &'a EvalPlan,
    /// Row of each pair.
    row_of_pair: Vec<usize>,
    rows: Vec<ReportRow>,
    sums: Vec<RowSums>,
    results: Vec<Option<PairResult>>,
}

impl<'a> ReportBuilder<'a> {
    /// Creates a builder with a row for each source, model and dialect of the plan.
    pub(super) fn new(plan: &'a EvalPlan) -> ReportBuilder<'a> {
        let (mut rows, mut row_of_pair) = (Vec::<ReportRow>::new(), Vec::new());
        let mut row_indexes = std::collections::HashMap::new();
        for pair in &plan.pairs {
            let key = (pair.source, pair.contract, pair.model.clone());
            let row = *row_indexes.entry(key).or_insert_with(|| {
                let dialect = plan.contracts[pair.contract].entry.name;
                rows.push(ReportRow::new(&plan.sources[pair.source].name, &pair.model, dialect));
                rows.len() - 1
            });
            row_of_pair.push(row);
        }
        ReportBuilder {
            plan,
            row_of_pair,
            sums: rows.iter().map(|_| RowSums::default()).collect(),
            rows,
            results: plan.pairs.iter().map(|_| None).collect(),
        }
    }

    /// Judges the replies of a pair. Replies replace a failure; otherwise the first call for a pair counts.
    pub(super) fn add(&mut self, pair: usize, group: &ReplyGroup) {
        if self.results[pair].as_ref().is_some_and(|result| result.failure.is_none()) {
            return;
        }
        let contract = &self.plan.contracts[self.plan.pairs[pair].contract];
        let judgements: Vec<Judgement> =
            std::iter::once(&group.first).chain(&group.reasks).map(|record| contract.judge(record)).collect();
        let worths: Vec<ReplyWorth> = judgements.iter().map(|judgement| judgement.worth).collect();
        let chosen = best_reply(&worths);
        let (first, used) = (&judgements[0], &judgements[chosen]);
        // The rule of `completed.metadata.yield`.
        let step = match (used.is_fallback, chosen, used.repairs) {
            (true, ..) => AnswerYield::Fallback,
            (false, 1.., _) => AnswerYield::Reasked,
            (false, 0, 1..) => AnswerYield::Repaired,
            (false, 0, 0) if group.first.constraint.is_some() => AnswerYield::Constrained,
            (false, 0, 0) => AnswerYield::Plain,
        };
        let (mut usage, mut total_ms) = (Value::Null, None);
        for record in std::iter::once(&group.first).chain(&group.reasks) {
            add_usage(&mut usage, Some(record.usage.clone()));
            total_ms = match (total_ms, record.total_ms) {
                (Some(sum), Some(ms)) => Some(u64::saturating_add(sum, ms)),
                (sum, ms) => sum.or(ms),
            };
        }
        let id = &*self.plan.pairs[pair].prompt_id;
        let line = |finding: &Finding| clip(&output::finding_line(id, finding));
        let error = first.verdict.first_error();
        self.results[pair] = Some(PairResult {
            failure: group.first.error.clone(),
            is_valid: first.verdict.passed(),
            first_worth: first.worth,
            worth: used.worth,
            is_structured: used.is_structured,
            step,
            reasks: u32::try_from(group.reasks.len()).unwrap_or(u32::MAX),
            first_error: error.map(|finding| clip(&format!("{}: {}", finding.rule, finding.message))),
            error_code: error.map(|finding| finding.code.to_string()),
            finding_lines: match used.worth {
                // There may be a million of them.
                ReplyWorth::Usable => Vec::new(),
                _ => first.verdict.findings.iter().take(MAX_FINDINGS).map(line).collect(),
            },
            first_text_ms: group.first.first_text_ms,
            total_ms,
            usage,
        });
        if group.first.error.is_none() {
            self.sums[self.row_of_pair[pair]].rules.add(&first.verdict);
        }
    }

    /// Builds the report.
    ///
    /// # Errors
    /// A pair has no reply: the run is not finished.
    pub(super) fn finish(mut self) -> anyhow::Result<Report> {
        let mut results = Vec::with_capacity(self.results.len());
        for (pair, result) in std::mem::take(&mut self.results).into_iter().enumerate() {
            let prompt_id = self.plan.pairs[pair].prompt_id.to_string();
            let Some(result) = result else { anyhow::bail!("the run has no reply to `{prompt_id}`") };
            self.count(pair, &result);
            results.push((self.row_of_pair[pair], prompt_id, result));
        }
        for (row, sums) in self.rows.iter_mut().zip(self.sums) {
            row.finish(sums);
        }
        Ok(Report {
            version: REPORT_VERSION,
            name: self.plan.name.clone(),
            currency: self.plan.currency.clone(),
            basis: self.plan.basis(),
            rows: self.rows,
            comparison: None,
            results,
        })
    }

    /// Adds the result of a pair to its row.
    fn count(&mut self, pair: usize, result: &PairResult) {
        let (row, sums) = (&mut self.rows[self.row_of_pair[pair]], &mut self.sums[self.row_of_pair[pair]]);
        row.prompts += 1;
        let tokens = TokenCounts::from_usage(&result.usage);
        row.input_tokens = row.input_tokens.saturating_add(tokens.input);
        row.output_tokens = row.output_tokens.saturating_add(tokens.output);
        match price_of(&self.plan.sources[self.plan.pairs[pair].source].prices, &row.model) {
            Some(price) => sums.cost = sums.cost.saturating_add(price.cost(&result.usage)),
            None => {
                let tokens = tokens.input.saturating_add(tokens.output);
                row.unpriced_tokens = row.unpriced_tokens.saturating_add(tokens);
            }
        }
        if let Some(failure) = &result.failure {
            row.failed += 1;
            match row.failures.iter_mut().find(|figure| figure.code == failure.code) {
                Some(figure) => figure.prompts += 1,
                None => row.failures.push(FailureFigure { code: failure.code.to_string(), prompts: 1 }),
            }
            return;
        }
        row.replies += 1;
        row.reasks += u64::from(result.reasks);
        sums.valid += u64::from(result.is_valid);
        sums.repaired += u64::from(result.first_worth == ReplyWorth::Usable);
        sums.text += u64::from(result.worth >= ReplyWorth::Text);
        sums.usable += u64::from(result.worth == ReplyWorth::Usable);
        sums.structured += u64::from(result.is_structured);
        sums.first_texts.extend(result.first_text_ms);
        sums.totals.extend(result.total_ms);
        row.yields.add(result.step);
    }
}

impl ReportRow {
    fn new(source: &str, model: &str, dialect: &'static str) -> ReportRow {
        let none = Share::new(0, 0);
        ReportRow {
            source: source.to_owned(),
            model: model.to_owned(),
            dialect,
            prompts: 0,
            failed: 0,
            replies: 0,
            valid: none,
            repaired: none,
            text: none,
            usable: none,
            structured: none,
            yields: YieldCounts::default(),
            reasks: 0,
            rules: Vec::new(),
            failures: Vec::new(),
            first_text_ms: None,
            total_ms: None,
            input_tokens: 0,
            output_tokens: 0,
            unpriced_tokens: 0,
            cost: 0.0,
        }
    }

    fn finish(&mut self, sums: RowSums) {
        self.valid = Share::new(sums.valid, self.replies);
        self.repaired = Share::new(sums.repaired, self.replies);
        self.text = Share::new(sums.text, self.replies);
        self.usable = Share::new(sums.usable, self.replies);
        self.structured = Share::new(sums.structured, self.replies);
        self.first_text_ms = Quantiles::new(sums.first_texts);
        self.total_ms = Quantiles::new(sums.totals);
        self.failures.sort_by(|a, b| b.prompts.cmp(&a.prompts).then_with(|| a.code.cmp(&b.code)));
        let rules = sums.rules.rows();
        self.rules = rules
            .iter()
            .map(|row| RuleFigure {
                rule: row.rule.to_owned(),
                code: row.code.to_owned(),
                severity: row.severity,
                findings: row.violations.findings,
                replies: row.violations.texts,
            })
            .collect();
        #[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 millionths")]
        let cost = sums.cost as f64 / 1e6;
        self.cost = cost;
    }

    /// Returns source, model and dialect as one text.
    pub(super) fn label(&self) -> String {
        let ReportRow { source, model, dialect, .. } = self;
        if source == model {
            format!("{source} · {dialect}")
        } else {
            format!("{source} · {model} · {dialect}")
        }
    }

    /// Formats the cost, `-` if no tokens have a price.
    pub(super) fn format_cost(&self, currency: &str) -> String {
        let tokens = self.input_tokens.saturating_add(self.output_tokens);
        match self.unpriced_tokens {
            unpriced if unpriced == tokens => "-".to_owned(),
            0 => format!("{:.4} {currency}", self.cost),
            _ => format!("≥ {:.4} {currency}", self.cost),
        }
    }

    /// Formats the tokens, `-` if the upstream reported none.
    pub(super) fn format_tokens(&self) -> String {
        match (self.input_tokens, self.output_tokens) {
            (0, 0) => "-".to_owned(),
            (input, output) => format!("{input} + {output}"),
        }
    }
}

impl Report {
    /// Returns the report as JSON.
    ///
    /// # Errors
    /// Not reached: all keys are texts.
    pub(super) fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns a message about the prompts without a reply; `None` if there are none.
    pub(super) fn failure_message(&self) -> Option<String> {
        let failed: u64 = self.rows.iter().map(|row| row.failed).sum();
        if failed == 0 {
            return None;
        }
        let prompts: u64 = self.rows.iter().map(|row| row.prompts).sum();
        let first = self.results.iter().find_map(|(_, id, result)| Some((id, result.failure.as_ref()?)))?;
        let (id, failure) = first;
        let message = format!(
            "{} of {} got no reply; the first, `{id}`: {}: {} (`--resume --retry-failed` asks them again)",
            failed,
            format_count(prompts, "prompt"),
            failure.code,
            failure.message
        );
        // A service writes the text of the failure, and a file the id.
        Some(message.chars().map(output::visible_char).collect())
    }
}

/// Formats a share in percent, with the count.
pub(super) fn format_share(share: Share) -> String {
    format!("{} ({})", share.count, percent(share.share))
}

/// Formats a share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats milliseconds.
pub(super) fn format_quantiles(quantiles: Option<Quantiles>) -> String {
    quantiles.map_or_else(|| "-".to_owned(), |it| format!("{} / {} ms", it.median, it.p90))
}

/// Formats a rule with its severity.
pub(super) fn rule_label(figure: &RuleFigure) -> String {
    format!("{} {} {}", severity_name(figure.severity), figure.rule, figure.code)
}

/// Returns the price of a model, otherwise the price of `*`.
fn price_of<'a>(prices: &'a std::collections::BTreeMap<String, Price>, model: &str) -> Option<&'a Price> {
    prices.get(model).or_else(|| prices.get("*"))
}

/// Returns at most [`MAX_FINDING_CHARS`] characters of a text.
fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_FINDING_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
