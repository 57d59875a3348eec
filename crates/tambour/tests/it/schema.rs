//! Cost of checks against a schema.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tambour::event::EventCollector;
use tambour::schema::{Schema, SchemaLimits, SchemaMismatch};
use tambour::state::{ApplyOptions, Operation, apply};
use tambour::tool::{RegisteredTool, ToolRegistry};
use tambour::{InputEnd, Options, Pipeline};

/// Builds a chain of definitions, each of which refers to the next twice through `link`; the last is an integer.
fn doubling_schema(depth: usize, link: fn(Value) -> Value) -> Value {
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
    let assert_refused = |schema: Value, value: Value| {
        let schema = Schema::new(schema).unwrap();
        assert!(!schema.accepts(&value));
        let mismatches = schema.check(&value, 8);
        assert!(mismatches.len() == 1 && mismatches[0].message.contains("2000000 steps"), "{mismatches:?}");
    };
    assert_refused(doubling_schema(40, |next| next), json!(1));
    assert_refused(doubling_schema(40, |next| json!({"anyOf": [next]})), json!("a"));
    // References in each element of a list of lists.
    let deep = (0..40).fold(json!(1), |value, _| json!([value]));
    assert_refused(doubling_schema(40, |next| json!({"items": next})), deep.clone());
    assert_refused(json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}), deep.clone());
    let anchored = json!({"$anchor": "a", "allOf": [{"items": {"$ref": "#a"}}, {"items": {"$ref": "#a"}}]});
    assert_refused(anchored, deep);
    let fields = (0..40).fold(json!(1), |value, _| json!({"a": value}));
    let overlapping = json!({"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}});
    assert_refused(overlapping, fields.clone());
    let alternatives =
        json!({"anyOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]});
    assert_refused(alternatives, fields);
    // A schema that refers to itself, and one whose address is outside this document.
    assert_refused(json!({"allOf": [{"$ref": "#"}]}), json!(1));
    let outside = json!({"$id": "http://a/b", "$defs": {"c": {"$id": "http://a/c"}}, "$ref": "http://a/c"});
    assert_refused(outside, json!(1));
}

/// Builds a schema of nested levels, each of which refers to the next twice under `word`.
fn nested_schema(word: &str, levels: usize) -> Value {
    let level = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let schema = if at == levels { json!({"type": "string"}) } else { json!({ word: [next, next] }) };
        (format!("d{at}"), schema)
    };
    json!({"$ref": "#/$defs/d0", "$defs": (0..=levels).map(level).collect::<Map<_, _>>()})
}

/// Largest number of bytes that a check may allocate at once.
const MAX_CHECK_BYTES: u64 = 16 << 20;

/// Lists the faults of a value; fails above the bound of memory.
fn check_measured(schema: &Schema, value: &Value) -> Vec<SchemaMismatch> {
    let mut mismatches = Vec::new();
    let memory = allocation_counter::measure(|| mismatches = schema.check(value, 8));
    assert!(memory.bytes_max < MAX_CHECK_BYTES, "{memory:?}");
    mismatches
}

#[test]
fn what_is_wrong_is_told_within_bounds_of_time_and_memory() {
    // Faults of nested alternatives double with each level.
    for word in ["anyOf", "oneOf", "allOf"] {
        for levels in [4, 8, 12, 14, 16] {
            let schema = Schema::new(nested_schema(word, levels)).unwrap();
            let start = Instant::now();
            let mut mismatches = Vec::new();
            let memory = allocation_counter::measure(|| {
                assert!(!schema.accepts(&json!({"a": 1})));
                mismatches = schema.check(&json!({"a": 1}), 8);
            });
            assert!(memory.bytes_max < MAX_CHECK_BYTES, "{word} {levels}: {memory:?}");
            assert!(!mismatches.is_empty());
            // Faults of 4 levels are reported one by one, those of 16 levels of alternatives are not.
            assert!(levels > 4 || !mismatches[0].is_too_complex, "{word} {levels}: {mismatches:?}");
            assert!(
                levels < 16 || word == "allOf" || mismatches[0].is_too_complex,
                "{word} {levels}: {mismatches:?}"
            );
            assert!(start.elapsed() < Duration::from_secs(2), "{word} {levels}: {:?}", start.elapsed());
        }
    }
    // Each fault holds the long key in its pointer, or the words of the `enum` in its message.
    let key = "k".repeat(100_000);
    let nulls = Value::from(vec![Value::Null; 10_000]);
    let text_schema = Schema::new(json!({"additionalProperties": {"items": {"type": "string"}}})).unwrap();
    let value = json!({ key.as_str(): nulls });
    let mismatches = check_measured(&text_schema, &value);
    assert!(
        mismatches.len() == 1 && mismatches[0].pointer.ends_with("/0"),
        "{} {}",
        mismatches.len(),
        mismatches[0].message
    );
    let words: Vec<String> = (0..10_000).map(|at| format!("word{at}")).collect();
    let word_schema = Schema::new(json!({"items": {"enum": words}})).unwrap();
    let mismatches = check_measured(&word_schema, &Value::from(vec![json!("x"); 90]));
    assert!(!mismatches.is_empty() && !mismatches[0].is_too_complex, "{mismatches:?}");
    // A single wrong element among many is found.
    let number_schema = Schema::new(json!({"items": {"type": "integer", "minimum": 0}})).unwrap();
    let mut integers = vec![json!(1); 100_000];
    integers[70_000] = json!(-1);
    let mismatches = check_measured(&number_schema, &Value::from(integers));
    assert_eq!((mismatches.len(), mismatches[0].pointer.as_str()), (1, "/70000"));
}

#[test]
fn schemas_of_strangers_that_no_value_can_be_checked_against_are_refused() {
    let compile = |schema: Value| Schema::with_limits(schema, &SchemaLimits::default()).map(|_| ());
    for (schema, pointer) in [
        (nested_schema("anyOf", 18), ""),
        (nested_schema("oneOf", 22), ""),
        (
            json!({"properties": {"a~/b": nested_schema("anyOf", 18)["$defs"]["d0"], "c": true}, "$defs": nested_schema("anyOf", 18)["$defs"]}),
            "/properties/a~0~1b",
        ),
        (json!({"allOf": [{"$ref": "#"}]}), ""),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            "",
        ),
    ] {
        let error = compile(schema.clone()).unwrap_err();
        assert_eq!((error.code, error.pointer.as_str()), ("schema_too_complex", pointer), "{error}");
    }
    // Schemas that recurse through the value are usual.
    let tree = json!({"$defs": {"t": {"properties": {"left": {"$ref": "#/$defs/t"}, "right": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"});
    compile(tree).unwrap();
    compile(json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]})).unwrap();
}

#[test]
fn a_chain_of_references_is_no_deeper_than_a_stack() {
    type Link = fn(Value) -> Value;
    let links: [(Link, usize); 3] = [
        (|next| next, 500),
        (|next| json!({"items": next}), 480),
        (|next| json!({"properties": {"a": {"anyOf": [next]}}}), 160),
    ];
    for (link, max_length) in links {
        let chain = |length: usize| {
            let level = |at: usize| {
                let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                (format!("d{at}"), if at == length { json!({}) } else { link(next) })
            };
            json!({"$ref": "#/$defs/d0", "$defs": (0..=length).map(level).collect::<Map<_, _>>()})
        };
        let compile = |schema: Value| Schema::with_limits(schema, &SchemaLimits::default());
        let error = compile(chain(6000)).unwrap_err();
        assert_eq!(error.code, "schema_too_complex", "{error}");
        // The deepest chain, on a thread stack of the size that servers use.
        let deep = chain(max_length);
        let thread =
            std::thread::Builder::new().stack_size(2 << 20).spawn(move || compile(deep).map(drop)).unwrap();
        thread.join().expect("the stack is enough").expect("it is taken");
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
        (json!({"items": {"$ref": "#/$defs/none"}}), ["`/items/$ref`", "does not exist"]),
        (json!({"properties": {"a": {"pattern": "^(?=a)b"}}}), ["`/properties/a/pattern`", "look-around"]),
        (json!({"patternProperties": {"(a)\\1": {}}}), ["`/patternProperties/(a)\\1`", "back reference"]),
    ] {
        for message in [
            Schema::new(schema.clone()).unwrap_err().to_string(),
            Schema::from_checked(schema.clone()).unwrap_err().to_string(),
        ] {
            assert!(words.iter().all(|word| message.contains(word)), "{schema}: {message}");
        }
    }
    // Data is no schema, and a document may refer to itself and to the meta-schemas.
    for schema in [
        json!({"const": {"$ref": "http://example.com/x"}, "examples": [{"pattern": "(?=a)"}]}),
        json!({"$id": "http://example.com/x", "properties": {"a": {"$ref": "http://example.com/x"}}}),
        json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        json!({"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}}),
        // An escaped backslash before a digit is no back reference, and an escaped bracket begins no group.
        json!({"pattern": r"^C:\\1$", "patternProperties": {r"^\(?=x$": {}}}),
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
    let alternatives: Vec<Value> = patterns.collect();
    let schema = Schema::new(json!({"additionalProperties": {"anyOf": alternatives}})).unwrap();
    let mut state: Value = (0..9_000).map(|at| (format!("k{at}"), json!("v".repeat(20)))).collect();
    let operations: Vec<Value> = (0..9_999).map(|at| json!(["SET", format!("a{at}"), "x"])).collect();
    let options = ApplyOptions { schema: Some(&schema), ..ApplyOptions::default() };
    let operations = Operation::parse_list(&Value::from(operations)).unwrap();
    let start = std::time::Instant::now();
    let results = apply(&mut state, &operations, &options);
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(results[0].ok && !results.last().unwrap().ok);
    // With the stop flag set, nothing is applied.
    let stop_flag = std::sync::atomic::AtomicBool::new(true);
    let options = ApplyOptions { stop_flag: Some(&stop_flag), ..options };
    let results = apply(&mut json!({}), &operations[..2], &options);
    assert!(
        results.iter().all(|result| result.reason.is_some_and(|reason| reason.to_string() == "not_applied"))
    );
}

#[test]
fn schemas_that_are_compiled_again_and_again_are_refused() {
    let branch = json!({"properties": {"a": true}, "unevaluatedProperties": false});
    let heavy_schema = json!({
        "allOf": vec![json!({"$ref": "#/$defs/a"}); 2_000], "unevaluatedProperties": false,
        "$defs": {"a": {"anyOf": vec![branch; 20]}},
    });
    let nested = (0..40).fold(
        json!({"type": "object"}),
        |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
    );
    for schema in [heavy_schema, nested] {
        let start = std::time::Instant::now();
        let error = Schema::with_limits(schema, &SchemaLimits::default()).unwrap_err();
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!((&*error.pointer, error.code), ("", "schema_too_complex"), "{error}");
        assert!(error.message.contains("unevaluatedProperties"), "{error}");
    }
    let valid_schema = json!({
        "allOf": vec![json!({"$ref": "#/$defs/a"}); 50], "unevaluatedProperties": false,
        "$defs": {"a": {"properties": {"a": {"type": "string"}}}},
    });
    assert!(Schema::with_limits(valid_schema, &SchemaLimits::default()).is_ok());
}

#[test]
fn a_long_list_against_many_schemas_is_not_checked_for_minutes() {
    let schemas: Vec<_> = (0..5000).map(|at| json!({"items": {"minimum": -at}})).collect();
    let schema = Schema::new(json!({ "allOf": schemas })).unwrap();
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
    let value = (0..14).fold(json!({"n%": 1}), |side, _| json!({"left": side, "right": side}));
    assert!(tree.accepts(&json!({"root": value, "at": 2})));
    let mismatches = tree.check(&json!({"root": {"left": {"n%": "x"}}, "at": "y"}), 8);
    assert_eq!(mismatches.len(), 2, "{mismatches:?}");
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
    let planned_call = json!({"name": "t", "args": args});
    let plan = json!({"thought": "x", "response_mode": "TOOL_EXECUTION", "direct_response": null,
        "tool_calls": vec![&planned_call; 200]});
    for (dialect, reply) in [
        ("toolcall", tagged),
        ("filament", format!("<content>x</content>{block}")),
        ("aiplan", plan.to_string()),
    ] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new(dialect, &options).unwrap();
        pipeline.push_str(&reply, &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let findings = &sink.findings;
        assert!(
            findings.iter().any(|finding| finding.message.contains("schema_too_complex")),
            "{dialect}: {findings:?}"
        );
    }
}
