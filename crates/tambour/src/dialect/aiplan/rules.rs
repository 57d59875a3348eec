//! The rules of plans (P-001 to P-037).

use crate::finding::rules;

rules! {
    PLAN_NOT_FENCED = "plan_not_fenced" ["P-001"] Must "A plan stands in a Markdown code fence.",
        broken "{\"thought\":\"A greeting.\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"Hello!\",\"tool_calls\":[]}",
        correct "```json\n{\"thought\":\"A greeting.\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"Hello!\",\"tool_calls\":[]}\n```";
    FENCE_LANGUAGE = "fence_language" ["P-025", "R-32"] Should "The fence around a plan says `json`.",
        broken "```\n{\"thought\":...}\n```", correct "```json\n{\"thought\":...}\n```";
    FENCE_UNCLOSED = "fence_unclosed" ["P-001"] Must "The fence around a plan is closed.",
        broken "```json\n{\"thought\":...}", correct "```json\n{\"thought\":...}\n```";
    TEXT_OUTSIDE = "text_outside_plan" ["P-025"] Should "A reply is the plan and nothing else.",
        broken "Here is my plan:\n```json\n{\"thought\":...}\n```", correct "```json\n{\"thought\":...}\n```";
    MULTIPLE_PLANS = "multiple_plans" ["P-032"] Should "A reply has one plan.",
        broken "two objects, each a plan", correct "one plan";
    PLAN_MISSING = "plan_missing" ["P-017"] Must "A reply has a plan.",
        broken "I will create the document.", correct "```json\n{\"thought\":...}\n```";
    PARSING_ERROR_MARKER = "parsing_error_marker" ["X-009", "R-07"] Must "The model did not declare that it failed.",
        broken "<<ParsingError>>", correct "```json\n{\"thought\":...}\n```";
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken "<think>I will answer with a plan. {\"thought\":...",
        correct "<think>I will answer with a plan.</think>\n```json\n{\"thought\":...}\n```";
    FIELD_MISSING = "field_missing" ["P-002", "R-30"] Must
        "`thought`, `response_mode`, `direct_response` and `tool_calls` are all there.",
        broken "{\"thought\":\"A greeting.\",\"response_mode\":\"GENERAL_CHAT\",\"tool_calls\":[]}",
        correct "{\"thought\":\"A greeting.\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"Hello!\",\"tool_calls\":[]}";
    FIELD_TYPE = "field_type" ["P-003", "P-006", "P-013", "P-014", "R-30"] Must "The fields of a plan have their types.",
        broken "\"thought\": [\"a\"]", correct "\"thought\": \"a\"";
    FIELD_UNKNOWN = "field_unknown" ["P-029", "R-35"] Info "A plan has no other fields.",
        broken "\"confidence\": 0.9", correct "the four fields alone";
    THOUGHT_EMPTY = "thought_empty" ["P-004", "R-09"] Must "`thought` is not blank.",
        broken "\"thought\": \" \"", correct "\"thought\": \"The user greets; this is small talk.\"";
    MODE_INVALID = "mode_invalid" ["P-006", "R-30"] Must "`response_mode` is one of the modes.",
        broken "\"response_mode\": \"DELETE_ALL\"", correct "\"response_mode\": \"GENERAL_CHAT\"";
    DIRECT_NOT_NULL = "direct_response_not_null" ["P-007"] Must "A plan that calls tools has no `direct_response`.",
        broken "\"response_mode\": \"TOOL_EXECUTION\", \"direct_response\": \"done\"",
        correct "\"response_mode\": \"TOOL_EXECUTION\", \"direct_response\": null";
    DIRECT_EMPTY = "direct_response_empty" ["P-009", "P-011", "R-09"] Must "An answer is a text that is not blank.",
        broken "\"response_mode\": \"KNOWLEDGE_QA\", \"direct_response\": null",
        correct "\"response_mode\": \"KNOWLEDGE_QA\", \"direct_response\": \"SMART says ...\"";
    CALLS_EMPTY = "tool_calls_empty" ["P-008"] Must "`TOOL_EXECUTION` calls at least one tool.",
        broken "\"response_mode\": \"TOOL_EXECUTION\", \"tool_calls\": []",
        correct "\"tool_calls\": [{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"check it\"}}]";
    CALLS_UNEXPECTED = "tool_calls_unexpected" ["P-010", "P-012", "R-30"] Must "A plan that answers calls no tools.",
        broken "\"response_mode\": \"GENERAL_CHAT\", \"tool_calls\": [{\"name\":...}]",
        correct "\"response_mode\": \"GENERAL_CHAT\", \"tool_calls\": []";
    CALL_INVALID = "tool_call_invalid" ["P-014", "P-031"] Must "A call is an object with `name` and `args`.",
        broken "[{\"tool\":\"lintSRSDocument\"}]",
        correct "[{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"check it\"}}]";
    TOOL_UNKNOWN = "tool_unknown" ["P-015"] Must "Every tool is registered.",
        broken "\"name\": \"formatDisk\"", correct "\"name\": \"lintSRSDocument\"";
    ARGS_INVALID = "tool_args_invalid" ["P-016", "P-021"] Must "Arguments satisfy the JSON Schema of their tool.",
        broken "\"args\": {\"projectName\":\"Shop\"}", correct "\"args\": {\"userInput\":\"check it\",\"projectName\":\"Shop\"}";
    ARGS_AS_TEXT = "tool_args_text" ["P-031", "R-36"] Must "`args` is an object, not a text with one.",
        broken "\"args\": \"{\\\"userInput\\\":\\\"x\\\"}\"", correct "\"args\": {\"userInput\":\"x\"}";
    ARGS_MISSING = "tool_args_missing" ["P-031", "R-36"] Must "A call has `args`, be they empty.",
        broken "{\"name\":\"now\"}", correct "{\"name\":\"now\",\"args\":{}}";
    TOOL_FORBIDDEN = "tool_forbidden" ["P-033"] Must "A tool is called by those who may.",
        broken "a call of a tool that is limited to other callers", correct "a call of a tool open to this caller";
    CALL_DROPPED = "tool_call_dropped" ["P-028", "R-34"] Must "Every call of a plan is valid.",
        broken "a valid and an invalid call, with `aiplan.drop_invalid_calls`", correct "valid calls";
    REPAIR_UNSAFE = "repair_unsafe" ["P-027", "R-33"] Must "What acts was not guessed.",
        broken "a call whose text had to be mended by a guess", correct "a call in valid JSON";
    TRUNCATED = "truncated" ["P-027", "R-33"] Must "A plan is complete.",
        broken "{\"thought\":...,\"args\":{\"userInput\":\"dele", correct "the whole plan";
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        broken "the example of the instructions, word for word", correct "an answer to the request";
}
