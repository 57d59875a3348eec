//! Calls written as elements: a sequence of `<invoke name="f"><parameter
//! name="key">value</parameter></invoke>`.

use serde_json::Value;

use super::arguments::{ArgumentExtent, MarkIndex};
use super::bare_values::ArgumentNotation;
use super::formats::ElementMarks;
use super::read::{
    CallRejection, CompleteCallText, TypedCall, WrittenCall, add_report, invalid_call, unclosed_report,
};
use super::rules;
use crate::finding::FindingReport;
use crate::lex::space::trim;
use crate::options::Options;
use crate::span::Place;

impl CompleteCallText<'_> {
    /// Reads a sequence of calls written as elements, with their parameters.
    pub(super) fn read_elements(
        &self,
        marks: &'static ElementMarks,
        text: &str,
        at: Place,
        options: &Options,
        reports: &mut Vec<FindingReport>,
    ) -> Result<Vec<WrittenCall>, CallRejection> {
        let arguments = MarkIndex::new(text, &marks.parameter_marks);
        // `position` is the offset and place of the last report, from which later places are counted.
        let (mut calls, mut from, mut position) = (Vec::new(), 0, (0, at));
        while let Some((name, start)) = read_tool_tag(text, from, marks)? {
            let mut call = TypedCall::new(Some(name), options);
            from = start;
            while let Some(ParameterTag { key, is_string, value_start }) =
                read_parameter_tag(text, from, marks)?
            {
                let ArgumentExtent { end, next_offset, is_closed } = arguments.argument_at(value_start);
                if !is_closed {
                    position = (from, position.1.end_of(&text[position.0..from]));
                    add_report(
                        unclosed_report(key, position.1, at.offset + end),
                        options.limits.findings,
                        reports,
                    );
                }
                // Line breaks next to the marks are not part of a value, unless white space is significant.
                let value = &text[value_start..end];
                let value = value.strip_prefix('\n').filter(|_| !marks.is_typed).unwrap_or(value);
                let value = value.strip_suffix('\n').filter(|_| !marks.is_typed).unwrap_or(value);
                match is_string {
                    Some(true) => call.add_value(trim(key), Value::from(value))?,
                    Some(false) => call.add_text(trim(key), value, ArgumentNotation::Json)?,
                    None => call.add_text(trim(key), value, ArgumentNotation::Bare)?,
                }
                from = next_offset;
            }
            let rest = text[from..].trim_start();
            let (rest, is_close_missing) = match rest.strip_prefix(marks.close) {
                Some(rest) => (rest, false),
                None => (rest, true),
            };
            if !rest.trim_start().is_empty() && !rest.trim_start().starts_with(marks.open) {
                return Err(invalid_call("there is other text between or after the arguments"));
            }
            if is_close_missing {
                position = (from, position.1.end_of(&text[position.0..from]));
                let message = format!("`{}` is missing", marks.close);
                let report = FindingReport::new(rules::CALL_UNCLOSED, position.1, position.1.offset, message);
                add_report(
                    report.with_repair("closed where its arguments end"),
                    options.limits.findings,
                    reports,
                );
            }
            from = text.len() - rest.len();
            calls.push(call.finish("")?);
        }
        if calls.is_empty() || !trim(&text[from..]).is_empty() {
            return Err(invalid_call("there is other text between the calls"));
        }
        Ok(calls)
    }
}

/// Reads the opening tag of a call at `from`, after white space. Returns the name of the tool and the offset
/// of the parameters, or `None` if there is no call.
fn read_tool_tag<'t>(
    text: &'t str,
    from: usize,
    marks: &ElementMarks,
) -> Result<Option<(&'t str, usize)>, CallRejection> {
    let rest = text[from..].trim_start();
    let Some(inner) = rest.strip_prefix(marks.open) else { return Ok(None) };
    let end = inner.find(['"', '<', '>']).filter(|end| inner[*end..].starts_with("\">"));
    let end = end.ok_or_else(|| invalid_call("the name of a tool is not closed"))?;
    Ok(Some((&inner[..end], text.len() - inner.len() + end + "\">".len())))
}

/// Opening tag of a parameter written as an element.
struct ParameterTag<'t> {
    key: &'t str,
    /// Declared type of its value: true for text, false for JSON; `None` if not declared.
    is_string: Option<bool>,
    /// Offset of its value.
    value_start: usize,
}

/// Reads the parameter tag at `from`, after white space. Returns `None` if there is none.
fn read_parameter_tag<'t>(
    text: &'t str,
    from: usize,
    marks: &ElementMarks,
) -> Result<Option<ParameterTag<'t>>, CallRejection> {
    let rest = text[from..].trim_start();
    let Some(inner) = rest.strip_prefix(marks.parameter_marks.open) else { return Ok(None) };
    let no_end_error = || invalid_call("the name of an argument is not closed");
    let name_end =
        inner.find(['"', '<', '>']).filter(|end| inner[*end..].starts_with('"')).ok_or_else(no_end_error)?;
    let after_name = &inner[name_end + 1..];
    let tag_end = after_name
        .find(['<', '>'])
        .filter(|end| after_name[*end..].starts_with('>'))
        .ok_or_else(no_end_error)?;
    let is_string = match trim(&after_name[..tag_end]) {
        "" => None,
        "string=\"false\"" => Some(false),
        "string=\"true\"" => Some(true),
        _ => return Err(invalid_call("an argument has an unknown attribute")),
    };
    Ok(Some(ParameterTag {
        key: &inner[..name_end],
        is_string,
        value_start: text.len() - after_name.len() + tag_end + 1,
    }))
}
