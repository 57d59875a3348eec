//! Decodes the calls of a form that has ended: names and arguments in any notation.

use std::ops::Range;

use serde_json::{Map, Value};

use super::arguments::{self, Argument, Arguments};
use super::formats::{self, Body};
use super::head::Head;
use super::typed::Written;
use super::{python, rules, typed};
use crate::dialect::Call;
use crate::dialect::called::contradiction;
use crate::finding::{Doubt, Report, Rule, clip};
use crate::lex::space::trim;
use crate::options::Options;
use crate::repair::json::{self, Doubts, PathStep, ValueDoubt};
use crate::repair::rules as json_rules;
use crate::span::Place;

/// Reason why a form is not a call: the violated rule, and a message.
pub(super) type Wrong = (&'static Rule, String);

/// Keys of an object that is a call, by the values they hold.
const NAMES: &[&str] = &["name", "function"];
const ARGUMENTS: &[&str] = &["arguments", "parameters", "args"];
const OTHERS: &[&str] = &["id", "type", "index"];

/// A call as it was written.
pub(super) struct WrittenCall {
    pub(super) call: Call,
    /// Doubt about a value in it.
    pub(super) doubt: Option<ValueDoubt>,
    /// Set if no arguments were written at all.
    pub(super) bare: bool,
}

/// A form that has ended.
pub(super) struct Whole<'a> {
    pub(super) head: &'a Head,
    pub(super) raw: &'a str,
    /// Place of the form.
    pub(super) at: Place,
    /// Ranges of its values in `raw`.
    pub(super) values: &'a [Range<usize>],
}

