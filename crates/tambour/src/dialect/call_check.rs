//! Checks that decide whether a tool call may run: its tool is registered, its arguments satisfy the schema,
//! and none of its values is in doubt.

use serde_json::{Map, Value};

use super::MAX_EXCERPT_CHARS;
use crate::finding::{Doubt, FindingReport, Rule, clip};
use crate::options::Options;
use crate::repair::json::ValueDoubt;
use crate::span::Place;

/// Code of the notice about a call that is not carried out.
pub(super) const REFUSED_CODE: &str = "tool_call_refused";

/// Code of the notice about a truncated call.
pub(super) const TRUNCATED_CODE: &str = "tool_call_cut";

/// Maximum number of schema mismatches that one message lists.
const MAX_MISMATCHES: usize = 8;

/// Reason why a call must not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRefusalReason {
    /// The tool does not exist.
    UnknownTool,
    /// The caller may not use the tool (P-033).
    ForbiddenTool,
    /// The arguments do not satisfy the schema.
    InvalidArguments,
    /// The call has no arguments, and the schema requires some.
    MissingArguments,
    /// A value of the call may differ from the intended one.
    DoubtfulValue(Doubt),
}

/// Rules of a dialect that a refused call breaks, one for each reason.
pub(super) struct CallRules {
    /// Broken by [`CallRefusalReason::UnknownTool`].
    pub(super) unknown: &'static Rule,
    /// Broken by [`CallRefusalReason::ForbiddenTool`].
    pub(super) forbidden: &'static Rule,
    /// Broken by [`CallRefusalReason::InvalidArguments`].
    pub(super) arguments: &'static Rule,
    /// Broken by [`CallRefusalReason::MissingArguments`].
    pub(super) no_arguments: &'static Rule,
    /// Broken by a value that is the guess of a repair.
    pub(super) guessed: &'static Rule,
    /// Broken by a number outside of the range that a double holds exactly.
    pub(super) range: &'static Rule,
    /// Broken by a duplicate key, which makes the call invalid as a whole.
    pub(super) invalid: &'static Rule,
}

impl CallRules {
    /// Returns the report on a call that must not run.
    pub(super) fn report(
        &self,
        reason: CallRefusalReason,
        place: Place,
        end: usize,
        message: String,
    ) -> FindingReport {
        let rule = match reason {
            CallRefusalReason::UnknownTool => self.unknown,
            CallRefusalReason::ForbiddenTool => self.forbidden,
            CallRefusalReason::InvalidArguments => self.arguments,
            CallRefusalReason::MissingArguments => self.no_arguments,
            CallRefusalReason::DoubtfulValue(Doubt::Guess) => self.guessed,
            CallRefusalReason::DoubtfulValue(Doubt::InexactNumber) => self.range,
            // The rule `duplicate_key` reports the key itself, with its place.
            CallRefusalReason::DoubtfulValue(Doubt::DuplicateKey) => self.invalid,
        };
        FindingReport::new(rule, place, end, message)
    }
}

/// Keys of the tool name and of the arguments in a call. OpenAI's `function` object may hold both.
const NAME_KEYS: [&str; 3] = ["name", "tool", "tool_name"];
const ARGUMENT_KEYS: [&str; 3] = ["args", "arguments", "parameters"];

/// Describes how a call contradicts itself: two values for the tool name or for the arguments. The
/// text continues a sentence that begins with the call. `None` if there is no contradiction.
pub(super) fn find_contradiction(call: &Map<String, Value>) -> Option<&'static str> {
    let function = call.get("function").and_then(Value::as_object);
    // The call itself and its `function` object.
    let levels = || std::iter::once(call).chain(function);
    let members_of = |keys: &'static [&str]| {
        levels()
            .flat_map(|fields| fields.iter())
            .filter(move |(key, _)| keys.iter().any(|candidate| candidate.eq_ignore_ascii_case(key)))
    };
    let mut names = members_of(&NAME_KEYS).map(|(_, value)| value).filter(|value| value.is_string());
    let function_name = call.get("function").filter(|value| value.is_string());
    let first_name = names.next();
    if names.chain(function_name).any(|name| first_name.is_some_and(|first_name| first_name != name)) {
        return Some("names two tools");
    }
    let mut args = members_of(&ARGUMENT_KEYS).map(|(_, value)| value);
    let first_args = args.next();
    args.any(|other| Some(other) != first_args).then_some("has its arguments twice")
}

