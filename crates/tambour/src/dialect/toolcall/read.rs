//! The calls of a form that has ended: their names and arguments, however they are written.

use std::ops::Range;

use serde_json::{Map, Value};

use super::formats::{self, Body};
use super::head::Head;
use super::{python, rules, typed};
use crate::dialect::Call;
use crate::finding::{Report, Rule, clip};
use crate::lex::space::trim;
use crate::options::Options;
use crate::repair::json::{self, Builder, Built, Duplicate, JsonEvent, JsonSink, Reader};
use crate::span::Place;

/// Why a form is no call: the rule that it breaks, and in words.
pub(super) type Wrong = (&'static Rule, String);

/// Keys of an object that is a call, by what stands behind them.
const NAMES: &[&str] = &["name", "function"];
const ARGUMENTS: &[&str] = &["arguments", "parameters", "args"];
const OTHERS: &[&str] = &["id", "type", "index"];

/// A form that has ended.
pub(super) struct Whole<'a> {
    pub(super) head: &'a Head,
    pub(super) raw: &'a str,
    /// Where it stands.
    pub(super) at: Place,
    /// Where its values stand in it.
    pub(super) values: &'a [Range<usize>],
}

impl Whole<'_> {
    /// The name that stands before the arguments.
    pub(super) fn name(&self) -> Option<&str> {
        let written = &self.raw[self.head.name.clone()?];
        Some(formats::name(written, self.head.form.format, self.head.form.body))
    }

    /// Its calls; `told` gets what was mended in them.
    pub(super) fn calls(&self, options: &Options, told: &mut Vec<Report>) -> Result<Vec<Call>, Wrong> {
        let mut calls = Vec::new();
        for value in self.values {
            let (text, at) = (&self.raw[value.clone()], self.at.after(&self.raw[..value.start]));
            match self.head.form.body {
                Body::Calls => match json(text, at, options, told)? {
                    Value::Array(items) if items.is_empty() => return Err(invalid("the list has no call")),
                    Value::Array(items) => {
                        for item in items {
                            calls.push(self.call(item, at, text.len(), options, told)?);
                        }
                    }
                    value => calls.push(self.call(value, at, text.len(), options, told)?),
                },
                Body::Args => {
                    let args = json(text, at, options, told)?;
                    if !args.is_object() {
                        return Err(invalid("the arguments are no JSON object"));
                    }
                    calls.push(Call { name: self.name().unwrap_or_default().to_owned(), args });
                }
                Body::Python => {
                    let written = python::calls(text, &options.limits)
                        .map_err(|message| (rules::CALL_INVALID, message))?;
                    if written.is_empty() {
                        return Err(invalid("the list has no call"));
                    }
                    calls.extend(written.into_iter().map(|(name, args)| {
                        let name = formats::name(&name, self.head.form.format, Body::Python).to_owned();
                        Call { name, args: Value::Object(args) }
                    }));
                }
                Body::Parameters => calls.push(self.parameters(text, options)?),
                Body::Pairs => calls.push(self.pairs(text, options)?),
                Body::Nothing | Body::Reasoning => {}
            }
        }
        Ok(calls)
    }

    /// The call of an object such as `{"name": "...", "arguments": {...}}`.
    fn call(
        &self,
        value: Value,
        at: Place,
        len: usize,
        options: &Options,
        told: &mut Vec<Report>,
    ) -> Result<Call, Wrong> {
        let Value::Object(mut fields) = value else { return Err(invalid("a call is a JSON object")) };
        // As services write it: `{"type": "function", "function": {"name": ..., "arguments": ...}}`.
        if let Some(Value::Object(inner)) = fields.get("function") {
            fields = inner.clone();
        }
        let name = NAMES.iter().find_map(|key| match fields.get(*key) {
            Some(Value::String(name)) if !trim(name).is_empty() => Some(trim(name).to_owned()),
            _ => None,
        });
        let Some(name) = name else { return Err(invalid("the call names no tool")) };
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
        let args = match written.and_then(|key| fields.remove(*key)) {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(Value::String(text)) if trim(&text).is_empty() => Value::Object(Map::new()),
            Some(Value::String(text)) => json::strict(trim(&text), &options.limits).unwrap_or(Value::Null),
            Some(args) => args,
        };
        if !args.is_object() {
            return Err(invalid(&format!("the arguments of `{}` are no JSON object", clip(&name, 60))));
        }
        Ok(Call { name, args })
    }

    /// `<parameter=KEY>value</parameter>`, one after the other, up to `</function>`.
    fn parameters(&self, text: &str, options: &Options) -> Result<Call, Wrong> {
        let mut call = Typed::new(self.name(), options);
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let Some(inner) = rest.strip_prefix("<parameter=") else { break };
            let (key, inner) = inner.split_once('>').ok_or_else(|| invalid("a parameter has no name"))?;
            let end = ["</parameter>", "</function>"].iter().filter_map(|close| inner.find(close)).min();
            let Some(end) = end else {
                let message = format!("`{}` has no end", clip(key, 60));
                return Err((rules::CALL_INCOMPLETE, message));
            };
            let value = inner[..end].strip_prefix('\n').unwrap_or(&inner[..end]);
            call.add(trim(key), value.strip_suffix('\n').unwrap_or(value))?;
            rest = inner[end..].strip_prefix("</parameter>").unwrap_or(&inner[end..]);
        }
        let rest = rest.strip_prefix("</function>").unwrap_or(rest);
        call.end(rest)
    }

    /// `<arg_key>KEY</arg_key><arg_value>value</arg_value>`, one after the other.
    fn pairs(&self, text: &str, options: &Options) -> Result<Call, Wrong> {
        let mut call = Typed::new(self.name(), options);
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let Some(inner) = rest.strip_prefix("<arg_key>") else { break };
            let (key, inner) = inner.split_once("</arg_key>").ok_or_else(|| invalid("a key has no end"))?;
            let Some(inner) = inner.trim_start().strip_prefix("<arg_value>") else {
                return Err(invalid(&format!("`{}` has no value", clip(key, 60))));
            };
            let Some((value, behind)) = inner.split_once("</arg_value>") else {
                return Err((rules::CALL_INCOMPLETE, format!("`{}` has no end", clip(key, 60))));
            };
            call.add(trim(key), trim(value))?;
            rest = behind;
        }
        call.end(rest)
    }
}

