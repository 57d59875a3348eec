//! Comparison of fixtures, and recording them anew.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tambour_fixtures::fixture::{REQUIRES_LISTED_FINDINGS, parse_line};
use tambour_fixtures::update::update_fixtures;
use tambour_fixtures::{load_fixtures, run_fixture};

/// Temporary folder of fixtures, removed at the end.
struct FixtureFolder(PathBuf);

impl FixtureFolder {
    fn new(name: &str, files: &[(&str, &str)]) -> FixtureFolder {
        let folder =
            FixtureFolder(std::env::temp_dir().join(format!("tambour-{name}-{}", std::process::id())));
        for (path, text) in files {
            let path = folder.0.join(path);
            std::fs::create_dir_all(path.parent().expect("it is below the folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        folder
    }

    fn update(&self) -> Vec<String> {
        update_fixtures(&load_fixtures(&self.0).expect("fixtures"))
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.0.join(path)).unwrap_or_default()
    }
}

impl Drop for FixtureFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Error of a line of a `.jsonl` file, if it fails.
fn fixture_error(line: &Value) -> Option<String> {
    let fixture = parse_line("a", Path::new("a.jsonl"), 0, &line.to_string()).expect("a fixture");
    run_fixture(&fixture.expect("no corpus")).err()
}

#[test]
fn findings_are_compared_as_a_list() {
    let line = |findings: &[&str]| json!({"spec": [], "dialect": "plain", "input": "a\n<think>b</think>\nc</think> d\n <think>e</think>", "findings": findings});
    let good = [
        "2:1 think_in_answer X-012 repaired",
        "3:2 think_unopened X-012 repaired",
        "4:2 think_in_answer X-012 repaired",
    ];
    assert_eq!(fixture_error(&line(&good)), None);
    let [a, b, c] = good;
    for wrong in [
        &[a, c, b][..],
        &[a, b],
        &[a, b, c, c],
        &[a, b, "4:3 think_in_answer X-012 repaired"],
        &[a, b, "5:2 think_in_answer X-012 repaired"],
        &[a, b, "4:2 think_in_answer X-013 repaired"],
        &[a, b, "4:2 think_in_answer X-012"],
        &[a, b, "4:2 think_in_answer X-012 repaired error"],
        &[],
    ] {
        assert!(fixture_error(&line(wrong)).is_some_and(|error| error.contains("findings")), "{wrong:?}");
    }
    let mut strict = line(&good);
    strict["findings_strict"] = json!([a, b]);
    assert!(fixture_error(&strict).is_some_and(|error| error.contains("strict reading")));
}

#[test]
fn severities_are_compared() {
    let line = |option: &str, findings: Value, strict: Value| {
        json!({
            "spec": [], "dialect": "thinkingml", "options": {"thinkingml.serp_block": option},
            "input": "<thinking><phase id=\"1\"><title>t</title></phase></thinking><final>a</final>",
            "findings": findings, "findings_strict": strict,
        })
    };
    let (plain, warning) =
        (json!(["1:68 serp_block_missing T-040 repaired"]), json!(["1:68 serp_block_missing T-040 warning"]));
    // The finding is an error in the strict profile; the option makes it a warning.
    assert_eq!(fixture_error(&line("required", plain.clone(), Value::Null)), None);
    assert_eq!(fixture_error(&line("optional", warning.clone(), Value::Null)), None);
    assert!(fixture_error(&line("optional", warning.clone(), plain.clone())).is_some());
    assert!(fixture_error(&line("optional", plain.clone(), Value::Null)).is_some());
    assert!(fixture_error(&line("required", plain, warning)).is_some());
}

#[test]
fn beside_findings_absent_metadata_is_false_and_none() {
    let line = |more: Value| {
        let mut line =
            json!({"spec": [], "dialect": "plain", "input": "<<ParsingError>>", "finish": "length"});
        line.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        line
    };
    let findings = json!(["1:1 parsing_error_marker J-055 repaired"]);
    let whole = json!({"findings": findings, "truncated": true, "fallback_reason": "parsing_error"});
    assert_eq!(fixture_error(&line(whole.clone())), None);
    for key in ["truncated", "fallback_reason"] {
        let mut incomplete = whole.clone();
        incomplete.as_object_mut().expect("an object").remove(key);
        assert!(fixture_error(&line(incomplete)).is_some_and(|error| error.contains(key)), "{key}");
    }
    let mut more = whole;
    more["unused_reason"] = json!("plan_missing");
    assert!(fixture_error(&line(more)).is_some_and(|error| error.contains("unused_reason")));
    // A fixture without a list of findings states the reason.
    let older = line(json!({"strict": ["parsing_error_marker"]}));
    assert_eq!(fixture_error(&older).is_some(), REQUIRES_LISTED_FINDINGS);
    let reason = json!({"strict": ["parsing_error_marker"], "unlisted": "the places are not the point"});
    assert!(fixture_error(&line(reason)).is_some_and(|error| error.contains("truncated")));
}

#[test]
fn lines_keep_what_somebody_said() {
    let before = concat!(
        "{\"id\": \"a\", \"spec\": [\"X-012\"], \"dialect\": \"plain\", \"input\": \"a\\n<think>b</think>\", ",
        "\"events\": null, \"calls\": [], \"strict\": [\"think_in_answer\"], \"dialect_found\": \"plain\", \"note\": \"c\"}\n",
        "{\"id\":\"b\",\"dialect\":\"plain\",\"spec\":[],\"input\":\"b\",\"events\":[],\"strict\":[]}\n",
        "{\"id\":\"c\",\"dialect\":\"plain\",\"spec\":[],\"input\":\"c\"}\n",
    );
    let folder = FixtureFolder::new("lines", &[("plain/lines.jsonl", before)]);
    // A differing reading does not supply a missing record.
    let complaints = folder.update();
    assert!(complaints.len() == 1 && complaints[0].contains("(b): events"), "{complaints:?}");
    let after = folder.read("plain/lines.jsonl");
    let lines: Vec<&str> = after.lines().collect();
    let a = "{\"id\": \"a\", \"spec\": [\"X-012\"], \"dialect\": \"plain\", \"input\": \"a\\n<think>b</think>\", \"events\": null, \
             \"findings\": [\"2:1 think_in_answer X-012 repaired\"], \"calls\": [], \"dialect_found\": \"plain\", \"note\": \"c\"}";
    assert_eq!(lines[0], a);
    assert_eq!(lines[1], before.lines().nth(1).expect("a line"));
    let c: Value = serde_json::from_str(lines[2]).expect("JSON");
    let keys: Vec<&String> = c.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["id", "dialect", "spec", "input", "events", "findings"]);
    assert!(!lines[2].contains(": "), "{}", lines[2]);
    // Recording again changes nothing.
    folder.update();
    assert_eq!(folder.read("plain/lines.jsonl"), after);
}

#[test]
fn the_words_of_an_independent_author_stay() {
    let line = |strict: &str| {
        format!(
            "{{\"id\":\"a\",\"dialect\":\"plain\",\"spec\":[],\"input\":\"a\\n<think>b</think>\",\"strict\":{strict},\"findings\":[\"9:9 x X-012\"]}}\n"
        )
    };
    let folder = FixtureFolder::new(
        "independent",
        &[
            ("independent/right.jsonl", &line("[\"think_in_answer\"]")),
            ("independent/wrong.jsonl", &line("[]")),
            ("plain/other.jsonl", &line("[]")),
        ],
    );
    let complaints = folder.update();
    assert!(complaints.len() == 1 && complaints[0].contains("wrong.jsonl"), "{complaints:?}");
    let right = folder.read("independent/right.jsonl");
    assert!(
        right.contains("\"strict\":[\"think_in_answer\"]") && right.contains("2:1 think_in_answer"),
        "{right}"
    );
    assert_eq!(folder.read("independent/wrong.jsonl"), line("[]"));
    assert!(!folder.read("plain/other.jsonl").contains("strict"));
}

#[test]
fn long_replies_get_files_of_their_own() {
    let long = "Word.\r\n".repeat(12);
    let line = json!({"id": "long.1", "spec": ["J-038"], "dialect": "plain", "chunks": [&long[..5], &long[5..]], "note": "d"});
    let short = json!({"id": "short", "spec": [], "dialect": "plain", "input": "a"});
    let folder = FixtureFolder::new(
        "long",
        &[("plain/b.jsonl", &format!("{line}\n{short}\n")), ("plain/c.jsonl", &format!("{line}\n"))],
    );
    assert_eq!(folder.update(), [""; 0]);
    assert_eq!(folder.read("plain/b/long.1.in"), long);
    let expect = folder.read("plain/b/long.1.expect.json");
    assert!(expect.starts_with("{\n  \"spec\": [\"J-038\"],\n  \"dialect\": \"plain\",\n"), "{expect}");
    let event = "\n    {\"event\":\"thinking_start\",\"data\":{}},\n";
    assert!(
        expect.contains(event)
            && expect.contains("\n  \"findings\": []")
            && expect.contains("\"note\": \"d\""),
        "{expect}"
    );
    assert_eq!(folder.read("plain/b.jsonl").lines().count(), 1);
    assert!(!folder.0.join("plain/c.jsonl").exists(), "a file without lines goes");
    let fixtures = load_fixtures(&folder.0).expect("fixtures");
    assert_eq!(fixtures.len(), 3);
    assert!(fixtures.iter().all(|fixture| run_fixture(fixture).is_ok()));
    assert_eq!(folder.update(), [""; 0]);
    assert_eq!(folder.read("plain/b/long.1.expect.json"), expect);
}
