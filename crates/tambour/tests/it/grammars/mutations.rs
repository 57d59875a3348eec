//! Broken replies are refused at the first wrong byte.

use serde_json::{Value, json};
use tambour::Options;
use tambour::dialect::find_dialect;
use tambour::grammar::GrammarFormat;

use super::engine::{Judgement, LarkEngine};
use super::gbnf::GbnfEngine;

/// Character in front of the first wrong byte of a reply; at its end, the reply is not complete.
const MARK: char = '⟦';

const PHASE: &str = "<thinking>\n<phase id=\"1\">\n<title>Goal</title>\nText.\n</phase>\n";
const PLAN: &str = "```json\n{\"thought\":\"t\",\"response_mode\":";
const CALL: &str = "```json\n{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":[";
const SAY: &str = "{\"assessment\":{\"understanding_level\":7,\"has_questions\":true,\"expressed_understanding\":false,\"reasoning\":\"r\"},";
const LINES: &str = "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"t\"}}\n";
const STORY: &str = "<thought>\nx\n</thought>\n<content>\ny\n</content>\n";

/// Checks that both engines refuse each reply, which is `before` and a row, at its mark.
fn check(name: &str, settings: &[(&str, Value)], rows: &[(&str, &str)]) {
    let mut options = Options::default();
    for (key, value) in settings {
        options.set(key, value.clone()).expect("a setting");
    }
    let entry = find_dialect(name).expect("a dialect");
    let grammar = tambour::policy::grammar(entry, &options).expect("it has one").expect("it is small");
    let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
    let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
    let mut complaints = Vec::new();
    for (before, row) in rows {
        let reply = format!("{before}{row}");
        let at = reply.find(MARK).expect("a mark");
        let text = reply.replace(MARK, "");
        let expected = if at == text.len() { Judgement::Unfinished } else { Judgement::Refused(at) };
        let found = [lark.judge(&text), gbnf.judge(&text)];
        if found != [expected; 2] {
            complaints.push(format!("{reply:?}: {found:?}, not {expected:?}"));
        }
    }
    assert!(rows.len() >= 20, "only {} rows", rows.len());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn broken_thinkingml_is_refused() {
    let answer = format!("{PHASE}</thinking>\n<final>\nAnswer.\n<!-- <serp_queries>\n");
    let many = format!("[\"a\",\"b\",\"c\",\"d\",\"e\"{MARK},\"f\"]");
    let long = format!("[\"{}{MARK}a\"]", "a".repeat(80));
    check(
        "thinkingml",
        &[],
        &[
            ("", "⟦Sure!\n<thinking>"),
            ("", "⟦```xml\n<thinking>"),
            ("", "<⟦final>"),
            ("", "<serp>a <⟦b>plan</b></serp>"),
            ("", "<serp>a</serp>\n<⟦serp>"),
            ("", "<think>a</think>\n<think⟦>"),
            ("", "<thinking⟦ a=\"b\">"),
            ("<thinking>\n", "<phase id=\"⟦2\">"),
            ("<thinking>\n", "<phase⟦>"),
            ("<thinking>\n", "<phase id=⟦'1'>"),
            ("<thinking>\n", "<phase id=\"1\"⟦/>"),
            ("<thinking>\n", "⟦Text."),
            ("<thinking>\n", "<⟦/thinking>"),
            ("<thinking>\n<phase id=\"1\">\n", "⟦Text."),
            ("<thinking>\n<phase id=\"1\">\n", "<⟦Title>"),
            ("<thinking>\n<phase id=\"1\">\n", "<title⟦ lang=\"en\">"),
            ("<thinking>\n<phase id=\"1\">\n", "<title> <⟦/title>"),
            ("<thinking>\n<phase id=\"1\">\n", "<title>a <⟦b>"),
            ("<thinking>\n<phase id=\"1\">\n<title>a</title>\nText <", "⟦final>"),
            ("<thinking>\n<phase id=\"1\">\n<title>a</title>\n<", "⟦title>"),
            (PHASE, "<phase id=\"⟦3\">"),
            (PHASE, "<⟦final>"),
            (PHASE, "⟦Next:"),
            (PHASE, "</thinking>\n⟦So:"),
            (PHASE, "</thinking>\n<⟦serp>"),
            (PHASE, "</thinking>\n⟦"),
            (PHASE, "</thinking>\n<final>\n<⟦!-- <serp_queries>"),
            (PHASE, "</thinking>\n<final>\nAnswer <⟦b>now</b>"),
            (PHASE, "</thinking>\n<final>\nAnswer.\n<⟦/final>"),
            (&answer, "⟦{"),
            (&answer, "[⟦1]"),
            (&answer, "[\"⟦ a\"]"),
            (&answer, "[\"a\"⟦\n]"),
            (&answer, &many),
            (&answer, &long),
            (&answer, "[]⟦</serp_queries>"),
            (&answer, "[]\n</serp_queries> -->\n⟦More."),
            (&answer, "[]\n</serp_queries> -->\n</final>\n⟦More."),
        ],
    );
}

#[test]
fn broken_plans_are_refused() {
    check(
        "aiplan",
        &[],
        &[
            ("", "⟦Here is my plan:"),
            ("", "⟦{\"thought\""),
            ("", "```⟦\n{"),
            ("", "```json⟦ {"),
            ("", "<think>a</think>⟦```json"),
            ("", "```json\n{\"⟦plan\""),
            ("", "```json\n{\"thought\":⟦null"),
            ("", "```json\n{\"thought\":\" ⟦\""),
            ("", "```json\n{\"thought\":\"a\\⟦x\""),
            ("", "```json\n{\"thought\":\"a⟦\n\""),
            ("", "```json\n{\"thought\":\"a\",\"⟦tool_calls\""),
            ("", "```json\n{\"thought\":\"a\"⟦}"),
            (PLAN, "\"⟦DELETE_ALL\""),
            (PLAN, "\"TOOL_⟦CALL\""),
            (PLAN, "\"KNOWLEDGE_QA\",\"direct_response\":⟦null"),
            (PLAN, "\"KNOWLEDGE_QA\",\"direct_response\":\"⟦\""),
            (PLAN, "\"GENERAL_CHAT\",\"direct_response\":\"a\",\"tool_calls\":[⟦{"),
            (PLAN, "\"GENERAL_CHAT\",\"direct_response\":\"a\",\"tool_calls\":[]⟦,"),
            (PLAN, "\"GENERAL_CHAT\",\"direct_response\":\"a\",\"tool_calls\":[]}\n```\n⟦Done."),
            (PLAN, "\"GENERAL_CHAT\",\"direct_response\":\"a\",\"tool_calls\":[]}⟦"),
            (PLAN, "\"TOOL_EXECUTION\",\"direct_response\":⟦\"done\""),
            (CALL, "⟦]"),
            (CALL, "{\"⟦tool\""),
            (CALL, "{\"name\":\"⟦formatDisk\""),
            (CALL, "{\"name\":\"lintSRSDocument\",\"arg⟦uments\""),
            (CALL, "{\"name\":\"lintSRSDocument\",\"args\":⟦["),
            (CALL, "{\"name\":\"lintSRSDocument\",\"args\":{⟦}"),
            (CALL, "{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":⟦1"),
            (CALL, "{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"a\"}⟦,"),
            (CALL, "{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"a\"⟦]"),
        ],
    );
}

#[test]
fn broken_answers_are_refused() {
    check(
        "ai_say",
        &[],
        &[
            ("", "⟦Sure"),
            ("", "⟦```json"),
            ("", "⟦["),
            ("", "{\"a⟦nswer\""),
            ("", "{⟦}"),
            ("", "{⟦'assessment'"),
            ("", "{\"assessment\":⟦\"good\""),
            ("", "{\"assessment\":{\"⟦level\""),
            ("", "{\"assessment\":{\"understanding_level\":⟦\"7\""),
            ("", "{\"assessment\":{\"understanding_level\":⟦-1"),
            ("", "{\"assessment\":{\"understanding_level\":10⟦1"),
            ("", "{\"assessment\":{\"understanding_level\":7⟦}"),
            ("", "{\"assessment\":{\"understanding_level\":7,\"has_questions\":⟦\"true\""),
            ("", "{\"assessment\":{\"understanding_level\":7,\"has_questions\":⟦True"),
            (SAY, "\"re⟦ply\""),
            (SAY, "\"response\":⟦\"hi\""),
            (SAY, "\"response\":{\"⟦counsellor\""),
            (SAY, "\"response\":{\"咨询师\":\"⟦\""),
            (SAY, "\"response\":{\"咨询师\":\"a\"⟦,"),
            (SAY, "\"response\":{\"咨询师\":\"a\"},\"should_exit\":⟦null"),
            (SAY, "\"response\":{\"咨询师\":\"a\"},\"should_exit\":false⟦}"),
            (SAY, "\"response\":{\"咨询师\":\"a\"},\"should_exit\":false,\"exit_reason\":⟦null"),
            (SAY, "\"response\":{\"咨询师\":\"a\"},\"should_exit\":false,\"exit_reason\":\"b\"⟦,"),
            (SAY, "\"response\":{\"咨询师\":\"a\"},\"should_exit\":false,\"exit_reason\":\"b\"}\n⟦Done."),
            (SAY, "\"response\":{\"咨询师\":\"a\"},\"should_exit\":false,\"exit_reason\":\"b\"⟦"),
        ],
    );
}

#[test]
fn broken_values_are_refused() {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": {"enum": ["cat", "dog"]},
            "age": {"type": "integer", "minimum": 0, "maximum": 29},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 3}, "minItems": 1, "maxItems": 2},
            "note": {"type": ["string", "null"]},
        },
        "required": ["kind", "age", "tags"],
        "additionalProperties": false,
    });
    let before = "{\"kind\":\"cat\",\"age\":3,\"tags\":";
    check(
        "json_value",
        &[("json_value.schema", schema)],
        &[
            ("", "⟦["),
            ("", "⟦Sure"),
            ("", "⟦```json"),
            ("", "{⟦}"),
            ("", "{\"⟦age\""),
            ("", "{⟦'kind'"),
            ("", "{\"kind\"⟦="),
            ("", "{\"kind\":⟦null"),
            ("", "{\"kind\":\"⟦bird\""),
            ("", "{\"kind\":\"cat⟦s\""),
            ("", "{\"kind\":\"cat\"⟦}"),
            ("", "{\"kind\":\"cat\",\"age\":⟦\"3\""),
            ("", "{\"kind\":\"cat\",\"age\":⟦-3"),
            ("", "{\"kind\":\"cat\",\"age\":3⟦0"),
            ("", "{\"kind\":\"cat\",\"age\":3⟦.5"),
            ("", "{\"kind\":\"cat\",\"age\":0⟦3"),
            (before, "⟦null"),
            (before, "[⟦]"),
            (before, "[⟦1]"),
            (before, "[\"⟦\"]"),
            (before, "[\"abc⟦d\"]"),
            (before, "[\"a\",\"b\"⟦,\"c\"]"),
            (before, "[\"a\"],\"⟦other\""),
            (before, "[\"a\"],\"note\":⟦1"),
            (before, "[\"a\"],⟦}"),
            (before, "[\"a\"]}\n⟦\n"),
            (before, "[\"a\"]⟦"),
        ],
    );
}

