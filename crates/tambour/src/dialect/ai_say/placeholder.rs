//! Placeholders of the instruction template, which small models copy instead of filling them in.

use serde_json::Value;

/// The placeholders; the flag is set if dots follow the text.
const PLACEHOLDERS: [(&str, bool); 9] = [
    // Dots only.
    ("", true),
    ("0-100", false),
    ("true|false", false),
    ("你的回复内容", true),
    ("评估理由", true),
    ("退出或继续的原因", true),
    ("your reply", true),
    ("why you judged so", true),
    ("why to end or to go on", true),
];

/// Spellings of the dots.
const DOTS: [&str; 4] = ["...", "…", "……", "......"];

/// Returns true if the text is an unfilled placeholder.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    placeholders().any(|(start, end)| text.strip_prefix(start) == Some(end))
}

/// Returns true if the text is empty, or short JSON that contains no number and no text other than
/// placeholders: `null`, `true`, `""`, `[]`, `{}` and nested combinations. A code fence around the text is
/// ignored.
pub(super) fn is_hollow(text: &str) -> bool {
    fn is_hollow_value(value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => true,
            Value::Number(_) => false,
            Value::String(text) => text.trim().is_empty() || is_placeholder(text),
            Value::Array(items) => items.iter().all(is_hollow_value),
            Value::Object(fields) => fields.iter().all(|(_, value)| is_hollow_value(value)),
        }
    }
    let text = strip_fence(text.trim());
    // Hollow texts are short, so long ones are not parsed.
    text.is_empty()
        || text.len() <= MAX_HOLLOW && serde_json::from_str(text).is_ok_and(|value| is_hollow_value(&value))
}

/// Returns the content of a fence that encloses the entire text.
fn strip_fence(text: &str) -> &str {
    let Some(fence_char) =
        ['`', '~'].into_iter().find(|fence_char| text.starts_with(&String::from(*fence_char).repeat(3)))
    else {
        return text;
    };
    match text.split_once('\n') {
        Some((_, inner)) => inner.trim_end().trim_end_matches(fence_char).trim(),
        None => text.trim_matches(fence_char),
    }
}

/// Longest JSON, in bytes, that is tested for being hollow.
const MAX_HOLLOW: usize = 4 << 10;

/// Returns true if the text, which has no leading white space, may become a placeholder when more of it
/// arrives.
pub(super) fn may_become_placeholder(text: &str) -> bool {
    placeholders().any(|(start, end)| match text.strip_prefix(start) {
        Some(end_start) => end.starts_with(end_start),
        None => start.starts_with(text),
    })
}

/// Returns all spellings of the placeholders, each as its text and the dots after it.
fn placeholders() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLACEHOLDERS.iter().flat_map(|(start, has_dots)| {
        let endings = if *has_dots { &DOTS[..] } else { &[""] };
        endings.iter().map(move |end| (*start, *end))
    })
}
