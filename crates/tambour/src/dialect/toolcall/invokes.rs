//! Calls written as elements: a sequence of `<invoke name="f"><parameter
//! name="key">value</parameter></invoke>`.

use serde_json::Value;

use super::arguments::{Argument, Arguments};
use super::formats::Invokes;
use super::read::{Typed, Whole, WrittenCall, Wrong, invalid, tell, unclosed};
use super::rules;
use super::typed::Written;
use crate::finding::Report;
use crate::lex::space::trim;
use crate::options::Options;
use crate::span::Place;

impl Whole<'_> {
    /// Reads a sequence of calls written as elements, with their parameters.
    pub(super) fn invokes(
        &self,
        marks: &'static Invokes,
        text: &str,
        at: Place,
        options: &Options,
        told: &mut Vec<Report>,
    ) -> Result<Vec<WrittenCall>, Wrong> {
        let arguments = Arguments::new(text, &marks.values);
        let (mut calls, mut from, mut here) = (Vec::new(), 0, (0, at));
        while let Some((name, start)) = tool(text, from, marks)? {
            let mut call = Typed::new(Some(name), options);
            from = start;
            while let Some(Parameter { key, string, start }) = parameter(text, from, marks)? {
                let Argument { end, next, closed } = arguments.from(start);
                if !closed {
                    here = (from, here.1.after(&text[here.0..from]));
                    tell(unclosed(key, here.1, at.offset + end), options.limits.findings, told);
                }
                let value = &text[start..end];
                let line = value.strip_prefix('\n').filter(|_| !marks.typed).unwrap_or(value);
                let line = line.strip_suffix('\n').filter(|_| !marks.typed).unwrap_or(line);
                match string {
                    Some(true) => call.put(trim(key), Value::from(line))?,
                    Some(false) => call.add(trim(key), line, Written::Json)?,
                    None => call.add(trim(key), line, Written::Bare)?,
                }
                from = next;
            }
            let rest = text[from..].trim_start();
            let (rest, missing) = match rest.strip_prefix(marks.close) {
                Some(rest) => (rest, false),
                None => (rest, true),
            };
            if !rest.trim_start().is_empty() && !rest.trim_start().starts_with(marks.open) {
                return Err(invalid("other text stands between the arguments"));
            }
            if missing {
                here = (from, here.1.after(&text[here.0..from]));
                let message = format!("`{}` is missing", marks.close);
                let report = Report::new(rules::CALL_UNCLOSED, here.1, here.1.offset, message);
                tell(report.repaired("closed where its arguments end"), options.limits.findings, told);
            }
            from = text.len() - rest.len();
            calls.push(call.end("")?);
        }
        if calls.is_empty() || !trim(&text[from..]).is_empty() {
            return Err(invalid("other text stands between the calls"));
        }
        Ok(calls)
    }
}

/// Reads the name of the tool called at `from`, after white space. Returns it with the start of the
/// parameters, or `None` if there is no call.
fn tool<'t>(text: &'t str, from: usize, marks: &Invokes) -> Result<Option<(&'t str, usize)>, Wrong> {
    let rest = text[from..].trim_start();
    let Some(inner) = rest.strip_prefix(marks.open) else { return Ok(None) };
    let end = inner.find(['"', '<', '>']).filter(|end| inner[*end..].starts_with("\">"));
    let end = end.ok_or_else(|| invalid("the name of a tool has no end"))?;
    Ok(Some((&inner[..end], text.len() - inner.len() + end + 2)))
}

/// Opening tag of a parameter written as an element.
struct Parameter<'t> {
    key: &'t str,
    /// Declared type of its value: true for a text. Absent if not declared.
    string: Option<bool>,
    /// Offset of its value.
    start: usize,
}

/// Reads the parameter tag at `from`, after white space. Returns `None` if there is none.
fn parameter<'t>(text: &'t str, from: usize, marks: &Invokes) -> Result<Option<Parameter<'t>>, Wrong> {
    let rest = text[from..].trim_start();
    let Some(inner) = rest.strip_prefix(marks.values.open) else { return Ok(None) };
    let wrong = || invalid("the name of an argument has no end");
    let end = inner.find(['"', '<', '>']).filter(|end| inner[*end..].starts_with('"')).ok_or_else(wrong)?;
    let behind = &inner[end + 1..];
    let close = behind.find(['<', '>']).filter(|end| behind[*end..].starts_with('>')).ok_or_else(wrong)?;
    let string = match trim(&behind[..close]) {
        "" => None,
        "string=\"false\"" => Some(false),
        "string=\"true\"" => Some(true),
        _ => return Err(invalid("an argument has an attribute that is not known")),
    };
    Ok(Some(Parameter { key: &inner[..end], string, start: text.len() - behind.len() + close + 1 }))
}
