//! Filament beyond its fixtures: the hand-written corpus, states, own structures, instructions, promptness.

use std::time::Instant;

use serde_json::{Value, json};
use tambour::dialect::find_dialect;
use tambour::event::{AsideKind, EventCollector, Extension, FinishReason, StatusItem};
use tambour::options::{Language, Texts};
use tambour::protocol::ProtocolRegistry;
use tambour::state::{AttachedState, apply, operations_from_event};
use tambour::structure::ExpectedStructure;
use tambour::tool::ToolRegistry;
use tambour::verdict::Contract;
use tambour::{Event, InputEnd, Options, Pipeline, Profile};
use tambour_fixtures::corpus::load_authored;

fn options(values: &[(&str, Value)]) -> Options {
    let mut options = Options::default();
    for (name, value) in values {
        options.set(name, value.clone()).expect("an option");
    }
    options
}

fn read_with(options: &Options, text: &str, end: &InputEnd) -> (Pipeline, EventCollector) {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("filament", options).expect("a dialect").with_extensions(true);
    pipeline.push_str(text, &mut sink);
    pipeline.finish(end, &mut sink);
    (pipeline, sink)
}

fn read(text: &str) -> EventCollector {
    read_with(&Options::default(), text, &InputEnd::stop()).1
}

fn event_data(sink: &EventCollector, name: &str) -> Vec<Value> {
    sink.join_deltas().iter().filter(|event| event.name() == name).map(Event::data).collect()
}

fn answer(sink: &EventCollector) -> String {
    event_data(sink, "final_delta").iter().filter_map(|data| data["text"].as_str()).collect()
}

fn strict_codes(text: &str, options: &Options) -> Vec<String> {
    let mut options = options.clone();
    options.profile = Profile::Strict;
    let verdict = Contract::from_name("filament").expect("a contract").check(text.as_bytes(), &options);
    verdict.findings.iter().map(|finding| finding.code.to_string()).collect()
}

#[test]
fn findings_behind_a_removed_tag_have_their_offset() {
    // F-205: the tag is left out of the block, whatever characters are in it
    for attribute in ["a", "ä", "中", "\u{1F600}"] {
        let reply = format!(
            "<content>hi</content>\n<variable_update></choice x=\"{attribute}\">\n\
             [[\"SET\",\"a\",1,]]</variable_update>"
        );
        let sink = read(&reply);
        let finding = sink.findings.iter().find(|finding| finding.code == "json_trailing_comma");
        let start = finding.expect("the comma is reported").span.start;
        assert_eq!(reply.get(start..), Some(",]]</variable_update>"), "{attribute}");
    }
}

#[test]
fn authored_replies_give_their_blocks() {
    // F-100, F-110, F-111, F-130, F-132: events in source order, and the state after their operations.
    for reply in load_authored("filament").expect("the corpus is readable") {
        let Some(expected) = &reply.expected else { continue };
        let tools = options(&[("tools", json!({"roll_dice": {"type": "object"}}))]);
        let sink = read_with(&tools, &reply.joined_text(), &InputEnd::stop()).1;
        let blocks = blocks(&sink);
        assert_eq!(Value::from(blocks), expected["blocks"], "{}", reply.id);
        let mut state = expected["state_before"].clone();
        for event in sink.events.iter().filter_map(Event::extension) {
            if let Extension::StateUpdate(update) = event {
                let results = apply(&mut state, &operations_from_event(update), &Default::default());
                assert!(results.iter().all(|result| result.ok), "{}: {results:?}", reply.id);
            }
        }
        assert_eq!(state, expected["state_after"], "{}", reply.id);
    }
}

