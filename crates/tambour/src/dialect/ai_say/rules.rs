//! The rules of the answer of a dialogue round (S-051 to S-055).

use crate::finding::rules;

rules! {
    PARSING_ERROR_MARKER = "parsing_error_marker" ["X-009"] Must "The model did not declare that it failed.",
        broken "<<ParsingError>>", correct GOOD;
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken "<think>The user is lost. {\"assessment\":...", correct "<think>The user is lost.</think>{\"assessment\":...";
    UNSTRUCTURED = "unstructured" ["S-054"] Must "The reply is an answer object.",
        broken "sorry, no JSON", correct GOOD;
    FENCED_REPLY = "fenced_reply" ["S-053"] Must "The answer is not wrapped in a code fence.",
        broken "```json\n{\"assessment\":...}\n```", correct "{\"assessment\":...}";
    MULTIPLE_ANSWERS = "multiple_answers" ["S-053"] Must "There is one answer object.",
        broken "{\"response\":{\"咨询师\":\"a\"},...} {\"response\":{\"咨询师\":\"b\"},...}", correct GOOD;
    ANSWER_IN_ARRAY = "answer_in_array" ["S-051"] Must "The answer is an object, not an item of an array.",
        broken "[{\"assessment\":...}]", correct "{\"assessment\":...}";
    ANSWER_IN_THOUGHT = "answer_in_thought" ["X-012"] Must "The answer does not stand in a thought.",
        broken "{\"assessment\":...}</think>Yes.", correct GOOD;
    FIELD_MISSING = "field_missing" ["S-051"] Must "The answer has all its fields.",
        broken "{\"response\":{\"咨询师\":\"Hello.\"}}", correct GOOD;
    FIELD_TYPE = "field_type" ["S-051"] Must "The fields of the answer have their types.",
        broken "\"has_questions\":\"是\"", correct "\"has_questions\":true";
    FIELD_MISPLACED = "field_misplaced" ["S-051"] Must "What the model assessed stands in `assessment`.",
        broken "{\"understanding_level\":85,\"response\":...}",
        correct "{\"assessment\":{\"understanding_level\":85,...},\"response\":...}";
    FIELD_UNEXPECTED = "field_unexpected" ["S-051"] Info "The answer has no other fields.",
        broken "{\"mood\":\"calm\",\"assessment\":...}", correct "{\"assessment\":...}";
    LEVEL_OUT_OF_RANGE = "level_out_of_range" ["S-055"] Must "The understanding level lies between 0 and 100.",
        broken "\"understanding_level\":150", correct "\"understanding_level\":100";
    LEVEL_SCALE = "level_scale" ["S-051"] Should "The understanding level is on a scale from 0 to 100, not from 0 to 1.",
        broken "\"understanding_level\":0.85", correct "\"understanding_level\":85";
    MESSAGE_MISSING = "message_missing" ["S-052"] Must "The answer has a message.",
        broken "{\"assessment\":...,\"response\":{\"咨询师\":\"\"},...}", correct "{\"assessment\":...,\"response\":{\"咨询师\":\"Hello.\"},...}";
    RESPONSE_NOT_OBJECT = "response_not_object" ["S-052"] Must "`response` is an object with the role as its key.",
        broken "\"response\":\"Hello.\"", correct "\"response\":{\"咨询师\":\"Hello.\"}";
    ROLE_KEY_UNEXPECTED = "role_key_unexpected" ["S-052"] Must "The role is the only key of `response`.",
        broken "\"response\":{\"counsellor\":\"Hello.\"}", correct "\"response\":{\"咨询师\":\"Hello.\"}";
    PLACEHOLDER_COPIED = "placeholder_copied" ["X-011"] Must "No placeholder of the instructions is left unfilled.",
        broken "\"understanding_level\":\"0-100\"", correct "\"understanding_level\":85";
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "The answer does not repeat an example of the instructions.",
        broken "the example of the instructions, word for word", correct "an answer to what the user said";
    TRUNCATED = "truncated" ["X-014"] Must "The answer is complete.",
        broken "{\"assessment\":{\"understanding_level\":85", correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "The answer stays inside the limits.",
        broken "100 KiB of text before the object", correct GOOD;
}

const GOOD: &str = "{\"assessment\":{\"understanding_level\":85,\"has_questions\":false,\"expressed_understanding\":true,\
    \"reasoning\":\"They named all three parts.\"},\"response\":{\"咨询师\":\"Well done.\"},\"should_exit\":true,\
    \"exit_reason\":\"understood\"}";
