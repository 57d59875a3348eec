//! Runs one message: asks the upstream, reads the reply, puts it on the log. The only place that waits for a model.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tambour::event::{Completed, EventKind, Failure, FinishReason};
use tambour::options::Hold;
use tambour::{End, Event, Finding, Options, Pipeline, Severity, Sink};

use crate::app::App;
use crate::record::{self, Timings};
use crate::store::{Batch, Live, MessageRow};
use crate::upstream::{Ask, Item, Message, Upstream};

/// Everything a run needs.
pub(crate) struct Run {
    pub(crate) row: MessageRow,
    pub(crate) live: Arc<Live>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) ask: Ask,
    pub(crate) options: Options,
    /// Raw text counts as delivered as soon as it is on the log.
    pub(crate) legacy: bool,
    pub(crate) max_reasks: u32,
    /// How long a run goes on when nobody reads it any more.
    pub(crate) grace: Duration,
}

/// Runs a message to its end; whatever happens, its log ends with one `completed` or `error`.
pub(crate) async fn run(app: Arc<App>, run: Run) {
    let started = Instant::now();
    let mut log = Log { app: app.clone(), live: run.live.clone(), next: 1, seq: 0 };
    let mut timings = Timings::default();
    let mut ask = run.ask.clone();
    let (mut reasks, mut usage) = (0, Value::Null);
    // One wait for the whole run: the time of grace goes on while the model writes.
    let mut stop = std::pin::pin!(stopped(&run));
    loop {
        let mut attempt = Attempt::new(&run, reasks, log.next, log.seq);
        let end = attempt.read(&run, &ask, &mut log, (started, &mut timings), stop.as_mut()).await;
        add_usage(&mut usage, attempt.usage.take());
        attempt.finish(&end, usage.clone());
        let again = !attempt.sent && attempt.gather.unusable && reasks < run.max_reasks;
        if again && matches!(end, End::Finished(FinishReason::Stop)) && !run.live.cancel.is_cancelled() {
            reasks += 1;
            ask.messages.extend(attempt.complaint(&run.options));
            continue;
        }
        attempt.send(&mut log).await;
        break;
    }
    // Nobody may be told that it has ended before the end is on the log.
    if app.store.flush().await.is_err() {
        tracing::warn!(message = run.live.id, "the server stopped before the end was written");
    }
    timings.total_ms = millis(started);
    if let Err(error) = record::materialise(&app.store, &run.row, timings).await {
        tracing::error!(%error, message = run.live.id, "the record was not written; it will be at the next start");
    }
    run.live.end();
    app.live.remove(&run.live.id);
}

/// The log of the message, as far as this run has written it.
struct Log {
    app: Arc<App>,
    live: Arc<Live>,
    next: u64,
    seq: u64,
}

/// One call of the model.
struct Attempt {
    pipeline: Pipeline,
    gather: Gather,
    hold: Hold,
    /// Whether something of it is on the log.
    sent: bool,
    usage: Option<Value>,
}

/// What came of the text so far and is not on the log.
struct Gather {
    batch: Batch,
    seq: u64,
    reasks: u32,
    /// Whether an event has come, and whether one of the answer has.
    begun: bool,
    answering: bool,
    /// The reply was replaced by the fallback, or broke a rule that could not be repaired.
    unusable: bool,
    raw: String,
    findings: Vec<String>,
}

impl Attempt {
    fn new(run: &Run, reasks: u32, next: u64, seq: u64) -> Attempt {
        let pipeline = Pipeline::new(&run.ask.dialect, &run.options)
            .or_else(|_| Pipeline::new("plain", &run.options))
            .expect("`plain` is in the table of dialects");
        Attempt {
            pipeline: pipeline.extensions(true).findings(true),
            gather: Gather {
                batch: Batch::new(next),
                seq,
                reasks,
                begun: false,
                answering: false,
                unusable: false,
                raw: String::new(),
                findings: Vec::new(),
            },
            hold: run.options.hold,
            sent: false,
            usage: None,
        }
    }

