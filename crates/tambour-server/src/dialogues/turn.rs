//! One turn of a dialogue: an input, and all steps until the dialogue waits again.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tambour::event::{Extension, Failure, FinishReason, Notice};
use tambour::texts::counted;
use tambour::{End, Options};
use tambour_prompt::dialogue::{Call, CallKind, Dialogue, Env, Refusal, Reply, Settings, Turn, Want};
use tambour_prompt::script::{Script, load};

use super::admission::Admission;
use super::outlet::Outlet;
use super::templates::Prompts;
use super::turn_record::{self, TurnRecord};
use crate::app::App;
use crate::aside::in_place;
use crate::drive::UpstreamSpending;
use crate::fail;
use crate::figures::{self, ReplyEnd};
use crate::http::problem::Problem;
use crate::ids;
use crate::keys::Caller;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::store::{CallRecord, DialogueRow, Figures, Once, Progress, StoreError, Written};
use crate::telemetry::Span;
use crate::upstream::{Ask, Item, Message, Upstream, failure};

/// Most bytes of a script parsed on the worker.
const SHORT: usize = 4 << 10;
/// Milliseconds after which a round counts as slow (S-102).
const SLOW_MS: u64 = 3000;

/// Input of a turn.
pub(crate) enum Input {
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
pub(crate) struct Asking<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) live: &'a Live,
}

/// Code of a cancelled turn's failure.
pub(super) const CANCELLED: &str = "cancelled";

/// Turn in progress.
struct Running<'a> {
    app: &'a App,
    row: DialogueRow,
    asking: Asking<'a>,
    /// Tracing span of the turn.
    span: &'a Span,
    script: Script,
    prompts: Prompts,
    settings: Settings,
    options: Options,
    upstream: Arc<Upstream>,
    dialogue: Dialogue,
    /// Record of the turn; absent when a dialogue of an older version continues an input it had taken.
    record: Option<TurnRecord>,
    /// Number of notices that are in a record.
    traced: usize,
    /// Records not stored yet.
    over: Vec<CallRecord>,
    /// Figures of calls that are over, which go with them.
    figures: Vec<Figures>,
}

/// Result of one model call.
struct Called {
    reply: Result<Reply, Failure>,
    delivered: bool,
    raw: String,
    /// Finish reason, if the reply ended.
    finish: Option<FinishReason>,
    usage: Value,
    /// Set when the service refused the schema.
    unformatted: bool,
    first_text_ms: Option<u64>,
    elapsed_ms: u64,
}

/// Loads the machine of a stored dialogue, and its script.
pub(crate) fn machine(app: &App, row: &DialogueRow) -> Result<(Script, Dialogue), Problem> {
    let damaged = |what: &str| {
        tracing::error!(dialogue = row.id, what, "a stored dialogue cannot be read");
        let detail = format!("the {what} of the dialogue cannot be read");
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
    };
    let read = || load(&row.script, &app.loaded().config.limits).script;
    // A long script is parsed without blocking other tasks.
    let script = if row.script.len() > SHORT { in_place(read) } else { read() };
    let script = script.ok_or_else(|| damaged("script"))?;
    let dialogue = serde_json::from_str(&row.state).map_err(|_| damaged("state"))?;
    Ok((script, dialogue))
}

/// Takes an input and runs until the dialogue waits; without one, continues the input taken before the server
/// stopped. The caller holds the dialogue's turn.
pub(crate) async fn run(
    app: &App,
    row: DialogueRow,
    asking: Asking<'_>,
    input: (Option<Input>, Admission),
    once: Option<&Once>,
    outlet: &mut Outlet,
) -> Result<Turn, Problem> {
    let span = app.traces.turn(&asking.caller.span, &row.id);
    let turn = go(app, row, (asking, &span), input, once, outlet).await;
    let failed = match &turn {
        Ok(turn) => turn.error.as_ref().map(|failure| &*failure.code),
        Err(problem) => Some(problem.code()),
    };
    if let Some(code) = failed {
        span.fail(code);
    }
    span.end(if failed.is_none() { "completed" } else { "failed" });
    turn
}

