//! Filament: actions that run, and actions that must not (R-80 to R-83, R-96).

use serde_json::{Value, json};
use tambour::event::{EventCollector, FinishReason};
use tambour::state::{AttachedState, Operation, apply, bound_numbers};
use tambour::tool::ToolRegistry;
use tambour::{Event, InputEnd, Options, Pipeline};
use tambour_fixtures::random::RandomSource;

fn read(options: &Options, text: &str, end: &InputEnd) -> (Pipeline, EventCollector) {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("filament", options).expect("a dialect").with_extensions(true);
    pipeline.push_str(text, &mut sink);
    pipeline.finish(end, &mut sink);
    (pipeline, sink)
}

fn names(sink: &EventCollector) -> Vec<String> {
    sink.join_deltas().iter().map(|event| event.name().to_owned()).collect()
}

#[test]
fn a_block_in_a_thought_is_held_until_the_thought_ends() {
    // R-80: held bytes are counted, and the block is neither shown nor carried out before.
    let mut sink = EventCollector::default();
    let mut pipeline =
        Pipeline::new("filament", &Options::default()).expect("a dialect").with_extensions(true);
    pipeline.push_str("<think>plan <variable_update>", &mut sink);
    let sent_count = sink.events.len();
    pipeline.push_str("[[\"SET\",\"a\",1]]</variable_update> and so on", &mut sink);
    assert_eq!(sink.events.len(), sent_count);
    assert!(
        pipeline.held_bytes() >= "<variable_update>[[\"SET\",\"a\",1]]</variable_update> and so on".len()
    );
    let mut open_sink = EventCollector::default();
    let mut open_thought =
        Pipeline::new("filament", &Options::default()).expect("a dialect").with_extensions(true);
    open_thought
        .push_str("<think>plan <variable_update>[[\"SET\",\"a\",1]]</variable_update> and", &mut open_sink);
    open_thought.push_str("<content>", &mut open_sink);
    assert!(names(&open_sink).contains(&"state_update".to_owned()));
    assert!(open_thought.held_bytes() <= "<content>".len());
    pipeline.push_str("</think>", &mut sink);
    assert!(!names(&sink).contains(&"state_update".to_owned()));
    assert!(pipeline.held_bytes() < 8);
}

#[test]
fn a_draft_ends_at_the_limit_itself() {
    // R-80: the limit holds for any cutting.
    let mut options = Options::default();
    options.limits.hold = 64;
    let block = "<variable_update>[[\"SET\",\"a\",1]]</variable_update>";
    for padding in 0..40 {
        let text = format!("<think>a {block}{}<content>b</content>", "x".repeat(padding));
        let is_applied =
            names(&read(&options, &text, &InputEnd::stop()).1).contains(&"state_update".to_owned());
        assert_eq!(is_applied, block.len() + padding <= 64, "{padding}");
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("filament", &options).expect("a dialect").with_extensions(true);
        for at in 0..text.len() {
            pipeline.push_str(&text[at..=at], &mut sink);
        }
        pipeline.finish(&InputEnd::stop(), &mut sink);
        assert_eq!(names(&sink).contains(&"state_update".to_owned()), is_applied, "{padding}");
    }
}

/// Runs commands of MVU on a state; returns the new state and the reasons of refusals.
fn run_commands(state: &Value, commands: &str) -> (Value, String) {
    let mut options = Options::default();
    options.state =
        Some(AttachedState { message: "m".to_owned(), state: state.clone(), ..AttachedState::default() });
    let reply = format!("<content>x</content><UpdateVariable>{commands}</UpdateVariable>");
    let (pipeline, _) = read(&options, &reply, &InputEnd::stop());
    let outcome = pipeline.outcome();
    let after = pipeline.state().expect("a state").clone();
    for block in &outcome.applied_updates {
        // A stored record of an applied block can be undone and done again.
        let record = serde_json::to_string(block).expect("a record is JSON");
        let record: tambour::state::AppliedBlock = serde_json::from_str(&record).expect("and read again");
        let mut restored = after.clone();
        record.undo(&mut restored).expect("it can be taken back");
        assert_eq!(restored, *state, "{commands}");
        record.redo(&mut restored).expect("it can be done again");
        assert_eq!(restored, after, "{commands}");
    }
    let notices = &outcome.metadata.notices;
    (after, notices.iter().filter_map(|notice| notice.reference.clone()).collect())
}

