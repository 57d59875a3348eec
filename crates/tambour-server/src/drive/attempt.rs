//! One model call of a run: feeds the reply through the pipeline and gathers log entries until they may be
//! written.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tambour::event::{Appraisal, Completed, EventKind, Extension, FinishReason, ToolCall, Worth};
use tambour::options::{Hold, Language};
use tambour::texts::counted;
use tambour::{End, Event, Finding, Options, Pipeline, Severity, Sink};

use super::{Choice, Log, Run, millis};
use crate::aside;
use crate::history::Again;
use crate::record::{self, Timings};
use crate::states::State;
use crate::store::{Batch, Written};
use crate::upstream::{Ask, Content, Item, Message, NativeCall, failure};

/// One model call.
pub(super) struct Attempt {
    pipeline: Pipeline,
    pub(super) gather: Gather,
    hold: Hold,
    /// True if a part of it may be delivered before its end. Depends only on the content so far and on
    /// `hold`, never on timing: a re-ask must not depend on the pace of the model or of this server.
    pub(super) shown: bool,
    pub(super) usage: Option<Value>,
    /// Native calls, made outside the text.
    native: Vec<NativeCall>,
    /// Remaining bytes of reasoning.
    room: usize,
    /// True if the reply is checked against a schema at its end, and if state operations are checked as
    /// they arrive.
    has_schema: bool,
    checks_state: bool,
    /// Items so far, if the reply may have to be read again.
    heard: Option<Vec<Item>>,
    /// Position of the message's first state update in the conversation, and the number of updates gathered.
    start: i64,
    applied: usize,
    /// Time of the last append, and a flag set while gathered entries wait for the pause after it.
    last: Option<Instant>,
    waits: bool,
}

/// Settings of an attempt that may be followed by a re-ask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeat {
    /// Number of re-asks so far.
    pub(super) reasks: u32,
    /// True if a discarded reply is kept in the record.
    pub(super) keeps: bool,
    /// True if its items are kept, since it may be used after all if nothing better follows.
    pub(super) hears: bool,
    /// True if it is held until its end, since it must be better than an earlier one.
    pub(super) waits: bool,
}

/// Minimum interval between two appends; chunks of a fast model are batched.
const PAUSE: Duration = Duration::from_millis(4);
/// Gathered bytes that are appended without waiting.
const FULL: usize = 8 << 10;

/// Gathered entries that are not on the log yet.
pub(super) struct Gather {
    batch: Batch,
    seq: u64,
    reasks: u32,
    /// Set once an event was emitted, and once one of the answer was.
    begun: bool,
    answering: bool,
    appraisal: Appraisal,
    /// Raw reply, if the model may have to be shown it.
    pub(super) raw: String,
    /// Findings, if the reply may be discarded.
    pub(super) findings: Option<Vec<Finding>>,
    /// Set at the end; nothing may follow it.
    ended: bool,
    /// End event, held until the state updates before it are written.
    end: Option<(&'static str, Vec<u8>)>,
}

impl Attempt {
    /// Creates an attempt. `before` is the pipeline of a reply that called tools, which this one continues.
    pub(super) fn new(
        choice: &Choice,
        attached: Option<&State>,
        dialect: &str,
        before: Option<&Pipeline>,
        Repeat { reasks, keeps, hears, waits }: Repeat,
        (next, seq): (u64, u64),
    ) -> Attempt {
        let options = match attached {
            // A reply that continues a message also continues its state.
            Some(state) if before.is_none() => {
                let mut options = choice.options.clone();
                options.state = Some(state.attached.clone());
                Cow::Owned(options)
            }
            _ => Cow::Borrowed(&choice.options),
        };
        let reader = |dialect: &str| match before {
            Some(before) => before.next_reply(dialect, &options),
            None => Pipeline::new(dialect, &options),
        };
        let pipeline =
            reader(dialect).or_else(|_| reader("plain")).expect("`plain` is in the table of dialects");
        Attempt {
            pipeline: pipeline.with_extensions(true).with_findings(true),
            gather: Gather {
                batch: Batch::new(next),
                seq,
                reasks,
                begun: false,
                answering: false,
                appraisal: Appraisal::default(),
                raw: String::new(),
                findings: keeps.then(Vec::new),
                ended: false,
                end: None,
            },
            has_schema: choice.options.json_schema().is_some() || choice.options.tools.is_some(),
            checks_state: attached.is_some_and(|state| state.attached.schema.is_some()),
            start: attached.map_or(0, |state| state.start),
            applied: 0,
            heard: hears.then(Vec::new),
            hold: if waits { Hold::All } else { choice.options.hold },
            shown: false,
            usage: None,
            native: Vec::new(),
            room: choice.options.limits.input,
            last: None,
            waits: false,
        }
    }

