//! Fields of an answer. A missing or wrong field gets the default that never ends an action early (S-055).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::other::is_empty;
use super::placeholder::is_placeholder;
use super::rules;
use super::stands::Stands;
use crate::exit::Answer;
use crate::finding::clip;
use crate::finding::{Report, Rule};
use crate::limits::Limits;
use crate::repair::json::{Found, Stand, find_in_string};
use crate::span::Place;

/// Other names of `response`.
pub(super) const RESPONSES: [&str; 4] = ["message", "reply", "content", "text"];

/// Fields of the answer, and of its assessment.
pub(super) const TOP: [&str; 4] = ["assessment", "response", "should_exit", "exit_reason"];
pub(super) const ASSESSMENT: [&str; 4] =
    ["understanding_level", "has_questions", "expressed_understanding", "reasoning"];

/// A parsed answer object, without the text of `response`.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) value: Map<String, Value>,
    /// Places of the object and of its fields.
    pub(super) stands: Stands,
    /// Places of texts in `response` that are placeholders.
    pub(super) placeholders: Vec<Place>,
    /// Set if the reader added the object's end.
    pub(super) cut: bool,
    /// Set if a `</think>` came after the object.
    pub(super) thought: bool,
    /// Set if the object counts as reasoning once another answer follows: an unopened closing mark came after
    /// it.
    pub(super) doubtful: bool,
    /// Set if the object is an example: quoted, in a code span or in the middle of a sentence.
    pub(super) example: bool,
    /// Interpretation of a `response` that is not an object.
    pub(super) response: Response,
    /// Set if the message is inside `response`.
    pub(super) message: bool,
}

/// Interpretation of a `response` that is not an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Response {
    /// Its text, if any, is the message.
    #[default]
    Text,
    /// An object written as a string.
    Object,
    /// An answer written as a string.
    Answer,
    /// An answer written as a string, some of whose fields also occur beside `response`.
    Part,
}

/// Reads the fields and reports each default that was used.
pub(super) fn read(whole: &Whole, limits: &Limits, reports: &mut Vec<Report>) -> Answer {
    let mut fields = Fields { whole, limits, reports };
    let nested = fields.assessment();
    let mut said = Answer::default();
    let assessment = &mut said.assessment;
    // Fields of the assessment may also occur beside it; they are read there unless the assessment has them
    // too.
    let mut known: Vec<&str> = [TOP, ASSESSMENT].concat();
    // A missing assessment gets one finding, not one per field.
    let any = nested.is_some() || ASSESSMENT.iter().any(|name| whole.value.contains_key(*name));
    if any {
        let nested = nested.unwrap_or_default();
        if let Some(level) = fields.assessed(&nested, "understanding_level", "0", level) {
            assessment.understanding_level = fields.in_range(level, &nested);
        }
        if let Some(flag) = fields.assessed(&nested, "has_questions", "true", flag) {
            assessment.has_questions = flag;
        }
        if let Some(flag) = fields.assessed(&nested, "expressed_understanding", "false", flag) {
            assessment.expressed_understanding = flag;
        }
        if let Some(text) = fields.assessed(&nested, "reasoning", "empty", text) {
            assessment.reasoning = text;
        }
        fields.unexpected(&["assessment"], &nested, &ASSESSMENT);
        known.retain(|name| !ASSESSMENT.contains(name) || nested.get(*name).is_none_or(Value::is_null));
    } else {
        fields.missing(&["assessment"], "level 0, open questions");
    }
    fields.response();
    if let Some(flag) = fields.top("should_exit", "false", flag) {
        said.should_exit = flag;
    }
    if let Some(text) = fields.top("exit_reason", "empty", text) {
        said.exit_reason = text;
    }
    fields.unexpected(&[], &whole.value, &known);
    said
}

/// Parses a field: returns the value and true if it has the right type, or `None` if it is unusable.
type Reading<T> = fn(&Value) -> Option<(T, bool)>;

struct Fields<'a> {
    whole: &'a Whole,
    limits: &'a Limits,
    reports: &'a mut Vec<Report>,
}

