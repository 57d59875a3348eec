//! A value of a command. It is parsed, never computed.

use serde_json::Value;

use crate::finding::{Doubt, Report};
use crate::lex::space::trim;
use crate::limits::Limits;
use crate::repair::json;
use crate::state::bounded;

/// Returns a text without surrounding quotes.
pub(super) fn unquoted(text: &str) -> &str {
    quoted(text).unwrap_or(trim(text))
}

/// Returns the content of quotes that enclose a whole text.
fn quoted(text: &str) -> Option<&str> {
    let text = trim(text);
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let (mut escaped, inner) = (false, &text[1..]);
    let end = inner.char_indices().find(|(_, c)| {
        let ends = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.filter(|(at, _)| at + 1 == inner.len()).map(|(at, _)| &inner[..at])
}

/// Parses the value of a text: a JavaScript word, JSON, a JavaScript object or list; otherwise the text
/// itself.
///
/// # Errors
/// Returns a message if the value would have to be computed or guessed.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Value, String> {
    match text {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "null" | "undefined" => return Ok(Value::Null),
        _ => {}
    }
    if let Ok(value) = serde_json::from_str(text).or_else(|_| serde_json::from_str(&bounded(text))) {
        return doubled(text, limits).map_or(Ok(value), |report| Err(report.message));
    }
    if text.starts_with(['\'', '`', '"']) {
        return match quoted(text) {
            Some(inner) if !(text.starts_with('`') && inner.contains("${")) => {
                Ok(Value::String(unescaped(inner, Unknown::Kept)))
            }
            _ => Err("it is computed of several parts".to_owned()),
        };
    }
    if text.starts_with(['[', '{']) {
        return literal(text, limits);
    }
    if let Some(number) = signed(text) {
        return Ok(number);
    }
    if is_computed(text) {
        return Err("it would have to be computed".to_owned());
    }
    Ok(Value::from(text))
}

/// Returns the report on a duplicate key in an object or list, with places in the text.
pub(super) fn doubled(text: &str, limits: &Limits) -> Option<Report> {
    // The limit bounds the listed findings, and this one must be found whatever precedes it.
    let limits = Limits { findings: limits.findings.max(1_000), ..limits.clone() };
    let reports = text.starts_with(['[', '{']).then(|| json::find(text, &limits).reports)?;
    reports.into_iter().find(|report| report.doubt == Some(Doubt::DuplicateKey))
}

/// Parses an object or a list in JavaScript notation.
fn literal(text: &str, limits: &Limits) -> Result<Value, String> {
    let found = json::find(text, limits);
    if let Some(doubt) = found.doubts.iter().next() {
        return Err(doubt.message.clone());
    }
    let whole = found.span.start == 0 && found.span.end == text.len() && !found.closed_by_us;
    match found.value.filter(|value| whole && (value.is_array() || value.is_object())) {
        Some(value) => Ok(value),
        None => Err("it is no list and no object".to_owned()),
    }
}

/// Parses `+5`, `.5` and `-.5`, which are numbers as written.
fn signed(text: &str) -> Option<Value> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { "-" } else { "" }, digits),
        None => ("", text),
    };
    let zero = if digits.starts_with('.') { "0" } else { "" };
    let begins = digits.starts_with(|c: char| c == '.' || c.is_ascii_digit());
    begins.then(|| serde_json::from_str(&format!("{sign}{zero}{digits}")).ok()).flatten()
}

/// Functions that MVU computes with, and JavaScript names that begin a computation.
const FUNCTIONS: &[&str] = &["sqrt", "abs", "round", "floor", "ceil", "min", "max", "pow"];
const OBJECTS: &[&str] = &["Math.", "math.", "Date.", "new ", "Number(", "parseInt(", "parseFloat(", "_."];

/// Returns whether a text is a sum or another computation. A date is not one.
fn is_computed(text: &str) -> bool {
    if OBJECTS.iter().any(|start| text.starts_with(start)) {
        return true;
    }
    let mut rest = text;
    let (mut digits, mut signs) = (false, false);
    while let Some(c) = rest.chars().next() {
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if letters > 0 {
            if !FUNCTIONS.contains(&&rest[..letters]) || !trim(&rest[letters..]).starts_with('(') {
                return false;
            }
            signs = true;
            rest = &rest[letters..];
            continue;
        }
        match c {
            '0'..='9' => digits = true,
            '+' | '-' | '*' | '/' | '%' => signs |= !trim(&rest[1..]).is_empty(),
            '.' | ',' | '(' | ')' | ' ' | '\t' => {}
            _ => return false,
        }
        rest = &rest[c.len_utf8()..];
    }
    digits && signs && !is_date(text)
}

/// Returns whether a text is a date, such as `2024-03-05` or `2024/3/5`, possibly with surrounding blanks.
fn is_date(text: &str) -> bool {
    let day = |sign: char| {
        let parts: Vec<&str> = trim(text).split(sign).collect();
        let number = |part: &&str, most: usize| {
            (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        matches!(&parts[..], [year, month, day]
            if number(year, 4) && year.len() == 4 && number(month, 2) && number(day, 2))
    };
    ['-', '/', '.'].into_iter().any(day)
}

/// Treatment of an escape without meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    Kept,
    /// The backslash is dropped, as in JavaScript.
    Undone,
}

/// Decodes escaped quotes and line breaks of a text.
pub(super) fn unescaped(text: &str, unknown: Unknown) -> String {
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
            Some(c) if unknown == Unknown::Undone => result.push(c),
            Some(c) => result.extend(['\\', c]),
            None => result.push('\\'),
        }
    }
    result
}