#[test]
fn commands_do_what_mvu_does_with_the_state() {
    // F-140, R-81
    let list = || json!({"bag": ["rope", "lamp", {"n": 1}], "hp": 5, "who": {"a": 1, "b": 2}});
    for (commands, pointer, expected) in [
        ("_.set('hp', '30');", "/hp", json!(30)),
        ("_.set('hp', ' 2.5 ');", "/hp", json!(2.5)),
        ("_.set('hp', 'gone');", "/hp", json!("gone")),
        ("_.set('bag[0]', '30');", "/bag/0", json!("30")),
        ("_.assign('bag', 1, 'map');", "/bag", json!(["rope", "map", "lamp", {"n": 1}])),
        ("_.assign('bag', 3, 'map');", "/bag/3", json!("map")),
        ("_.assign('bag', '-', 'map');", "/bag/3", json!("map")),
        ("_.assign('who', 'c', 3);", "/who", json!({"a": 1, "b": 2, "c": 3})),
        ("_.remove('bag', 'lamp');", "/bag", json!(["rope", {"n": 1}])),
        ("_.remove('bag', {n: 1});", "/bag", json!(["rope", "lamp"])),
        ("_.remove('bag', 0);", "/bag", json!(["lamp", {"n": 1}])),
        ("_.remove('who', 'a');", "/who", json!({"b": 2})),
        ("_.remove('who', 1);", "/who", json!({"a": 1})),
        ("_.set('', {hp: 1, x: 'y'});", "", json!({"hp": 1, "x": "y"})),
        ("_.assign('', {x: {y: 1}});", "/x", json!({"y": 1})),
        ("_.assign('', 'x', 2);", "/x", json!(2)),
        ("_.set('who.it\\'s', 1);", "/who/it's", json!(1)),
        ("_.assign('bag', 0, 'a');_.remove('bag', 'rope');", "/bag", json!(["a", "lamp", {"n": 1}])),
    ] {
        let (after, reasons) = run_commands(&list(), commands);
        assert_eq!(after.pointer(pointer), Some(&expected), "{commands}: {after}");
        assert_eq!(reasons, "", "{commands}");
    }
    for (commands, reason) in [
        ("_.assign('bag', 9, 'map');", "0: index_out_of_range"),
        ("_.remove('bag', 'sword');", "0: path_mismatch"),
        ("_.set('', 5);", "0: path_invalid"),
        ("_.set('hp', 1 + 1);", "0: value_guessed"),
        ("_.set('hp', {x: 1, x: 2});", "0: value_guessed"), // R-82
        ("_.set('hp', '12345678901234567890123');", "0: number_out_of_range"),
        ("_.set('hp', 1e400);", "0: number_out_of_range"),
        ("_.assign('who', 'c', 1e400);", "0: number_out_of_range"),
        ("_.assign('bag', 0, 1e400);", "0: number_out_of_range"),
        ("_.set('hp', 1);_.set('hp', 2", ""),
    ] {
        let (after, reasons) = run_commands(&list(), commands);
        assert_eq!((after, reasons.as_str()), (list(), reason), "{commands}");
    }
    let (after, _) = run_commands(
        &json!({"items": ["a", "c"]}),
        "<JSONPatch>[{\"op\":\"add\",\"path\":\"/items/1\",\"value\":\"b\"}]</JSONPatch>",
    );
    assert_eq!(after["items"], json!(["a", "b", "c"])); // F-141
}

#[test]
fn lists_written_anew_are_bounded() {
    // F-222: many insertions into a long list cost no more memory than the state may have.
    let items: Vec<String> = (0..2000).map(|at| format!("item {at}")).collect();
    let commands = "_.assign('list', 0, 'x');".repeat(2000);
    let (after, reasons) = run_commands(&json!({"list": items}), &commands);
    assert!(after["list"].as_array().expect("a list").len() < 2100, "{reasons}");
    assert!(reasons.contains("limit_exceeded"), "{reasons}");
}

#[test]
fn a_number_out_of_range_refuses_its_operation_alone() {
    // R-81: numbers of every form of operation.
    let text = r#"[["SET","a",1e400],["PUSH","l",[-1e999]],["ADD","n",12345678901234567890123],["SET","t","1e400 \" 1e400"],["SET","n",2]]"#;
    let list: Value = serde_json::from_str(&bound_numbers(text)).expect("JSON");
    let mut state = json!({"n": 1});
    let results = apply(&mut state, &Operation::parse_list(&list).expect("a list"), &Default::default());
    let reasons: Vec<String> = results
        .iter()
        .map(|result| result.reason.map(|reason| reason.to_string()).unwrap_or_default())
        .collect();
    assert_eq!(reasons, ["number_out_of_range", "number_out_of_range", "number_out_of_range", "", ""]);
    assert_eq!(state, json!({"n": 2, "t": "1e400 \" 1e400"}));
    for value in [json!(u64::MAX), json!(i64::MIN), json!(0.1), json!(9_007_199_254_740_992_f64)] {
        assert!(Operation::from_value(&json!(["SET", "a", value])).refusal().is_none(), "{value}");
    }
}

/// Number of replies of one test without `FUZZ_ITERATIONS`.
const REPLIES: usize = 3_000;

