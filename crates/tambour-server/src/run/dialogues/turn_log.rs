//! Log of a turn of a dialogue: the replies of all its model calls become one valid stream of events. Events
//! of a reply can be held back, and discarded before they reach the log.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tambour::dialect::Intent;
use tambour::event::{Event, Extension, Failure, FinishReason};
use tambour::options::Language;
use tambour::sequence::Sequencer;
use tambour::span::Place;
use tambour::{Finding, InputEnd, Options, Pipeline, Sink};
use tambour_prompt::dialogue::DialogueTurn;

use super::turn::CANCELLED;
use crate::base::problem::Problem;
use crate::record::turn_end::outcome;
use crate::record::{interrupted_failure, push_event, push_json};
use crate::run::live_run::LiveRun;
use crate::store::{Batch, DialogueProgress, Lease, RunEnd, WriteOutcome};

/// Sink that writes the events of a turn to its log.
pub(crate) struct TurnLog {
    live_run: Arc<LiveRun>,
    lease: Box<dyn Lease>,
    /// Entries that are not appended to the log yet.
    batch: Batch,
    /// Size in bytes of the entries appended so far.
    size: usize,
    /// Outcome of the write after which nothing more may be written; `None` before it.
    final_outcome: Option<WriteOutcome>,
    /// Sequence state of the whole stream.
    sequencer: Sequencer,
    /// True if the current reply continues a message that an earlier reply began.
    is_continuing: bool,
    /// True if text of the current reply's answer was written.
    has_answer: bool,
    /// True while events are held back.
    is_holding: bool,
    held_events: Vec<Event<'static>>,
    /// Events that end the message, held until the end of the turn.
    end_events: Vec<Event<'static>>,
    /// Set once the end of the stream was written.
    is_over: bool,
}

impl TurnLog {
    /// Creates the log of a new turn.
    pub(crate) fn new(live_run: Arc<LiveRun>, lease: Box<dyn Lease>, options: &Options) -> TurnLog {
        TurnLog {
            live_run,
            batch: Batch::new(lease.next_number()),
            lease,
            size: 0,
            final_outcome: None,
            sequencer: Sequencer::new(options),
            is_continuing: false,
            has_answer: false,
            is_holding: false,
            held_events: Vec::new(),
            end_events: Vec::new(),
            is_over: false,
        }
    }

