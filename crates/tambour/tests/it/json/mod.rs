//! The JSON reader: repairs, search, strict reading; independent of cuts; linear on hostile text.

mod doubts;
mod finding;
mod hostile;
mod repairs;
mod text;
mod valid;

use serde_json::Value;
use tambour::finding::FindingReport;
use tambour::limits::Limits;
use tambour::repair::json::{BuiltValue, JsonReader, MAX_HELD_BYTES, ValueCollector};

/// Values, reports and text that a reading gave.
#[derive(Debug, PartialEq)]
struct Reading {
    values: Vec<BuiltValue>,
    reports: Vec<FindingReport>,
    text: String,
}

type ReaderConstructor = fn(&Limits) -> JsonReader;

const READERS: [ReaderConstructor; 4] =
    [JsonReader::new_chat, JsonReader::new_lines, JsonReader::new_document, new_seeking_reader];

fn new_seeking_reader(limits: &Limits) -> JsonReader {
    JsonReader::new_chat(limits).with_sought_keys(&["a"])
}

fn read(constructor: ReaderConstructor, pieces: &[&str]) -> Reading {
    let (mut reader, mut values) = (constructor(&Limits::default()), ValueCollector::default());
    for piece in pieces {
        reader.push(piece, &mut values);
        assert!(reader.held_bytes() <= MAX_HELD_BYTES, "{} bytes are held", reader.held_bytes());
    }
    reader.finish(&mut values);
    Reading { values: values.values, reports: values.reports, text: values.text }
}

/// Compares the readings of `text` under every single cut, byte by byte and in threes with the one of the whole.
#[track_caller]
fn assert_same_under_cuts(text: &str) {
    let bounds: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
    for constructor in READERS {
        let whole = read(constructor, &[text]);
        for &at in &bounds {
            let (a, b) = text.split_at(at);
            assert_eq!(read(constructor, &[a, b]), whole, "{text:?} cut at {at}");
        }
        for step in [1, 3] {
            let cuts: Vec<usize> = bounds.iter().copied().step_by(step).chain([text.len()]).collect();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            assert_eq!(read(constructor, &pieces), whole, "{text:?} in pieces of {step}");
        }
    }
}

fn codes(reports: &[FindingReport]) -> Vec<&'static str> {
    reports.iter().map(|report| report.rule.code).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
