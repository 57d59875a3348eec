//! One model call of a run: feeds the reply through the pipeline and gathers log entries until they may be
//! written.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tambour::event::{EventKind, Extension, FinishReason, Notice, ReplyAppraisal, ReplyWorth, ToolCall};
use tambour::options::HoldMode;
use tambour::texts::format_count;
use tambour::{Event, Finding, InputEnd, Options, Pipeline, Sink};

use super::measures::RunMeasures;
use super::{MessageRun, RunLog, UpstreamChoice};
use crate::base::cpu_pool;
use crate::record;
use crate::record::history::HistoryWriter;
use crate::run::states::MessageState;
use crate::store::{Batch, WriteOutcome};
use crate::upstream::{
    ConstraintReport, Content, Message, ModelRequest, NativeCall, ReplyItem, new_failure, reask_messages,
};

/// One model call and its reply.
pub(super) struct Attempt {
    pipeline: Pipeline,
    pub(super) gathered: EntryGatherer,
    /// Part of the reply that is held back, so that the model can still be re-asked.
    hold: HoldMode,
    /// True if a part of the reply may be delivered before its end. Depends only on the content so far and on
    /// `hold`, never on timing: a re-ask must not depend on the pace of the model or of this server.
    pub(super) may_deliver: bool,
    /// Token counts that the upstream reported, in the form of [`ReplyItem::Usage`].
    pub(super) usage: Option<Value>,
    /// Native calls, made outside the text.
    native_calls: Vec<NativeCall>,
    /// Bytes of reasoning that the reply may still have.
    reasoning_budget: usize,
    /// True if the reply, or the arguments of its calls, are checked against a schema at its end.
    has_schema: bool,
    /// True if state operations are checked against a schema as they arrive.
    checks_state_schema: bool,
    /// Items so far, if the reply may have to be read again.
    kept_items: Option<Vec<ReplyItem>>,
    /// Form of the constraint that was sent, and those refused.
    constraint: ConstraintReport,
    /// Position of the message's first state update in the conversation.
    first_update_position: i64,
    /// Number of state updates gathered so far.
    gathered_updates: usize,
    /// Time of the last append to the log.
    last_append: Option<Instant>,
    /// True while gathered entries wait for the end of `APPEND_INTERVAL`.
    is_append_scheduled: bool,
}

/// Settings of an attempt that may be followed by a re-ask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttemptSettings {
    /// Number of re-asks before this attempt.
    pub(super) reasks: u32,
    /// True if the reply is one to a re-ask.
    pub(super) is_reask: bool,
    /// True if a discarded reply is kept in the record.
    pub(super) keeps_discarded: bool,
    /// True if the items of the reply are kept, since it may be used after all if nothing better follows.
    pub(super) keeps_items: bool,
    /// True if the reply is held until its end, since it is used only if it is better than an earlier one.
    pub(super) holds_all: bool,
}

/// Minimum interval between two appends; chunks of a fast model are batched.
const APPEND_INTERVAL: Duration = Duration::from_millis(4);
/// Size of the gathered entries, in bytes, from which they are appended without waiting.
const FULL_BATCH_BYTES: usize = 8 << 10;

