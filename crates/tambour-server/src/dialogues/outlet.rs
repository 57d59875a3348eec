//! The log of a turn as its events come: one valid stream, whatever calls of models it takes. What is held back or thrown away is so
//! before the log.

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

/// Takes the events of a turn to its log.
pub(crate) struct Outlet {
    live: Arc<Live>,
    lease: Box<dyn Lease>,
    /// Entries that are not on the log yet.
    batch: Batch,
    /// Bytes of those that are.
    size: usize,
    /// Result of the last write, where nothing more can be written.
    lost: Option<Written>,
    /// How far the message is.
    sequencer: Sequencer,
    /// The reply that comes goes on with a message that a reply before it has begun.
    follows: bool,
    /// Text of its answer has come.
    answered: bool,
    /// Whether what comes is kept, and what was kept.
    holding: bool,
    held: Vec<Event<'static>>,
    /// The end of the message, which waits for the end of the turn.
    ending: Vec<Event<'static>>,
    over: bool,
}

impl Outlet {
    /// The outlet of a turn that begins.
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

    /// Puts what has come on the log. A turn goes on only if it is there.
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

    /// Waits until readers may see what is on the log.
    pub(crate) async fn settled(&self) -> Result<(), Written> {
        self.lease.settled().await.stored()
    }

    /// Ends the log, which has got its end, together with what the turn makes of its dialogue: one step.
    pub(crate) async fn finish(&mut self, status: &str, progress: Option<Progress>) -> Result<(), Written> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        // It is tried once: nobody knows what came of one that breaks off.
        self.lost = Some(Written::Unknown);
        let last = std::mem::replace(&mut self.batch, Batch::new(1));
        self.live.appending(&last);
        let outcome = outcome(self.size + last.body().len(), progress);
        let written = self.lease.finish(RunEnd { last, status: status.to_owned(), outcome }).await;
        self.lost = Some(written);
        written.stored()
    }

    /// Tells whether a message has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.sequencer.begun()
    }

    /// Another reply comes. What it says goes on with what is on the log already.
    pub(crate) fn next_reply(&mut self) {
        self.answered = false;
        self.follows = self.sequencer.begun();
        if self.follows {
            self.sequencer.next_reply();
        }
    }

    /// Keeps what comes from now on, unless some of the answer of this reply is on the log; whether it is.
    pub(crate) fn hold(&mut self) -> bool {
        self.holding = !self.answered;
        self.answered
    }

    /// What was kept goes out.
    pub(crate) fn release(&mut self) {
        self.holding = false;
        for event in std::mem::take(&mut self.held) {
            self.event(event);
        }
    }

    /// Throws away the text kept: it is asked for again, or is for nobody. The end of a message that was said before stays.
    pub(crate) fn discard(&mut self) {
        self.holding = false;
        self.held.clear();
    }

    /// Says where the turn stands.
    fn status(&mut self, data: &Value) {
        self.batch.event("status", |out| out.extend_from_slice(data.to_string().as_bytes()));
    }

    /// The end of the turn.
    pub(crate) fn close(&mut self, turn: &Turn, requests: &[Extension], options: &Options) {
        if self.over {
            return;
        }
        // A turn that was cancelled before there was a message is a message that was cut at once.
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
        // The end stands behind all else, and has what the turn noticed.
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

    /// The turn did not take place.
    pub(crate) fn refuse(&mut self, problem: &Problem) {
        if !self.over && self.lost.is_none() {
            let failure = match problem.code() {
                "closing" => interrupted(),
                code => Failure::new(code, problem.detail(), problem.passes()),
            };
            self.fail(&failure);
        }
    }

    /// Ends the stream with an error; what is open is closed before (J-035).
    fn fail(&mut self, failure: &Failure) {
        if self.has_begun() {
            self.end_answer();
        }
        self.send(&Event::Error(failure.clone()));
        self.over = true;
    }

    /// A turn in which the model said nothing still is a message, in a sentence of ours.
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
        // What a model said before is named as it was then.
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

    /// Closes what is open of the message.
    fn end_answer(&mut self) {
        let Outlet { sequencer, batch, .. } = self;
        sequencer.finish(&mut |event| put(batch, &event));
    }

    /// Sends an event of a reply that goes on with the message of another: it begins nothing that has begun already.
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

/// Record of a turn beside its log.
fn outcome(size: usize, progress: Option<Progress>) -> Outcome {
    let progress = progress.map(Box::new);
    Outcome { size: size as u64, summary: "{}".to_owned(), progress, ..Outcome::default() }
}

/// Ends a turn whose log breaks off: what is open is closed, then `error`; nothing of that if the log has its end. The dialogue stays as
/// it was stored last. How it ended.
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
                // What failed after it had begun is closed; before, the end of the turn says it.
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
