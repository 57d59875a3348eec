//! Fields of an answer. A missing or wrong field gets the default that never ends an action of the dialogue
//! early (S-055).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::field_extents::FieldExtents;
use super::placeholder::is_placeholder;
use super::rules;
use super::shapes::is_empty;
use crate::exit::RoundAnswer;
use crate::finding::clip;
use crate::finding::{FindingReport, Rule};
use crate::limits::Limits;
use crate::repair::json::{FoundValue, find_in_string};
use crate::span::{Extent, Place};

/// Other names of `response`.
pub(super) const RESPONSE_ALIASES: [&str; 4] = ["message", "reply", "content", "text"];

/// Fields of the answer.
pub(super) const ANSWER_FIELDS: [&str; 4] = ["assessment", "response", "should_exit", "exit_reason"];

/// Fields of the assessment.
pub(super) const ASSESSMENT_FIELDS: [&str; 4] =
    ["understanding_level", "has_questions", "expressed_understanding", "reasoning"];

/// A parsed answer object, without the text of `response`.
#[derive(Debug)]
pub(super) struct ParsedAnswer {
    /// Fields of the object.
    pub(super) value: Map<String, Value>,
    /// Places of the object and of its fields.
    pub(super) places: FieldExtents,
    /// Places of the keys in `response` whose texts are placeholders.
    pub(super) placeholders: Vec<Place>,
    /// Set if the reader added the object's end.
    pub(super) is_truncated: bool,
    /// Set if the object is reasoning: it is in a thought, or a closing mark such as `</think>` came after
    /// it.
    pub(super) is_thought: bool,
    /// Set if the object counts as reasoning once another answer follows: an unopened closing mark came after
    /// it.
    pub(super) is_doubtful: bool,
    /// Set if the object is an example: quoted, in a code span or in the middle of a sentence.
    pub(super) is_example: bool,
    /// Form of a `response` that is not an object.
    pub(super) response_shape: ResponseShape,
    /// Set if the message is inside `response`.
    pub(super) has_message: bool,
}

/// Form of a `response` that is not an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ResponseShape {
    /// Any other value: its text, if it has one, is the message.
    #[default]
    Text,
    /// An object written as a string.
    Object,
    /// An answer written as a string.
    Answer,
    /// An answer written as a string, some of whose fields are also siblings of `response`.
    PartialAnswer,
}

/// Reads the fields, and reports their faults and each default that was used.
pub(super) fn read_answer(
    answer: &ParsedAnswer,
    limits: &Limits,
    reports: &mut Vec<FindingReport>,
) -> RoundAnswer {
    let mut fields = AnswerFields { answer, limits, reports };
    let assessment_fields = fields.read_assessment();
    let mut round_answer = RoundAnswer::default();
    let assessment = &mut round_answer.assessment;
    // Fields of the assessment may be misplaced next to it. There they are unknown only if the assessment has
    // them too.
    let mut known_fields: Vec<&str> = [ANSWER_FIELDS, ASSESSMENT_FIELDS].concat();
    // A missing assessment gets one finding, not one per field.
    let has_assessment =
        assessment_fields.is_some() || ASSESSMENT_FIELDS.iter().any(|name| answer.value.contains_key(*name));
    if has_assessment {
        let assessment_fields = assessment_fields.unwrap_or_default();
        if let Some(level) = fields.read_assessed(&assessment_fields, "understanding_level", "0", parse_level)
        {
            assessment.understanding_level = fields.clamp_level(level, &assessment_fields);
        }
        if let Some(flag) = fields.read_assessed(&assessment_fields, "has_questions", "true", parse_flag) {
            assessment.has_questions = flag;
        }
        if let Some(flag) =
            fields.read_assessed(&assessment_fields, "expressed_understanding", "false", parse_flag)
        {
            assessment.expressed_understanding = flag;
        }
        if let Some(text) = fields.read_assessed(&assessment_fields, "reasoning", "empty", parse_text) {
            assessment.reasoning = text;
        }
        fields.report_unexpected(&["assessment"], &assessment_fields, &ASSESSMENT_FIELDS);
        let is_absent = |name: &str| assessment_fields.get(name).is_none_or(Value::is_null);
        known_fields.retain(|name| !ASSESSMENT_FIELDS.contains(name) || is_absent(name));
    } else {
        fields.report_missing(&["assessment"], "level 0, open questions");
    }
    fields.report_response();
    if let Some(flag) = fields.read_top("should_exit", "false", parse_flag) {
        round_answer.should_exit = flag;
    }
    if let Some(text) = fields.read_top("exit_reason", "empty", parse_text) {
        round_answer.exit_reason = text;
    }
    fields.report_unexpected(&[], &answer.value, &known_fields);
    round_answer
}

