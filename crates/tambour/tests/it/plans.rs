//! Plans: the registry, the instructions, the fallback, and the loop around calls.

use serde_json::{Value, json};
use tambour::contract::check_events;
use tambour::event::{EventCollector, EventKind, ToolResult, ToolStart};
use tambour::options::{Language, Texts};
use tambour::tool::{RegisteredTool, ToolRegistry, closest_names};
use tambour::verdict::Contract;
use tambour::{Event, InputEnd, Options, Pipeline, Profile, Sink};

fn strict_options() -> Options {
    let mut options = Options::default();
    options.profile = Profile::Strict;
    options
}

fn read(reply: &str, options: &Options, end: &InputEnd) -> EventCollector {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("aiplan", options).expect("a dialect").with_extensions(true);
    pipeline.push_str(reply, &mut sink);
    pipeline.finish(end, &mut sink);
    sink
}

fn fence_plan(plan: &Value) -> String {
    format!("```json\n{plan:#}\n```\n")
}

fn tool_plan(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls.iter().map(|(name, args)| json!({"name": name, "args": args})).collect();
    json!({"thought": "t", "response_mode": "TOOL_EXECUTION", "direct_response": null, "tool_calls": calls})
}

fn plan_of(sink: &EventCollector) -> Value {
    let plan = sink.events.iter().find(|event| event.name() == "plan");
    plan.expect("every reply has a plan").data()
}

fn codes(sink: &EventCollector) -> Vec<&str> {
    sink.findings.iter().map(|finding| &*finding.code).collect()
}

#[test]
fn the_sample_registry_has_the_four_tools() {
    // P-020
    let names: Vec<String> = ToolRegistry::sample().iter().map(|tool| tool.name.clone()).collect();
    let expected =
        ["createComprehensiveSRS", "editSRSDocument", "classifyProjectComplexity", "lintSRSDocument"];
    assert_eq!(names, expected);
    let descriptions = |language| -> Vec<String> {
        ToolRegistry::sample().iter().map(|tool| tool.description(language).to_owned()).collect()
    };
    assert_eq!(
        descriptions(Language::Zh),
        ["创建完整的SRS文档", "编辑现有SRS文档", "分析项目复杂度", "执行SRS质量检查"]
    );
    assert_eq!(descriptions(Language::En)[3], "run an SRS quality check");
    // P-021
    for tool in ToolRegistry::sample().iter() {
        let valid_args = json!({
            "userInput": "x", "projectName": "y",
            "sessionData": {"domain": "d", "features": ["f"], "timestamp": "2026"}, "more": 1,
        });
        assert_eq!(tool.check(&valid_args, 8), []);
        let invalid_args = [
            (json!({"projectName": "y"}), ""),
            (json!({"userInput": 1}), "/userInput"),
            (json!({"userInput": "x", "projectName": []}), "/projectName"),
            (json!({"userInput": "x", "sessionData": {"domain": 1}}), "/sessionData/domain"),
            (json!({"userInput": "x", "sessionData": {"features": "a"}}), "/sessionData/features"),
            (json!({"userInput": "x", "sessionData": {"features": [1]}}), "/sessionData/features/0"),
            (json!({"userInput": "x", "sessionData": {"timestamp": 5}}), "/sessionData/timestamp"),
        ];
        for (args, pointer) in invalid_args {
            let found = tool.check(&args, 8);
            assert_eq!(found.len(), 1, "{args}: {found:?}");
            assert_eq!(found[0].pointer, pointer, "{args}");
        }
    }
}

