//! Rules of event streams. Their examples are complete transcripts: JSON Lines, or SSE if framing matters. A
//! test runs the checker on each example.

use crate::finding::rules;

/// One line of an example in JSON Lines.
macro_rules! ev {
    ($name:literal) => {
        concat!("{\"event\":\"", $name, "\",\"data\":{}}\n")
    };
    ($name:literal, $data:literal) => {
        concat!("{\"event\":\"", $name, "\",\"data\":{", $data, "}}\n")
    };
}

/// One event of an example in SSE, with the envelope.
macro_rules! sse {
    ($name:literal) => {
        concat!("event: ", $name, "\ndata: {\"message_id\":\"m\",\"request_id\":\"r\"}\n\n")
    };
    ($name:literal, $data:literal) => {
        concat!("event: ", $name, "\ndata: {\"message_id\":\"m\",\"request_id\":\"r\",", $data, "}\n\n")
    };
}

// Sections of correct streams, from which the examples are built so that each shows only its own fault.
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
macro_rules! good {
    () => {
        concat!(thinking!(), answer!(), ev!("final_end"))
    };
}
macro_rules! sse_good {
    () => {
        concat!(
            sse!("thinking_start"),
            sse!("phase_start", "\"id\":1,\"title\":\"Goal\""),
            sse!("phase_start", "\"id\":2,\"title\":\"Plan\""),
            sse!("thinking_end"),
            sse!("final_delta", "\"text\":\"# Plan\""),
            sse!("final_end"),
        )
    };
}

// Correct streams.
const GOOD: &str = good!();
const SSE_GOOD: &str = concat!(sse_good!(), sse!("completed"));
const WITH_SUMMARY: &str = concat!(ev!("serp_summary", "\"text\":\"A plan is wanted.\""), good!());
const WITH_QUERIES: &str =
    concat!(thinking!(), answer!(), ev!("serp_queries", "\"queries\":[\"a\"]"), ev!("final_end"));
const WITH_COMPLETED: &str = concat!(good!(), ev!("completed"));

