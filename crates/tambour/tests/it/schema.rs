//! Cost of checks against a schema.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tambour::event::EventCollector;
use tambour::schema::{Schema, SchemaLimits, SchemaMismatch};
use tambour::state::{ApplyOptions, Operation, apply};
use tambour::tool::{RegisteredTool, ToolRegistry};
use tambour::{InputEnd, Options, Pipeline};

/// Builds a chain of definitions, each of which refers to the next twice through `link`; the last is an integer.
fn doubling(depth: usize, link: fn(Value) -> Value) -> Value {
    let definition = |at: usize| {
        let next = || json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let schema = if at == depth {
            json!({"type": "integer"})
        } else {
            json!({"allOf": [link(next()), link(next())]})
        };
        (format!("d{at}"), schema)
    };
    json!({"$defs": (0..=depth).map(definition).collect::<Map<_, _>>(), "$ref": "#/$defs/d0"})
}

#[test]
fn references_that_double_the_work_are_not_followed() {
    let refused = |schema: Value, value: Value| {
        let schema = Schema::new(schema).unwrap();
        assert!(!schema.accepts(&value));
        let wrong = schema.check(&value, 8);
        assert!(wrong.len() == 1 && wrong[0].message.contains("2000000 steps"), "{wrong:?}");
    };
    refused(doubling(40, |next| next), json!(1));
    refused(doubling(40, |next| json!({"anyOf": [next]})), json!("a"));
    // References in each element of a list of lists.
    let deep = (0..40).fold(json!(1), |value, _| json!([value]));
    refused(doubling(40, |next| json!({"items": next})), deep.clone());
    refused(json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}), deep.clone());
    let named = json!({"$anchor": "a", "allOf": [{"items": {"$ref": "#a"}}, {"items": {"$ref": "#a"}}]});
    refused(named, deep);
    let fields = (0..40).fold(json!(1), |value, _| json!({"a": value}));
    let both = json!({"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}});
    refused(both, fields.clone());
    let others =
        json!({"anyOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]});
    refused(others, fields);
    // A schema that refers to itself, and one whose address is outside this document.
    refused(json!({"allOf": [{"$ref": "#"}]}), json!(1));
    let elsewhere = json!({"$id": "http://a/b", "$defs": {"c": {"$id": "http://a/c"}}, "$ref": "http://a/c"});
    refused(elsewhere, json!(1));
}

/// Builds a schema of nested levels, each of which refers to the next twice under `word`.
fn tower(word: &str, levels: usize) -> Value {
    let level = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let schema = if at == levels { json!({"type": "string"}) } else { json!({ word: [next, next] }) };
        (format!("d{at}"), schema)
    };
    json!({"$ref": "#/$defs/d0", "$defs": (0..=levels).map(level).collect::<Map<_, _>>()})
}

/// Largest number of bytes that a check may allocate at once.
const MEMORY: u64 = 16 << 20;

/// Lists the faults of a value; fails above the bound of memory.
fn measured(schema: &Schema, value: &Value) -> Vec<SchemaMismatch> {
    let mut wrong = Vec::new();
    let memory = allocation_counter::measure(|| wrong = schema.check(value, 8));
    assert!(memory.bytes_max < MEMORY, "{memory:?}");
    wrong
}

#[test]
fn what_is_wrong_is_told_within_bounds_of_time_and_memory() {
    // Faults of nested alternatives double with each level.
    for word in ["anyOf", "oneOf", "allOf"] {
        for levels in [4, 8, 12, 14, 16] {
            let schema = Schema::new(tower(word, levels)).unwrap();
            let started = Instant::now();
            let mut wrong = Vec::new();
            let memory = allocation_counter::measure(|| {
                assert!(!schema.accepts(&json!({"a": 1})));
                wrong = schema.check(&json!({"a": 1}), 8);
            });
            assert!(memory.bytes_max < MEMORY, "{word} {levels}: {memory:?}");
            assert!(!wrong.is_empty());
            // 4 levels are listed in full, 16 levels of alternatives are too complex.
            assert!(levels > 4 || !wrong[0].is_too_complex, "{word} {levels}: {wrong:?}");
            assert!(levels < 16 || word == "allOf" || wrong[0].is_too_complex, "{word} {levels}: {wrong:?}");
            assert!(started.elapsed() < Duration::from_secs(2), "{word} {levels}: {:?}", started.elapsed());
        }
    }
    // Each fault holds the long key in its pointer, or the words of the `enum` in its message.
    let key = "k".repeat(100_000);
    let nulls = Value::from(vec![Value::Null; 10_000]);
    let texts = Schema::new(json!({"additionalProperties": {"items": {"type": "string"}}})).unwrap();
    let value = json!({ key.as_str(): nulls });
    let wrong = measured(&texts, &value);
    assert!(wrong.len() == 1 && wrong[0].pointer.ends_with("/0"), "{} {}", wrong.len(), wrong[0].message);
    let words: Vec<String> = (0..10_000).map(|at| format!("word{at}")).collect();
    let listed = Schema::new(json!({"items": {"enum": words}})).unwrap();
    let wrong = measured(&listed, &Value::from(vec![json!("x"); 90]));
    assert!(!wrong.is_empty() && !wrong[0].is_too_complex, "{wrong:?}");
    // A single wrong element among many is found.
    let numbers = Schema::new(json!({"items": {"type": "integer", "minimum": 0}})).unwrap();
    let mut many = vec![json!(1); 100_000];
    many[70_000] = json!(-1);
    let wrong = measured(&numbers, &Value::from(many));
    assert_eq!((wrong.len(), wrong[0].pointer.as_str()), (1, "/70000"));
}

#[test]
fn schemas_of_strangers_that_no_value_can_be_checked_against_are_refused() {
    let limited = |schema: Value| Schema::with_limits(schema, &SchemaLimits::default()).map(|_| ());
    for (schema, pointer) in [
        (tower("anyOf", 18), ""),
        (tower("oneOf", 22), ""),
        (
            json!({"properties": {"a~/b": tower("anyOf", 18)["$defs"]["d0"], "c": true}, "$defs": tower("anyOf", 18)["$defs"]}),
            "/properties/a~0~1b",
        ),
        (json!({"allOf": [{"$ref": "#"}]}), ""),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            "",
        ),
    ] {
        let unfit = limited(schema.clone()).unwrap_err();
        assert_eq!((unfit.code, unfit.pointer.as_str()), ("schema_too_complex", pointer), "{unfit}");
    }
    // Schemas that recurse through the value are usual.
    let tree = json!({"$defs": {"t": {"properties": {"left": {"$ref": "#/$defs/t"}, "right": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"});
    limited(tree).unwrap();
    limited(json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]})).unwrap();
}

#[test]
fn a_chain_of_references_is_no_deeper_than_a_stack() {
    type Link = fn(Value) -> Value;
    let links: [(Link, usize); 3] = [
        (|next| next, 500),
        (|next| json!({"items": next}), 480),
        (|next| json!({"properties": {"a": {"anyOf": [next]}}}), 160),
    ];
    for (link, most) in links {
        let chain = |length: usize| {
            let level = |at: usize| {
                let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                (format!("d{at}"), if at == length { json!({}) } else { link(next) })
            };
            json!({"$ref": "#/$defs/d0", "$defs": (0..=length).map(level).collect::<Map<_, _>>()})
        };
        let limited = |schema: Value| Schema::with_limits(schema, &SchemaLimits::default());
        let unfit = limited(chain(6000)).unwrap_err();
        assert_eq!(unfit.code, "schema_too_complex", "{unfit}");
        // The deepest chain, on a thread stack of the size that servers use.
        let deep = chain(most);
        let compiled =
            std::thread::Builder::new().stack_size(2 << 20).spawn(move || limited(deep).map(drop)).unwrap();
        compiled.join().expect("the stack is enough").expect("it is taken");
    }
}

#[test]
fn references_and_patterns_that_cannot_be_used_are_told_with_their_place() {
    for (schema, words) in [
        (
            json!({"properties": {"a": {"$ref": "http://example.com/x.json"}}}),
            ["`/properties/a/$ref`", "another document"],
        ),
        (json!({"$ref": "file:///etc/passwd#/a"}), ["`/$ref`", "another document"]),
        (json!({"items": {"$ref": "other.json"}}), ["`/items/$ref`", "another document"]),
        (json!({"$id": "http://127.0.0.1:9/s", "$ref": "other"}), ["`/$ref`", "another document, `other`"]),
        (json!({"items": {"$ref": "#/$defs/none"}}), ["`/items/$ref`", "nothing stands"]),
        (json!({"properties": {"a": {"pattern": "^(?=a)b"}}}), ["`/properties/a/pattern`", "look-around"]),
        (json!({"patternProperties": {"(a)\\1": {}}}), ["`/patternProperties/(a)\\1`", "back reference"]),
    ] {
        for told in [
            Schema::new(schema.clone()).unwrap_err().to_string(),
            Schema::from_checked(schema.clone()).unwrap_err().to_string(),
        ] {
            assert!(words.iter().all(|word| told.contains(word)), "{schema}: {told}");
        }
    }
    // Data is no schema, and a document may refer to itself and to the meta-schemas.
    for schema in [
        json!({"const": {"$ref": "http://example.com/x"}, "examples": [{"pattern": "(?=a)"}]}),
        json!({"$id": "http://example.com/x", "properties": {"a": {"$ref": "http://example.com/x"}}}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}}),
    ] {
        Schema::from_checked(schema.clone()).unwrap_or_else(|error| panic!("{schema}: {error}"));
        Schema::new(schema.clone()).unwrap_or_else(|error| panic!("{schema}: {error}"));
    }
}

#[test]
fn checks_of_a_block_of_operations_have_their_steps_together() {
    // Each operation checks the whole state, which takes nearly all steps of a check.
    let schema =
        Schema::new(json!({"properties": {"list": {"items": {"allOf": vec![json!({"minimum": 0}); 100]}}}}))
            .unwrap();
    let mut state = json!({"list": vec![1; 2000]});
    let operations = vec![json!(["SET", "a", 1]); 400];
    let options = ApplyOptions { schema: Some(&schema), ..ApplyOptions::default() };
    let results = apply(&mut state, &Operation::parse_list(&Value::from(operations)).unwrap(), &options);
    assert!(results[0].ok, "{:?}", results[0]);
    let last = results.last().unwrap();
    assert_eq!(
        last.reason.map(|reason| reason.to_string()).as_deref(),
        Some("schema_too_complex"),
        "{last:?}"
    );
    // A schema that cannot be checked refuses the operation.
    let endless = Schema::from_trusted(json!({"allOf": [{"$ref": "#"}]}));
    let options = ApplyOptions { schema: Some(&endless), ..ApplyOptions::default() };
    let mut state = json!({});
    let results = apply(&mut state, &Operation::parse_list(&json!([["SET", "a", 1]])).unwrap(), &options);
    assert_eq!((results[0].ok, &state), (false, &json!({})));
}

#[test]
fn operations_behind_the_last_check_cost_nothing() {
    // Fewer steps remain than a check takes, and each further operation would use some of them to find that out.
    let patterns = vec![json!({"pattern": "^(x|y)*z$"}); 20].into_iter().chain([json!({})]);
    let any: Vec<Value> = patterns.collect();
    let schema = Schema::new(json!({"additionalProperties": {"anyOf": any}})).unwrap();
    let mut state: Value = (0..9_000).map(|at| (format!("k{at}"), json!("v".repeat(20)))).collect();
    let operations: Vec<Value> = (0..9_999).map(|at| json!(["SET", format!("a{at}"), "x"])).collect();
    let options = ApplyOptions { schema: Some(&schema), ..ApplyOptions::default() };
    let operations = Operation::parse_list(&Value::from(operations)).unwrap();
    let begun = std::time::Instant::now();
    let results = apply(&mut state, &operations, &options);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(results[0].ok && !results.last().unwrap().ok);
    // With the stop flag set, nothing is applied.
    let stopped = std::sync::atomic::AtomicBool::new(true);
    let options = ApplyOptions { stop_flag: Some(&stopped), ..options };
    let results = apply(&mut json!({}), &operations[..2], &options);
    assert!(
        results.iter().all(|result| result.reason.is_some_and(|reason| reason.to_string() == "not_applied"))
    );
}

#[test]
fn schemas_that_are_compiled_again_and_again_are_refused() {
    let branch = json!({"properties": {"a": true}, "unevaluatedProperties": false});
    let many = json!({
        "allOf": vec![json!({"$ref": "#/$defs/a"}); 2_000], "unevaluatedProperties": false,
        "$defs": {"a": {"anyOf": vec![branch; 20]}},
    });
    let nested = (0..40).fold(
        json!({"type": "object"}),
        |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
    );
    for schema in [many, nested] {
        let begun = std::time::Instant::now();
        let refused = Schema::with_limits(schema, &SchemaLimits::default()).unwrap_err();
        assert!(begun.elapsed() < std::time::Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_eq!((&*refused.pointer, refused.code), ("", "schema_too_complex"), "{refused}");
        assert!(refused.message.contains("unevaluatedProperties"), "{refused}");
    }
    let fine = json!({
        "allOf": vec![json!({"$ref": "#/$defs/a"}); 50], "unevaluatedProperties": false,
        "$defs": {"a": {"properties": {"a": {"type": "string"}}}},
    });
    assert!(Schema::with_limits(fine, &SchemaLimits::default()).is_ok());
}

#[test]
fn a_long_list_against_many_schemas_is_not_checked_for_minutes() {
    let many: Vec<_> = (0..5000).map(|at| json!({"items": {"minimum": -at}})).collect();
    let schema = Schema::new(json!({ "allOf": many })).unwrap();
    assert!(schema.accepts(&json!([1, 2, 3])));
    assert!(!schema.accepts(&Value::from(vec![1; 100_000])));
    // The length of a value does not count for a plain schema.
    let plain = Schema::new(json!({"items": {"type": "integer"}})).unwrap();
    assert!(plain.accepts(&Value::from(vec![1; 500_000])));
}

#[test]
fn recursive_schemas_of_usual_kinds_are_checked() {
    let tree = json!({
        "$defs": {"tree": {
            "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}, "n%": {"type": "integer"}},
        }},
        "properties": {"root": {"$ref": "#/$defs/tree"}, "at": {"$ref": "#/$defs/tree/properties/n%25"}},
    });
    let tree = Schema::new(tree).unwrap();
    let grown = (0..14).fold(json!({"n%": 1}), |side, _| json!({"left": side, "right": side}));
    assert!(tree.accepts(&json!({"root": grown, "at": 2})));
    let wrong = tree.check(&json!({"root": {"left": {"n%": "x"}}, "at": "y"}), 8);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

#[test]
fn checks_of_the_calls_of_a_reply_have_their_steps_together() {
    // Each call takes some of the steps.
    let schema = json!({"properties": {"list": {"items": {"allOf": vec![json!({"minimum": 0}); 400]}}}});
    let args = json!({"list": vec![1; 300]});
    let mut options = Options::default();
    options.tools = Some(ToolRegistry::new([RegisteredTool::new("t", schema).unwrap()]));
    let call = json!({"name": "t", "arguments": args});
    let tagged = format!("<tool_call>{call}</tool_call>\n").repeat(200);
    let block = format!("<tool_call name=\"t\">{args}</tool_call>\n").repeat(200);
    let planned = json!({"name": "t", "args": args});
    let plan = json!({"thought": "x", "response_mode": "TOOL_EXECUTION", "direct_response": null,
        "tool_calls": vec![&planned; 200]});
    for (dialect, reply) in [
        ("toolcall", tagged),
        ("filament", format!("<content>x</content>{block}")),
        ("aiplan", plan.to_string()),
    ] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new(dialect, &options).unwrap();
        pipeline.push_str(&reply, &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let told = &sink.findings;
        assert!(
            told.iter().any(|finding| finding.message.contains("schema_too_complex")),
            "{dialect}: {told:?}"
        );
    }
}