#[test]
fn findings_point_into_the_plan_and_name_what_is_close() {
    // P-015, P-016
    let plan = tool_plan(&[
        ("lintSrsDocument", json!({"userInput": "x"})),
        ("lintSRSDocument", json!({"userInput": 1, "sessionData": {"features": "a"}})),
    ]);
    let sink = read(&fence_plan(&plan), &strict_options(), &InputEnd::stop());
    let message = |code: &str| -> Vec<&str> {
        let code_findings = sink.findings.iter().filter(|finding| finding.code == code);
        code_findings.map(|finding| finding.message.as_str()).collect()
    };
    let unknown = message("tool_unknown");
    assert!(
        unknown[0].contains("`/tool_calls/0/name`") && unknown[0].contains("lintSRSDocument"),
        "{unknown:?}"
    );
    let args = message("tool_args_invalid");
    assert_eq!(args.len(), 2, "{args:?}");
    assert!(
        args.iter().any(|message| message.contains("/tool_calls/1/args/sessionData/features")),
        "{args:?}"
    );
    let lines: Vec<u32> = sink.findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [8, 14, 14], "each call is found where it stands");
}

#[test]
fn the_fallback_is_itself_a_valid_plan() {
    // P-017, P-018
    for language in [Language::Zh, Language::En] {
        let mut options = strict_options();
        options.texts = Texts::from_language(language);
        let fallback = plan_of(&read("not json", &options, &InputEnd::stop()));
        assert_eq!((&fallback["is_fallback"], &fallback["executable"]), (&json!(true), &json!(false)));
        let verdict = Contract::from_name("aiplan")
            .expect("a contract")
            .check(fence_plan(&fallback["plan"]).as_bytes(), &options);
        assert_eq!(verdict.findings, []);
        if language == Language::Zh {
            let expected = json!({
                "thought": "解析响应格式时出现错误，使用安全降级模式",
                "response_mode": "GENERAL_CHAT",
                "direct_response": "抱歉，我的响应格式有问题，请重新尝试您的请求。",
                "tool_calls": [],
            });
            assert_eq!(fallback["plan"], expected);
        }
    }
}

#[test]
fn no_bytes_make_it_fail() {
    // P-019
    let deep = "[".repeat(10 << 20);
    let objects = "{\"a\":".repeat(1 << 20);
    let inputs: [&[u8]; 6] = [
        b"\xFF\xFE{\"thought\"",
        b"\0\0\0",
        deep.as_bytes(),
        objects.as_bytes(),
        br#"{"thought":"\ud800","response_mode":"\udc00"}"#,
        &[b'{'; 4096],
    ];
    for input in inputs {
        let mut sink = EventCollector::default();
        let mut pipeline =
            Pipeline::new("aiplan", &Options::default()).expect("a dialect").with_extensions(true);
        pipeline.push(input, &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        assert_eq!(plan_of(&sink)["is_fallback"], true, "{:?}", &input[..input.len().min(40)]);
    }
}

#[test]
fn a_plan_that_acts_does_so_only_when_it_is_complete() {
    // P-027, P-035: cut at every byte, and with every end other than a proper one
    let reply = fence_plan(&tool_plan(&[
        ("createComprehensiveSRS", json!({"userInput": "电商平台", "projectName": "Shop"})),
        ("lintSRSDocument", json!({"userInput": "检查 \"全部\""})),
    ]));
    let complete = reply.rfind('}').expect("it is an object") + 1;
    let calls =
        |sink: &EventCollector| sink.events.iter().filter(|event| event.name() == "tool_call").count();
    for cut in (0..=reply.len()).filter(|&at| reply.is_char_boundary(at)) {
        for finish in ["stop", "length", "content_filter", "cancelled", "unknown", "failed"] {
            let end = tambour_fixtures::fixture::parse_end(finish).expect("these words are known");
            let sink = read(&reply[..cut], &Options::default(), &end);
            let expected = if finish == "stop" && cut >= complete { 2 } else { 0 };
            assert_eq!(calls(&sink), expected, "{finish} after {:?}", &reply[..cut]);
        }
    }
}

#[test]
fn a_tool_can_be_limited_to_callers() {
    // P-033
    let mut write_tool = RegisteredTool::new("write", json!({"type": "object"})).expect("a schema");
    write_tool.callers = Some(vec!["orchestrator:TOOL_EXECUTION".to_owned()]);
    let open_tool = RegisteredTool::new("read", json!({"type": "object"})).expect("a schema");
    let mut options = Options::default();
    options.tools = Some(ToolRegistry::new([write_tool, open_tool]));
    let reply = fence_plan(&tool_plan(&[("read", json!({})), ("write", json!({}))]));
    for (caller, executable) in [
        (Some("orchestrator:TOOL_EXECUTION"), true),
        (Some("orchestrator:KNOWLEDGE_QA"), false),
        (None, false),
    ] {
        options.caller = caller.map(str::to_owned);
        let sink = read(&reply, &options, &InputEnd::stop());
        assert_eq!(plan_of(&sink)["executable"], executable, "{caller:?}");
        assert_eq!(codes(&sink).contains(&"tool_forbidden"), !executable, "{caller:?}");
    }
}

#[test]
fn the_schema_of_plans_has_the_arguments_of_their_tools() {
    // P-015, P-016
    let options = {
        let mut options = Options::default();
        let tool = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/number"}}, "required": ["a"],
            "$defs": {"number": {"type": "integer"}}});
        options.tools = Some(ToolRegistry::from_json(&json!({"count": tool})).expect("a tool"));
        options
    };
    let entry = tambour::dialect::find_dialect("aiplan").expect("a dialect");
    let schema = entry.schema.expect("a schema")(&options);
    let schema = jsonschema::validator_for(&schema).expect("it is a schema");
    let mut plan = json!({"thought": "t"});
    let mut is_valid = |name: &str, args: serde_json::Value| {
        plan["tool_calls"] = json!([{ "name": name, "args": args }]);
        plan["direct_response"] = json!(null);
        plan["response_mode"] = json!("TOOL_EXECUTION");
        schema.is_valid(&plan)
    };
    assert!(is_valid("count", json!({"a": 1})));
    assert!(!is_valid("count", json!({"a": "1"})));
    assert!(!is_valid("count", json!({})));
    assert!(!is_valid("other", json!({"a": 1})));
}

