//! `--structure`: a contract with custom tags, without code.

use std::path::Path;

use serde_json::{Value, json};

use crate::{RunOutput, new_folder, run, write_file};

fn example_path(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rpg").join(name).display().to_string()
}

fn decode_with(structure: &str, reply: &str) -> RunOutput {
    let arguments = ["decode", "--from", "filament", "--extensions", "--structure", structure, "-"];
    let ran = run(&arguments, reply);
    assert_eq!(ran.code.map(|code| code < 2), Some(true), "{}", ran.stderr);
    ran
}

fn check_with(structure: &str, reply: &str) -> RunOutput {
    run(&["check", "--contract", "filament", "--format", "json", "--structure", structure, "-"], reply)
}

/// Texts or values of the events of a name.
fn event_values(ran: &RunOutput, name: &str) -> Vec<Value> {
    ran.json_lines()
        .into_iter()
        .filter(|event| event["event"] == name)
        .map(|event| event["data"].clone())
        .collect()
}

fn final_text(ran: &RunOutput) -> String {
    event_values(ran, "final_delta").iter().filter_map(|data| data["text"].as_str()).collect()
}

/// Codes of all findings of the only reply checked.
fn finding_codes(ran: &RunOutput) -> Vec<String> {
    let lines = ran.json_lines();
    let findings = lines[0]["findings"].as_array().expect("findings");
    findings.iter().filter_map(|finding| finding["code"].as_str().map(str::to_owned)).collect()
}

#[test]
fn the_examples_read_and_pass() {
    // F-200: custom tags become content, thinking and elements.
    let reply = std::fs::read_to_string(example_path("report.txt")).expect("the example is there");
    let ran = decode_with(&example_path("report.yaml"), &reply);
    assert_eq!(final_text(&ran), "The **mill** burnt down in the night.");
    assert_eq!(event_values(&ran, "phase_delta")[0]["text"], "Short, then the facts.");
    let elements = event_values(&ran, "element");
    assert_eq!(
        (&elements[0]["name"], &elements[0]["value"]),
        (&json!("facts"), &json!({"place": "mill", "hurt": 0}))
    );
    assert_eq!((&elements[1]["name"], &elements[1]["text"]), (&json!("remark"), &json!("Ask the miller.")));
    assert_eq!(check_with(&example_path("report.yaml"), &reply).code, Some(0));
    let turn = std::fs::read_to_string(example_path("reply.txt")).expect("the example is there");
    let ran = check_with(&example_path("structure.yaml"), &turn);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

#[test]
fn replies_are_held_against_the_structure() {
    let structure = example_path("report.yaml");
    for (reply, code, expected_text, finding_count) in [
        // F-206
        (
            "<story>\nGone.\n</story>\n<rumour>x</rumour>",
            "tag_unexpected",
            "Gone.\n\n&lt;rumour>x&lt;/rumour>",
            0,
        ),
        // F-234
        ("<facts>{\"a\": 1}</facts>\n<story>\nGone.\n</story>", "tag_order", "Gone.", 1),
        // F-230
        ("<story>a\n<facts>{\"a\": 1}", "tag_unclosed", "a", 1),
        // F-201
        ("Thinking aloud.\n<story>a</story>", "head_missing", "a", 0),
        // F-205
        ("< STORY >a</ story>\n<Facts>{\"a\": 1}</Facts>", "tag_spelling", "a", 1),
    ] {
        let ran = decode_with(&structure, reply);
        assert_eq!(final_text(&ran), expected_text, "{reply}");
        assert_eq!(event_values(&ran, "element").len(), finding_count, "{reply}");
        let ran = check_with(&structure, reply);
        assert_eq!(ran.code, Some(1), "{reply}");
        assert!(
            finding_codes(&ran).iter().any(|found_code| found_code == code),
            "{reply}: {:?}",
            finding_codes(&ran)
        );
    }
    let incomplete = check_with(&structure, "<plan>p</plan>");
    assert!(finding_codes(&incomplete).iter().any(|code| code == "tag_missing"), "{}", incomplete.stdout); // F-234
    // The same reply without the structure has only unknown tags.
    let ran = run(&["decode", "--from", "filament", "--extensions", "-"], "<story>a</story>");
    assert_eq!(final_text(&ran), "&lt;story>a&lt;/story>");
}

#[test]
fn a_broken_structure_is_wrong_use() {
    let place = new_folder("structure");
    for (name, content, expected_text) in [
        ("key.yaml", "mandatory: [a]\nfoo: 3", "`foo`"),
        ("open.yaml", "mandatory: [thought, content", "line 1 column 12"),
        ("body.json", "{\"mandatory\": [{\"name\": \"x\", \"body\": \"jsn\"}]}", "`jsn`"),
        ("follows.yaml", "mandatory: [content]\ndependency: {content: nope}", "`nope`"),
        ("alias.yaml", "x: *a", "unknown anchor"),
        ("list.json", "[]", "must be an object"),
        ("name.yaml", "mandatory: [\"a b\"]", "a b"),
    ] {
        let file = write_file(&place, name, content);
        for command in [&["decode", "--from", "filament"][..], &["check", "--contract", "filament"]] {
            let ran = run(&[command, &["--structure", &file, "-"]].concat(), "<content>x</content>");
            assert_eq!(ran.code, Some(2), "{name}: {}", ran.stderr);
            assert!(
                ran.stderr.contains(name) && ran.stderr.contains(expected_text),
                "{name}: {}",
                ran.stderr
            );
            assert!(ran.stdout.is_empty(), "{name}");
        }
    }
    let ran = run(&["decode", "--from", "filament", "--structure", "no/such/file", "-"], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("no/such/file"), "{}", ran.stderr);
}

#[test]
fn protocols_make_the_structure_and_policies_adjust_it() {
    let reply = "<content>c</content>\n<choice><prompt>p</prompt><options><option id=\"a\">A</option></options></choice>\n\
        <media type=\"image\" src=\"a.png\" alt=\"\" />";
    let run_with_options = |set: &[&str], reply: &str| {
        let set: Vec<&str> = set.iter().flat_map(|setting| ["--option", *setting]).collect();
        run(&[&["decode", "--from", "filament", "--extensions"], &set[..], &["-"]].concat(), reply)
    };
    // F-007, F-200: what no protocol adds is text.
    let ran = run_with_options(&["filament.protocols=[\"choice\"]"], reply);
    assert_eq!((event_values(&ran, "choice").len(), event_values(&ran, "media").len()), (1, 0), "{ran:?}");
    assert!(final_text(&ran).contains("&lt;media"), "{}", final_text(&ran));
    let ran = run_with_options(&["filament.protocols=[\"choice\",\"media\"]"], reply);
    assert_eq!(
        (event_values(&ran, "choice").len(), event_values(&ran, "media").len(), final_text(&ran).as_str()),
        (1, 1, "c")
    );
    let ran = run_with_options(&["filament.protocols=[\"choise\"]"], reply);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`choise`") && ran.stderr.contains("variable_update_v2"), "{}", ran.stderr);

    let place = new_folder("policies");
    let file = write_file(&place, "own.yaml", "mandatory: [content]\noptional: [thought]\n");
    for (policy, thoughts, expected_text) in [("structure", 1, "c"), ("mandatory", 0, "Hm.\n\nc")] {
        // F-201
        let option = format!("filament.missing_head={policy}");
        let arguments =
            ["decode", "--from", "filament", "--structure", &file, "--option", &option, "--extensions", "-"];
        let ran = run(&arguments, "Hm.\n<content>c</content>");
        assert_eq!(
            (event_values(&ran, "phase_delta").len(), final_text(&ran).as_str()),
            (thoughts, expected_text),
            "{policy}"
        );
    }
    let ran = run_with_options(&["filament.missing_head=never"], reply);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`never`") && ran.stderr.contains("mandatory"), "{}", ran.stderr);
}

#[test]
fn a_structure_is_one_of_filament() {
    // F-200, F-234: a reply checked against a structure is never accepted as plain text
    let file = example_path("report.yaml");
    let bad = "<scene>There.</scene>";
    let ran = run(&["check", "--structure", &file, "--format", "json", "-"], bad);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(finding_codes(&ran).contains(&"tag_missing".to_owned()), "{ran:?}");
    assert_eq!(run(&["check", "--contract", "auto", "--structure", &file, "-"], bad).code, Some(1));
    for (arguments, remedy) in [
        (&["check", "--contract", "plain", "--structure", &file, "-"][..], "`--contract filament`"),
        (&["decode", "--from", "aiplan", "--structure", &file, "-"][..], "`--from filament`"),
        (&["contract", "show", "aiplan", "--structure", &file][..], "`contract show filament`"),
    ] {
        let ran = run(arguments, bad);
        assert!(ran.code == Some(2) && ran.stderr.contains(remedy), "{arguments:?}: {ran:?}");
    }
    // The structure alone suffices to read the reply, and to write it.
    let reply = std::fs::read_to_string(example_path("report.txt")).expect("it is there");
    assert_eq!(
        run(&["decode", "--extensions", "--structure", &file, "-"], &reply).stdout,
        decode_with(&file, &reply).stdout
    );
    let ran = run(&["repair", "--structure", &file, "-"], &reply);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(check_with(&file, &ran.stdout).code, Some(0), "{}", ran.stdout);
    // The prompt states which tag another must follow.
    let structure_file = write_file(
        &new_folder("structure-after"),
        "s.yaml",
        "mandatory: [content, roll, scene]\noptional: [variable_update]\ndependency: {variable_update: [roll, scene]}\n",
    );
    let ran = run(&["contract", "show", "filament", "--lang", "en", "--structure", &structure_file], "");
    assert!(ran.stdout.contains("- <variable_update> comes after <roll> and <scene>"), "{}", ran.stdout);
}

#[test]
fn a_reply_without_content_is_a_warning_where_repairs_are() {
    // F-209, X-006
    for reply in ["<thought>a</thought>", ""] {
        assert_eq!(
            run(&["check", "--contract", "filament", "--profile", "lenient", "-"], reply).code,
            Some(0),
            "{reply}"
        );
        assert_eq!(run(&["check", "--contract", "filament", "-"], reply).code, Some(1), "{reply}");
    }
}
