//! Rules of the answer of a dialogue round (S-051 to S-055).

use crate::dialect::{draft, marker};
use crate::finding::rules;

/// Builds an answer from the assessment, the response and the following fields, each given as JSON text.
macro_rules! answer {
    ($assessment:expr, $response:literal) => {
        concat!(
            "{\"assessment\":{",
            $assessment,
            "},\"response\":",
            $response,
            ",\"should_exit\":true,\"exit_reason\":\"understood\"}"
        )
    };
}

/// Builds the fields of an assessment with this level.
macro_rules! level {
    ($level:literal) => {
        concat!(
            "\"understanding_level\":",
            $level,
            ",\"has_questions\":false,\"expressed_understanding\":true,",
            "\"reasoning\":\"They named all three parts.\""
        )
    };
}

/// A valid answer.
macro_rules! good {
    () => {
        answer!(level!("85"), "{\"咨询师\":\"Well done.\"}")
    };
}

const GOOD: &str = good!();

rules! {
    PARSING_ERROR_MARKER = marker::DECLARATION ["X-009"], correct GOOD;
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken concat!("<think>The user has got it.\n", good!()),
        correct concat!("<think>The user has got it.</think>\n", good!());
    PARSING_ERROR_FORM = marker::FORM ["R-72"], correct GOOD;
    THINK_MISMATCHED = "think_mismatched" ["R-69"] Must "Reasoning is closed by the mark that opened it.",
        broken concat!("<think>Which one?</thinking>\n", good!()),
        correct concat!("<think>Which one?</think>\n", good!());
    THINK_UNOPENED = "think_unopened" ["X-012"] Must "`</think>` closes a `<think>`.",
        broken concat!("Which one?</think>\n", good!()),
        correct concat!("<think>Which one?</think>\n", good!());
    THINK_ATTRIBUTES = "think_attributes" ["R-69"] Info "Marks of reasoning have no attributes.",
        broken concat!("<think about=\"it\">Which one?</think>\n", good!()),
        correct concat!("<think>Which one?</think>\n", good!());
    THINK_LATE = "think_late" ["X-012"] Should "Reasoning comes before the reply.",
        broken concat!(good!(), "\n<think>Was it that?</think>\n"), correct GOOD;
    UNSTRUCTURED = "unstructured" ["S-054"] Must "The reply is an answer object.",
        broken "sorry, no JSON", correct GOOD;
    FENCED_REPLY = "fenced_reply" ["S-053"] Must "The answer is not wrapped in a code fence.",
        broken concat!("```json\n", good!(), "\n```\n"), correct GOOD;
    MULTIPLE_ANSWERS = "multiple_answers" ["S-053"] Must "There is one answer object.",
        broken concat!(good!(), "\n", good!()), correct GOOD;
    ANSWER_IN_ARRAY = "answer_in_array" ["S-051"] Must "The answer is an object, not an item of an array.",
        broken concat!("[", good!(), "]"), correct GOOD;
    ANSWER_WRAPPED = "answer_wrapped" ["R-76"] Must "The answer is at the top level, not under a key of another object.",
        broken concat!("{\"output\":", good!(), "}"), correct GOOD;
    ANSWER_IN_THOUGHT = "answer_in_thought" ["X-012"] Must "The answer is not inside a thought.",
        broken concat!(good!(), "</think>\n", good!()), correct GOOD;
    ANSWER_QUOTED = "answer_quoted" ["R-74"] Must "The answer is not quoted, in a code span or in the middle of a sentence.",
        broken concat!("> ", good!()), correct GOOD;
    FIELD_MISSING = "field_missing" ["S-051"] Must "The answer has all its fields.",
        broken "{\"response\":{\"咨询师\":\"Well done.\"}}", correct GOOD;
    FIELD_TYPE = "field_type" ["S-051"] Must "The fields of the answer have their types.",
        broken answer!(
            "\"understanding_level\":85,\"has_questions\":\"否\",\"expressed_understanding\":true,\"reasoning\":\"r\"",
            "{\"咨询师\":\"Well done.\"}"
        ),
        correct GOOD;
    FIELD_RENAMED = "field_renamed" ["R-76"] Must "The response is called `response`.",
        broken concat!("{\"assessment\":{", level!("85"), "},\"message\":\"Well done.\",\"should_exit\":true,\"exit_reason\":\"understood\"}"),
        correct GOOD;
    FIELD_MISPLACED = "field_misplaced" ["S-051"] Must "The assessment of the model is in `assessment`.",
        broken concat!(
            "{", level!("85"), ",\"response\":{\"咨询师\":\"Well done.\"},\"should_exit\":true,",
            "\"exit_reason\":\"understood\"}"
        ),
        correct GOOD;
    FIELD_UNEXPECTED = "field_unexpected" ["S-051"] Info "The answer has no other fields.",
        broken answer!(concat!(level!("85"), ",\"mood\":\"calm\""), "{\"咨询师\":\"Well done.\"}"), correct GOOD;
    LEVEL_OUT_OF_RANGE = "level_out_of_range" ["S-055"] Must "The understanding level is between 0 and 100.",
        broken answer!(level!("150"), "{\"咨询师\":\"Well done.\"}"), correct GOOD;
    LEVEL_SCALE = "level_scale" ["S-051"] Should "The understanding level is on a scale from 0 to 100, not from 0 to 1.",
        broken answer!(level!("0.85"), "{\"咨询师\":\"Well done.\"}"), correct GOOD;
    MESSAGE_MISSING = "message_missing" ["S-052"] Must "The answer has a message.",
        broken answer!(level!("85"), "{\"咨询师\":\"\"}"), correct GOOD;
    RESPONSE_NOT_OBJECT = "response_not_object" ["S-052"] Must "`response` is an object with the role as its key.",
        broken answer!(level!("85"), "\"Well done.\""), correct GOOD;
    ROLE_KEY_UNEXPECTED = "role_key_unexpected" ["S-052"] Must "The role is the only key of `response`.",
        broken answer!(level!("85"), "{\"coach\":\"Well done.\"}"), correct GOOD;
    PLACEHOLDER_COPIED = "placeholder_copied" ["X-011"] Must "No placeholder of the instructions is left unfilled.",
        broken answer!(level!("\"0-100\""), "{\"咨询师\":\"Well done.\"}"), correct GOOD;
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "The answer does not repeat an example of the instructions.",
        with [concat!("examples=", good!())],
        broken GOOD, correct answer!(level!("85"), "{\"咨询师\":\"That is it.\"}");
    TRUNCATED = "truncated" ["X-014"] Must "The answer is complete.",
        broken "{\"assessment\":{\"understanding_level\":85", correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "The answer stays inside the limits.",
        with ["limits.hold=128"],
        broken concat!(
            "The user has understood all of it, I think, so the next thing to do is to say so, and then to go on ",
            "to an example of their own. Here it is:\n",
            good!()
        ), correct GOOD;
}

/// Rules for reasoning.
pub(super) const REASONING_RULES: draft::ReasoningRules = draft::ReasoningRules {
    unclosed: DRAFT_UNCLOSED,
    mismatched: THINK_MISMATCHED,
    unopened: THINK_UNOPENED,
    attributes: THINK_ATTRIBUTES,
    structure_fields: &["response", "assessment"],
};

/// Rules for `<<ParsingError>>`, with which a model declares that it cannot answer in this form.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };
