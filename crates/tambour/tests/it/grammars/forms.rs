//! The notations, their sizes and their errors.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};
use tambour::Options;
use tambour::dialect::find_dialect;
use tambour::grammar::{Grammar, GrammarFormat, NoteKind};

use super::engine::{Judgement, LarkEngine};
use super::fuzz::cases;
use super::gbnf::GbnfEngine;

pub(super) fn grammar(name: &str, settings: &[(&str, Value)]) -> tambour::Result<Grammar> {
    let mut options = Options::default();
    for (key, value) in settings {
        options.set(key, value.clone())?;
    }
    tambour::policy::grammar(find_dialect(name)?, &options).expect("it has a grammar")
}

/// Schema of xgrammar's structural tags, from its published models.
static STRUCTURAL_TAG: LazyLock<Validator> = LazyLock::new(|| {
    let object = |kind: &str, fields: Value| {
        let mut properties = fields;
        let required: Vec<String> =
            properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        properties["type"] = json!({ "const": kind });
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    let formats = json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/format" } });
    let text = json!({ "type": "string", "minLength": 1 });
    let schema = json!({
        "type": "object",
        "properties": { "type": { "const": "structural_tag" }, "format": { "$ref": "#/$defs/format" }, "x-notes": { "type": "array", "items": text } },
        "required": ["type", "format"],
        "$defs": { "format": { "type": "object", "required": ["type"], "oneOf": [
            object("const_string", json!({ "value": text })),
            object("json_schema", json!({ "json_schema": { "type": ["boolean", "object"] } })),
            object("any_text", json!({ "excludes": { "type": "array", "items": text } })),
            object("grammar", json!({ "grammar": text })),
            object("sequence", json!({ "elements": formats })),
            object("or", json!({ "elements": formats })),
            object("tag", json!({ "begin": text, "content": { "$ref": "#/$defs/format" }, "end": text })),
        ] } },
    });
    jsonschema::validator_for(&schema).expect("a schema")
});

/// All formats in a structural tag.
fn formats(format: &Value) -> Vec<&Value> {
    let inner = format["elements"].as_array().into_iter().flatten().chain(format.get("content"));
    [format].into_iter().chain(inner.flat_map(formats)).collect()
}

#[test]
fn structural_tags_have_their_published_form() {
    for (entry, options) in cases() {
        let grammar = tambour::policy::grammar(entry, &options).expect("it has one").expect("it is small");
        let tag: Value = serde_json::from_str(&grammar.write(GrammarFormat::StructuralTag)).expect("JSON");
        if let Some(error) = STRUCTURAL_TAG.iter_errors(&tag).next() {
            panic!("{}: {error} at {}", entry.name, error.instance_path());
        }
        for format in formats(&tag["format"]) {
            if let Some(text) = format["grammar"].as_str() {
                // It stands alone.
                GbnfEngine::new(text);
            }
            if let Some(schema) = format.get("json_schema") {
                jsonschema::validator_for(schema).expect("a schema");
            }
        }
        assert!(tag["x-notes"].as_array().is_some_and(|notes| !notes.is_empty()), "{}", entry.name);
    }
}

#[test]
fn plans_are_json_of_a_schema_in_a_fence() {
    let tag: Value = serde_json::from_str(
        &grammar("aiplan", &[]).expect("it is small").write(GrammarFormat::StructuralTag),
    )
    .expect("JSON");
    let schemas: Vec<&Value> =
        formats(&tag["format"]).into_iter().filter_map(|format| format.get("json_schema")).collect();
    let [schema] = schemas[..] else { panic!("{schemas:?}") };
    let plan = |name: &str, args: Value| {
        json!({
            "thought": "t", "response_mode": "TOOL_EXECUTION", "direct_response": null,
            "tool_calls": [{ "name": name, "args": args }],
        })
    };
    let validator = jsonschema::validator_for(schema).expect("a schema");
    assert!(validator.is_valid(&plan("lintSRSDocument", json!({ "userInput": "check" }))));
    assert!(!validator.is_valid(&plan("formatDisk", json!({ "userInput": "check" }))));
    assert!(!validator.is_valid(&plan("lintSRSDocument", json!({}))));
}

#[test]
fn every_form_lists_what_it_does_not_state() {
    for (entry, options) in cases() {
        let grammar = tambour::policy::grammar(entry, &options).expect("it has one").expect("it is small");
        let lines = grammar.note_lines();
        assert!(!lines.is_empty(), "{}", entry.name);
        for (format, mark) in [(GrammarFormat::Lark, "//"), (GrammarFormat::Gbnf, "#")] {
            let text = grammar.write(format);
            for line in &lines {
                assert!(text.contains(&format!("{mark} {line}\n")), "{} lacks `{line}`", entry.name);
            }
        }
        // Each code is a rule that exists.
        for code in grammar.unchecked_rules() {
            assert!(tambour::catalogue::all().any(|entry| entry.rule.code == code), "`{code}` is no rule");
        }
    }
}

#[test]
fn keywords_that_a_grammar_does_not_state_are_listed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "pattern": "^[a-z]+$", "format": "email" },
            "b": { "type": "array", "items": { "type": "integer", "multipleOf": 5 }, "uniqueItems": true },
            "c": { "not": { "type": "null" } },
        },
    });
    let grammar = grammar("json_value", &[("json_value.schema", schema)]).expect("it is small");
    let places: Vec<&str> = grammar
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::UncheckedKeyword)
        .map(|note| note.subject.as_str())
        .collect();
    for place in ["a/pattern", "a/format", "b/items/multipleOf", "b/uniqueItems", "c/not"] {
        assert!(places.contains(&&*format!("#/properties/{place}")), "{place} is not among {places:?}");
    }
}

