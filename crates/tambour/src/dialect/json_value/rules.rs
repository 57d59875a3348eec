//! Rules of JSON replies.

use crate::dialect::{draft, marker};
use crate::finding::rules;

const GOOD: &str = "{\"city\": \"Bergen\", \"days\": 3}";
const SCHEMA: &str = r#"json_value.schema={"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}"#;

/// Schema that doubles the work for each nested list.
const DOUBLING: &str = r##"json_value.schema={"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}"##;

/// Reply with this text, such as reasoning, before its value.
macro_rules! thought {
    ($before:literal) => {
        concat!($before, "{\"city\": \"Bergen\", \"days\": 3}")
    };
}

rules! {
    JSON_MISSING = "json_missing" ["R-32"] Must "A reply holds a JSON value.",
        broken "I would stay for three days.", correct GOOD;
    JSON_INCOMPLETE = "json_incomplete" ["X-014"] Must "The value is complete.",
        broken "{\"city\": \"Bergen\", \"days\": 3", correct GOOD;
    JSON_MISMATCH = "json_mismatch" ["R-33"] Must "The value satisfies its schema, and is the only one that does.",
        with [SCHEMA],
        broken "{\"city\": \"Bergen\", \"days\": \"three\"}", correct GOOD;
    SCHEMA_TOO_COMPLEX = "schema_too_complex" ["R-33"] Must "The value can be checked against its schema in bounded time.",
        with [DOUBLING],
        broken "[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]", correct "[[1]]";
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "The reply stays inside the limits.",
        with ["limits.value=64"],
        broken "{\"city\": \"Bergen\", \"days\": 3, \"why\": \"It rains on most of them, and nobody minds.\"}", correct GOOD;
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "The value does not repeat an example of the instructions.",
        with ["examples={\"city\": \"Bergen\", \"days\": 3}"],
        broken GOOD, correct "{\"city\": \"Oslo\", \"days\": 1}";
    PARSING_ERROR_MARKER = marker::DECLARATION ["X-009"], correct GOOD;
    PARSING_ERROR_FORM = marker::FORM ["R-72"], broken "<<ParsingError>>.", correct GOOD;
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken thought!("<think>Rain or not?\n"), correct thought!("<think>Rain or not?</think>\n");
    THINK_MISMATCHED = "think_mismatched" ["R-69"] Must "Reasoning is closed by the mark that opened it.",
        broken thought!("<think>Rain or not?</thinking>\n"), correct thought!("<think>Rain or not?</think>\n");
    THINK_UNOPENED = "think_unopened" ["X-012"] Must "`</think>` closes a `<think>`.",
        broken thought!("Rain or not?</think>\n"), correct thought!("<think>Rain or not?</think>\n");
    THINK_ATTRIBUTES = "think_attributes" ["R-69"] Info "Marks of reasoning have no attributes.",
        broken thought!("<think about=\"it\">Rain or not?</think>\n"), correct thought!("<think>Rain or not?</think>\n");
}

/// Rules for reasoning. Since the list of structure fields is empty, any value at the end of unclosed
/// reasoning may be the answer.
pub(super) const REASONING_RULES: draft::ReasoningRules = draft::ReasoningRules {
    unclosed: DRAFT_UNCLOSED,
    mismatched: THINK_MISMATCHED,
    unopened: THINK_UNOPENED,
    attributes: THINK_ATTRIBUTES,
    structure_fields: &[],
};

/// Rules for `<<ParsingError>>`, with which a model declares that it cannot answer in this form.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };
