//! Decoding of calls whose text has arrived as a whole: names, and arguments in any notation.

use std::ops::Range;

use serde_json::{Map, Value};

use super::arguments::{self, ArgumentExtent, MarkIndex};
use super::bare_values::ArgumentNotation;
use super::formats::{self, CallBody};
use super::head::CallHead;
use super::{bare_values, python, rules};
use crate::dialect::call_check::find_contradiction;
use crate::dialect::{CallIntent, MAX_EXCERPT_CHARS};
use crate::finding::{Doubt, FindingReport, Rule, clip};
use crate::lex::space::trim;
use crate::options::Options;
use crate::repair::json::{self, PathStep, ValueDoubt, ValueDoubts};
use crate::repair::rules as json_rules;
use crate::span::Place;

/// Reason why a text in a notation of calls is not a call: the violated rule, and a message.
pub(super) type CallRejection = (&'static Rule, String);

/// Keys under which an object that is a call may have the tool's name.
const NAME_KEYS: &[&str] = &["name", "function"];
/// Keys under which an object that is a call may have the arguments.
const ARGUMENT_KEYS: &[&str] = &["arguments", "parameters", "args"];
/// Further keys of an object that is a call, which are ignored without a finding.
const OTHER_KEYS: &[&str] = &["id", "type", "index"];

/// A call as the reply has it, before it is checked against the tools.
pub(super) struct WrittenCall {
    pub(super) call: CallIntent,
    /// Doubt about a value in it.
    pub(super) doubt: Option<ValueDoubt>,
    /// Set if no arguments were written at all.
    pub(super) is_without_args: bool,
}

/// Complete text of one or more calls in one notation.
pub(super) struct CompleteCallText<'a> {
    pub(super) head: &'a CallHead,
    /// The text, with the marks around the calls.
    pub(super) raw: &'a str,
    /// Place of the text.
    pub(super) place: Place,
    /// Ranges of the arguments in `raw`; calls joined by semicolons have one range each.
    pub(super) argument_ranges: &'a [Range<usize>],
}