/// Converts events to the form of the corpus. Calls are sent at the end of a reply and move to their place in the corpus.
fn blocks(sink: &EventCollector) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut calls = Vec::new();
    for event in sink.join_deltas() {
        match &event {
            Event::PhaseDelta { text, .. } => blocks.push(json!({"tag": "thought", "text": text})),
            Event::FinalDelta { text } => blocks.push(json!({"tag": "content", "text": text.trim_end()})),
            Event::Aside { kind: AsideKind::Comment, text } => {
                let content = blocks.last_mut().expect("a comment stands in the content");
                let list = content["comments"].as_array().cloned().unwrap_or_default();
                content["comments"] = list.into_iter().chain([json!(text)]).collect();
            }
            Event::Extension(extension) => match &**extension {
                Extension::StateUpdate(update) => {
                    let operations: Vec<Value> = update
                        .operations
                        .iter()
                        .map(|item| {
                            [json!(item.op), json!(item.path)].into_iter().chain(item.value.clone()).collect()
                        })
                        .collect();
                    blocks.push(
                        json!({"tag": "variable_update", "analysis": update.analysis, "ops": operations}),
                    );
                }
                Extension::StatusBar(bar) => {
                    let field = |StatusItem { name, text, .. }: &StatusItem| json!([name, text]);
                    let fields: Vec<Value> = bar.items.iter().map(field).collect();
                    blocks.push(json!({"tag": "status_bar", "fields": fields}));
                }
                Extension::Details(details) => {
                    blocks.push(json!({"tag": "details", "summary": details.summary, "text": details.text}));
                }
                Extension::Choice(choice) => {
                    let options: Vec<Value> =
                        choice.options.iter().map(|item| json!([item.id, item.text])).collect();
                    blocks.push(json!({"tag": "choice", "prompt": choice.prompt, "options": options}));
                }
                Extension::UiComponent(component) => {
                    blocks.push(
                        json!({"tag": "ui_component", "view": component.view, "props": component.props}),
                    );
                }
                Extension::Media(_) => {
                    blocks.push(json!({"tag": "media", "attrs": event.data()}));
                }
                Extension::ToolCall(call) => {
                    calls.push(json!({"tag": "tool_call", "name": call.name, "args": call.args}));
                }
                _ => {}
            },
            _ => {}
        }
    }
    for call in calls {
        let at = blocks.iter().position(|block| block["tag"] == "status_bar").unwrap_or(blocks.len());
        blocks.insert(at, call);
    }
    blocks
}

#[test]
fn text_comes_as_it_is_written() {
    // F-101, F-102, F-221: a thought and the content stream; less than a tag is held.
    let mut sink = EventCollector::default();
    let mut pipeline =
        Pipeline::new("filament", &Options::default()).expect("a dialect").with_extensions(true);
    let mut sent = 0;
    for piece in ["<thought>One ", "two three", "</thought>\n<content>Four ", "five", " *six* ", "seven"] {
        pipeline.push_str(piece, &mut sink);
        let event_count = sink.events.len();
        assert!(event_count > sent, "{piece:?} waits: {:?}", sink.events);
        sent = event_count;
        assert!(pipeline.held_bytes() <= 1, "{piece:?}: {} bytes held", pipeline.held_bytes());
    }
    assert!(answer(&sink).ends_with("*six* seven"));
}

#[test]
fn a_block_acts_when_it_closes_and_once() {
    // F-214, R-68: a block acts at its end, once; a call acts when the reply has ended normally.
    let mut options = Options::default();
    options.tools = Some(ToolRegistry::from_json(&json!({"roll": {"type": "object"}})).expect("tools"));
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("filament", &options).expect("a dialect").with_extensions(true);
    pipeline.push_str("<content>a</content><variable_update>[[\"SET\",\"a\",1]]", &mut sink);
    assert!(event_data(&sink, "state_update").is_empty());
    pipeline.push_str("</variable_update>", &mut sink);
    assert_eq!(event_data(&sink, "state_update").len(), 1); // F-214
    pipeline.push_str("<tool_call name=\"roll\">{}</tool_call>", &mut sink);
    assert!(event_data(&sink, "tool_call").is_empty()); // R-68
    let mut cut_sink = sink.clone();
    let text = "<content>a</content><variable_update>[[\"SET\",\"a\",1]]</variable_update><tool_call name=\"roll\">{}</tool_call>";
    pipeline.finish(&InputEnd::stop(), &mut sink);
    assert_eq!(event_data(&sink, "tool_call").len(), 1); // F-120
    let (pipeline, reading) = read_with(&options, text, &InputEnd::Finished(FinishReason::Length));
    cut_sink.events = reading.events;
    assert_eq!(
        (event_data(&cut_sink, "state_update").len(), event_data(&cut_sink, "tool_call").len()),
        (1, 0)
    ); // R-68
    let notices = &pipeline.outcome().metadata.notices;
    assert_eq!(notices.iter().map(|notice| &*notice.code).collect::<Vec<_>>(), ["tool_call_cut"]);
}

