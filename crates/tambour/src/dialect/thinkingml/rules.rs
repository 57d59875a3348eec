//! The rules of ThinkingML (T-001 to T-067).

use crate::dialect::marker;
use crate::finding::rules;

// Parts of the examples, so that each shows its own fault and nothing else.
macro_rules! phase {
    () => {
        "<phase id=\"1\">\n<title>Goal</title>\nA deeper squat.\n</phase>\n"
    };
}
macro_rules! phase2 {
    () => {
        "<phase id=\"2\">\n<title>Plan</title>\nThree steps.\n</phase>\n"
    };
}
macro_rules! thinking {
    () => {
        thinking!(phase!())
    };
    ($($part:expr),+) => {
        concat!("<thinking>\n", $($part,)+ "</thinking>\n")
    };
}
macro_rules! block {
    () => {
        "<!-- <serp_queries>\n[\"squat depth\"]\n</serp_queries> -->\n"
    };
}
macro_rules! answer {
    () => {
        answer!("Warm up first.\n")
    };
    ($text:literal) => {
        concat!("<final>\n", $text, block!(), "</final>\n")
    };
}
macro_rules! reply {
    ($($thinking:expr),+) => {
        concat!(thinking!($($thinking),+), answer!())
    };
}
macro_rules! good {
    () => {
        reply!(phase!())
    };
}

const GOOD: &str = good!();

