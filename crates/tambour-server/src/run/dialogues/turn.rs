//! One turn of a dialogue: an input, and all steps until the dialogue waits again.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tambour::event::{Extension, Failure, FinishReason, Notice};
use tambour::texts::format_count;
use tambour::{InputEnd, Options};
use tambour_prompt::dialogue::{
    Dialogue, DialogueEnv, DialogueRequest, DialogueSettings, DialogueTurn, InputRefusal, ModelCall,
    ModelReply, ReplyKind,
};
use tambour_prompt::script::{Script, load};

use super::templates::OwnerTemplates;
use super::turn_log::TurnLog;
use super::turn_quota::TurnQuota;
use super::turn_record::{self, TurnRecord};
use crate::base::cpu_pool::run_in_place;
use crate::base::fail;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::record::figures::{self, ReplyEnd};
use crate::record::spending::UpstreamSpending;
use crate::run::engine::RunEngine;
use crate::run::keys::Caller;
use crate::run::live_run::LiveRun;
use crate::store::{
    CallRecord, DialogueProgress, DialogueRow, Figures, InputClaim, StoreError, WriteOutcome,
};
use crate::telemetry::TraceSpan;
use crate::upstream::{Message, ModelRequest, ReplyItem, Upstream, new_failure};

/// Most bytes of a script parsed on the worker.
const INLINE_SCRIPT_BYTES: usize = 4 << 10;
/// Milliseconds after which a round counts as slow (S-102).
const SLOW_ROUND_MS: u64 = 3000;

/// Input of a turn.
pub(crate) enum TurnInput {
    /// Text of the user, if any.
    Text(Option<String>),
    /// Answer of the client to a request.
    Answer {
        /// Id of the request.
        call_id: String,
        /// Result.
        value: Value,
    },
}

/// Client of a turn, with its cancellation.
#[derive(Clone, Copy)]
pub(crate) struct TurnClient<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) live_run: &'a LiveRun,
}

/// Code of a cancelled turn's failure.
pub(super) const CANCELLED: &str = "cancelled";

/// Turn in progress.
struct RunningDialogue<'a> {
    app: &'a RunEngine,
    row: DialogueRow,
    client: TurnClient<'a>,
    /// Tracing span of the turn.
    span: &'a TraceSpan,
    script: Script,
    prompts: OwnerTemplates,
    settings: DialogueSettings,
    options: Options,
    upstream: Arc<Upstream>,
    dialogue: Dialogue,
    /// Record of the turn; absent when a dialogue of an older version continues an input it had taken.
    record: Option<TurnRecord>,
    /// Number of notices that are in a record.
    recorded_notices: usize,
    /// Records not stored yet.
    pending_records: Vec<CallRecord>,
    /// Figures of calls that are over, which go with them.
    figures: Vec<Figures>,
}

/// Result of one model call.
struct CallOutcome {
    reply: Result<ModelReply, Failure>,
    is_delivered: bool,
    raw: String,
    /// Finish reason, if the reply ended.
    finish: Option<FinishReason>,
    usage: Value,
    /// Set when the service refused the schema.
    is_unformatted: bool,
    first_text_ms: Option<u64>,
    elapsed_ms: u64,
}

/// Loads the machine of a stored dialogue, and its script.
pub(crate) fn load_machine(engine: &RunEngine, row: &DialogueRow) -> Result<(Script, Dialogue), Problem> {
    let damage_error = |what: &str| {
        tracing::error!(dialogue = row.id, what, "a stored dialogue cannot be read");
        let detail = format!("the {what} of the dialogue cannot be read");
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
    };
    let load_script = || load(&row.script, &engine.loaded_config().config.limits).script;
    // A long script is parsed without blocking other tasks.
    let script =
        if row.script.len() > INLINE_SCRIPT_BYTES { run_in_place(load_script) } else { load_script() };
    let script = script.ok_or_else(|| damage_error("script"))?;
    let dialogue = serde_json::from_str(&row.state).map_err(|_| damage_error("state"))?;
    Ok((script, dialogue))
}