    /// Reads the reply to its end and returns that; `Err` if the log cannot be written any more.
    pub(super) async fn read(
        &mut self,
        run: &Run,
        choice: &Choice,
        ask: &Ask,
        log: &mut Log,
        (started, timings): (Instant, &mut Timings),
        mut stop: Pin<&mut impl Future<Output = End>>,
    ) -> Result<End, Written> {
        // Boxed: the memory of the request is freed before the reply arrives.
        let opened = tokio::select! {
            opened = Box::pin(choice.upstream.open(ask)) => opened,
            end = stop.as_mut() => return Ok(end),
        };
        let mut reply = match opened {
            Ok(reply) => reply,
            Err(failure) => return Ok(End::Failed(failure)),
        };
        let mut items = Vec::with_capacity(4);
        let mut due = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            {
                let mut next = std::pin::pin!(reply.next(&mut items));
                loop {
                    // Dropping the reply cancels the model call.
                    tokio::select! {
                        biased;
                        end = stop.as_mut() => return Ok(end),
                        () = next.as_mut() => break,
                        () = due.as_mut(), if self.waits => self.send(log).await?,
                    }
                }
            }
            if timings.first_byte_ms.is_none() {
                timings.first_byte_ms = Some(millis(started));
            }
            for item in items.drain(..) {
                if let Some(end) = self.hear(item, choice, run) {
                    return Ok(end);
                }
            }
            if self.shown && !self.gather.batch.is_empty() {
                let rested = self.last.is_none_or(|last| last.elapsed() >= PAUSE);
                if rested || self.gather.batch.body().len() >= FULL {
                    self.send(log).await?;
                } else if let (false, Some(last)) = (self.waits, self.last) {
                    due.as_mut().reset((last + PAUSE).into());
                    self.waits = true;
                }
            }
        }
    }

    /// Processes one item; returns the end of the reply.
    fn hear(&mut self, item: Item, choice: &Choice, run: &Run) -> Option<End> {
        if let (Some(heard), false) = (&mut self.heard, matches!(item, Item::Usage(_) | Item::End(_))) {
            match (heard.last_mut(), &item) {
                (Some(Item::Text(all)), Item::Text(text))
                | (Some(Item::Reasoning(all)), Item::Reasoning(text)) => all.push_str(text),
                _ => heard.push(item.clone()),
            }
        }
        match item {
            Item::Text(text) => self.gather_text(&text, run),
            Item::Reasoning(text) if text.len() > self.room => {
                let limit = choice.options.limits.input;
                let message =
                    format!("the reasoning is longer than `limits.input`, {}", counted(limit, "byte"));
                return Some(End::Failed(failure("input_too_large", message, false)));
            }
            Item::Reasoning(text) => {
                self.room -= text.len();
                self.gather.batch.reasoning(&text);
                self.pipeline.reasoning(&text, &mut self.gather);
                self.keep();
            }
            Item::Call(mut call) => {
                self.pipeline.call(&call.function.name, &call.function.arguments, &mut self.gather);
                if call.id.is_empty() {
                    call.id = format!("call_{}", self.native.len() + 1);
                }
                self.native.push(call);
                self.keep();
            }
            Item::Usage(usage) => self.usage = Some(usage),
            Item::End(end) => return Some(end),
        }
        if self.gather.ended {
            // The reply exceeded the limit and has ended; the rest is ignored.
            return Some(End::Finished(FinishReason::Length));
        }
        if !self.shown && self.may_be_shown(run) {
            // The reply will not be re-asked, whatever follows.
            (self.shown, self.heard) = (true, None);
        }
        None
    }

    /// Reads a recorded reply again.
    pub(super) fn replay(&mut self, heard: Vec<Item>, choice: &Choice, run: &Run) {
        for item in heard {
            self.hear(item, choice, run);
        }
    }

    /// Returns the recorded items.
    pub(super) fn into_heard(self) -> Vec<Item> {
        self.heard.unwrap_or_default()
    }

    fn gather_text(&mut self, text: &str, run: &Run) {
        self.gather.seq += 1;
        self.gather.batch.raw(self.gather.seq, text);
        if self.gather.findings.is_some() || run.offer.is_some() {
            self.gather.raw.push_str(text);
        }
        if self.checks_state {
            // Each operation may scan the whole state.
            aside::in_place(|| self.pipeline.push_str(text, &mut self.gather));
        } else {
            self.pipeline.push_str(text, &mut self.gather);
        }
        self.keep();
    }

    /// Writes state updates after their events, and the end after both.
    fn keep(&mut self) {
        let applied = &self.pipeline.outcome().applied;
        for one in &applied[self.applied.min(applied.len())..] {
            record::applied(self.start, one, &mut self.gather.batch);
        }
        self.applied = applied.len();
        if let Some((name, data)) = self.gather.end.take() {
            self.gather.batch.event(name, |out| out.extend_from_slice(&data));
        }
    }

    /// Returns `true` if the reply is checked against a schema at its end.
    pub(super) fn has_schema(&self) -> bool {
        self.has_schema
    }

    /// Returns `true` if the content so far may be delivered. Raw text alone waits for an event, so that an
    /// attempt without any can be discarded; readers of the legacy protocol see raw text at once, unless
    /// unusable replies are to be re-asked.
    fn may_be_shown(&self, run: &Run) -> bool {
        match self.hold {
            Hold::None => self.gather.begun || (run.legacy && run.max_reasks == 0),
            Hold::UntilFinal => self.gather.answering,
            Hold::All => false,
        }
    }

    pub(super) fn finish(&mut self, end: &End, usage: Value) {
        self.pipeline.set_usage(usage);
        self.pipeline.finish(end, &mut self.gather);
        self.keep();
    }

    /// Appends the gathered entries to the log.
    pub(super) async fn send(&mut self, log: &mut Log) -> Result<(), Written> {
        let batch = self.rest(log);
        if batch.is_empty() {
            return Ok(());
        }
        self.last = Some(Instant::now());
        self.waits = false;
        log.append(batch).await
    }

    /// Takes the gathered entries that are not on the log.
    pub(super) fn rest(&mut self, log: &mut Log) -> Batch {
        log.seq = self.gather.seq;
        let next = self.gather.batch.last() + 1;
        std::mem::replace(&mut self.gather.batch, Batch::new(next))
    }

    /// Returns the worth of the ended reply.
    pub(super) fn worth(&self, end: &End) -> Worth {
        let worth = self.gather.appraisal.worth();
        match end {
            End::Failed(_) => Worth::Nothing,
            // A truncated reply is worth no more than a broken one.
            _ if end.cut() => worth.min(Worth::Text),
            _ => worth,
        }
    }

    /// Returns `true` if the fallback replaced the reply, or a rule was broken beyond repair.
    pub(super) fn unusable(&self) -> bool {
        self.gather.appraisal.worth() < Worth::Usable
    }

    /// Returns `true` if it is unusable and nothing of it can have been delivered.
    pub(super) fn may_be_asked_again(&self) -> bool {
        !self.shown && self.unusable()
    }

    /// Builds the re-ask messages: the reply and its findings (P-034).
    pub(super) fn complaint(&self, options: &Options) -> [Message; 2] {
        let told =
            self.gather.findings.iter().flatten().filter(|finding| finding.severity >= Severity::Warning);
        let told: String = told
            .take(20)
            .map(|Finding { line, message, code, .. }| match options.texts.language {
                Language::Zh => format!("- 第 {line} 行：{message}（{code}）\n"),
                Language::En => format!("- line {line}: {message} ({code})\n"),
            })
            .collect();
        let (before, after) = match options.texts.language {
            Language::Zh => ("上面的回复不符合要求的格式", "请严格按照要求的格式重新给出完整的回复。"),
            Language::En => (
                "The reply above does not keep the format",
                "Please give the whole reply again, exactly in the format asked for.",
            ),
        };
        let (colon, stop) = match options.texts.language {
            Language::Zh => ("：", "。"),
            Language::En => (":", "."),
        };
        let complaint = if told.is_empty() {
            format!("{before}{stop}\n\n{after}")
        } else {
            format!("{before}{colon}\n{told}\n{after}")
        };
        [Message::new("assistant", self.gather.raw.clone()), Message::new("user", complaint)]
    }

