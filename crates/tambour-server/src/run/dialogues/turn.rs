//! One turn of a dialogue: an input, and all steps until the dialogue waits for the next input.

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
use crate::base::clock;
use crate::base::cpu_pool::run_in_place;
use crate::base::durations::millis;
use crate::base::fail;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::record::figures::{self, ReplyEnd};
use crate::record::interrupted_failure;
use crate::record::spending::UpstreamSpending;
use crate::run::engine::RunEngine;
use crate::run::keys::Caller;
use crate::run::live_run::LiveRun;
use crate::store::{
    DialogueProgress, DialogueRow, Figures, InputClaim, RecordChange, StoreError, WriteOutcome,
};
use crate::telemetry::TraceSpan;
use crate::upstream::{
    Constrain, Constraint, ConstraintForm, ConstraintForms, Message, ModelRequest, ReplyItem,
    UNCONSTRAINED_CODE, Upstream, new_failure,
};

/// Maximum length in bytes of a script that is parsed without moving other tasks to another thread.
const INLINE_SCRIPT_BYTES: usize = 4 << 10;
/// Milliseconds after which a round counts as slow (S-102).
const SLOW_ROUND_MS: u64 = 3000;

/// Input of a turn.
pub(crate) enum TurnInput {
    /// Text of the user, if any.
    Text(Option<String>),
    /// Answer of the client to a request of the dialogue.
    Answer {
        /// Id of the request.
        call_id: String,
        /// Answer, in the form that the request asks for.
        value: Value,
    },
}

/// Client of a turn, with the turn's live run, through which the turn is cancelled.
#[derive(Clone, Copy)]
pub(crate) struct TurnClient<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) live_run: &'a LiveRun,
}

/// Request for a turn.
pub(crate) struct TurnRequest<'a> {
    /// Input; without one, the turn continues the input that was taken before the server stopped.
    pub(crate) input: Option<TurnInput>,
    /// Request as counted against the key.
    pub(crate) quota: TurnQuota,
    /// Claim that makes an input run only once if the client repeats it.
    pub(crate) claim: Option<&'a InputClaim>,
}

/// Code of a cancelled turn's failure.
pub(super) const CANCELLED: &str = "cancelled";

/// Dialogue with a turn in progress.
struct RunningDialogue<'a> {
    engine: &'a RunEngine,
    /// Row of the dialogue in the store.
    row: DialogueRow,
    client: TurnClient<'a>,
    /// Tracing span of the turn.
    span: &'a TraceSpan,
    script: Script,
    prompts: OwnerTemplates,
    settings: DialogueSettings,
    options: Options,
    upstream: Arc<Upstream>,
    /// Machine of the dialogue.
    dialogue: Dialogue,
    /// Record of the turn; absent if the turn continues an input that an older version of the server took.
    record: Option<TurnRecord>,
    /// Number of the turn's notices (information for the user) that are in a record already.
    recorded_notices: usize,
    /// Records not stored yet, in order.
    pending_records: Vec<RecordChange>,
    /// Figures of calls that are over, not stored yet.
    figures: Vec<Figures>,
}

/// Result of one model call.
struct CallOutcome {
    reply: Result<ModelReply, Failure>,
    /// True if text of the answer has reached the log, so that the reply cannot be replaced.
    is_delivered: bool,
    /// Text of the reply as received.
    raw: String,
    /// Finish reason, if the reply ended.
    finish_reason: Option<FinishReason>,
    /// Token counts as the upstream reports them.
    usage: Value,
    /// True if the request with the schema failed, so that it was sent again without the schema.
    schema_refused: bool,
    /// Form of the constraint that was sent.
    constraint: Option<&'static str>,
    /// Milliseconds from the start of the call to the first text.
    first_text_ms: Option<u64>,
    /// Milliseconds from the start of the call to its end.
    elapsed_ms: u64,
}