#[test]
fn what_no_grammar_can_be_made_of_is_refused_with_its_place() {
    let message = |schema: Value| {
        grammar("json_value", &[("json_value.schema", schema)]).expect_err("too much").to_string()
    };
    let never = json!({ "type": "object", "properties": { "a": false }, "required": ["a"] });
    assert!(message(never).contains("no reply can satisfy"));
    let mut deep = json!({ "type": "integer" });
    for _ in 0..60 {
        deep = json!({ "type": "array", "items": deep });
    }
    let text = message(deep);
    assert!(text.contains("levels deep at #/items/items/") && text.contains("use `$ref`"), "{text}");
    let lists: Vec<Value> = (0..3000)
        .map(|index| json!({ "type": "object", "properties": { "k": { "const": index } } }))
        .collect();
    let wide = json!({ "type": "object", "properties": (0..20).map(|index| (format!("p{index}"), json!({ "anyOf": lists.clone() }))).collect::<serde_json::Map<_, _>>() });
    let text = message(wide);
    assert!(text.contains("more than 200000 parts") && text.contains("fewer tools"), "{text}");
    let text = grammar("toolcall", &[]).expect_err("no tools").to_string();
    assert!(text.contains("set the option `tools`"), "{text}");
}

#[test]
fn deep_schemas_take_no_more_than_their_size() {
    let mut deep = json!({ "type": "integer" });
    for _ in 0..20 {
        deep =
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": deep }, "b": true } });
    }
    let grammar = grammar("json_value", &[("json_value.schema", deep)]).expect("it is small");
    for format in [GrammarFormat::Lark, GrammarFormat::Gbnf, GrammarFormat::StructuralTag] {
        let len = grammar.write(format).len();
        assert!(len < 64 << 10, "{len} bytes");
    }
}

#[test]
fn fifty_tools_fit_in_every_form() {
    let schema = json!({
        "type": "object",
        "properties": (0..8).map(|index| (format!("field{index}"), json!({ "type": "string" }))).collect::<serde_json::Map<_, _>>(),
        "required": ["field0"],
    });
    let tools: serde_json::Map<String, Value> =
        (0..50).map(|index| (format!("tool{index}"), schema.clone())).collect();
    for name in ["aiplan", "filament", "toolcall"] {
        let grammar = grammar(name, &[("tools", Value::Object(tools.clone()))]).expect("it is small");
        for format in [GrammarFormat::Lark, GrammarFormat::Gbnf, GrammarFormat::StructuralTag] {
            let text = grammar.write(format);
            assert!(text.contains("tool49") && text.len() < 1 << 20, "{name}: {} bytes", text.len());
        }
    }
}