impl CompleteCallText<'_> {
    /// Returns the name before the arguments.
    pub(super) fn head_name(&self) -> Option<&str> {
        let raw_name = &self.raw[self.head.name.clone()?];
        Some(formats::tool_name(raw_name, self.head.form.format, self.head.form.body))
    }

    /// Decodes the calls; findings on repairs are added to `reports`. One faulty call rejects all.
    pub(super) fn read_calls(
        &self,
        options: &Options,
        reports: &mut Vec<FindingReport>,
    ) -> Result<Vec<WrittenCall>, CallRejection> {
        let mut calls: Vec<WrittenCall> = Vec::new();
        for range in self.argument_ranges {
            let (text, at) = (&self.raw[range.clone()], self.place.end_of(&self.raw[..range.start]));
            match self.head.form.body {
                CallBody::CallObjects => {
                    let (value, doubts) = read_json(text, at, options, reports)?;
                    let (items, is_list) = match value {
                        Value::Array(items) => (items, true),
                        value => (vec![value], false),
                    };
                    if items.is_empty() {
                        return Err(invalid_call("the list has no call"));
                    }
                    for (index, item) in items.into_iter().enumerate() {
                        let path = [PathStep::Index(index)];
                        let doubt = doubts.find_within(if is_list { &path } else { &[] }).cloned();
                        let parsed = self.read_call(item, at, text.len(), options, reports)?;
                        calls.push(WrittenCall { doubt: doubt.or(parsed.doubt), ..parsed });
                    }
                }
                CallBody::ArgsObject => {
                    let (args, doubts) = read_json(text, at, options, reports)?;
                    if !args.is_object() {
                        return Err(invalid_call("the arguments are not a JSON object"));
                    }
                    let call = CallIntent { name: self.head_name().unwrap_or_default().to_owned(), args };
                    calls.push(WrittenCall {
                        call,
                        doubt: doubts.find_within(&[]).cloned(),
                        is_without_args: false,
                    });
                }
                CallBody::Python => {
                    let parsed = python::parse_calls(text, &options.limits)
                        .map_err(|message| (rules::CALL_INVALID, message))?;
                    if parsed.is_empty() {
                        return Err(invalid_call("the list has no call"));
                    }
                    calls.extend(parsed.into_iter().map(|python::PythonCall { name, args, doubt }| {
                        let name =
                            formats::tool_name(&name, self.head.form.format, CallBody::Python).to_owned();
                        let call = CallIntent { name, args: Value::Object(args) };
                        WrittenCall {
                            is_without_args: call.args.as_object().is_some_and(Map::is_empty),
                            call,
                            doubt,
                        }
                    }));
                }
                CallBody::Parameters => calls.push(self.read_parameters(text, at, options, reports)?),
                CallBody::Pairs => calls.push(self.read_pairs(text, at, options, reports)?),
                CallBody::Elements(marks) => {
                    calls.append(&mut self.read_elements(marks, text, at, options, reports)?)
                }
                CallBody::NoArguments | CallBody::Reasoning => {}
            }
        }
        Ok(calls)
    }

    /// Reads the call of an object such as `{"name": "...", "arguments": {...}}`, found in a text of `len`
    /// bytes at `at`.
    fn read_call(
        &self,
        value: Value,
        at: Place,
        len: usize,
        options: &Options,
        reports: &mut Vec<FindingReport>,
    ) -> Result<WrittenCall, CallRejection> {
        let Value::Object(mut fields) = value else {
            return Err(invalid_call("a call is not a JSON object"));
        };
        if let Some(contradiction) = find_contradiction(&fields) {
            return Err(invalid_call(&format!("the call {contradiction}")));
        }
        // Shape of calls in the API of OpenAI: `{"type": "function", "function": {"name": ..., "arguments":
        // ...}}`.
        if let Some(Value::Object(inner)) = fields.get("function") {
            fields = inner.clone();
        }
        let name = NAME_KEYS.iter().find_map(|key| fields.get(*key)?.as_str().map(trim));
        let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) else {
            return Err(invalid_call("the call does not name a tool"));
        };
        if ARGUMENT_KEYS.iter().filter(|key| fields.contains_key(**key)).count() > 1 {
            return Err(invalid_call("the call has arguments under two names"));
        }
        let argument_key = ARGUMENT_KEYS.iter().find(|key| fields.contains_key(**key));
        let is_known =
            |key: &str| NAME_KEYS.contains(&key) || OTHER_KEYS.contains(&key) || Some(&key) == argument_key;
        let other_keys: Vec<&str> = fields.keys().map(String::as_str).filter(|key| !is_known(key)).collect();
        if !other_keys.is_empty() {
            let names = clip(&other_keys.join("`, `"), MAX_EXCERPT_CHARS).into_owned();
            if argument_key.is_none() {
                return Err(invalid_call(&format!("the call has no `arguments`, but `{names}`")));
            }
            let message = format!("the call has `{names}` beside its name and arguments");
            reports.push(
                FindingReport::new(rules::CALL_FIELDS, at, at.offset + len, message).with_repair("not used"),
            );
        }
        // Doubt about arguments written as a string.
        let (mut doubt, mut is_without_args) = (None, false);
        let mut no_arguments = || {
            is_without_args = true;
            Value::Object(Map::new())
        };
        let args = match argument_key.and_then(|key| fields.remove(*key)) {
            None | Some(Value::Null) => no_arguments(),
            Some(Value::String(text)) if trim(&text).is_empty() => no_arguments(),
            Some(Value::String(text)) => match json::parse_strict_with_doubts(trim(&text), &options.limits) {
                Ok(found) => {
                    // The empty path denotes the whole value.
                    doubt = found.doubts.find_within(&[]).cloned();
                    // Places inside the string are not places in the reply, so the finding covers the whole
                    // text.
                    let is_duplicate = |report: &FindingReport| report.doubt == Some(Doubt::DuplicateKey);
                    let duplicate_report = found.reports.into_iter().find(is_duplicate);
                    reports.extend(duplicate_report.map(|report| {
                        FindingReport { place: at, end: at.offset + len, ..report }.with_row("R-82")
                    }));
                    found.value.unwrap_or_default()
                }
                // Null is rejected below, since it is not an object.
                Err(_) => Value::Null,
            },
            Some(args) => args,
        };
        if !args.is_object() {
            return Err(invalid_call(&format!(
                "the arguments of `{}` are not a JSON object",
                clip(&name, MAX_EXCERPT_CHARS)
            )));
        }
        Ok(WrittenCall { call: CallIntent { name, args }, doubt, is_without_args })
    }

    /// Reads a sequence of `<parameter=KEY>value</parameter>` up to `</function>`.
    fn read_parameters(
        &self,
        text: &str,
        at: Place,
        options: &Options,
        reports: &mut Vec<FindingReport>,
    ) -> Result<WrittenCall, CallRejection> {
        let mut call = TypedCall::new(self.head_name(), options);
        let arguments = MarkIndex::new(text, &arguments::PARAMETER_MARKS);
        // `position` is the offset and place of the last report, from which later places are counted.
        let (mut from, mut position) = (0, (0, at));
        while let Some((key, start)) = read_key_tag(text, from, "<parameter=", ">")? {
            let ArgumentExtent { end, next_offset, is_closed } = arguments.argument_at(start);
            if !is_closed {
                position = (from, position.1.end_of(&text[position.0..from]));
                add_report(
                    unclosed_report(key, position.1, at.offset + end),
                    options.limits.findings,
                    reports,
                );
            }
            let value = text[start..end].strip_prefix('\n').unwrap_or(&text[start..end]);
            call.add_text(trim(key), value.strip_suffix('\n').unwrap_or(value), ArgumentNotation::Bare)?;
            from = next_offset;
        }
        let rest = text[from..].trim_start();
        let after_close = rest.strip_prefix("</function>");
        // A form whose closing mark is `</function>` does not have that mark in its arguments.
        if after_close.is_none()
            && rest.is_empty()
            && self.head.form.close_marks.last() != Some(&"</function>")
        {
            let end = at.end_of(text);
            let report =
                FindingReport::new(rules::CALL_UNCLOSED, end, end.offset, "`</function>` is missing");
            add_report(
                report.with_repair("closed where its arguments end"),
                options.limits.findings,
                reports,
            );
        }
        call.finish(after_close.unwrap_or(rest))
    }

    /// Reads a sequence of `<arg_key>KEY</arg_key><arg_value>value</arg_value>`.
    fn read_pairs(
        &self,
        text: &str,
        at: Place,
        options: &Options,
        reports: &mut Vec<FindingReport>,
    ) -> Result<WrittenCall, CallRejection> {
        let mut call = TypedCall::new(self.head_name(), options);
        let arguments = MarkIndex::new(text, &arguments::VALUE_MARKS);
        // `position` is the offset and place of the last report, from which later places are counted.
        let (mut from, mut position) = (0, (0, at));
        while let Some((key, key_end)) = read_key_tag(text, from, "<arg_key>", "</arg_key>")? {
            let space_len = text[key_end..].len() - text[key_end..].trim_start().len();
            let mark_start = key_end + space_len;
            if !text[mark_start..].starts_with("<arg_value>") {
                return Err(invalid_call(&format!("`{}` has no value", clip(key, MAX_EXCERPT_CHARS))));
            }
            let start = mark_start + "<arg_value>".len();
            let ArgumentExtent { end, next_offset, is_closed } = arguments.argument_at(start);
            if !is_closed {
                position = (from, position.1.end_of(&text[position.0..from]));
                add_report(
                    unclosed_report(key, position.1, at.offset + end),
                    options.limits.findings,
                    reports,
                );
            }
            call.add_text(trim(key), trim(&text[start..end]), ArgumentNotation::Bare)?;
            from = next_offset;
        }
        call.finish(&text[from..])
    }
}