#[test]
fn broken_lines_are_refused() {
    let answer = format!(
        "{LINES}{{\"event\":\"thinking_end\",\"data\":{{}}}}\n{{\"event\":\"final_delta\",\"data\":{{\"text\":\"a\"}}}}\n"
    );
    let end = format!("{answer}{{\"event\":\"final_end\",\"data\":{{}}}}\n");
    let long = format!("{{\"event\":\"serp_queries\",\"data\":{{\"queries\":[\"{}{MARK}a\"", "a".repeat(80));
    check(
        "jsonseq",
        &[],
        &[
            ("", "⟦Sure"),
            ("", "⟦["),
            ("", "⟦```"),
            ("", "{\"⟦type\""),
            ("", "{\"event\":\"⟦final_delta\""),
            ("", "{\"event\":\"thinking_⟦end\""),
            ("", "{\"event\":\"thinking_start\"⟦}"),
            ("", "{\"event\":\"thinking_start\",\"data\":{⟦\"id\""),
            ("", "{\"event\":\"thinking_start\",\"data\":{}}⟦{"),
            ("", "{⟦\n"),
            ("", "{\"event\":\"serp_summary\",\"data\":{\"text\":\"⟦\""),
            ("", "{\"event\":\"serp_summary\",\"data\":{\"text\":⟦5"),
            ("{\"event\":\"thinking_start\",\"data\":{}}\n", "{\"event\":\"⟦thinking_end\""),
            ("{\"event\":\"thinking_start\",\"data\":{}}\n", "{\"event\":\"phase_⟦delta\""),
            (
                "{\"event\":\"thinking_start\",\"data\":{}}\n",
                "{\"event\":\"phase_start\",\"data\":{\"id\":⟦2",
            ),
            (
                "{\"event\":\"thinking_start\",\"data\":{}}\n",
                "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\" ⟦\"",
            ),
            (LINES, "{\"event\":\"phase_delta\",\"data\":{\"id\":⟦2"),
            (LINES, "{\"event\":\"phase_delta\",\"data\":{\"id\":1,\"text\":\"⟦\""),
            ("", "{\"event\":\"serp_summary\",\"data\":{\"text\":\"a ⟦<b>\""),
            (LINES, "{\"event\":\"phase_start\",\"data\":{\"id\":⟦1"),
            (LINES, "{\"event\":\"⟦final_delta\""),
            (&answer, "{\"event\":\"⟦thinking_end\""),
            (&answer, "{\"event\":\"serp_queries\",\"data\":{\"queries\":[⟦1"),
            (&answer, &long),
            (&answer, "{\"event\":\"serp_queries\",\"data\":{\"queries\":[\"a\",\"b\",\"c\",\"d\",\"e\"⟦,"),
            (&answer, "⟦"),
            (&end, "⟦{"),
        ],
    );
}

