//! From a reply to events: `push` bytes, then `finish`.
//!
//! ```
//! use tambour::{End, Options, Pipeline, event::Collected};
//!
//! let mut events = Collected::default();
//! let mut pipeline = Pipeline::new("plain", &Options::default())?;
//! pipeline.push(b"<think>2 + 2</think>It is ", &mut events);
//! pipeline.push(b"4.", &mut events);
//! pipeline.finish(&End::stop(), &mut events);
//! assert_eq!(events.joined()[4].data()["text"], "It is 4.");
//! # Ok::<(), tambour::Error>(())
//! ```

mod outcome;
mod received;
mod reporter;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::dialect::{self, Action, Dialect, Ending, Intent, Output, Written};
use crate::error::Result;
use crate::event::{Completed, Event, EventKind, Extension, Failure, FinishReason, Metadata, Sink, ToolCall};
use crate::finding::{Report, rules};
use crate::lex::utf8::Utf8;
use crate::options::Options;
use crate::policy::Policy;
use crate::sequence::Sequencer;
use crate::span::Place;

pub use outcome::Outcome;
use reporter::Reporter;

/// How the input ended (X-014).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The model gave a reason, or the user cancelled.
    Finished(FinishReason),
    /// The stream ended cleanly without a reason: the reply counts as cut.
    Unknown,
    /// The connection broke, or an error came in the stream.
    Failed(Failure),
}

impl End {
    /// The model was done.
    #[must_use]
    pub fn stop() -> End {
        End::Finished(FinishReason::Stop)
    }

    fn cut(&self) -> bool {
        !matches!(self, End::Finished(FinishReason::Stop | FinishReason::ToolCalls))
    }
}

/// Reads one reply. See the [module](self) for an example.
pub struct Pipeline {
    utf8: Utf8,
    dialect: Box<dyn Dialect>,
    state: State,
    /// `limits.input`, and how many bytes of it may still come.
    limit: usize,
    room: usize,
    ended: bool,
    /// Token counts for `completed`, as the upstream gave them.
    usage: Value,
}

/// Everything behind the dialect.
struct State {
    policy: Policy,
    sequencer: Sequencer,
    reporter: Reporter,
    extensions: bool,
    findings: bool,
    /// Why the reply is not what was asked for.
    unused: Option<&'static str>,
    outcome: Outcome,
    /// Whether what calls tools leaves the stream open, for their results, and whether it has.
    looping: bool,
    waiting: bool,
}

impl State {
    /// What is known whole, of the reply or from elsewhere.
    fn extension(&mut self, extension: Extension, sink: &mut dyn Sink) {
        let State { sequencer, extensions, outcome, .. } = self;
        sequencer.extension(extension, &mut |event| {
            outcome.observe(&event);
            if *extensions || event.kind() != EventKind::Extension {
                sink.event(event);
            }
        });
    }

    /// An end of the stream.
    fn send(&mut self, event: Event<'_>, sink: &mut dyn Sink) {
        self.outcome.observe(&event);
        sink.event(event);
    }
}

impl Pipeline {
    /// A reader of the dialect called `dialect`.
    ///
    /// # Errors
    /// No dialect has that name.
    pub fn new(dialect: &str, options: &Options) -> Result<Pipeline> {
        let entry = dialect::entry(dialect)?;
        let options = &Arc::new(options.clone());
        Ok(Pipeline {
            utf8: Utf8::default(),
            dialect: (entry.reader)(options),
            state: State {
                policy: Policy::new(options),
                sequencer: Sequencer::new(options),
                reporter: Reporter::new(options),
                extensions: false,
                findings: false,
                unused: None,
                outcome: Outcome::default(),
                looping: options.tool_loop,
                waiting: false,
            },
            limit: options.limits.input,
            room: options.limits.input,
            ended: false,
            usage: Value::Null,
        })
    }

    /// Sends extension events too (X-010); off by default.
    #[must_use]
    pub fn extensions(mut self, on: bool) -> Pipeline {
        self.state.extensions = on;
        self
    }

    /// Sends findings as `finding` events too; off by default.
    #[must_use]
    pub fn findings(mut self, on: bool) -> Pipeline {
        self.state.findings = on;
        self
    }

    /// Token counts for `completed.usage`; `null` when not given.
    pub fn set_usage(&mut self, usage: Value) {
        self.usage = usage;
    }

