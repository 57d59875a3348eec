//! Whether a reply begins with events.

use crate::event::{EventKind, kind_of};

/// Whether an `event` field or line names an event (J-050), or a `type` field one of the contract.
pub(super) fn names_event(text: &str) -> bool {
    let contract = |name: &str| kind_of(name) == Some(EventKind::Contract);
    named_by("event", true, text, |name| kind_of(name).is_some()) || named_by("type", false, text, contract)
}

/// Whether a field called `field`, or a line where `lines` may do it, gives a name that is one.
fn named_by(field: &str, lines: bool, text: &str, is_name: impl Fn(&str) -> bool) -> bool {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '“' | '”' | '`' | '\\') || c.is_whitespace();
    text.match_indices(field).any(|(at, word)| {
        let before = text[..at].trim_end_matches(is_quote).chars().next_back();
        let after = text[at + word.len()..].trim_start_matches(is_quote);
        let Some(value) = after.strip_prefix([':', '：']) else { return false };
        let value = value.trim_start_matches(is_quote);
        let name = value.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
        // An unfinished name may still grow.
        let complete = name.len() < value.len();
        let in_object = matches!(before, Some('{' | ',' | '｛' | '，'));
        let line = text[..at].rfind('\n').map_or(&text[..at], |start| &text[start + 1..at]);
        // In a sentence it decides nothing.
        let alone = line.trim_start().starts_with(['{', '[', ',', '"', '｛', '，', '`', '~', '<', '◁'])
            || line.trim_start().starts_with("data:");
        complete && (in_object && alone || lines && line.is_empty()) && is_name(name)
    })
}