/// Parser of a field. Returns the value, and true if it was written in the right type; `None` if it is
/// unusable.
type FieldParser<T> = fn(&Value) -> Option<(T, bool)>;

/// Reader of an answer's fields.
struct AnswerFields<'a> {
    answer: &'a ParsedAnswer,
    limits: &'a Limits,
    reports: &'a mut Vec<FindingReport>,
}

impl AnswerFields<'_> {
    /// Reports a fault of the field at `path`.
    fn report(&mut self, rule: &'static Rule, path: &[&str], message: String, repair: &str) {
        let Extent { place, end } = self.nearest_extent(path);
        self.reports.push(FindingReport::new(rule, place, end, message).with_repair(repair));
    }

    /// Returns the extent of the field, or of the closest member around it.
    fn nearest_extent(&self, path: &[&str]) -> Extent {
        let places = &self.answer.places;
        // The places of fields in an answer written as a string are unknown: `response` is used instead.
        let is_inner =
            matches!(self.answer.response_shape, ResponseShape::Answer | ResponseShape::PartialAnswer)
                && places.get(&path[..path.len().min(1)]).is_none();
        places.nearest_extent(if is_inner { &["response"] } else { path })
    }

    /// Returns the repair text for an unread field. A field whose place is unknown is not "left out", because
    /// the finding spans more than the field.
    fn unread_repair(&self, path: &[&str]) -> &'static str {
        if self.answer.places.get(path).is_some() { "left out" } else { "not used" }
    }

    /// Reports a missing field; `default` describes the value used for it.
    fn report_missing(&mut self, path: &[&str], default: &str) {
        let message = format!("`{}` is missing", path.join("."));
        let Extent { place, end } =
            self.answer.places.get(path).map_or(self.answer.places.answer_extent(), |field| field.extent);
        let report = FindingReport::new(rules::FIELD_MISSING, place, end, message);
        self.reports.push(report.with_repair(format!("counted as {default}")));
    }

    /// Reports the fields at `path` that are not in `known_names`.
    fn report_unexpected(&mut self, path: &[&str], fields: &Map<String, Value>, known_names: &[&str]) {
        let answer = self.answer;
        let is_name_prefix =
            |key: &str| known_names.iter().chain(&RESPONSE_ALIASES).any(|name| name.starts_with(key));
        let is_unknown = |key: &str| {
            !known_names.contains(&key)
                // A partial key at the point of truncation is not a field.
                && fields.get(key).is_some_and(|value| !(answer.is_truncated && value.is_null() && is_name_prefix(key)))
        };
        let report = |key: &str, more_count: usize, extent: Extent, repair: &str| {
            let name = [path, &[&clip(key, 40)]].concat().join(".");
            let more = if more_count > 0 { format!(" and {more_count} more") } else { String::new() };
            let message = format!("the answer has the unknown field `{name}`{more}");
            FindingReport::new(rules::FIELD_UNEXPECTED, extent.place, extent.end, message).with_repair(repair)
        };
        let placed_members = answer.places.fields_at(path);
        for member in placed_members
            .iter()
            .filter(|member| is_unknown(&member.key) && !answer.places.is_reported_duplicate(member))
        {
            self.reports.push(report(&member.key, 0, member.extent, "left out"));
        }
        // Fields without a place share one finding.
        let placed_keys: HashSet<&str> = placed_members.iter().map(|member| member.key.as_str()).collect();
        let mut unplaced_keys =
            fields.keys().filter(|key| is_unknown(key) && !placed_keys.contains(key.as_str()));
        if let Some(key) = unplaced_keys.next() {
            let shared_report = report(key, unplaced_keys.count(), self.nearest_extent(path), "not used");
            self.reports.push(shared_report);
        }
    }

    /// Returns the fields of the assessment, if there is one.
    fn read_assessment(&mut self) -> Option<Map<String, Value>> {
        let value = self.answer.value.get("assessment").filter(|value| !value.is_null())?;
        if let Value::Object(fields) = value {
            return Some(fields.clone());
        }
        let found = find_in_string(value, self.limits);
        let has_surroundings = found.as_ref().is_some_and(|found| !is_only_value(found, value));
        let (assessment_fields, repair) = match found.and_then(|found| found.value) {
            Some(Value::Object(fields)) if has_surroundings => {
                (Some(fields), "read as the object, text around it not used")
            }
            Some(Value::Object(fields)) => (Some(fields), "read as the object"),
            _ => (None, self.unread_repair(&["assessment"])),
        };
        self.report(rules::FIELD_TYPE, &["assessment"], "`assessment` is not an object".to_owned(), repair);
        assessment_fields
    }

    /// Reads a field of the assessment. The field may be misplaced next to the assessment.
    fn read_assessed<T>(
        &mut self,
        assessment_fields: &Map<String, Value>,
        name: &str,
        default: &str,
        parse: FieldParser<T>,
    ) -> Option<T> {
        let path = ["assessment", name];
        let is_present = |value: &&Value| !value.is_null();
        if let Some(value) = assessment_fields.get(name).filter(is_present) {
            return self.parse_value(&path, value, default, parse);
        }
        match self.answer.value.get(name).filter(is_present) {
            Some(value) => {
                let message = format!("`{name}` must be inside `assessment`, not beside it");
                self.report(rules::FIELD_MISPLACED, &[name], message, "read anyway");
                self.parse_value(&[name], value, default, parse)
            }
            None => {
                self.report_missing(&path, default);
                None
            }
        }
    }

    /// Reads a field of the answer itself.
    fn read_top<T>(&mut self, name: &str, default: &str, parse: FieldParser<T>) -> Option<T> {
        match self.answer.value.get(name).filter(|value| !value.is_null()) {
            Some(value) => self.parse_value(&[name], value, default, parse),
            None => {
                self.report_missing(&[name], default);
                None
            }
        }
    }

    /// Parses the field at `path`, and reports it if it has the wrong type or is a placeholder. Returns
    /// `None` if the default is used, which `default` describes.
    fn parse_value<T>(
        &mut self,
        path: &[&str],
        value: &Value,
        default: &str,
        parse: FieldParser<T>,
    ) -> Option<T> {
        let name = path.join(".");
        if value.as_str().is_some_and(is_placeholder) {
            let message = format!("`{name}` is a placeholder from the instructions");
            self.report(rules::PLACEHOLDER_COPIED, path, message, &format!("counted as {default}"));
            return None;
        }
        let message = format!("`{name}` has the wrong type");
        match parse(value) {
            Some((value, true)) => Some(value),
            Some((value, false)) => {
                self.report(rules::FIELD_TYPE, path, message, "read anyway");
                Some(value)
            }
            None => {
                let repair = format!("{}, counted as {default}", self.unread_repair(path));
                self.report(rules::FIELD_TYPE, path, message, &repair);
                None
            }
        }
    }

    /// Clamps the level to the range from 0 to 100. Reports a level outside that range, or one that looks
    /// like a fraction.
    fn clamp_level(&mut self, level: f64, assessment_fields: &Map<String, Value>) -> f64 {
        let path = ["assessment", "understanding_level"];
        let is_beside_assessment = assessment_fields.get(path[1]).is_none_or(Value::is_null);
        let path = &path[usize::from(is_beside_assessment)..];
        // Adding zero turns -0 into 0.
        let clamped = level.clamp(0.0, 100.0) + 0.0;
        if clamped != level {
            let message = format!("the level {level} is not between 0 and 100");
            self.report(rules::LEVEL_OUT_OF_RANGE, path, message, &format!("counted as {clamped}"));
        } else if level > 0.0 && level < 1.0 {
            let message = format!("the level {level} looks like a fraction of 1: expected 0 to 100");
            let Extent { place, end } = self.nearest_extent(path);
            self.reports.push(FindingReport::new(rules::LEVEL_SCALE, place, end, message));
        }
        clamped
    }

    /// Reports a `response` of the wrong shape. Its text has already been taken.
    fn report_response(&mut self) {
        match self.answer.value.get("response") {
            None | Some(Value::Object(_) | Value::Null) => {}
            Some(value) => {
                let message = "`response` is not an object".to_owned();
                let repair = match (value, self.answer.response_shape) {
                    (Value::String(_), ResponseShape::Object) => "read as the object",
                    (Value::String(_), ResponseShape::Answer) => "read as the answer",
                    (Value::String(_), ResponseShape::PartialAnswer) => {
                        "read as the answer, duplicate fields not used"
                    }
                    (Value::Bool(_) | Value::Number(_), _) if !self.answer.has_message => {
                        self.unread_repair(&["response"])
                    }
                    (value, ResponseShape::Text) if is_empty(value) && !self.answer.has_message => {
                        self.unread_repair(&["response"])
                    }
                    (Value::Array(_), _) if !self.answer.has_message => self.unread_repair(&["response"]),
                    _ => "its text is the message",
                };
                self.report(rules::RESPONSE_NOT_OBJECT, &["response"], message, repair);
            }
        }
    }
}