impl Fields<'_> {
    fn found(&mut self, rule: &'static Rule, path: &[&str], message: String, repair: &str) {
        let (at, end) = self.stand(path);
        self.reports.push(Report::new(rule, at, end, message).repaired(repair));
    }

    /// Returns the extent of the field, or of the closest member around it.
    fn stand(&self, path: &[&str]) -> Stand {
        let stands = &self.whole.stands;
        // Fields of an answer written as a string have no places of their own: `response` stands in for them.
        let inner = matches!(self.whole.response, Response::Answer | Response::Part)
            && stands.get(&path[..path.len().min(1)]).is_none();
        stands.near(if inner { &["response"] } else { path })
    }

    /// Returns the repair text for an unread field: a field without its own place shares a span with others.
    fn left_out(&self, path: &[&str]) -> &'static str {
        if self.whole.stands.get(path).is_some() { "left out" } else { "not used" }
    }

    fn missing(&mut self, path: &[&str], default: &str) {
        let message = format!("`{}` is missing", path.join("."));
        let (at, end) = self.whole.stands.get(path).map_or(self.whole.stands.whole(), |field| field.stand);
        let report = Report::new(rules::FIELD_MISSING, at, end, message);
        self.reports.push(report.repaired(format!("counted as {default}")));
    }

    /// Reports the fields at `path` that are not in `known`.
    fn unexpected(&mut self, path: &[&str], fields: &Map<String, Value>, known: &[&str]) {
        let whole = self.whole;
        let half = |key: &str| known.iter().chain(&RESPONSES).any(|name| name.starts_with(key));
        let is_unknown = |key: &str| {
            !known.contains(&key)
                // A partial key at the point of truncation is not a field.
                && fields.get(key).is_some_and(|value| !(whole.cut && value.is_null() && half(key)))
        };
        let report = |key: &str, more: usize, (at, end): Stand, repair: &str| {
            let name = [path, &[&clip(key, 40)]].concat().join(".");
            let more = if more > 0 { format!(", nor {more} more that it has") } else { String::new() };
            let message = format!("the answer has no field `{name}`{more}");
            Report::new(rules::FIELD_UNEXPECTED, at, end, message).repaired(repair)
        };
        let placed = whole.stands.of(path);
        for member in placed.iter().filter(|member| is_unknown(&member.key) && !whole.stands.is_told(member))
        {
            self.reports.push(report(&member.key, 0, member.stand, "left out"));
        }
        // Fields without a place share one finding.
        let placed: HashSet<&str> = placed.iter().map(|member| member.key.as_str()).collect();
        let mut rest = fields.keys().filter(|key| is_unknown(key) && !placed.contains(key.as_str()));
        if let Some(key) = rest.next() {
            let found = report(key, rest.count(), self.stand(path), "not used");
            self.reports.push(found);
        }
    }

    /// Returns the assessment, if there is one.
    fn assessment(&mut self) -> Option<Map<String, Value>> {
        let value = self.whole.value.get("assessment").filter(|value| !value.is_null())?;
        if let Value::Object(fields) = value {
            return Some(fields.clone());
        }
        let found = find_in_string(value, self.limits);
        let around = found.as_ref().is_some_and(|found| !is_all(found, value));
        let (read, repair) = match found.and_then(|found| found.value) {
            Some(Value::Object(fields)) if around => {
                (Some(fields), "read as the object, text around it not used")
            }
            Some(Value::Object(fields)) => (Some(fields), "read as the object"),
            _ => (None, self.left_out(&["assessment"])),
        };
        self.found(rules::FIELD_TYPE, &["assessment"], "`assessment` is not an object".to_owned(), repair);
        read
    }

    /// Reads a field of the assessment, which may also be beside it.
    fn assessed<T>(
        &mut self,
        nested: &Map<String, Value>,
        name: &str,
        default: &str,
        read: Reading<T>,
    ) -> Option<T> {
        let path = ["assessment", name];
        let given = |value: &&Value| !value.is_null();
        if let Some(value) = nested.get(name).filter(given) {
            return self.value(&path, value, default, read);
        }
        match self.whole.value.get(name).filter(given) {
            Some(value) => {
                let message = format!("`{name}` does not stand in `assessment`");
                self.found(rules::FIELD_MISPLACED, &[name], message, "read all the same");
                self.value(&[name], value, default, read)
            }
            None => {
                self.missing(&path, default);
                None
            }
        }
    }

    /// Reads a field of the answer itself.
    fn top<T>(&mut self, name: &str, default: &str, read: Reading<T>) -> Option<T> {
        match self.whole.value.get(name).filter(|value| !value.is_null()) {
            Some(value) => self.value(&[name], value, default, read),
            None => {
                self.missing(&[name], default);
                None
            }
        }
    }

    fn value<T>(&mut self, path: &[&str], value: &Value, default: &str, read: Reading<T>) -> Option<T> {
        let name = path.join(".");
        if value.as_str().is_some_and(is_placeholder) {
            let message = format!("`{name}` is a placeholder of the instructions");
            self.found(rules::PLACEHOLDER_COPIED, path, message, &format!("counted as {default}"));
            return None;
        }
        let message = format!("`{name}` has the wrong type");
        match read(value) {
            Some((value, true)) => Some(value),
            Some((value, false)) => {
                self.found(rules::FIELD_TYPE, path, message, "read all the same");
                Some(value)
            }
            None => {
                let repair = format!("{}, counted as {default}", self.left_out(path));
                self.found(rules::FIELD_TYPE, path, message, &repair);
                None
            }
        }
    }

    /// Clamps the level to 0 to 100 and removes a negative zero.
    fn in_range(&mut self, level: f64, nested: &Map<String, Value>) -> f64 {
        let path = ["assessment", "understanding_level"];
        let beside = nested.get(path[1]).is_none_or(Value::is_null);
        let path = &path[usize::from(beside)..];
        let clamped = level.clamp(0.0, 100.0) + 0.0;
        if clamped != level {
            let message = format!("the level {level} is not between 0 and 100");
            self.found(rules::LEVEL_OUT_OF_RANGE, path, message, &format!("counted as {clamped}"));
        } else if level > 0.0 && level < 1.0 {
            let message = format!("the level {level} looks like a share of 1, not of 100");
            let (at, end) = self.stand(path);
            self.reports.push(Report::new(rules::LEVEL_SCALE, at, end, message));
        }
        clamped
    }

    /// Reports a `response` of the wrong shape. Its text has already been taken.
    fn response(&mut self) {
        match self.whole.value.get("response") {
            None | Some(Value::Object(_) | Value::Null) => {}
            Some(value) => {
                let message = "`response` is not an object".to_owned();
                let repair = match (value, self.whole.response) {
                    (Value::String(_), Response::Object) => "read as the object",
                    (Value::String(_), Response::Answer) => "read as the answer",
                    (Value::String(_), Response::Part) => {
                        "read as the answer, fields that stand twice not used"
                    }
                    (Value::Bool(_) | Value::Number(_), _) if !self.whole.message => {
                        self.left_out(&["response"])
                    }
                    (value, Response::Text) if is_empty(value) && !self.whole.message => {
                        self.left_out(&["response"])
                    }
                    (Value::Array(_), _) if !self.whole.message => self.left_out(&["response"]),
                    _ => "its text is the message",
                };
                self.found(rules::RESPONSE_NOT_OBJECT, &["response"], message, repair);
            }
        }
    }
}

