//! Reader of `choice`, a question and its options (F-132), also in older and newer forms (F-140, F-141) and
//! in plain text (F-142).

use serde_json::Value;

use super::block::{BlockContext, BlockOutcome, FilamentBlock};
use super::body::{BlockElements, is_json, read_elements, read_json};
use super::rules;
use super::tags::ElementForm;
use crate::dialect::{IntentSink, ReplyAction};
use crate::event::{Choice, ChoiceOption};
use crate::finding::FindingReport;
use crate::lex::space::trim;
use crate::span::Place;

/// An option as written.
struct RawOption {
    /// Id as written; `None` if it is absent or blank.
    id: Option<String>,
    text: String,
    /// Place of the option.
    start: Place,
    /// Offset after the option.
    end: usize,
}

/// Reads the question and the options of a block.
pub(super) fn read_choice(
    block: &FilamentBlock,
    cx: &BlockContext,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    let body = trim(&block.body);
    if block.element.form == ElementForm::List {
        block.report_form(rules::LEGACY_FORM, "`choice`", out);
    } else if body.starts_with(['{', '[', '｛']) && is_json(body, &cx.options.limits) {
        return choice_from_json(block, cx, out);
    }
    let elements = read_elements(
        &block.body,
        block.body_start,
        &["prompt", "option"],
        &["options"],
        &cx.options.limits,
        out,
    );
    if elements.elements_named("option").next().is_none() {
        return choice_from_lines(block, &elements, out);
    }
    if elements.enclosing_names.is_empty() {
        let report = block.report(rules::CHOICE_FORM, "the options are not inside `<options>`");
        out.report(report.with_repair("read as options"));
    }
    let other_text = elements.joined_surrounding_text();
    let prompt_texts: Vec<&str> = elements
        .elements_named("prompt")
        .map(|prompt| trim(prompt.text))
        .chain([other_text.as_str()])
        .filter(|text| !text.is_empty())
        .collect();
    let prompt = prompt_texts.join("\n");
    let options = elements.elements_named("option").map(|option| RawOption {
        id: option.attribute("id").map(trim).filter(|id| !id.is_empty()).map(str::to_owned),
        text: trim(option.text).to_owned(),
        start: option.start,
        end: option.start.offset + option.text.len(),
    });
    emit_choice(prompt, options.collect(), out);
    BlockOutcome::Read
}

/// Reads a choice from lines: list items are options, other lines are the question.
fn choice_from_lines(
    block: &FilamentBlock,
    elements: &BlockElements<'_>,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    let prompt_text = elements.elements_named("prompt").next().map(|prompt| trim(prompt.text).to_owned());
    let is_legacy = block.element.form == ElementForm::List;
    let mut prompt = prompt_text.unwrap_or_default();
    let mut options = Vec::new();
    for (text, at) in &elements.surrounding_text {
        let mut place = *at;
        for line in text.split_inclusive('\n') {
            let line_text = trim(line);
            let has_begun = !options.is_empty() || !prompt.is_empty();
            match list_item(line_text) {
                Some(text) => {
                    let end = place.offset + line.len();
                    options.push(RawOption { id: None, text: text.to_owned(), start: place, end });
                }
                // In the legacy form every line after the first is an option.
                None if is_legacy && has_begun && !line_text.is_empty() => {
                    let end = place.offset + line.len();
                    options.push(RawOption { id: None, text: line_text.to_owned(), start: place, end });
                }
                None if !has_begun => prompt.push_str(line_text),
                None if !line_text.is_empty() => {
                    prompt.push('\n');
                    prompt.push_str(line_text);
                }
                None => {}
            }
            place.advance(line);
        }
    }
    if options.is_empty() && is_legacy && !prompt.is_empty() {
        // A single line is an option, not the question.
        let text = std::mem::take(&mut prompt);
        options.push(RawOption { id: None, text, start: block.body_start, end: block.end() });
    }
    if options.is_empty() {
        let message = format!("`<{}>` has no options", block.name);
        out.report(block.report(rules::CHOICE_OPTIONS_MISSING, message).with_repair("shown as text"));
        return block.text_outcome(out);
    }
    if !is_legacy {
        let report = block.report(rules::CHOICE_FORM, "the options are written as lines");
        out.report(report.with_repair("read as options"));
    }
    emit_choice(prompt, options, out);
    BlockOutcome::Read
}

/// Reads a choice from JSON: a list of options, or an object that contains the list.
fn choice_from_json(block: &FilamentBlock, cx: &BlockContext, out: &mut dyn IntentSink) -> BlockOutcome {
    let json = read_json(&block.body, block.body_start, &cx.options.limits, out);
    // Text under the first of the keys that is present; values of other types are written as JSON.
    let text_of = |value: &Value, keys: &[&str]| -> Option<String> {
        let member = keys.iter().find_map(|key| value.get(*key))?;
        let text = member.as_str().map(str::to_owned).unwrap_or_else(|| member.to_string());
        Some(trim(&text).to_owned()).filter(|text| !text.is_empty())
    };
    let parse_choice = |value: &Value| -> Option<(String, Vec<RawOption>)> {
        let list = value.get("options").or(value.get("choices")).unwrap_or(value).as_array()?;
        let parse_option = |option: &Value| {
            let (start, end) = (block.body_start, block.end());
            let label = option
                .as_str()
                .map(str::to_owned)
                .or_else(|| text_of(option, &["text", "label", "title"]))?;
            Some(RawOption { id: text_of(option, &["id", "value"]), text: label, start, end })
        };
        let options = list.iter().map(parse_option).collect::<Option<Vec<_>>>()?;
        let prompt = text_of(value, &["prompt", "question"]).unwrap_or_default();
        (!options.is_empty()).then_some((prompt, options))
    };
    match json.and_then(|json| parse_choice(&json.value)) {
        Some((prompt, options)) => {
            block.report_form(rules::NEWER_FORM, "tags, other fields not used", out);
            emit_choice(prompt, options, out);
            BlockOutcome::Read
        }
        None => {
            let message = format!("`<{}>` has no options", block.name);
            out.report(block.report(rules::CHOICE_OPTIONS_MISSING, message).with_repair("shown as text"));
            block.raw_outcome(out)
        }
    }
}

