//! Whole replies: checked, repaired, sanitized; contracts of dialects; outcome of a pipeline.

use serde_json::Value;
use tambour::dialect;
use tambour::error::{Error, Result};
use tambour::event::{Event, JoinedEvents};
use tambour::html::{HtmlMode, sanitize};
use tambour::limits::Limits;
use tambour::verdict::{self, Contract};
use tambour::{Finding, InputEnd, Options, Pipeline, Profile};

use crate::records::{Outcome, Repair, Verdict};
use crate::state::describe_block;

/// Checks a text against a contract, as `tambour check` does.
///
/// # Errors
/// No contract has that name.
pub fn check(contract: &str, text: &[u8], options: &Options) -> Result<Verdict> {
    let verdict = Contract::from_name(contract)?.check(text, options);
    Ok(Verdict {
        contract: verdict.contract.to_owned(),
        passed: verdict.passed(),
        first_error: verdict.first_error().cloned(),
        findings: verdict.findings,
    })
}

/// Rewrites a reply so that it passes the strict check, as `tambour repair` does.
///
/// # Errors
/// No dialect has that name, replies of the dialect cannot be written, or the reply ended with a failure,
/// whose code the error has.
pub fn repair(dialect: &str, text: &[u8], options: &Options, end: &InputEnd) -> Result<Repair> {
    // Extension events carry text outside the contract, such as a draft, which is part of the reply too.
    let mut pipeline = Pipeline::new(dialect, options)?.with_extensions(true);
    let mut joined = JoinedEvents::default();
    pipeline.push(text, &mut joined);
    pipeline.finish(end, &mut joined);
    let is_fallback = match joined.events.last() {
        Some(Event::Completed(completed)) => completed.metadata.fallback_reason.is_some(),
        Some(Event::Error(failure)) => return Err(Error::invalid(failure.message.clone())),
        _ => true,
    };
    let text = pipeline
        .rewrite(&joined.events)
        .ok_or_else(|| Error::invalid(format!("replies in {} cannot be written", pipeline.dialect())))?;
    Ok(Repair { text, dialect: pipeline.dialect().to_owned(), is_fallback, findings: joined.findings })
}

/// Leaves only harmless inline HTML in a text, as `tambour sanitize` does. At most `limits.findings` findings
/// are returned.
///
/// # Errors
/// The mode is neither `escape` nor `strip`.
pub fn sanitize_html(text: &str, mode: &str) -> Result<(String, Vec<Finding>)> {
    let mode = match mode {
        "escape" => HtmlMode::Escape,
        "strip" => HtmlMode::Strip,
        _ => return Err(Error::unknown("mode", mode, ["escape", "strip"])),
    };
    let (text, reports) = sanitize(text, mode);
    let findings = reports.into_iter().take(Limits::default().findings);
    Ok((text, findings.map(|report| report.judge(Profile::Lenient)).collect()))
}

/// Contract of a dialect in one of its forms.
#[derive(Clone, Debug, PartialEq)]
pub enum ContractForm {
    /// Instructions, or a grammar.
    Text(String),
    /// A JSON Schema, or a structural tag.
    Json(Value),
}

/// Returns format instructions for a system prompt, a JSON Schema, or a grammar for constrained decoding, as
/// `tambour contract show` does.
///
/// # Errors
/// The dialect or the form is unknown, the dialect has no such form, or its schema makes too large a grammar.
pub fn contract(dialect: &str, format: &str, options: &Options) -> Result<ContractForm> {
    let contract = Contract::Dialect(dialect::find_dialect(dialect)?);
    let form = verdict::ContractForm::from_name(format)?;
    if form == verdict::ContractForm::JsonSchema
        && let Some(schema) = contract.json_schema(options)
    {
        return Ok(ContractForm::Json(schema));
    }
    let text = contract.write(form, options)?;
    if !form.is_json() {
        return Ok(ContractForm::Text(text));
    }
    let value = serde_json::from_str(&text);
    Ok(ContractForm::Json(value.map_err(|error| Error::invalid_json("the structural tag", &text, error))?))
}

/// Creates the pipeline of the next reply of a tool loop, which continues the stream of `pipeline`.
///
/// # Errors
/// The stream does not wait for results, or no dialect has that name.
pub fn next_reply(pipeline: &Pipeline, dialect: &str, options: &Options) -> Result<Pipeline> {
    if pipeline.pending_calls().is_empty() {
        return Err(Error::invalid(
            "the stream waits for no results: only a reply with calls leaves it open, with the option `tool_loop`",
        ));
    }
    pipeline.next_reply(dialect, options)
}

/// Returns the calls, notices, decisions and updates of a reply so far.
#[must_use]
pub fn outcome(pipeline: &Pipeline) -> Outcome {
    let outcome = pipeline.outcome();
    let mut metadata = outcome.metadata.clone();
    if metadata.dialect.is_empty() {
        metadata.dialect = pipeline.dialect().to_owned();
    }
    Outcome {
        metadata,
        calls: outcome.calls.clone(),
        updates: outcome.applied_updates.iter().map(describe_block).collect(),
        assessment: outcome.answer.as_ref().map(|answer| answer.assessment.to_full_value()),
        failure: outcome.failure.clone(),
    }
}
