//! Writes events as JSON Lines in the form a model should use.

use crate::dialect::pieces::{self, TextPieces};
use crate::event::{Event, EventKind};

/// Writes the contract events of one reply, one per line; adjacent deltas are joined.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let events: Vec<&Event<'_>> = events.iter().filter(|event| event.kind() == EventKind::Contract).collect();
    let mut out = Vec::with_capacity(events.iter().map(|event| delta_text(event).len() + 64).sum());
    for line in events.chunk_by(|before, event| is_same_text(before, event)) {
        let Some((event, _)) = line.split_first() else { continue };
        out.extend_from_slice(b"{\"event\":\"");
        out.extend_from_slice(event.name().as_bytes());
        out.extend_from_slice(b"\",\"data\":");
        match event {
            Event::FinalDelta { .. } => out.extend_from_slice(b"{\"text\":"),
            Event::PhaseDelta { id, .. } => {
                out.extend_from_slice(format!("{{\"id\":{id},\"text\":").as_bytes())
            }
            _ => {
                out.extend_from_slice(event.data().to_string().as_bytes());
                out.extend_from_slice(b"}\n");
                continue;
            }
        }
        TextPieces(line.iter().map(|event| delta_text(event))).write(&mut out);
        out.extend_from_slice(b"}}\n");
    }
    pieces::utf8_string(out)
}

/// Returns true if two deltas are pieces of one text.
fn is_same_text(before: &Event<'_>, event: &Event<'_>) -> bool {
    match (before, event) {
        (Event::FinalDelta { .. }, Event::FinalDelta { .. }) => true,
        (Event::PhaseDelta { id: a, .. }, Event::PhaseDelta { id: b, .. }) => a == b,
        _ => false,
    }
}

/// Returns the text of a delta.
fn delta_text<'a>(event: &'a Event<'_>) -> &'a str {
    match event {
        Event::FinalDelta { text } | Event::PhaseDelta { text, .. } => text,
        _ => "",
    }
}
