//! Reads the reply of a call while it arrives.

use serde_json::{Map, Value};

use super::answers::{asked, judged, thought};
use super::call::{Call, CallKind};
use crate::script::{AnswerForm, AnswerKind};
use tambour::dialect;
use tambour::event::{Completed, Event, Extension, Failure, Sink};
use tambour::exit::{Answer, Round};
use tambour::finding::{Finding, Severity};
use tambour::options::Options;
use tambour::pipeline::{End, Pipeline};
use tambour::texts::counted;

/// Reader of one reply. The message of `ai_say` and of `ai_ask` streams to the sink; for `ai_think`
/// nothing does.
pub struct Reader {
    kind: CallKind,
    options: Options,
    pipeline: Pipeline,
    /// The reply, if it is parsed as a unit.
    text: String,
    over: bool,
    seen: Seen,
}

/// Outcome of reading a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// Content of the reply.
    pub said: Said,
    /// Text shown to the user; empty if the model gave no message.
    pub message: String,
    /// Reason why the reply is not usable as it is, such as `unstructured` or `message_missing`; a message,
    /// if any, is its text.
    pub unreadable: Option<String>,
    /// Set if a required message is missing: the fallback text went to the sink, and no round was answered.
    pub silent: bool,
    /// Set by the caller if the user has seen some of the reply, so that it cannot be requested again.
    pub delivered: bool,
    /// Findings on the reply.
    pub findings: Vec<Finding>,
}

/// Content of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// Answer of a round of `ai_say`.
    Answer(Answer),
    /// Value from a round of `ai_ask`, if usable.
    Value(Option<Value>),
    /// Variables from `ai_think`; `None` if the reply is unreadable.
    Thought(Option<Map<String, Value>>),
}

/// Summary of a reply's events.
#[derive(Default)]
struct Seen {
    message: String,
    findings: Vec<Finding>,
    failure: Option<Failure>,
    unreadable: Option<String>,
    /// Set if the fallback text replaces the message.
    silent: bool,
}

impl Reader {
    pub(super) fn new(call: &Call, options: &Options) -> Reader {
        let mut options = options.clone();
        let dialect = match &call.kind {
            CallKind::Say { criteria } => {
                let criteria = criteria.clone();
                let max_rounds = call.max_rounds.unwrap_or(call.round);
                options.round = Some(Round { round: call.round, max_rounds, criteria });
                "ai_say"
            }
            // The message is in `response` as in an answer of `ai_say`, and streams in the same way.
            CallKind::Ask { .. } => {
                options.round = None;
                // An object without a message counts as an answer too.
                dialect::answers_have(&mut options, &["value", "usable"]);
                "ai_say"
            }
            CallKind::Think { .. } => "plain",
        };
        let pipeline = Pipeline::new(dialect, &options).expect("the dialect is in the table");
        let (text, seen) = (String::new(), Seen::default());
        Reader { kind: call.kind.clone(), options, pipeline, text, over: false, seen }
    }

    /// Enables extension events.
    #[must_use]
    pub fn with_extensions(mut self, on: bool) -> Reader {
        self.pipeline = self.pipeline.with_extensions(on);
        self
    }

    /// Enables findings as events.
    #[must_use]
    pub fn with_findings(mut self, on: bool) -> Reader {
        self.pipeline = self.pipeline.with_findings(on);
        self
    }

    /// Sets the token counts for `completed`.
    pub fn set_usage(&mut self, usage: Value) {
        self.pipeline.set_usage(usage);
    }

    /// Reads the next text of the reply.
    pub fn push(&mut self, text: &str, sink: &mut dyn Sink) {
        match self.kind {
            CallKind::Say { .. } => {
                self.pipeline.push_str(text, &mut Both { seen: &mut self.seen, sink, name: None });
            }
            _ if self.text.len() + text.len() > self.options.limits.input => self.over = true,
            CallKind::Ask { .. } => {
                self.text.push_str(text);
                if !self.waits() {
                    self.pipeline.push_str(text, &mut Message { seen: &mut self.seen, sink, findings: None });
                }
            }
            CallKind::Think { .. } => self.text.push_str(text),
        }
    }

    /// Returns true if the message is held back until the answer is known to fit: the user should not see a
    /// message that accepts an unfit answer.
    fn waits(&self) -> bool {
        matches!(&self.kind, CallKind::Ask { form, .. } if form.kind != AnswerKind::Text)
    }

    /// Reads reasoning from a separate field.
    pub fn reasoning(&mut self, text: &str, sink: &mut dyn Sink) {
        if matches!(self.kind, CallKind::Say { .. }) {
            self.pipeline.reasoning(text, &mut Both { seen: &mut self.seen, sink, name: None });
        }
    }

    /// Sends an event that does not come from the model.
    pub fn insert(&mut self, extension: impl Into<tambour::event::Extension>, sink: &mut dyn Sink) {
        self.pipeline.insert(extension, sink);
    }

