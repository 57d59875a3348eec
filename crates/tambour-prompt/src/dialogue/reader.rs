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

/// A reader of one reply. The message of `ai_say` and of `ai_ask` goes to the sink while it arrives; of `ai_think`
/// nothing does.
pub struct Reader {
    kind: CallKind,
    options: Options,
    pipeline: Pipeline,
    /// The reply, where it is read whole.
    text: String,
    over: bool,
    seen: Seen,
}

/// What a reply came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// What the model answered.
    pub said: Said,
    /// What the user sees; empty where the model gave no message.
    pub message: String,
    /// Why it could not be used as it is, such as `unstructured` or `message_missing`; if there is a message, it is the text.
    pub unreadable: Option<String>,
    /// Tells that it has no message, where it should have one: the fallback text went to the sink, and no round was
    /// answered.
    pub silent: bool,
    /// Whether the user has seen some of it already, so that it cannot be asked for again. Set by the caller.
    pub delivered: bool,
    /// What was wrong with it.
    pub findings: Vec<Finding>,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Said {
    /// In a round of `ai_say`.
    Answer(Answer),
    /// In a round of `ai_ask`: the value, if it can be used.
    Value(Option<Value>),
    /// For `ai_think`: the variables; `None` if the reply could not be read.
    Thought(Option<Map<String, Value>>),
}

/// What of the events is kept.
#[derive(Default)]
struct Seen {
    message: String,
    findings: Vec<Finding>,
    failure: Option<Failure>,
    unreadable: Option<String>,
    /// Tells that the fallback text stands for the message.
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
            // The message stands in `response` as in an answer of `ai_say`, and streams out of it in the same way.
            CallKind::Ask { .. } => {
                options.round = None;
                // One without a message is an answer all the same.
                dialect::answers_have(&mut options, &["value", "usable"]);
                "ai_say"
            }
            CallKind::Think { .. } => "plain",
        };
        let pipeline = Pipeline::new(dialect, &options).expect("the dialect is in the table");
        let (text, seen) = (String::new(), Seen::default());
        Reader { kind: call.kind.clone(), options, pipeline, text, over: false, seen }
    }

    /// Sends extension events too.
    #[must_use]
    pub fn with_extensions(mut self, on: bool) -> Reader {
        self.pipeline = self.pipeline.with_extensions(on);
        self
    }

    /// Sends findings as events too.
    #[must_use]
    pub fn with_findings(mut self, on: bool) -> Reader {
        self.pipeline = self.pipeline.with_findings(on);
        self
    }

    /// Token counts for `completed`.
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

    /// Tells whether the message waits until the answer is known to fit: a message that takes an answer which does not is none that
    /// the user should see.
    fn waits(&self) -> bool {
        matches!(&self.kind, CallKind::Ask { form, .. } if form.kind != AnswerKind::Text)
    }

    /// Reads reasoning that comes in a field of its own.
    pub fn reasoning(&mut self, text: &str, sink: &mut dyn Sink) {
        if matches!(self.kind, CallKind::Say { .. }) {
            self.pipeline.reasoning(text, &mut Both { seen: &mut self.seen, sink, name: None });
        }
    }

    /// Sends what does not come from the model.
    pub fn insert(&mut self, extension: impl Into<tambour::event::Extension>, sink: &mut dyn Sink) {
        self.pipeline.insert(extension, sink);
    }

    /// Ends the reply.
    ///
    /// # Errors
    /// It has failed on the way: no round was answered (S-065).
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

    /// The answer of `ai_ask`: its message has gone out, or does now.
    fn ask(&mut self, wanted: (&AnswerForm, &str), end: &End, cut: bool, sink: &mut dyn Sink) -> Said {
        let (mut value, mut because, mut findings) = (None, None, Vec::new());
        if !matches!(end, End::Failed(_)) {
            let (asked, reports) = asked(&self.text, cut, Some(wanted), &self.options);
            findings = judged(reports, self.options.profile);
            because = match &asked {
                None => Some("unstructured".to_owned()),
                // It broke off before it said anything.
                Some(asked) if cut && asked.message.is_none() => Some("truncated".to_owned()),
                // It was told to be an answer.
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
        // Only here is it known to be an answer; a message is known by what was sent.
        if because.is_some() || !self.seen.silent {
            self.seen.unreadable = because;
        }
        Said::Value(value)
    }
}

/// The caller's sink, for the message in an answer of `ai_ask`: what is wrong with it as an answer of `ai_say` is not told.
struct Message<'a> {
    seen: &'a mut Seen,
    sink: &'a mut dyn Sink,
    /// What is wrong with it, once it is known.
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

/// The caller's sink, and what is kept.
struct Both<'a> {
    seen: &'a mut Seen,
    sink: &'a mut dyn Sink,
    /// What `completed` calls the dialect, where it is none of the table.
    name: Option<&'static str>,
}

/// Reasons for which a reply with a message counts as not readable.
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
                // There is no message where the fallback text stands for it, whatever the reason.
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
