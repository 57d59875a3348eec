//! Calls in every form, with marks removed, doubled or moved: an argument that runs is the original or has a finding, and every
//! cutting gives the same.

use serde_json::{Value, json};
use tambour::event::{Event, EventCollector, Extension};
use tambour::{InputEnd, Options, Pipeline};
use tambour_fixtures::random::RandomSource;

/// Marks of all formats: the pieces that damage removes, doubles and moves.
const MARKS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<function=remove>",
    "</function>",
    "<parameter=path>",
    "<parameter=force>",
    "<parameter=note>",
    "</parameter>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<｜DSML｜function_calls>",
    "</｜DSML｜function_calls>",
    "<｜DSML｜invoke name=\"remove\">",
    "</｜DSML｜invoke>",
    "<｜DSML｜parameter name=\"path\" string=\"true\">",
    "<｜DSML｜parameter name=\"force\" string=\"false\">",
    "<｜DSML｜parameter name=\"note\" string=\"true\">",
    "</｜DSML｜parameter>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<invoke name=\"remove\">",
    "</invoke>",
    "<parameter name=\"path\">",
    "<parameter name=\"force\">",
    "<parameter name=\"note\">",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|channel|>",
    "<|message|>",
    "<|constrain|>",
    "<|call|>",
    "<|start|>",
    "<|end|>",
    "<think>",
    "</think>",
    "```json",
    "```",
    "`",
    "\n",
    "\"",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
];

fn options() -> Options {
    let mut options = Options::default();
    let remove = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "force": {"type": "boolean"}, "note": {"type": "string"}}, "required": ["path"]});
    options.set("tools", json!({"remove": remove})).expect("a registry");
    options
}

/// Builds a call in a random form; returns its text and its arguments.
fn random_call(random: &mut RandomSource) -> (String, Value) {
    const PATHS: &[&str] = &["/a", "/tmp/b c", "a <b> c", "名字", "x, y: z", "it's"];
    let path = PATHS[random.below(PATHS.len())];
    let force = random.below(2) == 0;
    let note = PATHS[random.below(PATHS.len())];
    let args = json!({"path": path, "force": force, "note": note});
    let python = if force { "True" } else { "False" };
    let call = match random.below(12) {
        0 => format!("<tool_call>\n{}\n</tool_call>", json!({"name": "remove", "arguments": args})),
        1 => format!(
            "<tool_call>\n<function=remove>\n<parameter=path>\n{path}\n</parameter>\n<parameter=force>\n{force}\n</parameter>\n\
             <parameter=note>\n{note}\n</parameter>\n</function>\n</tool_call>"
        ),
        2 => format!(
            "<function=remove>\n<parameter=path>\n{path}\n</parameter>\n<parameter=force>\n{force}\n</parameter>\n\
             <parameter=note>\n{note}\n</parameter>\n</function>"
        ),
        3 => format!(
            "<tool_call>remove\n<arg_key>path</arg_key>\n<arg_value>{path}</arg_value>\n<arg_key>force</arg_key>\n\
             <arg_value>{force}</arg_value>\n<arg_key>note</arg_key>\n<arg_value>{note}</arg_value>\n</tool_call>"
        ),
        4 => format!("[TOOL_CALLS]remove[ARGS]{args}"),
        5 => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>remove\n```json\n{args}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        6 => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.remove:0<|tool_call_argument_begin|>{args}<|tool_call_end|>\
             <|tool_calls_section_end|>"
        ),
        7 => format!("<|channel|>commentary to=functions.remove <|constrain|>json<|message|>{args}<|call|>"),
        8 => format!("<function=remove>{args}</function>"),
        9 => format!(
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"remove\">\n\
             <｜DSML｜parameter name=\"path\" string=\"true\">{path}</｜DSML｜parameter>\n\
             <｜DSML｜parameter name=\"force\" string=\"false\">{force}</｜DSML｜parameter>\n\
             <｜DSML｜parameter name=\"note\" string=\"true\">{note}</｜DSML｜parameter>\n\
             </｜DSML｜invoke>\n</｜DSML｜function_calls>"
        ),
        10 => format!(
            "<minimax:tool_call>\n<invoke name=\"remove\">\n<parameter name=\"path\">{path}</parameter>\n\
             <parameter name=\"force\">{force}</parameter>\n<parameter name=\"note\">{note}</parameter>\n\
             </invoke>\n</minimax:tool_call>"
        ),
        _ => format!("[remove(path=\"{path}\", force={python}, note=\"{note}\")]"),
    };
    (call, args)
}

/// Offset and length of each mark in a text.
fn mark_spans(text: &str) -> Vec<(usize, usize)> {
    let places = (0..text.len()).filter(|&at| text.is_char_boundary(at));
    let found = places.filter_map(|at| {
        let mark =
            MARKS.iter().filter(|mark| text[at..].starts_with(**mark)).max_by_key(|mark| mark.len())?;
        Some((at, mark.len()))
    });
    found.collect()
}

fn damage(text: &str, times: usize, random: &mut RandomSource) -> String {
    let mut text = text.to_owned();
    for _ in 0..times {
        let marks = mark_spans(&text);
        if marks.is_empty() {
            break;
        }
        let (at, len) = marks[random.below(marks.len())];
        match random.below(4) {
            0 | 1 => text.replace_range(at..at + len, ""),
            2 => text = format!("{}{}", &text[..at + len], &text[at..]),
            _ => {
                let mark = text[at..at + len].to_owned();
                let (to, _) = marks[random.below(marks.len())];
                text.insert_str(to, &mark);
            }
        }
    }
    text
}

/// Reads a reply whole, byte by byte (`Some(0)`) or in two parts; returns arguments of calls, codes of findings, and all events.
fn read(reply: &str, cut: Option<usize>, options: &Options) -> (Vec<Value>, Vec<String>, String) {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("toolcall", options).expect("a dialect").with_extensions(true);
    match cut {
        None => pipeline.push(reply.as_bytes(), &mut sink),
        Some(0) => reply.as_bytes().iter().for_each(|byte| pipeline.push(&[*byte], &mut sink)),
        Some(cut) => {
            pipeline.push(&reply.as_bytes()[..cut], &mut sink);
            pipeline.push(&reply.as_bytes()[cut..], &mut sink);
        }
    }
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let codes = sink.findings.iter().map(|finding| finding.code.to_string()).collect();
    let events = sink.join_deltas();
    let call = |event: &Event<'_>| match event.extension() {
        Some(Extension::ToolCall(call)) => Some(call.args.clone()),
        _ => None,
    };
    (events.iter().filter_map(call).collect(), codes, format!("{events:?}"))
}

#[test]
fn what_runs_was_written_or_is_told() {
    // R-81, R-93, R-94
    let options = options();
    let times = std::env::var("FUZZ_ITERATIONS").ok().and_then(|times| times.parse().ok()).unwrap_or(2_000);
    for seed in 0..times {
        let mut random = RandomSource::new(seed);
        let (call, args) = random_call(&mut random);
        let (whole, codes, _) = read(&call, None, &options);
        assert!(whole == [args.clone()] && codes.is_empty(), "seed {seed}: {codes:?} in {call}");
        let times = 1 + random.below(2);
        let reply = damage(&call, times, &mut random);
        let (calls, codes, events) = read(&reply, None, &options);
        for found_call in &calls {
            // Marks and lost signs inside a string cannot be told from its text: only words are compared.
            let words = |value: &Value| {
                let text = value.to_string().replace("\\n", "").replace("\\\"", "\"");
                let text = MARKS.iter().fold(text, |text, mark| text.replace(mark, ""));
                text.replace(|c: char| !c.is_alphanumeric(), "")
            };
            let is_same = words(found_call) == words(&args);
            assert!(
                times > 1 || is_same || !codes.is_empty(),
                "seed {seed}: silently {found_call} of {reply:?}"
            );
            let text = found_call.to_string();
            let formats = [
                ("<function=", "<parameter=", "</parameter>"),
                ("<arg_key>", "<arg_value>", "</arg_value>"),
                ("<｜DSML｜invoke ", "<｜DSML｜parameter ", "</｜DSML｜parameter>"),
                ("<invoke ", "<parameter ", "</parameter>"),
            ];
            for (_, open, close) in formats.into_iter().filter(|(form, ..)| reply.contains(form)) {
                let (opens, closes) = (text.matches(open).count(), text.matches(close).count());
                assert_eq!(opens, closes, "seed {seed}: {found_call} of {reply:?}");
            }
        }
        let cut = 1 + random.below(reply.len().max(2) - 1);
        for cut in [Some(0), Some(cut)] {
            let (_, cut_codes, cut_events) = read(&reply, cut, &options);
            assert_eq!((&events, &codes), (&cut_events, &cut_codes), "seed {seed}, {cut:?}: {reply:?}");
        }
    }
}
