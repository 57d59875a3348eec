//! Reads the reply of a call while it arrives.

use serde_json::{Map, Value};

use super::answers::{judge_reports, parse_ask, parse_think};
use super::call::{ModelCall, ReplyKind};
use crate::script::{AnswerForm, AnswerKind};
use tambour::dialect;
use tambour::event::{Completed, Event, Extension, Failure, Sink};
use tambour::exit::{ExitRound, RoundAnswer};
use tambour::finding::{Finding, Severity};
use tambour::options::Options;
use tambour::pipeline::{InputEnd, Pipeline};
use tambour::texts::format_count;

/// Reader of one reply. The message of `ai_say` and `ai_ask` streams to the sink, unless an answer of
/// `ai_ask` must be checked first; `ai_think` sends nothing.
pub struct ReplyReader {
    kind: ReplyKind,
    options: Options,
    pipeline: Pipeline,
    /// Text of the reply so far, for kinds that are parsed once the reply has ended; empty for `ai_say`.
    text: String,
    /// True once `text` would exceed `limits.input`.
    is_too_long: bool,
    summary: ReplySummary,
}

/// Outcome of reading a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelReply {
    /// Content of the reply.
    pub content: ReplyContent,
    /// Text shown to the user; empty if the model gave no message.
    pub message: String,
    /// Reason why the reply is not usable as it is, such as `unstructured` or `message_missing`; `None` if it
    /// is usable. The `message` of an unstructured reply is its whole text.
    pub unreadable_reason: Option<String>,
    /// True if a required message is missing: the fallback text went to the sink in its place, and no round
    /// was answered.
    pub is_silent: bool,
    /// True if the user has seen some of the reply, so that it cannot be requested again. Set by the
    /// caller.
    pub is_delivered: bool,
    /// Findings on the reply.
    pub findings: Vec<Finding>,
}

/// Content of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyContent {
    /// Answer of a round of `ai_say`.
    Answer(RoundAnswer),
    /// Value from a round of `ai_ask`, if usable.
    Value(Option<Value>),
    /// Variables from `ai_think`; `None` if the reply is unreadable.
    Thought(Option<Map<String, Value>>),
}

/// Summary of a reply's events.
#[derive(Default)]
struct ReplySummary {
    /// Text that went to the sink as the message, or as its fallback.
    message: String,
    findings: Vec<Finding>,
    failure: Option<Failure>,
    unreadable_reason: Option<String>,
    /// True if the fallback text replaces the message.
    is_silent: bool,
}

impl ReplyReader {
    pub(super) fn new(call: &ModelCall, options: &Options) -> ReplyReader {
        let mut options = options.clone();
        let dialect = match &call.kind {
            ReplyKind::Say { criteria } => {
                let criteria = criteria.clone();
                let max_rounds = call.max_rounds.unwrap_or(call.round);
                options.round = Some(ExitRound { round: call.round, max_rounds, criteria });
                "ai_say"
            }
            // The message is in `response` as in an answer of `ai_say`, and streams in the same way.
            ReplyKind::Ask { .. } => {
                options.round = None;
                // An object without a message counts as an answer too.
                dialect::add_answer_keys(&mut options, &["value", "usable"]);
                "ai_say"
            }
            ReplyKind::Think { .. } => "plain",
        };
        let pipeline = Pipeline::new(dialect, &options).expect("the dialect is in the table");
        let (text, summary) = (String::new(), ReplySummary::default());
        ReplyReader { kind: call.kind.clone(), options, pipeline, text, is_too_long: false, summary }
    }

    /// Enables or disables extension events.
    #[must_use]
    pub fn with_extensions(mut self, enabled: bool) -> ReplyReader {
        self.pipeline = self.pipeline.with_extensions(enabled);
        self
    }

    /// Enables or disables findings as events.
    #[must_use]
    pub fn with_findings(mut self, enabled: bool) -> ReplyReader {
        self.pipeline = self.pipeline.with_findings(enabled);
        self
    }

    /// Sets the token counts for `completed`.
    pub fn set_usage(&mut self, usage: Value) {
        self.pipeline.set_usage(usage);
    }