    /// Waits until the earlier turns of the dialogue are over.
    pub(crate) fn wait_earlier_turns(&self) -> BoxFuture<'static, ()> {
        self.lease.wait_earlier_runs()
    }

    /// Appends the gathered entries to the log. On an error the turn must not continue.
    pub(crate) async fn flush(&mut self) -> Result<(), WriteOutcome> {
        if let Some(final_outcome) = self.final_outcome {
            return Err(final_outcome);
        }
        if self.batch.is_empty() || self.is_over {
            return Ok(());
        }
        let next = Batch::new(self.batch.last() + 1);
        let batch = std::mem::replace(&mut self.batch, next);
        self.live_run.note_append(&batch);
        self.size += batch.body().len();
        let result = self.lease.append(batch).await.into_result();
        self.final_outcome = result.err();
        result
    }

    /// Waits until all appended entries are durable as configured, and visible to readers.
    pub(crate) async fn wait_settled(&self) -> Result<(), WriteOutcome> {
        self.lease.wait_settled().await.into_result()
    }

    /// Appends the last entries and stores the progress of the dialogue, in one step. `status` is the status
    /// of the turn.
    pub(crate) async fn finish(
        &mut self,
        status: &str,
        progress: Option<DialogueProgress>,
    ) -> Result<(), WriteOutcome> {
        if let Some(final_outcome) = self.final_outcome {
            return Err(final_outcome);
        }
        // Tried only once: if this future is dropped midway, the outcome is unknown.
        self.final_outcome = Some(WriteOutcome::Unknown);
        // The new batch is never written, so its number does not matter.
        let last = std::mem::replace(&mut self.batch, Batch::new(1));
        self.live_run.note_append(&last);
        let outcome = outcome(self.size + last.body().len(), progress);
        let write_outcome = self.lease.finish(RunEnd { last, status: status.to_owned(), outcome }).await;
        self.final_outcome = Some(write_outcome);
        write_outcome.into_result()
    }

    /// Returns `true` if a message has begun in the stream.
    pub(crate) fn has_begun(&self) -> bool {
        self.sequencer.has_started()
    }

    /// Starts another reply, which continues the message of the stream if one has begun.
    pub(crate) fn next_reply(&mut self) {
        self.has_answer = false;
        self.is_continuing = self.sequencer.has_started();
        if self.is_continuing {
            self.sequencer.next_reply();
        }
    }

    /// Holds back events from now on, unless answer text of this reply was written already. Returns `true` if
    /// it was.
    pub(crate) fn hold_unless_answered(&mut self) -> bool {
        self.is_holding = !self.has_answer;
        self.has_answer
    }

    /// Stops holding back, and writes the held events.
    pub(crate) fn release(&mut self) {
        self.is_holding = false;
        for event in std::mem::take(&mut self.held_events) {
            self.event(event);
        }
    }

    /// Stops holding back, and discards the held events: the reply is re-asked or shown to nobody. Events
    /// written before stay, including those that end the message.
    pub(crate) fn discard(&mut self) {
        self.is_holding = false;
        self.held_events.clear();
    }

    /// Writes a status event.
    fn push_status(&mut self, data: &Value) {
        push_json(&mut self.batch, "status", data);
    }

    /// Writes the end of the turn, with the requests of the dialogue to the client.
    pub(crate) fn close(&mut self, turn: &DialogueTurn, client_requests: &[Extension], options: &Options) {
        if self.is_over {
            return;
        }
        // A turn cancelled before its message began gets a message with only the fallback text and the finish
        // reason `cancelled`, not an error.
        let failure = turn.error.as_ref().filter(|failure| self.has_begun() || failure.code != CANCELLED);
        match failure {
            Some(failure) if !self.has_begun() || self.end_events.is_empty() => {
                self.push_status(&json!({ "state": turn.status, "turn": turn }));
                return self.end_with_error(failure);
            }
            _ => {}
        }
        if self.end_events.is_empty() {
            self.write_standard_message(turn, client_requests, options);
        } else {
            client_requests.iter().for_each(|request| self.send(&Event::from(request.clone())));
        }
        // The final event follows everything else and has the notices of the turn.
        let mut end_events = std::mem::take(&mut self.end_events);
        for event in &mut end_events {
            if let Event::Completed(completed) = event {
                completed.metadata.notices.extend(turn.notices.iter().cloned());
            }
        }
        let (final_events, earlier_events): (Vec<_>, Vec<_>) =
            end_events.into_iter().partition(|event| matches!(event, Event::Completed(_) | Event::Error(_)));
        for event in &earlier_events {
            match event {
                // Also closes parts that an earlier reply of the turn began.
                Event::FinalEnd if self.is_continuing => self.close_open_parts(),
                event => self.send(event),
            }
        }
        self.push_status(&json!({ "state": turn.status, "turn": turn }));
        final_events.iter().for_each(|event| self.send(event));
        self.is_over = true;
    }

    /// Writes the end of a turn that was refused or could not continue.
    pub(crate) fn refuse(&mut self, problem: &Problem) {
        if !self.is_over && self.final_outcome.is_none() {
            let failure = match problem.code() {
                // The server is shutting down.
                "closing" => interrupted_failure(),
                code => Failure::new(code, problem.detail(), problem.is_retryable()),
            };
            self.end_with_error(&failure);
        }
    }

    /// Ends the stream with an error, after closing open parts (J-035).
    fn end_with_error(&mut self, failure: &Failure) {
        if self.has_begun() {
            self.close_open_parts();
        }
        self.send(&Event::Error(failure.clone()));
        self.is_over = true;
    }

    /// Writes a whole message for a turn in which no reply has begun a message: with the text of the turn, or
    /// a standard sentence if the turn has no text. After a failure the text is empty and the message counts
    /// as cancelled.
    fn write_standard_message(
        &mut self,
        turn: &DialogueTurn,
        client_requests: &[Extension],
        options: &Options,
    ) {
        let has_error = turn.error.is_some();
        let text = match (options.texts.language, &turn.ai_message, client_requests.is_empty()) {
            _ if has_error => "",
            (_, Some(message), _) => message.as_str(),
            (Language::Zh, None, false) => "请看下面的内容。",
            (Language::En, None, false) => "Please look at this.",
            (Language::Zh, None, true) => "好的。",
            (Language::En, None, true) => "All right.",
        };
        let end = if has_error { InputEnd::Finished(FinishReason::Cancelled) } else { InputEnd::stop() };
        let Ok(pipeline) = Pipeline::new("plain", options) else { return };
        self.next_reply();
        let mut pipeline = pipeline.with_extensions(true);
        pipeline.push_str(text, self);
        let metadata = turn.metadata.as_ref();
        if let Some(decision) = metadata.and_then(|metadata| metadata.exit_decision.clone()) {
            pipeline.insert(decision, self);
        }
        client_requests.iter().for_each(|request| pipeline.insert(request.clone(), self));
        pipeline.finish(&end, self);
        // A text that comes from a model call gets the dialect of that call.
        let action_type =
            metadata.filter(|_| turn.ai_message.is_some()).map(|metadata| &metadata.action_type);
        for event in &mut self.end_events {
            if let (Event::Completed(completed), Some(action_type)) = (event, action_type) {
                completed.metadata.dialect.clone_from(action_type);
            }
        }
    }

    /// Writes an event as it is.
    fn send(&mut self, event: &Event<'_>) {
        self.sequencer.observe(event);
        push_event(&mut self.batch, event);
    }

    /// Closes the open parts of the message.
    fn close_open_parts(&mut self) {
        let TurnLog { sequencer, batch, .. } = self;
        sequencer.finish(&mut |event| push_event(batch, &event));
    }

    /// Writes an event of a reply that continues the message of an earlier reply: parts that have begun are
    /// not begun again.
    fn continue_with(&mut self, event: &Event<'_>) {
        let TurnLog { sequencer, batch, .. } = self;
        let out = &mut |event: Event<'_>| push_event(batch, &event);
        match event {
            Event::SerpSummary { text } => sequencer.apply(&Intent::Summary(text.clone()), out),
            Event::ThinkingStart => sequencer.apply(&Intent::ThinkingStart, out),
            Event::PhaseStart { title, .. } => {
                sequencer.apply(&Intent::Phase(title.clone(), Place::START), out);
            }
            Event::PhaseDelta { text, .. } => sequencer.push_phase_text(text, out),
            Event::ThinkingEnd => sequencer.apply(&Intent::ThinkingEnd, out),
            Event::FinalDelta { text } => sequencer.push_final_text(text, out),
            Event::SerpQueries { queries } => sequencer.apply(&Intent::Queries(queries.clone()), out),
            event => out(event.clone()),
        }
    }
}

impl Sink for TurnLog {
    fn event(&mut self, event: Event<'_>) {
        if self.is_over {
            return;
        }
        if self.is_holding {
            return self.held_events.push(event.into_owned());
        }
        match event {
            Event::FinalEnd | Event::Completed(_) => self.end_events.push(event.into_owned()),
            Event::Error(_) => {
                // Once the message has begun, the error becomes its end. Before that it is dropped here,
                // because `close` reports it.
                if self.has_begun() {
                    self.end_events.push(event.into_owned());
                }
            }
            event => {
                self.has_answer |= matches!(event, Event::FinalDelta { .. });
                match self.is_continuing {
                    true => self.continue_with(&event),
                    false => self.send(&event),
                }
            }
        }
    }

    fn finding(&mut self, _: Finding) {}
}
