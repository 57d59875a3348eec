//! Asking of models: each pair of source and prompt, with its re-asks, by a bounded number of workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tambour::InputEnd;
use tambour::event::{FinishReason, ReplyWorth};
use tambour::texts::format_count;
use tambour_server::upstream::{
    Message, ModelRequest, ReplyItem, Upstream, UpstreamReply, new_failure, reask_messages,
};

use super::plan::{EvalPlan, ModelSource, SourceKind, record_id};
use super::prompts::Prompt;
use super::recorded::ReplyGroup;
use super::reply::{ReplyCall, ReplyRecord};

/// Maximum number of pieces that are kept of a reply; later text is added to the last one.
const MAX_CHUNKS: usize = 20_000;
/// Maximum number of calls that are kept of a reply.
const MAX_CALLS: usize = 1_000;

/// Models of a plan, ready to be asked.
struct ModelCaller {
    plan: Arc<EvalPlan>,
    /// Upstream of each source; `None` for recorded replies, and where nothing is left to ask.
    upstreams: Vec<Option<Arc<Upstream>>>,
}

/// Asks the models of the pairs with the indexes `pending`. Sends the replies of each pair as soon as it is
/// finished; ends early when nobody receives them.
///
/// # Errors
/// An upstream cannot be used, or the runtime cannot be started.
pub(super) fn ask_all(
    plan: &Arc<EvalPlan>,
    pending: Vec<usize>,
    sender: &mpsc::SyncSender<ReplyGroup>,
) -> Result<()> {
    let mut upstreams = vec![None; plan.sources.len()];
    for pair in &pending {
        let source = plan.pairs[*pair].source;
        if let (None, SourceKind::Upstream(model)) = (&upstreams[source], &plan.sources[source].kind) {
            let upstream = Upstream::connect(&model.upstream, &model.config, plan.timeouts)?;
            upstreams[source] = Some(Arc::new(upstream));
        }
    }
    if pending.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let caller = Arc::new(ModelCaller { plan: plan.clone(), upstreams });
    let (pending, next) = (Arc::new(pending), Arc::new(AtomicUsize::new(0)));
    runtime.block_on(async {
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..plan.parallel.min(pending.len()) {
            let (caller, pending, next, sender) =
                (caller.clone(), pending.clone(), next.clone(), sender.clone());
            workers.spawn(async move {
                while let Some(pair) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let group = caller.ask_pair(*pair).await;
                    // Waits for the disk, while other workers go on in other threads.
                    if !tokio::task::block_in_place(|| sender.send(group).is_ok()) {
                        return false;
                    }
                }
                true
            });
        }
        while let Some(result) = workers.join_next().await {
            if !result.context("a call of a model ended unexpectedly")? {
                // Nothing more can be kept, so the other calls are cancelled.
                workers.shutdown().await;
            }
        }
        Ok(())
    })
}

impl ModelCaller {
    /// Asks the model of a pair, and again while the reply is not usable and re-asks are left.
    async fn ask_pair(&self, pair: usize) -> ReplyGroup {
        let plan = &self.plan;
        let pair = &plan.pairs[pair];
        let source = &plan.sources[pair.source];
        let contract = &plan.contracts[pair.contract];
        let (SourceKind::Upstream(model), Some(upstream), Some(prompt)) =
            (&source.kind, &self.upstreams[pair.source], pair.prompt)
        else {
            // Not reached: only pairs of models are pending.
            return ReplyGroup { first: ReplyRecord::default(), reasks: Vec::new() };
        };
        let messages = build_messages(model, contract, &plan.prompts.prompts[prompt]);
        let mut request = ModelRequest {
            message_id: pair.prompt_id.clone(),
            messages,
            dialect: contract.entry.name.to_owned(),
            max_reply_bytes: Some(contract.reading.limits.input),
            constraint: contract.constraint.clone(),
            ..model.request.clone()
        };
        let mut replies: Vec<ReplyRecord> = Vec::new();
        for attempt in 1..=source.max_reasks + 1 {
            let mut record = ReplyRecord {
                protocol: contract.entry.name.to_owned(),
                source: source.name.clone(),
                model: pair.model.to_string(),
                prompt_id: pair.prompt_id.to_string(),
                attempt,
                prompt: if attempt == 1 { json!(request.messages) } else { Value::Null },
                ..ReplyRecord::default()
            };
            record.id = record_id(&record);
            receive(upstream, &request, contract.reading.limits.input, &mut record).await;
            let judgement = tokio::task::block_in_place(|| contract.judge(&record));
            let is_last = !judgement.needs_reask(&record.end());
            if !is_last && attempt <= source.max_reasks {
                let language = contract.reading.texts.language;
                request.messages.extend(reask_messages(&record.text(), &judgement.findings, language));
            }
            replies.push(record);
            if is_last {
                break;
            }
        }
        let mut replies = replies.into_iter();
        let mut first = replies.next().unwrap_or_default();
        let reasks: Vec<ReplyRecord> = replies.collect();
        first.reasks = u32::try_from(reasks.len()).unwrap_or_default();
        ReplyGroup { first, reasks }
    }
}