async fn go(
    app: &App,
    row: DialogueRow,
    (asking, span): (Asking<'_>, &Span),
    (input, admission): (Option<Input>, Admission),
    once: Option<&Once>,
    outlet: &mut Outlet,
) -> Result<Turn, Problem> {
    let (script, dialogue) = machine(app, &row)?;
    let prompts = Prompts::of(app, &row.owner).await?;
    let options = app.own().options;
    let mut settings = Settings::default();
    settings.texts = options.texts.clone();
    let loaded = app.loaded();
    let upstream =
        loaded.upstream(None).ok_or_else(|| Problem::invalid("unknown_upstream", "there is no upstream"))?;
    let mut running = Running {
        app,
        row,
        asking,
        span,
        script,
        prompts,
        settings,
        options,
        upstream,
        dialogue,
        record: None,
        traced: 0,
        over: Vec::new(),
        figures: Vec::new(),
    };
    if let Some(input) = input {
        let record = TurnRecord::begin(&asking.live.id, &input, &running.row.state);
        running.take(input)?;
        running.write();
        app.store.take_input(&running.row, once, &[CallRecord::Turn(json!(record).to_string())]).await?;
        running.record = Some(record);
    } else {
        running.record = turn_record::last_turn(app, &running.row.id).await?;
    }
    admission.begin().await;
    let requests = match running.go_on(outlet).await {
        Ok(requests) => requests,
        Err(problem) => {
            // Its models were asked, whatever becomes of the dialogue.
            app.count(&running.figures).await;
            return Err(problem);
        }
    };
    let turn = running.dialogue.turn(&running.script);
    running.write();
    if let Some(mut record) = running.record.take() {
        record.end(&turn);
        running.over.push(CallRecord::TurnOver(json!(record).to_string()));
    }
    let once = once.map(|once| (once.clone(), json!(turn).to_string()));
    let (DialogueRow { status, state, changed, .. }, mut records) = (running.row, running.over);
    records.push(CallRecord::Figures(running.figures.clone()));
    outlet.close(&turn, &requests, &running.options);
    let ended = match &turn.error {
        None => "completed",
        Some(failure) if failure.code == CANCELLED => "cancelled",
        Some(_) => "failed",
    };
    let written = outlet.finish(ended, Some(Progress { status, state, changed, records, once })).await;
    if let Err(written) = written {
        if written == Written::Fenced {
            app.count(&running.figures).await;
        }
        return Err(unwritten(written));
    }
    Ok(turn)
}

/// Returns the problem of a turn whose log cannot be written.
pub(crate) fn unwritten(written: Written) -> Problem {
    match written {
        Written::Fenced => Problem::not_found("the dialogue is deleted"),
        _ => StoreError::Closed.into(),
    }
}

fn refused(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::AnswerExpected { call_id } => {
            let detail = format!("the dialogue waits for the answer to `{call_id}`");
            Problem::conflict(refusal.code(), detail).with("call_id", call_id.as_str())
        }
        _ => Problem::conflict(refusal.code(), "nothing waits for this answer"),
    }
}

