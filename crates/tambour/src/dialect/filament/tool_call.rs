//! Reader of `tool_call`: a name and arguments, checked against the registered tool (F-120).

use serde_json::{Map, Value};

use super::block::{BlockContext, BlockOutcome, FilamentBlock, emit_notice};
use super::body::read_json;
use super::rules;
use super::update;
use crate::dialect::call_check::{self, CallRefusalReason};
use crate::dialect::{CallIntent, IntentSink, MAX_EXCERPT_CHARS, NullSink};
use crate::finding::{FindingReport, clip};
use crate::lex::space::trim;
use crate::repair::json::ValueDoubt;
use crate::span::Place;

/// A call, held until the reply has ended without being truncated (R-68).
pub(super) struct HeldToolCall {
    pub(super) call: CallIntent,
    /// Place of the tag.
    pub(super) start: Place,
    /// Offset after the body.
    pub(super) end: usize,
}

/// Rules that a call may break.
const CALL_RULES: call_check::CallRules = call_check::CallRules {
    unknown: rules::TOOL_UNKNOWN,
    forbidden: rules::TOOL_FORBIDDEN,
    arguments: rules::ARGS_INVALID,
    no_arguments: rules::ARGS_MISSING,
    guessed: rules::VALUE_GUESSED,
    range: rules::NUMBER_OUT_OF_RANGE,
    invalid: rules::CALL_INVALID,
};

/// Attributes of a call that are neither its name nor arguments.
const NON_ARGUMENT_ATTRIBUTES: [&str; 4] = ["id", "call_id", "type", "index"];

/// Reads a block and appends its call to `calls` if it is valid; `steps_left` are the steps left for argument
/// checks.
pub(super) fn read_call(
    block: &FilamentBlock,
    cx: &BlockContext,
    calls: &mut Vec<HeldToolCall>,
    steps_left: &mut u64,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    let tool_name = block.attribute("name").map(trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let invalid_report = |message: &str| block.report(rules::CALL_INVALID, message);
    if block.has_two_names {
        let report = invalid_report("the call names two tools").with_row("R-95");
        return refuse_call(block, report, tool_name, out);
    }
    let is_empty = trim(&block.body).is_empty();
    if is_empty
        && block
            .attributes
            .iter()
            .any(|(name, _)| name != "name" && !NON_ARGUMENT_ATTRIBUTES.contains(&&**name))
    {
        return refuse_call(
            block,
            block.report(
                rules::ARGS_MISSING,
                "the arguments are in the tag: expected a JSON object in the body",
            ),
            tool_name,
            out,
        );
    }
    let json = match is_empty {
        true => None,
        false => read_json(&block.body, block.body_start, &cx.options.limits, out),
    };
    if json.as_ref().is_some_and(|json| !is_json_alone(&block.body, &json.span)) {
        return refuse_call(
            block,
            invalid_report("there is other text around the arguments"),
            tool_name,
            out,
        );
    }
    // Without a closing tag an empty body may have been truncated before the arguments.
    if json.as_ref().is_some_and(|json| !json.is_complete) || is_empty && block.is_unclosed {
        let report = block.report(rules::JSON_INCOMPLETE, "the arguments are not complete");
        return refuse_call(block, report, tool_name, out);
    }
    let mut args = match json.as_ref().map(|json| json.value.clone()) {
        None if is_empty => Map::new(),
        Some(Value::Object(args)) => args,
        _ => {
            return refuse_call(block, invalid_report("the arguments are not a JSON object"), tool_name, out);
        }
    };
    let name = match tool_name {
        Some(name) => name,
        None => match split_call_body(&mut args) {
            Some(name) => {
                let message = "the name of the tool is in the body";
                let report = FindingReport::new(rules::CALL_FORM, block.tag_start, block.end(), message);
                out.report(report.with_repair("read as name and arguments, other fields not used"));
                name
            }
            None => return refuse_call(block, invalid_report("the call does not name a tool"), None, out),
        },
    };
    // Tags in the body were replaced by white space. The body is read again with letters there instead: if that
    // changes the arguments, a tag was part of a string.
    let json_with_letters = block
        .with_gap_text()
        .map(|block| read_json(&block.body, block.body_start, &cx.options.limits, &mut NullSink));
    let tag_doubt = json
        .as_ref()
        .zip(json_with_letters)
        .filter(|(json, other)| other.as_ref().is_none_or(|other| other.value != json.value));
    let tag_doubt =
        tag_doubt.map(|_| ValueDoubt::guess(block.body_start, block.end(), update::TAG_IN_VALUE_DOUBT));
    // The empty path stands for the whole JSON.
    let doubt = json.as_ref().and_then(|json| json.doubts.find_within(&[])).or(tag_doubt.as_ref());
    let result = match &cx.options.tools {
        None => {
            let message =
                format!("there is no tool `{}`, since none is registered", clip(&name, MAX_EXCERPT_CHARS));
            Err((CallRefusalReason::UnknownTool, message))
        }
        Some(_) if is_empty => call_check::default_arguments(&name, &cx.options, steps_left),
        Some(_) => {
            let args = Value::Object(args);
            let doubt_check = call_check::check_doubt(&name, doubt);
            doubt_check
                .and_then(|()| call_check::check_call(&name, &args, &cx.options, steps_left))
                .map(|()| args)
        }
    };
    match result {
        Err((reason, message)) => {
            let report = CALL_RULES.report(reason, block.tag_start, block.end(), message);
            let has_no_tools = cx.options.tools.is_none();
            refuse_call(block, if has_no_tools { report.with_row("R-96") } else { report }, Some(name), out)
        }
        Ok(args) => {
            calls.push(HeldToolCall {
                call: CallIntent { name, args },
                start: block.tag_start,
                end: block.end(),
            });
            BlockOutcome::Read
        }
    }
}

/// Returns whether the JSON of a body is alone, except for a fence, surplus brackets and commas around it.
/// Other text may matter more than the JSON.
fn is_json_alone(body: &str, span: &std::ops::Range<usize>) -> bool {
    let (text_before, text_after) = (trim(&body[..span.start]), trim(&body[span.end..]));
    (text_before.is_empty() || text_before.starts_with("```") && !text_before.contains(['"', '{']))
        && text_after.chars().all(|c| c.is_whitespace() || matches!(c, '`' | '}' | ']' | ')' | ',' | ';'))
}

/// Refuses a call: its body becomes text of the content (F-210).
fn refuse_call(
    block: &FilamentBlock,
    report: FindingReport,
    name: Option<String>,
    out: &mut dyn IntentSink,
) -> BlockOutcome {
    out.report(report);
    emit_notice(call_check::REFUSED_CODE, name.map(|name| clip(&name, MAX_EXCERPT_CHARS).into_owned()), out);
    block.raw_outcome(out)
}

/// Returns the tool name of a body such as `{"name": "...", "arguments": {...}}`, and reduces `body` to the
/// arguments. `None`, with `body` unchanged, for a body of another form.
fn split_call_body(body: &mut Map<String, Value>) -> Option<String> {
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
