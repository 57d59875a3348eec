//! `tambour check` in continuous integration: records, summaries, baselines.

use serde_json::{Value, json};

use crate::{RunOutput, VALID_REPLY, broken_reply, new_folder, run, run_in, write_file};

/// Records with a good and a broken reply.
fn record_lines() -> String {
    format!(
        "{}\n{}\n",
        json!({ "id": "a", "reply": VALID_REPLY }),
        json!({ "id": "b", "reply": broken_reply() })
    )
}

/// The last line of a report.
fn last_line(ran: &RunOutput) -> Value {
    ran.json_lines().pop().expect("a last line")
}

#[test]
fn records_without_a_field_are_no_reply() {
    let folder = new_folder("records-without-field");
    write_file(&folder, "replies.jsonl", record_lines());
    for arguments in [
        &["check", "replies.jsonl"][..],
        &["check", "--contract", "auto", "replies.jsonl"],
        &["check", "--contract", "plain", "replies.jsonl"],
        &["check", "--contract", "thinkingml", "--profile", "lenient", "replies.jsonl"],
    ] {
        let ran = run_in(&folder, arguments, "");
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(
            ran.stderr.contains(
                "replies.jsonl: 2 records, and no --field says which field holds the reply; try `--field reply`; fields with \
                 text: reply, id"
            ),
            "{}",
            ran.stderr
        );
    }
    // Recognised under any file name if all lines are objects.
    let ran = run(&["check", "-"], record_lines());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("try `--field reply`"), "{}", ran.stderr);
    // No field with text.
    let ran = run_in(&folder, &["check", "-"], "{\"choices\":[{}]}\n{\"choices\":[{}]}\n");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("share no field with text"), "{}", ran.stderr);
    // Replies stay replies: events of a model, one object, prose among objects.
    write_file(
        &folder,
        "jsonseq.jsonl",
        "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}\n",
    );
    let ran = run_in(&folder, &["check", "--format", "json", "jsonseq.jsonl"], "");
    assert_eq!(ran.json_lines()[0]["contract"], "jsonseq", "{ran:?}");
    let ran = run(&["check", "-"], "{\"a\":\"b\"}\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = run(&["check", "-"], "{\"a\":\"b\"}\nis what I found\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn each_unreadable_record_is_a_test_of_its_own() {
    let folder = new_folder("unreadable-records");
    write_file(&folder, "r.jsonl", format!("{}{}", "{}\n".repeat(7), json!({ "reply": VALID_REPLY })));
    let arguments = ["check", "--contract", "thinkingml", "--field", "reply", "--format"];
    let ran = run_in(&folder, &[&arguments[..], &["junit", "r.jsonl"]].concat(), "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for line in 1..=7 {
        assert_eq!(ran.stdout.matches(&format!("name=\"r.jsonl:{line}\"")).count(), 1, "{}", ran.stdout);
    }
    assert!(ran.stdout.contains("tests=\"8\" failures=\"0\" errors=\"7\""), "{}", ran.stdout);
    assert!(ran.stderr.ends_with("r.jsonl: 2 more records cannot be checked\n"), "{}", ran.stderr);
    let ran = run_in(&folder, &[&arguments[..], &["sarif", "r.jsonl"]].concat(), "");
    let log: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let notes = log["runs"][0]["invocations"][0]["toolExecutionNotifications"].as_array().expect("a list");
    let line = |note: &Value| note["locations"][0]["physicalLocation"]["region"]["startLine"].clone();
    assert_eq!(notes.iter().map(line).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_summary_counts_by_rule() {
    let folder = new_folder("summary");
    write_file(&folder, "a.txt", broken_reply());
    write_file(&folder, "b.txt", broken_reply().replace("# Hi", "# Hi <b>x</b>"));
    write_file(&folder, "c.txt", VALID_REPLY);
    let arguments = ["check", "--contract", "thinkingml", "--summary"];
    let ran = run_in(&folder, &[&arguments[..], &["."]].concat(), "");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("3 checked, 2 failed"), "{}", ran.stdout);
    let first = ran.stderr.lines().next().expect("a line");
    assert!(first.starts_with("error    T-0") && first.ends_with("2 findings in 2 texts"), "{}", ran.stderr);
    let ran = run_in(&folder, &[&arguments[..], &["--format", "json", "."]].concat(), "");
    let summary = &last_line(&ran)["summary"];
    assert_eq!((&summary["texts"], &summary["failed"]), (&json!(3), &json!(2)));
    let rules = summary["rules"].as_array().expect("a list");
    assert_eq!((&rules[0]["findings"], &rules[0]["texts"]), (&json!(2), &json!(2)), "{summary}");
    let sum: u64 = rules.iter().map(|rule| rule["findings"].as_u64().expect("a count")).sum();
    let counts = ["errors", "warnings", "infos"].map(|name| summary[name].as_u64().expect("a count"));
    assert_eq!(sum, counts.iter().sum::<u64>());
    let ran = run_in(&folder, &[&arguments[..], &["c.txt"]].concat(), "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "no rule was broken\n"));
}

#[test]
fn a_baseline_tells_new_findings_from_known_ones() {
    let folder = new_folder("baseline");
    let check = ["check", "--contract", "thinkingml", "--field", "reply"];
    let check_with = |arguments: &[&str]| run_in(&folder, &[&check[..], arguments].concat(), "");
    write_file(&folder, "r.jsonl", record_lines());
    let before = check_with(&["--format", "json", "--summary", "r.jsonl"]);
    assert_eq!(before.code, Some(1));
    write_file(&folder, "old.jsonl", &before.stdout);
    // Known faults do not fail the check, wherever the records are.
    write_file(&folder, "r.jsonl", format!("\n{}", record_lines()));
    let ran = check_with(&["--baseline", "old.jsonl", "./r.jsonl"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr, "compared with the baseline: 0 new (errors: 0), 0 gone\n");
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
    let ran = check_with(&["--baseline", "old.jsonl", "--format", "junit", "r.jsonl"]);
    assert!(ran.stdout.contains("failures=\"0\""), "{}", ran.stdout);
    // One more fault of a kind is new, in any text; a repaired one is gone.
    let worse = record_lines()
        .replace("\"a\"", "\"c\"")
        .replace("<phase id=\\\"3\\\">", "<phase id=\\\"3\\\"><title>x</title></phase><phase id=\\\"7\\\">");
    write_file(&folder, "r.jsonl", worse);
    let ran = check_with(&["--baseline", "old.jsonl", "--format", "json", "r.jsonl"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let baseline = &last_line(&ran)["baseline"];
    assert!(baseline["new_errors"].as_u64() > Some(0), "{baseline}");
    assert_eq!((&baseline["not_checked"], &baseline["new"][0]["id"]), (&json!(1), &json!("b")));
    let lines = ran.json_lines();
    let states: Vec<&str> = lines[1]["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding["baseline_state"].as_str())
        .collect();
    assert!(states.contains(&"new") && states.contains(&"unchanged"), "{states:?}");
    let ran = check_with(&["--baseline", "old.jsonl", "--format", "sarif", "r.jsonl"]);
    assert!(ran.stdout.contains("\"baselineState\": \"new\""), "{}", ran.stdout);
    write_file(&folder, "r.jsonl", format!("{}\n", json!({ "id": "b", "reply": VALID_REPLY })));
    let ran = check_with(&["--baseline", "old.jsonl", "r.jsonl"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("gone: r.jsonl (record b): error: T-0"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with(" gone; 1 text of the baseline not checked now\n"), "{}", ran.stderr);
}

#[test]
fn a_baseline_that_is_none_is_wrong_use() {
    let folder = new_folder("no-baseline");
    write_file(&folder, "a.txt", VALID_REPLY);
    write_file(&folder, "pretty.txt", "3 checked\n");
    write_file(&folder, "empty.jsonl", "");
    for (file, expected_text) in [
        ("missing.jsonl", "cannot open missing.jsonl"),
        ("pretty.txt", "pretty.txt:1: not a line of a `check --format json` report"),
        ("empty.jsonl", "the report lists no texts"),
    ] {
        let ran = run_in(&folder, &["check", "--contract", "thinkingml", "--baseline", file, "a.txt"], "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(expected_text), "{}", ran.stderr);
    }
}

#[test]
fn a_stream_in_the_legacy_protocol_is_told_the_other_one() {
    let sse = "event: content_delta\ndata: {\"message_id\":\"m\",\"request_id\":\"r\",\"seq\":1,\"delta\":\"x\"}\nid: 1\n\n";
    let ran = run(&["check", "--contract", "events", "--format", "json", "-"], sse);
    assert_eq!(ran.code, Some(1));
    let finding = &ran.json_lines()[0]["findings"][0];
    assert_eq!(finding["code"], "event_unknown");
    let message = finding["message"].as_str().expect("a message");
    assert!(message.contains("`legacy`") && message.contains("output_protocol=jsonseq_v1"), "{message}");
}