impl Running<'_> {
    fn change<T>(&mut self, change: impl FnOnce(&mut Dialogue, &Env<'_>) -> T) -> T {
        let Running { script, prompts, settings, dialogue, .. } = self;
        let now = jiff::Timestamp::now().as_millisecond();
        change(dialogue, &Env { script, templates: prompts, now, settings, hooks: &() })
    }

    fn take(&mut self, input: Input) -> Result<(), Problem> {
        let taken = self.change(|dialogue, env| match input {
            Input::Text(text) => dialogue.input(text.as_deref(), env),
            Input::Answer { call_id, value } => dialogue.answer(&call_id, value, env),
        });
        taken.map_err(|refusal| refused(&refusal))
    }

    /// Writes the state into the row.
    fn write(&mut self) {
        self.row.state = json!(self.dialogue).to_string();
        self.row.status = json!(self.dialogue.status()).as_str().unwrap_or_default().to_owned();
        self.row.changed = ids::now();
    }

    /// Stores the state with records of calls.
    async fn keep(&mut self, records: &[CallRecord]) -> Result<(), StoreError> {
        self.write();
        self.app.store.step_dialogue(&self.row, records).await
    }

    /// Returns the notices of the turn that are in no record yet.
    fn notices(&mut self) -> Vec<Notice> {
        let all = self.dialogue.turn(&self.script).notices;
        let new = all.get(self.traced..).unwrap_or_default().to_vec();
        self.traced = all.len();
        new
    }

    /// Runs the dialogue until it waits; returns its requests to the client.
    async fn go_on(&mut self, outlet: &mut Outlet) -> Result<Vec<Extension>, Problem> {
        let mut requests = Vec::new();
        loop {
            match self.change(Dialogue::next) {
                Want::Call(call) => {
                    // Stored before the model is asked: after a crash the round is asked again and has its
                    // record.
                    let mut record = self.record(&call);
                    let mut records = std::mem::take(&mut self.over);
                    if !records.is_empty() {
                        // Text of the last round is on disk before the dialogue has it.
                        outlet.settled().await.map_err(unwritten)?;
                    }
                    records.push(CallRecord::New(record.to_string()));
                    records.push(CallRecord::Figures(self.figures.clone()));
                    self.keep(&records).await?;
                    self.figures.clear();
                    self.call(&call, &mut record, outlet).await;
                    outlet.flush().await.map_err(unwritten)?;
                    // Stored together with what follows: the next step, or the end of the turn.
                    self.over.push(CallRecord::Over(record.to_string()));
                }
                Want::Event(event) => requests.push(*event),
                _ => break,
            }
        }
        // Notices after the last call get a record of their own.
        let notices = self.notices();
        if !notices.is_empty() {
            let path = self.dialogue.position(&self.script).map(|position| position.path);
            let record = json!({
                "created": ids::now(), "turn": self.record.as_ref().map(|record| &record.turn),
                "status": "completed", "path": path, "notices": notices,
            });
            self.over.push(CallRecord::New(record.to_string()));
        }
        Ok(requests)
    }

    /// Builds the model request of a call.
    fn ask_of(&self, call: &Call) -> Ask {
        let messages = call.messages.iter();
        let messages = messages.map(|said| Message::new(&said.role, said.content.clone()));
        Ask {
            messages: messages.collect(),
            span: self.span.clone(),
            dialect: call.kind.name().to_owned(),
            round: matches!(call.kind, CallKind::Say { .. })
                .then_some((call.round, self.options.texts.language)),
            input: Some(self.options.limits.input),
            temperature: Some(call.temperature),
            max_tokens: Some(call.max_tokens),
            response_format: call.schema(&self.options).map(|schema| response_format(&schema)),
            ..Ask::default()
        }
    }

    /// Builds the record of a call that begins, for the trace.
    fn record(&mut self, call: &Call) -> Value {
        let ask = self.ask_of(call);
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
            "model": self.upstream.model(&ask),
            "parameters": {
                "temperature": call.temperature,
                "max_tokens": call.max_tokens,
                "response_format": ask.response_format,
            },
            "template_id": call.template_id,
            "template_hash": call.template_hash,
            "warnings": call.warnings,
            "notices": self.notices(),
            "prompt": call.messages,
        })
    }

    /// Asks the model and applies its reply. The result is added to the record.
    async fn call(&mut self, call: &Call, record: &mut Value, outlet: &mut Outlet) {
        let Called { reply, delivered, raw, finish, usage, unformatted, first_text_ms, elapsed_ms } =
            self.ask(call, outlet).await;
        fail::point("turn");
        self.app.spent(&self.asking.caller.key, &self.row.owner, 0, &usage).await;
        // A round names no model.
        let spending = UpstreamSpending::of_call(&self.upstream, &Ask::default(), &usage);
        if elapsed_ms > SLOW_MS {
            Metrics::count(&self.app.metrics.slow_rounds);
            tracing::warn!(
                dialogue = self.row.id,
                upstream = &*self.upstream.name,
                round = call.round,
                elapsed_ms,
                "a round took longer than 3 s"
            );
        }
        if unformatted {
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
                reply.delivered = delivered;
                let came = self.change(|dialogue, env| dialogue.reply(call, &reply, env));
                if came.asked_again || came.failure.is_some() {
                    outlet.discard()
                } else {
                    outlet.release()
                }
                record["findings"] = json!(reply.findings);
                record["message"] = json!(reply.message);
                record["unreadable"] = json!(reply.unreadable);
                record["delivered"] = json!(reply.delivered);
                record["asked_again"] = json!(came.asked_again);
                record["exit_decision"] = json!(came.exit_decision);
                record["assessment"] = json!(came.assessment);
                record["assigned"] = json!(came.assigned);
                if let Some(failure) = came.failure {
                    record["status"] = "failed".into();
                    record["error"] = json!(failure);
                }
            }
            Err(failure) => {
                outlet.release();
                record["status"] = "failed".into();
                record["error"] = json!(failure);
                self.change(|dialogue, env| dialogue.fail(failure, env));
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
        self.figures.extend(figures::of_reply(&figures::this_hour(), &self.row.owner, &end, &[spending]));
    }

    async fn ask(&self, call: &Call, outlet: &mut Outlet) -> Called {
        let started = Instant::now();
        let mut ask = self.ask_of(call);
        let mut called = Called {
            reply: Err(interrupted()),
            delivered: false,
            raw: String::new(),
            finish: None,
            usage: Value::Null,
            unformatted: false,
            first_text_ms: None,
            elapsed_ms: 0,
        };
        outlet.next_reply();
        let mut reader = call.reader(&self.options).with_extensions(true).with_findings(true);
        let mut stop = std::pin::pin!(stopped(self.app, self.asking));
        let opened = loop {
            let opened = tokio::select! {
                biased;
                end = stop.as_mut() => Err(end),
                opened = self.upstream.open(&ask) => opened.map_err(End::Failed),
            };
            match opened {
                // A service that does not support schemas refuses the request at once; the prompt describes
                // the schema in words too.
                Err(End::Failed(failure)) if !failure.retryable && ask.response_format.is_some() => {
                    ask.response_format = None;
                    called.unformatted = true;
                }
                opened => break opened,
            }
        };
        match opened {
            Ok(mut reply) => {
                let (mut items, mut reasoning) = (Vec::new(), 0);
                let limit = self.options.limits.input;
                let end: End = 'reply: loop {
                    // Dropping the reply cancels the model call.
                    tokio::select! {
                        biased;
                        end = stop.as_mut() => break 'reply end,
                        () = reply.next(&mut items) => {}
                    }
                    for item in items.drain(..) {
                        match item {
                            Item::Text(text) => {
                                called.first_text_ms.get_or_insert_with(|| millis(started));
                                called.raw.push_str(&text);
                                reader.push(&text, outlet);
                                if called.raw.len() > limit {
                                    break 'reply End::Failed(too_large("reply", limit));
                                }
                            }
                            Item::Reasoning(text) => {
                                reasoning += text.len();
                                if reasoning > limit {
                                    break 'reply End::Failed(too_large("reasoning", limit));
                                }
                                reader.reasoning(&text, outlet);
                            }
                            // A round offers no tools.
                            Item::Call(_) => {}
                            Item::Usage(usage) => {
                                called.usage = usage.clone();
                                reader.set_usage(usage);
                            }
                            Item::End(end) => break 'reply end,
                        }
                    }
                    if outlet.flush().await.is_err() {
                        // Nobody would see the rest; the turn no longer has an end of its own.
                        break 'reply End::Failed(interrupted());
                    }
                };
                called.finish = match &end {
                    End::Finished(reason) | End::Incomplete(reason) => Some(*reason),
                    End::Unknown => Some(FinishReason::Length),
                    _ => None,
                };
                // Text that follows only now may replace an answer that is re-asked. A thought is shown to
                // nobody, whatever the turn said before it.
                called.delivered = outlet.hold() && !matches!(call.kind, CallKind::Think { .. });
                called.reply = if end == CANCELS {
                    // The round does not count (S-065); a message that has begun is closed.
                    if outlet.has_begun() {
                        let _ = reader.finish(&end, outlet);
                    }
                    Err(cancelled())
                } else if end.cut() && called.raw.trim().is_empty() && !matches!(end, End::Failed(_)) {
                    // The round was not answered (S-065).
                    Err(failure("upstream_closed", "the reply ended before there was any text", true))
                } else {
                    reader.finish(&end, outlet)
                };
            }
            Err(End::Failed(failure)) => called.reply = Err(failure),
            Err(_) => called.reply = Err(cancelled()),
        }
        called.elapsed_ms = millis(started);
        called
    }
}

