//! Names of tags and attributes in prompts: those of XML, in any script.

/// Tags at the top level of a prompt that have a meaning of their own (F-002).
pub const TAGS: [&str; 6] = [
    "system_instruction",
    "character_card",
    "world_state",
    "lorebook_entry",
    "conversation_history",
    "use_protocol",
];

/// Tags that say something about what they hold (F-003).
pub const META: [&str; 3] = ["block", "format", "priority"];

/// Whether a tag has a meaning of its own, so that data cannot take it; `lorebook_entry` is for data.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    META.iter().any(|tag| same(tag)) || TAGS.iter().any(|tag| same(tag) && *tag != "lorebook_entry")
}

/// Whether a text is a name of a tag.
#[must_use]
pub fn is_name(text: &str) -> bool {
    first(text).is_some_and(|name| name.len() == text.len()) && text.len() <= 128
}

/// The name that a text begins with.
#[must_use]
pub fn first(text: &str) -> Option<&str> {
    let start = text.chars().next().filter(|c| c.is_alphabetic() || *c == '_')?;
    let rest = &text[start.len_utf8()..];
    let end = rest.find(|c| !continues(c)).unwrap_or(rest.len());
    Some(&text[..start.len_utf8() + end])
}

/// Whether a character may stand in a name.
#[must_use]
pub fn continues(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}
