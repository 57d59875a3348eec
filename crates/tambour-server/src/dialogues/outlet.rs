//! Writes the events of a turn to its log as one valid stream, however many model calls it takes. Events are
//! held back or discarded before they reach the log.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tambour::dialect::Intent;
use tambour::event::{Event, EventKind, Extension, Failure, FinishReason, kind_of};
use tambour::options::Language;
use tambour::sequence::Sequencer;
use tambour::span::Place;
use tambour::{End, Finding, Options, Pipeline, Sink};
use tambour_prompt::dialogue::Turn;

use super::turn::CANCELLED;
use crate::drive::interrupted;
use crate::http::problem::Problem;
use crate::live::Live;
use crate::record::Unfinished;
use crate::store::{Batch, Kind, Lease, Outcome, Progress, RunEnd, Written};

/// Bytes of a log read at once.
const PIECE: usize = 1 << 20;

/// Sink that writes the events of a turn to its log.
pub(crate) struct Outlet {
    live: Arc<Live>,
    lease: Box<dyn Lease>,
    /// Entries not yet on the log.
    batch: Batch,
    /// Bytes of entries on the log.
    size: usize,
    /// Result of the last write, if nothing more can be written.
    lost: Option<Written>,
    /// Sequence state of the stream.
    sequencer: Sequencer,
    /// True if the current reply continues a message that an earlier one began.
    follows: bool,
    /// True if text of its answer was written.
    answered: bool,
    /// True while events are held back, and the held events.
    holding: bool,
    held: Vec<Event<'static>>,
    /// End of the message, held until the end of the turn.
    ending: Vec<Event<'static>>,
    over: bool,
}

impl Outlet {
    /// Creates the outlet of a turn that begins.
    pub(crate) fn new(live: Arc<Live>, lease: Box<dyn Lease>, options: &Options) -> Outlet {
        Outlet {
            live,
            batch: Batch::new(lease.next()),
            lease,
            size: 0,
            lost: None,
            sequencer: Sequencer::new(options),
            follows: false,
            answered: false,
            holding: false,
            held: Vec::new(),
            ending: Vec::new(),
            over: false,
        }
    }