/// Sink that gathers the entries of a reply until they are appended to the log.
pub(super) struct EntryGatherer {
    batch: Batch,
    /// Number of the last piece of raw text.
    seq: u64,
    /// Number of re-asks, for the metadata of the end.
    reasks: u32,
    /// True if the reply is one to a re-ask.
    is_reask: bool,
    /// True if the reply was constrained to its contract.
    is_constrained: bool,
    /// Set once an event of the contract was emitted.
    has_event: bool,
    /// Set once text of the answer was emitted.
    has_answer: bool,
    /// Judgement of the reply, from its events and findings so far.
    appraisal: ReplyAppraisal,
    /// Raw reply so far, if it may have to be shown to the model; otherwise empty.
    pub(super) raw: String,
    /// Findings, if the reply may be discarded.
    pub(super) findings: Option<Vec<Finding>>,
    /// Set once the end event was emitted; nothing may follow it.
    has_ended: bool,
    /// Name and data of the end event, held until the state updates before it are written.
    end_event: Option<(&'static str, Vec<u8>)>,
}

impl Attempt {
    /// Creates an attempt whose entries follow those of the log. `previous` is the pipeline of a reply that
    /// called tools, which this one continues.
    pub(super) fn new(
        choice: &UpstreamChoice,
        attached_state: Option<&MessageState>,
        dialect: &str,
        previous: Option<&Pipeline>,
        AttemptSettings { reasks, is_reask, keeps_discarded, keeps_items, holds_all }: AttemptSettings,
        log: &RunLog,
    ) -> Attempt {
        let options = match attached_state {
            // Only for the first reply: a later reply takes over the state with the pipeline of the reply
            // before it.
            Some(state) if previous.is_none() => {
                let mut options = choice.options.clone();
                options.state = Some(state.attached.clone());
                Cow::Owned(options)
            }
            _ => Cow::Borrowed(&choice.options),
        };
        let new_pipeline = |dialect: &str| match previous {
            Some(previous) => previous.next_reply(dialect, &options),
            None => Pipeline::new(dialect, &options),
        };
        let pipeline = new_pipeline(dialect)
            .or_else(|_| new_pipeline("plain"))
            .expect("`plain` is in the table of dialects");
        Attempt {
            pipeline: pipeline.with_extensions(true).with_findings(true),
            gathered: EntryGatherer {
                batch: Batch::new(log.next_number()),
                seq: log.seq,
                reasks,
                is_reask,
                is_constrained: false,
                has_event: false,
                has_answer: false,
                appraisal: ReplyAppraisal::default(),
                raw: String::new(),
                findings: keeps_discarded.then(Vec::new),
                has_ended: false,
                end_event: None,
            },
            has_schema: choice.options.json_schema().is_some() || choice.options.tools.is_some(),
            checks_state_schema: attached_state.is_some_and(|state| state.attached.schema.is_some()),
            first_update_position: attached_state.map_or(0, |state| state.start),
            gathered_updates: 0,
            kept_items: keeps_items.then(Vec::new),
            constraint: ConstraintReport::default(),
            hold: if holds_all { HoldMode::All } else { choice.options.hold },
            may_deliver: false,
            usage: None,
            native_calls: Vec::new(),
            reasoning_budget: choice.options.limits.input,
            last_append: None,
            is_append_scheduled: false,
        }
    }

    /// Asks the model, and reads the reply until it ends or `stop` returns an end. Returns the end; `Err` if
    /// the log cannot be written any more.
    pub(super) async fn read_reply(
        &mut self,
        run: &MessageRun,
        choice: &UpstreamChoice,
        request: &ModelRequest,
        log: &mut RunLog,
        measures: &mut RunMeasures,
        mut stop: Pin<&mut impl Future<Output = InputEnd>>,
    ) -> Result<InputEnd, WriteOutcome> {
        // Boxed, so that the memory of the request is freed before the reply arrives.
        let stream_result = tokio::select! {
            stream_result = Box::pin(choice.upstream.open(request)) => stream_result,
            end = stop.as_mut() => return Ok(end),
        };
        let mut reply = match stream_result {
            Ok(reply) => reply,
            Err(failure) => return Ok(InputEnd::Failed(failure)),
        };
        self.note_constraint(reply.constraint().clone(), &choice.options);
        let mut items = Vec::with_capacity(4);
        let mut append_timer = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            {
                let mut next_items = std::pin::pin!(reply.next(&mut items));
                loop {
                    // Dropping the reply cancels the model call.
                    tokio::select! {
                        biased;
                        end = stop.as_mut() => return Ok(end),
                        () = next_items.as_mut() => break,
                        () = append_timer.as_mut(), if self.is_append_scheduled => {
                            self.append_gathered(log).await?;
                        }
                    }
                }
            }
            measures.record_items(&items);
            for item in items.drain(..) {
                if let Some(end) = self.process_item(item, choice, run) {
                    return Ok(end);
                }
            }
            if self.may_deliver && !self.gathered.batch.is_empty() {
                let may_append = self.last_append.is_none_or(|last| last.elapsed() >= APPEND_INTERVAL);
                if may_append || self.gathered.batch.body().len() >= FULL_BATCH_BYTES {
                    self.append_gathered(log).await?;
                } else if let (false, Some(last)) = (self.is_append_scheduled, self.last_append) {
                    append_timer.as_mut().reset((last + APPEND_INTERVAL).into());
                    self.is_append_scheduled = true;
                }
            }
        }
    }

