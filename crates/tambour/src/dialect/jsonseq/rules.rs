//! Rules of JSON Lines written by a model (J-050 to J-053) and of the events in them (J-002 to J-024).

use crate::dialect::{draft, marker};
use crate::finding::{Rule, RuleLevel, rules};

/// Builds one event of the examples.
macro_rules! ev {
    ($name:literal) => {
        concat!("{\"event\":\"", $name, "\",\"data\":{}}\n")
    };
    ($name:literal, $data:literal) => {
        concat!("{\"event\":\"", $name, "\",\"data\":{", $data, "}}\n")
    };
}

// Building blocks of the examples, so that each example shows only the fault of its own rule.
macro_rules! phase1 {
    () => {
        concat!(
            ev!("phase_start", "\"id\":1,\"title\":\"Goal\""),
            ev!("phase_delta", "\"id\":1,\"text\":\"a\"")
        )
    };
}
macro_rules! phase2 {
    () => {
        concat!(
            ev!("phase_start", "\"id\":2,\"title\":\"Plan\""),
            ev!("phase_delta", "\"id\":2,\"text\":\"b\"")
        )
    };
}
macro_rules! thinking {
    () => {
        concat!(ev!("thinking_start"), phase1!(), phase2!(), ev!("thinking_end"))
    };
}
macro_rules! answer {
    () => {
        ev!("final_delta", "\"text\":\"# Plan\"")
    };
}
macro_rules! reply {
    ($($thinking:expr),+) => {
        concat!(ev!("thinking_start"), $($thinking,)+ ev!("thinking_end"), answer!(), ev!("final_end"))
    };
}
macro_rules! good {
    () => {
        reply!(phase1!(), phase2!())
    };
}

const GOOD: &str = good!();
const WITH_SUMMARY: &str = concat!(ev!("serp_summary", "\"text\":\"A plan is wanted.\""), good!());
const WITH_QUERIES: &str =
    concat!(thinking!(), answer!(), ev!("serp_queries", "\"queries\":[\"a\"]"), ev!("final_end"));