    /// Waits until the turns before it are over.
    pub(crate) fn turn(&self) -> BoxFuture<'static, ()> {
        self.lease.turn()
    }

    /// Appends the gathered entries to the log. On an error the turn must not continue.
    pub(crate) async fn flush(&mut self) -> Result<(), Written> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        if self.batch.is_empty() || self.over {
            return Ok(());
        }
        let next = Batch::new(self.batch.last() + 1);
        let batch = std::mem::replace(&mut self.batch, next);
        self.live.appending(&batch);
        self.size += batch.body().len();
        let written = self.lease.append(batch).await.stored();
        self.lost = written.err();
        written
    }

    /// Waits until readers may see everything on the log.
    pub(crate) async fn settled(&self) -> Result<(), Written> {
        self.lease.settled().await.stored()
    }

    /// Finishes the log, whose end was written, together with the progress of the dialogue, atomically.
    pub(crate) async fn finish(&mut self, status: &str, progress: Option<Progress>) -> Result<(), Written> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        // Tried once: the result of an interrupted try is unknown.
        self.lost = Some(Written::Unknown);
        let last = std::mem::replace(&mut self.batch, Batch::new(1));
        self.live.appending(&last);
        let outcome = outcome(self.size + last.body().len(), progress);
        let written = self.lease.finish(RunEnd { last, status: status.to_owned(), outcome }).await;
        self.lost = Some(written);
        written.stored()
    }

    /// Returns `true` if a message has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.sequencer.begun()
    }

    /// Starts another reply, which continues the message on the log.
    pub(crate) fn next_reply(&mut self) {
        self.answered = false;
        self.follows = self.sequencer.begun();
        if self.follows {
            self.sequencer.next_reply();
        }
    }

    /// Holds back events from now on, unless text of this reply's answer is on the log; returns whether it is
    ///
    pub(crate) fn hold(&mut self) -> bool {
        self.holding = !self.answered;
        self.answered
    }

    /// Writes the held events.
    pub(crate) fn release(&mut self) {
        self.holding = false;
        for event in std::mem::take(&mut self.held) {
            self.event(event);
        }
    }

    /// Discards the held events: the reply is re-asked or shown to nobody. An end of message written earlier
    /// is kept.
    pub(crate) fn discard(&mut self) {
        self.holding = false;
        self.held.clear();
    }

    /// Writes the status of the turn.
    fn status(&mut self, data: &Value) {
        self.batch.event("status", |out| out.extend_from_slice(data.to_string().as_bytes()));
    }

    /// Writes the end of the turn.
    pub(crate) fn close(&mut self, turn: &Turn, requests: &[Extension], options: &Options) {
        if self.over {
            return;
        }
        // A turn cancelled before its message began is a message that was truncated at once.
        let failure = turn.error.as_ref().filter(|failure| self.has_begun() || failure.code != CANCELLED);
        match failure {
            Some(failure) if !self.has_begun() || self.ending.is_empty() => {
                self.status(&json!({ "state": turn.status, "turn": turn }));
                return self.fail(failure);
            }
            _ => {}
        }
        if self.ending.is_empty() {
            self.message_of_ours(turn, requests, options);
        } else {
            requests.iter().for_each(|request| self.send(&Event::from(request.clone())));
        }
        // The end follows everything else and carries the turn's notices.
        let mut ending = std::mem::take(&mut self.ending);
        for event in &mut ending {
            if let Event::Completed(completed) = event {
                completed.metadata.notices.extend(turn.notices.iter().cloned());
            }
        }
        let (last, before): (Vec<_>, Vec<_>) =
            ending.into_iter().partition(|event| matches!(event, Event::Completed(_) | Event::Error(_)));
        for event in &before {
            match event {
                Event::FinalEnd if self.follows => self.end_answer(),
                event => self.send(event),
            }
        }
        self.status(&json!({ "state": turn.status, "turn": turn }));
        last.iter().for_each(|event| self.send(event));
        self.over = true;
    }

    /// Writes the end of a turn that was refused.
    pub(crate) fn refuse(&mut self, problem: &Problem) {
        if !self.over && self.lost.is_none() {
            let failure = match problem.code() {
                "closing" => interrupted(),
                code => Failure::new(code, problem.detail(), problem.passes()),
            };
            self.fail(&failure);
        }
    }

    /// Ends the stream with an error, after closing open parts (J-035).
    fn fail(&mut self, failure: &Failure) {
        if self.has_begun() {
            self.end_answer();
        }
        self.send(&Event::Error(failure.clone()));
        self.over = true;
    }

    /// Writes a standard sentence for a turn without text of the model.
    fn message_of_ours(&mut self, turn: &Turn, requests: &[Extension], options: &Options) {
        let cancelled = turn.error.is_some();
        let text = match (options.texts.language, &turn.ai_message, requests.is_empty()) {
            _ if cancelled => "",
            (_, Some(message), _) => message.as_str(),
            (Language::Zh, None, false) => "请看下面的内容。",
            (Language::En, None, false) => "Please look at this.",
            (Language::Zh, None, true) => "好的。",
            (Language::En, None, true) => "All right.",
        };
        let end = if cancelled { End::Finished(FinishReason::Cancelled) } else { End::stop() };
        let Ok(pipeline) = Pipeline::new("plain", options) else { return };
        self.next_reply();
        let mut pipeline = pipeline.with_extensions(true);
        pipeline.push_str(text, self);
        let metadata = turn.metadata.as_ref();
        if let Some(decision) = metadata.and_then(|metadata| metadata.exit_decision.clone()) {
            pipeline.insert(decision, self);
        }
        requests.iter().for_each(|request| pipeline.insert(request.clone(), self));
        pipeline.finish(&end, self);
        // Text of an earlier model call keeps that call's dialect.
        let said = metadata.filter(|_| turn.ai_message.is_some()).map(|metadata| &metadata.action_type);
        for event in &mut self.ending {
            if let (Event::Completed(completed), Some(said)) = (event, said) {
                completed.metadata.dialect.clone_from(said);
            }
        }
    }

    fn send(&mut self, event: &Event<'_>) {
        self.sequencer.observe(event);
        put(&mut self.batch, event);
    }

    /// Closes the open parts of the message.
    fn end_answer(&mut self) {
        let Outlet { sequencer, batch, .. } = self;
        sequencer.finish(&mut |event| put(batch, &event));
    }

    /// Writes an event of a reply that continues another one's message: parts that have begun are not begun
    /// again.
    fn follow(&mut self, event: &Event<'_>) {
        let Outlet { sequencer, batch, .. } = self;
        let out = &mut |event: Event<'_>| put(batch, &event);
        match event {
            Event::SerpSummary { text } => sequencer.apply(&Intent::Summary(text.clone()), out),
            Event::ThinkingStart => sequencer.apply(&Intent::ThinkingStart, out),
            Event::PhaseStart { title, .. } => {
                sequencer.apply(&Intent::Phase(title.clone(), Place::START), out);
            }
            Event::PhaseDelta { text, .. } => sequencer.phase_text(text, out),
            Event::ThinkingEnd => sequencer.apply(&Intent::ThinkingEnd, out),
            Event::FinalDelta { text } => sequencer.final_text(text, out),
            Event::SerpQueries { queries } => sequencer.apply(&Intent::Queries(queries.clone()), out),
            event => out(event.clone()),
        }
    }
}