    /// Notes what became of the constraint. Forms that the server refused are told in a notice.
    pub(super) fn note_constraint(&mut self, report: ConstraintReport, options: &Options) {
        self.gathered.is_constrained = report.form.is_some();
        if !report.refused.is_empty() {
            let names: Vec<&str> = report.refused.iter().map(|form| form.name()).collect();
            let message = options.texts.constraint_refusal_text(report.form.is_some());
            self.insert_event(Notice {
                code: "constraint_refused".into(),
                message: message.to_owned(),
                reference: Some(names.join(", ")),
            });
        }
        self.constraint = report;
    }

    /// Processes one item. Returns the end of the reply if the item ends it.
    fn process_item(
        &mut self,
        item: ReplyItem,
        choice: &UpstreamChoice,
        run: &MessageRun,
    ) -> Option<InputEnd> {
        let is_content = !matches!(item, ReplyItem::Usage(_) | ReplyItem::End(_));
        if let (Some(kept_items), true) = (&mut self.kept_items, is_content) {
            match (kept_items.last_mut(), &item) {
                (Some(ReplyItem::Text(kept_text)), ReplyItem::Text(text))
                | (Some(ReplyItem::Reasoning(kept_text)), ReplyItem::Reasoning(text)) => {
                    kept_text.push_str(text);
                }
                _ => kept_items.push(item.clone()),
            }
        }
        match item {
            ReplyItem::Text(text) => self.process_text(&text, run),
            ReplyItem::Reasoning(text) if text.len() > self.reasoning_budget => {
                let limit = choice.options.limits.input;
                let message =
                    format!("the reasoning is longer than `limits.input`, {}", format_count(limit, "byte"));
                return Some(InputEnd::Failed(new_failure("input_too_large", message, false)));
            }
            ReplyItem::Reasoning(text) => {
                self.reasoning_budget -= text.len();
                self.gathered.batch.push_reasoning(&text);
                self.pipeline.push_reasoning(&text, &mut self.gathered);
                self.gather_updates();
            }
            ReplyItem::Call(mut call) => {
                self.pipeline.push_call(&call.function.name, &call.function.arguments, &mut self.gathered);
                if call.id.is_empty() {
                    call.id = format!("call_{}", self.native_calls.len() + 1);
                }
                self.native_calls.push(call);
                self.gather_updates();
            }
            ReplyItem::Usage(usage) => self.usage = Some(usage),
            ReplyItem::End(end) => return Some(end),
        }
        if self.gathered.has_ended {
            // The pipeline ended a reply that exceeds the limit; the rest of that reply is ignored.
            return Some(InputEnd::Finished(FinishReason::Length));
        }
        if !self.may_deliver && self.can_deliver(run) {
            // A reply that may have been delivered is not re-asked, so its items are no longer needed.
            (self.may_deliver, self.kept_items) = (true, None);
        }
        None
    }

    /// Reads a reply again from the items that an earlier attempt kept.
    pub(super) fn replay(&mut self, kept_items: Vec<ReplyItem>, choice: &UpstreamChoice, run: &MessageRun) {
        for item in kept_items {
            self.process_item(item, choice, run);
        }
    }

    /// Returns the kept items, none if the attempt keeps no items, and what became of the constraint.
    pub(super) fn into_kept_items(self) -> (Vec<ReplyItem>, ConstraintReport) {
        (self.kept_items.unwrap_or_default(), self.constraint)
    }

    /// Returns `true` if the reply is one to a re-ask.
    pub(super) fn is_reask(&self) -> bool {
        self.gathered.is_reask
    }

