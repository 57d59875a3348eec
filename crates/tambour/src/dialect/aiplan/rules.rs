//! Rules of plans (P-001 to P-037).

use crate::dialect::{draft, marker};
use crate::finding::rules;

/// Puts a plan in its fence.
macro_rules! fenced {
    ($($part:expr),+) => {
        concat!("```json\n", $($part,)+ "\n```\n")
    };
}

/// Builds the object of a plan; each field is given as JSON text.
macro_rules! plan {
    ($thought:literal, $mode:literal, $direct:literal, $calls:expr) => {
        plan!($thought, $mode, $direct, $calls, "")
    };
    ($thought:literal, $mode:literal, $direct:literal, $calls:expr, $more:literal) => {
        concat!(
            "{\"thought\":",
            $thought,
            ",\"response_mode\":",
            $mode,
            ",\"direct_response\":",
            $direct,
            ",\"tool_calls\":",
            $calls,
            $more,
            "}"
        )
    };
}

/// Builds the object of a plan that greets, without a fence.
macro_rules! chat {
    () => {
        plan!("\"A greeting.\"", "\"GENERAL_CHAT\"", "\"Hello!\"", "[]")
    };
    ($more:literal) => {
        plan!("\"A greeting.\"", "\"GENERAL_CHAT\"", "\"Hello!\"", "[]", $more)
    };
}

/// Builds a list with one valid call.
macro_rules! check {
    () => {
        "[{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"check it\"}}]"
    };
}

/// Builds a plan with these calls, in its fence.
macro_rules! calls {
    ($calls:expr) => {
        fenced!(plan!("\"The document is checked.\"", "\"TOOL_EXECUTION\"", "null", $calls))
    };
}

const CHAT_REPLY: &str = fenced!(chat!());
const CALL_REPLY: &str = calls!(check!());

/// A tool without arguments, and one that only the planner may call.
const TOOLS: &str = "tools={\"now\":{\"type\":\"object\"},\
    \"wipe\":{\"type\":\"object\",\"x-callers\":[\"planner\"]}}";

