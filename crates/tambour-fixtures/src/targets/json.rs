//! Fuzz target: text as JSON.

use serde_json::Value;
use tambour::limits::Limits;
use tambour::repair::json::{JsonReader, ValueCollector, parse_strict};

use super::split_text;
use crate::random::RandomSource;

/// Reads text as JSON after its first byte, which seeds the cuts. Valid JSON must give the values of
/// serde_json without a repair; any text must give the same values and reports for all cuts.
///
/// # Panics
/// An invariant is broken.
pub fn check_json(data: &[u8]) {
    let [seed, input @ ..] = data else { return };
    let text = String::from_utf8_lossy(input);
    let limits = Limits::default();
    let read = |new_reader: fn(&Limits) -> JsonReader, pieces: &[&str]| {
        let (mut reader, mut collector) = (new_reader(&limits), ValueCollector::default());
        pieces.iter().for_each(|piece| reader.push(piece, &mut collector));
        reader.finish(&mut collector);
        (collector.values, collector.reports, collector.text)
    };
    let mut random = RandomSource::new(u64::from(*seed));
    let pieces = split_text(&text, &random.random_cuts(text.len()));
    for new_reader in [JsonReader::new_chat, JsonReader::new_document, JsonReader::new_lines] {
        assert_eq!(read(new_reader, &[&text]), read(new_reader, &pieces), "cut into {pieces:?}");
    }
    let Ok(expected) = serde_json::from_str::<Value>(&text) else { return };
    let value =
        parse_strict(&text, &limits).unwrap_or_else(|report| panic!("valid {text:?} is refused: {report:?}"));
    assert!(is_same_value(&value, &expected), "strict reading of {text:?} gives {value}");
    let (values, mut reports, _) = read(JsonReader::new_document, &[&text]);
    // Valid JSON may repeat a key, which is still reported.
    reports.retain(|report| report.rule.code != "duplicate_key");
    assert!(reports.is_empty(), "repairs of valid {text:?}: {reports:?}");
    assert_eq!(values.len(), 1, "values of {text:?}");
    assert!(
        is_same_value(&values[0].value, &expected),
        "repairing reading of {text:?} gives {}",
        values[0].value
    );
}

/// Returns `true` if two values are equal, with numbers compared by value rather than by representation.
#[must_use]
pub fn is_same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same_value(a, b)))
        }
        _ => a == b,
    }
}

/// Makes an input for [`check_json()`]: valid JSON, mutated JSON, or tag soup.
#[must_use]
pub fn random_json_input(random: &mut RandomSource) -> Vec<u8> {
    let mut data = vec![random.next_bits() as u8];
    let valid = random_value(random, 0).to_string();
    match random.below(3) {
        0 => data.extend(valid.bytes()),
        1 => data.extend(random.mutate(valid.as_bytes())),
        _ => data.extend(random.tag_soup(8).bytes()),
    }
    data
}

fn random_value(random: &mut RandomSource, depth: usize) -> Value {
    match random.below(if depth < 4 { 8 } else { 6 }) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::from(random.next_bits() as i64 >> random.below(64)),
        3 => Value::from(f64::from_bits(random.next_bits())),
        4 | 5 => Value::from(random.tag_soup(3)),
        6 => {
            let item_count = random.below(4);
            (0..item_count).map(|_| random_value(random, depth + 1)).collect()
        }
        _ => {
            let field_count = random.below(4);
            let fields = (0..field_count).map(|_| (random.tag_soup(1), random_value(random, depth + 1)));
            Value::Object(fields.collect())
        }
    }
}
