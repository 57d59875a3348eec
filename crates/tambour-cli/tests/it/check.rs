//! `tambour check`.

use serde_json::{Value, json};

use crate::{RunOutput, VALID_REPLY, broken_reply, new_folder, run, run_in, write_file};

/// Codes of the findings of a line with severity error.
fn error_codes(line: &Value) -> Vec<&str> {
    let findings = line["findings"].as_array().expect("findings");
    findings
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .filter_map(|f| f["code"].as_str())
        .collect()
}

/// Kinds of text that standard error reports as detected.
fn detected_kinds(ran: &RunOutput) -> Vec<&str> {
    ran.stderr
        .lines()
        .filter_map(|line| line.strip_prefix("tambour: checked as `")?.split('`').next())
        .collect()
}

fn reported_paths(ran: &RunOutput) -> Vec<String> {
    ran.json_lines().iter().map(|line| line["path"].as_str().expect("a path").to_owned()).collect()
}

#[test]
fn replies_pass_or_fail() {
    let ran = run(&["check", "--contract", "thinkingml", "--format", "json", "-"], VALID_REPLY);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json_lines()[0]["verdict"], "pass");
    assert_eq!(ran.json_lines()[0].get("first_error"), None);
    let ran = run(&["check", "--format", "json", "-"], broken_reply());
    assert_eq!(ran.code, Some(1));
    let line = &ran.json_lines()[0];
    assert_eq!((&line["verdict"], &line["contract"]), (&json!("fail"), &json!("thinkingml")));
    assert_eq!(line["first_error"], "phase_id_not_consecutive"); // T-033
    assert_eq!(error_codes(line), ["phase_id_not_consecutive"]);
    assert_eq!(line["findings"][0]["line"], 7);
}

#[test]
fn the_profile_and_options_decide() {
    let code = |arguments: &[&str]| run(&[&["check"], arguments, &["-"]].concat(), broken_reply()).code;
    assert_eq!(code(&["--profile", "strict"]), Some(1));
    assert_eq!(code(&["--profile", "lenient"]), Some(0));
    let no_block = VALID_REPLY.replace("<!-- <serp_queries>\n[\"ways to greet\"]\n</serp_queries> -->\n", "");
    assert_eq!(run(&["check", "-"], &no_block).code, Some(1)); // T-040
    assert_eq!(run(&["check", "--option", "thinkingml.serp_block=optional", "-"], &no_block).code, Some(0));
}

#[test]
fn first_only_leaves_one_finding() {
    let reply = broken_reply().replace("# Hi", "# Hi <b>x</b>");
    let finding_count = |arguments: &[&str]| {
        let ran = run(&[&["check", "--format", "json"], arguments, &["-"]].concat(), &reply);
        assert_eq!(ran.code, Some(1));
        ran.json_lines()[0]["findings"].as_array().expect("findings").len()
    };
    assert!(finding_count(&[]) > 1);
    assert_eq!(finding_count(&["--option", "first_only=true"]), 1);
}

