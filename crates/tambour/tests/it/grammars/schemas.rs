//! Grammars of schemas: their sizes, what they state, and what they refuse.

use serde_json::{Map, Value, json};
use tambour::grammar::{Grammar, GrammarFormat, NoteKind};
use tambour_fixtures::random::RandomSource;

use super::engine::{Judgement, LarkEngine};
use super::forms::grammar;
use super::gbnf::GbnfEngine;
use super::generate::Generator;

fn grammar_of(schema: &Value) -> tambour::Result<Grammar> {
    grammar("json_value", &[("json_value.schema", schema.clone())])
}

fn keywords(grammar: &Grammar) -> Vec<&str> {
    let notes = grammar.notes.iter().filter(|note| note.kind == NoteKind::UncheckedKeyword);
    notes.map(|note| note.subject.as_str()).collect()
}

/// Checks which values the grammar of a schema accepts, by both engines.
fn check(schema: &Value, accepted: &[&str], refused: &[&str]) {
    let grammar = grammar_of(schema).expect("it is small");
    let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
    let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
    for (text, is_accepted) in
        accepted.iter().map(|text| (text, true)).chain(refused.iter().map(|text| (text, false)))
    {
        let found = [lark.judge(text), gbnf.judge(text)].map(|judgement| judgement == Judgement::Complete);
        assert_eq!(found, [is_accepted; 2], "{text} by {schema}");
    }
}

