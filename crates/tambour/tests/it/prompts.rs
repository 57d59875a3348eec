//! Format instructions and schemas agree with the contracts that they describe.

use serde_json::{Value, json};
use tambour::dialect::{DIALECTS, FormatInstructions, find_dialect};
use tambour::event::EventCollector;
use tambour::options::{Language, Texts};
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline, Profile};

fn prompts() -> impl Iterator<Item = (&'static str, FormatInstructions)> {
    [Language::Zh, Language::En].into_iter().flat_map(prompts_in)
}

fn prompts_in(language: Language) -> impl Iterator<Item = (&'static str, FormatInstructions)> {
    let mut options = Options::default();
    options.texts = Texts::from_language(language);
    DIALECTS.iter().filter_map(move |entry| Some((entry.name, (entry.prompt?)(&options))))
}

/// Contracts that read an example of the dialect: its own, and `auto` if it can detect the dialect.
fn contracts(name: &'static str) -> Vec<&'static str> {
    let opening = find_dialect(name).expect("a dialect").opening;
    let is_detectable = !opening.keys.is_empty() || !opening.tags.is_empty();
    [Some(name), is_detectable.then_some("auto")].into_iter().flatten().collect()
}

#[test]
fn auto_may_choose_all_structures_but_values() {
    let entries = DIALECTS.iter().filter(|entry| entry.prompt.is_some());
    for entry in entries {
        // X-013: a value of any schema has no opening to detect.
        assert_eq!(contracts(entry.name).contains(&"auto"), entry.name != "json_value", "{}", entry.name);
    }
}

#[test]
fn examples_pass_the_strict_check() {
    assert!(prompts().count() >= 4);
    for language in [Language::Zh, Language::En] {
        let mut options = Options::default();
        options.profile = Profile::Strict;
        options.texts = Texts::from_language(language);
        for (name, prompt) in prompts_in(language) {
            for contract in contracts(name) {
                let verdict = Contract::from_name(contract)
                    .expect("it exists")
                    .check(prompt.example.as_bytes(), &options);
                assert_eq!(verdict.findings, [], "{name}"); // T-066
                assert_eq!(verdict.contract, name);
            }
        }
    }
}

#[test]
fn the_example_comes_before_the_rules() {
    for (name, prompt) in prompts() {
        let text = prompt.text();
        let example = text.find(&*prompt.example).expect("the example is in the text"); // T-066
        assert!(example < text.find(&*prompt.rules).expect("the rules are in the text"), "{name}");
        assert!(!prompt.opening.contains("```") && prompt.opening.ends_with('\n'), "{name}");
    }
}

#[test]
fn an_example_turn_says_all_that_the_text_says() {
    let mut turn_count = 0;
    for (name, prompt) in prompts() {
        let messages = prompt.messages();
        let Some((request, reply)) = &messages.example else {
            assert_eq!(messages.system, prompt.text(), "{name}");
            continue;
        };
        turn_count += 1;
        assert_eq!(reply.trim_end(), prompt.example.trim_end(), "{name}"); // T-066
        assert!(prompt.opening.contains(request.as_str()), "{name}");
        assert!(messages.system.ends_with(&*prompt.rules) && !messages.system.contains(reply), "{name}");
    }
    assert!(turn_count >= 4);
}

#[test]
fn the_instructions_say_what_becomes_of_entities_in_code() {
    for (_, prompt) in prompts().filter(|(name, _)| *name == "thinkingml") {
        assert!(prompt.rules.contains("&lt; &gt; &amp; &quot; &apos;"), "{}", prompt.rules); // R-71
    }
}

#[test]
fn the_jsonseq_schema_describes_the_example() {
    let schema =
        find_dialect("jsonseq").expect("a dialect").schema.expect("it has a schema")(&Options::default());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let branches = schema["oneOf"].as_array().expect("one schema for each event");
    let mut example_kinds = Vec::new();
    for (_, prompt) in prompts().filter(|(name, _)| *name == "jsonseq") {
        for line in prompt.example.lines() {
            let event: Value = serde_json::from_str(line).expect("a line is JSON");
            let is_branch_of = |branch: &&Value| branch["properties"]["event"]["const"] == event["event"];
            let branch = branches.iter().find(is_branch_of).expect("each event has a schema");
            let data = &branch["properties"]["data"];
            let names = |value: &Value| -> Vec<String> {
                let mut names: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(&event["data"]), names(&data["properties"]));
            assert_eq!(data["additionalProperties"], false);
            assert_eq!(
                data["required"].as_array().map(Vec::len),
                event["data"].as_object().map(|data| data.len())
            );
            example_kinds.push(event["event"].clone());
        }
    }
    assert!(branches.iter().all(|branch| example_kinds.contains(&branch["properties"]["event"]["const"])));
}

#[test]
fn the_ai_say_schema_describes_the_example() {
    let names = |value: &Value| -> Vec<String> {
        value.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default()
    };
    let entry = find_dialect("ai_say").expect("a dialect");
    for language in [Language::Zh, Language::En] {
        let mut options = Options::default();
        options.texts = Texts::from_language(language);
        let schema = entry.schema.expect("it has a schema")(&options);
        let prompt = entry.prompt.expect("it has instructions")(&options);
        let example: Value = serde_json::from_str(&prompt.example).expect("the example is JSON");
        assert_eq!(names(&example), names(&schema["properties"])); // S-051
        for part in ["assessment", "response"] {
            assert_eq!(names(&example[part]), names(&schema["properties"][part]["properties"])); // S-051
        }
        // X-011: no placeholders, which small models would copy.
        let text = prompt.text();
        assert!(!["0-100", "true|false", "..."].iter().any(|placeholder| text.contains(placeholder)));
    }
}

#[test]
fn the_ai_say_instructions_name_the_role() {
    // S-052: with another role key, the example passes the check with that key.
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options.set("ai_say.role", "李\"医生").expect("an option");
    let prompt = find_dialect("ai_say").expect("a dialect").prompt.expect("it has instructions")(&options);
    assert!(!prompt.text().contains("咨询师"));
    let verdict =
        Contract::from_name("ai_say").expect("it exists").check(prompt.example.as_bytes(), &options);
    assert_eq!(verdict.findings, []);
}

#[test]
fn schemas_are_those_of_the_options() {
    let schema = |name: &str, option: &str, value: &str| {
        let mut options = Options::default();
        options.set(option, value).expect("an option");
        find_dialect(name).expect("a dialect").schema.expect("it has a schema")(&options)
    };
    let answer = schema("ai_say", "ai_say.role", "coach"); // S-052
    assert_eq!(answer["properties"]["response"]["required"], json!(["coach"]));
    assert!(answer["properties"]["response"]["properties"]["coach"].is_object());
    let plan = schema("aiplan", "aiplan.variant", "v2"); // R-30
    let modes = json!(["TOOL_EXECUTION", "KNOWLEDGE_QA", "PLAN_EXECUTION"]);
    assert_eq!(plan["properties"]["response_mode"]["enum"], modes);
    assert_eq!(plan["oneOf"][2]["required"], json!(["execution_plan"]));
    assert_eq!(plan["oneOf"][1].get("required"), None);
}

#[test]
fn replies_that_repeat_our_own_example_are_told() {
    // X-011: the examples of both languages, whatever language the texts are in
    for language in ["zh", "en"] {
        let mut options = Options::default();
        options.set("text_language", language).expect("an option");
        options.set("examples", "own").expect("an option");
        for (name, prompt) in prompts() {
            for contract in contracts(name) {
                let contract = Contract::from_name(contract).expect("it exists");
                let codes = |options: &Options| -> Vec<String> {
                    let verdict = contract.check(prompt.example.as_bytes(), options);
                    let codes = verdict.findings.iter().map(|finding| finding.code.to_string());
                    // Texts in other languages report the role of English ones (R-76).
                    codes.filter(|code| code != "role_key_unexpected").collect()
                };
                assert_eq!(codes(&options), ["example_echo"], "{name}");
                assert_eq!(codes(&Options::default()), [""; 0], "{name}");
            }
        }
    }
}

/// Reads a reply; returns its answer, the reason of a fallback, and the names of its actions and its queries.
fn read_reply(name: &str, reply: &str, options: &Options) -> (String, Option<String>, Vec<String>) {
    let mut events = EventCollector::default();
    let mut pipeline = Pipeline::new(name, options).expect("a dialect").with_extensions(true);
    reply.chars().for_each(|c| pipeline.push_str(c.encode_utf8(&mut [0; 4]), &mut events));
    pipeline.finish(&InputEnd::stop(), &mut events);
    let mut answer = String::new();
    let mut actions = Vec::new();
    for event in &events.events {
        match event {
            tambour::Event::FinalDelta { text } => answer.push_str(text),
            tambour::Event::SerpQueries { queries } => actions.extend(queries.iter().cloned()),
            tambour::Event::Extension(extension) => match &**extension {
                tambour::event::Extension::Plan(plan) if plan.is_fallback => {}
                tambour::event::Extension::ExitDecision(decision) => assert!(!decision.should_exit),
                other => actions.push(other.name().to_owned()),
            },
            _ => {}
        }
    }
    let reason = pipeline.outcome().metadata.fallback_reason.clone();
    (answer, reason.map(|reason| reason.into_owned()), actions)
}

#[test]
fn replies_that_repeat_our_own_example_are_no_answer() {
    // X-011: unchanged, with other punctuation, in a fence, and cut
    for (name, prompt) in prompts().filter(|(name, _)| *name != "json_value") {
        for language in ["zh", "en"] {
            let mut options = Options::default();
            options.set("text_language", language).expect("an option");
            options.set("examples", "own").expect("an option");
            let example = &*prompt.example;
            let unfenced = example.trim().trim_start_matches("```json\n").trim_end_matches("\n```");
            let variant = match name {
                // Dialects whose texts are between tags, not in JSON.
                "thinkingml" | "filament" => {
                    unfenced.replace(". ", "! ").replace("**", "").replace('，', ",")
                }
                _ => unfenced.replace(". ", "!  ").replace("**", "").replace('，', ", "),
            };
            let mut replies = vec![
                example.to_owned(),
                unfenced.to_owned(),
                variant,
                format!("```\n{unfenced}\n```\n"),
                format!("```json\n{unfenced}\n```"),
            ];
            let end = answer_end(name, unfenced);
            replies.extend(
                [end - 4, end - 10].map(|at| unfenced[..unfenced.floor_char_boundary(at)].to_owned()),
            );
            for reply in replies {
                let (answer, reason, actions) = read_reply(name, &reply, &options);
                assert_eq!(reason.as_deref(), Some("example_echo"), "{name}: {reply}\n{answer}");
                assert_eq!(answer, options.texts.fallback, "{name}: {reply}");
                assert_eq!(actions, [""; 0], "{name}: {reply}");
            }
        }
    }
}

/// Offset at which the answer of an example ends.
fn answer_end(name: &str, example: &str) -> usize {
    let mark = match name {
        "thinkingml" => "\n\n<!--",
        "jsonseq" => "\"}}\n{\"event\":\"serp_queries\"",
        "aiplan" => "\",\n  \"tool_calls\"",
        "ai_say" => "\"\n  },\n  \"should_exit\"",
        _ => "</content>",
    };
    example.find(mark).unwrap_or_else(|| panic!("{name}: {example}"))
}

#[test]
fn replies_that_begin_like_our_own_example_are_answers() {
    // X-011: an answer that continues in its own words is delivered whole, and its actions run
    for (name, prompt) in prompts().filter(|(name, _)| *name != "json_value") {
        let mut options = Options::default();
        options.set("examples", "own").expect("an option");
        let example = &*prompt.example;
        let end = answer_end(name, example);
        let reply = format!("{} Other words{}", &example[..end], &example[end..]);
        let ((answer, reason, actions), (plain_answer, ..)) =
            (read_reply(name, &reply, &options), read_reply(name, &reply, &Options::default()));
        assert_eq!((answer.as_str(), reason), (plain_answer.as_str(), None), "{name}: {reply}");
        assert!(answer.contains("Other words"), "{name}: {answer}");
        assert_eq!(actions, read_reply(name, &reply, &Options::default()).2, "{name}");
    }
}

#[test]
fn own_examples_go_with_others() {
    let mut options = Options::default();
    options.set("examples", r#"["own","one"]"#).expect("an option");
    assert_eq!((options.has_own_examples, &*options.examples), (true, &["one".to_owned()][..]));
    options.set("examples", "two").expect("an option");
    assert_eq!((options.has_own_examples, options.examples.len()), (true, 2));
    options.set("examples", r#"["one"]"#).expect("an option");
    assert_eq!((options.has_own_examples, options.examples.len()), (false, 1));
}

#[test]
fn examples_that_are_json_are_taken_as_text() {
    // X-011: no element of the list is lost
    let mut options = Options::default();
    options.set("examples", r#"[{"b":1,"a":2},"own",[1,2],"one"]"#).expect("an option");
    assert!(options.has_own_examples);
    assert_eq!(options.examples, [r#"{"b":1,"a":2}"#, "[1,2]", "one"]);
    options.set("examples", r#"{"c":3}"#).expect("an option");
    assert_eq!(options.examples.len(), 4);
    assert_eq!(options.examples[3], r#"{"c":3}"#);
}

#[test]
fn english_texts_have_an_english_role() {
    // S-052: the role of the language is the default, both are read, and an explicit role is the only one
    let reply = |role: &str| {
        format!(
            "{{\"assessment\":{{\"understanding_level\":40,\"has_questions\":true,\"expressed_understanding\":false,\
             \"reasoning\":\"r\"}},\"response\":{{\"{role}\":\"Hi.\"}},\"should_exit\":false,\"exit_reason\":\"x\"}}"
        )
    };
    let entry = find_dialect("ai_say").expect("a dialect");
    for (language, default) in [("zh", "咨询师"), ("en", "counsellor")] {
        let mut options = Options::default();
        options.set("text_language", language).expect("an option");
        let prompt = entry.prompt.expect("it has instructions")(&options);
        assert!(prompt.example.contains(&format!("\"{default}\":")) && prompt.rules.contains(default));
        assert!(
            entry.schema.expect("it has a schema")(&options)["properties"]["response"]["properties"]
                .get(default)
                .is_some()
        );
        for role in ["咨询师", "counsellor"] {
            let contract = Contract::from_name("ai_say").expect("it exists");
            let findings = contract.check(reply(role).as_bytes(), &options).findings;
            let codes: Vec<&str> = findings.iter().map(|finding| &*finding.code).collect();
            // R-76, S-052
            let expected: &[&str] =
                if (language, role) == ("zh", "counsellor") { &["role_key_unexpected"] } else { &[] };
            assert_eq!(codes, expected);
            let mut events = EventCollector::default();
            let mut pipeline = Pipeline::new("ai_say", &options).expect("a dialect");
            pipeline.push(reply(role).as_bytes(), &mut events);
            pipeline.finish(&InputEnd::stop(), &mut events);
            let output = pipeline.rewrite(&events.events).expect("it can be written");
            assert!(output.contains(&format!("\"{default}\": \"Hi.\"")), "{output}");
        }
        options.set("ai_say.role", "Dr. Li").expect("an option");
        let verdict =
            Contract::from_name("ai_say").expect("it exists").check(reply(default).as_bytes(), &options);
        assert_eq!(verdict.findings.len(), 1);
        assert_eq!(verdict.findings[0].code, "role_key_unexpected");
    }
}
