//! Checks of one whole text: a reply against the contract of its dialect, or a transcript of a stream against
//! the contract of events.
//!
//! Reading files and showing findings do not belong here.

use std::borrow::Cow;

use crate::contract::{self, FencedExample, StreamCheckOptions};
use crate::dialect::{self, DIALECTS, DialectEntry, ExampleStyle};
use crate::error::{Error, Result};
use crate::event::{Event, Sink};
use crate::finding::{Finding, Severity};
use crate::options::Options;
use crate::pipeline::{INPUT_TOO_LARGE, InputEnd, Pipeline};

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

/// Form of transcripts in Markdown documents: a fenced block whose fence is not part of the transcript.
const TRANSCRIPT_EXAMPLES: ExampleStyle =
    ExampleStyle { languages: &["sse", "jsonl", "ndjson"], includes_fence: false };

/// Fence languages that several dialects share.
const SHARED_LANGUAGES: &[&str] = &["xml", "html", "json"];

/// Dialect that any text matches.
const PLAIN: &str = "plain";
/// Dialect that any JSON matches.
const JSON_VALUE: &str = "json_value";

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

    /// The public name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Contract::Dialect(entry) => entry.name,
            Contract::Events => EVENTS,
        }
    }

    /// Returns whether a fenced block of a Markdown document is an example for this contract: its language
    /// names this dialect only, or its language is missing or shared by several dialects and its text is
    /// detected as this one (P-037).
    #[doc(hidden)]
    #[must_use]
    pub fn matches_example(self, example: &FencedExample<'_>) -> bool {
        let entry = match self {
            Contract::Events => return TRANSCRIPT_EXAMPLES.languages.contains(&example.language.as_str()),
            Contract::Dialect(entry) => entry,
        };
        let language = example.language.as_str();
        let lists_language = |entry: &DialectEntry| entry.examples.languages.contains(&language);
        let is_shared = SHARED_LANGUAGES.contains(&language);
        if lists_language(entry) && !is_shared {
            return true;
        }
        let detected = dialect::detect(&example.text);
        let is_distinct = detected.name != PLAIN && detected.name != dialect::AUTO;
        if lists_language(entry) {
            // A shared fence language decides nothing if the text is detected as another dialect, except that
            // any JSON is a `json_value`.
            return !is_distinct || detected.name == entry.name || entry.name == JSON_VALUE;
        }
        let is_unlabelled = is_shared || matches!(language, "" | "text" | "txt");
        if entry.name == dialect::AUTO {
            // Any text is `plain`, so only dialects with a distinct format have examples.
            return lists_language(detected) || (is_unlabelled && !detected.examples.languages.is_empty());
        }
        is_unlabelled && detected.name == entry.name
    }

    /// Checks a fenced block against the contract; findings have the places of its document.
    #[doc(hidden)]
    #[must_use]
    pub fn check_example(self, example: &FencedExample<'_>, options: &Options) -> Verdict {
        let includes_fence = match self {
            Contract::Dialect(entry) if entry.name == dialect::AUTO => {
                dialect::detect(&example.text).examples.includes_fence
            }
            Contract::Dialect(entry) => entry.examples.includes_fence,
            Contract::Events => TRANSCRIPT_EXAMPLES.includes_fence,
        };
        let example =
            if includes_fence { Cow::Owned(example.clone().with_fence()) } else { Cow::Borrowed(example) };
        let mut verdict = self.check(example.text.as_bytes(), options);
        let findings = std::mem::take(&mut verdict.findings);
        verdict.findings = findings.into_iter().map(|finding| example.relocate(finding)).collect();
        verdict
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
        let all_options = Options { first_only: false, ..options.clone() };
        let mut verdict = match self {
            Contract::Dialect(entry) => check_reply(entry, text, &all_options),
            Contract::Events => check_transcript(text, all_options),
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
