//! `tambour script check` and `tambour run`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Ran, folder, run, run_in, write};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Runs an example offline, with its recorded answers and inputs.
fn talk(name: &str, more: &[&str]) -> Ran {
    let folder = example(name);
    let inputs = std::fs::read_to_string(folder.join("inputs.txt")).expect("it has inputs");
    let arguments = [&["run", "script.yaml", "--upstream", "replay:replies.jsonl"], more].concat();
    run_in(&folder, &arguments, &inputs)
}

#[test]
fn the_examples_run_to_their_ends() {
    // S-101: from the script over its rounds to the exit, and a report of the run.
    let out = folder("dialogues");
    for (name, language, last) in [
        ("abc-model", "zh", "理解度92达到80且无疑问"),
        ("fitness-coach", "zh", "达到最大轮次限制 (3)"),
        ("requirements-interview", "en", "Understanding 93 reached 85 and no questions are open"),
    ] {
        let transcript = out.join(format!("{name}.jsonl"));
        let ran = talk(name, &["--language", language, "--transcript", &transcript.to_string_lossy()]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}: {ran:?}");
        assert!(ran.stdout.lines().last().is_some_and(|line| line.contains(last)), "{}", ran.stdout); // S-101
        let turns = std::fs::read_to_string(&transcript).expect("a transcript"); // S-106
        let turns: Vec<Value> = turns.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let last = turns.last().expect("there were turns");
        assert_eq!(last["turn"]["status"], "completed"); // S-106
        assert_eq!(last["turn"]["completed"], true);
        let calls: Vec<&Value> =
            turns.iter().flat_map(|turn| turn["calls"].as_array().expect("a list")).collect();
        assert!(calls.len() >= 4, "{name}");
        for call in calls {
            // S-044
            assert_eq!(call["template_hash"].as_str().map(str::len), Some(64));
            assert!(call["raw"].as_str().is_some_and(|raw| !raw.is_empty()));
        }
    }
}

#[test]
fn scripts_are_checked_with_their_templates() {
    for name in ["abc-model", "fitness-coach", "requirements-interview"] {
        let ran = run(&["script", "check", &example(name).join("script.yaml").to_string_lossy()], "");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.ends_with("0 warnings\n"), "{}", ran.stdout); // S-043
    }
    let script = |action: &str| {
        format!(
            "sessions:\n  - session: s\n    declare: [{{var: spare}}]\n    phases:\n      - phase: p\n        steps:\n          \
             - topic: t\n            actions:\n              - {action}\n"
        )
    };
    let ran = run(&["script", "check", "--templates", "no/such", "-"], script("{type: ai_say, content: x}"));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("there is no folder `no/such`"), "{ran:?}");
    let ran = run(&["script", "check", "-"], script("{type: ai_say, max_rounds: 99, mood: calm}"));
    assert_eq!(ran.code, Some(1));
    let codes: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split_whitespace().nth(4)).collect();
    let unresolved = ["variable_unresolved:"; 3];
    let expected = [&["content_required:"][..], &unresolved, &["field_range:", "field_unknown:"]].concat();
    assert_eq!(codes, expected, "{}", ran.stdout); // S-012, S-043
    let ran = run(&["script", "check", "-"], script("{type: ai_say, content: \"{name}\", template: mine}"));
    assert_eq!(ran.code, Some(1)); // S-022
    assert!(ran.stdout.contains("template_not_found"), "{}", ran.stdout); // S-022
    assert!(ran.stdout.contains("variable_unused") && ran.stdout.contains("`{name}`"), "{}", ran.stdout); // S-043
    let out = folder("templates");
    write(&out, "config/prompts/mine.md", "{topic_content} {%time%} {%nothing%}");
    write(&out, "s.yaml", script("{type: ai_say, content: \"{spare}\", template: mine}"));
    let ran = run_in(&out, &["script", "check", "s.yaml"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("`{%nothing%}`") && !ran.stdout.contains("unused"), "{}", ran.stdout); // S-043
    assert_eq!(run(&["script", "check", "/nowhere.yaml"], "").code, Some(2));
}

#[test]
fn a_dialogue_can_be_looked_into_and_left() {
    let folder = example("abc-model");
    let arguments = ["run", "script.yaml", "--upstream", "replay:replies.jsonl"];
    let ran = run_in(&folder, &arguments, "/info\n还好\n/info\n/quit\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("轮次 1/5\n理解度 0\n") && ran.stdout.contains("轮次 2/5\n理解度 45\n"),
        "{}",
        ran.stdout
    );
    let ran = run_in(&folder, &[&arguments[..], &["--session", "没有"]].concat(), "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("ABC模型介绍"), "{}", ran.stderr);
    let ran = run_in(&folder, &["run", "script.yaml", "--upstream", "http://127.0.0.1:9/v1"], "\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("an empty line asks again"), "{}", ran.stderr); // S-065
}

#[test]
fn an_unreadable_reply_is_not_shown_when_it_is_asked_for_again() {
    let out = folder("reasks");
    let script = std::fs::read_to_string(example("abc-model").join("script.yaml")).expect("it is there");
    write(&out, "script.yaml", script.replace("max_rounds: 5", "max_rounds: 1"));
    let good = r#"{\"response\":{\"咨询师\":\"好\"}}"#;
    let record = |id: &str, text: &str| {
        format!("{{\"id\":\"{id}\",\"chunks\":[\"{text}\"],\"finish_reason\":\"stop\"}}\n")
    };
    write(&out, "replies.jsonl", &(record("a", "sorry, no JSON") + &record("b", good)));
    let ran = run_in(&out, &["run", "script.yaml", "--upstream", "replay:replies.jsonl"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("好\n"), "{}", ran.stdout); // S-054
}