/// Takes an input and runs until the dialogue waits; without one, continues the input taken before the server
/// stopped. The caller holds the dialogue's turn.
pub(crate) async fn run_turn(
    engine: &RunEngine,
    row: DialogueRow,
    client: TurnClient<'_>,
    input: (Option<TurnInput>, TurnQuota),
    claim: Option<&InputClaim>,
    turn_log: &mut TurnLog,
) -> Result<DialogueTurn, Problem> {
    let span = engine.traces.start_turn(&client.caller.span, &row.id);
    let turn = drive_turn(engine, row, (client, &span), input, claim, turn_log).await;
    let has_failed = match &turn {
        Ok(turn) => turn.error.as_ref().map(|failure| &*failure.code),
        Err(problem) => Some(problem.code()),
    };
    if let Some(code) = has_failed {
        span.fail(code);
    }
    span.end(if has_failed.is_none() { "completed" } else { "failed" });
    turn
}

async fn drive_turn(
    engine: &RunEngine,
    row: DialogueRow,
    (client, span): (TurnClient<'_>, &TraceSpan),
    (input, admission): (Option<TurnInput>, TurnQuota),
    claim: Option<&InputClaim>,
    turn_log: &mut TurnLog,
) -> Result<DialogueTurn, Problem> {
    let (script, dialogue) = load_machine(engine, &row)?;
    let prompts = OwnerTemplates::load(engine, &row.owner).await?;
    let options = engine.reading_defaults().options;
    let mut settings = DialogueSettings::default();
    settings.texts = options.texts.clone();
    let loaded_config = engine.loaded_config();
    let upstream = loaded_config
        .upstream(None)
        .ok_or_else(|| Problem::invalid("unknown_upstream", "no upstream is configured"))?;
    let mut running_dialogue = RunningDialogue {
        app: engine,
        row,
        client,
        span,
        script,
        prompts,
        settings,
        options,
        upstream,
        dialogue,
        record: None,
        recorded_notices: 0,
        pending_records: Vec::new(),
        figures: Vec::new(),
    };
    if let Some(input) = input {
        let record = TurnRecord::begin(&client.live_run.id, &input, &running_dialogue.row.state);
        running_dialogue.take_input(input)?;
        running_dialogue.update_row();
        engine
            .store
            .take_input(&running_dialogue.row, claim, &[CallRecord::Turn(json!(record).to_string())])
            .await?;
        running_dialogue.record = Some(record);
    } else {
        running_dialogue.record = turn_record::load_last_turn(engine, &running_dialogue.row.id).await?;
    }
    admission.spend().await;
    let requests = match running_dialogue.run_until_waiting(turn_log).await {
        Ok(requests) => requests,
        Err(problem) => {
            // Its models were asked, whatever becomes of the dialogue.
            engine.add_figures(&running_dialogue.figures).await;
            return Err(problem);
        }
    };
    let turn = running_dialogue.dialogue.turn(&running_dialogue.script);
    running_dialogue.update_row();
    if let Some(mut record) = running_dialogue.record.take() {
        record.end(&turn);
        running_dialogue.pending_records.push(CallRecord::TurnOver(json!(record).to_string()));
    }
    let claim = claim.map(|claim| (claim.clone(), json!(turn).to_string()));
    let (DialogueRow { status, state, changed: changed_at, .. }, mut records) =
        (running_dialogue.row, running_dialogue.pending_records);
    records.push(CallRecord::Figures(running_dialogue.figures.clone()));
    turn_log.close(&turn, &requests, &running_dialogue.options);
    let outcome = match &turn.error {
        None => "completed",
        Some(failure) if failure.code == CANCELLED => "cancelled",
        Some(_) => "failed",
    };
    let written = turn_log
        .finish(outcome, Some(DialogueProgress { status, state, changed: changed_at, records, once: claim }))
        .await;
    if let Err(written) = written {
        if written == WriteOutcome::Fenced {
            engine.add_figures(&running_dialogue.figures).await;
        }
        return Err(log_problem(written));
    }
    Ok(turn)
}

/// Returns the problem of a turn whose log cannot be written.
pub(crate) fn log_problem(written: WriteOutcome) -> Problem {
    match written {
        WriteOutcome::Fenced => Problem::not_found("the dialogue is deleted"),
        _ => StoreError::Closed.into(),
    }
}

fn refusal_problem(refusal: &InputRefusal) -> Problem {
    match refusal {
        InputRefusal::AnswerExpected { call_id } => {
            let detail = format!("the dialogue waits for the answer to `{call_id}`");
            Problem::conflict(refusal.code(), detail).with("call_id", call_id.as_str())
        }
        _ => Problem::conflict(refusal.code(), "the dialogue is not waiting for this answer"),
    }
}

impl RunningDialogue<'_> {
    fn with_env<T>(&mut self, change: impl FnOnce(&mut Dialogue, &DialogueEnv<'_>) -> T) -> T {
        let RunningDialogue { script, prompts, settings, dialogue, .. } = self;
        let now = jiff::Timestamp::now().as_millisecond();
        change(dialogue, &DialogueEnv { script, templates: prompts, now, settings, hooks: &() })
    }

    fn take_input(&mut self, input: TurnInput) -> Result<(), Problem> {
        let result = self.with_env(|dialogue, env| match input {
            TurnInput::Text(text) => dialogue.input(text.as_deref(), env),
            TurnInput::Answer { call_id, value } => dialogue.answer(&call_id, value, env),
        });
        result.map_err(|refusal| refusal_problem(&refusal))
    }

    /// Writes the state into the row.
    fn update_row(&mut self) {
        self.row.state = json!(self.dialogue).to_string();
        self.row.status = json!(self.dialogue.status()).as_str().unwrap_or_default().to_owned();
        self.row.changed = ids::now();
    }

    /// Stores the state with records of calls.
    async fn store_step(&mut self, records: &[CallRecord]) -> Result<(), StoreError> {
        self.update_row();
        self.app.store.step_dialogue(&self.row, records).await
    }

    /// Returns the notices of the turn that are in no record yet.
    fn take_notices(&mut self) -> Vec<Notice> {
        let all = self.dialogue.turn(&self.script).notices;
        let new = all.get(self.recorded_notices..).unwrap_or_default().to_vec();
        self.recorded_notices = all.len();
        new
    }

    /// Runs the dialogue until it waits; returns its requests to the client.
    async fn run_until_waiting(&mut self, turn_log: &mut TurnLog) -> Result<Vec<Extension>, Problem> {
        let mut requests = Vec::new();
        loop {
            match self.with_env(Dialogue::next) {
                DialogueRequest::Call(call) => {
                    // Stored before the model is asked: after a crash the round is asked again and has its
                    // record.
                    let mut record = self.call_record(&call);
                    let mut records = std::mem::take(&mut self.pending_records);
                    if !records.is_empty() {
                        // Text of the last round is on disk before the dialogue has it.
                        turn_log.wait_settled().await.map_err(log_problem)?;
                    }
                    records.push(CallRecord::New(record.to_string()));
                    records.push(CallRecord::Figures(self.figures.clone()));
                    self.store_step(&records).await?;
                    self.figures.clear();
                    self.run_call(&call, &mut record, turn_log).await;
                    turn_log.flush().await.map_err(log_problem)?;
                    // Stored together with what follows: the next step, or the end of the turn.
                    self.pending_records.push(CallRecord::Over(record.to_string()));
                }
                DialogueRequest::Event(event) => requests.push(*event),
                _ => break,
            }
        }
        // Notices after the last call get a record of their own.
        let notices = self.take_notices();
        if !notices.is_empty() {
            let path = self.dialogue.position(&self.script).map(|position| position.path);
            let record = json!({
                "created": ids::now(), "turn": self.record.as_ref().map(|record| &record.turn),
                "status": "completed", "path": path, "notices": notices,
            });
            self.pending_records.push(CallRecord::New(record.to_string()));
        }
        Ok(requests)
    }

    /// Builds the model request of a call.
    fn call_request(&self, call: &ModelCall) -> ModelRequest {
        let messages = call.messages.iter();
        let messages = messages.map(|message| Message::new(&message.role, message.content.clone()));
        ModelRequest {
            messages: messages.collect(),
            span: self.span.clone(),
            dialect: call.kind.name().to_owned(),
            round: matches!(call.kind, ReplyKind::Say { .. })
                .then_some((call.round, self.options.texts.language)),
            max_reply_bytes: Some(self.options.limits.input),
            temperature: Some(call.temperature),
            max_tokens: Some(call.max_tokens),
            response_format: call.schema(&self.options).map(|schema| response_format(&schema)),
            ..ModelRequest::default()
        }
    }

    /// Builds the record of a call that begins, for the trace.
    fn call_record(&mut self, call: &ModelCall) -> Value {
        let request = self.call_request(call);
        json!({
            "created": ids::now(),
            "turn": self.record.as_ref().map(|record| &record.turn),
            "status": "running",
            "action_type": call.kind.name(),
            "path": call.path,
            "round": call.round,
            "max_rounds": call.max_rounds,
            "attempt": call.attempt,
            "upstream": self.upstream.name(),
            "model": self.upstream.model(&request),
            "parameters": {
                "temperature": call.temperature,
                "max_tokens": call.max_tokens,
                "response_format": request.response_format,
            },
            "template_id": call.template_id,
            "template_hash": call.template_hash,
            "warnings": call.warnings,
            "notices": self.take_notices(),
            "prompt": call.messages,
        })
    }

    /// Asks the model and applies its reply. The result is added to the record.
    async fn run_call(&mut self, call: &ModelCall, record: &mut Value, turn_log: &mut TurnLog) {
        let CallOutcome {
            reply,
            is_delivered,
            raw,
            finish,
            usage,
            is_unformatted,
            first_text_ms,
            elapsed_ms,
        } = self.read_reply(call, turn_log).await;
        fail::point("turn");
        self.app.charge_key(&self.client.caller.key, &self.row.owner, 0, &usage).await;
        // A round names no model.
        let spending = UpstreamSpending::from_call(&self.upstream, &ModelRequest::default(), &usage);
        if elapsed_ms > SLOW_ROUND_MS {
            Metrics::increment(&self.app.metrics.slow_rounds);
            tracing::warn!(
                dialogue = self.row.id,
                upstream = &*self.upstream.name,
                round = call.round,
                elapsed_ms,
                "a round took longer than 3 s"
            );
        }
        if is_unformatted {
            record["parameters"]["response_format"] = Value::Null;
        }
        record["raw"] = json!(raw);
        record["finish_reason"] = json!(finish);
        record["usage"] = usage;
        record["timings"] = json!({ "first_text_ms": first_text_ms, "total_ms": elapsed_ms });
        record["ended"] = json!(ids::now());
        record["status"] = "completed".into();
        match reply {
            Ok(mut reply) => {
                reply.is_delivered = is_delivered;
                let reply_result = self.with_env(|dialogue, env| dialogue.reply(call, &reply, env));
                if reply_result.asked_again || reply_result.failure.is_some() {
                    turn_log.discard()
                } else {
                    turn_log.release()
                }
                record["findings"] = json!(reply.findings);
                record["message"] = json!(reply.message);
                record["unreadable"] = json!(reply.unreadable_reason);
                record["delivered"] = json!(reply.is_delivered);
                record["asked_again"] = json!(reply_result.asked_again);
                record["exit_decision"] = json!(reply_result.exit_decision);
                record["assessment"] = json!(reply_result.assessment);
                record["assigned"] = json!(reply_result.assigned);
                if let Some(failure) = reply_result.failure {
                    record["status"] = "failed".into();
                    record["error"] = json!(failure);
                }
            }
            Err(failure) => {
                turn_log.release();
                record["status"] = "failed".into();
                record["error"] = json!(failure);
                self.with_env(|dialogue, env| dialogue.fail(failure, env));
            }
        }
        let end = ReplyEnd {
            status: match &record["error"]["code"] {
                Value::Null => "completed",
                code if code == CANCELLED => "cancelled",
                _ => "failed",
            },
            replaced: record["unreadable"] == true,
            first_text_ms,
            findings: record.get("findings"),
        };
        self.figures.extend(figures::reply_figures(
            &figures::current_hour(),
            &self.row.owner,
            &end,
            &[spending],
        ));
    }

    async fn read_reply(&self, call: &ModelCall, turn_log: &mut TurnLog) -> CallOutcome {
        let start_time = Instant::now();
        let mut request = self.call_request(call);
        let mut outcome = CallOutcome {
            reply: Err(interrupted_failure()),
            is_delivered: false,
            raw: String::new(),
            finish: None,
            usage: Value::Null,
            is_unformatted: false,
            first_text_ms: None,
            elapsed_ms: 0,
        };
        turn_log.next_reply();
        let mut reader = call.reader(&self.options).with_extensions(true).with_findings(true);
        let mut stop = std::pin::pin!(wait_stop(self.app, self.client));
        let stream = loop {
            let stream = tokio::select! {
                biased;
                end = stop.as_mut() => Err(end),
                stream = self.upstream.open(&request) => stream.map_err(InputEnd::Failed),
            };
            match stream {
                // A service that does not support schemas refuses the request at once; the prompt describes
                // the schema in words too.
                Err(InputEnd::Failed(failure)) if !failure.retryable && request.response_format.is_some() => {
                    request.response_format = None;
                    outcome.is_unformatted = true;
                }
                stream => break stream,
            }
        };
        match stream {
            Ok(mut reply) => {
                let (mut items, mut reasoning) = (Vec::new(), 0);
                let limit = self.options.limits.input;
                let end: InputEnd = 'reply: loop {
                    // Dropping the reply cancels the model call.
                    tokio::select! {
                        biased;
                        end = stop.as_mut() => break 'reply end,
                        () = reply.next(&mut items) => {}
                    }
                    for item in items.drain(..) {
                        match item {
                            ReplyItem::Text(text) => {
                                outcome.first_text_ms.get_or_insert_with(|| millis(start_time));
                                outcome.raw.push_str(&text);
                                reader.push(&text, turn_log);
                                if outcome.raw.len() > limit {
                                    break 'reply InputEnd::Failed(too_large_failure("reply", limit));
                                }
                            }
                            ReplyItem::Reasoning(text) => {
                                reasoning += text.len();
                                if reasoning > limit {
                                    break 'reply InputEnd::Failed(too_large_failure("reasoning", limit));
                                }
                                reader.push_reasoning(&text, turn_log);
                            }
                            // A round offers no tools.
                            ReplyItem::Call(_) => {}
                            ReplyItem::Usage(usage) => {
                                outcome.usage = usage.clone();
                                reader.set_usage(usage);
                            }
                            ReplyItem::End(end) => break 'reply end,
                        }
                    }
                    if turn_log.flush().await.is_err() {
                        // Nobody would see the rest; the turn no longer has an end of its own.
                        break 'reply InputEnd::Failed(interrupted_failure());
                    }
                };
                outcome.finish = match &end {
                    InputEnd::Finished(reason) | InputEnd::Incomplete(reason) => Some(*reason),
                    InputEnd::WithoutReason => Some(FinishReason::Length),
                    _ => None,
                };
                // Text that follows only now may replace an answer that is re-asked. A thought is shown to
                // nobody, whatever the turn said before it.
                outcome.is_delivered =
                    turn_log.hold_unless_answered() && !matches!(call.kind, ReplyKind::Think { .. });
                outcome.reply = if end == CANCELLED_END {
                    // The round does not count (S-065); a message that has begun is closed.
                    if turn_log.has_begun() {
                        let _ = reader.finish(&end, turn_log);
                    }
                    Err(cancelled_failure())
                } else if end.is_truncated()
                    && outcome.raw.trim().is_empty()
                    && !matches!(end, InputEnd::Failed(_))
                {
                    // The round was not answered (S-065).
                    Err(new_failure("upstream_closed", "the reply ended before there was any text", true))
                } else {
                    reader.finish(&end, turn_log)
                };
            }
            Err(InputEnd::Failed(failure)) => outcome.reply = Err(failure),
            Err(_) => outcome.reply = Err(cancelled_failure()),
        }
        outcome.elapsed_ms = millis(start_time);
        outcome
    }
}