    /// Ends the reply.
    ///
    /// # Errors
    /// The reply failed midway: no round was answered (S-065).
    pub fn finish(mut self, end: &End, sink: &mut dyn Sink) -> Result<Reply, Failure> {
        if self.over {
            let limit = self.options.limits.input;
            let message = format!("the reply is longer than `limits.input`, {}", counted(limit, "byte"));
            return Err(Failure::new("input_too_large", message, false));
        }
        let cut = end.cut();
        let said = match &self.kind {
            CallKind::Say { .. } => {
                self.pipeline.finish(end, &mut Both { seen: &mut self.seen, sink, name: None });
                let answer = self.pipeline.outcome().answer.clone().unwrap_or_default();
                Said::Answer(answer)
            }
            CallKind::Ask { form, question } => {
                let (form, question) = (form.clone(), question.clone());
                self.ask((&form, &question), end, cut, sink)
            }
            CallKind::Think { variables } => {
                if let End::Failed(failure) = end {
                    return Err(failure.clone());
                }
                let (values, reports) = thought(&self.text, cut, variables, &self.options.limits);
                self.seen.findings.extend(judged(reports, self.options.profile));
                if values.is_none() {
                    self.seen.unreadable = Some("unstructured".to_owned());
                }
                Said::Thought(values)
            }
        };
        let Seen { mut message, findings, failure, unreadable, silent } = self.seen;
        if silent {
            message.clear();
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Reply { said, message, unreadable, silent, delivered: false, findings }),
        }
    }

    /// Reads the answer of `ai_ask`; its message has been sent, or is sent now.
    fn ask(&mut self, wanted: (&AnswerForm, &str), end: &End, cut: bool, sink: &mut dyn Sink) -> Said {
        let (mut value, mut because, mut findings) = (None, None, Vec::new());
        if !matches!(end, End::Failed(_)) {
            let (asked, reports) = asked(&self.text, cut, Some(wanted), &self.options);
            findings = judged(reports, self.options.profile);
            because = match &asked {
                None => Some("unstructured".to_owned()),
                // The reply was interrupted before its message.
                Some(asked) if cut && asked.message.is_none() => Some("truncated".to_owned()),
                // The model called it an answer.
                Some(asked) if asked.unfit => Some("answer_unfit".to_owned()),
                Some(_) => None,
            };
            value = asked.and_then(|asked| asked.value);
        }
        let findings = Some(findings);
        if self.waits() {
            self.pipeline.push_str(&self.text, &mut Message { seen: &mut self.seen, sink, findings: None });
        }
        self.pipeline.finish(end, &mut Message { seen: &mut self.seen, sink, findings });
        // Only the parsed text shows that it is an answer; the events show if it has a message.
        if because.is_some() || !self.seen.silent {
            self.seen.unreadable = because;
        }
        Said::Value(value)
    }
}

/// Wraps the caller's sink for the message of an `ai_ask` answer: drops findings on it as an answer of
/// `ai_say`.
struct Message<'a> {
    seen: &'a mut Seen,
    sink: &'a mut dyn Sink,
    /// Findings on the answer, once they are known.
    findings: Option<Vec<Finding>>,
}

impl Sink for Message<'_> {
    fn event(&mut self, event: Event<'_>) {
        let event = match event {
            Event::Finding(_) => return,
            Event::Extension(extension) if matches!(*extension, Extension::ExitDecision(_)) => return,
            Event::Completed(mut completed) => {
                let findings = self.findings.take().unwrap_or_default();
                let count = |fits: fn(&Finding) -> bool| {
                    u32::try_from(findings.iter().filter(|finding| fits(finding)).count()).unwrap_or(u32::MAX)
                };
                completed.metadata.repairs = count(|finding| finding.repair.is_some());
                completed.metadata.warnings = count(|finding| finding.severity != Severity::Info);
                for finding in findings {
                    self.seen.findings.push(finding.clone());
                    self.sink.finding(finding);
                }
                Event::Completed(completed)
            }
            other => other,
        };
        Both { seen: self.seen, sink: self.sink, name: Some("ai_ask") }.event(event);
    }

    fn finding(&mut self, _: Finding) {}
}

/// Wraps the caller's sink and records the summary.
struct Both<'a> {
    seen: &'a mut Seen,
    sink: &'a mut dyn Sink,
    /// Dialect name for `completed`, if it is not in the table of dialects.
    name: Option<&'static str>,
}

/// Reasons for which a reply with a message counts as unreadable.
const UNREADABLE: [&str; 4] = ["unstructured", "parsing_error", "truncated", "example_echo"];

impl Sink for Both<'_> {
    fn event(&mut self, event: Event<'_>) {
        let event = match event {
            Event::FinalDelta { text } => {
                self.seen.message.push_str(&text);
                Event::FinalDelta { text }
            }
            Event::Error(failure) => {
                self.seen.failure = Some(failure.clone());
                Event::Error(failure)
            }
            Event::Completed(completed) => {
                let metadata = &completed.metadata;
                let unused = metadata.unused_reason.as_deref().filter(|reason| UNREADABLE.contains(reason));
                // If the fallback text replaces it there is no message, whatever the reason.
                let missing = metadata.fallback_reason.as_deref();
                self.seen.silent = missing.is_some();
                self.seen.unreadable = missing.or(unused).map(str::to_owned);
                Event::Completed(Box::new(named(*completed, self.name)))
            }
            other => other,
        };
        self.sink.event(event);
    }

    fn finding(&mut self, finding: Finding) {
        self.seen.findings.push(finding.clone());
        self.sink.finding(finding);
    }
}

fn named(mut completed: Completed, name: Option<&str>) -> Completed {
    if let Some(name) = name {
        completed.metadata.dialect = name.to_owned();
    }
    completed
}
