//! Parser for the values of commands, which are never computed.

use serde_json::Value;

use super::code;
use crate::finding::{Doubt, FindingReport};
use crate::lex::space::trim;
use crate::limits::Limits;
use crate::repair::json;
use crate::state::bound_numbers;

/// Returns a text without white space and quotes around it.
pub(super) fn strip_quotes(text: &str) -> &str {
    quoted_content(text).unwrap_or(trim(text))
}

/// Returns the content of the quotes that enclose a whole text; `None` without such quotes.
pub(super) fn quoted_content(text: &str) -> Option<&str> {
    let text = trim(text);
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let (mut is_escaped, inner) = (false, &text[1..]);
    let end = inner.char_indices().find(|(_, c)| {
        let is_end = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.filter(|(at, _)| at + 1 == inner.len()).map(|(at, _)| &inner[..at])
}

/// Reason why a value that is code cannot be used.
pub(super) const COMPUTED_VALUE_FAULT: &str = "it would have to be computed";

/// Parses a value: `true`, `false`, `null`, `undefined`, JSON, a number such as `+5` or `.5`, a quoted text,
/// or an object or list in JavaScript notation. Any other text that is not code is the value itself.
///
/// # Errors
/// Returns the reason if the value would have to be computed or guessed.
pub(super) fn parse_value(text: &str, limits: &Limits) -> Result<Value, String> {
    match text {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "null" | "undefined" => return Ok(Value::Null),
        _ => {}
    }
    // Numbers too large for a double are bounded, so that operations can refuse them.
    if let Ok(value) = serde_json::from_str(text).or_else(|_| serde_json::from_str(&bound_numbers(text))) {
        return duplicate_key_report(text, limits).map_or(Ok(value), |report| Err(report.message));
    }
    if text.starts_with(['\'', '`', '"']) {
        return match quoted_content(text) {
            Some(inner) if !code::has_template(text) => {
                Ok(Value::String(unescape(inner, UnknownEscape::Keep)))
            }
            _ => Err("it is computed from several parts".to_owned()),
        };
    }
    if text.starts_with(['[', '{']) {
        return parse_literal(text, limits);
    }
    if let Some(number) = parse_signed(text) {
        return Ok(number);
    }
    if code::is_value_computed(text) {
        return Err(COMPUTED_VALUE_FAULT.to_owned());
    }
    Ok(Value::from(text))
}

/// Returns the report on the first duplicate key in an object or list, with places in the text.
pub(super) fn duplicate_key_report(text: &str, limits: &Limits) -> Option<FindingReport> {
    // A larger limit, because other findings may come before this one.
    let limits = Limits { findings: limits.findings.max(1_000), ..limits.clone() };
    let reports = text.starts_with(['[', '{']).then(|| json::find(text, &limits).reports)?;
    reports.into_iter().find(|report| report.doubt == Some(Doubt::DuplicateKey))
}

/// Parses an object or a list in JavaScript notation.
fn parse_literal(text: &str, limits: &Limits) -> Result<Value, String> {
    if code::has_template(text) || code::continues_after_bracket(text) {
        return Err(COMPUTED_VALUE_FAULT.to_owned());
    }
    let found = json::find(text, limits);
    if let Some(doubt) = found.doubts.iter().next() {
        return Err(doubt.message.clone());
    }
    let is_whole = found.span.start == 0 && found.span.end == text.len() && !found.is_auto_closed;
    match found.value.filter(|value| is_whole && (value.is_array() || value.is_object())) {
        Some(value) => Ok(value),
        None => Err("it is neither a list nor an object".to_owned()),
    }
}

/// Parses a number that JSON would write differently, such as `+5`, `.5` or `-.5`.
fn parse_signed(text: &str) -> Option<Value> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { "-" } else { "" }, digits),
        None => ("", text),
    };
    let zero = if digits.starts_with('.') { "0" } else { "" };
    let is_number = digits.starts_with(|c: char| c == '.' || c.is_ascii_digit());
    is_number.then(|| serde_json::from_str(&format!("{sign}{zero}{digits}")).ok()).flatten()
}

/// Treatment of a backslash that does not begin one of the escapes of [`unescape`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownEscape {
    /// Both characters are kept.
    Keep,
    /// The backslash is dropped, as in JavaScript.
    DropBackslash,
}

/// Decodes the escapes of a text: those of quotes, backslashes, tabs (`\t`) and line breaks (`\n`).
pub(super) fn unescape(text: &str, unknown_escape: UnknownEscape) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            result.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => result.push('\n'),
            Some('t') => result.push('\t'),
            Some(c @ ('\'' | '"' | '`' | '\\')) => result.push(c),
            Some(c) if unknown_escape == UnknownEscape::DropBackslash => result.push(c),
            Some(c) => result.extend(['\\', c]),
            None => result.push('\\'),
        }
    }
    result
}
