//! The rules of JSON Lines written by a model (J-050 to J-053), and those of the events in them (J-002 to J-024).

use crate::finding::rules;

rules! {
    PARSING_ERROR_MARKER = "parsing_error_marker" ["J-055"] Must "The model did not declare that it failed.",
        broken "<<ParsingError>>", correct "{\"event\":\"thinking_start\",\"data\":{}}...";
    DRAFT_UNCLOSED = "draft_unclosed" ["X-012"] Must "A leading `<think>` is closed.",
        broken "<think>I will answer in events. {\"event\":...",
        correct "<think>I will answer in events.</think>\n{\"event\":...";
    FENCED_REPLY = "fenced_reply" ["J-048"] Must "The lines are not wrapped in a code fence.",
        broken "```json\n{\"event\":\"thinking_start\",\"data\":{}}\n```", correct "{\"event\":\"thinking_start\",\"data\":{}}";
    SSE_FRAMING = "sse_framing" ["J-050"] Should "The model writes JSON Lines, not the frames of a transport.",
        broken "event: thinking_start\ndata: {}", correct "{\"event\":\"thinking_start\",\"data\":{}}";
    DATA_FLAT = "data_flat" ["J-050"] Should "The fields of an event stand in its `data`.",
        broken "{\"event\":\"final_delta\",\"text\":\"x\"}", correct "{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}";
    LINES_GLUED = "lines_glued" ["J-050"] Must "Each event stands on a line of its own.",
        broken "{\"event\":\"thinking_end\",\"data\":{}}{\"event\":\"final_end\",\"data\":{}}",
        correct "{\"event\":\"thinking_end\",\"data\":{}}\n{\"event\":\"final_end\",\"data\":{}}";
    LINES_PRETTY = "lines_pretty" ["J-051"] Must "Each event stands on one line.",
        broken "{\n  \"event\": \"final_end\",\n  \"data\": {}\n}", correct "{\"event\":\"final_end\",\"data\":{}}";
    LINES_IN_ARRAY = "lines_in_array" ["J-051"] Must "Events are lines, not items of an array.",
        broken "[{\"event\":\"thinking_end\",\"data\":{}}]", correct "{\"event\":\"thinking_end\",\"data\":{}}";
    LINE_NOT_OBJECT = "line_not_object" ["J-051"] Must "Each line is a JSON object.",
        broken "Here is the plan:", correct "{\"event\":\"thinking_start\",\"data\":{}}";
    LINE_CUT = "line_cut" ["J-056"] Must "The last line is complete.",
        broken "{\"event\":\"final_delta\",\"data\":{\"te", correct "{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}";
    EVENT_MISSING = "event_missing" ["J-051"] Must "Each line names its event.",
        broken "{\"text\":\"x\"}", correct "{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}";
    EVENT_UNKNOWN = "event_unknown" ["J-051"] Must "Only the events of the contract exist.",
        broken "{\"event\":\"progress\",\"data\":{}}", correct "{\"event\":\"thinking_start\",\"data\":{}}";
    EVENT_SPOOFED = "event_spoofed" ["J-052"] Must "A model writes no system events.",
        broken "{\"event\":\"completed\"}", correct "{\"event\":\"final_end\",\"data\":{}}";
    FIELD_MISSING = "field_missing" ["J-051"] Must "An event has all its fields.",
        broken "{\"event\":\"final_delta\",\"data\":{}}", correct "{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}";
    FIELD_TYPE = "field_type" ["J-002", "J-003", "J-009", "J-011", "J-013", "J-051"] Must "The fields of an event have their types.",
        broken "{\"event\":\"serp_summary\",\"data\":{\"text\":5}}",
        correct "{\"event\":\"serp_summary\",\"data\":{\"text\":\"The user wants a plan.\"}}";
    FIELD_UNEXPECTED = "field_unexpected" ["J-006", "J-012", "J-014"] Must
        "`thinking_start`, `thinking_end` and `final_end` have no fields.",
        broken "{\"event\":\"thinking_start\",\"data\":{\"id\":1}}", correct "{\"event\":\"thinking_start\",\"data\":{}}";
    SUMMARY_DUPLICATE = "serp_summary_duplicate" ["J-002"] Must "There is at most one `serp_summary`.",
        broken "two `serp_summary` lines", correct "one `serp_summary` line";
    SUMMARY_EMPTY = "serp_summary_empty" ["J-002"] Must "The summary is not blank.",
        broken "{\"event\":\"serp_summary\",\"data\":{\"text\":\" \"}}",
        correct "{\"event\":\"serp_summary\",\"data\":{\"text\":\"The user wants a plan.\"}}";
    SUMMARY_MARKUP = "serp_summary_markup" ["J-002"] Must "The summary is plain text.",
        broken "{\"event\":\"serp_summary\",\"data\":{\"text\":\"<b>x</b>\"}}",
        correct "{\"event\":\"serp_summary\",\"data\":{\"text\":\"x\"}}";
    SUMMARY_LATE = "serp_summary_late" ["J-020"] Must "The summary comes before `thinking_start`.",
        broken "`serp_summary` after `thinking_start`", correct "`serp_summary`, then `thinking_start`";
    QUERIES_DUPLICATE = "serp_queries_duplicate_event" ["J-003"] Must "There is at most one `serp_queries`.",
        broken "two `serp_queries` lines", correct "one `serp_queries` line";
    QUERIES_MISPLACED = "serp_queries_misplaced" ["J-021"] Must
        "`serp_queries` comes between the last `final_delta` and `final_end`.",
        broken "`serp_queries`, then `final_delta`", correct "`final_delta`, `serp_queries`, `final_end`";
    THINKING_START_MISSING = "thinking_start_missing" ["J-006"] Must "There is one `thinking_start`.",
        broken "`final_delta` as the first line", correct "`thinking_start` first";
    THINKING_START_DUPLICATE = "thinking_start_duplicate" ["J-006"] Must "There is one `thinking_start`.",
        broken "two `thinking_start` lines", correct "one `thinking_start` line";
    PHASE_ID_INVALID = "phase_id_invalid" ["J-007", "J-061"] Must "The id of a phase is a positive integer.",
        broken "{\"event\":\"phase_start\",\"data\":{\"id\":0,\"title\":\"t\"}}",
        correct "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"t\"}}";
    PHASE_ID_NOT_INCREASING = "phase_id_not_increasing" ["J-008", "J-061"] Must "The ids of the phases increase.",
        broken "phases 1, 1", correct "phases 1, 2";
    PHASE_ID_NOT_CONSECUTIVE = "phase_id_not_consecutive" ["J-008"] Must
        "The ids of the phases are 1, 2, 3, ... without gaps.", broken "phases 1, 3", correct "phases 1, 2";
    TITLE_EMPTY = "title_empty" ["J-009", "J-062"] Must "The title of a phase is not blank.",
        broken "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"\"}}",
        correct "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"Goal\"}}";
    DELTA_NOT_CURRENT = "phase_delta_not_current" ["J-010", "J-063"] Must
        "A delta belongs to the phase that started last.",
        broken "a delta for phase 1 after phase 2 started", correct "a delta for phase 2";
    DELTA_UNKNOWN = "phase_delta_unknown" ["J-010", "J-017", "J-063"] Must "A delta belongs to a phase that started.",
        broken "a delta for phase 9 that never started", correct "`phase_start` 1, then a delta for phase 1";
    DELTA_EMPTY = "delta_empty" ["J-011", "J-013"] Must "The text of a delta is not empty.",
        broken "{\"event\":\"final_delta\",\"data\":{\"text\":\"\"}}",
        correct "{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}";
    THINKING_END_MISSING = "thinking_end_missing" ["J-012"] Must "There is one `thinking_end`.",
        broken "no `thinking_end`", correct "`thinking_end` after the last phase";
    THINKING_END_DUPLICATE = "thinking_end_duplicate" ["J-012"] Must "There is one `thinking_end`.",
        broken "two `thinking_end` lines", correct "one `thinking_end` line";
    FINAL_DELTA_MISSING = "final_delta_missing" ["J-013"] Must "There is a `final_delta`.",
        broken "`thinking_end`, `final_end`", correct "`thinking_end`, `final_delta`, `final_end`";
    FINAL_END_MISSING = "final_end_missing" ["J-014"] Must "There is one `final_end`.",
        broken "no `final_end`", correct "`final_end` at the end";
    FINAL_END_DUPLICATE = "final_end_duplicate" ["J-014"] Must "There is one `final_end`.",
        broken "two `final_end` lines", correct "one `final_end` line";
    ORDER_INVALID = "order_invalid" ["J-015", "J-060"] Must "The events come in the order of the grammar.",
        broken "`phase_start`, then `thinking_start`", correct "`thinking_start`, then `phase_start`";
    FINAL_BEFORE_THINKING_END = "final_before_thinking_end" ["J-016"] Must
        "No `final_delta` comes before `thinking_end`.",
        broken "`thinking_start`, `final_delta`", correct "`thinking_end`, `final_delta`";
    AFTER_FINAL_END = "event_after_final_end" ["J-018"] Must "Nothing follows `final_end`.",
        broken "`final_end`, `final_delta`", correct "`final_delta`, `final_end`";
    SINGLE_PHASE = "single_phase" ["J-019"] Info "Two or more phases are recommended.",
        broken "one phase", correct "two phases";
    PHASE_AFTER_THINKING_END = "phase_after_thinking_end" ["J-022"] Must "No phase comes after `thinking_end`.",
        broken "`thinking_end`, `phase_start`", correct "`phase_start`, `thinking_end`";
    PHASE_MISSING = "phase_missing" ["J-023"] Must "There is at least one phase.",
        broken "`thinking_start`, `thinking_end`", correct "`thinking_start`, `phase_start`, `thinking_end`";
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "Sizes stay within the limits.",
        broken "70,000 bytes of answer before `thinking_end`", correct "`thinking_end` before the answer";
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        broken "the example of the instructions, word for word", correct "an answer to the request";
}
