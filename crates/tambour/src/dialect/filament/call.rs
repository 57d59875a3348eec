//! `tool_call`: a name and arguments, held against the registered tool (F-120).

use serde_json::{Map, Value};

use super::block::{Block, Came, Context, notice};
use super::body::json;
use super::rules;
use crate::dialect::called::{self, Fault};
use crate::dialect::{Call, Output};
use crate::finding::{Report, Rule, clip};
use crate::lex::space::trim;
use crate::span::Place;

/// A call that may run when the reply has ended by itself (R-68), and where it stands.
pub(super) struct Waiting {
    pub(super) call: Call,
    pub(super) place: Place,
    pub(super) end: usize,
}

/// Reads a block that closed.
pub(super) fn read(block: &Block, cx: &Context, calls: &mut Vec<Waiting>, out: &mut dyn Output) -> Came {
    let named = block.attribute("name").map(trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let body = match trim(&block.body).is_empty() {
        // A tool that takes nothing. Without a closing tag nobody knows what was to come.
        true => Some((Value::Object(Map::new()), !block.unclosed)),
        false => {
            let found = json(&block.body, block.at, &cx.options.limits, out);
            if found.as_ref().is_some_and(|json| !is_alone(&block.body, &json.span)) {
                let message = "other text stands around the arguments".to_owned();
                return refuse(block, rules::CALL_INVALID, message, named, out);
            }
            found.map(|json| (json.value, json.complete))
        }
    };
    let Some((Value::Object(mut args), complete)) = body else {
        return refuse(block, rules::CALL_INVALID, "the arguments are no JSON object".to_owned(), named, out);
    };
    if !complete {
        let message = "the arguments are not complete".to_owned();
        return refuse(block, rules::JSON_INCOMPLETE, message, named, out);
    }
    let name = match named {
        Some(name) => name,
        None => match taken_apart(&mut args) {
            Some(name) => {
                let message = "the name of the tool stands in the body";
                let report = Report::new(rules::CALL_FORM, block.tag, block.end(), message);
                out.report(report.repaired("read as name and arguments, other fields not used"));
                name
            }
            None => {
                let message = "the call names no tool".to_owned();
                return refuse(block, rules::CALL_INVALID, message, None, out);
            }
        },
    };
    let args = Value::Object(args);
    match called::check(&name, &args, &cx.options) {
        Err((fault, message)) => {
            let rule = match fault {
                Fault::Unknown => rules::TOOL_UNKNOWN,
                Fault::Forbidden => rules::TOOL_FORBIDDEN,
                Fault::Arguments => rules::ARGS_INVALID,
            };
            refuse(block, rule, message, Some(name), out)
        }
        Ok(()) => {
            calls.push(Waiting { call: Call { name, args }, place: block.tag, end: block.end() });
            Came::Done
        }
    }
}

/// Whether nothing but a fence, and brackets and commas that are too many, stands around the JSON of a body: the rest may be the
/// better part of it.
fn is_alone(body: &str, span: &std::ops::Range<usize>) -> bool {
    let (before, behind) = (trim(&body[..span.start]), trim(&body[span.end..]));
    (before.is_empty() || before.starts_with("```") && !before.contains(['"', '{']))
        && behind.chars().all(|c| c.is_whitespace() || matches!(c, '`' | '}' | ']' | ')' | ',' | ';'))
}

/// A call that cannot run: its body is text of the content (F-210).
fn refuse(
    block: &Block,
    rule: &'static Rule,
    message: String,
    name: Option<String>,
    out: &mut dyn Output,
) -> Came {
    out.report(block.report(rule, message));
    notice(called::REFUSED, name.map(|name| clip(&name, 60).into_owned()), out);
    block.raw(out)
}

/// Name and arguments of a body such as `{"name": "...", "arguments": {...}}`; it becomes the arguments.
fn taken_apart(body: &mut Map<String, Value>) -> Option<String> {
    let name = body.get("name")?.as_str().map(trim).filter(|name| !name.is_empty())?.to_owned();
    let key = ["arguments", "args", "parameters"].into_iter().find(|key| body.contains_key(*key));
    let args = match key {
        None if body.len() == 1 => Map::new(),
        None => return None,
        Some(key) => match &body[key] {
            Value::Object(args) => args.clone(),
            Value::String(text) => serde_json::from_str(text).ok()?,
            _ => return None,
        },
    };
    *body = args;
    Some(name)
}