    /// Keeps the discarded reply in the record (P-034), in an entry that is never sent to clients. Readers
    /// get a status event if the model is asked again.
    pub(super) async fn throw_away(
        &mut self,
        end: &End,
        reask: Option<u32>,
        log: &mut Log,
    ) -> Result<(), Written> {
        let mut batch = Batch::new(log.next());
        self.keep_attempt(json!({}), end, &mut batch);
        if let Some(reask) = reask {
            let status = json!({"state": "reasking", "reask": reask});
            batch.event("status", |out| out.extend_from_slice(status.to_string().as_bytes()));
        }
        log.append(batch).await
    }

    /// Adds the entry of a discarded attempt, with further fields.
    pub(super) fn keep_attempt(&self, mut kept: Value, end: &End, batch: &mut Batch) {
        (kept["raw"], kept["findings"]) = (json!(self.gather.raw), json!(self.gather.findings));
        match end {
            End::Failed(failure) => kept["error"] = json!(failure),
            End::Finished(reason) | End::Incomplete(reason) => kept["finish_reason"] = json!(reason),
            _ => {}
        }
        batch.event(record::ATTEMPT, |out| out.extend_from_slice(kept.to_string().as_bytes()));
    }

    /// Returns the calls that the reply waits for.
    pub(super) fn calls(&self) -> &[ToolCall] {
        self.pipeline.calls()
    }

    /// Emits an event that does not come from the model.
    pub(super) fn extension(&mut self, extension: impl Into<Extension>) {
        self.pipeline.insert(extension, &mut self.gather);
    }

    /// Emits a transient status for current readers.
    pub(super) fn status(&mut self, status: &Value) {
        self.gather.batch.event("status", |out| out.extend_from_slice(status.to_string().as_bytes()));
    }

    /// Adds the entry with the tool results; returns the reply as a message for the model.
    pub(super) fn turn(&mut self, calls: &[ToolCall], told: &str, again: &Again) -> Message {
        let text = record::between(&self.gather.raw, calls, told, again, &mut self.gather.batch);
        let content = (!text.is_empty()).then_some(Content::Text(text));
        Message { content, tool_calls: self.native.clone(), ..Message::new("assistant", "") }
    }

    /// Returns the native calls, each with its index among the calls of the reply, or the reason why it is
    /// none.
    pub(super) fn native(&self) -> impl Iterator<Item = (&NativeCall, &Result<usize, String>)> {
        self.native.iter().zip(&self.pipeline.outcome().beside)
    }

    /// Starts the next reply on a new line.
    pub(super) fn new_line(&mut self) {
        let gather = &mut self.gather;
        if !gather.raw.ends_with('\n') {
            gather.seq += 1;
            gather.batch.raw(gather.seq, "\n");
        }
    }

    /// Ends the stream after calls that no further reply follows.
    pub(super) fn end(&mut self, end: &End) {
        self.pipeline.abandon(end, &mut self.gather);
        self.keep();
    }

    /// Returns the pipeline that the next reply continues.
    pub(super) fn into_pipeline(self) -> Pipeline {
        self.pipeline
    }
}

impl Sink for Gather {
    fn event(&mut self, event: Event<'_>) {
        self.begun |= event.kind() == EventKind::Contract;
        self.answering |= matches!(event, Event::FinalDelta { .. });
        self.appraisal.event(&event);
        self.ended |= matches!(event, Event::Completed(_) | Event::Error(_));
        let reasked;
        let event = match event {
            Event::Completed(completed) => {
                reasked = Event::Completed(Box::new(with_reasks(*completed, self.reasks)));
                &reasked
            }
            ref event => event,
        };
        if self.ended {
            let mut data = Vec::new();
            tambour::encode::data(event, &mut data);
            self.end = Some((event.name(), data));
        } else {
            self.batch.event(event.name(), |out| tambour::encode::data(event, out));
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.appraisal.finding(&finding);
        if let Some(findings) = &mut self.findings {
            findings.push(finding);
        }
    }
}

fn with_reasks(mut completed: Completed, reasks: u32) -> Completed {
    completed.metadata.reasks = reasks;
    completed
}