#[test]
fn operations_are_applied_where_a_state_is_attached() {
    // F-113, F-116: each operation applies on its own, with its result; refusals share one notice.
    let reply = "<content>x</content><variable_update><analysis>why</analysis>\
        [[\"ADD\",\"hp\",2],[\"ADD\",\"name\",1],[\"DIV\",\"hp\",0],[\"SET\",\"a.b\",0.1],[\"ADD\",\"a.b\",0.2]]</variable_update>";
    let mut options = Options::default();
    let state = json!({"hp": 5, "name": "Ann"});
    options.state =
        Some(AttachedState { message: "m1".to_owned(), state: state.clone(), ..AttachedState::default() });
    let (pipeline, sink) = read_with(&options, reply, &InputEnd::stop());
    assert_eq!(pipeline.state(), Some(&json!({"hp": 7, "name": "Ann", "a": {"b": 0.3}}))); // F-113, F-114
    let update = &event_data(&sink, "state_update")[0];
    let ok: Vec<&Value> =
        update["results"].as_array().expect("results").iter().map(|result| &result["ok"]).collect();
    assert_eq!(ok, [true, false, false, true, true]);
    let notices = &pipeline.outcome().metadata.notices;
    assert_eq!(
        (notices.len(), &*notices[0].code, &*notices[0].message),
        (1, "state_update_partial_failure", "部分状态更新失败")
    ); // F-212
    assert_eq!(notices[0].reference.as_deref(), Some("1: operation_type_mismatch, 2: division_by_zero")); // F-113
    let mut restored = pipeline.state().expect("a state").clone();
    let applied_blocks = &pipeline.outcome().applied_updates;
    assert_eq!(
        (applied_blocks.len(), &*applied_blocks[0].message, applied_blocks[0].analysis.as_deref()),
        (1, "m1", Some("why"))
    ); // F-116
    applied_blocks[0].undo(&mut restored).expect("it can be taken back");
    assert_eq!(restored, state);

    options.set("filament.atomic", true).expect("an option");
    let (pipeline, sink) = read_with(&options, reply, &InputEnd::stop());
    assert_eq!(pipeline.state(), Some(&state)); // F-113
    assert_eq!(event_data(&sink, "state_update")[0]["results"][0]["reason"], "not_applied");

    // The next reply of a tool loop continues with the state of the one before.
    options.tool_loop = true;
    options.set("filament.atomic", false).expect("an option");
    options.set("tools", json!({"roll": {"type": "object"}})).expect("an option");
    let (first, mut sink) = read_with(
        &options,
        "<variable_update>[[\"SET\",\"hp\",1]]</variable_update><tool_call name=\"roll\">{}</tool_call>",
        &InputEnd::stop(),
    );
    assert_eq!(first.pending_calls().len(), 1);
    let mut next = first.next_reply("filament", &options).expect("a dialect");
    next.push_str("<content>So.</content><variable_update>[[\"ADD\",\"hp\",1]]</variable_update>", &mut sink);
    next.finish(&InputEnd::stop(), &mut sink);
    assert_eq!(next.state().expect("a state")["hp"], 2);
}

#[test]
fn a_tag_contract_of_ones_own_needs_no_code() {
    // F-200: example of the documents.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rpg/");
    let reply = std::fs::read_to_string(format!("{folder}report.txt")).expect("the example is there");
    let structure = json!({
        "mandatory": [{"name": "story", "role": "content"}],
        "optional": [{"name": "plan", "role": "thought"}, {"name": "facts", "body": "json"}, "remark"],
        "dependency": {"story": "plan", "facts": "story"},
    });
    let options = options(&[("filament.structure", structure)]);
    let (pipeline, sink) = read_with(&options, &reply, &InputEnd::stop());
    assert_eq!(event_data(&sink, "phase_delta")[0]["text"], "Short, then the facts.");
    assert_eq!(answer(&sink), "The **mill** burnt down in the night.");
    let elements = event_data(&sink, "element");
    assert_eq!(elements[0]["value"], json!({"place": "mill", "hurt": 0}));
    assert_eq!((&elements[1]["name"], &elements[1]["text"]), (&json!("remark"), &json!("Ask the miller.")));
    assert_eq!(strict_codes(&reply, &options), [""; 0]);
    assert_eq!(pipeline.rewrite(&sink.events).expect("it can be written").matches("<story>").count(), 1);
    assert_eq!(strict_codes("<remark>x</remark><plan>a</plan><story>b", &options), ["tag_unclosed"]);
    assert_eq!(strict_codes("<story>b</story><plan>a</plan>", &options), ["tag_order"]);
    // Without roles the first mandatory text is the content.
    let bare_options =
        self::options(&[("filament.structure", json!({"mandatory": ["story"], "optional": ["note"]}))]);
    assert_eq!(
        answer(&read_with(&bare_options, "<story>Once.</story><note>n</note>", &InputEnd::stop()).1),
        "Once."
    );
}

#[test]
fn protocols_give_the_structure() {
    // F-200, F-007
    let (expected, _) = ProtocolRegistry::builtin().expected_structure(["choice"]);
    let by_value = options(&[("filament.structure", expected.to_json())]);
    let by_name = options(&[("filament.protocols", json!(["choice"]))]);
    for options in [by_value, by_name] {
        let reply = "<thought>a</thought><content>b</content><media src=\"a.png\" type=\"image\" />";
        assert_eq!(strict_codes(reply, &options)[0], "tag_unexpected", "{options:?}");
        assert_eq!(
            answer(&read_with(&options, "Hm.</thought><content>b</content>", &InputEnd::stop()).1),
            "b"
        ); // F-201
    }
    assert!(Options::default().set("filament.protocols", "choise").is_err());
    assert!(ExpectedStructure::from_json(&expected.to_json()).is_ok());
}

#[test]
fn instructions_show_what_is_active() {
    // F-237: examples of all active protocols pass, in both languages.
    let views = json!(["map.small"]);
    let tools = json!({"roll": {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}});
    let custom_structure = json!({"mandatory": [{"name": "story", "role": "content"}], "optional": [{"name": "plan", "role": "thought"}, "remark"]});
    let sets: [&[(&str, Value)]; 6] = [
        &[],
        &[("filament.protocols", json!([]))],
        &[("filament.protocols", json!(["variable_update_v2", "choice"]))],
        &[("tools", tools), ("filament.views", views)],
        &[("filament.structure", json!({"mandatory": ["content"], "dependency": {}}))],
        &[("filament.structure", custom_structure)],
    ];
    for language in [Language::Zh, Language::En] {
        for set in sets {
            let mut options = options(set);
            options.texts = Texts::from_language(language);
            let prompt = find_dialect("filament").expect("a dialect").prompt.expect("instructions")(&options);
            assert_eq!(strict_codes(&prompt.example, &options), [""; 0], "{set:?}\n{}", prompt.example); // F-237
            let other_examples = examples_in_rules(&prompt.rules);
            for example_text in &other_examples {
                let (first, last) = (
                    format!("{example_text}{}", prompt.example),
                    format!("{}{example_text}", prompt.example),
                );
                let is_valid =
                    strict_codes(&first, &options).is_empty() || strict_codes(&last, &options).is_empty();
                assert!(is_valid, "{set:?}\n{example_text}"); // F-237
            }
            let example_text = other_examples.concat() + &prompt.example;
            for tag in prompt.rules.lines().filter_map(|line| line.strip_prefix("- <")) {
                let tag = tag.split(['>', ' ']).next().expect("a name");
                assert!(example_text.contains(&format!("<{tag}")), "{set:?} has no example of {tag}"); // F-237
            }
            let structure = set.iter().any(|(name, _)| name.starts_with("filament.structure"));
            assert!(structure || prompt.rules.contains("<!-- -->"), "{}", prompt.rules); // F-237
            assert!(prompt.text().len() < 4000, "{} bytes", prompt.text().len());
        }
    }
}

