//! The JSON value in a text, as `tambour json` finds it.

use serde_json::Value;
use tambour::finding::FindingReport;
use tambour::limits::Limits;
use tambour::repair::json;
use tambour::{Finding, Profile};

/// JSON value found in a text.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundJson {
    /// A value whose numbers a [`Value`] holds exactly.
    Value(Value),
    /// JSON text of a value, with all digits of its numbers.
    Text(String),
}

/// Code of the finding on a number that a double does not hold exactly.
const NUMBER_CODE: &str = "json_number";

/// Code of the finding on a value that exceeds a limit.
const LIMIT_CODE: &str = "limit_exceeded";

/// Finds the one JSON value of a chatty, fenced or broken text; `None` if there is none. With `is_strict` the
/// text must be nothing but valid JSON. Memory is linear in the text.
#[must_use]
pub fn find_json(text: &str, is_strict: bool) -> (Option<FoundJson>, Vec<Finding>) {
    let mut limits = Limits::default();
    if is_strict {
        return match json::parse_strict_text(text, &limits) {
            Ok(value) => (Some(FoundJson::Text(value)), Vec::new()),
            Err(report) => (None, vec![report.judge(Profile::Strict)]),
        };
    }
    // The text is in memory already, so its value is bounded by it.
    limits.value = limits.value.max(text.len());
    limits.items = limits.items.max(text.len());
    if !may_be_displayed(text) && !has_long_number(text) {
        let found = json::find(text, &limits);
        // A rounded number is read again with all its digits.
        if !found.reports.iter().any(|report| report.rule.code == NUMBER_CODE) {
            return keep_whole(found.value.map(FoundJson::Value), found.reports);
        }
    }
    let found = json::find_displayed(text, &limits);
    keep_whole(found.value.map(FoundJson::Text), found.reports)
}

/// Leaves out a value of which a limit has cut a part off: what is left is not what the text says. The finding that
/// says so comes first then.
fn keep_whole(
    value: Option<FoundJson>,
    mut reports: Vec<FindingReport>,
) -> (Option<FoundJson>, Vec<Finding>) {
    let limit = reports.iter().position(|report| report.rule.code == LIMIT_CODE);
    if let Some(limit) = limit {
        reports[..=limit].rotate_right(1);
    }
    (value.filter(|_| limit.is_none()), judge(reports))
}

/// Returns whether a text has a whole number that a [`Value`] may not hold: one of 19 digits or more.
fn has_long_number(text: &str) -> bool {
    const DIGITS: usize = 19;
    let bytes = text.as_bytes();
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    // Every run of that length has a digit at one of these places.
    (DIGITS - 1..bytes.len()).step_by(DIGITS).any(|at| {
        let before = bytes[..at].iter().rev().take(DIGITS).take_while(is_digit).count();
        let after = bytes[at..].iter().take(DIGITS).take_while(is_digit).count();
        after > 0 && before + after >= DIGITS
    })
}

/// Like [`find_json`] without its findings, which cost time where a value is valid.
#[must_use]
pub fn find_json_value(text: &str) -> Option<FoundJson> {
    match find_lone_object(text) {
        Some(value) => Some(FoundJson::Value(value)),
        None => find_json(text, false).0,
    }
}

/// Parses the object of a text whose other text cannot hold a value, thinking or a comment; `None` if the
/// object has faults with more than one reading, or the text may have other parts.
fn find_lone_object(text: &str) -> Option<Value> {
    let (start, end) = (text.find('{')?, text.rfind('}')? + 1);
    let object = text.get(start..end)?;
    // An object without a key in quotes may be prose in brackets.
    let inner = object.strip_prefix('{')?.trim_start_matches([' ', '\n', '\r', '\t']);
    let has_key = inner.starts_with(['"', '\'']);
    // In prose, a mark of another script may begin thinking.
    let is_prose = |text: &str| {
        text.bytes()
            .all(|byte| !matches!(byte, b'[' | b']' | b'<' | b'>' | b'"' | b'{' | b'}' | b'\\' | 0xE2))
    };
    let (before, after) = (&text[..start], &text[end..]);
    let fence_count = |text: &str| text.matches("```").count();
    let is_fenced = fence_count(before) == 1
        && before.trim_end().ends_with("```json")
        && after.trim_start().starts_with("```")
        && fence_count(after) == 1
        && !before.contains("~~~");
    let is_bare = !before.contains(['`', '~']) && !after.contains(['`', '~']);
    if !has_key || !(is_fenced || is_bare) || !is_prose(before) || !is_prose(after) || has_long_number(object)
    {
        return None;
    }
    let mut limits = Limits::default();
    limits.value = limits.value.max(object.len());
    limits.items = limits.items.max(object.len());
    json::parse_slightly_broken(object, &limits)
}

/// Returns whether the text may be members without brackets, or a quotation: forms that only
/// [`json::find_displayed`] accepts.
fn may_be_displayed(text: &str) -> bool {
    let is_quoted = |line: &str| line.trim_start_matches([' ', '\t']).starts_with('>');
    text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').starts_with('"')
        || text.contains('>') && text.split('\n').any(is_quoted)
}

fn judge(reports: Vec<FindingReport>) -> Vec<Finding> {
    reports.into_iter().map(|report| report.judge(Profile::Lenient)).collect()
}