#[test]
fn instructions_name_only_tools_that_the_caller_may_call() {
    // P-033, P-036
    let entry = tambour::dialect::find_dialect("aiplan").expect("a dialect");
    let (prompt, schema) = (entry.prompt.expect("instructions"), entry.schema.expect("a schema"));
    let mut limited_tool =
        RegisteredTool::new("limited_tool", json!({"type": "object", "readOnly": true})).expect("a schema");
    limited_tool.callers = Some(vec!["me".to_owned()]);
    let mut options = Options::default();
    options.set("aiplan.variant", "v2").unwrap();
    options.tools = Some(ToolRegistry::new([limited_tool]));
    for (caller, is_listed) in [(Some("me"), true), (Some("you"), false), (None, false)] {
        options.caller = caller.map(str::to_owned);
        assert_eq!(prompt(&options).text().contains("limited_tool"), is_listed, "{caller:?}");
        assert_eq!(schema(&options).to_string().contains("limited_tool"), is_listed, "{caller:?}");
        assert_eq!(prompt(&options).text().contains("没有可用的工具"), !is_listed, "{caller:?}");
    }
}

#[test]
fn answers_stream_once_the_mode_allows_it() {
    // P-035, X-004
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("aiplan", &Options::default()).expect("a dialect");
    let texts = |sink: &EventCollector| -> (String, String) {
        let mut texts = (String::new(), String::new());
        for event in &sink.events {
            match event {
                Event::PhaseDelta { text, .. } => texts.0.push_str(text),
                Event::FinalDelta { text } => texts.1.push_str(text),
                _ => {}
            }
        }
        texts
    };
    pipeline.push_str("```json\n{\"thought\":\"small", &mut sink);
    assert_eq!(texts(&sink).0, "small", "the thought is sent while it is written");
    pipeline.push_str(" talk\",\"direct_response\":\"Hel", &mut sink);
    assert_eq!(texts(&sink).1, "", "the mode is not known");
    pipeline.push_str("lo\",\"response_mode\":\"GENERAL_CHAT\",\"tool_calls\":", &mut sink);
    assert_eq!(texts(&sink).1, "Hello");
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("aiplan", &Options::default()).expect("a dialect");
    pipeline.push_str(
        "{\"thought\":\"t\",\"response_mode\":\"KNOWLEDGE_QA\",\"direct_response\":\"Spe",
        &mut sink,
    );
    assert_eq!(texts(&sink).1, "Spe", "the answer is sent while it is written");
}

#[test]
fn instructions_say_when_what_and_how() {
    // P-036
    let prompt =
        tambour::dialect::find_dialect("aiplan").expect("a dialect").prompt.expect("it has instructions");
    let mut options = Options::default();
    let zh = prompt(&options).text();
    for text in [
        "用户请求需要实际操作（创建、修改、删除、分析文件等）",
        "用户询问知识、方法、最佳实践等，但不需要执行具体操作",
        "问候、感谢、闲聊等非SRS相关的一般交流",
        "详细说明为什么选择某个模式",
        "解释专家路由逻辑（如适用）",
        "描述对用户请求的理解",
        "说明下一步计划",
        "createComprehensiveSRS(userInput: string, projectName?: string, sessionData?: {domain?: string, features?: string[], timestamp?: string}): 创建完整的SRS文档",
        "执行SRS质量检查",
    ] {
        assert!(zh.contains(text), "{text}\n{zh}");
    }
    options.texts = Texts::from_language(Language::En);
    let registry = ToolRegistry::from_json(&json!({
        "roll_dice": {
            "type": "object", "description": "throw dice",
            "properties": {"sides": {"enum": [6, 20]}, "times": {"type": "integer", "minimum": 1}},
            "required": ["sides"],
        }
    }));
    options.tools = Some(registry.expect("a registry"));
    options.set("aiplan.variant", "v2").unwrap();
    let en = prompt(&options).text();
    for text in [
        "the user asks about knowledge",
        "roll_dice(sides: 6 | 20, times?: integer): throw dice",
        "PLAN_EXECUTION",
    ] {
        assert!(en.contains(text), "{text}\n{en}");
    }
    assert!(!en.contains("GENERAL_CHAT") && !en.contains("lintSRSDocument"), "{en}");
}