    fn process_text(&mut self, text: &str, run: &MessageRun) {
        self.gathered.seq += 1;
        self.gathered.batch.push_raw(self.gathered.seq, text);
        if self.gathered.findings.is_some() || run.offer.is_some() {
            self.gathered.raw.push_str(text);
        }
        if self.checks_state_schema {
            // Each operation may scan the whole state.
            cpu_pool::run_in_place(|| self.pipeline.push_str(text, &mut self.gathered));
        } else {
            self.pipeline.push_str(text, &mut self.gathered);
        }
        self.gather_updates();
    }

    /// Gathers the entries of new state updates, whose events are gathered already; then the entry of the end
    /// event, if the reply has ended.
    fn gather_updates(&mut self) {
        let applied_updates = &self.pipeline.outcome().applied_updates;
        for update in &applied_updates[self.gathered_updates.min(applied_updates.len())..] {
            record::add_state_update(self.first_update_position, update, &mut self.gathered.batch);
        }
        self.gathered_updates = applied_updates.len();
        if let Some((name, data)) = self.gathered.end_event.take() {
            self.gathered.batch.push_event(name, |out| out.extend_from_slice(&data));
        }
    }

    /// Returns `true` if the reply is checked against a schema at its end.
    pub(super) fn has_schema(&self) -> bool {
        self.has_schema
    }

    /// Returns `true` if the content so far may be delivered. Raw text alone waits for an event, so that an
    /// attempt without events can be discarded; clients of the legacy protocol see raw text at once, unless
    /// unusable replies are to be re-asked.
    fn can_deliver(&self, run: &MessageRun) -> bool {
        match self.hold {
            HoldMode::None => self.gathered.has_event || (run.is_legacy && run.max_reasks == 0),
            HoldMode::UntilFinal => self.gathered.has_answer,
            HoldMode::All => false,
        }
    }

    /// Ends the reply in the pipeline, with the token counts of all calls so far.
    pub(super) fn finish(&mut self, end: &InputEnd, usage: Value) {
        self.pipeline.set_usage(usage);
        self.pipeline.finish(end, &mut self.gathered);
        self.gather_updates();
    }

    /// Appends the gathered entries to the log.
    pub(super) async fn append_gathered(&mut self, log: &mut RunLog) -> Result<(), WriteOutcome> {
        let batch = self.take_gathered(log);
        if batch.is_empty() {
            return Ok(());
        }
        self.last_append = Some(Instant::now());
        self.is_append_scheduled = false;
        log.append(batch).await
    }

    /// Takes the gathered entries, which the caller appends to the log.
    pub(super) fn take_gathered(&mut self, log: &mut RunLog) -> Batch {
        log.seq = self.gathered.seq;
        let next_entry = self.gathered.batch.last() + 1;
        std::mem::replace(&mut self.gathered.batch, Batch::new(next_entry))
    }

    /// Returns the worth of the ended reply.
    pub(super) fn worth(&self, end: &InputEnd) -> ReplyWorth {
        crate::upstream::reply_worth(&self.gathered.appraisal, end)
    }

    /// Returns `true` if the fallback text replaced the reply, the reply was not read in the requested
    /// format, or it broke a rule beyond repair.
    pub(super) fn is_unusable(&self) -> bool {
        self.gathered.appraisal.worth() < ReplyWorth::Usable
    }

    /// Returns `true` if the reply is unusable and nothing of it can have been delivered.
    pub(super) fn can_reask(&self) -> bool {
        !self.may_deliver && self.is_unusable()
    }

    /// Builds the re-ask messages: the reply and its findings (P-034).
    pub(super) fn reask_messages(&self, options: &Options) -> Vec<Message> {
        reask_messages(&self.gathered.raw, self.gathered.findings.iter().flatten(), options.texts.language)
    }

    /// Discards the reply, but keeps it in the record (P-034) with an entry that is never sent to clients.
    /// `reask` is the number of the re-ask that follows, if any: readers get a status event about it.
    pub(super) async fn discard(
        &mut self,
        end: &InputEnd,
        reask: Option<u32>,
        log: &mut RunLog,
    ) -> Result<(), WriteOutcome> {
        let mut batch = Batch::new(log.next_number());
        self.add_attempt_entry(json!({}), end, &mut batch);
        if let Some(reask) = reask {
            let status = json!({"state": "reasking", "reask": reask});
            record::push_json(&mut batch, "status", &status);
        }
        log.append(batch).await
    }

    /// Adds the log entry of a discarded attempt. `entry` has the additional fields of the entry.
    pub(super) fn add_attempt_entry(&self, mut entry: Value, end: &InputEnd, batch: &mut Batch) {
        (entry["raw"], entry["findings"]) = (json!(self.gathered.raw), json!(self.gathered.findings));
        match end {
            InputEnd::Failed(failure) => entry["error"] = json!(failure),
            InputEnd::Finished(reason) | InputEnd::Incomplete(reason) => {
                entry["finish_reason"] = json!(reason)
            }
            _ => {}
        }
        record::push_json(batch, record::ATTEMPT_ENTRY, &entry);
    }

    /// Returns the tool calls of the reply whose results are still missing.
    pub(super) fn calls(&self) -> &[ToolCall] {
        self.pipeline.pending_calls()
    }

    /// Emits an event that does not come from the model.
    pub(super) fn insert_event(&mut self, extension: impl Into<Extension>) {
        self.pipeline.insert(extension, &mut self.gathered);
    }

    /// Gathers a status event for current readers; the record does not keep it.
    pub(super) fn push_status(&mut self, status: &Value) {
        record::push_json(&mut self.gathered.batch, "status", status);
    }

    /// Gathers the entry with the tool results as text; returns the reply as a message for the model.
    pub(super) fn add_results_entry(
        &mut self,
        calls: &[ToolCall],
        results_text: &str,
        history_writer: &HistoryWriter,
    ) -> Message {
        let EntryGatherer { raw, batch, .. } = &mut self.gathered;
        let text = record::add_tool_results(raw, calls, results_text, history_writer, batch);
        let content = (!text.is_empty()).then_some(Content::Text(text));
        Message { content, tool_calls: self.native_calls.clone(), ..Message::new("assistant", "") }
    }

    /// Returns the native calls. Each has its index among the calls of the reply, or the reason why it is not
    /// one of them.
    pub(super) fn native_calls(&self) -> impl Iterator<Item = (&NativeCall, &Result<usize, String>)> {
        self.native_calls.iter().zip(&self.pipeline.outcome().native_calls)
    }

    /// Ends the raw text with a line break, so that the next reply starts on a new line.
    pub(super) fn push_line_break(&mut self) {
        let gathered = &mut self.gathered;
        if !gathered.raw.ends_with('\n') {
            gathered.seq += 1;
            gathered.batch.push_raw(gathered.seq, "\n");
        }
    }

    /// Ends the stream after tool calls, if no further reply follows them.
    pub(super) fn abandon(&mut self, end: &InputEnd) {
        self.pipeline.abandon(end, &mut self.gathered);
        self.gather_updates();
    }

    /// Returns the pipeline that the next reply continues.
    pub(super) fn into_pipeline(self) -> Pipeline {
        self.pipeline
    }
}

impl Sink for EntryGatherer {
    fn event(&mut self, event: Event<'_>) {
        self.has_event |= event.kind() == EventKind::Contract;
        self.has_answer |= matches!(event, Event::FinalDelta { .. });
        self.appraisal.observe_event(&event);
        self.has_ended |= matches!(event, Event::Completed(_) | Event::Error(_));
        let completed_event;
        let event = match event {
            Event::Completed(completed) => {
                let mut completed = completed;
                let metadata = &mut completed.metadata;
                metadata.reasks = self.reasks;
                metadata.answer_yield = Some(metadata.step(self.is_constrained, self.is_reask));
                completed_event = Event::Completed(completed);
                &completed_event
            }
            ref event => event,
        };
        if self.has_ended {
            let mut data = Vec::new();
            tambour::encode::write_data(event, &mut data);
            self.end_event = Some((event.name(), data));
        } else {
            record::push_event(&mut self.batch, event);
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.appraisal.observe_finding(&finding);
        if let Some(findings) = &mut self.findings {
            findings.push(finding);
        }
    }
}