/// End of a cancelled reply.
const CANCELLED_END: InputEnd = InputEnd::Finished(FinishReason::Cancelled);

/// Waits until the turn has to end, and returns its end: cancelled, key removed, or server stopped.
async fn wait_stop(engine: &RunEngine, client: TurnClient<'_>) -> InputEnd {
    tokio::select! {
        () = engine.run_abort.cancelled() => InputEnd::Failed(interrupted_failure()),
        () = client.caller.removal.cancelled() => InputEnd::Failed(key_removed_failure()),
        () = client.live_run.cancel.cancelled() => CANCELLED_END,
    }
}

/// Returns the failure of a call whose end the server did not see.
pub(crate) fn interrupted_call() -> Failure {
    new_failure("interrupted", "the server ended before the model call did", true)
}

/// Returns a schema in the form of a service's response format.
pub(crate) fn response_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "reply", "strict": true, "schema": schema } })
}

/// Returns the failure of a cancelled turn: the next input asks again.
fn cancelled_failure() -> Failure {
    new_failure(CANCELLED, "the turn was cancelled", true)
}

/// Returns the failure of a turn whose key was removed. Another key of the owner continues from there.
fn key_removed_failure() -> Failure {
    new_failure("unauthorized", "the key was removed", true)
}

fn too_large_failure(subject: &str, limit: usize) -> Failure {
    let limit = format_count(limit, "byte");
    new_failure("input_too_large", format!("the {subject} is longer than `limits.input`, {limit}"), false)
}

fn interrupted_failure() -> Failure {
    new_failure("interrupted", "the server stopped while the model was writing", true)
}

fn millis(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
