//! Encoder of JSON Lines: one event per line, `{"event":NAME,"data":{...}}`.

use super::json;
use crate::event::Event;

/// Appends the event as one line.
///
/// ```
/// use tambour::{Event, encode::jsonl};
///
/// let mut out = Vec::new();
/// jsonl::write_line(&Event::FinalDelta { text: "a\nb".into() }, &mut out);
/// assert_eq!(out, b"{\"event\":\"final_delta\",\"data\":{\"text\":\"a\\nb\"}}\n");
/// ```
#[inline]
pub fn write_line(event: &Event<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"event\":\"");
    out.extend_from_slice(event.name().as_bytes());
    out.extend_from_slice(b"\",\"data\":");
    json::write_data(event, out);
    out.extend_from_slice(b"}\n");
}