/// Emits a choice, and gives each option a unique id.
fn emit_choice(prompt: String, raw_options: Vec<RawOption>, out: &mut dyn IntentSink) {
    let original_ids: std::collections::HashSet<String> =
        raw_options.iter().filter_map(|option| option.id.clone()).collect();
    let mut used_ids: std::collections::HashSet<String> = std::collections::HashSet::new();
    // Last number that was appended to each duplicate id.
    let mut last_numbers: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    let mut options = Vec::with_capacity(raw_options.len());
    for (index, RawOption { id, text, start: place, end }) in raw_options.into_iter().enumerate() {
        let id = match id {
            Some(id) if used_ids.contains(&id) => {
                let number = last_numbers.entry(id.clone()).or_insert(1);
                let unique_id = loop {
                    *number += 1;
                    let unique_id = format!("{id}_{number}");
                    if !used_ids.contains(&unique_id) && !original_ids.contains(&unique_id) {
                        break unique_id;
                    }
                };
                let report = FindingReport::new(
                    rules::CHOICE_ID_DUPLICATE,
                    place,
                    end,
                    format!("the id `{id}` is used twice"),
                );
                out.report(report.with_repair(format!("renamed to `{unique_id}`")));
                unique_id
            }
            Some(id) => id,
            None => {
                let mut id = format!("option_{}", index + 1);
                while original_ids.contains(&id) || used_ids.contains(&id) {
                    id.push('_');
                }
                let report = FindingReport::new(rules::CHOICE_ID_MISSING, place, end, "an option has no id");
                out.report(report.with_repair(format!("called `{id}`")));
                id
            }
        };
        used_ids.insert(id.clone());
        options.push(ChoiceOption { id, text });
    }
    out.emit_action(ReplyAction::Extension(Choice { prompt, options }.into()));
}

/// Returns the text of a list item: `- a`, `* a`, `1. a`, `2) a`, `（3）a`, `A. a`, `①a`. `None` for other
/// lines.
fn list_item(line: &str) -> Option<&str> {
    let line = trim(line);
    let mut chars = line.chars();
    let first = chars.next()?;
    let rest = chars.as_str();
    if matches!(first, '-' | '*' | '+' | '•' | '·') {
        return Some(trim(rest)).filter(|text| rest.starts_with(' ') && !text.is_empty());
    }
    if ('①'..='⑳').contains(&first) {
        return Some(trim(trim(rest).trim_start_matches(['.', '、', '．']))).filter(|text| !text.is_empty());
    }
    let has_bracket = matches!(first, '(' | '（' | '[' | '【');
    let inner = if has_bracket { rest } else { line };
    let digit_count = inner.bytes().take_while(u8::is_ascii_digit).count();
    let is_letter = inner.starts_with(|c: char| c.is_ascii_uppercase());
    let label_len = match (digit_count, is_letter) {
        (1..=3, _) => digit_count,
        (0, true) => 1,
        _ => return None,
    };
    let mut chars_after = inner[label_len..].chars();
    let mark = chars_after.next()?;
    let is_list_mark = if has_bracket {
        matches!(mark, ')' | '）' | ']' | '】')
    } else {
        matches!(mark, '.' | ')' | '、' | '．' | '）' | ':' | '：')
    };
    let text = chars_after.as_str();
    // `3.5` is a number.
    let is_separate = has_bracket || !mark.is_ascii() || text.starts_with([' ', '\t']);
    Some(trim(text)).filter(|text| is_list_mark && is_separate && !text.is_empty())
}

/// Finds the choice at the end of a text: two or more list items, with the last line before them as the
/// question (F-142).
pub(super) fn choice_from_text(text: &str) -> Option<Choice> {
    let lines: Vec<&str> = trim(text).lines().map(trim).collect();
    let item_count = lines.iter().rev().take_while(|line| list_item(line).is_some()).count();
    if item_count < 2 {
        return None;
    }
    let (lines_before, items) = lines.split_at(lines.len() - item_count);
    let prompt = lines_before.iter().rev().find(|line| !line.is_empty()).copied().unwrap_or_default();
    let make_option = |(index, line): (usize, &&str)| {
        Some(ChoiceOption { id: format!("option_{}", index + 1), text: list_item(line)?.to_owned() })
    };
    let options = items.iter().enumerate().filter_map(make_option).collect();
    Some(Choice { prompt: prompt.to_owned(), options })
}