/// Returns true if the string contains nothing but the value found in it.
fn is_only_value(found: &FoundValue, value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    let start = text.len() - text.trim_start().len();
    found.candidate_count == 1 && found.span.start == start && found.span.end == text.trim_end().len()
}

/// Converts a full-width character, as used in numbers, to half width.
fn to_half_width(c: char) -> char {
    match c {
        // 0xFEE0 is the distance of the full-width forms from their ASCII characters.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        c => c,
    }
}

/// Parses a text as a finite number.
fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    // Words such as `inf` do not count as numbers.
    text.bytes().any(|byte| byte.is_ascii_digit()).then_some(number)
}

/// Parses a level: a number, or a text such as `85`, `85%` or `85/100`. The second value is true if it was a
/// number.
fn parse_level(value: &Value) -> Option<(f64, bool)> {
    match value {
        Value::Number(number) => Some((number.as_f64()?, true)),
        Value::String(text) => {
            let text: String = text.chars().map(to_half_width).collect();
            let text = text.trim().trim_end_matches(['%', '分']).trim_end();
            let number = match text.split_once('/') {
                // A fraction such as `85/100`.
                Some((points, max_points)) => {
                    let points = parse_number(points)?;
                    let max_points = parse_number(max_points).filter(|max_points| *max_points >= 1.0)?;
                    (0.0..=max_points).contains(&points).then(|| points * 100.0 / max_points)?
                }
                None => parse_number(text)?,
            };
            Some((number, false))
        }
        _ => None,
    }
}

/// Parses a flag: a boolean, or a word for one. The second value is true if it was a boolean.
pub fn parse_flag(value: &Value) -> Option<(bool, bool)> {
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

/// Parses a string.
fn parse_text(value: &Value) -> Option<(String, bool)> {
    value.as_str().map(|text| (text.to_owned(), true))
}
