//! Reply of a model as a line of JSON: a recording, with what was measured when it was received.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tambour::InputEnd;
use tambour::event::{Failure, FinishReason};

use super::lines;
use super::prompts::MAX_ID_BYTES;

/// Reply in the files of a run. Each line is also a recording of a replay upstream, and a record for
/// `tambour check --field chunks --contract-field protocol`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReplyRecord {
    /// Source, dialect, prompt and attempt, unique in the run.
    pub(super) id: String,
    /// Dialect.
    pub(super) protocol: String,
    pub(super) source: String,
    pub(super) model: String,
    pub(super) prompt_id: String,
    /// Number of the attempt; 1 is the first reply, later ones follow re-asks.
    pub(super) attempt: u32,
    /// Number of re-asks that followed; only in first replies.
    pub(super) reasks: u32,
    /// Text of the reply, in the pieces in which it was received.
    pub(super) chunks: Vec<String>,
    pub(super) finish_reason: Option<FinishReason>,
    /// True if a part of the reply was lost in transit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) incomplete: bool,
    /// Reasoning from a separate field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reasoning: String,
    /// Calls from a separate field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<ReplyCall>,
    /// Token counts as the upstream reported them.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) usage: Value,
    /// Milliseconds from the request to the first text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_text_ms: Option<u64>,
    /// Milliseconds from the request to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_ms: Option<u64>,
    /// Form in which the contract was sent along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) constraint: Option<String>,
    /// Failure that ended the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Failure>,
    /// Messages that were sent.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) prompt: Value,
}

/// Call of a tool that came outside the text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReplyCall {
    pub(super) name: String,
    /// Arguments, as JSON text.
    pub(super) arguments: String,
}

/// Line of a file of recorded replies, from any program.
#[derive(Deserialize)]
struct RecordedLine {
    id: Option<Value>,
    prompt_id: Option<Value>,
    protocol: Option<String>,
    model: Option<String>,
    attempt: Option<u32>,
    chunks: Option<Vec<String>>,
    reply: Option<String>,
    finish_reason: Option<FinishReason>,
    #[serde(default)]
    incomplete: bool,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    calls: Vec<ReplyCall>,
    #[serde(default)]
    usage: Value,
    first_text_ms: Option<u64>,
    total_ms: Option<u64>,
    constraint: Option<String>,
    error: Option<Failure>,
    #[serde(default)]
    prompt: Value,
}

impl ReplyRecord {
    /// Returns the text of the reply.
    pub(super) fn text(&self) -> String {
        self.chunks.concat()
    }

    /// Returns how the reply ended.
    pub(super) fn end(&self) -> InputEnd {
        match (&self.error, self.finish_reason) {
            (Some(failure), _) => InputEnd::Failed(failure.clone()),
            (None, Some(reason)) if self.incomplete => InputEnd::Incomplete(reason),
            (None, Some(reason)) => InputEnd::Finished(reason),
            (None, None) => InputEnd::WithoutReason,
        }
    }

    /// Notes how the reply ended.
    pub(super) fn set_end(&mut self, end: InputEnd) {
        match end {
            InputEnd::Finished(reason) => self.finish_reason = Some(reason),
            InputEnd::Incomplete(reason) => (self.finish_reason, self.incomplete) = (Some(reason), true),
            InputEnd::Failed(failure) => self.error = Some(failure),
            // A reply without a finish reason counts as truncated.
            _ => {}
        }
    }

    /// Reads a line of a file of recorded replies. `protocol` and `model` stay empty where the line has none.
    ///
    /// # Errors
    /// The line is not JSON, or not a recorded reply.
    pub(super) fn parse_recorded(line: &[u8], line_number: u64) -> Result<ReplyRecord> {
        let record: RecordedLine = lines::parse_json(line)?;
        let prompt_id = match record.prompt_id.or(record.id) {
            None | Some(Value::Null) => line_number.to_string(),
            Some(Value::String(id)) if !id.is_empty() && id.len() <= MAX_ID_BYTES => id,
            Some(Value::Number(id)) => id.to_string(),
            Some(_) => bail!("`id` must be a number or a text of 1 to {MAX_ID_BYTES} bytes"),
        };
        let chunks = match (record.chunks, record.reply) {
            (Some(chunks), None) => chunks,
            (None, Some(reply)) => vec![reply],
            (Some(_), Some(_)) => bail!("give `chunks` or `reply`, not both"),
            (None, None) => bail!("a recorded reply needs `chunks`, a list of texts, or `reply`, a text"),
        };
        if record.attempt == Some(0) {
            bail!("`attempt` counts from 1");
        }
        Ok(ReplyRecord {
            prompt_id,
            protocol: record.protocol.unwrap_or_default(),
            model: record.model.unwrap_or_default(),
            attempt: record.attempt.unwrap_or(1),
            chunks,
            finish_reason: record.finish_reason,
            incomplete: record.incomplete,
            reasoning: record.reasoning,
            calls: record.calls,
            usage: record.usage,
            first_text_ms: record.first_text_ms,
            total_ms: record.total_ms,
            constraint: record.constraint,
            error: record.error,
            prompt: record.prompt,
            ..ReplyRecord::default()
        })
    }
}