rules! {
    PARSING_ERROR_MARKER = marker::DECLARATION ["J-055"], correct GOOD;
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken concat!("<think>I will answer in events.\n", good!()),
        correct concat!("<think>I will answer in events.</think>\n", good!());
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
    EVENTS_MISSING = "events_missing" ["X-013"] Must "The reply holds events.",
        broken "Just a sentence.", correct GOOD;
    FENCED_REPLY = "fenced_reply" ["J-048"] Must "The lines are not wrapped in a code fence.",
        broken concat!("```json\n", good!(), "```\n"), correct GOOD;
    SSE_FRAMING = "sse_framing" ["J-050"] Should "The model writes JSON Lines, not the frames of a transport.",
        broken concat!("event: thinking_start\ndata: {}\n\n", phase1!(), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    DATA_FLAT = "data_flat" ["J-050"] Should "The fields of an event are in its `data`.",
        broken concat!(thinking!(), "{\"event\":\"final_delta\",\"text\":\"# Plan\"}\n", ev!("final_end")),
        correct GOOD;
    LINES_GLUED = "lines_glued" ["J-050"] Must "Each event is on a line of its own.",
        broken concat!(thinking!(), answer!(), "{\"event\":\"heartbeat\"}{\"event\":\"final_end\",\"data\":{}}\n"),
        correct GOOD;
    LINES_PRETTY = "lines_pretty" ["J-051"] Must "Each event is on one line.",
        broken concat!(thinking!(), answer!(), "{\n  \"event\": \"final_end\",\n  \"data\": {}\n}\n"),
        correct GOOD;
    LINES_IN_ARRAY = "lines_in_array" ["J-051"] Must "Events are lines, not items of an array.",
        broken concat!(thinking!(), answer!(), "[{\"event\":\"final_end\",\"data\":{}}]\n"), correct GOOD;
    LINE_NOT_OBJECT = "line_not_object" ["J-051"] Must "Each line is a JSON object.",
        broken concat!("Here is the plan:\n", good!()), correct GOOD;
    LINE_CUT = "line_cut" ["J-056"] Must "The last line is complete.",
        broken concat!(thinking!(), "{\"event\":\"final_delta\",\"data\":{\"text\":\"# Pl"), correct GOOD;
    EVENT_MISSING = "event_missing" ["J-051"] Must "Each line names its event.",
        broken concat!(thinking!(), "{\"text\":\"# Plan\"}\n", answer!(), ev!("final_end")), correct GOOD;
    EVENT_UNKNOWN = "event_unknown" ["J-051"] Must "All events are events of the contract.",
        broken concat!(ev!("progress"), good!()), correct GOOD;
    EVENT_SPOOFED = "event_spoofed" ["J-052"] Must "A model writes no system events.",
        broken concat!(good!(), "{\"event\":\"completed\"}\n"), correct GOOD;
    FIELD_MISSING = "field_missing" ["J-051"] Must "An event has all its fields.",
        broken concat!("{\"event\":\"serp_summary\",\"data\":{}}\n", good!()), correct WITH_SUMMARY;
    FIELD_RENAMED = "field_renamed" ["R-76"] Must "The name and the text of an event are called `event` and `text`.",
        broken concat!(thinking!(), "{\"type\":\"final_delta\",\"data\":{\"content\":\"# Plan\"}}\n", ev!("final_end")),
        correct GOOD;
    FIELD_TYPE = "field_type" ["J-002", "J-003", "J-009", "J-011", "J-013", "J-051"] Must "The fields of an event have their types.",
        broken concat!(ev!("serp_summary", "\"text\":5"), good!()), correct WITH_SUMMARY;
    FIELD_UNEXPECTED = "field_unexpected" ["J-006", "J-012", "J-014", "J-051"] Must
        "`thinking_start`, `thinking_end` and `final_end` have no fields, other events only their own.",
        broken concat!(ev!("thinking_start", "\"id\":1"), phase1!(), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    SUMMARY_DUPLICATE = "serp_summary_duplicate" ["J-002"] Must "There is at most one `serp_summary`.",
        broken concat!(ev!("serp_summary", "\"text\":\"A.\""), ev!("serp_summary", "\"text\":\"B.\""), good!()),
        correct WITH_SUMMARY;
    SUMMARY_EMPTY = "serp_summary_empty" ["J-002"] Must "The summary is not blank.",
        broken concat!(ev!("serp_summary", "\"text\":\" \""), good!()), correct WITH_SUMMARY;
    SUMMARY_MARKUP = "serp_summary_markup" ["J-002"] Must "The summary is plain text.",
        broken concat!(ev!("serp_summary", "\"text\":\"A <b>plan</b>.\""), good!()), correct WITH_SUMMARY;
    SUMMARY_LATE = "serp_summary_late" ["J-020"] Must "The summary comes before `thinking_start`.",
        broken concat!(thinking!(), ev!("serp_summary", "\"text\":\"A plan.\""), answer!(), ev!("final_end")),
        correct WITH_SUMMARY;
    QUERIES_DUPLICATE = "serp_queries_duplicate_event" ["J-003"] Must "There is at most one `serp_queries`.",
        broken concat!(
            thinking!(),
            answer!(),
            ev!("serp_queries", "\"queries\":[\"a\"]"),
            ev!("serp_queries", "\"queries\":[\"b\"]"),
            ev!("final_end")
        ),
        correct WITH_QUERIES;
    QUERIES_MISPLACED = "serp_queries_misplaced" ["J-021"] Must
        "`serp_queries` comes between the last `final_delta` and `final_end`.",
        broken concat!(thinking!(), ev!("serp_queries", "\"queries\":[\"a\"]"), answer!(), ev!("final_end")),
        correct WITH_QUERIES;
    THINKING_START_MISSING = "thinking_start_missing" ["J-006"] Must "There is one `thinking_start`.",
        broken concat!(phase1!(), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")), correct GOOD;
    THINKING_START_DUPLICATE = "thinking_start_duplicate" ["J-006"] Must "There is one `thinking_start`.",
        broken concat!(ev!("thinking_start"), good!()), correct GOOD;
    PHASE_ID_INVALID = "phase_id_invalid" ["J-007", "J-061"] Must "The id of a phase is a positive integer.",
        broken reply!(ev!("phase_start", "\"id\":0,\"title\":\"Goal\""), phase2!()),
        correct GOOD;
    PHASE_ID_NOT_INCREASING = "phase_id_not_increasing" ["J-008", "J-061"] Must "The ids of the phases increase.",
        broken reply!(phase1!(), phase1!()),
        correct GOOD;
    PHASE_ID_NOT_CONSECUTIVE = "phase_id_not_consecutive" ["J-008"] Must
        "The ids of the phases are 1, 2, 3, ... without gaps.",
        broken reply!(phase2!(), ev!("phase_start", "\"id\":3,\"title\":\"End\"")),
        correct GOOD;
    TITLE_EMPTY = "title_empty" ["J-009", "J-062"] Must "The title of a phase is not blank.",
        broken reply!(ev!("phase_start", "\"id\":1,\"title\":\" \""), phase2!()),
        correct GOOD;
    DELTA_NOT_CURRENT = "phase_delta_not_current" ["J-010", "J-063"] Must
        "A delta belongs to the phase that started last.",
        broken reply!(phase1!(), phase2!(), ev!("phase_delta", "\"id\":1,\"text\":\"c\"")),
        correct GOOD;
    DELTA_UNKNOWN = "phase_delta_unknown" ["J-010", "J-017", "J-063"] Must "A delta belongs to a phase that started.",
        broken reply!(phase1!(), phase2!(), ev!("phase_delta", "\"id\":9,\"text\":\"c\"")),
        correct GOOD;
    DELTA_EMPTY = "delta_empty" ["J-011", "J-013"] Must "The text of a delta is not empty.",
        broken reply!(phase1!(), ev!("phase_delta", "\"id\":1,\"text\":\"\""), phase2!()),
        correct GOOD;
    THINKING_END_MISSING = "thinking_end_missing" ["J-012"] Must "There is one `thinking_end`.",
        broken concat!(ev!("thinking_start"), phase1!(), phase2!(), answer!(), ev!("final_end")),
        correct GOOD;
    THINKING_END_DUPLICATE = "thinking_end_duplicate" ["J-012"] Must "There is one `thinking_end`.",
        broken concat!(thinking!(), ev!("thinking_end"), answer!(), ev!("final_end")), correct GOOD;
    FINAL_DELTA_MISSING = "final_delta_missing" ["J-013"] Must "There is a `final_delta`.",
        broken concat!(thinking!(), ev!("final_end")), correct GOOD;
    FINAL_END_MISSING = "final_end_missing" ["J-014"] Must "There is one `final_end`.",
        broken concat!(thinking!(), answer!()), correct GOOD;
    FINAL_END_DUPLICATE = "final_end_duplicate" ["J-014"] Must "There is one `final_end`.",
        broken concat!(good!(), ev!("final_end")), correct GOOD;
    ORDER_INVALID = "order_invalid" ["J-015", "J-060"] Must "The events come in the order of the grammar.",
        broken concat!(phase1!(), ev!("thinking_start"), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    FINAL_BEFORE_THINKING_END = "final_before_thinking_end" ["J-016"] Must
        "No `final_delta` comes before `thinking_end`.",
        broken concat!(ev!("thinking_start"), phase1!(), phase2!(), answer!(), ev!("thinking_end"), ev!("final_end")),
        correct GOOD;
    AFTER_FINAL_END = "event_after_final_end" ["J-018"] Must "Nothing follows `final_end`.",
        broken concat!(good!(), answer!()), correct GOOD;
    SINGLE_PHASE = "single_phase" ["J-019"] Info "Two or more phases are recommended.",
        broken reply!(phase1!()),
        correct GOOD;
    PHASE_AFTER_THINKING_END = "phase_after_thinking_end" ["J-022"] Must "No phase comes after `thinking_end`.",
        broken concat!(thinking!(), phase1!(), answer!(), ev!("final_end")), correct GOOD;
    PHASE_MISSING = "phase_missing" ["J-023"] Must "There is at least one phase.",
        broken concat!(ev!("thinking_start"), ev!("thinking_end"), answer!(), ev!("final_end")), correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "Sizes stay within the limits.",
        with ["limits.hold=64"],
        broken concat!(
            ev!("thinking_start"),
            phase1!(),
            phase2!(),
            ev!("final_delta", "\"text\":\"An answer of more than 64 bytes, which waits for the end of thinking.\""),
            ev!("thinking_end"),
            ev!("final_end")
        ),
        correct GOOD;
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        with [concat!("examples=", good!())],
        broken GOOD,
        correct concat!(thinking!(), ev!("final_delta", "\"text\":\"# Another plan\""), ev!("final_end"));
}

/// Rules for reasoning.
pub(super) const REASONING_RULES: draft::ReasoningRules = draft::ReasoningRules {
    unclosed: DRAFT_UNCLOSED,
    mismatched: THINK_MISMATCHED,
    unopened: THINK_UNOPENED,
    attributes: THINK_ATTRIBUTES,
    structure_fields: &["event"],
};

/// Rules for `<<ParsingError>>`, with which a model declares that it cannot answer in this form.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };

/// Milder form of [`FIELD_UNEXPECTED`], for unknown fields of events that have fields: their values are lost,
/// but nothing forbids them.
pub(super) const FIELD_EXTRA: &Rule = &Rule { level: RuleLevel::Should, ..*FIELD_UNEXPECTED };