fn put(batch: &mut Batch, event: &Event<'_>) {
    batch.event(event.name(), |out| tambour::encode::data(event, out));
}

/// Builds the outcome of a turn.
fn outcome(size: usize, progress: Option<Progress>) -> Outcome {
    let progress = progress.map(Box::new);
    Outcome { size: size as u64, summary: "{}".to_owned(), progress, ..Outcome::default() }
}

/// Ends a turn whose log breaks off: open parts are closed, then `error`; nothing if the log has its end. The
/// dialogue stays as last stored. Returns the status.
pub(crate) async fn close(
    lease: &mut dyn Lease,
    failure: &Failure,
    options: &Options,
) -> Result<&'static str, Unfinished> {
    let (mut last, mut size, mut ended) = (0, 0, None);
    let mut sequencer = Sequencer::new(options);
    loop {
        let batches = lease.read(last, PIECE).await?;
        let Some(read) = batches.last() else { break };
        last = read.last();
        for batch in &batches {
            size += batch.body().len();
            for entry in batch.entries() {
                match entry.kind {
                    Kind::Event("completed") => ended = Some("completed"),
                    Kind::Event("error") => ended = Some("failed"),
                    Kind::Event(name) if kind_of(name) == Some(EventKind::Contract) => {
                        let data = serde_json::from_str(entry.json).unwrap_or_default();
                        if let Some(event) = Event::parse(name, &data) {
                            sequencer.observe(&event);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    let mut batch = Batch::new(last + 1);
    if ended.is_none() {
        if sequencer.begun() {
            sequencer.finish(&mut |event| put(&mut batch, &event));
        }
        put(&mut batch, &Event::Error(failure.clone()));
    }
    let status = ended.unwrap_or("failed");
    let outcome = outcome(size + batch.body().len(), None);
    match lease.finish(RunEnd { last: batch, status: status.to_owned(), outcome }).await {
        Written::Stored => Ok(status),
        written => Err(Unfinished::Unwritten(written)),
    }
}

impl Sink for Outlet {
    fn event(&mut self, event: Event<'_>) {
        if self.over {
            return;
        }
        if self.holding {
            return self.held.push(event.into_owned());
        }
        match event {
            Event::FinalEnd | Event::Completed(_) => self.ending.push(event.into_owned()),
            Event::Error(_) => {
                // A failure after the begin closes the message; before it, the end of the turn reports the
                // failure.
                if self.has_begun() {
                    self.ending.push(event.into_owned());
                }
            }
            event => {
                self.answered |= matches!(event, Event::FinalDelta { .. });
                match self.follows {
                    true => self.follow(&event),
                    false => self.send(&event),
                }
            }
        }
    }

    fn finding(&mut self, _: Finding) {}
}
