//! `tambour mcp`: its tools, called as an MCP client does.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{RunOutput, VALID_REPLY, broken_reply, run};

/// Longest text in bytes.
const MAX_TEXT: usize = 16 << 20;

/// Answers of a session with these messages, by message id: 1 is the first after the handshake.
fn run_session(messages: &[Value]) -> (RunOutput, BTreeMap<u64, Value>) {
    let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    lines.extend(messages.iter().zip(1..).map(|(message, id)| {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        message["id"] = id.into();
        message
    }));
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = run(&["mcp"], input);
    // Standard output has nothing but answers.
    let answers = ran.json_lines();
    let answers = answers.into_iter().map(|line| (line["id"].as_u64().expect("an id"), line)).collect();
    (ran, answers)
}

fn call_message(name: &str, arguments: &Value) -> Value {
    json!({"method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// Result of one call.
fn call_result(name: &str, arguments: &Value) -> Value {
    let (ran, mut answers) = run_session(&[call_message(name, arguments)]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    answers.remove(&1).expect("an answer")["result"].take()
}

/// The first text of a result.
fn result_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("text")
}

#[test]
fn the_tools_are_listed_with_their_arguments() {
    let (ran, answers) = run_session(&[json!({"method": "tools/list"})]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let server = &answers[&0]["result"];
    assert_eq!(server["serverInfo"], json!({"name": "tambour", "version": env!("CARGO_PKG_VERSION")}));
    let tools = answers[&1]["result"]["tools"].as_array().expect("a list").clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["check", "decode", "repair", "json", "contract"]);
    for tool in &tools {
        let (schema, hints) = (&tool["inputSchema"], &tool["annotations"]);
        assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(true), &json!(false)));
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        for (name, field) in schema["properties"].as_object().expect("fields") {
            assert!(field["description"].is_string(), "{name}: {field}");
        }
    }
    let dialects = &tools[1]["inputSchema"]["properties"]["from"]["enum"];
    for entry in tambour::dialect::DIALECTS {
        assert!(dialects.as_array().expect("a list").contains(&entry.name.into()), "{}", entry.name);
    }
    let options = &tools[0]["inputSchema"]["properties"]["options"]["properties"];
    assert!(options["thinkingml.serp_block"]["description"].is_string(), "{options}");
}

#[test]
fn tools_say_what_the_commands_print() {
    let broken = broken_reply();
    for reply in [VALID_REPLY, &broken, "<thinking><phase id=\"1\">a</thinking><final>b", "Hello.", "", "\0<"]
    {
        let result = call_result("check", &json!({"text": reply, "contract": "thinkingml"}));
        let ran = run(&["check", "--format", "json", "--contract", "thinkingml", "-"], reply);
        let mut line = ran.json_lines().remove(0);
        line.as_object_mut().expect("an object").remove("path");
        assert_eq!(result["structuredContent"], line);
        assert_eq!(serde_json::from_str::<Value>(result_text(&result)).expect("JSON"), line);

        let arguments = json!({"text": reply, "from": "thinkingml", "findings": true, "extensions": true, "finish": "length"});
        let result = call_result("decode", &arguments);
        let flags = ["decode", "--from", "thinkingml", "--findings", "--extensions", "--finish", "length"];
        let ran = run(&flags, reply);
        assert_eq!(result_text(&result), ran.stdout);
        assert_eq!(result["structuredContent"]["events"], Value::from(ran.json_lines()));
        assert_eq!(result["structuredContent"]["refused"], ran.code == Some(1));

        let result = call_result("repair", &json!({"text": reply, "from": "thinkingml"}));
        let ran = run(&["repair", "--from", "thinkingml"], reply);
        assert_eq!(result_text(&result), ran.stdout);
        assert_eq!(result["structuredContent"]["reply"], ran.stdout);
        let notes = result["content"][1]["text"].as_str().unwrap_or_default();
        let messages: Vec<String> =
            ran.stderr.lines().map(|line| line.replacen("standard input:", "text:", 1)).collect();
        assert_eq!(notes, messages.join("\n"));
        assert_eq!(result["structuredContent"]["findings"].as_array().map(Vec::len), Some(messages.len()));
    }
    let result =
        call_result("json", &json!({"text": "Sure: {\"n\": 1.000000000000000000001, \"ok\": True,}"}));
    let ran = run(&["json"], "Sure: {\"n\": 1.000000000000000000001, \"ok\": True,}");
    assert_eq!(result_text(&result), ran.stdout.trim_end());
    // Numbers keep their digits where clients read them as doubles.
    assert_eq!(result["structuredContent"]["json"], ran.stdout.trim_end());
    assert_eq!(
        result["structuredContent"]["findings"].as_array().map(Vec::len),
        Some(ran.stderr.lines().count())
    );
    for (arguments, flags) in [
        (json!({"dialect": "thinkingml", "lang": "en"}), vec!["thinkingml", "--lang", "en"]),
        (
            json!({"dialect": "ai_say", "format": "json-schema", "options": {"ai_say.role": "coach"}}),
            vec!["ai_say", "--format", "json-schema", "--option", "ai_say.role=coach"],
        ),
        (json!({"dialect": "jsonseq", "format": "gbnf"}), vec!["jsonseq", "--format", "gbnf"]),
        (
            json!({"dialect": "filament", "format": "structural-tag"}),
            vec!["filament", "--format", "structural-tag"],
        ),
    ] {
        let ran = run(&[&["contract", "show"][..], &flags].concat(), "");
        assert_eq!(result_text(&call_result("contract", &arguments)), ran.stdout);
    }
}

#[test]
fn options_and_examples_are_those_of_the_commands() {
    let document =
        format!("# Reply\n\n```thinkingml\n{}```\n\n```thinkingml\n{VALID_REPLY}```\n", broken_reply());
    let result = call_result("check", &json!({"text": document, "contract": "thinkingml", "examples": true}));
    let examples = &result["structuredContent"]["examples"];
    assert_eq!(result["structuredContent"]["verdict"], "fail");
    assert_eq!((&examples[0]["verdict"], &examples[1]["verdict"]), (&json!("fail"), &json!("pass")));
    assert_eq!((&examples[0]["example"], &examples[1]["example"]), (&json!(1), &json!(2)));
    let lenient = json!({"text": broken_reply(), "contract": "thinkingml", "profile": "lenient"});
    assert_eq!(call_result("check", &lenient)["structuredContent"]["verdict"], "pass");
    // A value may be text, as on the command line, or JSON.
    let schema = json!({"type": "object", "required": ["a"]});
    for schema in [schema.clone(), schema.to_string().into()] {
        let arguments =
            json!({"text": "{}", "contract": "json_value", "options": {"json_value.schema": schema}});
        assert_eq!(call_result("check", &arguments)["structuredContent"]["verdict"], "fail");
    }
    // Without a name the kind is detected and reported.
    let result = call_result("check", &json!({"text": VALID_REPLY}));
    assert_eq!(result["structuredContent"]["contract"], "thinkingml");
    assert_eq!(
        result["content"][1]["text"],
        "checked as `thinkingml`, which was detected; name the contract with `contract`"
    );
    let result = call_result("json", &json!({"text": "nothing here"}));
    assert_eq!((&result["isError"], &result["structuredContent"]["found"]), (&json!(false), &json!(false)));
    let strict = call_result("json", &json!({"text": "{\"a\": True}", "strict": true}));
    assert_eq!(strict["structuredContent"]["found"], false);
    assert_eq!(strict["structuredContent"]["findings"][0]["severity"], "error");
}

#[test]
fn mistakes_are_told_and_end_nothing() {
    let mistakes = [
        ("decode", json!({"text": "a", "from": "nope"}), "unknown dialect `nope`; known: thinkingml"),
        ("repair", json!({"text": "a", "from": "events"}), "unknown dialect `events`"),
        ("check", json!({"text": "a", "contract": "nope"}), "known: "),
        ("contract", json!({"dialect": "nope"}), "unknown dialect `nope`; known: "),
        ("contract", json!({"dialect": "auto"}), "`auto` has no format instructions; available for"),
        ("check", json!({}), "the arguments are not valid: missing field `text`"),
        ("check", json!({"text": "a", "profil": "strict"}), "unknown field `profil`, expected one of `text`"),
        ("check", json!({"text": "a", "profile": "harsh"}), "unknown variant `harsh`"),
        ("json", json!({"text": 1}), "invalid type"),
        ("decode", json!({"text": "a", "options": {"nope": 1}}), "unknown option `nope`"),
        ("decode", json!({"text": "a", "options": {"profile": "strict"}}), "`profile` is not an option"),
        ("decode", json!({"text": "a", "options": {"hold": "for ever"}}), "`for ever`"),
        (
            "contract",
            json!({"dialect": "ai_say", "lang": "en", "options": {"text_language": "zh"}}),
            "not both",
        ),
        (
            "json",
            json!({"text": "x".repeat(MAX_TEXT + 1)}),
            "`text` has 16777217 bytes, and at most 16777216 are read",
        ),
    ];
    let mut messages: Vec<Value> =
        mistakes.iter().map(|(name, arguments, _)| call_message(name, arguments)).collect();
    messages.push(call_message("nope", &json!({})));
    messages.push(json!({"method": "tools/nope"}));
    messages.push(call_message("json", &json!({"text": "[1]"})));
    let (ran, answers) = run_session(&messages);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for ((name, _, expected), id) in mistakes.iter().zip(1..) {
        let result = &answers[&id]["result"];
        assert_eq!(result["isError"], true, "{name}: {result}");
        assert!(result_text(result).contains(expected), "{name}: {result}");
    }
    let id = mistakes.len() as u64;
    let message = answers[&(id + 1)]["error"]["message"].as_str().expect("a message");
    assert_eq!(message, "there is no tool `nope`; the tools are check, decode, repair, json, contract");
    assert!(answers[&(id + 2)]["error"].is_object());
    assert_eq!(result_text(&answers[&(id + 3)]["result"]), "[1]");
}

#[test]
fn a_message_without_end_ends_the_server_with_an_error() {
    let (ran, answers) = run_session(&[call_message("json", &json!({"text": "x".repeat(3 * MAX_TEXT)}))]);
    assert_eq!(ran.code, Some(1));
    assert!(answers.contains_key(&0) && answers.len() == 1);
    assert_eq!(ran.stderr, "tambour: a message may have at most 50331648 bytes; the server ended\n");
}

#[test]
fn what_is_no_client_is_told() {
    assert_eq!(run(&["mcp"], "").code, Some(0));
    let ran = run(&["mcp"], "no JSON\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
    assert!(ran.json_lines()[0]["error"]["message"].is_string(), "{ran:?}");
    let ran = run(&["mcp"], "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("did not begin with an MCP handshake"), "{ran:?}");
}
