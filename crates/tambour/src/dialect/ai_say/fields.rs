//! The fields of an answer: what is missing or wrong counts as what never ends an action early (S-055).

use serde_json::{Map, Value};

use super::placeholder::is_placeholder;
use super::rules;
use crate::dialogue::Answer;
use crate::finding::{Report, Rule};
use crate::limits::Limits;
use crate::repair::json::find_in_string;
use crate::span::Place;

/// Other names of `response`.
pub(super) const RESPONSES: [&str; 4] = ["message", "reply", "content", "text"];

/// Fields of the answer and of its assessment.
pub(super) const TOP: [&str; 4] = ["assessment", "response", "should_exit", "exit_reason"];
pub(super) const ASSESSMENT: [&str; 4] =
    ["understanding_level", "has_questions", "expressed_understanding", "reasoning"];

/// An answer object as it was read, without the text of `response`.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) value: Map<String, Value>,
    pub(super) at: Place,
    /// Offset after it.
    pub(super) end: usize,
    /// Where its fields stand, those of the assessment as `assessment.NAME`.
    pub(super) places: Vec<Field>,
    /// Texts of `response` that are placeholders.
    pub(super) placeholders: Vec<Place>,
    /// Whether its end is ours.
    pub(super) cut: bool,
    /// Whether a `</think>` came after it.
    pub(super) thought: bool,
    /// What became of a `response` that is no object.
    pub(super) response: Response,
}

/// Where a field stands.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) path: String,
    pub(super) at: Place,
    /// Open brackets around it, from 1.
    pub(super) level: usize,
    /// Offset of what comes after it; 0 for the last one.
    pub(super) end: usize,
}

/// What became of a `response` that is no object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Response {
    /// Its text is the message, if it has one.
    #[default]
    Text,
    /// It is an object, written as a string.
    Object,
    /// It is an answer, written as a string.
    Answer,
}

/// What the model said beside its message.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) answer: Answer,
    pub(super) reasoning: String,
}

impl Whole {
    pub(super) fn place(&self, path: &str) -> Option<Place> {
        self.span(path).map(|(at, _)| at)
    }

    /// Where a field stands, from its key to what comes after its value.
    pub(super) fn span(&self, path: &str) -> Option<(Place, usize)> {
        let field = self.places.iter().find(|field| field.path == path)?;
        Some((field.at, if field.end > 0 { field.end } else { self.end }))
    }

    /// The first field that is none of `known`; half a key at the place of a cut is no field.
    fn unknown<'a>(&self, fields: &'a Map<String, Value>, known: &[&str]) -> Option<&'a String> {
        let counts = |value: &Value| !(self.cut && value.is_null());
        let mut unknown =
            fields.iter().filter(|(key, value)| !known.contains(&key.as_str()) && counts(value));
        unknown.next().map(|(key, _)| key)
    }
}

/// Reads the fields, with a report on each default that was used.
pub(super) fn read(whole: &Whole, limits: &Limits, reports: &mut Vec<Report>) -> Said {
    let mut fields = Fields { whole, limits, reports };
    let nested = fields.assessment();
    let mut said = Said::default();
    let assessment = &mut said.answer.assessment;
    // One finding tells that all of it is missing.
    let any = nested.is_some() || ASSESSMENT.iter().any(|name| whole.value.contains_key(*name));
    if any {
        let nested = nested.unwrap_or_default();
        if let Some(level) = fields.assessed(&nested, "understanding_level", "0", level) {
            assessment.understanding_level = fields.in_range(level);
        }
        if let Some(flag) = fields.assessed(&nested, "has_questions", "true", flag) {
            assessment.has_questions = flag;
        }
        if let Some(flag) = fields.assessed(&nested, "expressed_understanding", "false", flag) {
            assessment.expressed_understanding = flag;
        }
        if let Some(text) = fields.assessed(&nested, "reasoning", "empty", text) {
            said.reasoning = text;
        }
        if let Some(unknown) = whole.unknown(&nested, &ASSESSMENT) {
            fields.unexpected("assessment.", unknown, whole.place("assessment"));
        }
    } else {
        fields.missing("assessment", "level 0, open questions");
    }
    fields.response();
    if let Some(flag) = fields.top("should_exit", "false", flag) {
        said.answer.should_exit = flag;
    }
    if let Some(text) = fields.top("exit_reason", "empty", text) {
        said.answer.exit_reason = text;
    }
    // Fields of the assessment that stand here were read.
    if let Some(unknown) = whole.unknown(&whole.value, &[TOP, ASSESSMENT].concat()) {
        fields.unexpected("", unknown, None);
    }
    said
}

/// A field's value, and whether it has the right type; `None` when it is none.
type Reading<T> = fn(&Value) -> Option<(T, bool)>;

struct Fields<'a> {
    whole: &'a Whole,
    limits: &'a Limits,
    reports: &'a mut Vec<Report>,
}

impl Fields<'_> {
    fn found(&mut self, rule: &'static Rule, path: &str, message: String, repair: &str) {
        let (at, end) = self.whole.span(path).unwrap_or((self.whole.at, self.whole.end));
        self.reports.push(Report::new(rule, at, end, message).repaired(repair));
    }

    fn missing(&mut self, path: &str, default: &str) {
        let message = format!("`{path}` is missing");
        self.found(rules::FIELD_MISSING, path, message, &format!("counted as {default}"));
    }

    fn unexpected(&mut self, parent: &str, name: &str, at: Option<Place>) {
        let at = at.unwrap_or(self.whole.at);
        let short: String = name.chars().take(40).collect();
        let message = format!("the answer has no field `{parent}{short}`");
        let report = Report::new(rules::FIELD_UNEXPECTED, at, self.whole.end, message);
        self.reports.push(report.repaired("left out"));
    }

    /// The assessment, if there is one.
    fn assessment(&mut self) -> Option<Map<String, Value>> {
        let value = self.whole.value.get("assessment").filter(|value| !value.is_null())?;
        if let Value::Object(fields) = value {
            return Some(fields.clone());
        }
        let inner = find_in_string(value, self.limits).and_then(|found| found.value);
        let (read, repair) = match inner {
            Some(Value::Object(fields)) => (Some(fields), "read as the object"),
            _ => (None, "left out"),
        };
        self.found(rules::FIELD_TYPE, "assessment", "`assessment` is not an object".to_owned(), repair);
        read
    }

    /// A field of the assessment, which may also stand beside it.
    fn assessed<T>(
        &mut self,
        nested: &Map<String, Value>,
        name: &str,
        default: &str,
        read: Reading<T>,
    ) -> Option<T> {
        let path = format!("assessment.{name}");
        let given = |value: &&Value| !value.is_null();
        if let Some(value) = nested.get(name).filter(given) {
            return self.value(&path, value, default, read);
        }
        match self.whole.value.get(name).filter(given) {
            Some(value) => {
                let message = format!("`{name}` does not stand in `assessment`");
                self.found(rules::FIELD_MISPLACED, name, message, "read all the same");
                self.value(name, value, default, read)
            }
            None => {
                self.missing(&path, default);
                None
            }
        }
    }

    /// A field of the answer itself.
    fn top<T>(&mut self, name: &str, default: &str, read: Reading<T>) -> Option<T> {
        match self.whole.value.get(name).filter(|value| !value.is_null()) {
            Some(value) => self.value(name, value, default, read),
            None => {
                self.missing(name, default);
                None
            }
        }
    }

    fn value<T>(&mut self, path: &str, value: &Value, default: &str, read: Reading<T>) -> Option<T> {
        if value.as_str().is_some_and(is_placeholder) {
            let message = format!("`{path}` is a placeholder of the instructions");
            self.found(rules::PLACEHOLDER_COPIED, path, message, &format!("counted as {default}"));
            return None;
        }
        match read(value) {
            Some((value, true)) => Some(value),
            Some((value, false)) => {
                self.found(
                    rules::FIELD_TYPE,
                    path,
                    format!("`{path}` has the wrong type"),
                    "read all the same",
                );
                Some(value)
            }
            None => {
                let message = format!("`{path}` has the wrong type");
                self.found(rules::FIELD_TYPE, path, message, &format!("counted as {default}"));
                None
            }
        }
    }

    /// A level between 0 and 100, and no negative zero.
    fn in_range(&mut self, level: f64) -> f64 {
        let path = match self.whole.place("assessment.understanding_level") {
            Some(_) => "assessment.understanding_level",
            None => "understanding_level",
        };
        let clamped = level.clamp(0.0, 100.0) + 0.0;
        if clamped != level {
            let message = format!("the level {level} is not between 0 and 100");
            self.found(rules::LEVEL_OUT_OF_RANGE, path, message, &format!("counted as {clamped}"));
        } else if level > 0.0 && level < 1.0 {
            let message = format!("the level {level} looks like a share of 1, not of 100");
            let (at, end) = self.whole.span(path).unwrap_or((self.whole.at, self.whole.end));
            self.reports.push(Report::new(rules::LEVEL_SCALE, at, end, message));
        }
        clamped
    }

    /// The shape of `response`; its text has been taken already.
    fn response(&mut self) {
        match self.whole.value.get("response") {
            None | Some(Value::Object(_) | Value::Null) => {}
            Some(value) => {
                let message = "`response` is not an object".to_owned();
                let repair = match (value, self.whole.response) {
                    (Value::String(_), Response::Object) => "read as the object",
                    (Value::String(_), Response::Answer) => "read as the answer",
                    (Value::Bool(_) | Value::Number(_), _) => "left out",
                    _ => "its text is the message",
                };
                self.found(rules::RESPONSE_NOT_OBJECT, "response", message, repair);
            }
        }
    }
}

/// A number, or one as text, such as `85` or `85%`.
fn level(value: &Value) -> Option<(f64, bool)> {
    match value {
        Value::Number(number) => Some((number.as_f64()?, true)),
        Value::String(text) => {
            let text = text.trim().trim_end_matches(['%', '％', '分']).trim_end();
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
            // Words such as `inf` are no numbers here.
            text.bytes().any(|byte| byte.is_ascii_digit()).then_some((number, false))
        }
        _ => None,
    }
}

/// A boolean, or one as a word.
fn flag(value: &Value) -> Option<(bool, bool)> {
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
