//! Form of the answer to a question, as the script's author sets it.

use serde_json::Value;

use super::fields::{FieldReader, ProblemList, find_similar};
use super::node::{NodeValue, SpannedNode};
use super::rules;
use tambour::finding::clip;
use tambour::texts::bilingual;

/// Required form of the answer of `ai_ask`; a text by default.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AnswerForm {
    /// Type of the answer.
    pub kind: AnswerKind,
    /// Options of a choice, texts or numbers.
    pub options: Vec<Value>,
    /// Minimum of a number or date. A date is a text such as `2026-03-14`.
    pub min: Option<Value>,
    /// Maximum of a number or date.
    pub max: Option<Value>,
}

/// Type of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnswerKind {
    /// A text.
    #[default]
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of the options.
    Choice,
    /// A date, stored as a text in the form `2026-03-14`.
    Date,
}

/// Types of answers by name.
const ANSWER_KINDS: [(&str, AnswerKind); 5] = [
    ("text", AnswerKind::Text),
    ("number", AnswerKind::Number),
    ("boolean", AnswerKind::Boolean),
    ("choice", AnswerKind::Choice),
    ("date", AnswerKind::Date),
];

/// Maximum number of options of a choice.
const MAX_OPTIONS: usize = 200;

impl AnswerKind {
    /// Returns the public name, such as `number`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ANSWER_KINDS.iter().find(|(_, kind)| *kind == self).map_or("text", |(name, _)| name)
    }
}

