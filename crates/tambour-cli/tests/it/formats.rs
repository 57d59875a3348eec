//! Output formats of the findings of `tambour check`.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use crate::{VALID_REPLY, broken_reply, new_folder, run, run_in, write_file};

#[test]
fn pretty_points_into_the_text() {
    let ran = run(&["check", "-"], broken_reply());
    assert_eq!(ran.code, Some(1));
    for part in [
        "error: T-033 phase_id_not_consecutive",
        "[standard input:7:1]",
        "<phase id=\"3\">",
        "1 checked, 1 failed",
    ] {
        assert!(ran.stdout.contains(part), "no {part}: {}", ran.stdout);
    }
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let line_index =
        lines.iter().position(|line| line.contains("7 │ <phase")).expect("the line with its number");
    let start = lines[line_index].find("<phase").expect("the tag");
    assert!(lines[line_index + 1].contains('─'));
    let mark_column = lines[line_index + 1].chars().position(|c| c == '─').expect("a mark");
    assert_eq!(mark_column, lines[line_index][..start].chars().count());
    assert!(!ran.stdout.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn pretty_is_safe_to_look_at() {
    let reply = VALID_REPLY
        .replace("# Hi", &format!("{} \u{1b}[31m\u{202e}<b\u{7}> {}", "a".repeat(5000), "b".repeat(5000)));
    let ran = run(&["check", "--contract", "thinkingml", "-"], reply.replace("<b\u{7}>", "<b>"));
    assert_eq!(ran.code, Some(1));
    assert!(!ran.stdout.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.chars().count() < 200));
}

#[test]
fn pretty_shows_any_place() {
    for reply in
        ["", "\n", "a", "\u{1}", "<", "a\r\n\r\n<final>", "<final>é", "<thinking>\n<phase id=\"1\">\n\n\n"]
    {
        let ran = run(&["check", "--contract", "thinkingml", "-"], reply);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{reply:?}");
        assert!(!ran.stdout.contains("ailed to read"), "{}", ran.stdout);
    }
}

#[test]
fn sarif_has_the_shape_of_its_standard() {
    let folder = new_folder("sarif");
    write_file(&folder, "a b/ok.txt", VALID_REPLY);
    write_file(&folder, "a b/bad.txt", broken_reply().replace("# Hi", "# Hi <b>x</b>"));
    let ran = run_in(&folder, &["check", "--format", "sarif", "a b", "missing"], "");
    assert_eq!(ran.code, Some(2));
    let log: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().expect("a schema").contains("sarif-2.1.0"));
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "tambour");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    assert_eq!(run["invocations"][0]["toolExecutionNotifications"].as_array().map(Vec::len), Some(1));
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 3);
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(rules[index]["shortDescription"]["text"].is_string());
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().expect("a level")));
        assert!(result["message"]["text"].is_string());
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "a%20b/bad.txt");
        let region = &location["region"];
        assert!(region["startLine"].as_u64() <= region["endLine"].as_u64());
        assert!(region["startColumn"].as_u64().expect("a column") >= 1);
    }
    assert_eq!(results[0]["ruleId"], "T-033/phase_id_not_consecutive");
    let region = &results[0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["endColumn"]), (&7.into(), &15.into()));
}

#[test]
fn sarif_of_nothing_wrong_is_complete() {
    let ran = run(&["check", "--format", "sarif", "-"], VALID_REPLY);
    let log: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(log["runs"][0]["results"], Value::Array(Vec::new()));
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], true);
}

#[test]
fn junit_is_xml_with_the_right_counts() {
    let folder = new_folder("junit");
    let fault = "<final>\u{1b} & \"quoted\" <b attr='1'> ]]></final>";
    let records = format!(
        "{}\n{}\n",
        serde_json::json!({ "r": VALID_REPLY, "id": "<ok>" }),
        serde_json::json!({ "r": fault })
    );
    write_file(&folder, "a.jsonl", records);
    write_file(&folder, "b.txt", VALID_REPLY);
    let ran =
        run_in(&folder, &["check", "--field", "r", "--format", "junit", "a.jsonl", "b.txt", "c.txt"], "");
    assert_eq!(ran.code, Some(2));
    let mut reader = Reader::from_str(&ran.stdout);
    let (mut cases, mut failures, mut errors, mut open_tags, mut totals) = (0, 0, 0, 0, Vec::new());
    let mut attributes = Vec::new();
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => break,
            event @ (Event::Start(_) | Event::Empty(_)) => {
                let start = matches!(event, Event::Start(_));
                let (Event::Start(tag) | Event::Empty(tag)) = event else { unreachable!() };
                open_tags += i32::from(start);
                let name = tag.name().as_ref().to_vec();
                match name.as_slice() {
                    b"testcase" => cases += 1,
                    b"failure" => failures += 1,
                    b"error" => errors += 1,
                    _ => {}
                }
                for attribute in tag.attributes() {
                    let attribute = attribute.expect("well-formed attributes");
                    let value = attribute.unescape_value().expect("escaped").into_owned();
                    if name == b"testsuites" && attribute.key.as_ref() != b"name" {
                        totals.push(value.clone());
                    }
                    attributes.push(value);
                }
            }
            Event::End(_) => open_tags -= 1,
            _ => {}
        }
    }
    assert_eq!(open_tags, 0);
    assert_eq!((cases, failures, errors), (4, 1, 1));
    assert_eq!(totals, ["4", "1", "1"]);
    assert!(attributes.iter().any(|value| value == "record 1, <ok>"), "{attributes:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "XML holds no control characters");
}
