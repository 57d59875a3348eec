//! Names of tags and attributes in prompts: XML names, with letters of any alphabet.

/// Top-level tags of a prompt with a predefined meaning (F-002).
pub(crate) const TOP_LEVEL_TAGS: [&str; 6] = [
    "system_instruction",
    "character_card",
    "world_state",
    "lorebook_entry",
    "conversation_history",
    "use_protocol",
];

/// Tags that describe their content (F-003).
pub(crate) const META_TAGS: [&str; 3] = ["block", "format", "priority"];

/// Returns true if data must not use this tag name, in any letter case. `lorebook_entry` has a meaning, but
/// data may use it.
#[must_use]
pub(crate) fn is_reserved(name: &str) -> bool {
    let is_same = |other: &str| other.eq_ignore_ascii_case(name);
    META_TAGS.iter().any(|tag| is_same(tag))
        || TOP_LEVEL_TAGS.iter().any(|tag| is_same(tag) && *tag != "lorebook_entry")
}

/// Returns true if a text is a valid tag name of at most 128 bytes.
#[must_use]
pub(crate) fn is_name(text: &str) -> bool {
    leading_name(text).is_some_and(|name| name.len() == text.len()) && text.len() <= 128
}

/// Returns the name at the beginning of a text; `None` if the text does not begin with a letter or `_`.
#[must_use]
pub(crate) fn leading_name(text: &str) -> Option<&str> {
    let first = text.chars().next().filter(|c| c.is_alphabetic() || *c == '_')?;
    let after_first = &text[first.len_utf8()..];
    let end = after_first.find(|c| !is_name_char(c)).unwrap_or(after_first.len());
    Some(&text[..first.len_utf8() + end])
}

/// Returns true if a character may occur in a name after its first character.
#[must_use]
pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}
