//! Table of the rules of calls that are written as text (R-68, R-69, F-235).

use crate::dialect::call_check;
use crate::dialect::plain::rules as plain;
use crate::finding::{Rule, rules};

// Settings and replies of the examples.
const TOOLS: &str = concat!(
    "tools={\"add\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},",
    "\"say\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}},",
    "\"hide\":{\"type\":\"object\",\"x-callers\":[\"keeper\"]}}"
);

const GOOD: &str = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>";

rules! {
    CALL_STRAY = "call_mark_stray" ["R-68"] Should "A call mark begins a call.",
        with [TOOLS],
        broken "The mark <tool_call> begins one.", correct GOOD;
    CALL_INVALID = "tool_call_invalid" ["R-68"] Must "A call has a name and arguments.",
        with [TOOLS],
        broken "<tool_call>\n{\"tool\": 1}\n</tool_call>", correct GOOD;
    CALL_INCOMPLETE = "tool_call_incomplete" ["R-68"] Must "A call is complete where it ends.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}\n</tool_call>", correct GOOD;
    CALL_UNCLOSED = "tool_call_unclosed" ["R-68"] Must "A call is closed.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}", correct GOOD;
    CALL_NOT_STRICT = "tool_call_not_strict" ["R-68"] Must "The JSON of a call is strict JSON.",
        with [TOOLS],
        broken "<tool_call>\n{'name': 'add', 'arguments': {'a': 1}}\n</tool_call>", correct GOOD;
    CALL_FIELDS = "tool_call_fields" ["R-68"] Should "A call has a name and arguments, and no other fields.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}, \"why\": \"a sum\"}\n</tool_call>", correct GOOD;
    CALL_ASIDE = "tool_call_aside" ["R-93"] Must
        "A call is not in reasoning, in code, in a sentence or in Harmony's final channel, and has the format of the first call.",
        with [TOOLS],
        broken concat!("First this is tried.\n", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>\n</think>\nIt is 4."),
        correct GOOD;
    ARGUMENT_UNCLOSED = "argument_unclosed" ["R-94"] Must "An argument is closed.",
        with [TOOLS],
        broken "<tool_call>\n<function=add>\n<parameter=a>\n1\n</function>\n</tool_call>", correct GOOD;
    CALL_CUT = "tool_call_cut" ["R-68"] Must "A reply that calls a tool is not cut.",
        with [TOOLS, "finish=length"],
        broken GOOD, correct "It is 4.";
    TOOL_UNKNOWN = "tool_unknown" ["F-235"] Must "A call names a registered tool.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"sub\", \"arguments\": {\"a\": 1}}\n</tool_call>", correct GOOD;
    ARGS_INVALID = "tool_args_invalid" ["F-235"] Must "Arguments satisfy the schema of their tool.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"one\"}}\n</tool_call>", correct GOOD;
    ARGS_MISSING = "args_missing" ["R-83"] Must "A call has arguments, unless its tool needs none.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"add\"}\n</tool_call>", correct GOOD;
    TOOL_FORBIDDEN = "tool_forbidden" ["F-120"] Must "A tool is called only by callers that it allows.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"hide\", \"arguments\": {}}\n</tool_call>", correct GOOD;
    VALUE_GUESSED = "value_guessed" ["R-81"] Must "No value of a call had to be guessed.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"say\", \"arguments\": {\"text\": go on}}\n</tool_call>", correct GOOD;
    NUMBER_OUT_OF_RANGE = "number_out_of_range" ["R-81"] Must "A number in a call is kept with all its digits.",
        with [TOOLS],
        broken "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 12345678901234567890123}}\n</tool_call>",
        correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "Sizes stay within the limits.",
        with [TOOLS, "limits.value=64"],
        broken concat!(
            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"more than the sixty-four bytes that a call may be long\"}}",
            "\n</tool_call>"
        ),
        correct "<tool_call>\n{\"name\": \"say\"}\n</tool_call>";
}

/// Rules for calls.
pub(super) const CALLS: call_check::CallRules = call_check::CallRules {
    unknown: TOOL_UNKNOWN,
    forbidden: TOOL_FORBIDDEN,
    arguments: ARGS_INVALID,
    no_arguments: ARGS_MISSING,
    guessed: VALUE_GUESSED,
    range: NUMBER_OUT_OF_RANGE,
    invalid: CALL_INVALID,
};

/// Rules for the text around calls, which is read as plain text.
const TEXT: [&Rule; 12] = [
    plain::PARSING_ERROR_MARKER,
    plain::PARSING_ERROR_FORM,
    plain::ANSWER_MISSING,
    plain::THINK_MISMATCHED,
    plain::THINK_SELF_CLOSING,
    plain::THINK_ATTRIBUTES,
    plain::THINK_UNOPENED,
    plain::THINK_UNCLOSED,
    plain::THINK_IN_ANSWER,
    plain::THINK_IN_MARKUP,
    plain::CONTROL_MARK,
    plain::ROLE_WORD,
];

/// All rules of the dialect: those of calls, then those of text. The array begins as copies of the first
/// rule, which a loop overwrites, because a constant expression can join lists in no other way.
pub(super) static ALL: &[&Rule] = &{
    let mut all = [CALL_STRAY; RULES.len() + TEXT.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < RULES.len() { RULES[at] } else { TEXT[at - RULES.len()] };
        at += 1;
    }
    all
};