/// Returns true if the string contains nothing but the value found in it.
fn is_all(found: &Found, value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let start = text.len() - text.trim_start().len();
    found.candidates == 1 && found.span.start == start && found.span.end == text.trim_end().len()
}

/// Converts a full-width character, as used in numbers, to half width.
fn half_width(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        c => c,
    }
}

/// Parses a text as a finite number.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    // Words such as `inf` do not count as numbers.
    text.bytes().any(|byte| byte.is_ascii_digit()).then_some(number)
}

/// Parses a level: a number, or a text such as `85`, `85%` or `85/100`.
fn level(value: &Value) -> Option<(f64, bool)> {
    match value {
        Value::Number(number) => Some((number.as_f64()?, true)),
        Value::String(text) => {
            let text: String = text.chars().map(half_width).collect();
            let text = text.trim().trim_end_matches(['%', '分']).trim_end();
            let number = match text.split_once('/') {
                // A fraction such as `85/100`.
                Some((part, all)) => {
                    let (part, all) = (number(part)?, number(all).filter(|all| *all >= 1.0)?);
                    (0.0..=all).contains(&part).then(|| part * 100.0 / all)?
                }
                None => number(text)?,
            };
            Some((number, false))
        }
        _ => None,
    }
}

/// Parses a flag: a boolean, or a word for one. The second value is true if it was a boolean.
pub fn flag(value: &Value) -> Option<(bool, bool)> {
    match value {
        Value::Bool(flag) => Some((*flag, true)),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "y" | "是" | "是的" | "对" | "有" => Some((true, false)),
            "false" | "no" | "n" | "否" | "不" | "不是" | "没有" | "无" => Some((false, false)),
            _ => None,
        },
        _ => None,
    }
}

fn text(value: &Value) -> Option<(String, bool)> {
    value.as_str().map(|text| (text.to_owned(), true))
}