#[test]
fn directories_are_walked_in_order() {
    let folder = new_folder("directories");
    for (name, content) in [
        ("b.txt", VALID_REPLY),
        ("a/z.xml", VALID_REPLY),
        ("a/b/y.md", VALID_REPLY),
        ("c.reply", VALID_REPLY),
    ] {
        write_file(&folder, name, content);
    }
    for name in ["picture.png", ".hidden.txt", ".git/x.txt"] {
        write_file(&folder, name, "no reply");
    }
    let ran = run_in(&folder, &["check", "--format", "json", "."], "");
    assert_eq!(reported_paths(&ran), ["./a/b/y.md", "./a/z.xml", "./b.txt", "./c.reply"]);
    assert_eq!(ran.code, Some(0));
    // A file named as an argument is checked under any name.
    let ran =
        run_in(&folder, &["check", "--contract", "thinkingml", "--format", "json", "picture.png", "a"], "");
    assert_eq!(reported_paths(&ran), ["picture.png", "a/b/y.md", "a/z.xml"]);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_is_checked() {
    let folder = new_folder("unreadable");
    write_file(&folder, "good.txt", VALID_REPLY);
    std::fs::create_dir(folder.join("empty")).expect("a folder can be made");
    let ran = run_in(&folder, &["check", "--format", "json", "missing.txt", "good.txt", "empty"], "");
    assert_eq!(ran.code, Some(2));
    assert_eq!(reported_paths(&ran), ["good.txt"]);
    assert!(ran.stderr.contains("missing.txt") && ran.stderr.contains("empty"), "{}", ran.stderr);
    assert_eq!(run(&["check"], "").code, Some(2));
    assert_eq!(run(&["check", "--contract", "nonsense", "-"], "").code, Some(2));
    assert_eq!(run(&["check", "--contract-field", "x", "-"], "").code, Some(2));
}

#[test]
fn records_hold_replies_and_contracts() {
    let folder = new_folder("records");
    let chunks: Vec<String> = broken_reply().chars().map(String::from).collect();
    let records = [
        json!({ "id": "one", "reply": VALID_REPLY, "protocol": "thinkingml" }),
        json!({ "id": "two", "reply": chunks, "protocol": "thinkingml" }),
        json!({ "reply": "Hello", "protocol": "plain" }),
        json!({ "reply": "{\"event\":\"thinking_start\",\"data\":{}}\n", "protocol": "events" }),
        json!({ "reply": VALID_REPLY }),
    ];
    let text: Vec<String> = records.iter().map(|record| format!("{record}\n\n")).collect();
    write_file(&folder, "records.jsonl", text.concat());
    let arguments =
        ["check", "--field", "reply", "--contract-field", "protocol", "--format", "json", "records.jsonl"];
    let ran = run_in(&folder, &arguments, "");
    // The last record names no contract, and neither does an argument.
    assert_eq!((ran.code, detected_kinds(&ran)), (Some(1), vec!["thinkingml"]));
    let values_of =
        |name: &str| -> Vec<Value> { ran.json_lines().iter().map(|line| line[name].clone()).collect() };
    assert_eq!(values_of("record"), [1, 3, 5, 7, 9]);
    assert_eq!(values_of("id"), [json!("one"), json!("two"), Value::Null, Value::Null, Value::Null]);
    assert_eq!(values_of("contract"), ["thinkingml", "thinkingml", "plain", "events", "thinkingml"]);
    assert_eq!(values_of("verdict"), ["pass", "fail", "pass", "fail", "pass"]);
    // In a directory, and on standard input.
    let ran = run_in(&folder, &["check", "--field", "reply", "--format", "json", "."], "");
    assert_eq!(ran.json_lines().len(), 5);
    let ran = run(&["check", "--field", "reply", "--format", "json", "-"], text.concat());
    assert_eq!(ran.json_lines().len(), 5);
}

#[test]
fn records_that_are_none_are_told() {
    let folder = new_folder("faulty-records");
    let mut text = String::new();
    for line in ["{\"reply\":1}", "not json", "{\"other\":\"x\"}", "{\"reply\":[\"a\",1]}"] {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str("{\"reply\":\"x\",\"kind\":\"nonsense\"}\n{\"reply\":\"x\",\"kind\":\"plain\"}\n");
    text.push_str(&"{}\n".repeat(20));
    let path = write_file(&folder, "records.jsonl", text);
    let ran = run(&["check", "--field", "reply", "--contract-field", "kind", "--format", "json", &path], "");
    assert_eq!((ran.code, ran.json_lines().len()), (Some(2), 1));
    assert!(ran.stderr.contains("record 2: not JSON") && ran.stderr.contains("thinkingml"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 6, "{}", ran.stderr);
    assert!(ran.stderr.contains("20 more"), "{}", ran.stderr);
    // Columns count characters, and a line break is no second line.
    let path = write_file(&folder, "broken.jsonl", "{\"reply\": \"布伦\" \"y\"}\n{\"reply\": \"布\n");
    let ran = run(&["check", "--field", "reply", &path], "");
    assert!(ran.stderr.contains("record 1: not JSON: expected `,` or `}` (column 16): "), "{}", ran.stderr);
    let cut =
        "record 2: not JSON: control character (\\u0000-\\u001F) found while parsing a string (column 13): ";
    assert!(ran.stderr.contains(cut), "{}", ran.stderr);
}

#[test]
fn our_own_stream_passes() {
    let lines = run(&["decode", "--extensions", "--findings"], broken_reply()).stdout;
    let ran = run(&["check", "--contract", "events", "--format", "json", "-"], &lines); // X-001
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let cut: Vec<&str> = lines.lines().filter(|line| !line.contains("final_end")).collect();
    let ran = run(&["check", "--contract", "events", "--format", "json", "-"], cut.join("\n"));
    assert_eq!(error_codes(&ran.json_lines()[0]), ["final_end_missing"]);
    // SSE needs its frames and envelopes.
    let sse = "event: thinking_start\ndata: {}\n\n";
    let ran = run(&["check", "--contract", "events", "--format", "json", "-"], sse);
    assert!(error_codes(&ran.json_lines()[0]).contains(&"envelope_missing")); // J-030
}

#[test]
fn examples_in_markdown_have_the_lines_of_their_file() {
    let folder = new_folder("examples");
    let good = format!("# Good\n\n```xml\n{VALID_REPLY}```\n\n```sh\nls\n```\n");
    let bad = format!(
        "# Bad\n\n```xml\n{VALID_REPLY}```\n\n- item\n\n  ```xml\n{}  ```\n",
        indented(&broken_reply())
    );
    write_file(&folder, "good.md", good);
    write_file(&folder, "rules/bad.md", &bad);
    write_file(&folder, "rules/other.txt", "<thinking>");
    let arguments = ["check", "--contract", "thinkingml", "--examples", "--format", "json", "."];
    let ran = run_in(&folder, &arguments, ""); // P-037
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(reported_paths(&ran), ["./good.md", "./rules/bad.md", "./rules/bad.md"]);
    let line = &ran.json_lines()[2];
    assert_eq!((&line["example"], &line["verdict"]), (&json!(2), &json!("fail")));
    let number = line["findings"][0]["line"].as_u64().expect("a line") as usize;
    assert!(bad.lines().nth(number - 1).expect("that line").contains("<phase id=\"3\">"));
}

#[test]
fn examples_that_are_not_there_are_missed() {
    // P-037: an empty check must not look like a successful one
    let folder = new_folder("no-examples");
    let path = write_file(&folder, "empty.md", "# Nothing\n\n```sh\nls\n```\n");
    let ran = run(&["check", "--contract", "thinkingml", "--examples", &path], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("no example of `thinkingml` found in 1 file"), "{}", ran.stderr);
    let ran = run(&["check", "--examples", &path], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ran = run(&["check", "--contract", "thinkingml", "--examples", "--allow-empty", &path], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("no example"), "{}", ran.stderr);
}

#[test]
fn shared_languages_count_for_the_dialects_that_they_can_be() {
    // P-037
    let filament = "<content>\nIt is dark.\n</content>\n";
    let plan = r#"{"thought":"t","response_mode":"GENERAL_CHAT","direct_response":"42","tool_calls":[]}"#;
    let events = r#"{"event":"final_delta","data":{"text":"A"}}"#;
    let blocks = [
        ("xml", VALID_REPLY),
        ("xml", filament),
        ("json", plan),
        ("json", events),
        ("text", filament),
        ("text", "hello\n"),
    ];
    let document: String = blocks
        .iter()
        .map(|(language, text)| format!("```{language}\n{}\n```\n\n", text.trim_end()))
        .collect();
    let path = write_file(&new_folder("shared"), "all.md", document);
    for (contract, expected) in [("thinkingml", 1), ("filament", 2), ("aiplan", 1), ("jsonseq", 1)] {
        let ran = run(&["check", "--contract", contract, "--examples", "--format", "json", &path], "");
        assert_eq!(ran.json_lines().len(), expected, "{contract}: {}", ran.stdout);
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[test]
fn the_kind_that_was_found_is_said_once() {
    let folder = new_folder("kinds");
    let (a, b) = (write_file(&folder, "a.txt", "It is 4."), write_file(&folder, "b.txt", "It is 5."));
    let ran = run(&["check", &a, &b], "");
    assert_eq!((ran.code, detected_kinds(&ran)), (Some(0), vec!["plain"]));
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--contract"), "{}", ran.stderr);
    assert_eq!(detected_kinds(&run(&["check", "-"], broken_reply())), ["thinkingml"]);
    // No summary of kinds where the contract was given.
    for contract in ["plain", "auto"] {
        let ran = run(&["check", "--contract", contract, &a, &b], "");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    }
    let ran = run(&["check", "--contract", "thinkingml", &a], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
}

#[test]
fn several_kinds_without_a_contract_are_wrong_use() {
    let folder = new_folder("several-kinds");
    write_file(&folder, "a.txt", "I cannot do that.");
    write_file(&folder, "b.txt", VALID_REPLY);
    write_file(&folder, "c.txt", "It is 4.");
    let ran = run_in(&folder, &["check", "--format", "json", "."], "");
    assert_eq!((ran.code, ran.json_lines().len()), (Some(2), 3), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    for part in ["--contract", "plain (2)", "thinkingml (1)"] {
        assert!(ran.stderr.contains(part), "no {part}: {}", ran.stderr);
    }
    let ran = run_in(&folder, &["check", "--format", "sarif", "."], "");
    let log: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
    // `--contract auto` checks each text by its own kind.
    let ran = run_in(&folder, &["check", "--contract", "auto", "."], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    // Several kinds of record, each reported by name.
    let records = format!(
        "{}\n{}\n",
        json!({ "r": VALID_REPLY, "kind": "thinkingml" }),
        json!({ "r": "It is 4.", "kind": "plain" })
    );
    let path = write_file(&folder, "records.jsonl", &records);
    let ran = run(&["check", "--field", "r", "--contract-field", "kind", &path], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(run(&["check", "--field", "r", &path], "").code, Some(2));
}

#[test]
fn places_count_the_bytes_that_were_received() {
    // A truncated character, an invalid byte, and a fault after them on the same line.
    let bytes = [
        &b"<thinking>\n<phase id=\"1\"><title>T</title>\n\xE4\xBD \xFF <b>x</b></phase>\n"[..],
        b"</thinking>\n<final>y</final>",
    ]
    .concat();
    let start = bytes.windows(3).position(|three| three == b"<b>").expect("it is there");
    let line = |ran: &RunOutput| {
        let findings = ran.json_lines()[0]["findings"].as_array().expect("findings").clone();
        findings.into_iter().find(|finding| finding["code"] == "unexpected_tag").expect("it is told")
    };
    let ran = run(&["check", "--contract", "thinkingml", "--format", "json", "-"], &bytes);
    assert_eq!(line(&ran)["span"], json!({ "start": start, "end": start + 3 })); // X-006
    assert_eq!((&line(&ran)["line"], &line(&ran)["column"]), (&json!(3), &json!(5)));
    let ran = run(&["check", "--contract", "thinkingml", "-"], &bytes);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let line_index =
        lines.iter().position(|line| line.contains("3 │ \u{FFFD} \u{FFFD} <b>x")).expect("the line");
    let tag = lines[line_index].chars().position(|c| c == '<').expect("the tag");
    assert!(lines.iter().any(|line| line.chars().position(|c| c == '─') == Some(tag)), "{}", ran.stdout);
    let ran = run(&["check", "--contract", "thinkingml", "--format", "sarif", "-"], &bytes);
    let log: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let result =
        results.iter().find(|result| result["ruleId"] == "T-037/unexpected_tag").expect("it is told");
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startColumn"], &region["endColumn"]), (&json!(5), &json!(8)));

    // In an example of a document that is not valid UTF-8 throughout.
    let folder = new_folder("bytes");
    let document = [b"# Caf\xE9 \xF0\x9F\x98\n\n```xml\n", broken_reply().as_bytes(), b"```\n"].concat();
    let path = write_file(&folder, "rules.md", &document);
    let ran = run(&["check", "--contract", "thinkingml", "--examples", "--format", "json", &path], "");
    let start = document.windows(14).position(|tag| tag == b"<phase id=\"3\">").expect("it is there");
    assert_eq!(ran.json_lines()[0]["findings"][0]["span"], json!({ "start": start, "end": start + 14 })); // X-006
    assert!(ran.stderr.contains("rules.md: bytes that are not UTF-8"), "{}", ran.stderr);
    let ran = run(&["check", "--contract", "thinkingml", "--examples", &path], "");
    assert!(ran.stdout.contains("10 │ <phase id=\"3\">"), "{}", ran.stdout);
}

#[test]
fn a_text_that_is_too_long_is_told_the_limit() {
    let ran = run(
        &["check", "--contract", "plain", "--option", "limits.input=3", "--format", "json", "-"],
        "abcdef",
    );
    assert_eq!(ran.code, Some(1));
    let message = ran.json_lines()[0]["findings"][0]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("`limits.input`, 3 bytes"), "{message}"); // X-007
    let ran = run(&["repair", "--option", "limits.input=3"], "abcdef");
    assert!(ran.stderr.contains("`limits.input`, 3 bytes"), "{}", ran.stderr);
    let ran = run(&["decode", "--option", "limits.input=3"], "abcdef");
    let message =
        ran.joined_events().pop().expect("an end").1["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("`limits.input`, 3 bytes"), "{message}");
}

#[test]
fn bytes_that_are_not_text_are_a_finding() {
    let reply = VALID_REPLY.replace("# Hi", "# H\u{1}i").into_bytes();
    let reply: Vec<u8> = reply.into_iter().map(|byte| if byte == 1 { 0xFF } else { byte }).collect();
    let ran = run(&["check", "--contract", "thinkingml", "--format", "json", "-"], &reply);
    assert_eq!(error_codes(&ran.json_lines()[0]), ["not_utf8"]);
    let ran = run(&["check", "--contract", "thinkingml", "-"], &reply);
    assert!(ran.stdout.contains("# H\u{FFFD}i"), "{}", ran.stdout);
}