fn invalid(message: &str) -> Wrong {
    (rules::CALL_INVALID, message.to_owned())
}

/// A call whose arguments are bare text.
struct Typed<'a> {
    name: &'a str,
    options: &'a Options,
    args: Map<String, Value>,
}

impl<'a> Typed<'a> {
    fn new(name: Option<&'a str>, options: &'a Options) -> Typed<'a> {
        Typed { name: name.unwrap_or_default(), options, args: Map::new() }
    }

    fn add(&mut self, key: &str, text: &str) -> Result<(), Wrong> {
        let Options { tools, limits, .. } = self.options;
        if key.is_empty() {
            return Err(invalid("an argument has no name"));
        }
        if self.args.len() >= limits.items {
            return Err((
                rules::LIMIT_EXCEEDED,
                "the call has more arguments than `limits.items`".to_owned(),
            ));
        }
        let value = typed::value(text, tools.as_ref(), self.name, key, limits);
        match self.args.insert(key.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(invalid(&format!("the argument `{}` is there twice", clip(key, 60)))),
        }
    }

    fn end(self, rest: &str) -> Result<Call, Wrong> {
        if !trim(rest).is_empty() {
            return Err(invalid("other text stands between the arguments"));
        }
        Ok(Call { name: self.name.to_owned(), args: Value::Object(self.args) })
    }
}

/// The JSON of a text that stands at `at`, mended where it must be.
fn json(text: &str, at: Place, options: &Options, told: &mut Vec<Report>) -> Result<Value, Wrong> {
    let limits = &options.limits;
    let mut exact = Exact { builder: Builder::limited(limits.value, limits.items), built: None, fault: None };
    let mut reader = Reader::document(limits);
    reader.push(text, &mut exact);
    reader.finish(&mut exact);
    let fault = match exact {
        Exact { built: Some(built), fault: None, .. } => {
            let twice = built.duplicates.iter().map(Duplicate::last_kept);
            told.extend(twice.map(|report| relocated(report, at)));
            return Ok(built.value);
        }
        Exact { fault: Some(fault), .. } => fault,
        Exact { built: None, fault: None, .. } => {
            return Err((rules::LIMIT_EXCEEDED, "the call has more values than `limits.items`".to_owned()));
        }
    };
    let found = json::find(text, &options.limits);
    if let Some(limit) = found.reports.iter().find(|report| report.rule.code == rules::LIMIT_EXCEEDED.code) {
        return Err((rules::LIMIT_EXCEEDED, limit.message.clone()));
    }
    let alone = trim(&text[..found.span.start]).is_empty()
        && text[found.span.end..]
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, '}' | ']' | ')' | ',' | ';'));
    let Some(value) = found.value.filter(|value| alone && (value.is_object() || value.is_array())) else {
        return Err(invalid(&format!("no JSON: {}", fault.message)));
    };
    if found.closed_by_us {
        return Err((rules::CALL_INCOMPLETE, "its JSON is not complete".to_owned()));
    }
    let place = fault.place.within(at);
    let end = place.offset + fault.end.saturating_sub(fault.place.offset);
    let report =
        Report::new(rules::CALL_NOT_STRICT, place, end, format!("no strict JSON: {}", fault.message));
    told.push(report.repaired("JSON repaired"));
    told.extend(found.reports.into_iter().map(|report| relocated(report, at)));
    Ok(value)
}

/// A report on a text that stands at `at`.
fn relocated(mut report: Report, at: Place) -> Report {
    let len = report.end.saturating_sub(report.place.offset);
    report.place = report.place.within(at);
    report.end = report.place.offset + len;
    report
}

/// The value of a text that is JSON as it is; otherwise the first fault.
struct Exact {
    builder: Builder,
    built: Option<Built>,
    fault: Option<Report>,
}

impl JsonSink for Exact {
    fn event(&mut self, event: JsonEvent<'_>) {
        if self.fault.is_none()
            && let Some(built) = self.builder.see(&event)
        {
            self.built = Some(built);
        }
    }

    fn report(&mut self, report: Report) {
        self.fault.get_or_insert(report);
    }
}