/// A part that no text satisfies would be a trap: a model that enters it cannot end its reply.
#[test]
fn no_grammar_leads_into_a_part_that_nothing_satisfies() {
    let tools = json!({ "now": { "type": "object" } });
    for name in ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament", "toolcall"] {
        for bound in [json!(40), json!(400), Value::Null] {
            let bound = (!bound.is_null()).then_some(("grammar.text", bound));
            let settings: Vec<(&str, Value)> = bound.into_iter().chain([("tools", tools.clone())]).collect();
            let text = grammar(name, &settings).expect("it is small").write(GrammarFormat::Gbnf);
            assert!(!text.contains("[^\\u0000-\\U0010FFFF]"), "{name} {settings:?}");
        }
    }
    // Eight fences are as many as the bound allows; the reply ends behind them.
    let fence = "a\n```\nb\n```\n";
    let grammar = grammar("filament", &[("grammar.text", json!(60))]).expect("it is small");
    let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
    let count = (1..20).take_while(|count| {
        let start = format!("<content>{}", fence.repeat(*count));
        !matches!(gbnf.judge(&start), Judgement::Refused(_))
    });
    let count = count.count();
    assert!(count > 2, "{count}");
    let reply = format!("<content>{}</content>", fence.repeat(count));
    assert_eq!(gbnf.judge(&reply), Judgement::Complete, "{reply}");
}

/// Reply with `count` copies of `piece` at the place of `@` in `frame`.
fn repeat_in(frame: &str, piece: &str, count: usize) -> String {
    frame.replace('@', &piece.repeat(count))
}

/// A model that repeats itself ends its reply, whatever it repeats: each text, list and repetition has a
/// bound under `grammar.text`.
#[test]
fn a_bound_on_texts_ends_a_model_that_repeats_itself() {
    let answer = "<thinking><phase id=\"1\"><title>T</title>t</phase></thinking><final>@\n<!-- <serp_queries>\n[]\n</serp_queries> -->\n</final>";
    let phase = "<thinking><phase id=\"1\"><title>T</title>@</phase></thinking><final>a\n<!-- <serp_queries>\n[]\n</serp_queries> -->\n</final>";
    let queries = "<thinking><phase id=\"1\"><title>T</title>t</phase></thinking><final>a\n<!-- <serp_queries>\n[\"a\"@]\n</serp_queries> -->\n</final>";
    let say = r#"{"assessment":{"understanding_level":5,"has_questions":true,"expressed_understanding":false,"reasoning":""},"response":{"咨询师":"@"},"should_exit":false,"exit_reason":""}"#;
    let deltas = "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"T\"}}\n{\"event\":\"thinking_end\",\"data\":{}}\n@{\"event\":\"final_end\",\"data\":{}}\n";
    let delta = "{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n";
    // Bound; frame; what is repeated, and the largest count of it.
    let cases: [(&str, u32, &str, &str, usize); 11] = [
        ("thinkingml", 50, answer, "a", 50),
        ("thinkingml", 50, answer, "粥", 50),
        ("thinkingml", 50, phase, "a", 25),
        ("thinkingml", 50, queries, ",\"b\"", 0),
        ("thinkingml", 2499, answer, "ab ", 833),
        ("ai_say", 50, say, "a", 51),
        ("json_value", 2299, "{\"k\":\"@\"}", "a", 2299),
        ("json_value", 30, "{\"k\":[@0]}", "0,", 15),
        ("json_value", 30, "{\"k\":\"@\"}", "\\n", 30),
        ("filament", 60, "<content>@</content>", "a", 60),
        ("jsonseq", 30, deltas, delta, 4),
    ];
    for (name, bound, frame, piece, count) in cases {
        let grammar = grammar(name, &[("grammar.text", json!(bound))]).expect("it is small");
        let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
        let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
        let longest = repeat_in(frame, piece, count);
        assert_eq!(lark.judge(&longest), Judgement::Complete, "{name} {bound} {piece:?}");
        assert_eq!(gbnf.judge(&longest), Judgement::Complete, "{name} {bound} {piece:?} by GBNF");
        let longer = repeat_in(frame, piece, count + 1);
        assert!(matches!(lark.judge(&longer), Judgement::Refused(_)), "{name} {bound} {piece:?}");
        assert!(matches!(gbnf.judge(&longer), Judgement::Refused(_)), "{name} {bound} {piece:?} by GBNF");
    }
    // White space and beginnings of a delimiter end, too, and so does code after code.
    let without_end = [("thinkingml", answer, "\n"), ("filament", "<content>@</content>", "a `b` ")];
    for (name, frame, piece) in without_end {
        let grammar = grammar(name, &[("grammar.text", json!(60))]).expect("it is small");
        let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
        let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
        let endless = repeat_in(&frame[..frame.find('@').expect("a place") + 1], piece, 4000);
        assert!(matches!(gbnf.judge(&endless), Judgement::Refused(_)), "{name} {piece:?} by GBNF");
        assert!(matches!(lark.judge(&endless), Judgement::Refused(_)), "{name} {piece:?}");
    }
}