#[test]
fn broken_stories_are_refused() {
    let settings = [
        (
            "filament.structure",
            json!({
                "mandatory": ["thought", "content"],
                "optional": ["variable_update", "tool_call", "choice", "media", {"name": "mood", "body": "json"}],
                "dependency": {"content": "thought", "variable_update": "content", "tool_call": "variable_update",
                    "choice": "tool_call", "media": "choice", "mood": "media"},
            }),
        ),
        (
            "tools",
            json!({"roll": {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}}),
        ),
    ];
    let update = format!("{STORY}<variable_update>\n");
    check(
        "filament",
        &settings,
        &[
            ("", "⟦Sure"),
            ("", "⟦```"),
            ("", "<⟦content>"),
            ("", "<⟦Thought>"),
            ("", "<thought⟦ a=\"b\">"),
            ("", "<thought> <⟦/thought>"),
            ("", "<thought>a <⟦content>"),
            ("", "<thought>a </⟦content>"),
            ("", "<thought>a</thought>\n⟦So:"),
            ("", "<thought>a</thought>\n⟦"),
            ("", "<thought>a</thought>\n<content>\nx <⟦b>"),
            ("", "<thought>a</thought>\n<content>\nx </⟦thought>"),
            ("", "<thought>a</thought>\n<content>\nx <!-- a --⟦b -->"),
            ("", "<thought>a</thought>\n<content>\nx `⟦</content>"),
            (STORY, "⟦More"),
            (STORY, "<t⟦hought>"),
            (STORY, "<⟦unknown>"),
            (&update, "⟦SET"),
            (&update, "[⟦]"),
            (&update, "[[\"⟦COPY\""),
            (&update, "[[\"SET\"⟦]"),
            (&update, "[[\"SET\",\"a\"⟦]"),
            (&update, "[[\"SET\",\"⟦ a\""),
            (&update, "[[\"ADD\",\"a\",⟦\"1\""),
            (&update, "[[\"POP\",\"a\"⟦,1"),
            (&update, "[[\"POP\",\"a\"]]\n⟦More"),
            (&update, "[[\"SET\",\"a\",\"⟦<b\""),
            (STORY, "<tool_call name=\"⟦format\">"),
            (STORY, "<tool_call name=\"roll\">\n{⟦}"),
            (STORY, "<tool_call name=\"roll\">\n{\"sides\":⟦\"6\""),
            (STORY, "<media type=\"⟦text\""),
            (STORY, "<media type=\"image\" src=\"⟦../a\""),
            (STORY, "<mood>\n⟦[]"),
            (STORY, "<choice>\n<⟦option"),
        ],
    );
}