impl Whole<'_> {
    /// Returns the name before the arguments.
    pub(super) fn name(&self) -> Option<&str> {
        let written = &self.raw[self.head.name.clone()?];
        Some(formats::name(written, self.head.form.format, self.head.form.body))
    }

    /// Decodes the calls; findings on repairs are added to `told`.
    pub(super) fn calls(&self, options: &Options, told: &mut Vec<Report>) -> Result<Vec<WrittenCall>, Wrong> {
        let mut calls: Vec<WrittenCall> = Vec::new();
        for value in self.values {
            let (text, at) = (&self.raw[value.clone()], self.at.after(&self.raw[..value.start]));
            match self.head.form.body {
                Body::Calls => {
                    let (value, doubts) = json(text, at, options, told)?;
                    let (items, list) = match value {
                        Value::Array(items) => (items, true),
                        value => (vec![value], false),
                    };
                    if items.is_empty() {
                        return Err(invalid("the list has no call"));
                    }
                    for (index, item) in items.into_iter().enumerate() {
                        let path = [PathStep::Index(index)];
                        let doubt = doubts.within(if list { &path } else { &[] }).cloned();
                        let written = self.call(item, at, text.len(), options, told)?;
                        calls.push(WrittenCall { doubt: doubt.or(written.doubt), ..written });
                    }
                }
                Body::Args => {
                    let (args, doubts) = json(text, at, options, told)?;
                    if !args.is_object() {
                        return Err(invalid("the arguments are no JSON object"));
                    }
                    let call = Call { name: self.name().unwrap_or_default().to_owned(), args };
                    calls.push(WrittenCall { call, doubt: doubts.within(&[]).cloned(), bare: false });
                }
                Body::Python => {
                    let written = python::calls(text, &options.limits)
                        .map_err(|message| (rules::CALL_INVALID, message))?;
                    if written.is_empty() {
                        return Err(invalid("the list has no call"));
                    }
                    calls.extend(written.into_iter().map(|python::Written { name, args, doubt }| {
                        let name = formats::name(&name, self.head.form.format, Body::Python).to_owned();
                        let call = Call { name, args: Value::Object(args) };
                        WrittenCall { bare: call.args.as_object().is_some_and(Map::is_empty), call, doubt }
                    }));
                }
                Body::Parameters => calls.push(self.parameters(text, at, options, told)?),
                Body::Pairs => calls.push(self.pairs(text, at, options, told)?),
                Body::Elements(marks) => calls.append(&mut self.invokes(marks, text, at, options, told)?),
                Body::Nothing | Body::Reasoning => {}
            }
        }
        Ok(calls)
    }

    /// Reads the call of an object such as `{"name": "...", "arguments": {...}}`.
    fn call(
        &self,
        value: Value,
        at: Place,
        len: usize,
        options: &Options,
        told: &mut Vec<Report>,
    ) -> Result<WrittenCall, Wrong> {
        let Value::Object(mut fields) = value else { return Err(invalid("a call is a JSON object")) };
        if let Some(why) = contradiction(&fields) {
            return Err(invalid(&format!("the call {why}")));
        }
        // Shape used by services: `{"type": "function", "function": {"name": ..., "arguments": ...}}`.
        if let Some(Value::Object(inner)) = fields.get("function") {
            fields = inner.clone();
        }
        let name = NAMES.iter().find_map(|key| fields.get(*key)?.as_str().map(trim));
        let Some(name) = name.filter(|name| !name.is_empty()).map(str::to_owned) else {
            return Err(invalid("the call names no tool"));
        };
        if ARGUMENTS.iter().filter(|key| fields.contains_key(**key)).count() > 1 {
            return Err(invalid("the call has arguments under two names"));
        }
        let written = ARGUMENTS.iter().find(|key| fields.contains_key(**key));
        let known = |key: &str| NAMES.contains(&key) || OTHERS.contains(&key) || Some(&key) == written;
        let others: Vec<&str> = fields.keys().map(String::as_str).filter(|key| !known(key)).collect();
        if !others.is_empty() {
            let names = clip(&others.join("`, `"), 60).into_owned();
            if written.is_none() {
                return Err(invalid(&format!("the call has no `arguments`, but `{names}`")));
            }
            let message = format!("the call has `{names}` beside its name and arguments");
            told.push(Report::new(rules::CALL_FIELDS, at, at.offset + len, message).repaired("not used"));
        }
        // Doubt about arguments written as a string.
        let (mut doubt, mut bare) = (None, false);
        let mut none = || {
            bare = true;
            Value::Object(Map::new())
        };
        let args = match written.and_then(|key| fields.remove(*key)) {
            None | Some(Value::Null) => none(),
            Some(Value::String(text)) if trim(&text).is_empty() => none(),
            Some(Value::String(text)) => match json::strict_found(trim(&text), &options.limits) {
                Ok(found) => {
                    doubt = found.doubts.within(&[]).cloned();
                    // Places inside the string are not places in the reply.
                    let twice = |report: &Report| report.doubt == Some(Doubt::DuplicateKey);
                    let twice = found.reports.into_iter().find(twice);
                    told.extend(
                        twice.map(|report| Report { place: at, end: at.offset + len, ..report }.row("R-82")),
                    );
                    found.value.unwrap_or_default()
                }
                Err(_) => Value::Null,
            },
            Some(args) => args,
        };
        if !args.is_object() {
            return Err(invalid(&format!("the arguments of `{}` are no JSON object", clip(&name, 60))));
        }
        Ok(WrittenCall { call: Call { name, args }, doubt, bare })
    }

    /// Reads a sequence of `<parameter=KEY>value</parameter>` up to `</function>`.
    fn parameters(
        &self,
        text: &str,
        at: Place,
        options: &Options,
        told: &mut Vec<Report>,
    ) -> Result<WrittenCall, Wrong> {
        let mut call = Typed::new(self.name(), options);
        let arguments = Arguments::new(text, &arguments::PARAMETER);
        let (mut from, mut here) = (0, (0, at));
        while let Some((key, start)) = named_tag(text, from, "<parameter=", ">")? {
            let Argument { end, next, closed } = arguments.from(start);
            if !closed {
                here = (from, here.1.after(&text[here.0..from]));
                tell(unclosed(key, here.1, at.offset + end), options.limits.findings, told);
            }
            let value = text[start..end].strip_prefix('\n').unwrap_or(&text[start..end]);
            call.add(trim(key), value.strip_suffix('\n').unwrap_or(value), Written::Bare)?;
            from = next;
        }
        let rest = text[from..].trim_start();
        let behind = rest.strip_prefix("</function>");
        if behind.is_none() && rest.is_empty() && self.head.form.close.last() != Some(&"</function>") {
            let end = at.after(text);
            let report = Report::new(rules::CALL_UNCLOSED, end, end.offset, "`</function>` is missing");
            tell(report.repaired("closed where its arguments end"), options.limits.findings, told);
        }
        call.end(behind.unwrap_or(rest))
    }

    /// Reads a sequence of `<arg_key>KEY</arg_key><arg_value>value</arg_value>`.
    fn pairs(
        &self,
        text: &str,
        at: Place,
        options: &Options,
        told: &mut Vec<Report>,
    ) -> Result<WrittenCall, Wrong> {
        let mut call = Typed::new(self.name(), options);
        let arguments = Arguments::new(text, &arguments::VALUE);
        let (mut from, mut here) = (0, (0, at));
        while let Some((key, behind)) = named_tag(text, from, "<arg_key>", "</arg_key>")? {
            let space = text[behind..].len() - text[behind..].trim_start().len();
            let start = behind + space + "<arg_value>".len();
            if !text[behind + space..].starts_with("<arg_value>") {
                return Err(invalid(&format!("`{}` has no value", clip(key, 60))));
            }
            let Argument { end, next, closed } = arguments.from(start);
            if !closed {
                here = (from, here.1.after(&text[here.0..from]));
                tell(unclosed(key, here.1, at.offset + end), options.limits.findings, told);
            }
            call.add(trim(key), trim(&text[start..end]), Written::Bare)?;
            from = next;
        }
        call.end(&text[from..])
    }
}