    /// Reads the next text of the reply.
    pub fn push(&mut self, text: &str, sink: &mut dyn Sink) {
        match self.kind {
            ReplyKind::Say { .. } => {
                self.pipeline.push_str(
                    text,
                    &mut SummarySink { summary: &mut self.summary, sink, dialect_name: None },
                );
            }
            _ if self.text.len() + text.len() > self.options.limits.input => self.is_too_long = true,
            ReplyKind::Ask { .. } => {
                self.text.push_str(text);
                if !self.holds_message() {
                    self.pipeline
                        .push_str(text, &mut AskSink { summary: &mut self.summary, sink, findings: None });
                }
            }
            ReplyKind::Think { .. } => self.text.push_str(text),
        }
    }

    /// Returns true if the message is held until the answer is known to fit: the user should not see a
    /// message that accepts an unfit answer.
    fn holds_message(&self) -> bool {
        matches!(&self.kind, ReplyKind::Ask { form, .. } if form.kind != AnswerKind::Text)
    }

    /// Reads reasoning that the model service sends in a separate field; only `ai_say` has a use for it.
    pub fn push_reasoning(&mut self, text: &str, sink: &mut dyn Sink) {
        if matches!(self.kind, ReplyKind::Say { .. }) {
            self.pipeline.push_reasoning(
                text,
                &mut SummarySink { summary: &mut self.summary, sink, dialect_name: None },
            );
        }
    }

    /// Ends the reply.
    ///
    /// # Errors
    /// The reply failed midway or exceeds `limits.input`; no round was answered (S-065).
    pub fn finish(mut self, end: &InputEnd, sink: &mut dyn Sink) -> Result<ModelReply, Failure> {
        if self.is_too_long {
            let limit = self.options.limits.input;
            let message = format!("the reply is longer than `limits.input`, {}", format_count(limit, "byte"));
            let is_retryable = false;
            return Err(Failure::new("input_too_large", message, is_retryable));
        }
        let is_truncated = end.is_truncated();
        let content = match &self.kind {
            ReplyKind::Say { .. } => {
                self.pipeline
                    .finish(end, &mut SummarySink { summary: &mut self.summary, sink, dialect_name: None });
                let answer = self.pipeline.outcome().answer.clone().unwrap_or_default();
                ReplyContent::Answer(answer)
            }
            ReplyKind::Ask { form, question } => {
                let (form, question) = (form.clone(), question.clone());
                self.finish_ask((&form, &question), end, is_truncated, sink)
            }
            ReplyKind::Think { variables } => {
                if let InputEnd::Failed(failure) = end {
                    return Err(failure.clone());
                }
                let (values, reports) =
                    parse_think(&self.text, is_truncated, variables, &self.options.limits);
                self.summary.findings.extend(judge_reports(reports, self.options.profile));
                if values.is_none() {
                    self.summary.unreadable_reason = Some("unstructured".to_owned());
                }
                ReplyContent::Thought(values)
            }
        };
        let ReplySummary { mut message, findings, failure, unreadable_reason, is_silent } = self.summary;
        if is_silent {
            message.clear();
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(ModelReply {
                content,
                message,
                unreadable_reason,
                is_silent,
                is_delivered: false,
                findings,
            }),
        }
    }

    /// Reads the answer of `ai_ask`, checked against `expected`: the form and the question. Sends the message
    /// if it was held.
    fn finish_ask(
        &mut self,
        expected: (&AnswerForm, &str),
        end: &InputEnd,
        is_truncated: bool,
        sink: &mut dyn Sink,
    ) -> ReplyContent {
        let (mut value, mut unreadable_reason, mut findings) = (None, None, Vec::new());
        if !matches!(end, InputEnd::Failed(_)) {
            let (answer, reports) = parse_ask(&self.text, is_truncated, Some(expected), &self.options);
            findings = judge_reports(reports, self.options.profile);
            unreadable_reason = match &answer {
                None => Some("unstructured".to_owned()),
                // The reply was interrupted before its message.
                Some(answer) if is_truncated && answer.message.is_none() => Some("truncated".to_owned()),
                // The model called its value an answer, but it does not fit the question.
                Some(answer) if answer.is_unfit => Some("answer_unfit".to_owned()),
                Some(_) => None,
            };
            value = answer.and_then(|answer| answer.value);
        }
        let findings = Some(findings);
        if self.holds_message() {
            self.pipeline
                .push_str(&self.text, &mut AskSink { summary: &mut self.summary, sink, findings: None });
        }
        self.pipeline.finish(end, &mut AskSink { summary: &mut self.summary, sink, findings });
        // The reason from the parsed answer replaces the reason from the events. The reason from the events
        // stays only if the parsed answer is usable but the events show that the message is missing.
        if unreadable_reason.is_some() || !self.summary.is_silent {
            self.summary.unreadable_reason = unreadable_reason;
        }
        ReplyContent::Value(value)
    }
}

