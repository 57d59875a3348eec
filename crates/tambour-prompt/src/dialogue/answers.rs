//! Answers of `ai_ask` and `ai_think`: one JSON object each, parsed once the reply has ended.

use serde_json::{Map, Value};

use super::fit;
use super::rules::{ask, think};
use crate::script::AnswerForm;
use tambour::dialect;
use tambour::finding::{Finding, FindingReport, Profile, Rule, clip};
use tambour::limits::Limits;
use tambour::options::Options;
use tambour::repair::json::{FoundValue, find};
use tambour::span::Place;
use tambour::texts::format_count;

/// Answer of a model in a round of `ai_ask`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AskAnswer {
    /// The answer; `None` if it is unusable.
    pub value: Option<Value>,
    /// The message to the user.
    pub message: Option<String>,
    /// True if the model calls its answer usable but the answer does not fit the question.
    pub is_unfit: bool,
}

/// Reads an answer of `ai_ask` and returns it with findings, or `None` if the text is not an answer.
#[must_use]
pub fn read_ask(text: &str, options: &Options) -> (Option<AskAnswer>, Vec<Finding>) {
    let is_truncated = false;
    let (answer, reports) = parse_ask(text, is_truncated, None, options);
    (answer, judge_reports(reports, options.profile))
}

/// Reads an answer of `ai_think`: a value for each variable, null if absent. Returns the values with
/// findings, or `None` if the text is not a complete object.
#[must_use]
pub fn read_think(
    text: &str,
    variables: &[String],
    options: &Options,
) -> (Option<Map<String, Value>>, Vec<Finding>) {
    let is_truncated = false;
    let (values, reports) = parse_think(text, is_truncated, variables, &options.limits);
    (values, judge_reports(reports, options.profile))
}

/// Turns reports into findings, with the severity that the profile gives them.
pub(super) fn judge_reports(reports: Vec<FindingReport>, profile: Profile) -> Vec<Finding> {
    reports.into_iter().map(|report| report.judge(profile)).collect()
}

/// Reports on the text of one answer, placed at its JSON object if it has one.
struct AnswerReports<'t> {
    text: &'t str,
    /// JSON value found in the text, with its span.
    found: FoundValue,
    /// Reports so far, beginning with the repairs of the JSON.
    list: Vec<FindingReport>,
}

impl<'t> AnswerReports<'t> {
    fn new(text: &'t str, limits: &Limits) -> AnswerReports<'t> {
        let mut found = find(text, limits);
        let list = std::mem::take(&mut found.reports);
        AnswerReports { text, found, list }
    }

    /// Adds a report; `repair` describes the consequence.
    fn add(&mut self, rule: &'static Rule, message: impl Into<String>, repair: &str) {
        let place = Place::START.end_of(&self.text[..self.found.span.start]);
        self.list.push(FindingReport::new(rule, place, self.found.span.end, message).with_repair(repair));
    }

    /// Reports that the text has no answer.
    fn report_unstructured(&mut self, rule: &'static Rule, repair: &str) {
        // The reports so far are repairs of an object that is not the answer.
        self.list.clear();
        let report =
            FindingReport::new(rule, Place::START, self.text.len(), "the reply holds no answer object");
        self.list.push(report.with_repair(repair));
    }
}

/// Parses the answer of a round of `ai_ask` and checks it against `expected` (the required form and the
/// question), if known. The answer of a truncated reply has no value.
pub(super) fn parse_ask(
    text: &str,
    is_truncated: bool,
    expected: Option<(&AnswerForm, &str)>,
    options: &Options,
) -> (Option<AskAnswer>, Vec<FindingReport>) {
    let mut reports = AnswerReports::new(text, &options.limits);
    let fields = match reports.found.value.take() {
        Some(Value::Object(fields))
            if ["value", "usable", "response"].iter().any(|name| fields.contains_key(*name)) =>
        {
            fields
        }
        _ => {
            reports.report_unstructured(ask::UNSTRUCTURED, "its text is the message");
            return (None, reports.list);
        }
    };
    let is_usable = match fields.get("usable") {
        None | Some(Value::Null) => {
            reports.add(ask::FIELD_MISSING, "`usable` is missing", "counted as false");
            false
        }
        // The second value is true for a boolean, and false for a word such as `yes`.
        Some(value) => match dialect::parse_flag(value) {
            Some((flag, true)) => flag,
            Some((flag, false)) => {
                reports.add(ask::FIELD_TYPE, "`usable` is not true or false", "read anyway");
                flag
            }
            None => {
                reports.add(ask::FIELD_TYPE, "`usable` is not true or false", "counted as false");
                false
            }
        },
    };
    let is_present = |value: &&Value| match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        _ => true,
    };
    let value = fields.get("value").filter(is_present);
    if is_usable && value.is_none() {
        reports.add(ask::FIELD_MISSING, "`value` is missing although `usable` is true", "not taken");
    }
    let is_complete = !is_truncated && !reports.found.is_auto_closed;
    let usable_value = value.filter(|_| is_usable && is_complete);
    let message = find_message(&fields, &mut reports, options);
    // A value that repeats one of these texts is not an answer of the user.
    let model_texts = |question| [question, message.as_deref().unwrap_or_default()];
    let value = usable_value.and_then(|value| match expected {
        Some((form, question)) => fit::fit_answer(form, value, &model_texts(question)),
        None => Some(value).filter(|value| !fit::is_placeholder_value(value)).cloned(),
    });
    let is_unfit = usable_value.is_some() && value.is_none();
    if is_unfit {
        let kind = expected.map_or("text", |(form, _)| form.kind.name());
        let message = format!("`value` does not answer the question with the type `{kind}`");
        reports.add(ask::VALUE_UNFIT, message, "not taken");
    }
    (Some(AskAnswer { value, message, is_unfit }), reports.list)
}