rules! {
    PLAN_NOT_FENCED = "plan_not_fenced" ["P-001"] Must "A plan is in a Markdown code fence.",
        broken chat!(), correct CHAT_REPLY;
    FENCE_LANGUAGE = "fence_language" ["P-025", "R-32"] Should "The fence around a plan says `json`.",
        broken concat!("```\n", chat!(), "\n```\n"), correct CHAT_REPLY;
    FENCE_UNCLOSED = "fence_unclosed" ["P-001"] Must "The fence around a plan is closed.",
        broken concat!("```json\n", chat!(), "\n"), correct CHAT_REPLY;
    TEXT_OUTSIDE = "text_outside_plan" ["P-025"] Should "A reply is the plan and nothing else.",
        broken concat!("Here is my plan:\n", fenced!(chat!())), correct CHAT_REPLY;
    MULTIPLE_PLANS = "multiple_plans" ["P-032"] Should "A reply has one plan.",
        broken concat!(fenced!(chat!()), fenced!(chat!())), correct CHAT_REPLY;
    PLAN_MISSING = "plan_missing" ["P-017", "R-70"] Must "A reply has a plan.",
        broken "[1, 2]", correct CHAT_REPLY;
    PARSING_ERROR_MARKER = marker::DECLARATION ["X-009", "R-07"], correct CHAT_REPLY;
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken concat!("<think>I will answer with a plan.\n", fenced!(chat!())),
        correct CHAT_REPLY;
    PARSING_ERROR_FORM = marker::FORM ["R-72"], correct CHAT_REPLY;
    THINK_MISMATCHED = "think_mismatched" ["R-69"] Must "Reasoning is closed by the mark that opened it.",
        broken concat!("<think>Which one?</thinking>\n", fenced!(chat!())),
        correct CHAT_REPLY;
    THINK_UNOPENED = "think_unopened" ["X-012"] Must "`</think>` closes a `<think>`.",
        broken concat!("Which one?</think>\n", fenced!(chat!())),
        correct CHAT_REPLY;
    THINK_ATTRIBUTES = "think_attributes" ["R-69"] Info "Marks of reasoning have no attributes.",
        broken concat!("<think about=\"it\">Which one?</think>\n", fenced!(chat!())),
        correct CHAT_REPLY;
    THINK_LATE = "think_late" ["X-012"] Should "Reasoning comes before the reply.",
        broken concat!(fenced!(chat!()), "\n<think>Was it that?</think>\n"), correct CHAT_REPLY;
    FIELD_MISSING = "field_missing" ["P-002", "R-30"] Must
        "`thought`, `response_mode`, `direct_response` and `tool_calls` are all there.",
        broken fenced!("{\"thought\":\"A greeting.\",\"response_mode\":\"GENERAL_CHAT\",\"tool_calls\":[]}"),
        correct CHAT_REPLY;
    FIELD_TYPE = "field_type" ["P-003", "P-006", "P-013", "P-014", "R-30", "R-87"] Must "The fields of a plan have their types.",
        broken fenced!(plan!("[\"A greeting.\"]", "\"GENERAL_CHAT\"", "\"Hello!\"", "[]")), correct CHAT_REPLY;
    FIELD_RENAMED = "field_renamed" ["R-76"] Must "Fields of calls have the names `name` and `args`.",
        broken calls!("[{\"name\":\"lintSRSDocument\",\"arguments\":{\"userInput\":\"check it\"}}]"),
        correct CALL_REPLY;
    PLAN_WRAPPED = "plan_wrapped" ["R-76"] Must
        "A plan is at the top level, not in a list or under a key. It is still read as the only item of a list, or under the only key of an object if that is `aiplan`, `ai_plan`, `answer`, `data`, `json`, `output`, `plan`, `reply`, `response` or `result`.",
        broken fenced!("{\"plan\":", chat!(), "}"), correct CHAT_REPLY;
    PLAN_UNUSED = "plan_unused" ["P-017"] Info "A plan can be used.",
        broken fenced!(plan!("\"A greeting.\"", "\"WAVE\"", "\"Hello!\"", check!())), correct CHAT_REPLY;
    FIELD_UNKNOWN = "field_unknown" ["P-029", "R-35"] Info "A plan has no other fields.",
        broken fenced!(chat!(",\"confidence\":0.9")), correct CHAT_REPLY;
    THOUGHT_EMPTY = "thought_empty" ["P-004", "R-09"] Must "`thought` is not blank.",
        broken fenced!(plan!("\" \"", "\"GENERAL_CHAT\"", "\"Hello!\"", "[]")), correct CHAT_REPLY;
    MODE_INVALID = "mode_invalid" ["P-006", "R-30", "R-95"] Must "`response_mode` is one of the modes.",
        broken fenced!(plan!("\"A greeting.\"", "\"DELETE_ALL\"", "\"Hello!\"", "[]")), correct CHAT_REPLY;
    DIRECT_NOT_NULL = "direct_response_not_null" ["P-007"] Must "A plan that calls tools has no `direct_response`.",
        broken fenced!(plan!("\"The document is checked.\"", "\"TOOL_EXECUTION\"", "\"done\"", check!())),
        correct CALL_REPLY;
    DIRECT_EMPTY = "direct_response_empty" ["P-009", "P-011", "R-09"] Must "An answer is a string that is not blank.",
        broken fenced!(plan!("\"A question.\"", "\"KNOWLEDGE_QA\"", "null", "[]")),
        correct fenced!(plan!("\"A question.\"", "\"KNOWLEDGE_QA\"", "\"SMART: specific, measurable, attainable, relevant, timed.\"", "[]"));
    CALLS_EMPTY = "tool_calls_empty" ["P-008"] Must "`TOOL_EXECUTION` calls at least one tool.",
        broken calls!("[]"), correct CALL_REPLY;
    CALLS_UNEXPECTED = "tool_calls_unexpected" ["P-010", "P-012", "R-30"] Must "A plan that answers calls no tools.",
        broken fenced!(plan!("\"A question.\"", "\"KNOWLEDGE_QA\"", "\"It is checked.\"", check!())),
        correct fenced!(plan!("\"A question.\"", "\"KNOWLEDGE_QA\"", "\"It is checked.\"", "[]"));
    CALL_INVALID = "tool_call_invalid" ["P-014", "P-031", "R-95"] Must "A call is an object with `name` and `args`.",
        broken calls!("[{\"tool\":\"lintSRSDocument\"}]"), correct CALL_REPLY;
    TOOL_UNKNOWN = "tool_unknown" ["P-015"] Must "Every tool is registered.",
        broken calls!("[{\"name\":\"formatDisk\",\"args\":{}}]"), correct CALL_REPLY;
    ARGS_INVALID = "tool_args_invalid" ["P-016", "P-021"] Must "Arguments satisfy the JSON Schema of their tool.",
        broken calls!("[{\"name\":\"lintSRSDocument\",\"args\":{\"projectName\":\"Shop\"}}]"), correct CALL_REPLY;
    ARGS_AS_TEXT = "tool_args_text" ["P-031", "R-36"] Must "`args` is an object, not a string that contains one.",
        broken calls!("[{\"name\":\"lintSRSDocument\",\"args\":\"{\\\"userInput\\\":\\\"check it\\\"}\"}]"),
        correct CALL_REPLY;
    ARGS_MISSING = "tool_args_missing" ["P-031", "R-36"] Must "A call has `args`, even if they are empty.",
        with [TOOLS],
        broken calls!("[{\"name\":\"now\"}]"), correct calls!("[{\"name\":\"now\",\"args\":{}}]");
    TOOL_FORBIDDEN = "tool_forbidden" ["P-033"] Must "A tool is called only by callers that it allows.",
        with [TOOLS, "caller=writer"],
        broken calls!("[{\"name\":\"wipe\",\"args\":{}}]"),
        correct calls!("[{\"name\":\"now\",\"args\":{}}]");
    CALL_DROPPED = "tool_call_dropped" ["P-028", "R-34"] Must "Every call of a plan is valid.",
        with ["aiplan.drop_invalid_calls=true"],
        broken calls!(
            "[{\"name\":\"formatDisk\",\"args\":{}},{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"check it\"}}]"
        ),
        correct CALL_REPLY;
    REPAIR_UNSAFE = "repair_unsafe" ["P-027", "R-33"] Must "Nothing in a plan that calls tools had to be guessed.",
        broken fenced!(plan!("check it now", "\"TOOL_EXECUTION\"", "null", check!())),
        correct CALL_REPLY;
    VALUE_GUESSED = "value_guessed" ["R-81"] Must "No value of a call had to be guessed.",
        broken calls!("[{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"say \"yes\" to it\"}}]"),
        correct CALL_REPLY;
    NUMBER_OUT_OF_RANGE = "number_out_of_range" ["R-81"] Must "A number in a call is kept with all its digits.",
        broken calls!("[{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"check it\",\"line\":12345678901234567890123}}]"),
        correct CALL_REPLY;
    PLAN_ASIDE = "plan_aside" ["R-93"] Must "A plan that calls tools is not in code, in a quotation or in a sentence.",
        broken concat!("Write `", plan!("\"The document is checked.\"", "\"TOOL_EXECUTION\"", "null", check!()), "` then."),
        correct CALL_REPLY;
    TRUNCATED = "truncated" ["P-027", "R-33"] Must "A plan is complete.",
        with ["finish=length"],
        broken concat!(
            "```json\n{\"thought\":\"The document is checked.\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,",
            "\"tool_calls\":[{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"dele"
        ),
        correct CHAT_REPLY;
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        with [concat!("examples=", fenced!(chat!()))],
        broken CHAT_REPLY, correct fenced!(plan!("\"A greeting.\"", "\"GENERAL_CHAT\"", "\"Good morning!\"", "[]"));
}

/// Rules for reasoning.
pub(super) const REASONING_RULES: draft::ReasoningRules = draft::ReasoningRules {
    unclosed: DRAFT_UNCLOSED,
    mismatched: THINK_MISMATCHED,
    unopened: THINK_UNOPENED,
    attributes: THINK_ATTRIBUTES,
    structure_fields: &["response_mode", "direct_response", "tool_calls"],
};

/// Rules for `<<ParsingError>>`, with which a model declares that it cannot answer in this form.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };
