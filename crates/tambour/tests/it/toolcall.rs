//! Calls that models write as text: text that streams, text that waits, calls that never act, and hostile replies.

use serde_json::{Value, json};
use tambour::event::{Event, EventCollector, Extension};
use tambour::tool::{RegisteredTool, ToolRegistry};
use tambour::{InputEnd, Options, Pipeline, dialect};

const PING: &str = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";

const NAMES: [&str; 3] = ["f", "ping", "save"];

/// Events of a reply, and codes of its findings.
struct ReplyReading {
    events: Vec<Event<'static>>,
    codes: Vec<String>,
}

impl ReplyReading {
    fn calls(&self) -> Vec<(&str, &Value)> {
        let mut calls = Vec::new();
        for event in &self.events {
            if let Some(Extension::ToolCall(call)) = event.extension() {
                calls.push((call.name.as_str(), &call.args));
            }
        }
        calls
    }

    fn text(&self) -> String {
        let delta_text = |event: &Event<'_>| match event {
            Event::FinalDelta { text } => Some(text.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(delta_text).collect()
    }
}

/// Options with the tools of these tests, which take any arguments.
fn options_with_tools() -> Options {
    let mut options = Options::default();
    let tools = NAMES.map(|name| RegisteredTool::new(name, json!({"type": "object"})).expect("a schema"));
    options.tools = Some(ToolRegistry::new(tools));
    options
}

fn read(reply: &str, chunk: usize, options: &Options) -> ReplyReading {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("toolcall", options).expect("a dialect").with_extensions(true);
    reply.as_bytes().chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    let codes = sink.findings.iter().map(|finding| finding.code.to_string()).collect();
    ReplyReading { events: sink.join_deltas(), codes }
}

#[test]
fn text_streams_and_only_what_may_be_a_mark_waits() {
    let mut pipeline = Pipeline::new("toolcall", &options_with_tools()).unwrap();
    let mut sink = EventCollector::default();
    for piece in ["Well", ", a < b", " and <", "b>", " [link](x) [", "T", "OO", " and a{", "}"] {
        pipeline.push_str(piece, &mut sink);
        assert!(pipeline.held_bytes() <= 5, "{piece:?}: {} bytes held", pipeline.held_bytes());
    }
    for (at, _) in "<|channel|>comm".char_indices().skip(1) {
        pipeline.push_str(&"<|channel|>comm"[at - 1..at], &mut sink);
        assert_eq!(pipeline.held_bytes(), at);
    }
}

#[test]
fn calls_are_told_at_the_end_of_the_reply_and_not_when_it_is_cut() {
    //
    let text = format!("I look. {PING} So.");
    for end in [InputEnd::stop(), InputEnd::WithoutReason] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("toolcall", &options_with_tools()).unwrap().with_extensions(true);
        pipeline.push_str(&text, &mut sink);
        let count_calls = |sink: &EventCollector| {
            sink.join_deltas().iter().filter(|event| event.name() == "tool_call").count()
        };
        assert_eq!(count_calls(&sink), 0);
        pipeline.finish(&end, &mut sink);
        assert_eq!(count_calls(&sink), usize::from(end == InputEnd::stop()));
        let notices = sink.join_deltas().iter().filter(|event| event.name() == "notice").count();
        assert_eq!(notices, usize::from(end == InputEnd::WithoutReason));
    }
}

#[test]
fn auto_never_chooses_the_dialect() {
    // other dialects take marks of calls for text.
    for reply in
        [PING, "[TOOL_CALLS][{\"name\": \"ping\", \"arguments\": {}}]", "<|python_tag|>{\"name\": \"ping\"}"]
    {
        assert_ne!(dialect::detect(reply).name, "toolcall", "{reply}");
    }
}

#[test]
fn the_first_call_tells_the_format() {
    let other = "[TOOL_CALLS]ping[ARGS]{}";
    let reading = read(&format!("{PING} {other}"), 7, &options_with_tools());
    assert_eq!((reading.calls().len(), reading.text().as_str()), (1, other));
    let mut options = options_with_tools();
    options.set("toolcall.format", "mistral").unwrap();
    let mistral = read(&format!("{PING} {other}"), 7, &options);
    assert_eq!((mistral.calls().len(), mistral.text().as_str()), (1, PING));
    assert!(options_with_tools().set("toolcall.format", "gemma").is_err());
}

#[test]
fn an_argument_of_a_megabyte_is_read_once() {
    //
    let text = "a line with </tool_call> and <|call|> and \"quotes\" \\ in it\n".repeat((1 << 20) / 56);
    let body = json!({"text": text});
    let forms = [
        format!("<tool_call>\n{}\n</tool_call>", json!({"name": "save", "arguments": body})),
        format!("[TOOL_CALLS]save[ARGS]{body}"),
        format!("<|channel|>commentary to=functions.save <|constrain|>json<|message|>{body}<|call|>"),
    ];
    for form in forms {
        for chunk in [4, usize::MAX] {
            let reading = read(&form, chunk, &options_with_tools());
            assert_eq!(reading.calls(), [("save", &body)], "{}", &form[..40]);
            assert!(reading.codes.is_empty());
        }
    }
}

#[test]
fn marks_without_calls_are_text() {
    // none of their text is lost, and the work for each byte is bounded.
    let pieces = [
        "<tool_call>",
        "<tool_call>{\"",
        "<tool_call>{",
        "<tool_call>name",
        "<tool_call><function=f>",
        "<tool_call><function=f><parameter=a>",
        "<function=",
        "<function=f>",
        "<function=f>{",
        "<｜DSML｜function_calls>",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\">",
        "<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" string=\"false\">",
        "<minimax:tool_call><invoke name=\"",
        "<minimax:tool_call><invoke name=\"f\"><parameter name=\"a\">",
        "[TOOL_CALLS]",
        "[TOOL_CALLS][",
        "[TOOL_",
        "<|channel|>",
        "<|start|>assistant",
        "<|start|>assistant<|channel|>commentary to=",
        "<｜tool▁call▁begin｜>",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{",
        "<|python_start|>[f(\"",
        "[f(",
        "{\"name\"",
        "</tool_call>",
    ];
    for piece in pieces {
        let reply = piece.repeat((64 << 10) / piece.len());
        let whole = read(&reply, usize::MAX, &options_with_tools());
        assert!(whole.calls().is_empty(), "{piece}");
        assert_eq!(whole.text().len(), reply.trim().len(), "{piece}");
        assert_eq!(whole.text(), read(&reply, 4, &options_with_tools()).text(), "{piece}");
    }
}

#[test]
fn a_missing_quote_hides_no_other_call() {
    // The text after the mark that ended the broken call is read again, once.
    let broken = "<tool_call>\n{\"name\": \"save\", \"arguments\": {\"a\": \"b}}\n</tool_call>\n";
    let reply = broken.repeat(2000) + PING;
    let reading = read(&reply, 512, &options_with_tools());
    assert_eq!(reading.calls().last().map(|call| call.0), Some("ping"));
    assert!(reading.codes.len() >= 1000);
}

#[test]
fn types_of_bare_arguments_come_from_the_schema() {
    let schema = json!({"type": "object", "properties": {
        "id": {"type": "string"}, "n": {"type": ["integer", "null"]}, "any": {}, "either": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
    }});
    let mut options = options_with_tools();
    options.tools = Some(ToolRegistry::new([RegisteredTool::new("f", schema).unwrap()]));
    let reply = "<tool_call>f\n<arg_key>id</arg_key>\n<arg_value>12</arg_value>\n<arg_key>n</arg_key>\n<arg_value>None</arg_value>\n\
                 <arg_key>any</arg_key>\n<arg_value>[1, 2]</arg_value>\n<arg_key>either</arg_key>\n<arg_value>maybe</arg_value>\n</tool_call>";
    let reading = read(reply, 3, &options);
    assert_eq!(reading.calls(), [("f", &json!({"id": "12", "n": null, "any": [1, 2], "either": "maybe"}))]);
}

#[test]
fn without_tools_nothing_is_called() {
    //
    for reply in [PING, "[TOOL_CALLS]ping[ARGS]{}", "{\"name\": \"ping\", \"parameters\": {}}"] {
        let reading = read(reply, 3, &Options::default());
        assert!(reading.calls().is_empty(), "{reply}");
        assert_eq!(reading.codes, ["tool_unknown"], "{reply}");
        assert_eq!(reading.text(), reply);
    }
}

#[test]
fn rules_of_the_text_around_calls_are_listed() {
    //
    let rules = dialect::find_dialect("toolcall").expect("a dialect").rules;
    for (reply, code) in
        [("The answer is 4.<|im_end|>", "control_mark"), ("assistant\n<think>2 + 2</think>4", "role_word")]
    {
        assert_eq!(read(reply, 3, &options_with_tools()).codes, [code], "{reply}");
        assert!(rules.iter().any(|rule| rule.code == code), "{code}");
    }
}

#[test]
fn arguments_without_ends_are_read_in_linear_time() {
    //
    for piece in [
        "<parameter=a>x",
        "<parameter=a>x</function>",
        "<parameter=a>x</parameter> <parameter=",
        "</parameter>",
        "<function=",
    ] {
        let reply =
            format!("<tool_call>\n<function=f>\n{}\n</function>\n</tool_call>", piece.repeat(100_000));
        assert!(read(&reply, 4096, &options_with_tools()).calls().is_empty(), "{piece}");
    }
}