    /// Reads the next bytes of the reply, cut anywhere.
    #[inline]
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn Sink) {
        if self.ended {
            return;
        }
        if chunk.len() > self.room {
            let chunk = &chunk[..self.room];
            self.read(chunk, sink);
            // The limit may cut a character in two.
            self.utf8.forget();
            self.over_limit(sink);
            return;
        }
        self.room -= chunk.len();
        self.read(chunk, sink);
    }

    /// Reads the next text of the reply, cut anywhere between characters.
    #[inline]
    pub fn push_str(&mut self, chunk: &str, sink: &mut dyn Sink) {
        if self.ended || self.utf8.held() > 0 || chunk.len() > self.room {
            return self.push(chunk.as_bytes(), sink);
        }
        self.room -= chunk.len();
        self.state.reporter.received.text(chunk);
        self.dialect.text(chunk, &mut Wire { state: &mut self.state, sink });
    }

    #[inline]
    fn read(&mut self, chunk: &[u8], sink: &mut dyn Sink) {
        let Pipeline { utf8, dialect, state, .. } = self;
        utf8.push(chunk, &mut |text, bad| decoded(dialect.as_mut(), state, sink, text, bad));
    }

    /// Reports reasoning that came in a field of its own, beside the reply (X-012).
    pub fn reasoning(&mut self, text: &str, sink: &mut dyn Sink) {
        if !self.ended {
            self.dialect.reasoning(text, &mut Wire { state: &mut self.state, sink });
        }
    }

    /// Ends the reply. Calling it again does nothing. In a tool loop ([`Options::tool_loop`]) a reply with calls leaves
    /// the stream open: [`Pipeline::calls`] are to be run, and a [`Pipeline::successor`] reads the next reply.
    pub fn finish(&mut self, end: &End, sink: &mut dyn Sink) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let Pipeline { utf8, dialect, state, .. } = self;
        utf8.finish(&mut |text, bad| decoded(dialect.as_mut(), state, sink, text, bad));
        let cut = end.cut();
        let failed = matches!(end, End::Failed(_));
        dialect.finish(Ending { cut, failed }, &mut Wire { state, sink });
        // What was cut or has failed acts no more (R-68).
        state.waiting = state.looping && !cut && !state.outcome.calls.is_empty();
        if !state.waiting {
            self.close(end, sink);
        }
    }

    /// The events that end a stream.
    fn close(&mut self, end: &End, sink: &mut dyn Sink) {
        let state = &mut self.state;
        state.reporter.finish(sink, state.findings);
        if let End::Failed(failure) = end {
            if state.sequencer.begun() {
                state.sequencer.finish(&mut |event| sink.event(event));
            }
            state.send(Event::Error(failure.clone()), sink);
            return;
        }
        let truncated = end.cut();
        let replaced = state.sequencer.finish(&mut |event| sink.event(event));
        let missing = if truncated { "truncated" } else { "answer_missing" };
        // A reason without a replaced answer says why text that stayed is not what was asked for.
        let (fallback_reason, unused_reason) =
            if replaced { (state.unused.or(Some(missing)), None) } else { (None, state.unused) };
        let finish_reason = match end {
            End::Finished(reason) => *reason,
            End::Unknown | End::Failed(_) => FinishReason::Length,
        };
        let Metadata { notices, exit_decision, .. } = std::mem::take(&mut state.outcome.metadata);
        let completed = Event::Completed(Box::new(Completed {
            usage: self.usage.take(),
            finish_reason,
            metadata: Metadata {
                dialect: self.dialect.name().to_owned(),
                repairs: state.reporter.repairs,
                warnings: state.reporter.warnings,
                reasks: 0,
                fallback_reason: fallback_reason.map(Cow::Borrowed),
                unused_reason: unused_reason.map(Cow::Borrowed),
                truncated,
                notices,
                exit_decision,
            },
            reply: None,
        }));
        state.send(completed, sink);
    }

    /// The calls that a reply of a tool loop waits for, after [`Pipeline::finish`]. Empty when the stream is over.
    #[must_use]
    pub fn calls(&self) -> &[ToolCall] {
        if self.state.waiting { &self.state.outcome.calls } else { &[] }
    }

    /// What the reply came to, so far.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.state.outcome
    }

    /// Ends a stream that [`Pipeline::finish`] left open for its calls and that no further reply goes on with: they were
    /// cancelled, or must not run. Otherwise it does nothing.
    pub fn end(&mut self, end: &End, sink: &mut dyn Sink) {
        if std::mem::take(&mut self.state.waiting) {
            self.close(end, sink);
        }
    }

    /// Sends what comes from elsewhere, such as the result of a tool. It cannot break the grammar (X-001).
    pub fn extension(&mut self, extension: impl Into<Extension>, sink: &mut dyn Sink) {
        self.state.extension(extension.into(), sink);
    }

    /// A reader of the next reply of a tool loop, which goes on with the same stream (X-004).
    ///
    /// # Errors
    /// No dialect has that name.
    pub fn successor(&self, dialect: &str, options: &Options) -> Result<Pipeline> {
        let mut next = Pipeline::new(dialect, options)?;
        let before = &self.state;
        next.state.extensions = before.extensions;
        next.state.findings = before.findings;
        next.state.sequencer = before.sequencer.clone();
        next.state.sequencer.next_reply();
        next.state.reporter.go_on(&before.reporter);
        next.state.policy.follow(&before.policy);
        next.state.outcome.go_on(&before.outcome);
        Ok(next)
    }

    fn over_limit(&mut self, sink: &mut dyn Sink) {
        let failure = Failure {
            code: "input_too_large".into(),
            message: format!("the reply is longer than `limits.input`, {} bytes", self.limit),
            retryable: false,
        };
        let place = self.dialect.place();
        let report = Report::new(INPUT_TOO_LARGE, place, place.offset, &*failure.message);
        Wire { state: &mut self.state, sink }.report(report);
        self.finish(&End::Failed(failure), sink);
    }

    /// Bytes of text that have arrived and not been sent, without what is delivered whole (X-007).
    #[must_use]
    pub fn held(&self) -> usize {
        self.utf8.held() + self.dialect.held() + self.state.sequencer.held()
    }

    /// The reply as it should have been written, after [`Pipeline::finish`]: from its `events` and what the dialect keeps
    /// beside them. `None` when replies in the dialect cannot be written.
    #[must_use]
    pub fn written(&self, events: &[Event<'_>]) -> Option<String> {
        let entry = || dialect::entry(self.dialect.name()).ok()?.write;
        self.dialect.write(events).or_else(|| Some(entry()?(events)))
    }

    /// The dialect the reply is read as; `auto` until it has decided.
    #[must_use]
    pub fn dialect(&self) -> &'static str {
        self.dialect.name()
    }
}

