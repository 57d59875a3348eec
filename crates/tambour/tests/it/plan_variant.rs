//! Instructions and schema of `aiplan.variant=v2`, compared with the check (R-30, P-023).

use serde_json::{Value, json};
use tambour::dialect::find_dialect;
use tambour::options::{Language, Texts};
use tambour::verdict::Contract;
use tambour::{Options, Profile};

/// Options of v2 with these tools.
fn options(tools: &Value) -> Options {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options.set("aiplan.variant", "v2").expect("an option");
    options.set("tools", tools.clone()).expect("tools");
    options
}

/// A read-only tool and another one.
fn sample_tools() -> Value {
    json!({ "look": { "type": "object", "readOnly": true }, "wipe": { "type": "object" } })
}

#[test]
fn the_schema_of_v2_takes_what_the_check_takes() {
    let entry = find_dialect("aiplan").expect("a dialect");
    let contract = Contract::from_name("aiplan").expect("it exists");
    let call = |name: &str| json!([{ "name": name, "args": {} }]);
    let lists = [json!([]), call("look"), call("wipe")];
    let texts = [json!("Yes."), json!(null), json!(" ")];
    let steps = [None, Some(json!({ "steps": [] })), Some(json!("first this")), Some(json!(null))];
    for tools in [sample_tools(), json!({ "wipe": { "type": "object" } })] {
        let options = options(&tools);
        let schema = entry.schema.expect("it has a schema")(&options);
        let schema = jsonschema::validator_for(&schema).expect("it is a schema");
        let mut valid = 0;
        for mode in ["TOOL_EXECUTION", "KNOWLEDGE_QA", "PLAN_EXECUTION", "GENERAL_CHAT"] {
            for text in &texts {
                for calls in &lists {
                    for steps in &steps {
                        let mut plan = json!({
                            "thought": "t", "response_mode": mode, "direct_response": text, "tool_calls": calls
                        });
                        if let Some(steps) = steps {
                            plan["execution_plan"] = steps.clone();
                        }
                        let reply = format!("```json\n{plan}\n```\n");
                        let errors = contract.check(reply.as_bytes(), &options).findings;
                        let errors: Vec<_> =
                            errors.iter().filter(|found| found.code != "field_unknown").collect();
                        // R-30, P-015
                        assert_eq!(schema.is_valid(&plan), errors.is_empty(), "{plan}: {errors:?}");
                        valid += usize::from(errors.is_empty());
                    }
                }
            }
        }
        assert!(valid > 8, "{valid}");
    }
}

#[test]
fn the_instructions_of_v2_say_what_the_check_demands() {
    let prompt = find_dialect("aiplan").expect("a dialect").prompt.expect("it has instructions");
    let assert_says = |language: Language, tools: &Value, words: &[&str]| {
        let mut options = options(tools);
        options.texts = Texts::from_language(language);
        let text = prompt(&options).text();
        for word in words {
            assert!(text.contains(word), "`{word}` is not in:\n{text}");
        }
        let verdict = Contract::from_name("aiplan")
            .expect("it exists")
            .check(prompt(&options).example.as_bytes(), &options);
        assert_eq!(verdict.findings, []);
    };
    // R-30, P-036
    assert_says(
        Language::En,
        &sample_tools(),
        &[
            "- TOOL_EXECUTION: direct_response is null; tool_calls has at least one call.",
            "- KNOWLEDGE_QA: direct_response is a text in Markdown that is not empty, or null if there are calls; \
         tool_calls is [] or has calls of tools that only read, which are look.",
            "- PLAN_EXECUTION: there is a further field execution_plan, an object with the steps; direct_response is a text \
         in Markdown that is not empty, or null; tool_calls is [].",
        ],
    );
    assert_says(
        Language::Zh,
        &sample_tools(),
        &[
            "- TOOL_EXECUTION：direct_response 为 null；tool_calls 至少有一个调用。",
            "- KNOWLEDGE_QA：direct_response 是非空的 Markdown 文本，有调用时也可以为 null；\
         tool_calls 为 []，或者只调用只读的工具，即 look。",
            "- PLAN_EXECUTION：另有一个字段 execution_plan，是列出各步骤的对象；\
         direct_response 是非空的 Markdown 文本，也可以为 null；tool_calls 为 []。",
        ],
    );
    let no_readers = json!({ "wipe": { "type": "object" } });
    assert_says(
        Language::En,
        &no_readers,
        &["- KNOWLEDGE_QA: direct_response is a text in Markdown that is not empty; tool_calls is []."],
    );
}
