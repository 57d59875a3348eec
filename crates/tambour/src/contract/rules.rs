//! The rule table of event streams and of search queries.
//!
//! Examples of stream rules are whole transcripts (JSON Lines, or SSE where framing matters), those of query rules
//! are the JSON of the queries. A test holds every example against the checker.

use crate::finding::{Level, Rule};

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

// Sections of the examples, so that each example shows its own fault and nothing else.
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

const GOOD: &str = good!();
const SSE_GOOD: &str = concat!(sse_good!(), sse!("completed"));
const WITH_SUMMARY: &str = concat!(ev!("serp_summary", "\"text\":\"A plan is wanted.\""), good!());
const WITH_QUERIES: &str =
    concat!(thinking!(), answer!(), ev!("serp_queries", "\"queries\":[\"a\"]"), ev!("final_end"));
const WITH_COMPLETED: &str = concat!(good!(), ev!("completed"));

/// A row of the table. Streams are broken by what follows `=>`.
macro_rules! table {
    ($($code:literal $level:ident [$($row:literal),+] $(with [$($with:literal),+])?
        $title:literal, $broken:expr, $correct:expr;)+) => {
        &[$(Rule {
            code: $code,
            rows: &[$($row),+],
            level: Level::$level,
            title: $title,
            with: &[$($($with),+)?],
            broken: $broken,
            correct: $correct,
        }),+]
    };
}