#[test]
fn nested_members_are_written_once() {
    let mut deep = json!({ "type": "null" });
    for _ in 0..40 {
        deep = json!({ "type": "object", "properties": { "a": { "type": "null" }, "b": deep }, "required": ["b"] });
    }
    let grammar = grammar_of(&deep).expect("it is small");
    for format in [GrammarFormat::Lark, GrammarFormat::Gbnf, GrammarFormat::StructuralTag] {
        let len = grammar.write(format).len();
        assert!(len < 64 << 10, "{len} bytes");
    }
    let members = json!({
        "type": "object",
        "properties": { "a": { "type": "null" }, "b": { "type": "null" }, "c": { "type": "null" }, "d": { "type": "null" } },
        "required": ["b", "d"],
    });
    check(
        &members,
        &[
            r#"{"b":null,"d":null}"#,
            r#"{"a":null,"b":null,"d":null}"#,
            r#"{"a":null,"b":null,"c":null,"d":null}"#,
        ],
        &[
            r#"{"a":null,"d":null}"#,
            r#"{"d":null}"#,
            "{}",
            r#"{"b":null,"c":null}"#,
            r#"{,"b":null,"d":null}"#,
        ],
    );
    let open = json!({ "type": "object", "properties": { "a": { "type": "null" } }, "additionalProperties": { "type": "integer" } });
    check(&open, &["{}", r#"{"a":null}"#, r#"{"a":null,"x":1,"y":2}"#, r#"{"x":1}"#], &[r#"{"x":null}"#]);
}

#[test]
fn bounds_that_no_text_satisfies_leave_nothing() {
    let text = |min: u32, max: u32| json!({ "type": "string", "minLength": min, "maxLength": max });
    let filled = json!({ "type": "string", "pattern": "\\S", "maxLength": 0 });
    for never in [text(5, 3), filled, json!({ "allOf": [text(5, 9), text(0, 3)] })] {
        let schema = json!({ "type": "object", "properties": { "a": never, "b": { "type": "null" } } });
        check(&schema, &["{}", r#"{"b":null}"#], &[r#"{"a":"abcd"}"#, r#"{"a":"a"}"#]);
        let message = grammar_of(&never).expect_err("no value satisfies it").to_string();
        assert!(message.contains("no reply can satisfy"), "{message}");
    }
}

#[test]
fn wide_schemas_end_in_a_grammar_or_in_an_error_with_its_place() {
    let object = |count: usize| {
        let names: Vec<String> = (0..count).map(|index| format!("p{index}")).collect();
        let properties: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({ "type": "null" }))).collect();
        json!({ "type": "object", "properties": properties, "required": names })
    };
    let wide = grammar_of(&object(5_000)).expect("it is small");
    for format in [GrammarFormat::Lark, GrammarFormat::Gbnf, GrammarFormat::StructuralTag] {
        assert!(wide.write(format).contains("p4999"));
    }
    let message = grammar_of(&object(50_000)).expect_err("too much").to_string();
    assert!(message.contains("more than 200000 parts (reached at #"), "{message}");
    let texts: Vec<String> = (0..150_000).map(|index| format!("text {index}")).collect();
    let listed = json!({ "allOf": [{ "enum": texts }, { "enum": texts }] });
    let message = grammar_of(&listed).expect_err("too much").to_string();
    assert!(message.contains("more than 200000 parts"), "{message}");
    let branches: Vec<Value> = (0..3_000)
        .map(
            |index| json!({ "type": "object", "properties": { "k": { "const": index } }, "required": ["k"] }),
        )
        .collect();
    let grammar = grammar_of(&json!({ "oneOf": branches })).expect("it is small");
    assert_eq!(keywords(&grammar), Vec::<&str>::new());
}

#[test]
fn counts_are_within_the_bounds_of_engines() {
    // The recogniser refuses what llama.cpp refuses.
    check(
        &json!({ "type": "string", "maxLength": 1000 }),
        &[&format!("\"{}\"", "a".repeat(1000))],
        &[&format!("\"{}\"", "a".repeat(1001))],
    );
    for schema in [
        json!({ "type": "string", "minLength": 500 }),
        json!({ "type": "array", "maxItems": 1000, "items": { "type": "integer" } }),
        json!({ "type": "array", "maxItems": 10, "items": { "type": "string", "maxLength": 200 } }),
        json!({ "type": "array", "maxItems": 900, "items": { "type": "object", "properties": { "a": { "type": "string" } } } }),
    ] {
        GbnfEngine::new(&grammar_of(&schema).expect("it is small").write(GrammarFormat::Gbnf));
    }
}

#[test]
fn long_lists_of_notes_say_what_they_leave_out() {
    let properties: Map<String, Value> =
        (0..300).map(|index| (format!("p{index}"), json!({ "type": "string", "format": "email" }))).collect();
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": true });
    let grammar = grammar("aiplan", &[("tools", json!({ "send": schema }))]).expect("it is small");
    let rules: Vec<&str> = grammar.unchecked_rules().collect();
    for code in ["example_echo", "tool_call_invalid", "tool_args_invalid", "duplicate_key"] {
        assert!(rules.contains(&code), "{code} is not among {rules:?}");
    }
    let lines = grammar.note_lines();
    assert!(
        lines.iter().any(|line| line.contains("more keywords, which this list leaves out")),
        "{lines:#?}"
    );
    assert!(keywords(&grammar).len() < 250);
}

#[test]
fn conjunctions_are_joined() {
    check(&json!({ "allOf": [{ "const": 1 }, { "const": 1 }] }), &["1"], &["2"]);
    check(
        &json!({ "anyOf": [{ "allOf": [{ "const": 1 }, { "const": 2 }] }, { "const": 3 }] }),
        &["3"],
        &["1", "2"],
    );
    let kinds = |names: &[&str]| {
        let branches: Vec<Value> = names.iter().map(|name| json!({ "type": name })).collect();
        json!({ "anyOf": branches })
    };
    check(
        &json!({ "allOf": [kinds(&["null", "integer", "boolean"]), kinds(&["string", "boolean", "integer"])] }),
        &["1", "true"],
        &["null", "\"a\""],
    );
    let tree = json!({
        "$ref": "#/$defs/tree",
        "$defs": { "tree": {
            "type": "object",
            "properties": { "left": { "allOf": [{ "$ref": "#/$defs/tree" }], "title": "Left" },
                "right": { "$ref": "#/$defs/tree", "minProperties": 1 } },
        } },
    });
    check(&tree, &["{}", r#"{"left":{"left":{}},"right":{"right":{"left":{}}}}"#], &[r#"{"left":1}"#]);
    let closed = json!({ "allOf": [
        { "type": "object", "properties": { "a": { "type": "null" } }, "additionalProperties": false },
        { "properties": { "b": { "type": "null" } } },
    ] });
    check(&closed, &[r#"{"a":null}"#], &[r#"{"b":null}"#]);
    let lossy = json!({ "allOf": [
        { "type": "object", "properties": { "a": { "type": "integer", "multipleOf": 2 } } },
        { "properties": { "a": { "multipleOf": 3 } } },
    ] });
    let grammar = grammar_of(&lossy).expect("it is small");
    assert!(keywords(&grammar).contains(&"#/properties/a/multipleOf"), "{:?}", keywords(&grammar));
}

#[test]
fn references_nest_as_deep_as_they_like_and_never_in_a_circle() {
    let names: Vec<String> = (0..30).map(|index| format!("t{index}")).collect();
    let definitions: Map<String, Value> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let next = names.get(index + 1).map_or(
                json!({ "type": "null" }),
                |next| json!({ "type": "array", "items": { "$ref": format!("#/$defs/{next}") } }),
            );
            (name.clone(), json!({ "type": "object", "properties": { "next": next } }))
        })
        .collect();
    grammar_of(&json!({ "$ref": "#/$defs/t0", "$defs": definitions })).expect("each is shallow");
    for definitions in [
        json!({ "a": { "$ref": "#/$defs/a" } }),
        json!({ "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }),
        json!({ "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "string" }] } }),
        json!({ "a": { "allOf": [{ "$ref": "#/$defs/b" }, { "type": "string" }] }, "b": { "$ref": "#/$defs/a", "minLength": 1 } }),
    ] {
        let schema = json!({ "$ref": "#/$defs/a", "$defs": definitions });
        let message = grammar_of(&schema).expect_err("a circle").to_string();
        assert!(message.contains("leads to itself"), "{message} for {schema}");
    }
    // A part that can never end is left out.
    let endless = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "type": "null" } },
        "$defs": { "a": { "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "required": ["a"] } },
    });
    check(&endless, &["{}", r#"{"b":null}"#], &[]);
    assert!(
        !grammar_of(&endless).expect("it is small").write(GrammarFormat::Gbnf).contains("\\\"a\\\""),
        "a dead end"
    );
}

#[test]
fn keywords_are_stated_or_noted() {
    check(&json!({ "type": ["integer", "null"], "exclusiveMinimum": 0 }), &["1", "null"], &["0", "-1"]);
    check(
        &json!({ "type": "array", "prefixItems": [{ "type": "null" }, { "type": "integer" }, true], "maxItems": 2, "items": false }),
        &["[null,1]"],
        &["[null,1,1]"],
    );
    let noted = |schema: Value, place: &str| {
        let grammar = grammar_of(&schema).expect("it is small");
        assert!(keywords(&grammar).contains(&place), "{place} is not among {:?}", keywords(&grammar));
    };
    noted(json!({ "type": "integer", "minimum": 1e16 }), "#/minimum");
    noted(json!({ "enum": ["a", "long"], "minLength": 2 }), "#/minLength");
    noted(json!({ "enum": ["a", " "], "pattern": "\\S" }), "#/pattern");
    noted(json!({ "const": {}, "required": ["a"] }), "#/required");
    let kind = |name: &str| json!({ "type": "object", "properties": { "kind": { "const": name } } });
    noted(json!({ "oneOf": [kind("a"), kind("b")] }), "#/oneOf");
    let never = json!({ "type": "array", "prefixItems": [true], "items": false, "minItems": 2 });
    assert!(grammar_of(&never).is_err());
}

/// Random schema that nests at most `levels` deep.
fn random_schema(random: &mut RandomSource, levels: usize) -> Value {
    let text = |random: &mut RandomSource| json!({ "type": "string", "minLength": random.below(3), "maxLength": 1 + random.below(4) });
    match random.below(if levels == 0 { 5 } else { 10 }) {
        0 => text(random),
        1 => {
            json!({ "type": ["integer", "null"], "exclusiveMinimum": -(random.below(30) as i64), "maximum": random.below(200) })
        }
        2 => json!({ "type": "number", "minimum": -(random.below(9) as i64), "maximum": random.below(2000) }),
        3 => json!({ "enum": [1, "a", null, [2]] }),
        4 => json!({ "type": "boolean" }),
        5 => {
            json!({ "type": "array", "items": random_schema(random, levels - 1), "minItems": random.below(2), "maxItems": 1 + random.below(3) })
        }
        6 => {
            json!({ "type": "array", "prefixItems": [random_schema(random, levels - 1), text(random)], "maxItems": random.below(4), "items": random.below(2) == 0 })
        }
        7 => json!({ "anyOf": [random_schema(random, levels - 1), random_schema(random, levels - 1)] }),
        8 => json!({ "allOf": [random_object(random, levels), random_object(random, levels)] }),
        _ => random_object(random, levels),
    }
}

fn random_object(random: &mut RandomSource, levels: usize) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in ["a", "b", "c", "d"] {
        if random.below(3) > 0 {
            properties.insert(name.to_owned(), random_schema(random, levels - 1));
            if random.below(2) == 0 {
                required.push(name);
            }
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    if random.below(3) == 0 {
        schema["additionalProperties"] = Value::Bool(false);
    }
    schema
}

#[test]
fn values_of_random_schemas_satisfy_them() {
    let mut count = 0;
    for seed in 0..200 {
        let mut random = RandomSource::new(seed);
        let schema = random_schema(&mut random, 3);
        // Some schemas have no values.
        let Ok(grammar) = grammar_of(&schema) else { continue };
        assert!(keywords(&grammar).is_empty() || schema.to_string().contains("allOf"), "{schema}");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
        let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
        for seed in 0..10 {
            let mut generator = Generator { grammar: &grammar, random: RandomSource::new(seed), budget: 200 };
            let reply = generator.reply();
            let found = [lark.judge(&reply), gbnf.judge(&reply)];
            assert_eq!(found, [Judgement::Complete; 2], "{reply} by {schema}");
            let json = reply.rsplit("</think>").next().unwrap_or_default();
            let Ok(value) = serde_json::from_str::<Value>(json) else { continue };
            count += 1;
            if keywords(&grammar).is_empty() {
                assert!(validator.is_valid(&value), "{value} by {schema}");
            }
        }
    }
    assert!(count > 1000, "only {count}");
}

#[test]
fn parameters_hold_any_text_but_the_marks_of_their_form() {
    let schema = json!({
        "type": "object",
        "properties": { "content": { "type": "string", "minLength": 1 }, "size": { "$ref": "#/$defs/size" } },
        "required": ["content"],
        "$defs": { "size": { "type": "integer" } },
        "dependentRequired": { "size": ["content"] },
    });
    let settings = [("toolcall.format", json!("qwen3_coder")), ("tools", json!({ "write": schema }))];
    let grammar = grammar("toolcall", &settings).expect("it is small");
    let mut engine = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
    let mut judge = |value: &str| {
        engine.judge(&format!(
            "<tool_call>\n<function=write>\n<parameter=content>\n{value}\n</parameter>\n<parameter=size>\n12</parameter>\n</function>\n</tool_call>"
        ))
    };
    for value in
        ["", "<p class=\"a\">b</p>", "#include <stdio.h>\nVec<T> a<b", "<!-- x --> <|y|> <<", "a&lt;b"]
    {
        assert_ne!(judge(value), Judgement::Unfinished, "{value}");
        assert!(
            !matches!(judge(value), Judgement::Refused(at) if at < 56 + value.len()),
            "{value}: {:?}",
            judge(value)
        );
    }
    for value in ["</function>", "a </tool_call> b", "<parameter=x>"] {
        assert!(matches!(judge(value), Judgement::Refused(_)), "{value}");
    }
    // Each reference takes a copy of the whole schema.
    let mut wide = json!({ "type": "object", "properties": {}, "$defs": { "size": { "type": "integer" } } });
    for index in 0..400 {
        wide["properties"][format!("p{index}")] = json!({ "$ref": "#/$defs/size" });
    }
    let settings = [("toolcall.format", json!("qwen3_coder")), ("tools", json!({ "wide": wide }))];
    let message = super::forms::grammar("toolcall", &settings).expect_err("too much").to_string();
    assert!(message.contains("more than 200000 parts (reached at #/properties/p"), "{message}");
    let places = keywords(&grammar);
    for place in ["#/properties/content/minLength", "#/dependentRequired"] {
        assert!(places.contains(&place), "{place} is not among {places:?}");
    }
}

/// Schemas of a tool that allow the same: an integer `size`, and a text `name` that may be left out.
fn tool_schemas() -> Vec<(&'static str, Value)> {
    let size = || json!({ "type": "object", "properties": { "size": { "$ref": "#/$defs/size" } }, "required": ["size"] });
    let name = || json!({ "properties": { "name": { "type": "string" } } });
    let both = || {
        json!({ "type": "object", "properties": { "size": { "$ref": "#/$defs/size" }, "name": { "type": "string" } },
            "required": ["size"] })
    };
    let kind = || json!({ "type": "integer" });
    vec![
        ("$ref", json!({ "$ref": "#/$defs/args", "$defs": { "args": both(), "size": kind() } })),
        (
            "$ref and more",
            json!({ "$ref": "#/$defs/args", "title": "T", "properties": { "size": { "minimum": 0 } },
                "$defs": { "args": both(), "size": kind() } }),
        ),
        ("allOf", json!({ "allOf": [size(), name()], "$defs": { "size": kind() } })),
        (
            "allOf of references",
            json!({ "allOf": [{ "$ref": "#/$defs/a%62c" }, { "$ref": "#/$defs/next" }], "type": "object",
                "$defs": { "abc": size(), "next": { "$ref": "#/$defs/name" }, "name": { "allOf": [name()] }, "size": kind() } }),
        ),
    ]
}

#[test]
fn the_root_of_a_schema_of_a_tool_is_followed() {
    let formats = [
        (
            "hermes",
            "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"size\": 12, \"name\": \"7\"}}\n</tool_call>",
        ),
        (
            "qwen3_coder",
            "<tool_call>\n<function=write>\n<parameter=size>\n12\n</parameter>\n<parameter=name>\n7\n</parameter>\n</function>\n</tool_call>",
        ),
        (
            "glm",
            "<tool_call>write\n<arg_key>size</arg_key>\n<arg_value>12</arg_value>\n<arg_key>name</arg_key>\n<arg_value>7</arg_value>\n</tool_call>",
        ),
    ];
    for (title, schema) in tool_schemas() {
        for (format, reply) in formats {
            let settings = [("toolcall.format", json!(format)), ("tools", json!({ "write": schema }))];
            let grammar = grammar("toolcall", &settings).expect("it is small");
            let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
            let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
            let mut judge =
                |reply: &str| [lark.judge(reply), gbnf.judge(reply)].map(|it| it == Judgement::Complete);
            assert_eq!(judge(reply), [true; 2], "{title} of {format}: {reply}");
            for wrong in
                [reply.replace("12", "x"), reply.replace("12", "true"), reply.replace("size", "width")]
            {
                assert_eq!(judge(&wrong), [false; 2], "{title} of {format}: {wrong}");
            }
            // Accepted values are read with the types of the schema.
            let mut options = tambour::Options::default();
            for (key, value) in settings {
                options.set(key, value).expect("an option");
            }
            let contract = tambour::verdict::Contract::from_name("toolcall").expect("a dialect");
            let verdict = contract.check(reply.as_bytes(), &options);
            assert!(verdict.passed(), "{title} of {format}: {:?}", verdict.findings);
            assert_eq!(keywords(&grammar), Vec::<&str>::new(), "{title} of {format}");
        }
    }
}

#[test]
fn the_root_of_a_schema_of_a_tool_is_bounded() {
    let error = |schema: Value| {
        let settings = [("toolcall.format", json!("qwen3_coder")), ("tools", json!({ "write": schema }))];
        grammar("toolcall", &settings).expect_err("too much").to_string()
    };
    let message = error(
        json!({ "type": "object", "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } }),
    );
    assert!(message.contains("`#/$defs/a` leads to itself"), "{message}");
    // Each doubles the next one.
    let doubled = |count: usize| {
        let mut definitions: Map<String, Value> = (0..count)
            .map(|index| {
                let next = json!({ "$ref": format!("#/$defs/d{}", index + 1) });
                (format!("d{index}"), json!({ "allOf": [next, next] }))
            })
            .collect();
        definitions.insert(
            format!("d{count}"),
            json!({ "type": "object", "properties": { "a": { "type": "null" } } }),
        );
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    };
    let message = error(doubled(22));
    assert!(message.contains("more than 200000 parts"), "{message}");
    let message = error(doubled(60));
    assert!(message.contains("more than 48"), "{message}");
    // Keywords that cannot be joined are noted, and the first of both holds.
    let lossy = json!({ "allOf": [
        { "type": "object", "properties": { "size": { "type": "integer", "multipleOf": 2 } } },
        { "properties": { "size": { "multipleOf": 3 } }, "minProperties": 1 },
    ] });
    let settings = [("toolcall.format", json!("qwen3_coder")), ("tools", json!({ "write": lossy }))];
    let places = grammar("toolcall", &settings).expect("it is small");
    for place in ["#/properties/size/multipleOf", "#/minProperties"] {
        assert!(keywords(&places).contains(&place), "{place} is not among {:?}", keywords(&places));
    }
}

#[test]
fn listed_texts_between_marks_have_no_quotes() {
    let schema = json!({ "type": "object", "properties": {
        "unit": { "type": "string", "enum": ["celsius", "a </parameter> b", " kelvin", "degree F"] },
        "mode": { "enum": ["fast", "slow"] },
        "mixed": { "enum": ["x", 1] },
    } });
    let mut options = tambour::Options::default();
    for (key, value) in [("toolcall.format", json!("qwen3_coder")), ("tools", json!({ "heat": schema }))] {
        options.set(key, value).expect("an option");
    }
    let entry = tambour::dialect::find_dialect("toolcall").expect("a dialect");
    let grammar = tambour::policy::grammar(entry, &options).expect("it has one").expect("it is small");
    let mut lark = LarkEngine::new(&grammar.write(GrammarFormat::Lark));
    let gbnf = GbnfEngine::new(&grammar.write(GrammarFormat::Gbnf));
    for (name, value, is_accepted) in [
        ("unit", "celsius", true),
        ("unit", "degree F", true),
        ("unit", "\"celsius\"", false),
        ("unit", " kelvin", false),
        ("unit", "a </parameter> b", false),
        ("unit", "rankine", false),
        ("mode", "slow", true),
        ("mode", "\"slow\"", false),
        ("mixed", "1", true),
    ] {
        let reply = format!(
            "<tool_call>\n<function=heat>\n<parameter={name}>\n{value}\n</parameter>\n</function>\n</tool_call>"
        );
        let found =
            [lark.judge(&reply), gbnf.judge(&reply)].map(|judgement| judgement == Judgement::Complete);
        assert_eq!(found, [is_accepted; 2], "{name} = {value}");
        let contract = tambour::verdict::Contract::from_name("toolcall").expect("a dialect");
        let verdict = contract.check(reply.as_bytes(), &options);
        assert!(!is_accepted || verdict.passed(), "{name} = {value}: {:?}", verdict.findings);
    }
}

#[test]
fn integers_have_as_many_digits_as_ids() {
    check(&json!({ "type": "integer" }), &["175928847299117063", "-1", "0"], &["1.5", "01", "1e3"]);
    let grammar = grammar_of(&json!({ "type": "integer", "minimum": 0 })).expect("it is small");
    assert!(grammar.note_lines().iter().any(|line| line.contains("at most 18 digits")));
    let tag = grammar.write(GrammarFormat::StructuralTag);
    assert!(tag.contains("JSON follows its schema alone"), "{tag}");
}