rules! {
    // Names and shapes.
    EVENT_UNKNOWN = "event_unknown" ["J-001"] Must
        "a stream holds contract, system and documented extension events only",
        broken concat!(thinking!(), ev!("content_delta", "\"delta\":\"x\""), answer!(), ev!("final_end")),
        correct GOOD;
    EVENT_SHAPE = "event_shape" ["J-050"] Must
        "an event is an object with the name `event` and the object `data`",
        broken concat!("{\"name\":\"status\"}\n", good!()),
        correct GOOD;
    EVENT_FLAT = "event_flat" ["J-050"] Should
        "the fields of an event are in its object `data`",
        broken concat!(thinking!(), "{\"event\":\"final_delta\",\"text\":\"# Plan\"}\n", ev!("final_end")),
        correct GOOD;
    EVENT_JSON = "event_json" ["J-034"] Must
        "an event is valid JSON in UTF-8",
        broken concat!(thinking!(), answer!(), "{\"event\":\"heartbeat\",\n", ev!("final_end")),
        correct GOOD;
    FIELD_TYPE = "field_type" ["J-002", "J-003", "J-009", "J-011", "J-013"] Must
        "a field has the type the contract gives it",
        broken concat!(ev!("serp_summary", "\"text\":5"), good!()),
        correct WITH_SUMMARY;
    FIELD_UNEXPECTED = "field_unexpected" ["J-006", "J-012", "J-014"] Must
        "`thinking_start`, `thinking_end` and `final_end` have no fields of their own",
        broken concat!(ev!("thinking_start", "\"id\":1"), phase1!(), phase2!(), ev!("thinking_end"),
            answer!(), ev!("final_end")),
        correct GOOD;
    // The summary.
    SERP_SUMMARY_DUPLICATE = "serp_summary_duplicate" ["J-002", "J-060"] Must
        "there is at most one `serp_summary`",
        broken concat!(ev!("serp_summary", "\"text\":\"A.\""), ev!("serp_summary", "\"text\":\"B.\""),
            good!()),
        correct WITH_SUMMARY;
    SERP_SUMMARY_EMPTY = "serp_summary_empty" ["J-002"] Must
        "the text of `serp_summary` is not blank",
        broken concat!(ev!("serp_summary", "\"text\":\" \""), good!()),
        correct WITH_SUMMARY;
    SERP_SUMMARY_MARKUP = "serp_summary_markup" ["J-002"] Should
        "the text of `serp_summary` is plain, without tags",
        broken concat!(ev!("serp_summary", "\"text\":\"A <b>plan</b>.\""), good!()),
        correct WITH_SUMMARY;
    SERP_SUMMARY_SENTENCES = "serp_summary_sentences" ["J-002"] Should
        "the text of `serp_summary` is one or two sentences",
        broken concat!(ev!("serp_summary", "\"text\":\"One. Two. Three.\""), good!()),
        correct WITH_SUMMARY;
    SERP_SUMMARY_LATE = "serp_summary_late" ["J-020", "J-060"] Must
        "`serp_summary` comes before `thinking_start`",
        broken concat!(thinking!(), ev!("serp_summary", "\"text\":\"A plan.\""), answer!(), ev!("final_end")),
        correct WITH_SUMMARY;
    // The thinking.
    THINKING_START_MISSING = "thinking_start_missing" ["J-006", "J-060"] Must
        "there is a `thinking_start`",
        broken concat!(phase1!(), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    THINKING_START_DUPLICATE = "thinking_start_duplicate" ["J-006", "J-060"] Must
        "there is only one `thinking_start`",
        broken concat!(ev!("thinking_start"), good!()),
        correct GOOD;
    PHASE_ID_INVALID = "phase_id_invalid" ["J-007", "J-061"] Must
        "the id of a phase is a positive integer",
        broken concat!(ev!("thinking_start"), ev!("phase_start", "\"id\":0,\"title\":\"Goal\""), phase1!(),
            ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    PHASE_ID_NOT_INCREASING = "phase_id_not_increasing" ["J-008", "J-061"] Must
        "the ids of phases strictly increase",
        broken concat!(ev!("thinking_start"), phase1!(), phase1!(), ev!("thinking_end"), answer!(),
            ev!("final_end")),
        correct GOOD;
    PHASE_ID_NOT_CONSECUTIVE = "phase_id_not_consecutive" ["J-008"] Must
        "the ids of phases are 1, 2, 3, ...",
        broken concat!(ev!("thinking_start"), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    TITLE_EMPTY = "title_empty" ["J-009", "J-062"] Must
        "the title of a phase is not blank",
        broken concat!(ev!("thinking_start"), ev!("phase_start", "\"id\":1,\"title\":\" \""), phase2!(),
            ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    PHASE_DELTA_NOT_CURRENT = "phase_delta_not_current" ["J-010", "J-063"] Must
        "a `phase_delta` belongs to the most recent phase",
        broken concat!(ev!("thinking_start"), phase1!(), phase2!(), ev!("phase_delta",
            "\"id\":1,\"text\":\"c\""), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    PHASE_DELTA_UNKNOWN = "phase_delta_unknown" ["J-010", "J-017", "J-060", "J-063"] Must
        "a `phase_delta` belongs to a phase that was started",
        broken concat!(ev!("thinking_start"), phase1!(), ev!("phase_delta", "\"id\":9,\"text\":\"c\""),
            phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    DELTA_EMPTY = "delta_empty" ["J-011", "J-013"] Must
        "the text of a delta is not empty",
        broken concat!(ev!("thinking_start"), phase1!(), ev!("phase_delta", "\"id\":1,\"text\":\"\""),
            phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    PHASE_MISSING = "phase_missing" ["J-023", "J-060"] Must
        "the thinking has at least one phase",
        broken concat!(ev!("thinking_start"), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    SINGLE_PHASE = "single_phase" ["J-019", "J-060"] Info
        "two or more phases are recommended",
        broken concat!(ev!("thinking_start"), phase1!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    PHASE_AFTER_THINKING_END = "phase_after_thinking_end" ["J-022", "J-060"] Must
        "no phase event comes after `thinking_end`",
        broken concat!(ev!("thinking_start"), phase1!(), ev!("thinking_end"), phase2!(), answer!(),
            ev!("final_end")),
        correct GOOD;
    THINKING_END_MISSING = "thinking_end_missing" ["J-012", "J-060"] Must
        "there is a `thinking_end`",
        broken concat!(ev!("thinking_start"), phase1!(), phase2!(), answer!(), ev!("final_end")),
        correct GOOD;
    THINKING_END_DUPLICATE = "thinking_end_duplicate" ["J-012", "J-060"] Must
        "there is only one `thinking_end`",
        broken concat!(thinking!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        correct GOOD;
    // The answer.
    FINAL_BEFORE_THINKING_END = "final_before_thinking_end" ["J-016", "J-060"] Must
        "no `final_delta` comes before `thinking_end`",
        broken concat!(ev!("thinking_start"), phase1!(), phase2!(), answer!(), ev!("thinking_end"),
            ev!("final_end")),
        correct GOOD;
    FINAL_DELTA_MISSING = "final_delta_missing" ["J-013", "J-060"] Must
        "there is at least one `final_delta`",
        broken concat!(thinking!(), ev!("final_end")),
        correct GOOD;
    FINAL_END_MISSING = "final_end_missing" ["J-014", "J-060"] Must
        "there is a `final_end`",
        broken concat!(thinking!(), answer!()),
        correct GOOD;
    FINAL_END_DUPLICATE = "final_end_duplicate" ["J-014", "J-060"] Must
        "there is only one `final_end`",
        broken concat!(good!(), ev!("final_end")),
        correct GOOD;
    EVENT_AFTER_FINAL_END = "event_after_final_end" ["J-018", "X-010", "J-060"] Must
        "only system events come after `final_end`",
        broken concat!(good!(), answer!()),
        correct WITH_COMPLETED;
    ORDER_INVALID = "order_invalid" ["J-015", "J-060"] Must
        "the events follow the grammar of the contract",
        broken concat!(phase1!(), ev!("thinking_start"), phase2!(), ev!("thinking_end"), answer!(),
            ev!("final_end")),
        correct GOOD;
    SERP_QUERIES_DUPLICATE_EVENT = "serp_queries_duplicate_event" ["J-003", "J-060"] Must
        "there is at most one `serp_queries`",
        broken concat!(thinking!(), answer!(), ev!("serp_queries", "\"queries\":[\"a\"]"),
            ev!("serp_queries", "\"queries\":[\"b\"]"), ev!("final_end")),
        correct WITH_QUERIES;
    SERP_QUERIES_MISPLACED = "serp_queries_misplaced" ["J-021", "J-060"] Must
        "`serp_queries` comes between the last `final_delta` and `final_end`",
        broken concat!(thinking!(), ev!("serp_queries", "\"queries\":[\"a\"]"), answer!(), ev!("final_end")),
        correct WITH_QUERIES;
    // Extensions and the end of the stream.
    EXTENSION_MISPLACED = "extension_misplaced" ["X-010"] Must
        "extension events other than drafts, notices and findings come after `thinking_start`",
        broken concat!(ev!("aside", "\"kind\":\"comment\",\"text\":\"x\""), good!()),
        correct concat!(ev!("notice", "\"code\":\"x\",\"message\":\"y\""), good!());
    TERMINAL_MISSING = "terminal_missing" ["J-035"] Must
        "a stream ends with `completed` or `error`",
        broken concat!(sse_good!(), sse!("heartbeat")),
        correct SSE_GOOD;
    TERMINAL_DUPLICATE = "terminal_duplicate" ["J-035"] Must
        "a stream has only one `completed` or `error`",
        broken concat!(good!(), ev!("completed"), ev!("error")),
        correct WITH_COMPLETED;
    EVENT_AFTER_TERMINAL = "event_after_terminal" ["J-035"] Must
        "nothing comes after `completed` or `error`",
        broken concat!(good!(), ev!("completed"), ev!("heartbeat")),
        correct WITH_COMPLETED;
    // Envelope and framing.
    ENVELOPE_MISSING = "envelope_missing" ["J-030"] Must
        "the data of every event has the strings `message_id` and `request_id`",
        broken concat!("event: status\ndata: {\"state\":\"x\"}\n\n", sse_good!(), sse!("completed")),
        correct SSE_GOOD;
    SSE_FRAMING = "sse_framing" ["J-034"] Must
        "an event of an SSE stream is one `event:` line, one `data:` line and a blank line",
        broken concat!(sse_good!(),
            "event: completed\ndata: {\"message_id\":\"m\",\ndata: \"request_id\":\"r\"}\n\n"),
        correct SSE_GOOD;
    SSE_UNTERMINATED = "sse_unterminated" ["J-034"] Should
        "an SSE stream ends with a blank line",
        broken concat!(sse_good!(), "event: error\ndata: {\"message_id\":\"m\",\"request_id\":\"r\"}\n"),
        correct SSE_GOOD;
    CONTROL_EVENT_WITH_ID = "control_event_with_id" ["J-036"] Should
        "`status` and `heartbeat` have no id",
        broken concat!("id: 1\n", sse!("heartbeat"), sse_good!(), sse!("completed")),
        correct SSE_GOOD;
    EVENT_ID_INVALID = "event_id_invalid" ["J-036"] Should
        "the id of an event is a whole number",
        broken concat!("id: x\n", sse_good!(), sse!("completed")),
        correct concat!(sse!("status"), "id: 7\n", sse!("error"));
    EVENT_ID_MISSING = "event_id_missing" ["J-036"] Should
        "when events have ids, only `status` and `heartbeat` have none",
        broken concat!("id: 1\n", sse_good!(), sse!("completed")),
        correct concat!(sse!("status"), "id: 7\n", sse!("error"));
    EVENT_ID_NOT_INCREASING = "event_id_not_increasing" ["J-036"] Should
        "the ids of events increase",
        broken concat!("id: 2\n", sse!("thinking_start"), "id: 2\n", sse!("completed")),
        correct concat!(sse!("status"), "id: 7\n", sse!("error"));
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must
        "a line, and the number of findings, stay within the limits",
        with ["limits.input=60"],
        broken concat!(good!(), ev!("heartbeat", "\"ts\":\"a line of more bytes than the limit\"")),
        correct GOOD;
}