/// Builds a damaged reply; returns the numbers of the blocks that may act, and whether the reply is cut.
fn random_reply(random: &mut RandomSource) -> (String, Vec<usize>, bool) {
    let (mut text, mut allowed, mut block) = (String::new(), Vec::new(), 0);
    let pairs = [
        ("<think>", "</think>"),
        ("<thought>", "</thought>"),
        ("<Think>", "</ThinK>"),
        ("<reasoning>", "</reasoning>"),
        ("<analysis>", "</analysis>"),
        ("<scratchpad>", "</scratchpad>"),
        ("<reflection>", "</thought>"),
        ("<seed:think>", "</think>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|channel|>analysis<|message|>", "<|end|>"),
    ];
    let mut next_block = |random: &mut RandomSource, allowed: Option<&mut Vec<usize>>| {
        block += 1;
        if let Some(allowed) = allowed {
            allowed.push(block);
        }
        match random.below(4) {
            0 => format!("<tool_call name=\"t\">{{\"n\": {block}}}</tool_call>"),
            1 => format!("<status_bar><n>{block}</n></status_bar>"),
            2 => format!("<UpdateVariable>_.set('n', {block});</UpdateVariable>"),
            _ => format!("<variable_update>[[\"SET\",\"n\",{block}]]</variable_update>"),
        }
    };
    let mut is_cut = false;
    for _ in 0..1 + random.below(6) {
        let words = *random.pick(&["", "So. ", "令牌 ", "a < b ", "\n", "`x` "]);
        match random.below(8) {
            0 | 1 => {
                let (open, close) = random.pick(&pairs);
                let mut content = String::new();
                for _ in 0..1 + random.below(3) {
                    content += words;
                    content += &next_block(random, None);
                    content += random.pick::<&str>(&["", " x ", "\n", "</content>", "<b>"]);
                }
                if random.below(8) == 0 {
                    // Cut inside the thought.
                    text += &format!("\n{open}{content}");
                    is_cut = true;
                    break;
                }
                text += &format!("\n{open}{content}{close}\n");
            }
            2 => {
                let (content, second) = (next_block(random, None), next_block(random, None));
                text += &format!("<content>{words}<!-- {content} {second} -->{words}</content>\n");
            }
            3 => {
                let content = next_block(random, None);
                text += &format!("<content>\n{words}\n> {content}\n{words}</content>\n");
            }
            4 => {
                let content = next_block(random, None);
                let fence = *random.pick(&["```", "~~~", "````"]);
                text += &format!("<content>\nSo:\n{fence}xml\n{content}\n{fence}\n</content>\n");
            }
            5 => {
                let content = next_block(random, None);
                text += &format!("<content>write `{content}` so{words}</content>\n");
            }
            6 => {
                push_cut_block(&mut text, random, 900 + allowed.len());
                if random.below(4) == 0 {
                    is_cut = true;
                    break;
                }
                text += &format!("{}\n", *random.pick(&["</variable_update>", ""]));
                text += "<content>y</content>\n";
            }
            _ => {
                let content = next_block(random, Some(&mut allowed));
                text += &format!("<content>z</content>\n{content}\n");
            }
        }
    }
    (text, allowed, is_cut)
}

/// Appends an update that lacks its end.
fn push_cut_block(text: &mut String, random: &mut RandomSource, number: usize) {
    let complete = format!("[[\"SET\",\"n\",{number}]");
    let end = random.below(complete.len());
    *text += &format!("<content>x</content>\n<variable_update>{}", &complete[..end]);
}

/// Numbers of the blocks that acted.
fn acting_blocks(sink: &EventCollector) -> Vec<usize> {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok()).map(|n| n as usize);
    let mut found = Vec::new();
    for event in sink.events.iter().filter(|event| matches!(event, Event::Extension(_))) {
        let data = event.data();
        match event.name() {
            "tool_call" => found.extend(number(&data["args"]["n"])),
            "status_bar" => found.extend(number(&data["items"][0]["text"])),
            "state_update" => {
                let operations = data["operations"].as_array().expect("a list");
                found.extend(operations.iter().filter_map(|operation| number(&operation["value"])));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn nothing_acts_that_was_in_reasoning_quoted_or_cut() {
    // R-80, R-69, F-103, F-105, F-214: damaged replies of seeds from 0.
    let text_setting = std::env::var("FUZZ_ITERATIONS").ok();
    let replies = text_setting
        .map_or(REPLIES, |text_setting| text_setting.parse().expect("FUZZ_ITERATIONS is a number"));
    let mut options = Options::default();
    options.tools = Some(ToolRegistry::from_json(&json!({"t": {"type": "object"}})).expect("tools"));
    let mut without_tools = Options::default();
    without_tools.tools = None;
    let mut total = 0;
    for seed in 0..replies as u64 {
        let mut random = RandomSource::new(seed);
        let (text, allowed, is_cut) = random_reply(&mut random);
        let end = if is_cut { InputEnd::Finished(FinishReason::Length) } else { InputEnd::stop() };
        let (_, sink) = read(&options, &text, &end);
        let numbers = acting_blocks(&sink);
        for number in &numbers {
            assert!(
                allowed.contains(number),
                "seed {seed}: block {number} acted in\n{text}\n{:?}",
                sink.join_deltas()
            );
        }
        total += numbers.len();
        let has_call = names(&read(&without_tools, &text, &end).1).iter().any(|name| name == "tool_call");
        assert!(!has_call, "seed {seed}: a call without tools in\n{text}"); // R-96
    }
    assert!(total > replies / 8, "only {total} blocks acted");
}
