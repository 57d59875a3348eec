//! Table of the rules of Filament (F-100 to F-237).

use crate::dialect::marker;
use crate::finding::rules;

// Pieces of replies and valid replies, from which the examples of the rules are made.

macro_rules! content {
    () => {
        "<content>\nThe gate is open.\n</content>\n"
    };
}
macro_rules! reply {
    ($($part:expr),+) => {
        concat!(content!(), $($part),+)
    };
}
macro_rules! update {
    ($operations:literal) => {
        reply!("<variable_update>\n", $operations, "\n</variable_update>\n")
    };
}

const GOOD: &str = concat!("<thought>\nWho holds the key?\n</thought>\n", content!());
const UPDATE: &str = update!("[[\"ADD\", \"gold\", 5]]");
const CHOICE: &str =
    reply!("<choice><prompt>Go?</prompt><options><option id=\"y\">Yes</option></options></choice>\n");
const MEDIA: &str = reply!("<media type=\"image\" src=\"a/b.png\" alt=\"the gate\" />\n");
const COMPONENT: &str = reply!("<ui_component view=\"map.small\">\n{\"zoom\": 2}\n</ui_component>\n");
const CALL: &str = reply!("<tool_call name=\"roll\">\n{\"sides\": 6}\n</tool_call>\n");
// Options with which some examples are read.
const TOOLS: &str = r#"tools={"roll":{"type":"object","properties":{"sides":{"type":"integer"}}},"hide":{"type":"object","x-callers":["nobody"]}}"#;
const STRUCTURE: &str = r#"filament.structure={"mandatory":["thought","content"],"optional":["status_bar"],"dependency":{"content":"thought"}}"#;