/// Finds the message in the field `response` (S-052). The field should be an object with the role as its key;
/// an object with a single text under another key, or just a text, is accepted with a report.
fn find_message(
    fields: &Map<String, Value>,
    reports: &mut AnswerReports<'_>,
    options: &Options,
) -> Option<String> {
    fn has_text(text: &&str) -> bool {
        !text.trim().is_empty()
    }
    let message = match fields.get("response") {
        Some(Value::Object(response)) => {
            let roles = dialect::roles(options);
            let role_text = roles.iter().find_map(|role| response.get(role)?.as_str().filter(has_text));
            // Without the role, a message is found only if there is exactly one text.
            let mut texts =
                response.iter().filter_map(|(key, value)| Some((key, value.as_str().filter(has_text)?)));
            match (role_text, texts.next(), texts.next()) {
                (Some(text), _, _) => Some(text),
                (None, Some((key, text)), None) => {
                    let problem = format!("`response` has the key `{}`, not the role", clip(key, 40));
                    reports.add(ask::ROLE_KEY_UNEXPECTED, problem, "its text is the message");
                    Some(text)
                }
                _ => None,
            }
        }
        Some(Value::String(text)) if !text.trim().is_empty() => {
            reports.add(ask::RESPONSE_NOT_OBJECT, "`response` is not an object", "its text is the message");
            Some(text.as_str())
        }
        _ => None,
    };
    if message.is_none() {
        reports.add(ask::MESSAGE_MISSING, "the answer has no message", "fallback text");
    }
    message.map(str::to_owned)
}

/// Parses the values of `ai_think`: one for each variable, null if absent. `None` if the text is not a
/// complete object.
pub(super) fn parse_think(
    text: &str,
    is_truncated: bool,
    variables: &[String],
    limits: &Limits,
) -> (Option<Map<String, Value>>, Vec<FindingReport>) {
    let mut reports = AnswerReports::new(text, limits);
    // A partial object gives no values, because the last one may be incomplete.
    let is_complete = !is_truncated && !reports.found.is_auto_closed;
    let mut fields = match reports.found.value.take() {
        Some(Value::Object(fields)) if is_complete => fields,
        _ => {
            reports.report_unstructured(think::UNSTRUCTURED, "not used");
            return (None, reports.list);
        }
    };
    let mut values = Map::new();
    // A variable may be listed twice; the first occurrence takes the field.
    for name in variables {
        let value = fields.shift_remove(name).unwrap_or_else(|| {
            if !values.contains_key(name) {
                reports.add(
                    think::FIELD_MISSING,
                    format!("`{}` is missing", clip(name, 80)),
                    "counted as null",
                );
            }
            Value::Null
        });
        if !values.contains_key(name) {
            values.insert(name.clone(), value);
        }
    }
    if let Some(name) = fields.keys().next() {
        let suffix = if fields.len() > 1 {
            format!("; the answer has {}", format_count(fields.len() - 1, "more such field"))
        } else {
            String::new()
        };
        let message = format!("no variable is called `{}`{suffix}", clip(name, 80));
        reports.add(think::FIELD_UNEXPECTED, message, "not used");
    }
    (Some(values), reports.list)
}