/// Reads the key between `open` and `close` at `from`, after white space. Returns the key and the offset
/// after the tag, or `None` if there is no such tag.
fn read_key_tag<'t>(
    text: &'t str,
    from: usize,
    open: &str,
    close: &str,
) -> Result<Option<(&'t str, usize)>, CallRejection> {
    let rest = text[from..].trim_start();
    let Some(inner) = rest.strip_prefix(open) else { return Ok(None) };
    // A key contains no mark.
    let end = inner.find(['<', '>']).filter(|end| inner[*end..].starts_with(close));
    let end = end.ok_or_else(|| invalid_call("the name of an argument is not closed"))?;
    Ok(Some((&inner[..end], text.len() - inner.len() + end + close.len())))
}

/// Builds the finding on an argument without its closing mark, which starts at `place` and ends at offset
/// `end`.
pub(super) fn unclosed_report(key: &str, place: Place, end: usize) -> FindingReport {
    let message = format!("the argument `{}` is not closed", clip(trim(key), MAX_EXCERPT_CHARS));
    FindingReport::new(rules::ARGUMENT_UNCLOSED, place, end, message)
        .with_repair("closed before the next mark")
}

/// Adds a finding on an argument. Beyond the limit, the last finding covers all further ones.
pub(super) fn add_report(report: FindingReport, limit: usize, reports: &mut Vec<FindingReport>) {
    if reports.len() <= limit {
        return reports.push(report);
    }
    if let Some(last) = reports.last_mut() {
        last.end = report.end;
        last.message = "arguments from here on are not closed".into();
    }
}

/// Returns the rejection of a call that lacks a name or arguments, or is malformed.
pub(super) fn invalid_call(message: &str) -> CallRejection {
    (rules::CALL_INVALID, message.to_owned())
}

