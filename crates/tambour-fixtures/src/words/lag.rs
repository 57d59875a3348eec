//! Measures the text that a pipeline holds back and compares it with [`Pipeline::held_bytes`]. The
//! measurement uses only input and output: it notes when each marker word arrives and when it is delivered.

use std::collections::BTreeMap;

use tambour::event::Sink;
use tambour::{Event, Pipeline};

use super::account::WordKind;
use super::{MARKER_LEN, WordNumber, WordTrial, find_words};

/// Bytes of words that may be pending beyond the number that the pipeline reports: one word that the last
/// byte completed, and one in an unfinished character, escape or tag.
const PENDING_SLACK: usize = 2 * MARKER_LEN;

/// Greatest delay of delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryLag {
    /// Number of words whose delivery was timed.
    pub word_count: usize,
    /// Maximum number of bytes in words that had arrived but were not yet delivered.
    pub max_pending: usize,
}

/// Reads `trial` byte by byte. A word is pending from its arrival to its delivery. After each byte, the
/// pending words of streamed text may have no more bytes than `reported_bytes` returns for the pipeline, plus
/// `PENDING_SLACK`, and no more than the limits allow.
///
/// # Errors
/// More bytes are pending, or the dialect is unknown.
pub fn measure_lag(trial: &WordTrial, reported_bytes: fn(&Pipeline) -> usize) -> Result<DeliveryLag, String> {
    let mut sink = DeliveryTimes::default();
    let pipeline = Pipeline::new(&trial.dialect, &trial.options).map_err(|error| error.to_string())?;
    let mut pipeline = pipeline.with_extensions(true);
    let mut held_bytes = vec![0];
    for (at, byte) in trial.input.chunks(1).enumerate() {
        sink.pushed_len = at + 1;
        pipeline.push(byte, &mut sink);
        held_bytes.push(reported_bytes(&pipeline));
    }
    sink.pushed_len = trial.input.len() + 1;
    pipeline.finish(&trial.end(), &mut sink);
    // Bytes of words that arrive and that are delivered, by number of bytes pushed.
    let mut changes = vec![(0_usize, 0_usize); trial.input.len() + 2];
    let mut lag = DeliveryLag::default();
    // Text that is delivered whole is not counted. Queries are such text, even if they are not valid.
    let queries_tag = b"<serp_queries>";
    let query_starts = (0..trial.input.len()).filter(|&at| trial.input[at..].starts_with(queries_tag));
    let mut atomic_ranges: Vec<_> =
        query_starts.map(|at| at..at + queries_tag.len() + trial.options.limits.hold).collect();
    // `auto` may choose filament.
    if matches!(trial.dialect.as_str(), "filament" | "auto") {
        atomic_ranges.extend(element_ranges(&trial.input));
    }
    if trial.dialect == "toolcall" {
        atomic_ranges.extend(call_range(&trial.input));
    }
    if trial.dialect == "json_value" {
        // The value is delivered only when it is complete.
        atomic_ranges.push(0..trial.input.len());
    }
    let mut offsets: BTreeMap<WordNumber, Vec<usize>> = BTreeMap::new();
    find_words(&trial.input).for_each(|(at, word)| offsets.entry(word).or_default().push(at));
    for (word, offsets) in offsets {
        // Only words that are in the reply, and delivered, exactly once are timed.
        let ([at], Some([delivery])) = (&offsets[..], sink.delivered_at.get(&word).map(Vec::as_slice)) else {
            continue;
        };
        if atomic_ranges.iter().any(|range| range.contains(at)) {
            continue;
        }
        lag.word_count += 1;
        changes[at + MARKER_LEN].0 += MARKER_LEN;
        changes[*delivery].1 += MARKER_LEN;
    }
    let mut pending = 0_usize;
    let limit = trial.max_held_bytes();
    for (at, ((arrived_bytes, delivered_bytes), held_bytes)) in changes.iter().zip(&held_bytes).enumerate() {
        pending = pending + arrived_bytes - delivered_bytes;
        lag.max_pending = lag.max_pending.max(pending);
        if pending > held_bytes + PENDING_SLACK {
            return Err(format!(
                "after byte {at} {pending} bytes of words are pending, but {held_bytes} are reported"
            ));
        }
        if pending > limit {
            return Err(format!(
                "after byte {at} {pending} bytes of words are pending, at most {limit} are allowed"
            ));
        }
    }
    Ok(lag)
}

/// Finds Filament elements, which are delivered whole, even if they turn out to be text; an unclosed one runs
/// to the end.
fn element_ranges(input: &[u8]) -> Vec<std::ops::Range<usize>> {
    let text = String::from_utf8_lossy(input).to_ascii_lowercase();
    let names = [
        "variable_update",
        "state_update",
        "updatevariable",
        "tool_call",
        "status_bar",
        "details",
        "choice",
        "ui_component",
        "media",
    ];
    let ranges_of = |name: &'static str| {
        let text = &text;
        text.match_indices(name).map(move |(at, _)| {
            let end = text[at..].find(&format!("</{name}")).map_or(input.len(), |end| at + end);
            at..end
        })
    };
    names.into_iter().flat_map(ranges_of).collect()
}

/// Finds the range of calls, which are delivered whole, even if they turn out to be text: from the first text
/// that may begin a call to the end.
fn call_range(input: &[u8]) -> Option<std::ops::Range<usize>> {
    let text = String::from_utf8_lossy(input);
    let call_beginnings = ["<tool_call>", "<function=", "[TOOL_CALLS]", "<｜tool", "<|", "{", "["];
    let first = call_beginnings.iter().filter_map(|beginning| text.find(beginning)).min()?;
    // Offsets differ if bytes that are not UTF-8 were replaced.
    let start = if text.len() == input.len() { first } else { 0 };
    Some(start..input.len())
}

/// Delivery times of words, for the kinds that stream.
#[derive(Default)]
struct DeliveryTimes {
    /// Number of bytes pushed so far.
    pushed_len: usize,
    /// End of the text of each kind, which may be the start of a word.
    tails: BTreeMap<WordKind, String>,
    /// Number of bytes pushed at each delivery of a word.
    delivered_at: BTreeMap<WordNumber, Vec<usize>>,
}

impl Sink for DeliveryTimes {
    fn event(&mut self, event: Event<'_>) {
        let (kind, text) = match &event {
            Event::PhaseDelta { text, .. } => (WordKind::Phase, text),
            Event::FinalDelta { text } => (WordKind::Final, text),
            Event::DraftDelta { text } => (WordKind::Draft, text),
            Event::Aside { text, .. } => (WordKind::Aside, text),
            _ => return,
        };
        let tail = self.tails.entry(kind).or_default();
        tail.push_str(text);
        let mut words_end = 0;
        for (at, word) in find_words(tail.as_bytes()) {
            self.delivered_at.entry(word).or_default().push(self.pushed_len);
            words_end = at + MARKER_LEN;
        }
        // Keeps what may be the beginning of a word, without words that were counted.
        let tail_start = tail.floor_char_boundary(tail.len().saturating_sub(MARKER_LEN - 1));
        tail.drain(..tail_start.max(words_end));
    }
}