/// Examples in the text of the rules, each with all its lines.
fn examples_in_rules(rules: &str) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in rules.lines() {
        is_inside = match line {
            _ if line.starts_with("- ") || line.is_empty() => false,
            _ if line.starts_with('<') && !is_inside => {
                examples.push(String::new());
                true
            }
            _ => is_inside,
        };
        if is_inside && let Some(example) = examples.last_mut() {
            *example += line;
            example.push('\n');
        }
    }
    examples
}

#[test]
fn sources_of_media_are_held_to_the_list() {
    // F-134
    for (src, is_allowed) in [
        ("assets/a.png", true),
        ("图/夜.png", true),
        ("https://a.example/b.png?x=1&amp;y=2", true),
        ("asset:forest/night", true),
        ("javascript:alert(1)", false),
        ("JavaScript&#58;alert(1)", false),
        ("java%73cript:alert(1)", false),
        ("data:text/html;base64,AA", false),
        ("data:image/png;base64,AA", false),
        ("http://a.example/b.png", false),
        ("//a.example/b.png", false),
        ("/etc/passwd", false),
        ("../a.png", false),
        ("a/%2e%2E/b.png", false),
        ("a/%252e%252e/b.png", false),
        ("a\\..\\b.png", false),
        ("C:/a.png", false),
        ("file:///a.png", false),
        ("https:///a.png", false),
        ("", false),
    ] {
        let sink = read(&format!("<content>x</content><media type=\"image\" src=\"{src}\" alt=\"seen\" />"));
        assert_eq!(event_data(&sink, "media").len(), usize::from(is_allowed), "{src}");
        assert_eq!(answer(&sink).contains("seen"), !is_allowed, "{src}"); // F-210
        assert_eq!(event_data(&sink, "notice").len(), usize::from(!is_allowed), "{src}"); // F-134
    }
}

