//! Recorded replies, which are played chunk by chunk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tambour::InputEnd;
use tambour::dialect::DIALECTS;
use tambour::event::{Failure, FinishReason};
use tambour::texts::{Language, explain_parse_error, list_names};

use super::{ModelRequest, ReplyItem, new_failure};

/// Set of recordings.
pub struct RecordedReplies {
    records: Vec<Arc<RecordedReply>>,
    /// Number of recordings that `next_of_dialect` has chosen for each dialect; it selects the next one.
    play_counts: Mutex<HashMap<String, usize>>,
    /// Delay before each chunk for which the recording gives no delay.
    chunk_delay: Duration,
}

/// Recording of one reply.
#[derive(Debug, Deserialize)]
struct RecordedReply {
    /// Name, by which the `model` of a request selects the recording.
    id: String,
    /// Text of the reply, in the pieces in which it was received.
    chunks: Vec<String>,
    #[serde(default)]
    finish_reason: Option<FinishReason>,
    /// Dialect of the reply; any dialect if absent.
    #[serde(default)]
    protocol: Option<String>,
    /// Milliseconds before each chunk; `chunk_delay` if the list is absent or too short.
    #[serde(default)]
    delays_ms: Option<Vec<u64>>,
    /// First round, counted from 1, of a dialogue's `ai_say` action in which the recording is played; absent
    /// if it is for other calls.
    #[serde(default)]
    round: Option<u32>,
    /// Language of the recording: `zh` or `en`.
    #[serde(default)]
    lang: Option<String>,
    /// Failure of a call without a reply, which is not played.
    #[serde(default)]
    error: serde_json::Value,
}

/// Recordings included in the product.
const DEMO_RECORDINGS: [&str; 6] = [
    include_str!("../../../fixtures/recorded/thinkingml.jsonl"),
    include_str!("../../../fixtures/recorded/jsonseq.jsonl"),
    include_str!("../../../fixtures/recorded/aiplan.jsonl"),
    include_str!("../../../fixtures/recorded/ai_say.jsonl"),
    include_str!("../../../fixtures/recorded/filament.jsonl"),
    // Written by hand: in these replies the user's understanding rises from round to round, so that a
    // dialogue ends at its threshold.
    include_str!("../demo/rounds.jsonl"),
];
/// Delay before each chunk: about the pace of a small model on a laptop.
const DEMO_CHUNK_DELAY: Duration = Duration::from_millis(25);

impl RecordedReplies {
    /// Loads the recordings included in the product.
    ///
    /// # Errors
    /// A recording is invalid.
    pub fn load_demo() -> Result<RecordedReplies, String> {
        let mut replay = RecordedReplies::parse(&DEMO_RECORDINGS.concat(), DEMO_CHUNK_DELAY)?;
        // The demonstration shows complete replies only.
        replay.records.retain(|record| record.finish_reason == Some(FinishReason::Stop));
        Ok(replay)
    }