/// A call with arguments written as text; the tool's schema gives their types.
pub(super) struct TypedCall<'a> {
    /// Name of the tool.
    name: &'a str,
    options: &'a Options,
    args: Map<String, Value>,
    /// First doubt about an argument.
    doubt: Option<ValueDoubt>,
}

impl<'a> TypedCall<'a> {
    /// Creates a call without arguments.
    pub(super) fn new(name: Option<&'a str>, options: &'a Options) -> TypedCall<'a> {
        TypedCall { name: name.unwrap_or_default(), options, args: Map::new(), doubt: None }
    }

    /// Adds an argument whose value is written as `text`.
    pub(super) fn add_text(
        &mut self,
        key: &str,
        text: &str,
        notation: ArgumentNotation,
    ) -> Result<(), CallRejection> {
        let Options { tools, limits, .. } = self.options;
        let (value, doubt) = bare_values::parse_value(text, notation, tools.as_ref(), self.name, key, limits);
        self.doubt = self.doubt.take().or(doubt);
        self.add_value(key, value)
    }

    /// Adds an argument with a known value.
    pub(super) fn add_value(&mut self, key: &str, value: Value) -> Result<(), CallRejection> {
        let limits = &self.options.limits;
        if key.is_empty() {
            return Err(invalid_call("an argument has no name"));
        }
        if self.args.len() >= limits.items {
            return Err((
                rules::LIMIT_EXCEEDED,
                "the call has more arguments than `limits.items`".to_owned(),
            ));
        }
        match self.args.insert(key.to_owned(), value) {
            None => Ok(()),
            Some(_) => {
                Err(invalid_call(&format!("the argument `{}` is given twice", clip(key, MAX_EXCERPT_CHARS))))
            }
        }
    }

    /// Ends the call. `text_after` is the text after the last argument that was read; it must be white space.
    pub(super) fn finish(self, text_after: &str) -> Result<WrittenCall, CallRejection> {
        if !trim(text_after).is_empty() {
            return Err(invalid_call("there is other text between or after the arguments"));
        }
        let is_without_args = self.args.is_empty();
        let call = CallIntent { name: self.name.to_owned(), args: Value::Object(self.args) };
        Ok(WrittenCall { call, doubt: self.doubt, is_without_args })
    }
}

/// Reads a text at `at` that must be one JSON object or list, and repairs it if needed. Returns the value and
/// the doubts about it.
fn read_json(
    text: &str,
    at: Place,
    options: &Options,
    reports: &mut Vec<FindingReport>,
) -> Result<(Value, ValueDoubts), CallRejection> {
    let (found, fault) = match json::parse_strict_with_doubts(text, &options.limits) {
        Ok(found) => (found, None),
        Err(fault) => (json::find(text, &options.limits), Some(fault)),
    };
    if let Some(limit) = found.reports.iter().find(|report| report.rule.code == rules::LIMIT_EXCEEDED.code) {
        return Err((rules::LIMIT_EXCEEDED, limit.message.clone()));
    }
    // Superfluous brackets and separators after the value are accepted.
    let is_alone = trim(&text[..found.span.start]).is_empty()
        && text[found.span.end..]
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, '}' | ']' | ')' | ',' | ';'));
    let value = found.value.filter(|value| is_alone && (value.is_object() || value.is_array()));
    let Some(value) = value else {
        let reason = fault.map_or_else(|| "neither an object nor a list".to_owned(), |fault| fault.message);
        return Err(invalid_call(&format!("not JSON: {reason}")));
    };
    if found.is_auto_closed {
        return Err((rules::CALL_INCOMPLETE, "its JSON is not complete".to_owned()));
    }
    if let Some(fault) = fault {
        let report = FindingReport {
            message: format!("not strict JSON: {}", fault.message),
            ..relocate_report(fault, at)
        };
        reports.push(
            FindingReport { rule: rules::CALL_NOT_STRICT, row: "R-68", ..report }
                .with_repair("JSON repaired"),
        );
    }
    reports.extend(found.reports.into_iter().map(|report| relocate_report(report, at)));
    Ok((value, found.doubts))
}

/// Translates a finding on a text to the text's place in the reply.
fn relocate_report(mut report: FindingReport, at: Place) -> FindingReport {
    let len = report.end.saturating_sub(report.place.offset);
    report.place = report.place.rebase(at);
    report.end = report.place.offset + len;
    if report.rule.code == json_rules::DUPLICATE_KEY.code { report.with_row("R-82") } else { report }
}