/// Reads the key between `open` and `close` at `from`, after white space. Returns it with the offset after
/// the tag, or `None` if there is no such tag.
fn named_tag<'t>(
    text: &'t str,
    from: usize,
    open: &str,
    close: &str,
) -> Result<Option<(&'t str, usize)>, Wrong> {
    let rest = text[from..].trim_start();
    let Some(inner) = rest.strip_prefix(open) else { return Ok(None) };
    // A key contains no mark.
    let end = inner.find(['<', '>']).filter(|end| inner[*end..].starts_with(close));
    let end = end.ok_or_else(|| invalid("the name of an argument has no end"))?;
    Ok(Some((&inner[..end], text.len() - inner.len() + end + close.len())))
}

/// Builds the finding on an argument without its closing mark.
pub(super) fn unclosed(key: &str, place: Place, end: usize) -> Report {
    let message = format!("the argument `{}` is not closed", clip(trim(key), 60));
    Report::new(rules::ARGUMENT_UNCLOSED, place, end, message).repaired("closed before the next mark")
}

/// Adds a finding on an argument. Beyond the limit, the last finding covers all further ones.
pub(super) fn tell(report: Report, limit: usize, told: &mut Vec<Report>) {
    if told.len() <= limit {
        return told.push(report);
    }
    if let Some(last) = told.last_mut() {
        last.end = report.end;
        last.message = "arguments from here on are not closed".into();
    }
}

pub(super) fn invalid(message: &str) -> Wrong {
    (rules::CALL_INVALID, message.to_owned())
}

/// A call whose arguments are bare text.
pub(super) struct Typed<'a> {
    name: &'a str,
    options: &'a Options,
    args: Map<String, Value>,
    doubt: Option<ValueDoubt>,
}

impl<'a> Typed<'a> {
    pub(super) fn new(name: Option<&'a str>, options: &'a Options) -> Typed<'a> {
        Typed { name: name.unwrap_or_default(), options, args: Map::new(), doubt: None }
    }

    pub(super) fn add(&mut self, key: &str, text: &str, written: Written) -> Result<(), Wrong> {
        let Options { tools, limits, .. } = self.options;
        let (value, doubt) = typed::value(text, written, tools.as_ref(), self.name, key, limits);
        self.doubt = self.doubt.take().or(doubt);
        self.put(key, value)
    }

    /// Adds an argument with a known value.
    pub(super) fn put(&mut self, key: &str, value: Value) -> Result<(), Wrong> {
        let limits = &self.options.limits;
        if key.is_empty() {
            return Err(invalid("an argument has no name"));
        }
        if self.args.len() >= limits.items {
            return Err((
                rules::LIMIT_EXCEEDED,
                "the call has more arguments than `limits.items`".to_owned(),
            ));
        }
        match self.args.insert(key.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(invalid(&format!("the argument `{}` is there twice", clip(key, 60)))),
        }
    }

    pub(super) fn end(self, rest: &str) -> Result<WrittenCall, Wrong> {
        if !trim(rest).is_empty() {
            return Err(invalid("other text stands between the arguments"));
        }
        let bare = self.args.is_empty();
        let call = Call { name: self.name.to_owned(), args: Value::Object(self.args) };
        Ok(WrittenCall { call, doubt: self.doubt, bare })
    }
}

/// Reads the JSON of a text at `at`, repaired if needed, with the doubts about it.
fn json(text: &str, at: Place, options: &Options, told: &mut Vec<Report>) -> Result<(Value, Doubts), Wrong> {
    let (found, fault) = match json::strict_found(text, &options.limits) {
        Ok(found) => (found, None),
        Err(fault) => (json::find(text, &options.limits), Some(fault)),
    };
    if let Some(limit) = found.reports.iter().find(|report| report.rule.code == rules::LIMIT_EXCEEDED.code) {
        return Err((rules::LIMIT_EXCEEDED, limit.message.clone()));
    }
    let alone = trim(&text[..found.span.start]).is_empty()
        && text[found.span.end..]
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, '}' | ']' | ')' | ',' | ';'));
    let value = found.value.filter(|value| alone && (value.is_object() || value.is_array()));
    let Some(value) = value else {
        let why = fault.map_or_else(|| "neither an object nor a list".to_owned(), |fault| fault.message);
        return Err(invalid(&format!("no JSON: {why}")));
    };
    if found.closed_by_us {
        return Err((rules::CALL_INCOMPLETE, "its JSON is not complete".to_owned()));
    }
    if let Some(fault) = fault {
        let report = Report { message: format!("no strict JSON: {}", fault.message), ..relocated(fault, at) };
        told.push(Report { rule: rules::CALL_NOT_STRICT, row: "R-68", ..report }.repaired("JSON repaired"));
    }
    told.extend(found.reports.into_iter().map(|report| relocated(report, at)));
    Ok((value, found.doubts))
}

/// Translates a finding on a text to the text's place in the reply.
fn relocated(mut report: Report, at: Place) -> Report {
    let len = report.end.saturating_sub(report.place.offset);
    report.place = report.place.within(at);
    report.end = report.place.offset + len;
    if report.rule.code == json_rules::DUPLICATE_KEY.code { report.row("R-82") } else { report }
}