#[test]
fn values_of_commands_are_never_evaluated() {
    // F-140, R-81
    let value = |text: &str| {
        let reply = format!("<content>x</content><UpdateVariable>_.set('a', {text});</UpdateVariable>");
        let operation = event_data(&read(&reply), "state_update")[0]["operations"][0].clone();
        operation.get("refused").or(operation.get("value")).cloned().unwrap_or_default()
    };
    let guessed_value = || json!("value_guessed");
    for (text, expected) in [
        ("10 + 2 * 5", guessed_value()),
        ("Math.sqrt(144) / 5", guessed_value()),
        ("2024-03-05", json!("2024-03-05")),
        ("138-1234-5678", guessed_value()),
        ("50%", json!("50%")),
        ("12:30", json!("12:30")),
        ("'10 + 2'", json!("10 + 2")),
        ("{a: 'b', c: [1,2,],}", json!({"a": "b", "c": [1, 2]})),
        ("process.exit(1)", guessed_value()),
        ("(() => 1)()", guessed_value()),
        ("1/0", guessed_value()),
        ("undefined", Value::Null),
        ("`it's`", json!("it's")),
        ("好", json!("好")),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    let nested = "(".repeat(100_000);
    let start = Instant::now();
    read(&format!("<UpdateVariable>_.set('a', {nested}1);{}", "_.set(".repeat(20_000)));
    assert!(start.elapsed().as_secs() < 20); // F-222
}

#[test]
fn hostile_replies_end_and_cost_little() {
    // F-222, F-223: a megabyte of opening tags and marks.
    for (place, piece) in [
        ("", "<"),
        ("<content>", "<!--"),
        ("<content>`", "<choice>"),
        ("<content>", "`<content>"),
        ("<content>", "<details>"),
        ("<content>", "```\n"),
        ("", "```\n"),
        ("", "~"),
        ("<variable_update>", "[["),
        ("<variable_update>[[\"", "</variable_update>"),
        ("<status_bar>", "<a>"),
        ("<status_bar>", "</a"),
        ("<choice>", "<option>"),
        ("<UpdateVariable>", "_.set('"),
        ("<UpdateVariable>", "_.a("),
        ("", "＜"),
        ("<thought>", "</think>"),
        ("<think><status_bar/>", "<think><status_bar/>"),
        ("<think>", "<status_bar/>`"),
        ("<think><choice>", "</reasoning><reasoning>"),
        ("", "[T"),
        ("[THINK]", "[/THIN"),
        ("", "<|channel|>analysis<|"),
        ("<div class=\"status\">", "<div>"),
        ("", "<content>\n</content>\n"),
        ("", "<media src=\"a\">"),
    ] {
        let reply = format!("{place}{}", piece.repeat((1 << 19) / piece.len()));
        let start = Instant::now();
        let sink = read(&reply);
        assert!(matches!(sink.events.last(), Some(Event::Completed(_))), "{place}{piece}"); // F-223
        assert!(start.elapsed().as_secs() < 20, "{place}{piece}: {:?}", start.elapsed()); // F-222
    }
}

#[test]
fn the_visible_text_is_never_empty_while_text_exists() {
    // F-209, F-210
    let structure = json!({"mandatory": ["content"], "optional": ["thought"]});
    let custom_options = options(&[("filament.structure", structure)]);
    assert_eq!(
        answer(&read_with(&custom_options, "All of it <b>here</b>", &InputEnd::stop()).1),
        "All of it <b>here</b>"
    );
    for reply in [
        "Just text.",
        "<p>Just text.</p>",
        "<variable_update>Just text.</variable_update>",
        "<choice>Just text.</choice>",
        "<ui_component view=\"x\">Just text.</ui_component>",
        "<tool_call name=\"x\">Just text.</tool_call>",
        "```\nJust text.\n```",
        "<!-- a --> Just text.",
    ] {
        assert!(answer(&read(reply)).contains("Just text."), "{reply}"); // F-210
    }
}

#[test]
fn the_example_of_a_game_is_as_its_readme_says() {
    // F-200
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rpg/");
    let file = |name: &str| std::fs::read_to_string(format!("{folder}{name}")).expect("the example is there");
    let reply = file("reply.txt");
    assert_eq!(strict_codes(&reply, &Options::default()), [""; 0]);
    let mut options = Options::default();
    let state = serde_json::from_str(&file("state.json")).expect("JSON");
    options.state = Some(AttachedState { state, ..AttachedState::default() });
    let (pipeline, sink) = read_with(&options, &reply, &InputEnd::stop());
    for name in ["state_update", "status_bar", "choice", "media", "aside"] {
        assert_eq!(event_data(&sink, name).len(), 1, "{name}");
    }
    let state = pipeline.state().expect("a state");
    assert_eq!(
        (&state["seraphina"]["trust"], state["party"]["torches"].as_array().map(Vec::len)),
        (&json!(7), Some(1))
    );
    assert!(pipeline.outcome().metadata.notices.is_empty());
}
