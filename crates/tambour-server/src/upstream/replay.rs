//! Recorded replies, played chunk by chunk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tambour::End;
use tambour::dialect::DIALECTS;
use tambour::event::{Failure, FinishReason};
use tambour::texts::{Language, in_words, listed};

use super::{Ask, Item, failure};

/// Set of recordings, with the next one for each dialect.
pub struct Replay {
    records: Vec<Arc<Record>>,
    next: Mutex<HashMap<String, usize>>,
    /// Delay between chunks if a recording has none.
    pace: Duration,
}

#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    chunks: Vec<String>,
    #[serde(default)]
    finish_reason: Option<FinishReason>,
    #[serde(default)]
    protocol: Option<String>,
    #[serde(default)]
    delays_ms: Option<Vec<u64>>,
    /// Round of an `ai_say` that the recording answers, from 1; any round if absent.
    #[serde(default)]
    round: Option<u32>,
    /// Language of the recording.
    #[serde(default)]
    lang: Option<String>,
}

/// Recordings included in the product.
const DEMO: [&str; 6] = [
    include_str!("../../../../fixtures/recorded/thinkingml.jsonl"),
    include_str!("../../../../fixtures/recorded/jsonseq.jsonl"),
    include_str!("../../../../fixtures/recorded/aiplan.jsonl"),
    include_str!("../../../../fixtures/recorded/ai_say.jsonl"),
    include_str!("../../../../fixtures/recorded/filament.jsonl"),
    // Authored: understanding that rises from round to round, so that a dialogue ends where its threshold says.
    include_str!("../../demo/rounds.jsonl"),
];
/// Approximate pace of a small model on a laptop.
const DEMO_PACE: Duration = Duration::from_millis(25);

impl Replay {
    /// Loads the included recordings of real models.
    ///
    /// # Errors
    /// A recording is invalid.
    pub fn demo() -> Result<Replay, String> {
        let mut replay = Replay::read(&DEMO.concat(), DEMO_PACE)?;
        // The demonstration shows complete replies only.
        replay.records.retain(|record| record.finish_reason == Some(FinishReason::Stop));
        Ok(replay)
    }

    /// Loads the recordings of a file, one JSON object per line.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a recording.
    pub fn file(path: &Path) -> Result<Replay, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Replay::read(&text, Duration::ZERO).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn read(text: &str, pace: Duration) -> Result<Replay, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let records: Result<Vec<_>, String> = lines
            .map(|(at, line)| record(line).map_err(|error| format!("line {}: {error}", at + 1)))
            .collect();
        let records = records?;
        if records.is_empty() {
            return Err("no recordings".to_owned());
        }
        Ok(Replay { records, next: Mutex::default(), pace })
    }

    /// Opens the recording whose id is the model, or the next one of the dialect: in file order, cyclically.
    pub(super) fn open(&self, ask: &Ask) -> Result<Playing, Failure> {
        let record = match &ask.model {
            Some(id) => self.records.iter().find(|record| record.id == *id).cloned(),
            None => self.of_round(ask).or_else(|| self.turn(&ask.dialect)),
        };
        let record = record.ok_or_else(|| {
            let message = match &ask.model {
                Some(id) => {
                    let known = listed(id, self.records.iter().map(|record| record.id.as_str()));
                    format!("there is no recording `{}`, which `model` picks; known: {known}", clip(id))
                }
                None => {
                    let protocols = self.records.iter().filter_map(|record| record.protocol.as_deref());
                    let known = listed(&ask.dialect, protocols);
                    format!("there is no recording whose `protocol` is `{}`; known: {known}", ask.dialect)
                }
            };
            failure("recording_not_found", message, false)
        })?;
        if ask.response_format.is_some() {
            tracing::debug!(
                message_id = %ask.message,
                "a recording is played as it was made: `response_format` does nothing"
            );
        }
        Ok(Playing { record, at: 0, pace: self.pace })
    }

    /// Returns the recording of the request's round, in its language if there is one: of the last round that is not after it.
    fn of_round(&self, ask: &Ask) -> Option<Arc<Record>> {
        let (round, language) = ask.round?;
        let language = if language == Language::Zh { "zh" } else { "en" };
        let rank = |record: &&Arc<Record>| (record.lang.as_deref() == Some(language), record.round);
        let of_dialect = self.records.iter().filter(|record| record.protocol.as_ref() == Some(&ask.dialect));
        let until = of_dialect.filter(|record| record.round.is_some_and(|of| of <= round));
        until.max_by_key(rank).cloned()
    }

    fn turn(&self, dialect: &str) -> Option<Arc<Record>> {
        let any = matches!(dialect, "auto" | "plain");
        let fits = |record: &&Arc<Record>| {
            record.round.is_none()
                && (any || record.protocol.as_deref().is_none_or(|protocol| protocol == dialect))
        };
        let of_dialect: Vec<&Arc<Record>> = self.records.iter().filter(fits).collect();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.entry(dialect.to_owned()).or_default();
        let record = of_dialect.get(*turn % of_dialect.len().max(1))?;
        *turn += 1;
        Some(Arc::clone(record))
    }
}

/// Parses a recording.
fn record(line: &str) -> Result<Arc<Record>, String> {
    let record: Record = serde_json::from_str(line).map_err(|error| in_words(&error.to_string()))?;
    let known = DIALECTS.iter().map(|entry| entry.name).chain(["ai_ask", "ai_think"]);
    if let Some(name) = record.protocol.as_deref().filter(|name| !known.clone().any(|known| known == *name)) {
        return Err(format!("there is no `protocol` `{}`; known: {}", clip(name), listed(name, known)));
    }
    Ok(Arc::new(record))
}

/// Returns the part of a name that a message shows.
fn clip(name: &str) -> &str {
    &name[..name.floor_char_boundary(80)]
}

/// Recording being played.
pub(super) struct Playing {
    record: Arc<Record>,
    at: usize,
    pace: Duration,
}

impl Playing {
    pub(super) async fn next(&mut self, items: &mut Vec<Item>) {
        let Some(chunk) = self.record.chunks.get(self.at) else {
            let end = self.record.finish_reason.map_or(End::Unknown, End::Finished);
            items.push(Item::End(end));
            return;
        };
        let delays = self.record.delays_ms.as_deref().unwrap_or(&[]);
        let delay = delays.get(self.at).map_or(self.pace, |ms| Duration::from_millis(*ms));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        } else {
            tokio::task::yield_now().await;
        }
        items.push(Item::Text(chunk.clone()));
        self.at += 1;
    }
}
