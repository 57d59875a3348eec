//! Judgement of one reply: the check of `tambour check`, and what the server would make of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tambour::dialect::{self, DialectEntry};
use tambour::event::{FinishReason, ReplyAppraisal, ReplyWorth};
use tambour::verdict::{Contract, Verdict};
use tambour::{Event, Finding, InputEnd, Options, Pipeline, Profile, Sink};
use tambour_server::upstream::{Constrain, Constraint, ConstraintForms, reply_worth};

use super::file::ContractSection;
use super::lines::MAX_REPLY_BYTES;
use super::reply::ReplyRecord;
use crate::args;

/// Contract of the replies of one dialect.
pub(super) struct ReplyContract {
    pub(super) entry: &'static DialectEntry,
    /// Options under which a reply is read, as the server reads it.
    pub(super) reading: Options,
    /// Options under which a reply is checked as written.
    raw: Options,
    /// Contract to send along, if replies are to be constrained.
    pub(super) constraint: Option<Constraint>,
}

/// Judgement of a reply.
pub(super) struct Judgement {
    /// Result of the check as written, the same as that of `tambour check`.
    pub(super) verdict: Verdict,
    /// Usefulness of the reply after its repairs.
    pub(super) worth: ReplyWorth,
    /// True if the reply is usable and had the structure of its dialect, so that none of it had to be made up.
    pub(super) is_structured: bool,
    /// True if there is no answer in the requested format: the reply failed, the fallback text replaced it, or
    /// its text was kept without its format.
    pub(super) is_fallback: bool,
    /// Number of repairs.
    pub(super) repairs: u32,
    /// Findings of the reading.
    pub(super) findings: Vec<Finding>,
}

/// Codes of the findings that say, by dialect, that a usable reply lacked its structure. Their repairs make it
/// up, or read the text without it. Other dialects have no such repairs.
const STRUCTURE_FAULTS: &[(&str, &[&str])] = &[
    ("thinkingml", &["thinking_missing", "phase_missing", "final_missing"]),
    ("jsonseq", &["events_missing", "thinking_start_missing", "phase_missing", "final_delta_missing"]),
    ("ai_say", &["field_missing", "message_missing"]),
    ("filament", &["head_missing", "tag_missing", "content_missing"]),
    ("toolcall", &["tool_call_incomplete"]),
];

impl ReplyContract {
    /// Builds the contract of a dialect. `overrides` are options of an alias; `shows_example` is true if the
    /// model sees the example of the format instructions.
    ///
    /// # Errors
    /// There is no such dialect, an option is unknown or has an invalid value, or a file cannot be read.
    pub(super) fn new(
        dialect: &str,
        section: &ContractSection,
        folder: &Path,
        overrides: &BTreeMap<String, Value>,
        shows_example: bool,
    ) -> Result<ReplyContract> {
        let entry = dialect::find_dialect(dialect).context("`contract.dialect`")?;
        let mut options = Options::default();
        options.profile = Profile::Lenient;
        for (name, value) in section.options.iter().chain(overrides) {
            args::set_option(&mut options, name, value.clone()).context("`contract.options`")?;
        }
        if options.limits.input > MAX_REPLY_BYTES {
            bail!("`contract.options`: `limits.input` is at most {MAX_REPLY_BYTES} in an evaluation");
        }
        if let Some(file) = &section.tools {
            options.tools = Some(args::read_tools(&folder.join(file))?);
        }
        if let Some(file) = &section.structure {
            if dialect == "filament" {
                options.set("filament.structure", args::read_yaml(&folder.join(file))?)?;
            } else if section.dialects.len() < 2 {
                bail!("`contract.structure` says which tags a reply of `filament` has, not of `{dialect}`");
            }
        }
        options.has_own_examples |= shows_example;
        let mut raw = options.clone();
        if section.profile.as_deref() != Some("lenient") {
            raw.profile = Profile::Strict;
        }
        Ok(ReplyContract { entry, reading: options, raw, constraint: None })
    }

    /// Adds the contract to send along.
    ///
    /// # Errors
    /// Replies must be constrained, but the contract has no form or cannot be written.
    pub(super) fn add_forms(&mut self, constrain: Constrain) -> Result<()> {
        if constrain == Constrain::Off {
            return Ok(());
        }
        let is_required = constrain == Constrain::Required;
        let name = self.entry.name;
        let forms = match ConstraintForms::of_contract(self.entry, &self.reading) {
            Err(error) if is_required => {
                return Err(error).with_context(|| format!("`constrain`: the contract of `{name}`"));
            }
            Ok(None) if is_required => {
                bail!("`constrain`: `{name}` has no form that a server could be given")
            }
            forms => forms.ok().flatten(),
        };
        self.constraint =
            forms.map(|forms| Constraint { is_required, forms: Arc::new(forms), replaces_format: false });
        Ok(())
    }

    /// Judges a reply.
    pub(super) fn judge(&self, record: &ReplyRecord) -> Judgement {
        let text = record.text();
        let verdict = Contract::Dialect(self.entry).check(text.as_bytes(), &self.raw);
        let mut reading = Reading::default();
        let pipeline = Pipeline::new(self.entry.name, &self.reading).expect("the entry is one of the table");
        // Calls are extension events.
        let mut pipeline = pipeline.with_extensions(true);
        if !record.reasoning.is_empty() {
            pipeline.push_reasoning(&record.reasoning, &mut reading);
        }
        pipeline.push_str(&text, &mut reading);
        for call in &record.calls {
            pipeline.push_call(&call.name, &call.arguments, &mut reading);
        }
        let end = record.end();
        pipeline.finish(&end, &mut reading);
        let worth = reply_worth(&reading.appraisal, &end);
        let entry = STRUCTURE_FAULTS.iter().find(|(dialect, _)| *dialect == pipeline.dialect());
        let fault_codes = entry.map_or(&[][..], |(_, codes)| codes);
        let has_fault = reading.findings.iter().any(|finding| fault_codes.contains(&&*finding.code));
        let is_structured = worth == ReplyWorth::Usable && !has_fault;
        Judgement {
            verdict,
            worth,
            is_structured,
            is_fallback: !reading.has_answer,
            repairs: reading.repairs,
            findings: reading.findings,
        }
    }
}

impl Judgement {
    /// Returns `true` if the model is asked again: the reply is complete and not usable.
    pub(super) fn needs_reask(&self, end: &InputEnd) -> bool {
        let is_complete = matches!(end, InputEnd::Finished(FinishReason::Stop | FinishReason::ToolCalls));
        is_complete && self.worth < ReplyWorth::Usable
    }
}

/// Sink that rates a reply.
#[derive(Default)]
struct Reading {
    appraisal: ReplyAppraisal,
    /// True if the reply ended with an answer in the requested format.
    has_answer: bool,
    repairs: u32,
    findings: Vec<Finding>,
}

impl Sink for Reading {
    fn event(&mut self, event: Event<'_>) {
        self.appraisal.observe_event(&event);
        if let Event::Completed(completed) = &event {
            let metadata = &completed.metadata;
            self.has_answer = metadata.fallback_reason.is_none() && metadata.unused_reason.is_none();
            self.repairs = metadata.repairs;
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.appraisal.observe_finding(&finding);
        self.findings.push(finding);
    }
}
