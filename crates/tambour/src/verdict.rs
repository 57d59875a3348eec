//! Checks of one whole text: a reply against the contract of its dialect, or a transcript of a stream against
//! the contract of events.
//!
//! Reading files and showing findings do not belong here.

#[cfg(feature = "markdown")]
mod examples;
mod form;

use crate::contract::{self, StreamCheckOptions};
use crate::dialect::{self, DIALECTS, DialectEntry};
use crate::error::{Error, Result};
use crate::event::{Event, Sink};
use crate::finding::{Finding, Severity};
use crate::grammar::Grammar;
use crate::options::Options;
use crate::pipeline::{INPUT_TOO_LARGE, InputEnd, Pipeline};
use crate::policy;

pub use form::ContractForm;

/// Contract that a text is checked against.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Contract {
    /// Replies of a model in one dialect.
    Dialect(&'static DialectEntry),
    /// Events as a client receives them: an SSE transcript, JSON Lines or a JSON array.
    Events,
}

/// Result of checking a text against a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Name of the contract; in place of `auto`, that of the detected dialect.
    pub contract: &'static str,
    /// Findings in the order of the text.
    pub findings: Vec<Finding>,
}

/// Name of the contract of events.
const EVENTS: &str = "events";

impl Contract {
    /// Contract called `name`: a dialect, or `events`.
    ///
    /// # Errors
    /// No contract has that name.
    pub fn from_name(name: &str) -> Result<Contract> {
        if name == EVENTS {
            return Ok(Contract::Events);
        }
        match dialect::find_dialect(name) {
            Ok(entry) => Ok(Contract::Dialect(entry)),
            Err(_) => Err(Error::unknown("contract", name, Contract::names())),
        }
    }

    /// Names of all contracts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DIALECTS.iter().map(|entry| entry.name).chain([EVENTS])
    }

    /// Public name, accepted by [`Contract::from_name`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Contract::Dialect(entry) => entry.name,
            Contract::Events => EVENTS,
        }
    }

    /// Builds the grammar of the replies under these options, for constrained decoding; `None` if the contract
    /// has none.
    ///
    /// # Errors
    /// A schema is one that a grammar cannot follow, or the grammar would be too large.
    pub fn grammar(self, options: &Options) -> Result<Option<Grammar>> {
        match self {
            Contract::Dialect(entry) => policy::grammar(entry, options).transpose(),
            Contract::Events => Ok(None),
        }
    }

    /// Checks a whole text against the contract under `options.profile`.
    ///
    /// ```
    /// use tambour::{Options, Profile, verdict::Contract};
    ///
    /// let mut options = Options::default();
    /// options.profile = Profile::Strict;
    /// let verdict = Contract::from_name("thinkingml")?.check(b"<final>\nHi.\n</final>", &options);
    /// assert!(!verdict.passed());
    /// assert!(verdict.findings.iter().any(|finding| finding.code == "thinking_missing"));
    /// # Ok::<(), tambour::Error>(())
    /// ```
    #[must_use]
    pub fn check(self, text: &[u8], options: &Options) -> Verdict {
        // Findings may arrive out of the order of the text, so all are collected and the first is chosen
        // below.
        let options_for_all_findings = Options { first_only: false, ..options.clone() };
        let mut verdict = match self {
            Contract::Dialect(entry) => check_reply(entry, text, &options_for_all_findings),
            Contract::Events => check_transcript(text, options_for_all_findings),
        };
        verdict.findings.sort_by_key(|finding| finding.span.start);
        if options.first_only {
            let first = verdict.first_error().or(verdict.findings.first()).cloned();
            verdict.findings = first.into_iter().collect();
        }
        verdict
    }
}

impl Verdict {
    /// Returns whether no finding is an error.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.first_error().is_none()
    }

    /// First error, which decides the verdict.
    #[must_use]
    pub fn first_error(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.severity == Severity::Error)
    }
}

fn check_reply(entry: &'static DialectEntry, text: &[u8], options: &Options) -> Verdict {
    let mut pipeline = Pipeline::new(entry.name, options).expect("the entry is one of the table");
    let mut collector = FindingCollector::default();
    pipeline.push(text, &mut collector);
    pipeline.finish(&InputEnd::stop(), &mut collector);
    let mut findings = collector.findings;
    // The pipeline stops at the limit; the whole text is known here, so the finding spans to its end.
    if let Some(size_finding) = findings.iter_mut().find(|finding| finding.code == INPUT_TOO_LARGE.code) {
        size_finding.span.end = text.len();
    }
    Verdict { contract: pipeline.dialect(), findings }
}

fn check_transcript(text: &[u8], options: Options) -> Verdict {
    let check_options = StreamCheckOptions { options, ..StreamCheckOptions::default() };
    Verdict { contract: EVENTS, findings: contract::check_transcript(text, check_options) }
}

/// Sink that collects findings and ignores events.
#[derive(Default)]
struct FindingCollector {
    findings: Vec<Finding>,
}

impl Sink for FindingCollector {
    fn event(&mut self, _: Event<'_>) {}

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}