#[test]
fn broken_calls_are_refused() {
    let schema = json!({"type": "object", "properties": {"sides": {"type": "integer", "minimum": 2, "maximum": 99}, "why": {"type": "string"}}, "required": ["sides"]});
    let tools = json!({"roll": schema, "rest": {"type": "object", "additionalProperties": false}});
    let call = "Rolling.\n<tool_call>\n";
    check(
        "toolcall",
        &[("toolcall.format", json!("hermes")), ("tools", tools)],
        &[
            ("", "⟦"),
            ("", " \n⟦"),
            ("", "Text <⟦/tool_call>"),
            ("", "Text <⟦|im_end|>"),
            (call, "⟦roll"),
            (call, "⟦["),
            (call, "{\"⟦tool\""),
            (call, "{\"name\":\"⟦format\""),
            (call, "{\"name\":\"ro⟦se\""),
            (call, "{\"name\":⟦null"),
            (call, "{\"name\":\"roll\"⟦}"),
            (call, "{\"name\":\"roll\",\"arg⟦s\""),
            (call, "{\"name\":\"roll\",\"arguments\":⟦\"{}\""),
            (call, "{\"name\":\"roll\",\"arguments\":{⟦}"),
            (call, "{\"name\":\"roll\",\"arguments\":{\"sides\":⟦\"6\""),
            (call, "{\"name\":\"roll\",\"arguments\":{\"sides\":1⟦}"),
            (call, "{\"name\":\"roll\",\"arguments\":{\"sides\":10⟦0}"),
            (call, "{\"name\":\"roll\",\"arguments\":{\"sides\":6,\"⟦other\""),
            (call, "{\"name\":\"roll\",\"arguments\":{\"sides\":6,⟦}"),
            (call, "{\"name\":\"roll\",\"arguments\":{\"sides\":6}⟦,"),
            (call, "{\"name\":\"rest\",\"arguments\":{⟦\"a\""),
            (call, "{\"name\":\"rest\",\"arguments\":{}}\n⟦Done"),
            (call, "{\"name\":\"rest\",\"arguments\":{}}\n</tool_call>\n⟦Done"),
            (call, "{\"name\":\"rest\",\"arguments\":{}}⟦"),
        ],
    );
}