/// A piece of decoded text on its way to the dialect.
#[inline]
fn decoded(
    dialect: &mut dyn Dialect,
    state: &mut State,
    sink: &mut dyn Sink,
    text: &str,
    bad: Option<usize>,
) {
    let wire = &mut Wire { state, sink };
    if let Some(len) = bad {
        let place = dialect.place();
        let message = "these bytes are not UTF-8";
        let report = Report::new(NOT_UTF8, place, place.offset + text.len(), message);
        wire.state.reporter.received.bad(len);
        wire.report(report.repaired("replaced by U+FFFD"));
    } else {
        wire.state.reporter.received.text(text);
    }
    dialect.text(text, wire);
}

/// The path from a dialect to the sink: policy, sequencer, findings.
struct Wire<'a> {
    state: &'a mut State,
    sink: &'a mut dyn Sink,
}

impl Wire<'_> {
    /// An intent that is not text of a phase or of the answer.
    fn other(&mut self, intent: &Intent<'_>) {
        if let Intent::Phase(title, place) = intent {
            let State { policy, reporter, findings, .. } = &mut *self.state;
            let sink = &mut *self.sink;
            if !policy.phase(*place, &mut |report| reporter.add(report, *findings, sink)) {
                self.apply(&Intent::PhaseText("\n"));
                self.apply(&Intent::PhaseText(title));
                return self.apply(&Intent::PhaseText("\n"));
            }
        }
        self.apply(intent);
    }

    fn apply(&mut self, intent: &Intent<'_>) {
        let State { sequencer, extensions, .. } = &mut *self.state;
        let sink = &mut *self.sink;
        sequencer.apply(intent, &mut |event| {
            if *extensions || event.kind() != EventKind::Extension {
                sink.event(event);
            }
        });
    }
}

impl Output for Wire<'_> {
    #[inline]
    fn intent(&mut self, intent: Intent<'_>) {
        // Text is most of a reply: it takes the short way, on which there is nothing to be dropped.
        match intent {
            Intent::FinalText(text) => {
                std::mem::forget(intent);
                let sink = &mut *self.sink;
                self.state.sequencer.final_text(text, &mut |event| sink.event(event));
            }
            Intent::PhaseText(text) => {
                std::mem::forget(intent);
                let sink = &mut *self.sink;
                self.state.sequencer.phase_text(text, &mut |event| sink.event(event));
            }
            other => self.other(&other),
        }
    }

    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize> {
        let State { policy, reporter, findings, .. } = &mut *self.state;
        let sink = &mut *self.sink;
        let queries =
            policy.queries(written, place, end, &mut |report| reporter.add(report, *findings, sink));
        let queries = queries?;
        let count = queries.len();
        self.intent(Intent::Queries(queries));
        Some(count)
    }

    fn act(&mut self, action: Action) {
        let Wire { state, sink } = self;
        let mut told = Vec::new();
        state.policy.act(&action, &mut |extension| told.push(extension));
        told.into_iter().for_each(|extension| state.extension(extension, *sink));
        if let Action::Answer(answer) = action {
            state.outcome.answer = Some(answer);
        }
    }

    fn report(&mut self, report: Report) {
        self.state.reporter.add(report, self.state.findings, self.sink);
    }

    fn fall_back(&mut self, reason: &'static str) {
        self.state.unused.get_or_insert(reason);
    }
}

rules! {
    NOT_UTF8 = "not_utf8" ["J-038"] Must "A reply is UTF-8 text.",
        with ["encoding=latin1"],
        broken "Un café, s'il vous plaît.", correct "Un cafe.";
    INPUT_TOO_LARGE = "input_too_large" ["X-007"] Must "A reply is no longer than the limit `limits.input`.",
        with ["limits.input=16"],
        broken "The answer is forty-two.", correct "It is 42.";
    FINDINGS_LIMIT = "findings_limit" ["X-007"] Info "Findings of one reply are listed up to a limit.",
        with ["limits.findings=1"],
        broken "It is <think>1</think> not <think>2</think> but 3.", correct "It is 3.";
}
