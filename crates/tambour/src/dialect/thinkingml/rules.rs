//! The rules of ThinkingML (T-001 to T-067).

use crate::finding::rules;

rules! {
    ORDER_INVALID = "order_invalid" ["T-001", "T-007", "T-061"] Must
        "The elements come in the order think, serp, thinking, final.",
        broken "<final>\na\n</final>\n<thinking><phase id=\"1\"><title>t</title></phase></thinking>",
        correct "<thinking><phase id=\"1\"><title>t</title></phase></thinking>\n<final>\na\n</final>";
    THINK_DUPLICATE = "think_duplicate" ["T-002"] Must "`<think>` occurs at most once.",
        broken "<think>a</think><think>b</think><thinking>...", correct "<think>a b</think><thinking>...";
    TAG_IN_PLAIN_TEXT = "tag_in_plain_text" ["T-003", "T-006"] Must
        "`<think>` and `<serp>` hold plain text, no tags.",
        broken "<serp><b>x</b></serp>", correct "<serp>x</serp>";
    SERP_DUPLICATE = "serp_duplicate" ["T-004"] Must "`<serp>` occurs at most once.",
        broken "<serp>a</serp><serp>b</serp><thinking>...", correct "<serp>a</serp><thinking>...";
    SERP_AFTER_THINKING = "serp_after_thinking" ["T-005"] Must "`<serp>` stands before `<thinking>`.",
        broken "<thinking>...</thinking><serp>x</serp><final>...",
        correct "<serp>x</serp><thinking>...</thinking><final>...";
    THINKING_MISSING = "thinking_missing" ["T-008", "T-061"] Must "There is exactly one `<thinking>`.",
        broken "<final>\na\n</final>", correct "<thinking>...</thinking>\n<final>\na\n</final>";
    THINKING_DUPLICATE = "thinking_duplicate" ["T-008"] Must "There is exactly one `<thinking>`.",
        broken "<thinking>...</thinking><thinking>...</thinking><final>...",
        correct "<thinking>...</thinking><final>...";
    FINAL_MISSING = "final_missing" ["T-009", "T-061"] Must "There is exactly one `<final>`.",
        broken "<thinking>...</thinking>", correct "<thinking>...</thinking><final>...</final>";
    FINAL_DUPLICATE = "final_duplicate" ["T-009"] Must "There is exactly one `<final>`.",
        broken "...<final>a</final><final>b</final>", correct "...<final>a</final>";
    FINAL_NOT_ADJACENT = "final_not_adjacent" ["T-010"] Must
        "Only white space stands between `</thinking>` and `<final>`.",
        broken "</thinking> so: <final>", correct "</thinking>\n<final>";
    FINAL_INSIDE_THINKING = "final_inside_thinking" ["T-011", "T-061"] Must "`</thinking>` precedes `<final>`.",
        broken "<thinking>...<final>...</final></thinking>", correct "<thinking>...</thinking><final>...</final>";
    FINAL_LITERAL_IN_THINKING = "final_literal_in_thinking" ["T-013"] Must
        "The text of `<thinking>` writes `<final>` and `</final>` escaped.",
        broken "I will use <final> here", correct "I will use &lt;final&gt; here";
    TEXT_OUTSIDE_STRUCTURE = "text_outside_structure" ["T-015"] Must
        "Nothing but white space stands outside the elements.",
        broken "Sure! <thinking>...", correct "<thinking>...";
    UNCLOSED_ELEMENT = "unclosed_element" ["T-016", "T-061"] Must "Every element is closed.",
        broken "<phase id=\"1\"><title>t</title>a</thinking>",
        correct "<phase id=\"1\"><title>t</title>a</phase></thinking>";
    FINAL_EMPTY = "final_empty" ["T-017"] Must "`<final>` has content other than the queries block.",
        broken "<final>\n<!-- <serp_queries>\n[]\n</serp_queries> -->\n</final>",
        correct "<final>\nHello.\n<!-- <serp_queries>\n[]\n</serp_queries> -->\n</final>";
    FENCED_REPLY = "fenced_reply" ["T-018"] Must "The reply is not wrapped in a code fence.",
        broken "```xml\n<thinking>...</final>\n```", correct "<thinking>...</final>";
    UNEXPECTED_TAG = "unexpected_tag" ["T-020", "T-029", "T-037", "T-062"] Must
        "Only the tags think, serp, thinking, phase, title and final exist.",
        broken "<final>a<br/>b</final>", correct "<final>a&lt;br/&gt;b</final>";
    TAG_CASE = "tag_case" ["T-021"] Must "Tag names are lower case.",
        broken "<Title>x</Title>", correct "<title>x</title>";
    PHASE_ID_MISSING = "phase_id_missing" ["T-022"] Must "`<phase>` carries an id.",
        broken "<phase>", correct "<phase id=\"1\">";
    PHASE_ATTR_INVALID = "phase_attr_invalid" ["T-022"] Must
        "`<phase>` is written exactly `<phase id=\"N\">`.",
        broken "<phase id='1'>", correct "<phase id=\"1\">";
    PHASE_ID_INVALID = "phase_id_invalid" ["T-022", "T-031"] Must "The id of a phase is a positive integer.",
        broken "<phase id=\"one\">", correct "<phase id=\"1\">";
    ATTR_UNEXPECTED = "attr_unexpected" ["T-023"] Must "Only `<phase>` carries an attribute.",
        broken "<title lang=\"zh\">", correct "<title>";
    SELF_CLOSING = "self_closing" ["T-023"] Must "No tag closes itself.",
        broken "<phase id=\"1\"/>", correct "<phase id=\"1\">...</phase>";
    TAG_MISPLACED = "tag_misplaced" ["T-024"] Must
        "`phase` stands directly in `thinking`, `title` directly in `phase`, nothing in `final`.",
        broken "<final><phase id=\"9\">", correct "<final>&lt;phase id=\"9\"&gt;";
    PARSING_ERROR_MARKER = "parsing_error_marker" ["T-025", "T-060"] Must
        "The model did not declare that it failed.",
        broken "<<ParsingError>>", correct "<thinking>...</thinking><final>...</final>";
    PARSING_ERROR_EMBEDDED = "parsing_error_embedded" ["T-026", "T-060"] Must
        "The failure marker does not occur together with anything else.",
        broken "<final>a <<ParsingError>></final>", correct "<final>a</final>";
    COMMENT_IN_FINAL = "comment_in_final" ["T-027"] Should
        "`<final>` holds no comment but the queries block.",
        broken "<final>a <!-- note --></final>", correct "<final>a</final>";
    PHASE_MISSING = "phase_missing" ["T-030", "T-063"] Must "`<thinking>` has at least one phase.",
        broken "<thinking>text</thinking>",
        correct "<thinking><phase id=\"1\"><title>t</title>text</phase></thinking>";
    PHASE_ID_NOT_INCREASING = "phase_id_not_increasing" ["T-032"] Must "The ids of the phases increase.",
        broken "<phase id=\"2\">...<phase id=\"1\">", correct "<phase id=\"1\">...<phase id=\"2\">";
    PHASE_ID_NOT_CONSECUTIVE = "phase_id_not_consecutive" ["T-033"] Must
        "The ids of the phases are 1, 2, 3, ... without gaps.",
        broken "<phase id=\"1\">...<phase id=\"3\">", correct "<phase id=\"1\">...<phase id=\"2\">";
    TITLE_MISSING = "title_missing" ["T-034", "T-063"] Must "Each phase has a title.",
        broken "<phase id=\"1\">text</phase>", correct "<phase id=\"1\"><title>t</title>text</phase>";
    TITLE_DUPLICATE = "title_duplicate" ["T-034"] Must "Each phase has one title.",
        broken "<phase id=\"1\"><title>a</title><title>b</title></phase>",
        correct "<phase id=\"1\"><title>a</title></phase>";
    TEXT_BEFORE_TITLE = "text_before_title" ["T-035"] Must "The title comes first in its phase.",
        broken "<phase id=\"1\">text<title>t</title></phase>",
        correct "<phase id=\"1\"><title>t</title>text</phase>";
    TITLE_EMPTY = "title_empty" ["T-036"] Must "The title is not blank.",
        broken "<title> </title>", correct "<title>Goal</title>";
    TEXT_BETWEEN_PHASES = "text_between_phases" ["T-038"] Must
        "Only white space stands directly inside `<thinking>`.",
        broken "</phase> stray <phase id=\"2\">", correct "</phase>\n<phase id=\"2\">";
    PHASE_NESTED = "phase_nested" ["T-039"] Must "Phases do not nest.",
        broken "<phase id=\"1\"><title>a</title><phase id=\"2\">",
        correct "<phase id=\"1\"><title>a</title></phase><phase id=\"2\">";
    SERP_BLOCK_MISSING = "serp_block_missing" ["T-040", "T-064"] Must "`<final>` ends with the queries block.",
        broken "<final>\na\n</final>",
        correct "<final>\na\n<!-- <serp_queries>\n[\"q\"]\n</serp_queries> -->\n</final>";
    SERP_BLOCK_FORMAT = "serp_block_format" ["T-041"] Must
        "The queries block is three lines: opening, JSON array, closing.",
        broken "<!-- <serp_queries>[\"q\"]</serp_queries> -->",
        correct "<!-- <serp_queries>\n[\"q\"]\n</serp_queries> -->";
    SERP_BLOCK_NOT_LAST = "serp_block_not_last" ["T-042"] Must
        "Only white space stands between the queries block and `</final>`.",
        broken "</serp_queries> -->\nbye</final>", correct "bye\n<!-- <serp_queries>...";
    SERP_BLOCK_DUPLICATE = "serp_block_duplicate" ["T-043"] Must "There is one queries block.",
        broken "two blocks in one `<final>`", correct "one block at the end of `<final>`";
    LIMIT_EXCEEDED = "limit_exceeded" ["X-007"] Must "Sizes stay within the limits.",
        broken "a title of 70,000 bytes", correct "a title of 70 bytes";
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        broken "the example of the instructions, word for word", correct "an answer to the request";
}

/// T-040 with `thinkingml.serp_block=optional`.
pub(super) const SERP_BLOCK_OPTIONAL: &crate::finding::Rule =
    &crate::finding::Rule { level: crate::finding::Level::Should, ..*SERP_BLOCK_MISSING };