/// Values that contain themselves, directly or through others, nest eight levels under `grammar.text`, and lists in
/// them have fewer items on each level.
#[test]
fn a_bound_on_texts_bounds_the_nesting_of_values_that_contain_themselves() {
    let list = json!({"$ref": "#/$defs/n", "$defs": {"n": {
        "type": "object", "properties": {"v": {"type": "string"}, "next": {"$ref": "#/$defs/n"}}, "required": ["v"],
    }}});
    let pairs = json!({"$ref": "#/$defs/a", "$defs": {
        "a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}},
        "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
    }});
    let tree =
        json!({"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}});
    let nested = |levels: usize, open: &str, last: &str, close: &str| {
        format!("{}{last}{}", open.repeat(levels - 1), close.repeat(levels - 1))
    };
    let cases = [
        (&list, "{\"v\":\"a\",\"next\":", "{\"v\":\"a\"}", "}", 8),
        (&pairs, "{\"b\":{\"a\":", "{}", "}}", 8),
        (&tree, "[", "[]", "]", 8),
    ];
    for (schema, open, last, close, levels) in cases {
        let settings = [("grammar.text", json!(60)), ("json_value.schema", schema.clone())];
        let grammar = grammar("json_value", &settings).expect("it is small");
        let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
        let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
        let deepest = nested(levels, open, last, close);
        assert_eq!(lark.judge(&deepest), Judgement::Complete, "{deepest}");
        assert_eq!(gbnf.judge(&deepest), Judgement::Complete, "{deepest} by GBNF");
        let deeper = nested(levels + 1, open, last, close);
        assert!(matches!(lark.judge(&deeper), Judgement::Refused(_)), "{deeper}");
        assert!(matches!(gbnf.judge(&deeper), Judgement::Refused(_)), "{deeper} by GBNF");
    }
    let settings = [("grammar.text", json!(60)), ("json_value.schema", tree)];
    let grammar = grammar("json_value", &settings).expect("it is small");
    let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
    let items = |open: usize, count: usize| {
        format!("{}{}{}", "[".repeat(open), vec!["[]"; count].join(","), "]".repeat(open))
    };
    for (level, count) in [(1, 16), (2, 8), (3, 4), (7, 2)] {
        assert_eq!(gbnf.judge(&items(level, count)), Judgement::Complete, "level {level}");
        assert!(matches!(gbnf.judge(&items(level, count + 1)), Judgement::Refused(_)), "level {level}");
    }
}

/// A schema says as a comment what no schema can say.
#[test]
fn a_schema_has_its_notes_as_a_comment() {
    for entry in tambour::dialect::DIALECTS.iter().filter(|entry| entry.schema.is_some()) {
        let contract = tambour::verdict::Contract::Dialect(entry);
        let text = contract.write(tambour::verdict::ContractForm::JsonSchema, &Options::default());
        let schema: Value = serde_json::from_str(&text.expect("a schema")).expect("JSON");
        let comment = schema["$comment"].as_str().expect("a comment");
        assert!(comment.starts_with(&format!("Contract `{}`: ", entry.name)), "{comment}");
        let grammar = grammar(entry.name, &[]);
        for code in grammar.iter().flat_map(Grammar::unchecked_rules) {
            assert!(comment.contains(&format!("not stated, rule {code}: ")), "{code}: {comment}");
        }
        assert!(jsonschema::draft202012::meta::is_valid(&schema), "{}", entry.name);
    }
}
