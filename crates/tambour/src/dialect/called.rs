//! A call that a reply wrote, held against the registered tools, and against what was mended in it.

use serde_json::{Map, Value};

use crate::finding::{Doubt, Report, Rule, clip};
use crate::options::Options;
use crate::repair::json::ValueDoubt;
use crate::span::Place;

/// The notice of a call that is not carried out.
pub(super) const REFUSED: &str = "tool_call_refused";

/// The notice of a call that the end of the reply cut.
pub(super) const CUT: &str = "tool_call_cut";

/// Wrong places of arguments that are told.
const MISMATCHES: usize = 8;

/// Why a call may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no such tool.
    Unknown,
    /// It is not open to this caller (P-033).
    Forbidden,
    /// The arguments do not satisfy its schema.
    Arguments,
    /// There are no arguments, and its schema wants some.
    NoArguments,
    /// A value of the call may not be the one that was meant.
    Doubtful(Doubt),
}

/// What a call may break, in the table of its dialect.
pub(super) struct Rules {
    pub(super) unknown: &'static Rule,
    pub(super) forbidden: &'static Rule,
    pub(super) arguments: &'static Rule,
    pub(super) no_arguments: &'static Rule,
    pub(super) guessed: &'static Rule,
    pub(super) range: &'static Rule,
    pub(super) invalid: &'static Rule,
}

impl Rules {
    /// The report on a call that may not run.
    pub(super) fn report(&self, fault: Fault, place: Place, end: usize, message: String) -> Report {
        let rule = match fault {
            Fault::Unknown => self.unknown,
            Fault::Forbidden => self.forbidden,
            Fault::Arguments => self.arguments,
            Fault::NoArguments => self.no_arguments,
            Fault::Doubtful(Doubt::Guess) => self.guessed,
            Fault::Doubtful(Doubt::Range) => self.range,
            // The key itself is told by `duplicate_key`, with its place.
            Fault::Doubtful(Doubt::DuplicateKey) => self.invalid,
        };
        Report::new(rule, place, end, message)
    }
}

/// Names of the tool in a call, and of its arguments. OpenAI's `function` holds both.
const NAMES: [&str; 3] = ["name", "tool", "tool_name"];
const ARGUMENTS: [&str; 3] = ["args", "arguments", "parameters"];

/// What a call says twice, with different values, in words.
pub(super) fn contradiction(call: &Map<String, Value>) -> Option<&'static str> {
    let function = call.get("function").and_then(Value::as_object);
    let levels = || std::iter::once(call).chain(function);
    let under = |keys: &'static [&str]| {
        levels()
            .flat_map(|fields| fields.iter())
            .filter(move |(key, _)| keys.iter().any(|known| known.eq_ignore_ascii_case(key)))
    };
    let mut names = under(&NAMES).map(|(_, value)| value).filter(|value| value.is_string());
    let named = call.get("function").filter(|value| value.is_string());
    let first = names.next();
    if names.chain(named).any(|name| first.is_some_and(|first| first != name)) {
        return Some("names two tools");
    }
    let mut args = under(&ARGUMENTS).map(|(_, value)| value);
    let first = args.next();
    args.any(|other| Some(other) != first).then_some("has its arguments twice")
}

/// Why a call runs not, and in words.
pub(super) type Refusal = (Fault, String);

/// Refuses a call with such a doubt about one of its values.
pub(super) fn certain(name: &str, doubt: Option<&ValueDoubt>) -> Result<(), Refusal> {
    let Some(doubt) = doubt else { return Ok(()) };
    let message = format!("`{}` is not called: {}", clip(name, 60), doubt.message);
    Err((Fault::Doubtful(doubt.doubt), message))
}

/// The arguments of a call that has none: `{}` for a tool whose schema allows that.
pub(super) fn no_arguments(name: &str, options: &Options, left: &mut u64) -> Result<Value, Refusal> {
    let args = Value::Object(Map::new());
    match check(name, &args, options, left) {
        Err((Fault::Arguments, _)) => {
            Err((Fault::NoArguments, format!("`{}` has no arguments, and needs some", clip(name, 60))))
        }
        checked => checked.map(|()| args),
    }
}

/// Refuses every call where no tools are registered.
pub(super) fn registered(name: &str, options: &Options) -> Result<(), Refusal> {
    match options.tools {
        Some(_) => Ok(()),
        None => {
            let message = format!("there is no tool `{}`, since none is registered", clip(name, 60));
            Err((Fault::Unknown, message))
        }
    }
}

/// Holds a call against the registered tools, with the steps that are left of [`CHECKS`](crate::tool::CHECKS). Without tools
/// nobody can say whether it is right, and nobody runs it.
pub(super) fn check(name: &str, args: &Value, options: &Options, left: &mut u64) -> Result<(), Refusal> {
    let Some(tools) = &options.tools else {
        return if options.tool_loop { registered(name, options) } else { Ok(()) };
    };
    let Some(tool) = tools.get(name) else {
        let close = tools.close(name);
        let hint =
            if close.is_empty() { String::new() } else { format!("; close names: {}", close.join(", ")) };
        return Err((Fault::Unknown, format!("there is no tool `{}`{hint}", clip(name, 60))));
    };
    if !tool.allows(options.caller.as_deref()) {
        let caller = options.caller.as_deref().unwrap_or("a caller without a name");
        return Err((Fault::Forbidden, format!("`{name}` is not open to {caller}")));
    }
    let mismatches = tool.check_within(args, MISMATCHES, left);
    if mismatches.is_empty() {
        return Ok(());
    }
    let told: Vec<String> =
        mismatches.iter().map(|mismatch| format!("`{}`: {}", mismatch.pointer, mismatch.message)).collect();
    Err((Fault::Arguments, format!("arguments of `{name}`: {}", told.join("; "))))
}
