//! `tambour decode`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::{VALID_REPLY, new_folder, run, tambour_command, write_file};

#[test]
fn events_come_out_one_a_line() {
    let ran = run(&["decode", "--from", "thinkingml"], VALID_REPLY);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let names: Vec<String> = ran.joined_events().into_iter().map(|(name, _)| name).collect();
    let expected = [
        "serp_summary",
        "thinking_start",
        "phase_start",
        "phase_delta",
        "phase_start",
        "thinking_end",
        "final_delta",
        "serp_queries",
        "final_end",
        "completed",
    ];
    assert_eq!(names, expected);
    assert_eq!(ran.joined_events()[3].1["text"], "Be kind & short.");
}

#[test]
fn the_dialect_is_found_out() {
    let ran = run(&["decode"], VALID_REPLY); // J-054
    assert_eq!(ran.joined_events().last().expect("an end").1["metadata"]["dialect"], "thinkingml");
    let ran = run(&["decode", "-"], "Hello");
    assert_eq!(ran.joined_events().last().expect("an end").1["metadata"]["dialect"], "plain");
}

#[test]
fn events_are_printed_while_the_reply_arrives() {
    let mut child = tambour_command(&["decode", "--from", "thinkingml"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut read_until = |event_name: &str| {
        let mut line = String::new();
        while !line.contains(event_name) {
            line.clear();
            assert!(stdout.read_line(&mut line).expect("output is readable") > 0, "no {event_name}");
        }
    };
    // Each part is answered before the next is written (J-037).
    stdin.write_all(b"<thinking><phase id=\"1\"><title>Goal</ti").expect("it reads");
    read_until("thinking_start");
    stdin.write_all(b"tle>first words").expect("it reads");
    read_until("first words");
    stdin.write_all("</phase></thinking><final>答".as_bytes()).expect("it reads");
    read_until("答");
    drop(stdin);
    read_until("completed");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn every_cutting_gives_the_same_events() {
    let folder = new_folder("cuttings");
    let whole = run(&["decode", "--from", "thinkingml", "--extensions"], VALID_REPLY).joined_events();
    for size in ["1", "2", "3", "7", "64", "100000"] {
        let ran = run(&["decode", "--from", "thinkingml", "--extensions", "--chunk", size], VALID_REPLY);
        assert_eq!(ran.joined_events(), whole, "{size}"); // J-038
    }
    let pieces: Vec<String> = VALID_REPLY.chars().map(String::from).collect();
    let chunks = write_file(&folder, "chunks.json", serde_json::to_string(&pieces).expect("JSON"));
    let ran = run(&["decode", "--from", "thinkingml", "--extensions", "--chunks", &chunks], "");
    assert_eq!(ran.joined_events(), whole);
    let file = write_file(&folder, "reply.txt", VALID_REPLY);
    assert_eq!(run(&["decode", &file], "").joined_events(), whole);
}

#[test]
fn pieces_have_the_size_asked_for() {
    let ran = run(&["decode", "--from", "plain", "--chunk", "3"], "abcdefgh");
    let texts: Vec<_> = ran
        .json_lines()
        .into_iter()
        .filter(|line| line["event"] == "final_delta")
        .map(|line| line["data"]["text"].clone())
        .collect();
    assert_eq!(texts, ["abc", "def", "gh"]);
}

#[test]
fn exit_codes_say_how_it_went() {
    let code = |arguments: &[&str], input: &str| run(arguments, input).code;
    // A repaired reply succeeds, one replaced by the fallback does not.
    assert_eq!(code(&["decode", "--from", "thinkingml"], "<thinking>a</thinking><final>b"), Some(0));
    let ran = run(&["decode", "--from", "thinkingml"], "<<ParsingError>>");
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.joined_events().last().expect("an end").1["metadata"]["fallback_reason"], "parsing_error"); // J-055
    assert_eq!(code(&["decode"], ""), Some(1));
    // Prose is preserved, and reported as not being of the dialect.
    for command in ["decode", "repair"] {
        assert_eq!(code(&[command, "--from", "ai_say"], "We are not done yet."), Some(0), "{command}"); // R-70
        assert_eq!(code(&[command, "--from", "ai_say"], "<<ParsingError>>"), Some(1), "{command}");
    }
    let ran = run(&["decode", "--from", "ai_say"], "We are not done yet.");
    let metadata = ran.joined_events().pop().expect("an end").1["metadata"].take();
    assert_eq!((&metadata["unused_reason"], metadata.get("fallback_reason")), (&"unstructured".into(), None));
    // A run that ends with `error`.
    let ran = run(&["decode", "--option", "limits.input=3"], "abcdef");
    assert_eq!((ran.code, ran.joined_events().last().expect("an end").0.as_str()), (Some(1), "error"));
    // Wrong usage.
    for arguments in [
        &["decode", "--from", "nonsense"][..],
        &["decode", "--option", "nonsense=1"],
        &["decode", "--option", "first_only"],
        &["decode", "--option", "first_only=perhaps"],
        &["decode", "--option", "profile=strict"],
        &["decode", "--chunk", "0"],
        &["decode", "--chunk", "1", "--chunks", "x.json"],
        &["decode", "no/such/file"],
        &["decode", "--chunks", "no/such/file"],
        &["decode", "."],
        &["decode", "--nonsense"],
        &["nonsense"],
        &[],
    ] {
        let ran = run(arguments, "abc");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_file_of_chunks_is_an_array_of_strings() {
    let folder = new_folder("chunk-files");
    for content in ["{}", "[1]", "[\"a\"", ""] {
        let path = write_file(&folder, "chunks.json", content);
        let ran = run(&["decode", "--chunks", &path], "");
        assert_eq!(ran.code, Some(2), "{content}");
        assert!(ran.stderr.contains("chunks.json"), "{}", ran.stderr);
    }
}

#[test]
fn findings_and_extensions_only_when_asked_for() {
    let reply = "<think>draft</think><thinking>a</thinking><final>b</final>";
    let has_event = |arguments: &[&str], name: &str| {
        let mut all = vec!["decode", "--from", "thinkingml"];
        all.extend(arguments);
        run(&all, reply).json_lines().iter().any(|line| line["event"] == name)
    };
    assert!(!has_event(&[], "finding") && !has_event(&[], "draft_delta")); // X-010
    assert!(has_event(&["--findings"], "finding") && !has_event(&["--findings"], "draft_delta"));
    assert!(has_event(&["--extensions"], "draft_delta") && !has_event(&["--extensions"], "finding"));
}

#[test]
fn a_cut_reply_says_so() {
    let ran = run(&["decode", "--finish", "length"], VALID_REPLY);
    let completed = ran.joined_events().pop().expect("an end").1;
    assert_eq!(completed["finish_reason"], "length"); // X-014
    assert_eq!(completed["metadata"]["truncated"], true);
}

#[test]
fn bytes_that_are_not_text_are_replaced() {
    let ran = run(&["decode", "--from", "plain", "--findings", "--chunk", "1"], b"a\xFFb\xE4\xBD");
    assert_eq!(ran.code, Some(0));
    let text: String = ran
        .joined_events()
        .iter()
        .filter(|(name, _)| name == "final_delta")
        .map(|(_, data)| data["text"].as_str().expect("text").to_owned())
        .collect();
    assert_eq!(text, "a\u{FFFD}b\u{FFFD}");
    let is_replacement = |line: &serde_json::Value| line["data"]["code"] == "not_utf8";
    assert_eq!(ran.json_lines().iter().filter(|line| is_replacement(line)).count(), 2);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = tambour_command(&["decode", "--from", "plain", "--chunk", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"some words").expect("it reads");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("output is readable");
    drop(stdout);
    // The command notices at its next line, or the one after; then it stops reading its input.
    while stdin.write_all(b"and more").is_ok() {}
    let mut stderr = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
    assert_eq!((child.wait().expect("it ends").code(), stderr.as_str()), (Some(0), ""));
}

/// An answer of a dialogue round that suggests to end.
const ROUND_ANSWER: &str = r#"{"assessment": {"understanding_level": 85, "has_questions": false, "expressed_understanding":
true, "reasoning": "clear"}, "response": {"咨询师": "Well done."}, "should_exit": true, "exit_reason": "understood"}"#;

#[test]
fn a_round_brings_its_decision() {
    let decision = |arguments: &[&str]| {
        let ran = run(&[&["decode", "--from", "ai_say"], arguments].concat(), ROUND_ANSWER);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.joined_events().last().expect("an end").1["metadata"]["exit_decision"].clone()
    };
    assert!(decision(&[]).is_null());
    let found = decision(&["--round", "2", "--max-rounds", "5"]); // S-071, X-005
    assert_eq!((&found["should_exit"], &found["decision_source"]), (&true.into(), &"exit_criteria".into()));
    assert_eq!(found["reason"], "理解度85达到80且无疑问");
    assert_eq!((&found["round"], &found["max_rounds"]), (&2.into(), &5.into()));
    let found = decision(&["--round", "2", "--max-rounds", "2"]);
    assert_eq!(found["decision_source"], "max_rounds"); // S-070
    let strict = r#"{"understanding_threshold": 90, "expressed_threshold": null}"#;
    let found = decision(&["--round", "2", "--exit-criteria", strict]); // S-083
    assert_eq!((&found["should_exit"], &found["max_rounds"]), (&false.into(), &5.into()));
    let ran = run(&["decode", "--from", "ai_say", "--round", "2", "--extensions"], ROUND_ANSWER);
    assert!(ran.joined_events().iter().any(|(name, _)| name == "exit_decision"));
}

#[test]
fn a_round_is_for_answers_only() {
    for (arguments, expected_text) in [
        (&["--round", "2"][..], "--from ai_say"),
        (&["--from", "plain", "--round", "2"], "--from ai_say"),
        (&["--from", "ai_say", "--max-rounds", "2"], "--round"),
        (&["--from", "ai_say", "--exit-criteria", "{}"], "--round"),
        (&["--from", "ai_say", "--round", "0"], "--round"),
        (&["--from", "ai_say", "--round", "1", "--max-rounds", "21"], "1..=20"), // S-006
        (&["--from", "ai_say", "--option", "round={\"round\":1,\"max_rounds\":21}"], "from 1 to 20"), // S-006
        (&["--from", "ai_say", "--round", "1", "--exit-criteria", "{\"threshold\": 1}"], "threshold"),
        (&["--from", "ai_say", "--round", "1", "--exit-criteria", "80"], "JSON object"),
    ] {
        let ran = run(&[&["decode"], arguments].concat(), ROUND_ANSWER);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(expected_text), "{arguments:?}: {}", ran.stderr);
    }
}