/// Reads the script and the machine of a stored dialogue.
pub(crate) fn load_machine(engine: &RunEngine, row: &DialogueRow) -> Result<(Script, Dialogue), Problem> {
    let damage_error = |part: &str| {
        tracing::error!(dialogue = row.id, part, "a stored dialogue cannot be read");
        let detail = format!("the {part} of the dialogue cannot be read");
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

/// Takes an input and runs the dialogue until it waits for the next one. The caller has locked the dialogue.
pub(crate) async fn run_turn(
    engine: &RunEngine,
    row: DialogueRow,
    client: TurnClient<'_>,
    request: TurnRequest<'_>,
    turn_log: &mut TurnLog,
) -> Result<DialogueTurn, Problem> {
    let span = engine.traces.start_turn(&client.caller.span, &row.id);
    let turn = run_traced_turn(engine, row, client, &span, request, turn_log).await;
    let error_code = match &turn {
        Ok(turn) => turn.error.as_ref().map(|failure| &*failure.code),
        Err(problem) => Some(problem.code()),
    };
    if let Some(code) = error_code {
        span.fail(code);
    }
    span.end(if error_code.is_none() { "completed" } else { "failed" });
    turn
}

/// Does the work of `run_turn`, which ends the span.
async fn run_traced_turn(
    engine: &RunEngine,
    row: DialogueRow,
    client: TurnClient<'_>,
    span: &TraceSpan,
    TurnRequest { input, quota, claim }: TurnRequest<'_>,
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
        engine,
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
            .take_input(&running_dialogue.row, claim, &[RecordChange::Turn(json!(record).to_string())])
            .await?;
        running_dialogue.record = Some(record);
    } else {
        running_dialogue.record = turn_record::load_last_turn(engine, &running_dialogue.row.id).await?;
    }
    quota.spend().await;
    let requests = match running_dialogue.run_until_waiting(turn_log).await {
        Ok(requests) => requests,
        Err(problem) => {
            // The model calls were made and count, although the turn failed.
            engine.add_figures(&running_dialogue.figures).await;
            return Err(problem);
        }
    };
    let turn = running_dialogue.dialogue.turn(&running_dialogue.script);
    running_dialogue.update_row();
    if let Some(mut record) = running_dialogue.record.take() {
        record.end(&turn);
        running_dialogue.pending_records.push(RecordChange::TurnOver(json!(record).to_string()));
    }
    let claim = claim.map(|claim| (claim.clone(), json!(turn).to_string()));
    let (DialogueRow { status: dialogue_status, state, changed: changed_at, .. }, mut records) =
        (running_dialogue.row, running_dialogue.pending_records);
    records.push(RecordChange::Figures(running_dialogue.figures.clone()));
    turn_log.close(&turn, &requests, &running_dialogue.options);
    let turn_status = match &turn.error {
        None => "completed",
        Some(failure) if failure.code == CANCELLED => "cancelled",
        Some(_) => "failed",
    };
    let progress =
        DialogueProgress { status: dialogue_status, state, changed: changed_at, records, once: claim };
    if let Err(write_outcome) = turn_log.finish(turn_status, Some(progress)).await {
        if write_outcome == WriteOutcome::Fenced {
            // The dialogue was deleted with its records; the figures stay.
            engine.add_figures(&running_dialogue.figures).await;
        }
        return Err(log_problem(write_outcome));
    }
    Ok(turn)
}

/// Returns the problem of a turn whose log cannot be written.
pub(crate) fn log_problem(write_outcome: WriteOutcome) -> Problem {
    match write_outcome {
        WriteOutcome::Fenced => Problem::not_found("the dialogue was deleted"),
        _ => StoreError::Closed.into(),
    }
}

/// Returns the problem of an input that the dialogue does not wait for.
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
    /// Runs a change of the machine, with the environment that it needs.
    fn with_env<T>(&mut self, change: impl FnOnce(&mut Dialogue, &DialogueEnv<'_>) -> T) -> T {
        let RunningDialogue { script, prompts, settings, dialogue, .. } = self;
        let now = clock::now().as_millisecond();
        change(dialogue, &DialogueEnv { script, templates: prompts, now, settings, hooks: &() })
    }

    /// Passes an input to the machine; fails if the machine waits for a different input.
    fn take_input(&mut self, input: TurnInput) -> Result<(), Problem> {
        let result = self.with_env(|dialogue, env| match input {
            TurnInput::Text(text) => dialogue.input(text.as_deref(), env),
            TurnInput::Answer { call_id, value } => dialogue.answer(&call_id, value, env),
        });
        result.map_err(|refusal| refusal_problem(&refusal))
    }

    /// Writes the state of the machine into the row.
    fn update_row(&mut self) {
        self.row.state = json!(self.dialogue).to_string();
        self.row.status = json!(self.dialogue.status()).as_str().unwrap_or_default().to_owned();
        self.row.changed = ids::now();
    }

    /// Stores the state of the machine, with these records.
    async fn store_step(&mut self, records: &[RecordChange]) -> Result<(), StoreError> {
        self.update_row();
        self.engine.store.step_dialogue(&self.row, records).await
    }

    /// Returns the notices of the turn that are in no record yet; they count as recorded from now on.
    fn take_notices(&mut self) -> Vec<Notice> {
        let notices = self.dialogue.turn(&self.script).notices;
        let new_notices = notices.get(self.recorded_notices..).unwrap_or_default().to_vec();
        self.recorded_notices = notices.len();
        new_notices
    }

    /// Runs the dialogue until it waits; returns its requests to the client, in order.
    async fn run_until_waiting(&mut self, turn_log: &mut TurnLog) -> Result<Vec<Extension>, Problem> {
        let mut requests = Vec::new();
        loop {
            match self.with_env(Dialogue::next) {
                DialogueRequest::Call(call) => {
                    // Stored before the model is asked: after a crash, the model is asked again and the
                    // interrupted call has its record.
                    let mut record = self.call_record(&call);
                    let mut records = std::mem::take(&mut self.pending_records);
                    if !records.is_empty() {
                        // The log of the last reply is stored before the state that follows from it.
                        turn_log.wait_settled().await.map_err(log_problem)?;
                    }
                    records.push(RecordChange::New(record.to_string()));
                    records.push(RecordChange::Figures(self.figures.clone()));
                    self.store_step(&records).await?;
                    self.figures.clear();
                    self.run_call(&call, &mut record, turn_log).await;
                    turn_log.flush().await.map_err(log_problem)?;
                    // Stored together with what follows: the next step, or the end of the turn.
                    self.pending_records.push(RecordChange::Over(record.to_string()));
                }
                DialogueRequest::Event(event) => requests.push(*event),
                _ => break,
            }
        }
        // Notices since the last call get a separate record.
        let notices = self.take_notices();
        if !notices.is_empty() {
            let path = self.dialogue.position(&self.script).map(|position| position.path);
            let record = json!({
                "created": ids::now(), "turn": self.record.as_ref().map(|record| &record.turn),
                "status": "completed", "path": path, "notices": notices,
            });
            self.pending_records.push(RecordChange::New(record.to_string()));
        }
        Ok(requests)
    }

    /// Builds the model request of a call, without its constraint.
    fn call_request(&self, call: &ModelCall) -> ModelRequest {
        let messages = call.messages.iter();
        let messages = messages.map(|message| Message::new(&message.role, message.content.clone()));
        let schema = call.schema(&self.options);
        ModelRequest {
            messages: messages.collect(),
            span: self.span.clone(),
            dialect: call.kind.name().to_owned(),
            round: matches!(call.kind, ReplyKind::Say { .. })
                .then_some((call.round, self.options.texts.language)),
            max_reply_bytes: Some(self.options.limits.input),
            temperature: Some(call.temperature),
            max_tokens: Some(call.max_tokens),
            response_format: schema.as_ref().map(response_format),
            owner: self.row.owner.as_str().into(),
            ..ModelRequest::default()
        }
    }

    /// Returns the contract of a call to send along: the schema of a question, or that of an `ai_say` round; `None`
    /// if the reply is free text, or the upstream is not to get it.
    ///
    /// # Errors
    /// The reply must be constrained, and the server is too busy to write the contract.
    async fn constraint(&self, call: &ModelCall) -> Result<Option<Constraint>, Problem> {
        let is_required = match self.upstream.constrain().unwrap_or_default() {
            Constrain::Off => return Ok(None),
            Constrain::Auto => false,
            Constrain::Required => true,
        };
        let forms = match (call.schema(&self.options), &call.kind) {
            (Some(schema), _) => Arc::new(ConstraintForms::new(vec![(ConstraintForm::JsonSchema, schema)])),
            (None, ReplyKind::Say { .. }) => match self.round_forms(call).await {
                Ok(forms) => forms,
                Err(problem) if is_required => return Err(problem),
                Err(problem) => {
                    tracing::debug!(detail = problem.detail(), "a contract is not sent along");
                    return Ok(None);
                }
            },
            (None, _) => return Ok(None),
        };
        Ok(Some(Constraint { is_required, forms, replaces_format: true }))
    }

    /// Returns the forms of the contract of an `ai_say` round. Without forms, a reply that must be constrained is an
    /// error of the upstream.
    async fn round_forms(&self, call: &ModelCall) -> Result<Arc<ConstraintForms>, Problem> {
        let Ok(entry) = tambour::dialect::find_dialect(call.kind.name()) else { return Ok(Arc::default()) };
        // Limits and texts are all that differs from the default options.
        let texts = format!("{:?}", self.options.texts);
        let content = json!(["dialogue", entry.name, self.options.limits, texts]);
        let pool = (&self.engine.cpu_pool, &*self.row.owner);
        let forms = self.engine.constraint_forms.forms(pool, &content, entry, self.options.clone()).await?;
        Ok(forms.unwrap_or_default())
    }

    /// Builds the record of a call that begins; clients see it in the trace of the dialogue.
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

    /// Asks the model, passes its reply to the machine, and adds the result to the record.
    async fn run_call(&mut self, call: &ModelCall, record: &mut Value, turn_log: &mut TurnLog) {
        let CallOutcome {
            reply,
            is_delivered,
            raw,
            finish_reason,
            usage,
            schema_refused,
            constraint,
            first_text_ms,
            elapsed_ms,
        } = self.read_reply(call, turn_log).await;
        fail::point("turn");
        self.engine.charge_key(&self.client.caller.key, &self.row.owner, 0, &usage).await;
        // Model calls of dialogues name no model, so the price is that of the upstream's default model.
        let spending = UpstreamSpending::from_call(&self.upstream, &ModelRequest::default(), &usage);
        if elapsed_ms > SLOW_ROUND_MS {
            Metrics::increment(&self.engine.metrics.slow_rounds);
            tracing::warn!(
                dialogue = self.row.id,
                upstream = self.upstream.name(),
                round = call.round,
                elapsed_ms,
                "a round took longer than 3 s"
            );
        }
        if schema_refused || constraint.is_some() {
            record["parameters"]["response_format"] = Value::Null;
        }
        record["parameters"]["constraint"] = json!(constraint);
        record["raw"] = json!(raw);
        record["finish_reason"] = json!(finish_reason);
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
            is_replaced: !record["unreadable"].is_null(),
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

    /// Asks the model and reads its reply into the log, where the last events may be held back.
    async fn read_reply(&self, call: &ModelCall, turn_log: &mut TurnLog) -> CallOutcome {
        let start_time = Instant::now();
        let mut request = self.call_request(call);
        let mut outcome = CallOutcome {
            reply: Err(interrupted_failure()),
            is_delivered: false,
            raw: String::new(),
            finish_reason: None,
            usage: Value::Null,
            schema_refused: false,
            constraint: None,
            first_text_ms: None,
            elapsed_ms: 0,
        };
        turn_log.next_reply();
        let mut reader = call.reader(&self.options).with_extensions(true).with_findings(true);
        let mut stop = std::pin::pin!(wait_stop(self.engine, self.client));
        let constraint = tokio::select! {
            biased;
            end = stop.as_mut() => Err(end),
            constraint = self.constraint(call) => constraint.map_err(|problem| {
                InputEnd::Failed(new_failure(problem.code(), problem.detail(), problem.is_retryable()))
            }),
        };
        let open_result = match constraint {
            Err(end) => Err(end),
            Ok(constraint) => {
                request.constraint = constraint;
                loop {
                    let open_result = tokio::select! {
                        biased;
                        end = stop.as_mut() => Err(end),
                        open_result = self.upstream.open(&request) => open_result.map_err(InputEnd::Failed),
                    };
                    match open_result {
                        // A service that does not support schemas refuses the request at once; the prompt describes
                        // the schema in words too.
                        Err(InputEnd::Failed(failure))
                            if !failure.retryable
                                && request.response_format.is_some()
                                && failure.code != UNCONSTRAINED_CODE
                                && request
                                    .constraint
                                    .as_ref()
                                    .is_none_or(|constraint| !constraint.is_required) =>
                        {
                            (request.response_format, request.constraint) = (None, None);
                            outcome.schema_refused = true;
                        }
                        open_result => break open_result,
                    }
                }
            }
        };
        match open_result {
            Ok(mut reply) => {
                outcome.constraint = reply.constraint().form.map(ConstraintForm::name);
                let (mut items, mut reasoning_bytes) = (Vec::new(), 0);
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
                                outcome.first_text_ms.get_or_insert_with(|| millis(start_time.elapsed()));
                                outcome.raw.push_str(&text);
                                reader.push(&text, turn_log);
                                if outcome.raw.len() > limit {
                                    break 'reply InputEnd::Failed(too_large_failure("reply", limit));
                                }
                            }
                            ReplyItem::Reasoning(text) => {
                                reasoning_bytes += text.len();
                                if reasoning_bytes > limit {
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
                        // The log cannot be written any more, so readers would see no more of the reply.
                        break 'reply InputEnd::Failed(interrupted_failure());
                    }
                };
                outcome.finish_reason = match &end {
                    InputEnd::Finished(reason) | InputEnd::Incomplete(reason) => Some(*reason),
                    InputEnd::WithoutReason => Some(FinishReason::Length),
                    _ => None,
                };
                // Unless answer text was written, the events that follow are held: they can be discarded if
                // the model is asked again. A thought is shown to nobody, so it always counts as undelivered.
                outcome.is_delivered =
                    turn_log.hold_unless_answered() && !matches!(call.kind, ReplyKind::Think { .. });
                outcome.reply = if end == CANCELLED_END {
                    // The round does not count (S-065), but a message that has begun is closed.
                    if turn_log.has_begun() {
                        let _ = reader.finish(&end, turn_log);
                    }
                    Err(cancelled_failure())
                } else if end.is_truncated()
                    && outcome.raw.trim().is_empty()
                    && !matches!(end, InputEnd::Failed(_))
                {
                    // Without an answer, the round does not count (S-065).
                    Err(new_failure("upstream_closed", "the reply ended before there was any text", true))
                } else {
                    reader.finish(&end, turn_log)
                };
            }
            Err(InputEnd::Failed(failure)) => outcome.reply = Err(failure),
            Err(_) => outcome.reply = Err(cancelled_failure()),
        }
        outcome.elapsed_ms = millis(start_time.elapsed());
        outcome
    }
}

/// End of a cancelled reply.
const CANCELLED_END: InputEnd = InputEnd::Finished(FinishReason::Cancelled);

/// Waits until the turn must stop, and returns its end: cancelled, or failed because the key was removed or
/// the server stops.
async fn wait_stop(engine: &RunEngine, client: TurnClient<'_>) -> InputEnd {
    tokio::select! {
        () = engine.run_abort.cancelled() => InputEnd::Failed(interrupted_failure()),
        () = client.caller.removal.cancelled() => InputEnd::Failed(key_removed_failure()),
        () = client.live_run.cancel.cancelled() => CANCELLED_END,
    }
}

/// Returns the failure of a call that was running when the server ended, for its record.
pub(crate) fn interrupted_call_failure() -> Failure {
    new_failure("interrupted", "the server stopped before the model call ended", true)
}

/// Returns a schema as a value of the request field `response_format` of OpenAI.
pub(crate) fn response_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "reply", "strict": true, "schema": schema } })
}

/// Returns the failure of a cancelled turn. It may be retried: the next input asks the model again.
fn cancelled_failure() -> Failure {
    new_failure(CANCELLED, "the turn was cancelled", true)
}

/// Returns the failure of a turn whose key was removed. It may be retried with another key of the owner.
fn key_removed_failure() -> Failure {
    new_failure("unauthorized", "the key was removed", true)
}

/// Returns the failure of a reply whose text or reasoning (`subject`) is too long.
fn too_large_failure(subject: &str, limit: usize) -> Failure {
    let limit = format_count(limit, "byte");
    new_failure("input_too_large", format!("the {subject} is longer than `limits.input`, {limit}"), false)
}
