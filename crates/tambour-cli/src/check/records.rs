//! Search for the fields of `.jsonl` records that may hold the reply, when none was named.

use serde_json::{Map, Value};
use tambour::texts::format_count;

use crate::output::visible_char;

/// Summary of the records of a text whose lines are all JSON objects.
pub(super) struct RecordSummary {
    /// Number of records.
    pub(super) count: usize,
    /// Names of the fields that hold text in all sampled records; [`USUAL_FIELDS`] come first.
    fields: Vec<String>,
}

/// Number of records, from the first, that are searched for fields.
const SAMPLED_RECORDS: usize = 100;

/// Maximum number of fields listed in a message.
const MAX_LISTED_FIELDS: usize = 10;
/// Maximum number of characters of a field name in a message.
const MAX_FIELD_CHARS: usize = 60;

/// Usual names of the field that holds the reply, most likely first.
const USUAL_FIELDS: [&str; 9] =
    ["reply", "response", "output", "completion", "answer", "text", "content", "raw", "chunks"];

impl RecordSummary {
    /// Reads the records of a text; `None` if it has none, or a line that is not a JSON object.
    pub(super) fn read(bytes: &[u8]) -> Option<RecordSummary> {
        let mut records = RecordSummary { count: 0, fields: Vec::new() };
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let record: Map<String, Value> = serde_json::from_slice(line).ok()?;
            match records.count {
                0 => {
                    records.fields = record
                        .iter()
                        .filter(|(_, value)| has_text(value))
                        .map(|(name, _)| name.clone())
                        .collect()
                }
                1..SAMPLED_RECORDS => records.fields.retain(|name| record.get(name).is_some_and(has_text)),
                _ => {}
            }
            records.count += 1;
        }
        let usual_rank = |name: &String| {
            USUAL_FIELDS.iter().position(|usual_name| usual_name == name).unwrap_or(USUAL_FIELDS.len())
        };
        records.fields.sort_by_key(usual_rank);
        (records.count > 0).then_some(records)
    }

    /// Message that names the fields and the remedy.
    pub(super) fn missing_field_message(&self) -> String {
        let records = format_count(self.count, "record");
        match self.fields.first() {
            Some(first) => {
                let shorten_name =
                    |name: &String| name.chars().take(MAX_FIELD_CHARS).map(visible_char).collect::<String>();
                let fields: Vec<String> =
                    self.fields.iter().take(MAX_LISTED_FIELDS).map(shorten_name).collect();
                format!(
                    "{records}, and no --field says which field holds the reply; try `--field {}`; fields with text: {}",
                    shorten_name(first),
                    fields.join(", ")
                )
            }
            None => format!(
                "{records} of JSON and not a reply; `--field NAME` reads records, and these share no field with text"
            ),
        }
    }
}

/// Returns `true` if a field can hold a reply: it is a string, or a non-empty array of strings.
fn has_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(Value::is_string),
        _ => false,
    }
}
