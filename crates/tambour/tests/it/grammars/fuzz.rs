//! Replies that the grammars let through: the strict checker passes them, but for the listed rules.

use std::collections::BTreeMap;

use serde_json::json;
use tambour::Options;
use tambour::dialect::{DIALECTS, DialectEntry};
use tambour::grammar::GrammarFormat;
use tambour_fixtures::random::RandomSource;

use super::engine::{Judgement, LarkEngine};
use super::gbnf::GbnfEngine;
use super::generate::Generator;
use super::replies::strict_codes;

/// Number of replies under each of the options.
const ROUNDS: u64 = 150;

/// Options under which each dialect is tried.
pub(super) fn cases() -> Vec<(&'static DialectEntry, Options)> {
    let mut cases = Vec::new();
    let mut add = |name: &str, settings: &[(&str, serde_json::Value)]| {
        let entry = DIALECTS.iter().find(|entry| entry.name == name).expect("a dialect");
        let mut options = Options::default();
        for (key, value) in settings {
            options.set(key, value.clone()).expect("a setting");
        }
        if entry.grammar.is_some() {
            cases.push((entry, options));
        }
    };
    let tools = json!({
        "now": {"type": "object"},
        "roll": {"type": "object", "readOnly": true, "properties": {"sides": {"type": "integer", "minimum": 2, "maximum": 100}, "why": {"type": "string", "maxLength": 12}}, "required": ["sides"]},
    });
    add("thinkingml", &[]);
    add("thinkingml", &[("thinkingml.serp_block", json!("optional"))]);
    add("ai_say", &[]);
    add("ai_say", &[("text_language", json!("en")), ("ai_say.role", json!("a \"coach\""))]);
    add("aiplan", &[]);
    add("aiplan", &[("aiplan.variant", json!("v2")), ("tools", tools.clone())]);
    add("aiplan", &[("aiplan.variant", json!("v2")), ("tools", json!({}))]);
    add("json_value", &[]);
    for schema in [
        json!({"type": "array", "items": {"type": "number", "minimum": -3, "maximum": 17}, "minItems": 1, "maxItems": 4}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [1, "x", null]}, "c": {"type": ["integer", "null"]}, "d": true}, "required": ["c"]}),
        json!({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"const": {"k": [1]}}}, "additionalProperties": {"type": "integer", "exclusiveMinimum": -12, "exclusiveMaximum": 1207}}),
        json!({"$defs": {"tree": {"type": "object", "properties": {"name": {"type": "string", "minLength": 2, "maxLength": 5}, "children": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/tree"}}}, "required": ["name"], "additionalProperties": false}}, "$ref": "#/$defs/tree"}),
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"a": {"minimum": 990}, "b": {"type": "null"}}, "required": ["b"]}]}),
        json!({"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"], "oneOf": [{"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["x"]}, {"properties": {"kind": {"const": "b"}}}]}),
    ] {
        add("json_value", &[("json_value.schema", schema)]);
    }
    add("jsonseq", &[]);
    add("filament", &[]);
    add("filament", &[("tools", tools.clone())]);
    add(
        "filament",
        &[(
            "filament.structure",
            json!({"mandatory": ["think", "content"], "optional": ["status_bar", {"name": "mood", "body": "json"}], "dependency": {"status_bar": "content", "content": "think"}}),
        )],
    );
    add("filament", &[("filament.protocols", json!(["variable_update_v2", "choice"]))]);
    for format in
        ["hermes", "qwen3_coder", "llama", "mistral", "deepseek", "kimi", "glm", "harmony", "minimax"]
    {
        add("toolcall", &[("toolcall.format", json!(format)), ("tools", tools.clone())]);
    }
    for name in ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament", "json_value", "toolcall"] {
        add(name, &[("grammar.text", json!(60)), ("tools", tools.clone())]);
    }
    cases
}

#[test]
fn the_strict_checker_passes_what_the_grammars_generate() {
    let mut complaints: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (index, (entry, options)) in cases().into_iter().enumerate() {
        let grammar = tambour::policy::grammar(entry, &options).expect("it has one").expect("it is small");
        let mut engine = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
        let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
        let listed: Vec<&str> = grammar.unchecked_rules().collect();
        for seed in 0..ROUNDS {
            let mut generator = Generator { grammar: &grammar, random: RandomSource::new(seed), budget: 400 };
            let reply = generator.reply();
            let mut complain = |what: &str, text: &str| {
                let complaint = complaints
                    .entry(format!("case {index}, {} {what}", entry.name))
                    .or_insert((0, text.to_owned()));
                complaint.0 += 1;
                if text.len() < complaint.1.len() {
                    complaint.1 = text.to_owned();
                }
            };
            match engine.judge(&reply) {
                Judgement::Complete => {}
                Judgement::Unfinished => complain("is unfinished", &reply),
                Judgement::Refused(at) => {
                    let text =
                        String::from_utf8_lossy(&reply.as_bytes()[..(at + 1).min(reply.len())]).into_owned();
                    complain("is refused", &text);
                }
            }
            let by_gbnf = gbnf.judge(&reply);
            if by_gbnf != Judgement::Complete {
                complain(&format!("is {by_gbnf:?} by GBNF"), &reply);
            }
            let codes = strict_codes(entry.name, &reply, &options);
            // A key that occurs twice, which is listed, makes a call invalid, and its text content.
            let is_refused_call = codes.iter().any(|code| *code == "duplicate_key");
            for code in &codes {
                let is_consequence = is_refused_call && ["tool_call_invalid", "raw_text"].contains(&&**code);
                if !is_consequence && !listed.contains(&&**code) {
                    complain(code, &reply);
                }
            }
        }
    }
    let lines: Vec<String> =
        complaints.iter().map(|(what, (count, reply))| format!("{what} x{count}\n    {reply:?}")).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}
