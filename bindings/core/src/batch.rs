//! Rows of a batch: the verdict on a reply, or what it contains, as plain data without events.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tambour::error::Result;
use tambour::event::{Event, Extension, JoinedEvents, PlanOutcome, ToolCall};
use tambour::verdict::Contract;
use tambour::{Finding, InputEnd, Options, Pipeline, Severity};

/// Code of a row that could not be read because of a fault of the library.
pub const INTERNAL: &str = "internal_error";

/// Verdict on one reply.
#[derive(Clone, Debug, Default)]
pub struct CheckedRow {
    /// Name of the contract; in place of `auto`, that of the detected dialect.
    pub contract: String,
    /// True if no finding is an error.
    pub passed: bool,
    /// Code of the first error.
    pub first_error: Option<String>,
    /// Findings in the order of the text.
    pub findings: Vec<Finding>,
    /// Number of findings by rule.
    pub faults: Vec<FaultCount>,
}

/// Content of one reply.
#[derive(Clone, Debug, Default)]
pub struct DecodedRow {
    /// Name of the dialect the reply was read as.
    pub dialect: String,
    /// Text of the answer; empty if there is none.
    pub answer: String,
    /// Text of the thinking, with an empty line between phases; `None` if there is none.
    pub reasoning: Option<String>,
    /// Queries for a search.
    pub queries: Vec<String>,
    /// Plan, if the reply has one or should have one.
    pub plan: Option<PlanOutcome>,
    /// Calls that may run.
    pub calls: Vec<ToolCall>,
    /// Reply in its canonical form, if it was asked for and replies of the dialect can be written.
    pub repaired: Option<String>,
    /// True if the reply was truncated.
    pub truncated: bool,
    /// Reason why the fallback text replaced the answer.
    pub fallback_reason: Option<String>,
    /// Code of the failure that ended the reply.
    pub error: Option<String>,
    /// Number of findings by rule.
    pub faults: Vec<FaultCount>,
}

/// Number of findings on one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultCount {
    /// Specification row, such as `T-032`.
    pub rule: String,
    /// Stable code, such as `phase_id_not_increasing`.
    pub code: String,
    /// Severity of the findings.
    pub severity: Severity,
    /// Number of findings, at least 1.
    pub count: usize,
}

/// Reader of the replies of a batch.
#[derive(Clone)]
pub enum RowReader {
    /// Checks replies against a contract.
    Check(Contract, Options),
    /// Reads replies of a dialect.
    Decode {
        /// Name of the dialect.
        dialect: String,
        /// Options.
        options: Options,
        /// End of each reply.
        end: InputEnd,
        /// True if replies are also rewritten in their canonical form.
        rewrites: bool,
    },
}

/// Result of reading a row.
#[derive(Clone, Debug)]
pub enum Row {
    /// Verdict.
    Checked(Box<CheckedRow>),
    /// Content.
    Decoded(Box<DecodedRow>),
}

impl RowReader {
    /// Reader that checks replies against the contract called `contract`.
    ///
    /// # Errors
    /// No contract has that name.
    pub fn check(contract: &str, options: Options) -> Result<RowReader> {
        Ok(RowReader::Check(Contract::from_name(contract)?, options))
    }

    /// Reader of replies in `dialect` that end with `end`.
    ///
    /// # Errors
    /// No dialect has that name.
    pub fn decode(dialect: &str, options: Options, end: InputEnd, rewrites: bool) -> Result<RowReader> {
        Pipeline::new(dialect, &options)?;
        Ok(RowReader::Decode { dialect: dialect.to_owned(), options, end, rewrites })
    }

    /// Reads one reply. A panic while it is read becomes a row with the error [`INTERNAL`].
    #[must_use]
    pub fn read(&self, text: &[u8]) -> Row {
        match self {
            RowReader::Check(contract, options) => {
                let row = catch_unwind(AssertUnwindSafe(|| check_row(*contract, text, options)));
                Row::Checked(Box::new(row.unwrap_or_else(|_| CheckedRow {
                    contract: contract.name().to_owned(),
                    first_error: Some(INTERNAL.to_owned()),
                    ..CheckedRow::default()
                })))
            }
            RowReader::Decode { dialect, options, end, rewrites } => {
                let read = || decode_row(dialect, text, options, end, *rewrites);
                let row = catch_unwind(AssertUnwindSafe(read)).ok().and_then(Result::ok);
                Row::Decoded(Box::new(row.unwrap_or_else(|| DecodedRow {
                    dialect: dialect.clone(),
                    error: Some(INTERNAL.to_owned()),
                    ..DecodedRow::default()
                })))
            }
        }
    }
}

fn check_row(contract: Contract, text: &[u8], options: &Options) -> CheckedRow {
    let verdict = contract.check(text, options);
    CheckedRow {
        contract: verdict.contract.to_owned(),
        passed: verdict.passed(),
        first_error: verdict.first_error().map(|finding| finding.code.to_string()),
        faults: count_faults(&verdict.findings),
        findings: verdict.findings,
    }
}

fn decode_row(
    dialect: &str,
    text: &[u8],
    options: &Options,
    end: &InputEnd,
    rewrites: bool,
) -> Result<DecodedRow> {
    let mut pipeline = Pipeline::new(dialect, options)?.with_extensions(true);
    let mut joined = JoinedEvents::default();
    pipeline.push(text, &mut joined);
    pipeline.finish(end, &mut joined);
    let mut row = DecodedRow { faults: count_faults(&joined.findings), ..DecodedRow::default() };
    if rewrites && !matches!(joined.events.last(), Some(Event::Error(_))) {
        row.repaired = pipeline.rewrite(&joined.events);
    }
    let mut last_phase = None;
    for event in joined.events {
        match event {
            Event::FinalDelta { text } => row.answer.push_str(&text),
            Event::PhaseDelta { id, text } => {
                let reasoning = row.reasoning.get_or_insert_default();
                if last_phase.replace(id).is_some_and(|last| last != id) {
                    reasoning.push_str("\n\n");
                }
                reasoning.push_str(&text);
            }
            Event::SerpQueries { queries } => row.queries = queries,
            Event::Error(failure) => row.error = Some(failure.code.into_owned()),
            Event::Completed(completed) => {
                row.truncated = completed.metadata.truncated;
                row.fallback_reason = completed.metadata.fallback_reason.map(|reason| reason.into_owned());
            }
            Event::Extension(extension) => match *extension {
                Extension::Plan(plan) => row.plan = Some(plan),
                Extension::ToolCall(call) => row.calls.push(call),
                _ => {}
            },
            _ => {}
        }
    }
    row.dialect = pipeline.dialect().to_owned();
    row.truncated |= row.error.is_some();
    Ok(row)
}

/// Counts findings by rule and severity, in the order of their first ones.
fn count_faults(findings: &[Finding]) -> Vec<FaultCount> {
    let mut faults: Vec<FaultCount> = Vec::new();
    for finding in findings {
        let is_same = |fault: &&mut FaultCount| {
            fault.code == finding.code && fault.rule == finding.rule && fault.severity == finding.severity
        };
        match faults.iter_mut().find(is_same) {
            Some(fault) => fault.count += 1,
            None => faults.push(FaultCount {
                rule: finding.rule.to_string(),
                code: finding.code.to_string(),
                severity: finding.severity,
                count: 1,
            }),
        }
    }
    faults
}