/// Builds the messages of a first call: the system prompt with the format instructions, then the prompt.
fn build_messages(
    model: &ModelSource,
    contract: &super::judge::ReplyContract,
    prompt: &Prompt,
) -> Vec<Message> {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(prompt.system_prompt.clone().or_else(|| model.system_prompt.clone()));
    let system_count = prompt.messages.iter().take_while(|message| message.role == "system").count();
    let (system_messages, messages) = prompt.messages.split_at(system_count);
    parts.extend(system_messages.iter().map(Message::text));
    let mut example = None;
    if let (true, Some(instructions)) = (model.instructions, contract.entry.prompt) {
        let instructions = instructions(&contract.reading).messages();
        parts.push(instructions.system);
        example = instructions.example;
    }
    let system = (!parts.is_empty()).then(|| Message::new("system", parts.join("\n\n")));
    let example =
        example.map(|(request, reply)| [Message::new("user", request), Message::new("assistant", reply)]);
    system.into_iter().chain(example.into_iter().flatten()).chain(messages.iter().cloned()).collect()
}

/// Calls a model, and notes its reply in `record`.
async fn receive(upstream: &Upstream, request: &ModelRequest, limit: usize, record: &mut ReplyRecord) {
    let start_time = Instant::now();
    let end = match upstream.open(request).await {
        Ok(reply) => {
            record.constraint = reply.constraint().form.map(|form| form.name().to_owned());
            receive_items(reply, start_time, limit, record).await
        }
        Err(failure) => InputEnd::Failed(failure),
    };
    record.total_ms = Some(millis(start_time.elapsed()));
    record.set_end(end);
}

/// Receives the items of a reply until its end. Text beyond `limit` bytes ends it, as it does in the server.
async fn receive_items(
    mut reply: UpstreamReply,
    start_time: Instant,
    limit: usize,
    record: &mut ReplyRecord,
) -> InputEnd {
    let (mut items, mut text_bytes) = (Vec::new(), 0);
    loop {
        reply.next(&mut items).await;
        for item in items.drain(..) {
            match item {
                ReplyItem::Text(text) => {
                    record.first_text_ms.get_or_insert_with(|| millis(start_time.elapsed()));
                    text_bytes += text.len();
                    let is_full = record.chunks.len() >= MAX_CHUNKS;
                    match record.chunks.last_mut() {
                        Some(last) if is_full => last.push_str(&text),
                        _ => record.chunks.push(text),
                    }
                    if text_bytes > limit {
                        return InputEnd::Finished(FinishReason::Length);
                    }
                }
                ReplyItem::Reasoning(text) => {
                    if record.reasoning.len() + text.len() > limit {
                        let limit = format_count(limit, "byte");
                        let message = format!("the reasoning is longer than `limits.input`, {limit}");
                        return InputEnd::Failed(new_failure("input_too_large", message, false));
                    }
                    record.reasoning.push_str(&text);
                }
                ReplyItem::Call(call) if record.calls.len() < MAX_CALLS => {
                    let (name, arguments) = (call.function.name, call.function.arguments);
                    record.calls.push(ReplyCall { name, arguments });
                }
                ReplyItem::Call(_) => {}
                ReplyItem::Usage(usage) => record.usage = usage,
                ReplyItem::End(end) => return end,
            }
        }
    }
}

/// Returns the index of the reply that is used, 0 for the first: the best one, the earliest of equal ones.
pub(super) fn best_reply(worths: &[ReplyWorth]) -> usize {
    let best = worths.iter().copied().max().unwrap_or(ReplyWorth::Useless);
    // Among replies without text the last one ends the message.
    if best == ReplyWorth::Useless {
        return worths.len().saturating_sub(1);
    }
    worths.iter().position(|worth| *worth == best).unwrap_or_default()
}

/// Returns a duration in whole milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