#[test]
fn every_example_in_generated_instructions_is_valid() {
    // P-023
    let prompt =
        tambour::dialect::find_dialect("aiplan").expect("a dialect").prompt.expect("it has instructions");
    let registries = [
        ToolRegistry::sample(),
        ToolRegistry::default(),
        ToolRegistry::from_json(&json!({"roll": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}))
            .expect("a registry"),
        ToolRegistry::from_json(&json!({"odd": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[0-9]{7}$"}}, "required": ["id"]}}))
            .expect("a registry"),
    ];
    for (tools, examples) in registries.into_iter().zip([2, 1, 2, 1]) {
        for language in [Language::Zh, Language::En] {
            for variant in ["v1", "v2"] {
                let mut options = strict_options();
                (options.tools, options.texts) = (Some(tools.clone()), Texts::from_language(language));
                options.set("aiplan.variant", variant).unwrap();
                let text = prompt(&options).text();
                let blocks: Vec<&str> = text.match_indices("```json\n").map(|(at, _)| &text[at..]).collect();
                assert_eq!(blocks.len(), examples, "{text}");
                for block in blocks {
                    let end = block[3..].find("```").expect("it is closed") + 6;
                    let contract = Contract::from_name("aiplan").expect("a contract");
                    assert_eq!(contract.check(&block.as_bytes()[..end], &options).findings, [], "{block}");
                }
            }
        }
    }
}

/// Collects several replies as one stream.
#[derive(Default)]
struct JoinedSink(EventCollector);

impl Sink for JoinedSink {
    fn event(&mut self, event: Event<'_>) {
        self.0.event(event);
    }

    fn finding(&mut self, finding: tambour::Finding) {
        self.0.finding(finding);
    }
}

#[test]
fn a_loop_of_tools_is_one_stream() {
    // X-004
    let mut options = Options::default();
    options.tool_loop = true;
    let mut out = JoinedSink::default();
    let mut first = Pipeline::new("aiplan", &options).expect("a dialect").with_extensions(true);
    let lint_plan = tool_plan(&[
        ("lintSRSDocument", json!({"userInput": "x"})),
        ("editSRSDocument", json!({"userInput": "y"})),
    ]);
    first.push_str(&fence_plan(&lint_plan), &mut out);
    first.finish(&InputEnd::stop(), &mut out);
    let calls: Vec<_> = first.pending_calls().to_vec();
    assert_eq!(calls.iter().map(|call| call.call_id.as_str()).collect::<Vec<_>>(), ["call_1", "call_2"]);
    for call in calls {
        let (call_id, name) = (call.call_id, call.name);
        first.insert(ToolStart { call_id: call_id.clone(), name }, &mut out);
        let result =
            ToolResult { call_id, ok: true, result: Some(json!("fine")), error: None, elapsed_ms: 3 };
        first.insert(result, &mut out);
    }
    let mut second = first.next_reply("aiplan", &options).expect("a dialect");
    second.push_str(&fence_plan(&tool_plan(&[("lintSRSDocument", json!({"userInput": "z"}))])), &mut out);
    second.finish(&InputEnd::stop(), &mut out);
    assert_eq!(second.pending_calls()[0].call_id, "call_3");
    let mut third = second.next_reply("aiplan", &options).expect("a dialect");
    let answer = json!({"thought": "done", "response_mode": "GENERAL_CHAT", "direct_response": "All is well.", "tool_calls": []});
    third.push_str(&fence_plan(&answer), &mut out);
    third.finish(&InputEnd::stop(), &mut out);
    assert!(third.pending_calls().is_empty());
    let names: Vec<&str> = out.0.join_deltas().iter().map(Event::name).collect();
    let expected = [
        "thinking_start",
        "phase_start",
        "phase_delta",
        "plan",
        "tool_call",
        "tool_call",
        "tool_start",
        "tool_result",
        "tool_start",
        "tool_result",
        "phase_start",
        "phase_delta",
        "plan",
        "tool_call",
        "phase_start",
        "phase_delta",
        "thinking_end",
        "final_delta",
        "plan",
        "final_end",
        "completed",
    ];
    assert_eq!(names, expected);
    // X-010: with and without the extension events.
    for has_extensions in [true, false] {
        let is_included = |event: &&Event<'_>| has_extensions || event.kind() != EventKind::Extension;
        let events: Vec<Event<'_>> = out.0.events.iter().filter(is_included).cloned().collect();
        assert_eq!(check_events(&events), []);
    }
}

#[test]
fn further_fields_of_a_call_are_counted() {
    // P-029
    for (extra_fields, message) in [
        (&["note"][..], "`/tool_calls/0/note` is not a field of calls"),
        (&["note", "why"], "`/tool_calls/0/note` and 1 more are not fields of calls"),
        (&["note", "why", "when"], "`/tool_calls/0/note` and 2 more are not fields of calls"),
    ] {
        let mut plan = tool_plan(&[("lintSRSDocument", json!({"userInput": "x"}))]);
        extra_fields.iter().for_each(|field| plan["tool_calls"][0][field] = json!("x"));
        let sink = read(&fence_plan(&plan), &Options::default(), &InputEnd::stop());
        let [found] = sink.findings.as_slice() else { panic!("{:?}", sink.findings) };
        assert_eq!((found.code.as_ref(), found.message.as_str()), ("field_unknown", message));
        assert_eq!(plan_of(&sink)["executable"], true);
    }
}

#[test]
fn at_most_three_names_are_close() {
    // P-015: the closest first.
    let names = ["read_file", "read_files", "reads_file", "read_dir", "write", "xxxx_xxxx"];
    assert_eq!(closest_names("read_fil", names), ["read_file", "read_files", "reads_file"]);
    assert_eq!(closest_names("READ_DIR", names)[0], "read_dir");
    // Half of the letters suffice.
    assert_eq!(closest_names("abcd", ["abxy", "axyz"]), ["abxy"]);
    assert!(closest_names("read_file", ["xxxx_xxxx", "write"]).is_empty());
}
