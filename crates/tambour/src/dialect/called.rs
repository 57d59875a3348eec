//! A call that a reply wrote, held against the registered tools.

use serde_json::Value;

use crate::finding::clip;
use crate::options::Options;

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
}

/// Whether the call may run; why not, in words. Without registered tools nobody can say, and nobody runs it.
pub(super) fn check(name: &str, args: &Value, options: &Options) -> Result<(), (Fault, String)> {
    let Some(tools) = &options.tools else {
        let message = || format!("there is no tool `{}`, since none is registered", clip(name, 60));
        return if options.tool_loop { Err((Fault::Unknown, message())) } else { Ok(()) };
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
    let mismatches = tool.check(args, MISMATCHES);
    if mismatches.is_empty() {
        return Ok(());
    }
    let told: Vec<String> =
        mismatches.iter().map(|mismatch| format!("`{}`: {}", mismatch.pointer, mismatch.message)).collect();
    Err((Fault::Arguments, format!("arguments of `{name}`: {}", told.join("; "))))
}