/// Reason why a call must not run, and the message about it.
pub(super) type CallRefusal = (CallRefusalReason, String);

/// Refuses a call if there is a doubt about one of its values.
pub(super) fn check_doubt(name: &str, doubt: Option<&ValueDoubt>) -> Result<(), CallRefusal> {
    let Some(doubt) = doubt else { return Ok(()) };
    let message = format!("`{}` is not called: {}", clip(name, MAX_EXCERPT_CHARS), doubt.message);
    Err((CallRefusalReason::DoubtfulValue(doubt.doubt), message))
}

/// Returns `{}` as the arguments of a call that has none, if the schema of the tool accepts that. The
/// check reduces `steps_left` like [`check_call`].
pub(super) fn default_arguments(
    name: &str,
    options: &Options,
    steps_left: &mut u64,
) -> Result<Value, CallRefusal> {
    let args = Value::Object(Map::new());
    match check_call(name, &args, options, steps_left) {
        Err((CallRefusalReason::InvalidArguments, _)) => Err((
            CallRefusalReason::MissingArguments,
            format!("`{}` needs arguments, but has none", clip(name, MAX_EXCERPT_CHARS)),
        )),
        result => result.map(|()| args),
    }
}

/// Refuses every call if no tools are registered.
pub(super) fn require_tools(name: &str, options: &Options) -> Result<(), CallRefusal> {
    match options.tools {
        Some(_) => Ok(()),
        None => {
            let message =
                format!("there is no tool `{}`, since none is registered", clip(name, MAX_EXCERPT_CHARS));
            Err((CallRefusalReason::UnknownTool, message))
        }
    }
}

/// Checks a call against the registered tools, within `steps_left` steps of schema checks, and reduces that
/// number; all calls of a reply share [`MAX_REPLY_CHECK_STEPS`](crate::tool::MAX_REPLY_CHECK_STEPS). If no
/// tools are registered, every call passes, because nothing runs it; but in a tool loop every call is then
/// refused.
pub(super) fn check_call(
    name: &str,
    args: &Value,
    options: &Options,
    steps_left: &mut u64,
) -> Result<(), CallRefusal> {
    let Some(tools) = &options.tools else {
        return if options.tool_loop { require_tools(name, options) } else { Ok(()) };
    };
    let Some(tool) = tools.get(name) else {
        let similar_names = tools.similar_names(name);
        let hint = if similar_names.is_empty() {
            String::new()
        } else {
            format!("; close names: {}", similar_names.join(", "))
        };
        let message = format!("there is no tool `{}`{hint}", clip(name, MAX_EXCERPT_CHARS));
        return Err((CallRefusalReason::UnknownTool, message));
    };
    if !tool.allows_caller(options.caller.as_deref()) {
        let caller = options.caller.as_deref().unwrap_or("a caller without a name");
        return Err((CallRefusalReason::ForbiddenTool, format!("`{name}` may not be called by {caller}")));
    }
    let mismatches = tool.check_within(args, MAX_MISMATCHES, steps_left);
    if mismatches.is_empty() {
        return Ok(());
    }
    let messages: Vec<String> =
        mismatches.iter().map(|mismatch| format!("`{}`: {}", mismatch.pointer, mismatch.message)).collect();
    Err((CallRefusalReason::InvalidArguments, format!("arguments of `{name}`: {}", messages.join("; "))))
}