    /// Reads the reply to its end, and says what that was.
    async fn read(
        &mut self,
        run: &Run,
        ask: &Ask,
        log: &mut Log,
        (started, timings): (Instant, &mut Timings),
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> End {
        let opened = tokio::select! {
            opened = run.upstream.open(ask) => opened,
            () = stop.as_mut() => return End::Finished(FinishReason::Cancelled),
        };
        let mut reply = match opened {
            Ok(reply) => reply,
            Err(failure) => return End::Failed(failure),
        };
        let mut items = Vec::with_capacity(4);
        loop {
            // Dropping the reply ends the call of the model.
            tokio::select! {
                () = reply.next(&mut items) => {}
                () = stop.as_mut() => return End::Finished(FinishReason::Cancelled),
            }
            if timings.first_byte_ms.is_none() {
                timings.first_byte_ms = Some(millis(started));
            }
            for item in items.drain(..) {
                match item {
                    Item::Text(text) => self.gather_text(&text, run),
                    Item::Reasoning(text) => {
                        self.gather.batch.reasoning(&text);
                        self.pipeline.reasoning(&text, &mut self.gather);
                    }
                    Item::Usage(usage) => self.usage = Some(usage),
                    Item::End(end) => return end,
                }
            }
            if self.may_go(run.legacy) {
                self.send(log).await;
            }
        }
    }

    fn gather_text(&mut self, text: &str, run: &Run) {
        self.gather.seq += 1;
        self.gather.batch.raw(self.gather.seq, text);
        if run.max_reasks > 0 {
            self.gather.raw.push_str(text);
        }
        self.pipeline.push_str(text, &mut self.gather);
    }

    /// Whether what was gathered may be delivered. Raw text alone waits for an event, so that an attempt that gives none can
    /// be thrown away; readers of the legacy protocol see the raw text itself and wait for nothing.
    fn may_go(&self, legacy: bool) -> bool {
        let begun = match self.hold {
            Hold::None => self.gather.begun || legacy,
            Hold::UntilFinal => self.gather.answering,
            Hold::All => false,
        };
        !self.gather.batch.is_empty() && (self.sent || begun)
    }

    fn finish(&mut self, end: &End, usage: Value) {
        self.pipeline.set_usage(usage);
        self.pipeline.finish(end, &mut self.gather);
    }

    async fn send(&mut self, log: &mut Log) {
        let next = self.gather.batch.last() + 1;
        let batch = std::mem::replace(&mut self.gather.batch, Batch::new(next));
        if batch.is_empty() {
            return;
        }
        self.sent = true;
        log.next = next;
        log.seq = self.gather.seq;
        if log.app.store.append(&log.live, batch).await.is_err() {
            // The server is stopping; the next start closes what is open.
            tracing::warn!(message = log.live.id, "the log is closed");
        }
    }

    /// The reply and what was wrong with it, for the model to read (P-034).
    fn complaint(&self, options: &Options) -> [Message; 2] {
        let chinese = options.texts == tambour::options::Texts::default();
        let (before, after) = if chinese {
            ("上面的回复不符合要求的格式：", "请严格按照要求的格式重新给出完整的回复。")
        } else {
            (
                "The reply above does not keep the format:",
                "Please give the whole reply again, exactly in the format asked for.",
            )
        };
        let findings = self.gather.findings.join("\n");
        [
            Message { role: "assistant".into(), content: self.gather.raw.clone() },
            Message { role: "user".into(), content: format!("{before}\n{findings}\n\n{after}") },
        ]
    }
}

impl Sink for Gather {
    fn event(&mut self, event: Event<'_>) {
        self.begun |= event.kind() == EventKind::Contract;
        self.answering |= matches!(event, Event::FinalDelta { .. });
        let reasked;
        let event = match event {
            Event::Completed(completed) => {
                self.unusable |= completed.metadata.fallback_reason.is_some();
                reasked = Event::Completed(Box::new(with_reasks(*completed, self.reasks)));
                &reasked
            }
            ref event => event,
        };
        self.batch.event(event.name(), |out| tambour::encode::data(event, out));
    }

    fn finding(&mut self, finding: Finding) {
        if finding.severity >= Severity::Warning && self.findings.len() < 20 {
            self.unusable |= finding.severity == Severity::Error;
            self.findings.push(format!("- line {}: {} ({})", finding.line, finding.message, finding.code));
        }
    }
}

fn with_reasks(mut completed: Completed, reasks: u32) -> Completed {
    completed.metadata.reasks = reasks;
    completed
}

/// Waits until the run should stop: cancelled, or nobody has read it for the time of grace.
async fn stopped(run: &Run) {
    let deserted = async {
        loop {
            run.live.deserted.notified().await;
            tokio::time::sleep(run.grace).await;
            if run.live.readers() == 0 {
                return;
            }
        }
    };
    tokio::select! {
        () = run.live.cancel.cancelled() => {}
        () = deserted => tracing::debug!(message = run.live.id, "nobody reads it any more"),
    }
}

/// Adds the token counts of an attempt.
fn add_usage(sum: &mut Value, usage: Option<Value>) {
    let Some(usage) = usage else { return };
    let (Value::Object(total), Value::Object(more)) = (&mut *sum, &usage) else {
        *sum = usage;
        return;
    };
    for (name, value) in more {
        let both = total.get(name).and_then(Value::as_u64).zip(value.as_u64());
        total.insert(name.clone(), both.map_or_else(|| value.clone(), |(a, b)| Value::from(a + b)));
    }
}

/// A failure for messages that were running when the server stopped.
pub(crate) fn interrupted() -> Failure {
    Failure {
        code: "interrupted".into(),
        message: "the server stopped while the message was running".to_owned(),
        retryable: true,
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
