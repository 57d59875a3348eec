//! Pipeline that turns a reply into events: `push` bytes, then `finish`.
//!
//! ```
//! use tambour::{InputEnd, Options, Pipeline, event::EventCollector};
//!
//! let mut events = EventCollector::default();
//! let mut pipeline = Pipeline::new("plain", &Options::default())?;
//! pipeline.push(b"<think>2 + 2</think>It is ", &mut events);
//! pipeline.push(b"4.", &mut events);
//! pipeline.finish(&InputEnd::stop(), &mut events);
//! // After `thinking_start`, `phase_start`, `phase_delta` and `thinking_end`:
//! assert_eq!(events.join_deltas()[4].data()["text"], "It is 4.");
//! # Ok::<(), tambour::Error>(())
//! ```

mod native_calls;
mod offsets;
mod outcome;
mod reporter;
mod rewrite;
mod stages;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::dialect::{self, Dialect, IntentSink, ReplyEnding};
use crate::error::Result;
use crate::event::{Completed, Event, Extension, Failure, FinishReason, Metadata, Sink, ToolCall};
use crate::finding::{FindingReport, rules};
use crate::lex::utf8::Utf8Decoder;
use crate::options::Options;
use crate::texts::format_count;

use native_calls::NativeCalls;
pub use outcome::ReplyOutcome;
use rewrite::ReplyRewriter;
use stages::{StageOutput, Stages};

/// End of the input (X-014).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputEnd {
    /// The model gave a finish reason, or the user cancelled.
    Finished(FinishReason),
    /// The model gave a finish reason, but part of the reply was lost in transit.
    Incomplete(FinishReason),
    /// The stream ended cleanly without a finish reason: the reply counts as truncated.
    WithoutReason,
    /// The connection broke, or the stream reported an error.
    Failed(Failure),
}

impl InputEnd {
    /// Returns the end of a reply that the model finished normally.
    #[must_use]
    pub fn stop() -> InputEnd {
        InputEnd::Finished(FinishReason::Stop)
    }

    /// Returns whether the reply may be incomplete.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        !matches!(self, InputEnd::Finished(FinishReason::Stop | FinishReason::ToolCalls))
    }
}

/// Reads one reply. See the [module](self) for an example.
pub struct Pipeline {
    utf8: Utf8Decoder,
    /// Name of the requested dialect, which may be `auto`.
    requested_dialect: &'static str,
    options: Arc<Options>,
    dialect: Box<dyn Dialect>,
    stages: Stages,
    /// Calls that the upstream sent apart from the reply.
    native_calls: NativeCalls,
    /// The limit `limits.input`, in bytes.
    input_limit: usize,
    /// Number of bytes that may still be received within the limit.
    input_left: usize,
    /// Set once [`Pipeline::finish`] was called: further input is ignored.
    is_finished: bool,
    /// Token counts for `completed`, as the upstream reported them.
    usage: Value,
}

impl Pipeline {
    /// Creates a reader of the dialect called `dialect`.
    ///
    /// # Errors
    /// Returns an error if no dialect has that name.
    pub fn new(dialect: &str, options: &Options) -> Result<Pipeline> {
        let entry = dialect::find_dialect(dialect)?;
        let options = &Arc::new(options.clone());
        Ok(Pipeline {
            utf8: Utf8Decoder::default(),
            requested_dialect: entry.name,
            options: Arc::clone(options),
            dialect: (entry.reader)(options),
            stages: Stages::new(options),
            native_calls: NativeCalls::new(options),
            input_limit: options.limits.input,
            input_left: options.limits.input,
            is_finished: false,
            usage: Value::Null,
        })
    }

    /// Sends extension events too (X-010); off by default.
    #[must_use]
    pub fn with_extensions(mut self, is_on: bool) -> Pipeline {
        self.stages.sends_extensions = is_on;
        self
    }

    /// Sends findings as `finding` events too; off by default.
    #[must_use]
    pub fn with_findings(mut self, is_on: bool) -> Pipeline {
        self.stages.sends_findings = is_on;
        self
    }

    /// Sets the token counts for `completed.usage`; `null` by default.
    pub fn set_usage(&mut self, usage: Value) {
        self.usage = usage;
    }