/// All rules of event streams and search queries.
pub static RULES: &[Rule] = table! {
    // Names and shapes.
    "event_unknown" Must ["J-001"]
        "a stream holds contract, system and documented extension events only",
        concat!(thinking!(), ev!("content_delta", "\"delta\":\"x\""), answer!(), ev!("final_end")), GOOD;
    "event_shape" Must ["J-050"]
        "an event is an object with the name `event` and the object `data`",
        concat!("{\"name\":\"status\"}\n", good!()), GOOD;
    "event_flat" Should ["J-050"]
        "the fields of an event stand in its object `data`",
        concat!(thinking!(), "{\"event\":\"final_delta\",\"text\":\"# Plan\"}\n", ev!("final_end")), GOOD;
    "event_json" Must ["J-034"]
        "an event is valid JSON in UTF-8",
        concat!(thinking!(), answer!(), "{\"event\":\"heartbeat\",\n", ev!("final_end")), GOOD;
    "field_type" Must ["J-002", "J-003", "J-009", "J-011", "J-013"]
        "a field has the type the contract gives it",
        concat!(ev!("serp_summary", "\"text\":5"), good!()), WITH_SUMMARY;
    "field_unexpected" Must ["J-006", "J-012", "J-014"]
        "`thinking_start`, `thinking_end` and `final_end` have no fields of their own",
        concat!(ev!("thinking_start", "\"id\":1"), phase1!(), phase2!(), ev!("thinking_end"), answer!(),
            ev!("final_end")), GOOD;
    // The summary.
    "serp_summary_duplicate" Must ["J-002", "J-060"]
        "there is at most one `serp_summary`",
        concat!(ev!("serp_summary", "\"text\":\"A.\""), ev!("serp_summary", "\"text\":\"B.\""), good!()),
        WITH_SUMMARY;
    "serp_summary_empty" Must ["J-002"]
        "the text of `serp_summary` is not blank",
        concat!(ev!("serp_summary", "\"text\":\" \""), good!()), WITH_SUMMARY;
    "serp_summary_markup" Should ["J-002"]
        "the text of `serp_summary` is plain, without tags",
        concat!(ev!("serp_summary", "\"text\":\"A <b>plan</b>.\""), good!()), WITH_SUMMARY;
    "serp_summary_sentences" Should ["J-002"]
        "the text of `serp_summary` is one or two sentences",
        concat!(ev!("serp_summary", "\"text\":\"One. Two. Three.\""), good!()), WITH_SUMMARY;
    "serp_summary_late" Must ["J-020", "J-060"]
        "`serp_summary` comes before `thinking_start`",
        concat!(thinking!(), ev!("serp_summary", "\"text\":\"A plan.\""), answer!(), ev!("final_end")),
        WITH_SUMMARY;
    // The thinking.
    "thinking_start_missing" Must ["J-006", "J-060"]
        "there is a `thinking_start`",
        concat!(phase1!(), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "thinking_start_duplicate" Must ["J-006", "J-060"]
        "there is only one `thinking_start`",
        concat!(ev!("thinking_start"), good!()), GOOD;
    "phase_id_invalid" Must ["J-007", "J-061"]
        "the id of a phase is a positive integer",
        concat!(ev!("thinking_start"), ev!("phase_start", "\"id\":0,\"title\":\"Goal\""), phase1!(),
            ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "phase_id_not_increasing" Must ["J-008", "J-061"]
        "the ids of phases strictly increase",
        concat!(ev!("thinking_start"), phase1!(), phase1!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        GOOD;
    "phase_id_not_consecutive" Must ["J-008"]
        "the ids of phases are 1, 2, 3, ...",
        concat!(ev!("thinking_start"), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "title_empty" Must ["J-009", "J-062"]
        "the title of a phase is not blank",
        concat!(ev!("thinking_start"), ev!("phase_start", "\"id\":1,\"title\":\" \""), phase2!(),
            ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "phase_delta_not_current" Must ["J-010", "J-063"]
        "a `phase_delta` belongs to the most recent phase",
        concat!(ev!("thinking_start"), phase1!(), phase2!(), ev!("phase_delta", "\"id\":1,\"text\":\"c\""),
            ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "phase_delta_unknown" Must ["J-010", "J-017", "J-060", "J-063"]
        "a `phase_delta` belongs to a phase that was started",
        concat!(ev!("thinking_start"), phase1!(), ev!("phase_delta", "\"id\":9,\"text\":\"c\""), phase2!(),
            ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "delta_empty" Must ["J-011", "J-013"]
        "the text of a delta is not empty",
        concat!(ev!("thinking_start"), phase1!(), ev!("phase_delta", "\"id\":1,\"text\":\"\""), phase2!(),
            ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "phase_missing" Must ["J-023", "J-060"]
        "the thinking has at least one phase",
        concat!(ev!("thinking_start"), ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "single_phase" Info ["J-019", "J-060"]
        "two or more phases are recommended",
        concat!(ev!("thinking_start"), phase1!(), ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    "phase_after_thinking_end" Must ["J-022", "J-060"]
        "no phase event comes after `thinking_end`",
        concat!(ev!("thinking_start"), phase1!(), ev!("thinking_end"), phase2!(), answer!(), ev!("final_end")),
        GOOD;
    "thinking_end_missing" Must ["J-012", "J-060"]
        "there is a `thinking_end`",
        concat!(ev!("thinking_start"), phase1!(), phase2!(), answer!(), ev!("final_end")), GOOD;
    "thinking_end_duplicate" Must ["J-012", "J-060"]
        "there is only one `thinking_end`",
        concat!(thinking!(), ev!("thinking_end"), answer!(), ev!("final_end")), GOOD;
    // The answer.
    "final_before_thinking_end" Must ["J-016", "J-060"]
        "no `final_delta` comes before `thinking_end`",
        concat!(ev!("thinking_start"), phase1!(), phase2!(), answer!(), ev!("thinking_end"), ev!("final_end")),
        GOOD;
    "final_delta_missing" Must ["J-013", "J-060"]
        "there is at least one `final_delta`",
        concat!(thinking!(), ev!("final_end")), GOOD;
    "final_end_missing" Must ["J-014", "J-060"]
        "there is a `final_end`",
        concat!(thinking!(), answer!()), GOOD;
    "final_end_duplicate" Must ["J-014", "J-060"]
        "there is only one `final_end`",
        concat!(good!(), ev!("final_end")), GOOD;
    "event_after_final_end" Must ["J-018", "X-010", "J-060"]
        "only system events come after `final_end`",
        concat!(good!(), answer!()), WITH_COMPLETED;
    "order_invalid" Must ["J-015", "J-060"]
        "the events follow the grammar of the contract",
        concat!(phase1!(), ev!("thinking_start"), phase2!(), ev!("thinking_end"), answer!(), ev!("final_end")),
        GOOD;
    "serp_queries_duplicate_event" Must ["J-003", "J-060"]
        "there is at most one `serp_queries`",
        concat!(thinking!(), answer!(), ev!("serp_queries", "\"queries\":[\"a\"]"),
            ev!("serp_queries", "\"queries\":[\"b\"]"), ev!("final_end")), WITH_QUERIES;
    "serp_queries_misplaced" Must ["J-021", "J-060"]
        "`serp_queries` stands between the last `final_delta` and `final_end`",
        concat!(thinking!(), ev!("serp_queries", "\"queries\":[\"a\"]"), answer!(), ev!("final_end")),
        WITH_QUERIES;
    // Extensions and the end of the stream.
    "extension_misplaced" Must ["X-010"]
        "extension events other than drafts, notices and findings come after `thinking_start`",
        concat!(ev!("aside", "\"kind\":\"comment\",\"text\":\"x\""), good!()),
        concat!(ev!("notice", "\"code\":\"x\",\"message\":\"y\""), good!());
    "terminal_missing" Must ["J-035"]
        "a stream ends with `completed` or `error`",
        concat!(sse_good!(), sse!("heartbeat")), SSE_GOOD;
    "terminal_duplicate" Must ["J-035"]
        "a stream has only one `completed` or `error`",
        concat!(good!(), ev!("completed"), ev!("error")), WITH_COMPLETED;
    "event_after_terminal" Must ["J-035"]
        "nothing comes after `completed` or `error`",
        concat!(good!(), ev!("completed"), ev!("heartbeat")), WITH_COMPLETED;
    // Envelope and framing.
    "envelope_missing" Must ["J-030"]
        "the data of every event has the strings `message_id` and `request_id`",
        concat!("event: status\ndata: {\"state\":\"x\"}\n\n", sse_good!(), sse!("completed")), SSE_GOOD;
    "sse_framing" Must ["J-034"]
        "an event of an SSE stream is one `event:` line, one `data:` line and a blank line",
        concat!(sse_good!(), "event: completed\ndata: {\"message_id\":\"m\",\ndata: \"request_id\":\"r\"}\n\n"),
        SSE_GOOD;
    "sse_unterminated" Should ["J-034"]
        "an SSE stream ends with a blank line",
        concat!(sse_good!(), "event: error\ndata: {\"message_id\":\"m\",\"request_id\":\"r\"}\n"), SSE_GOOD;
    "control_event_with_id" Should ["J-036"]
        "`status` and `heartbeat` have no id",
        concat!("id: 1\n", sse!("heartbeat"), sse_good!(), sse!("completed")), SSE_GOOD;
    "event_id_invalid" Should ["J-036"]
        "the id of an event is a whole number",
        concat!("id: x\n", sse_good!(), sse!("completed")),
        concat!(sse!("status"), "id: 7\n", sse!("error"));
    "event_id_missing" Should ["J-036"]
        "when events have ids, only `status` and `heartbeat` have none",
        concat!("id: 1\n", sse_good!(), sse!("completed")),
        concat!(sse!("status"), "id: 7\n", sse!("error"));
    "event_id_not_increasing" Should ["J-036"]
        "the ids of events increase",
        concat!("id: 2\n", sse!("thinking_start"), "id: 2\n", sse!("completed")),
        concat!(sse!("status"), "id: 7\n", sse!("error"));
    "limit_exceeded" Must ["X-007"] with ["limits.input=60"]
        "a line, and the number of findings, stay within the limits",
        concat!(good!(), ev!("heartbeat", "\"ts\":\"a line of more bytes than the limit\"")), GOOD;
    // Search queries.
    "serp_queries_json" Must ["T-044"]
        "the queries are valid JSON",
        r#"["a","#, r#"["a"]"#;
    "serp_queries_not_array" Must ["T-044"]
        "the queries are an array",
        r#"{"q":1}"#, r#"["q"]"#;
    "serp_query_not_string" Must ["T-044", "J-003"]
        "each query is a string",
        r#"["a",3]"#, r#"["a","3"]"#;
    "serp_queries_too_many" Must ["T-045", "J-004", "J-064"]
        "there are at most 5 queries",
        r#"["a","b","c","d","e","f"]"#, r#"["a","b","c"]"#;
    "serp_queries_duplicate" Must ["T-046", "J-004", "J-064"]
        "the queries are unique, white space at their ends aside",
        r#"["a","a "]"#, r#"["a","b"]"#;
    "serp_queries_case" Should ["T-046", "J-004"]
        "queries differ by more than upper and lower case",
        r#"["Squat form","squat form"]"#, r#"["Squat form","squat depth"]"#;
    "serp_query_too_long" Must ["T-047", "J-004"]
        "a query has at most 80 characters",
        r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]"#,
        r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]"#;
    "serp_query_sensitive" Must ["T-048", "J-004", "J-064"]
        "a query holds no e-mail, phone number, IP address, postal address or the like",
        r#"["mail a@b.com"]"#, r#"["how to write mail"]"#;
    "serp_queries_many" Info ["T-049", "J-005"]
        "one to three queries are usual",
        r#"["a","b","c","d"]"#, r#"["a","b","c"]"#;
    "serp_queries_empty" Info ["T-050"]
        "no query at all is for greetings and messages that cannot be understood",
        "[]", r#"["a"]"#;
    "serp_query_empty" Must ["T-051"]
        "a query is not blank",
        r#"["","a"]"#, r#"["a"]"#;
};

/// The rule with `code`.
#[must_use]
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code == code)
}

/// The rule with a code that is written in this module's own source.
pub(super) fn known(code: &str) -> &'static Rule {
    rule(code).expect("the code is in the table")
}