rules! {
    TAG_ALIAS = "tag_alias" ["F-140", "F-141", "R-69"] Should
        "Elements have their current names, not earlier or later ones.",
        broken concat!("<think>Who holds the key?</think>\n", content!()), correct GOOD;
    LEGACY_FORM = "legacy_form" ["F-140"] Must "A reply is written in the current form.",
        broken reply!("<state_update>\n[[\"ADD\", \"gold\", 5]]\n</state_update>\n"), correct UPDATE;
    NEWER_FORM = "newer_form" ["F-141"] Should "A reply is written in the form of its version.",
        broken reply!("<choice>{\"prompt\": \"Go?\", \"options\": [{\"id\": \"y\", \"text\": \"Yes\"}]}</choice>\n"),
        correct CHOICE;
    COMMENT_UNCLOSED = "comment_unclosed" ["F-103"] Must "A comment is closed.",
        broken "<content>\nThe gate is open. <!-- who has the key?\n</content>\n", correct GOOD;
    OPERATION_FORM = "operation_form" ["F-235"] Must "An operation is a list: its name, a path, perhaps a value.",
        broken update!("[{\"op\": \"ADD\", \"path\": \"gold\", \"value\": 5}]"), correct UPDATE;
    OPERATIONS_MISSING = "operations_missing" ["F-235"] Must "A `variable_update` has a list of operations.",
        broken update!("She has more gold now."), correct UPDATE;
    COMMAND_INVALID = "command_invalid" ["F-140"] Must "A command has a name, a path and values, and ends with `);`.",
        broken reply!("<UpdateVariable>\n_.set('gold', 5);\n_.sett('gold', 5);\n</UpdateVariable>\n"), correct UPDATE;
    CALL_INVALID = "tool_call_invalid" ["F-120", "R-95"] Must "A `tool_call` has a name, and a JSON object.",
        with [TOOLS],
        broken reply!("<tool_call>\n{\"sides\": 6}\n</tool_call>\n"), correct CALL;
    CALL_FORM = "tool_call_form" ["F-120"] Must "The name of a tool is an attribute, the body its arguments.",
        with [TOOLS],
        broken reply!("<tool_call>\n{\"name\": \"roll\", \"arguments\": {\"sides\": 6}}\n</tool_call>\n"), correct CALL;
    TOOL_UNKNOWN = "tool_unknown" ["F-235", "R-96"] Must "A call names a registered tool.",
        with [TOOLS],
        broken reply!("<tool_call name=\"rol\">\n{\"sides\": 6}\n</tool_call>\n"), correct CALL;
    ARGS_INVALID = "tool_args_invalid" ["F-235"] Must "Arguments satisfy the schema of their tool.",
        with [TOOLS],
        broken reply!("<tool_call name=\"roll\">\n{\"sides\": \"six\"}\n</tool_call>\n"), correct CALL;
    ARGS_MISSING = "args_missing" ["R-83"] Must "Only a tool that needs no arguments is called without any.",
        with [r#"tools={"roll":{"type":"object","properties":{"sides":{"type":"integer"}},"required":["sides"]}}"#],
        broken reply!("<tool_call name=\"roll\"></tool_call>\n"), correct CALL;
    TOOL_FORBIDDEN = "tool_forbidden" ["F-120"] Must "A tool is called only by callers that it allows.",
        with [TOOLS],
        broken reply!("<tool_call name=\"hide\">\n{}\n</tool_call>\n"), correct CALL;
    TOOL_CALL_CUT = "tool_call_cut" ["R-68"] Must "A reply that calls a tool is not cut.",
        with ["finish=length", TOOLS],
        broken CALL, correct GOOD;
    CHOICE_OPTIONS_MISSING = "choice_options_missing" ["F-132"] Must "A `choice` has options.",
        broken reply!("<choice>Go or stay?</choice>\n"), correct CHOICE;
    CHOICE_FORM = "choice_form" ["F-132"] Should "Options are inside `options`, each in an `option`.",
        broken reply!("<choice><prompt>Go?</prompt><option id=\"y\">Yes</option></choice>\n"), correct CHOICE;
    CHOICE_ID_MISSING = "choice_id_missing" ["F-132"] Info "An option has an id.",
        broken reply!("<choice><prompt>Go?</prompt><options><option>Yes</option></options></choice>\n"), correct CHOICE;
    CHOICE_ID_DUPLICATE = "choice_id_duplicate" ["F-132"] Must "The ids of options differ.",
        broken reply!("<choice><prompt>Go?</prompt><options><option id=\"y\">Yes</option><option id=\"y\">No</option>\
            </options></choice>\n"),
        correct CHOICE;
    CHOICES_FROM_TEXT = "choices_from_text" ["F-142"] Info "Options are inside a `choice`.",
        with ["filament.choices_from_text=true"],
        broken "<content>\nGo?\n\n1. Yes\n2. No\n</content>\n", correct GOOD;
    DETAILS_MARKUP = "details_markup" ["F-235"] Info "Folded text has no markup but inline HTML.",
        broken reply!("<details><summary>Her things</summary><HP>7</HP></details>\n"),
        correct reply!("<details><summary>Her things</summary>HP 7</details>\n");
    COMPONENT_INVALID = "component_invalid" ["F-133"] Must
        "A `ui_component` has a view, `namespace.component`, and a JSON object.",
        broken reply!("<ui_component view=\"map\">\n{\"zoom\": 2}\n</ui_component>\n"), correct COMPONENT;
    MEDIA_REFUSED = "media_refused" ["F-134"] Must
        "The `src` of a `media` is a relative path, or an `https:` or `asset:` URL.",
        broken reply!("<media type=\"image\" src=\"http://example.com/a.png\" alt=\"the gate\" />\n"), correct MEDIA;
    MEDIA_TYPE = "media_type" ["F-134"] Must "The `type` of a `media` is `image`, `audio` or `video`.",
        broken reply!("<media type=\"png\" src=\"a/b.png\" alt=\"the gate\" />\n"), correct MEDIA;
    HEAD_MISSING = "head_missing" ["F-201"] Must "A reply begins with a tag.",
        broken "The gate is open.\n</content>\n", correct GOOD;
    TAG_UNCLOSED = "tag_unclosed" ["F-230"] Must "Every tag is closed.",
        broken "<content>\nThe gate is open.\n", correct GOOD;
    TAG_REDUNDANT = "tag_redundant" ["F-203"] Must "A `content` or `thought` element is not split into two.",
        broken "<content>\nThe gate</content><content> is open.\n</content>\n", correct GOOD;
    TAG_REPEATED = "tag_repeated" ["F-200"] Should "A mandatory tag occurs once.",
        broken reply!("<status_bar><time>7</time></status_bar>\n", content!()), correct GOOD;
    TAG_CUT = "tag_cut" ["F-204"] Must "A reply does not end inside a tag.",
        broken "<content>\nThe gate is open.\n</content>\n<status_", correct GOOD;
    TAG_SPELLING = "tag_spelling" ["F-205"] Must "Tags are written exactly.",
        broken "<Content>\nThe gate is open.\n</content>\n", correct GOOD;
    TAG_MISMATCHED = "tag_mismatched" ["F-205"] Must "An element is closed by the name it was opened by.",
        broken concat!("<thought>\nWho holds the key?\n</think>\n", content!()), correct GOOD;
    TAG_UNOPENED = "tag_unopened" ["F-205"] Must "Every closing tag has an opening tag.",
        broken reply!("</choice>\n"), correct GOOD;
    TAG_UNEXPECTED = "tag_unexpected" ["F-234", "F-206"] Must "A reply has only the tags of its structure.",
        with [STRUCTURE],
        broken concat!("<thought>\nWho holds the key?\n</thought>\n", content!(), "<choice>Go?</choice>\n"),
        correct GOOD;
    TAG_MISSING = "tag_missing" ["F-234"] Must "All mandatory tags are present.",
        with [STRUCTURE],
        broken content!(), correct GOOD;
    TAG_ORDER = "tag_order" ["F-234"] Must "A tag comes after the tag that it must follow.",
        with [STRUCTURE],
        broken concat!(content!(), "<thought>\nWho holds the key?\n</thought>\n"), correct GOOD;
    TEXT_OUTSIDE_TAGS = "text_outside_tags" ["F-233"] Must "All output is inside tags.",
        broken reply!("Have fun!\n"), correct GOOD;
    ENVELOPE = "envelope" ["F-141"] Info "A reply has no element around it.",
        broken concat!("<filament_output>\n", content!(), "</filament_output>\n"), correct GOOD;
    JSON_NOT_STRICT = "json_not_strict" ["F-232"] Must
        "JSON is strict: double quotes, no trailing comma, no comment.",
        broken update!("[['ADD', 'gold', 5]]"), correct UPDATE;
    JSON_INCOMPLETE = "json_incomplete" ["F-214"] Must "A block that acts is complete as written.",
        broken update!("[[\"ADD\", \"gold\", 5]"), correct UPDATE;
    BLOCK_CUT = "block_cut" ["F-214"] Must "A reply is not cut within a block.",
        with ["finish=length"],
        broken reply!("<variable_update>\n[[\"ADD\", \"gold\", 5]]"), correct UPDATE;
    CONTENT_MISSING = "content_missing" ["F-209"] Must "A reply has a `content` element.",
        broken "<thought>\nWho holds the key?\n</thought>\n", correct GOOD;
    BLOCK_IN_THOUGHT = "block_in_thought" ["R-80", "R-93"] Must "A block that acts comes after the thought, not inside it.",
        broken concat!("<thought>\nShe gains: <variable_update>[[\"ADD\", \"gold\", 5]]</variable_update>\n</thought>\n", content!()),
        correct UPDATE;
    VALUE_GUESSED = "value_guessed" ["R-81"] Must
        "A value that acts is JSON, or can only mean one value.",
        broken update!("[[\"SET\", \"gold\", 100 - 30], [\"ADD\", \"gold\", 5]]"), correct UPDATE;
    NUMBER_OUT_OF_RANGE = "number_out_of_range" ["R-81"] Must "A number in a call can be kept exactly.",
        with [TOOLS],
        broken reply!("<tool_call name=\"roll\">\n{\"sides\": 12345678901234567890123}\n</tool_call>\n"), correct CALL;
    RAW_TEXT = "raw_text" ["F-210"] Info "The contents of a block can be read.",
        broken update!("She has more gold now."), correct UPDATE;
    FENCED_REPLY = "fenced_reply" ["F-213"] Must "A reply is not wrapped in a code fence.",
        broken concat!("```xml\n", content!(), "```\n"), correct GOOD;
    SELF_CLOSING = "self_closing" ["F-231"] Must "No tag but `media` closes itself.",
        broken concat!("<thought/>\n", content!()), correct GOOD;
    ATTRIBUTE_UNUSED = "attribute_unused" ["F-208"] Info "A tag has only the attributes that are defined for it.",
        broken "<content lang=\"en\">\nThe gate is open.\n</content>\n", correct GOOD;
    LIMIT_EXCEEDED = "limit_exceeded" ["F-222"] Must "Sizes stay within the limits.",
        with ["limits.value=32"],
        broken update!("[[\"SET\", \"name\", \"a name that is longer than a block may be\"]]"), correct GOOD;
    PARSING_ERROR_MARKER = marker::DECLARATION ["J-055"], correct GOOD;
    PARSING_ERROR_FORM = marker::FORM ["R-72"], broken "<<ParsingError>>.", correct GOOD;
    EXAMPLE_ECHO = "example_echo" ["X-011"] Should "A reply does not repeat an example of the instructions.",
        with [concat!("examples=", content!())],
        broken content!(), correct GOOD;
}

/// Rules about `<<ParsingError>>`, the failure marker, with which the model declares that it could not reply.
pub(super) const MARKER_RULES: marker::MarkerRules =
    marker::MarkerRules { declaration: PARSING_ERROR_MARKER, form: PARSING_ERROR_FORM };