rules! {
    ORDER_INVALID = "order_invalid" ["T-001", "T-007", "T-061"] Must
        "The elements come in the order think, serp, thinking, final.",
        broken concat!(answer!(), thinking!()), correct GOOD;
    THINK_DUPLICATE = "think_duplicate" ["T-002"] Must "`<think>` occurs at most once.",
        broken concat!("<think>Knees?</think>\n<think>Ankles?</think>\n", good!()),
        correct concat!("<think>Knees? Ankles?</think>\n", good!());
    TAG_IN_PLAIN_TEXT = "tag_in_plain_text" ["T-003", "T-006"] Must
        "`<think>` and `<serp>` hold plain text, no tags.",
        broken concat!("<think>Knees or <b>ankles</b>?</think>\n", good!()),
        correct concat!("<think>Knees or ankles?</think>\n", good!());
    SERP_DUPLICATE = "serp_duplicate" ["T-004"] Must "`<serp>` occurs at most once.",
        broken concat!("<serp>A deeper squat.</serp>\n<serp>A squat.</serp>\n", good!()),
        correct concat!("<serp>A deeper squat.</serp>\n", good!());
    SERP_AFTER_THINKING = "serp_after_thinking" ["T-005"] Must "`<serp>` comes before `<thinking>`.",
        broken concat!(thinking!(), "<serp>A deeper squat.</serp>\n", answer!()),
        correct concat!("<serp>A deeper squat.</serp>\n", good!());
    THINKING_MISSING = "thinking_missing" ["T-008", "T-061"] Must "There is exactly one `<thinking>`.",
        broken answer!(), correct GOOD;
    THINKING_DUPLICATE = "thinking_duplicate" ["T-008"] Must "There is exactly one `<thinking>`.",
        broken concat!(thinking!(), good!()), correct GOOD;
    FINAL_MISSING = "final_missing" ["T-009", "T-061"] Must "There is exactly one `<final>`.",
        broken thinking!(), correct GOOD;
    FINAL_DUPLICATE = "final_duplicate" ["T-009"] Must "There is exactly one `<final>`.",
        broken concat!(good!(), answer!()), correct GOOD;
    FINAL_NOT_ADJACENT = "final_not_adjacent" ["T-010"] Must
        "There is only white space between `</thinking>` and `<final>`.",
        broken concat!(thinking!(), "So:\n", answer!()), correct GOOD;
    FINAL_INSIDE_THINKING = "final_inside_thinking" ["T-011", "T-061"] Must "`</thinking>` precedes `<final>`.",
        broken thinking!(phase!(), answer!()), correct GOOD;
    FINAL_LITERAL_IN_THINKING = "final_literal_in_thinking" ["T-013"] Must
        "The text of `<thinking>` writes `<final>` and `</final>` escaped.",
        broken reply!("<phase id=\"1\">\n<title>Goal</title>\nI will use <final> here.\n</phase>\n"),
        correct reply!("<phase id=\"1\">\n<title>Goal</title>\nI will use &lt;final&gt; here.\n</phase>\n");
    TEXT_OUTSIDE_STRUCTURE = "text_outside_structure" ["T-015"] Must
        "There is only white space outside the elements.",
        broken concat!("Sure!\n", good!()), correct GOOD;
    UNCLOSED_ELEMENT = "unclosed_element" ["T-016", "T-061"] Must "Every element is closed.",
        broken reply!("<phase id=\"1\">\n<title>Goal</title>\nA deeper squat.\n"),
        correct GOOD;
    FINAL_EMPTY = "final_empty" ["T-017"] Must "`<final>` has content other than the queries block.",
        broken concat!(thinking!(), answer!("")), correct GOOD;
    THINK_MISMATCHED = "think_mismatched" ["R-69"] Must "A draft is closed by the mark that opened it.",
        broken concat!("<think>Knees or ankles?</thought>\n", good!()), correct GOOD;
    FENCED_REPLY = "fenced_reply" ["T-018"] Must "The reply is not wrapped in a code fence.",
        broken concat!("```xml\n", good!(), "```\n"), correct GOOD;
    UNEXPECTED_TAG = "unexpected_tag" ["T-020", "T-029", "T-037", "T-062"] Must
        "Only the tags think, serp, thinking, phase, title and final exist.",
        broken concat!(thinking!(), answer!("Warm up.<br/>Squat.\n")),
        correct concat!(thinking!(), answer!("Warm up.&lt;br/&gt;Squat.\n"));
    TAG_CASE = "tag_case" ["T-021"] Must "Tag names are lower case.",
        broken reply!("<phase id=\"1\">\n<Title>Goal</Title>\nA deeper squat.\n</phase>\n"),
        correct GOOD;
    PHASE_ID_MISSING = "phase_id_missing" ["T-022"] Must "`<phase>` carries an id.",
        broken reply!("<phase>\n<title>Goal</title>\nA deeper squat.\n</phase>\n"),
        correct GOOD;
    PHASE_ATTR_INVALID = "phase_attr_invalid" ["T-022"] Must
        "`<phase>` is written exactly `<phase id=\"N\">`.",
        broken reply!("<phase id='1'>\n<title>Goal</title>\nA deeper squat.\n</phase>\n"),
        correct GOOD;
    PHASE_ID_INVALID = "phase_id_invalid" ["T-022", "T-031"] Must "The id of a phase is a positive integer.",
        broken reply!("<phase id=\"one\">\n<title>Goal</title>\nA deeper squat.\n</phase>\n"),
        correct GOOD;
    ATTR_UNEXPECTED = "attr_unexpected" ["T-023"] Must "Only `<phase>` carries an attribute.",
        broken reply!("<phase id=\"1\">\n<title lang=\"en\">Goal</title>\nA deeper squat.\n</phase>\n"),
        correct GOOD;
    SELF_CLOSING = "self_closing" ["T-023"] Must "No tag closes itself.",
        broken reply!("<phase id=\"1\"/>\n"), correct GOOD;
    TAG_MISPLACED = "tag_misplaced" ["T-024"] Must
        "`phase` is directly in `thinking`, `title` directly in `phase`; `final` contains no element.",
        broken concat!(thinking!(), answer!("Mind the <phase id=\"9\"> tag.\n")),
        correct concat!(thinking!(), answer!("Mind the &lt;phase id=\"9\"&gt; tag.\n"));
    PARSING_ERROR_MARKER = marker::DECLARATION ["T-025", "T-060"], correct GOOD;
    PARSING_ERROR_FORM = marker::FORM ["R-72"], correct GOOD;
    PARSING_ERROR_EMBEDDED = "parsing_error_embedded" ["T-026", "T-060"] Must
        "The failure marker does not occur together with anything else.",
        broken concat!(thinking!(), answer!("Sorry. <<ParsingError>>\n")), correct GOOD;
    COMMENT_IN_FINAL = "comment_in_final" ["T-027"] Should
        "`<final>` holds no comment but the queries block.",
        broken concat!(thinking!(), answer!("Warm up. <!-- how long? -->\n")), correct GOOD;
    PHASE_MISSING = "phase_missing" ["T-030", "T-063"] Must "`<thinking>` has at least one phase.",
        broken reply!("A deeper squat.\n"), correct GOOD;
    PHASE_ID_NOT_INCREASING = "phase_id_not_increasing" ["T-032"] Must "The ids of the phases increase.",
        broken reply!(phase!(), phase!()),
        correct reply!(phase!(), phase2!());
    PHASE_ID_NOT_CONSECUTIVE = "phase_id_not_consecutive" ["T-033"] Must
        "The ids of the phases are 1, 2, 3, ... without gaps.",
        broken reply!(phase2!()),
        correct GOOD;
    TITLE_MISSING = "title_missing" ["T-034", "T-063"] Must "Each phase has a title.",
        broken reply!("<phase id=\"1\">\nA deeper squat.\n</phase>\n"), correct GOOD;
    TITLE_DUPLICATE = "title_duplicate" ["T-034"] Must "Each phase has one title.",
        broken reply!("<phase id=\"1\">\n<title>Goal</title>\n<title>Plan</title>\n</phase>\n"),
        correct GOOD;
    TEXT_BEFORE_TITLE = "text_before_title" ["T-035"] Must "The title comes first in its phase.",
        broken reply!("<phase id=\"1\">\nA deeper squat.\n<title>Goal</title>\n</phase>\n"),
        correct GOOD;
    TITLE_EMPTY = "title_empty" ["T-036"] Must "The title is not blank.",
        broken reply!("<phase id=\"1\">\n<title> </title>\nA deeper squat.\n</phase>\n"),
        correct GOOD;
    TEXT_BETWEEN_PHASES = "text_between_phases" ["T-038"] Must
        "There is only white space directly inside `<thinking>`.",
        broken reply!(phase!(), "Next:\n", phase2!()),
        correct reply!(phase!(), phase2!());
    PHASE_NESTED = "phase_nested" ["T-039"] Must "Phases do not nest.",
        broken reply!("<phase id=\"1\">\n<title>Goal</title>\n<phase id=\"2\">\n<title>Plan</title>\n</phase>\n"),
        correct reply!("<phase id=\"1\">\n<title>Goal</title>\n</phase>\n<phase id=\"2\">\n<title>Plan</title>\n</phase>\n");
    SERP_BLOCK_MISSING = "serp_block_missing" ["T-040", "T-064"] Must "`<final>` ends with the queries block.",
        broken concat!(thinking!(), "<final>\nWarm up first.\n</final>\n"), correct GOOD;
    SERP_BLOCK_FORMAT = "serp_block_format" ["T-041"] Must
        "The queries block is three lines: opening, JSON array, closing.",
        broken concat!(
            thinking!(),
            "<final>\nWarm up first.\n<!-- <serp_queries>[\"squat depth\"]</serp_queries> -->\n</final>\n"
        ),
        correct GOOD;
    SERP_BLOCK_NOT_LAST = "serp_block_not_last" ["T-042"] Must
        "There is only white space between the queries block and `</final>`.",
        broken concat!(thinking!(), "<final>\n", block!(), "Warm up first.\n</final>\n"), correct GOOD;
    SERP_BLOCK_DUPLICATE = "serp_block_duplicate" ["T-043"] Must "There is one queries block.",
        broken concat!(thinking!(), "<final>\nWarm up first.\n", block!(), block!(), "</final>\n"),
        correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "Sizes stay within the limits.",
        with ["limits.hold=64"],
        broken concat!("<serp>A summary of more bytes than may be held back, which are sixty-four here.</serp>\n", good!()),
        correct concat!("<serp>A deeper squat.</serp>\n", good!());
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        with [concat!("examples=", good!())],
        broken GOOD, correct concat!(thinking!(), answer!("Stretch your ankles.\n"));
}

/// Rules about `<<ParsingError>>`, the failure marker, with which the model declares that it could not reply.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };

/// The rule [`SERP_BLOCK_MISSING`] at a lower level, for `thinkingml.serp_block=optional`.
pub(super) const SERP_BLOCK_OPTIONAL: &crate::finding::Rule =
    &crate::finding::Rule { level: crate::finding::RuleLevel::Should, ..*SERP_BLOCK_MISSING };