/// End of a cancelled reply.
const CANCELS: End = End::Finished(FinishReason::Cancelled);

/// Waits until the turn has to end, and returns its end: cancelled, key removed, or server stopped.
async fn stopped(app: &App, asking: Asking<'_>) -> End {
    tokio::select! {
        () = app.halting.cancelled() => End::Failed(interrupted()),
        () = asking.caller.removed.cancelled() => End::Failed(key_removed()),
        () = asking.live.cancel.cancelled() => CANCELS,
    }
}

/// Returns the failure of a call whose end the server did not see.
pub(crate) fn died() -> Failure {
    failure("interrupted", "the server ended before the call of the model did", true)
}

/// Returns a schema in the form of a service's response format.
pub(crate) fn response_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "reply", "strict": true, "schema": schema } })
}

/// Returns the failure of a cancelled turn: the next input asks again.
fn cancelled() -> Failure {
    failure(CANCELLED, "the turn was cancelled", true)
}

/// Returns the failure of a turn whose key was removed. Another key of the owner continues from there.
fn key_removed() -> Failure {
    failure("unauthorized", "the key was removed", true)
}

fn too_large(what: &str, limit: usize) -> Failure {
    let limit = counted(limit, "byte");
    failure("input_too_large", format!("the {what} is longer than `limits.input`, {limit}"), false)
}

fn interrupted() -> Failure {
    failure("interrupted", "the server stopped while the model was writing", true)
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