    /// Reads the next bytes of the reply; chunks may be cut anywhere.
    #[inline]
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn Sink) {
        if self.is_finished {
            return;
        }
        if chunk.len() > self.input_left {
            let chunk = &chunk[..self.input_left];
            self.read(chunk, sink);
            // The limit may split a character.
            self.utf8.discard_tail();
            self.fail_at_input_limit(sink);
            return;
        }
        self.input_left -= chunk.len();
        self.read(chunk, sink);
    }

    /// Reads the next text of the reply; chunks may be cut anywhere between characters.
    #[inline]
    pub fn push_str(&mut self, chunk: &str, sink: &mut dyn Sink) {
        if self.is_finished || self.utf8.held_bytes() > 0 || chunk.len() > self.input_left {
            return self.push(chunk.as_bytes(), sink);
        }
        self.input_left -= chunk.len();
        self.stages.reporter.offsets.push_text(chunk);
        self.dialect.push_text(chunk, &mut StageOutput { stages: &mut self.stages, sink });
    }

    #[inline]
    fn read(&mut self, chunk: &[u8], sink: &mut dyn Sink) {
        let Pipeline { utf8, dialect, stages, .. } = self;
        utf8.push(chunk, &mut |text, invalid_len| {
            feed_dialect(dialect.as_mut(), stages, sink, text, invalid_len)
        });
    }

    /// Reads reasoning that the upstream sent in a separate field, apart from the reply (X-012).
    pub fn push_reasoning(&mut self, text: &str, sink: &mut dyn Sink) {
        if !self.is_finished {
            self.dialect.push_reasoning(text, &mut StageOutput { stages: &mut self.stages, sink });
        }
    }

    /// Accepts a complete call that the upstream sent apart from the reply, with its arguments as JSON text.
    /// At the end of the reply it becomes a `tool_call` if the reply is complete and the call fits a tool of
    /// [`Options::tools`], otherwise a `notice`.
    pub fn push_call(&mut self, name: &str, arguments: &str, sink: &mut dyn Sink) {
        if self.is_finished {
            return;
        }
        match self.input_left.checked_sub(name.len() + arguments.len()) {
            Some(input_left) => {
                self.input_left = input_left;
                self.native_calls.push(name, arguments);
            }
            None => self.fail_at_input_limit(sink),
        }
    }

    /// Ends the reply. Calling it again does nothing. In a tool loop
    /// ([`Options::tool_loop`]) a reply with calls leaves the stream open: run [`Pipeline::pending_calls`],
    /// then read on with [`Pipeline::next_reply`].
    pub fn finish(&mut self, end: &InputEnd, sink: &mut dyn Sink) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        let Pipeline { utf8, dialect, stages, .. } = self;
        utf8.finish(&mut |text, invalid_len| feed_dialect(dialect.as_mut(), stages, sink, text, invalid_len));
        let is_truncated = end.is_truncated();
        let is_failed = matches!(end, InputEnd::Failed(_));
        let has_native_calls = !self.native_calls.is_empty();
        stages.policy.end_reply(is_truncated);
        dialect.finish(
            ReplyEnding { is_truncated, is_failed, has_native_calls },
            &mut StageOutput { stages, sink },
        );
        for result in self.native_calls.finish(is_truncated) {
            match result {
                Ok(action) => {
                    // Index of the call that the next line adds to `calls`.
                    stages.outcome.native_calls.push(Ok(stages.outcome.calls.len()));
                    StageOutput { stages, sink }.emit_action(action);
                }
                Err(notice) => {
                    stages.outcome.native_calls.push(Err(notice.message.clone()));
                    stages.send_extension(notice.into(), sink);
                }
            }
        }
        // A truncated or failed reply no longer acts (R-68).
        stages.awaits_results = stages.is_tool_loop && !is_truncated && !stages.outcome.calls.is_empty();
        if !stages.awaits_results {
            self.close(end, sink);
        }
    }

    /// Sends the events that end a stream.
    fn close(&mut self, end: &InputEnd, sink: &mut dyn Sink) {
        let stages = &mut self.stages;
        stages.reporter.finish(sink, stages.sends_findings);
        let end_failure = match end {
            InputEnd::Failed(failure) => Some(failure.clone()),
            InputEnd::Finished(_) | InputEnd::Incomplete(_) | InputEnd::WithoutReason => {
                stages.failure.take()
            }
        };
        if let Some(failure) = end_failure {
            if stages.sequencer.has_started() {
                stages.sequencer.finish(&mut |event| sink.event(event));
            }
            stages.send(Event::Error(failure), sink);
            return;
        }
        let truncated = end.is_truncated();
        let is_replaced = stages.sequencer.finish(&mut |event| sink.event(event));
        let missing_reason = if truncated { "truncated" } else { "answer_missing" };
        // A reason without a replaced answer explains why the text that was emitted is not in the requested
        // format.
        let (fallback_reason, unused_reason) = if is_replaced {
            (stages.unused_reason.or(Some(missing_reason)), None)
        } else {
            (None, stages.unused_reason)
        };
        let finish_reason = match end {
            InputEnd::Finished(reason) | InputEnd::Incomplete(reason) => *reason,
            InputEnd::WithoutReason | InputEnd::Failed(_) => FinishReason::Length,
        };
        let Metadata { notices, exit_decision, .. } = std::mem::take(&mut stages.outcome.metadata);
        let completed = Event::Completed(Box::new(Completed {
            usage: self.usage.take(),
            finish_reason,
            metadata: Metadata {
                dialect: self.dialect.name().to_owned(),
                repairs: stages.reporter.repairs,
                warnings: stages.reporter.warnings,
                // Set by the caller, which re-asks.
                reasks: 0,
                answer_yield: None,
                fallback_reason: fallback_reason.map(Cow::Borrowed),
                unused_reason: unused_reason.map(Cow::Borrowed),
                truncated,
                notices,
                exit_decision,
            },
            reply: None,
        }));
        stages.send(completed, sink);
    }

    /// Returns the calls whose results a tool loop waits for, after [`Pipeline::finish`]; none when the
    /// stream is over.
    #[must_use]
    pub fn pending_calls(&self) -> &[ToolCall] {
        if self.stages.awaits_results { &self.stages.outcome.calls } else { &[] }
    }

    /// Returns the calls, notices and decisions of the reply so far.
    #[must_use]
    pub fn outcome(&self) -> &ReplyOutcome {
        &self.stages.outcome
    }

    /// Returns the state after the operations so far, if one is attached ([`Options::state`]).
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.stages.policy.state()
    }

    /// Ends a stream that [`Pipeline::finish`] left open for the results of calls, when no further reply
    /// follows because the calls were cancelled or must not run. Otherwise does nothing.
    pub fn abandon(&mut self, end: &InputEnd, sink: &mut dyn Sink) {
        if std::mem::take(&mut self.stages.awaits_results) {
            self.close(end, sink);
        }
    }

    /// Sends an extension event that does not come from the reply, such as the result of a tool. It cannot
    /// break the grammar (X-001).
    pub fn insert(&mut self, extension: impl Into<Extension>, sink: &mut dyn Sink) {
        self.stages.send_extension(extension.into(), sink);
    }

    /// Creates a reader of the next reply of a tool loop, which continues the same stream (X-004).
    ///
    /// # Errors
    /// Returns an error if no dialect has that name.
    pub fn next_reply(&self, dialect: &str, options: &Options) -> Result<Pipeline> {
        let mut next_pipeline = Pipeline::new(dialect, options)?;
        next_pipeline.stages = self.stages.next_reply(options);
        Ok(next_pipeline)
    }

    /// Ends the reply with an error because it is longer than the limit.
    fn fail_at_input_limit(&mut self, sink: &mut dyn Sink) {
        let message =
            format!("the reply is longer than `limits.input`, {}", format_count(self.input_limit, "byte"));
        let is_retryable = false;
        let failure = Failure::new("input_too_large", message, is_retryable);
        let place = self.dialect.place();
        let report = FindingReport::new(INPUT_TOO_LARGE, place, place.offset, &*failure.message);
        StageOutput { stages: &mut self.stages, sink }.report(report);
        self.finish(&InputEnd::Failed(failure), sink);
    }

    /// Returns the number of bytes of received text that are held back, without parts that are delivered as a
    /// whole (X-007).
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.utf8.held_bytes() + self.dialect.held_bytes() + self.stages.sequencer.held_bytes()
    }

    /// Writes the reply in its canonical form, after [`Pipeline::finish`]. `events` are all events of the
    /// reply, extension events included. The result never acts where the reply did not. If any form of it
    /// can, it passes the strict check and is written the same when it is read again. `None` if the dialect
    /// cannot be written.
    #[must_use]
    pub fn rewrite(&self, events: &[Event<'_>]) -> Option<String> {
        let write = |events: &[Event<'_>]| self.rewrite_once(events);
        ReplyRewriter::new([self.requested_dialect, self.dialect.name()], &self.options, &write)
            .rewrite(events)
    }

    /// Writes the events in the dialect, without checking the text. `None` if the dialect cannot be written.
    fn rewrite_once(&self, events: &[Event<'_>]) -> Option<String> {
        let find_writer = || dialect::find_dialect(self.dialect.name()).ok()?.write;
        self.dialect.write(events).or_else(|| Some(find_writer()?(events)))
    }

    /// Returns the name of the dialect that the reply is read as; `auto` until it is detected.
    #[must_use]
    pub fn dialect(&self) -> &'static str {
        self.dialect.name()
    }
}

/// Passes a piece of decoded text to the dialect. `invalid_len` is the length of the invalid bytes that the
/// text replaces; `None` if the bytes were valid.
#[inline]
fn feed_dialect(
    dialect: &mut dyn Dialect,
    stages: &mut Stages,
    sink: &mut dyn Sink,
    text: &str,
    invalid_len: Option<usize>,
) {
    let out = &mut StageOutput { stages, sink };
    if let Some(len) = invalid_len {
        let place = dialect.place();
        let message = "these bytes are not UTF-8";
        let report = FindingReport::new(NOT_UTF8, place, place.offset + text.len(), message);
        out.stages.reporter.offsets.push_replacement(len);
        out.report(report.with_repair("replaced by U+FFFD"));
    } else {
        out.stages.reporter.offsets.push_text(text);
    }
    dialect.push_text(text, out);
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
        broken "It is\n<think>1</think>\nnot\n<think>2</think>\nbut 3.", correct "It is 3.";
}