/// Wraps the caller's sink for the message of an `ai_ask` answer, which the pipeline reads as an answer of
/// `ai_say`: drops the findings and the exit decision of that dialect, and sends the findings on the `ai_ask`
/// answer instead.
struct AskSink<'a> {
    summary: &'a mut ReplySummary,
    sink: &'a mut dyn Sink,
    /// Findings on the answer; `None` before they are known.
    findings: Option<Vec<Finding>>,
}

impl Sink for AskSink<'_> {
    fn event(&mut self, event: Event<'_>) {
        let event = match event {
            Event::Finding(_) => return,
            Event::Extension(extension) if matches!(*extension, Extension::ExitDecision(_)) => return,
            Event::Completed(mut completed) => {
                let findings = self.findings.take().unwrap_or_default();
                let count = |is_counted: fn(&Finding) -> bool| {
                    u32::try_from(findings.iter().filter(|finding| is_counted(finding)).count())
                        .unwrap_or(u32::MAX)
                };
                completed.metadata.repairs = count(|finding| finding.repair.is_some());
                completed.metadata.warnings = count(|finding| finding.severity != Severity::Info);
                for finding in findings {
                    self.summary.findings.push(finding.clone());
                    self.sink.finding(finding);
                }
                Event::Completed(completed)
            }
            other => other,
        };
        SummarySink { summary: self.summary, sink: self.sink, dialect_name: Some("ai_ask") }.event(event);
    }

    fn finding(&mut self, _: Finding) {}
}

/// Wraps the caller's sink and records the summary.
struct SummarySink<'a> {
    summary: &'a mut ReplySummary,
    sink: &'a mut dyn Sink,
    /// Dialect name to write into `completed`, if it is not the name of the pipeline's dialect.
    dialect_name: Option<&'static str>,
}

/// Reasons for which a reply counts as unreadable although it has a message.
const UNREADABLE_REASONS: [&str; 4] = ["unstructured", "parsing_error", "truncated", "example_echo"];

impl Sink for SummarySink<'_> {
    fn event(&mut self, event: Event<'_>) {
        let event = match event {
            Event::FinalDelta { text } => {
                self.summary.message.push_str(&text);
                Event::FinalDelta { text }
            }
            Event::Error(failure) => {
                self.summary.failure = Some(failure.clone());
                Event::Error(failure)
            }
            Event::Completed(completed) => {
                let metadata = &completed.metadata;
                let unused_reason =
                    metadata.unused_reason.as_deref().filter(|reason| UNREADABLE_REASONS.contains(reason));
                // The fallback text means that there is no message, whatever the reason.
                let fallback_reason = metadata.fallback_reason.as_deref();
                self.summary.is_silent = fallback_reason.is_some();
                self.summary.unreadable_reason = fallback_reason.or(unused_reason).map(str::to_owned);
                Event::Completed(Box::new(set_dialect_name(*completed, self.dialect_name)))
            }
            other => other,
        };
        self.sink.event(event);
    }

    fn finding(&mut self, finding: Finding) {
        self.summary.findings.push(finding.clone());
        self.sink.finding(finding);
    }
}

/// Replaces the name of the dialect, if there is a name.
fn set_dialect_name(mut completed: Completed, name: Option<&str>) -> Completed {
    if let Some(name) = name {
        completed.metadata.dialect = name.to_owned();
    }
    completed
}