/// Parses a date such as `2026-03-14`, `2026/3/14` or `2026年3月14日`; returns it in the form `2026-03-14`, or
/// `None` if it is not a date.
#[must_use]
pub(crate) fn parse_date(text: &str) -> Option<String> {
    // The full-width digits come 0xFEE0 code points after the ASCII digits.
    let to_half_width = |c: char| match c {
        '０'..='９' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        _ => c,
    };
    let text: String = text.trim().chars().map(to_half_width).collect();
    // A time of day after the date is dropped.
    let date_text = match text.split_once(['T', ' ']) {
        Some((date_text, time)) if time.contains(':') => date_text,
        _ => &text,
    };
    let date_text: String = date_text.chars().filter(|c| !c.is_whitespace()).collect();
    let date_text = date_text.trim_end_matches(['日', '号']);
    let mut parts = date_text.split(['-', '/', '.', '年', '月']);
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let is_number = |text: &str, max_len: usize| {
        !text.is_empty() && text.len() <= max_len && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.next().is_some()
        || year.len() != 4
        || !is_number(year, 4)
        || !is_number(month, 2)
        || !is_number(day, 2)
    {
        return None;
    }
    let date = jiff::civil::Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    Some(date.to_string())
}

/// Reads the field `answer` of an action: the name of a type, or a mapping. The default is a text.
pub(super) fn read_answer(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> AnswerForm {
    let Some(field) = fields.take_field(&["answer"]).filter(|field| !field.node().is_null()) else {
        return AnswerForm::default();
    };
    if let NodeValue::Text(name) = &field.node().kind {
        // `answer: number` is the short form.
        let kind = find_kind(name).unwrap_or_else(|| {
            fields.report(field, rules::FIELD_TYPE, "S-011", describe_unknown(name, problems), problems);
            AnswerKind::Text
        });
        if kind == AnswerKind::Choice {
            let message = bilingual!(
                problems.language,
                "`choice` 要列出选项：`answer: {{type: choice, options: [...]}}`",
                "a `choice` needs options: `answer: {{type: choice, options: [...]}}`",
            );
            fields.report(field, rules::FIELD_MISSING, "S-011", message, problems);
        }
        return AnswerForm { kind, ..AnswerForm::default() };
    }
    let path = fields.field_path(field);
    let noun = ("`answer` ", "`answer`");
    let Some(mut form_fields) = FieldReader::new(field.node(), path, (noun, "S-011"), problems) else {
        return AnswerForm::default();
    };
    let form = read_form(&mut form_fields, problems);
    form_fields.report_remaining(problems);
    form
}

/// Returns the answer type with this name.
fn find_kind(name: &str) -> Option<AnswerKind> {
    ANSWER_KINDS.iter().find(|(candidate, _)| *candidate == name).map(|(_, kind)| *kind)
}

/// Describes an unknown answer type, with a suggestion.
fn describe_unknown(name: &str, problems: &ProblemList) -> String {
    let names = ANSWER_KINDS.map(|(name, _)| name);
    let similar = find_similar(name, &names)
        .map(|similar| bilingual!(problems.language, "；是不是 `{}`？", "; did you mean `{}`?", similar));
    let message = bilingual!(
        problems.language,
        "回答没有类型 `{}`；有的是 `{}`",
        "there is no answer type `{}`; the types are `{}`",
        clip(name, 80),
        names.join("`, `")
    );
    message + &similar.unwrap_or_default()
}

/// Reads the mapping of `answer`. If the type is missing, an answer with options is a choice.
fn read_form(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> AnswerForm {
    let options = read_options(fields, problems);
    let kind = match fields.take_field(&["type"]) {
        None if options.is_empty() => AnswerKind::Text,
        None => AnswerKind::Choice,
        Some(field) => match &field.node().kind {
            NodeValue::Text(name) => find_kind(name).unwrap_or_else(|| {
                fields.report(field, rules::FIELD_TYPE, "S-011", describe_unknown(name, problems), problems);
                AnswerKind::Text
            }),
            _ => {
                fields.report(
                    field,
                    rules::FIELD_TYPE,
                    "S-011",
                    super::fields::not_text_message(field, problems),
                    problems,
                );
                AnswerKind::Text
            }
        },
    };
    let not_applicable_message = |name: &str, problems: &ProblemList| {
        bilingual!(
            problems.language,
            "类型 `{}` 的回答没有 `{}`",
            "an answer of the type `{}` has no `{}`",
            kind.name(),
            name
        )
    };
    match (kind == AnswerKind::Choice, options.is_empty()) {
        (true, true) => {
            let message =
                bilingual!(problems.language, "`choice` 没有 `options`", "a `choice` has no `options`");
            fields.report_by_name("options", rules::FIELD_MISSING, "S-011", message, problems);
        }
        (false, false) => {
            let message = not_applicable_message("options", problems);
            fields.report_by_name("options", rules::FIELD_TYPE, "S-011", message, problems);
        }
        _ => {}
    }
    let [min, max] = ["min", "max"].map(|name| {
        let field = fields.take_field(&[name]).filter(|field| !field.node().is_null())?;
        let (description, node) = (problems.describe(field.node()), field.node());
        let (bound, message) = match kind {
            AnswerKind::Number => (
                matches!(node.kind, NodeValue::Number(_)).then(|| node.to_value()),
                bilingual!(
                    problems.language,
                    "`{}` 应是数字，不是{}",
                    "`{}` must be a number, not {}",
                    name,
                    description
                ),
            ),
            AnswerKind::Date => (
                read_date(node),
                bilingual!(
                    problems.language,
                    "`{}` 应是形如 2026-03-14 的日期，不是{}",
                    "`{}` must be a date such as 2026-03-14, not {}",
                    name,
                    description
                ),
            ),
            _ => (None, not_applicable_message(name, problems)),
        };
        if bound.is_none() {
            fields.report(field, rules::FIELD_TYPE, "S-011", message, problems);
        }
        bound
    });
    let is_empty_range = match (&min, &max) {
        (Some(Value::Number(min)), Some(Value::Number(max))) => min.as_f64() > max.as_f64(),
        (Some(Value::String(min)), Some(Value::String(max))) => min > max,
        _ => false,
    };
    if is_empty_range {
        let message = bilingual!(
            problems.language,
            "`min` 大于 `max`，没有回答能符合",
            "`min` is above `max`, so no answer fits"
        );
        fields.report_by_name("min", rules::FIELD_RANGE, "S-011", message, problems);
    }
    AnswerForm { kind, options, min, max }
}

/// Reads a date in one of the forms of [`parse_date`].
fn read_date(node: &SpannedNode) -> Option<Value> {
    match &node.kind {
        NodeValue::Text(text) => parse_date(text).map(Value::String),
        _ => None,
    }
}

/// Reads the options of a choice: texts and numbers.
fn read_options(fields: &mut FieldReader<'_>, problems: &mut ProblemList) -> Vec<Value> {
    let Some((path, items)) = fields.take_list(None, &["options"], "S-011", problems) else {
        return Vec::new();
    };
    let mut options = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let value = match &item.kind {
            NodeValue::Text(text) if !text.trim().is_empty() => Value::from(text.trim()),
            NodeValue::Number(number) => Value::Number(number.clone()),
            // Unquoted `true` and `false` are options too, as texts.
            NodeValue::Bool(flag) => Value::from(flag.to_string()),
            _ => {
                let message = bilingual!(
                    problems.language,
                    "选项应是文本或数字，不是{}",
                    "an option must be a text or a number, not {}",
                    problems.describe(item)
                );
                problems.add(format!("{path}[{index}]"), item.spot, rules::FIELD_TYPE, "S-011", message);
                continue;
            }
        };
        if options.contains(&value) {
            let message =
                bilingual!(problems.language, "这个选项已经有了", "this option is already in the list");
            problems.add(format!("{path}[{index}]"), item.spot, rules::NAME_TWICE, "S-011", message);
        } else {
            options.push(value);
        }
    }
    if options.len() > MAX_OPTIONS {
        let message = bilingual!(
            problems.language,
            "选项最多 {} 个",
            "a choice may have at most {} options",
            MAX_OPTIONS
        );
        fields.report_by_name("options", rules::FIELD_RANGE, "S-011", message, problems);
        options.truncate(MAX_OPTIONS);
    }
    options
}
