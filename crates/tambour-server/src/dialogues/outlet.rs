//! The log of a turn as its events come: one valid stream, whatever calls of models it takes. What is held back or thrown away is so
//! before the log.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tambour::dialogue::Turn;
use tambour::event::{Event, EventKind, Extension, Failure, FinishReason};
use tambour::options::Language;
use tambour::{End, Finding, Options, Pipeline, Sink};

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
    /// Text of the answer has come; the message has begun at all.
    answered: bool,
    begun: bool,
    /// Thinking, and the answer, are open.
    thinking: bool,
    answering: bool,
    /// Whether what comes is kept, and what was kept.
    holding: bool,
    held: Vec<Event<'static>>,
    /// The end of the message, which waits for the end of the turn.
    ending: Vec<Event<'static>>,
    over: bool,
}

impl Outlet {
    /// The outlet of a turn that begins.
    pub(crate) fn new(live: Arc<Live>, lease: Box<dyn Lease>) -> Outlet {
        Outlet {
            live,
            batch: Batch::new(lease.next()),
            lease,
            size: 0,
            lost: None,
            answered: false,
            begun: false,
            thinking: false,
            answering: false,
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
        self.begun
    }

    /// Keeps what comes from now on, unless some of the answer is on the log; whether it is.
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
        let failure = turn.error.as_ref().filter(|failure| self.begun || failure.code != CANCELLED);
        match failure {
            Some(failure) if !self.begun || self.ending.is_empty() => {
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
        before.iter().for_each(|event| self.send(event));
        self.status(&json!({ "state": turn.status, "turn": turn }));
        last.iter().for_each(|event| self.send(event));
        self.over = true;
    }

    /// The turn did not take place.
    pub(crate) fn refuse(&mut self, problem: &Problem) {
        if !self.over && self.lost.is_none() {
            let failure = match problem.code() {
                "closing" => interrupted(),
                code => Failure {
                    code: code.into(),
                    message: problem.detail().to_owned(),
                    retryable: problem.passes(),
                },
            };
            self.fail(&failure);
        }
    }

    /// Ends the stream with an error; what is open is closed before (J-035).
    fn fail(&mut self, failure: &Failure) {
        if self.thinking {
            self.send(&Event::ThinkingEnd);
        }
        if self.answering {
            self.send(&Event::FinalEnd);
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
        self.begun |= event.kind() == EventKind::Contract;
        match event {
            Event::ThinkingStart => self.thinking = true,
            Event::ThinkingEnd => self.thinking = false,
            Event::FinalDelta { .. } => self.answering = true,
            Event::FinalEnd => self.answering = false,
            _ => {}
        }
        self.batch.event(event.name(), |out| tambour::encode::data(event, out));
    }
}

/// Record of a turn beside its log.
fn outcome(size: usize, progress: Option<Progress>) -> Outcome {
    let progress = progress.map(Box::new);
    Outcome { size: size as u64, summary: "{}".to_owned(), progress, ..Outcome::default() }
}

/// Ends a turn whose log breaks off: what is open is closed, then `error`; nothing of that if the log has its end. The dialogue stays as
/// it was stored last. How it ended.
pub(crate) async fn close(lease: &mut dyn Lease, failure: &Failure) -> Result<&'static str, Unfinished> {
    let (mut last, mut size, mut thinking, mut answering) = (0, 0, false, false);
    let mut ended = None;
    loop {
        let batches = lease.read(last, PIECE).await?;
        let Some(read) = batches.last() else { break };
        last = read.last();
        for batch in &batches {
            size += batch.body().len();
            for entry in batch.entries() {
                match entry.kind {
                    Kind::Event("thinking_start") => thinking = true,
                    Kind::Event("thinking_end") => thinking = false,
                    Kind::Event("final_delta") => answering = true,
                    Kind::Event("final_end") => answering = false,
                    Kind::Event("completed") => ended = Some("completed"),
                    Kind::Event("error") => ended = Some("failed"),
                    _ => {}
                }
            }
        }
    }
    let mut batch = Batch::new(last + 1);
    let open = [(thinking, Event::ThinkingEnd), (answering, Event::FinalEnd)];
    let closing = open.into_iter().filter(|(open, _)| *open).map(|(_, event)| event);
    let missing = closing.chain([Event::Error(failure.clone())]).filter(|_| ended.is_none());
    for event in missing {
        batch.event(event.name(), |out| tambour::encode::data(&event, out));
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
                if self.begun {
                    self.ending.push(event.into_owned());
                }
            }
            event => {
                self.answered |= matches!(event, Event::FinalDelta { .. });
                self.send(&event);
            }
        }
    }

    fn finding(&mut self, _: Finding) {}
}