    /// Loads the recordings of a file, one JSON object per line.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a recording.
    pub fn load_file(path: &Path) -> Result<RecordedReplies, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        RecordedReplies::parse(&text, Duration::ZERO).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Parses recordings, one JSON object per line.
    fn parse(text: &str, chunk_delay: Duration) -> Result<RecordedReplies, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let records: Result<Vec<_>, String> = lines
            .map(|(index, line)| parse_record(line).map_err(|error| format!("line {}: {error}", index + 1)))
            .collect();
        // A failed call is no reply.
        let records: Vec<_> = records?.into_iter().filter(|record| record.error.is_null()).collect();
        if records.is_empty() {
            return Err("no recordings".to_owned());
        }
        Ok(RecordedReplies { records, play_counts: Mutex::default(), chunk_delay })
    }

    /// Opens the recording whose id is the model of the request. Without a model, opens the recording for the
    /// round or, if there is none, the next one of the dialect.
    ///
    /// # Errors
    /// There is no such recording.
    pub(super) fn open(&self, request: &ModelRequest) -> Result<RecordingPlayer, Failure> {
        let record = match &request.model {
            Some(id) => self.records.iter().find(|record| record.id == *id).cloned(),
            None => self.find_for_round(request).or_else(|| self.next_of_dialect(&request.dialect)),
        };
        let record = record.ok_or_else(|| {
            let message = match &request.model {
                Some(id) => {
                    let known_names = list_names(id, self.records.iter().map(|record| record.id.as_str()));
                    format!("`model` names an unknown recording `{}`; known: {known_names}", clip_name(id))
                }
                None => {
                    let protocols = self.records.iter().filter_map(|record| record.protocol.as_deref());
                    let known_names = list_names(&request.dialect, protocols);
                    format!(
                        "there is no recording whose `protocol` is `{}`; known: {known_names}",
                        request.dialect
                    )
                }
            };
            new_failure("recording_not_found", message, false)
        })?;
        if request.response_format.is_some() {
            tracing::debug!(
                message_id = %request.message_id,
                "a recording is played unchanged: `response_format` is ignored"
            );
        }
        Ok(RecordingPlayer { record, next_chunk: 0, chunk_delay: self.chunk_delay })
    }

    /// Returns the recording for the round of the request. Considers the recordings of its dialect for this
    /// round or an earlier one; prefers the language of the request, then the latest round.
    fn find_for_round(&self, request: &ModelRequest) -> Option<Arc<RecordedReply>> {
        let (round, language) = request.round?;
        let language = if language == Language::Zh { "zh" } else { "en" };
        let rank = |record: &&Arc<RecordedReply>| (record.lang.as_deref() == Some(language), record.round);
        let dialect_records =
            self.records.iter().filter(|record| record.protocol.as_ref() == Some(&request.dialect));
        let earlier_records =
            dialect_records.filter(|record| record.round.is_some_and(|record_round| record_round <= round));
        earlier_records.max_by_key(rank).cloned()
    }

    /// Returns the next recording of a dialect, in the order of the file, starting again after the last one.
    /// Recordings for rounds are left out.
    fn next_of_dialect(&self, dialect: &str) -> Option<Arc<RecordedReply>> {
        // `auto` finds out the dialect of a reply, and `plain` reads any reply as text.
        let accepts_any_dialect = matches!(dialect, "auto" | "plain");
        let is_match = |record: &&Arc<RecordedReply>| {
            record.round.is_none()
                && (accepts_any_dialect
                    || record.protocol.as_deref().is_none_or(|protocol| protocol == dialect))
        };
        let dialect_records: Vec<&Arc<RecordedReply>> = self.records.iter().filter(is_match).collect();
        let mut play_counts = self.play_counts.lock().unwrap_or_else(PoisonError::into_inner);
        let play_count = play_counts.entry(dialect.to_owned()).or_default();
        let record = dialect_records.get(*play_count % dialect_records.len().max(1))?;
        *play_count += 1;
        Some(Arc::clone(record))
    }
}

/// Parses a recording from a line of JSON.
fn parse_record(line: &str) -> Result<Arc<RecordedReply>, String> {
    let record: RecordedReply =
        serde_json::from_str(line).map_err(|error| explain_parse_error(&error.to_string()))?;
    // The last two are actions of dialogues, whose model calls name the action in place of a dialect.
    let known_names = DIALECTS.iter().map(|entry| entry.name).chain(["ai_ask", "ai_think"]);
    if let Some(name) =
        record.protocol.as_deref().filter(|name| !known_names.clone().any(|known_name| known_name == *name))
    {
        return Err(format!(
            "unknown `protocol` `{}`; known: {}",
            clip_name(name),
            list_names(name, known_names)
        ));
    }
    Ok(Arc::new(record))
}

/// Returns at most 80 bytes of a name, for a message.
fn clip_name(name: &str) -> &str {
    &name[..name.floor_char_boundary(80)]
}

/// Recording being played.
pub(super) struct RecordingPlayer {
    record: Arc<RecordedReply>,
    /// Index of the next chunk.
    next_chunk: usize,
    chunk_delay: Duration,
}

impl RecordingPlayer {
    /// Waits for the delay of the next chunk and adds its text; adds the end after the last chunk.
    pub(super) async fn next(&mut self, items: &mut Vec<ReplyItem>) {
        let Some(chunk) = self.record.chunks.get(self.next_chunk) else {
            let end = self.record.finish_reason.map_or(InputEnd::WithoutReason, InputEnd::Finished);
            items.push(ReplyItem::End(end));
            return;
        };
        let delays = self.record.delays_ms.as_deref().unwrap_or(&[]);
        let delay = delays.get(self.next_chunk).map_or(self.chunk_delay, |ms| Duration::from_millis(*ms));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        } else {
            tokio::task::yield_now().await;
        }
        items.push(ReplyItem::Text(chunk.clone()));
        self.next_chunk += 1;
    }
}
