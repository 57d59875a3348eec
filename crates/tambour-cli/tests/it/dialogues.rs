//! `tambour script check` and `tambour run`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{RunOutput, new_folder, run, run_in, write_file};

fn example_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Runs an example offline, with its recorded answers and inputs.
fn run_example(name: &str, extra_arguments: &[&str]) -> RunOutput {
    let folder = example_path(name);
    let inputs = std::fs::read_to_string(folder.join("inputs.txt")).expect("it has inputs");
    let arguments = [&["run", "script.yaml", "--upstream", "replay:replies.jsonl"], extra_arguments].concat();
    run_in(&folder, &arguments, &inputs)
}

#[test]
fn the_examples_run_to_their_ends() {
    // S-101: from the script over its rounds to the exit, and a report of the run.
    let out = new_folder("dialogues");
    for (name, language, last) in [
        ("abc-model", "zh", "理解度92达到80且无疑问"),
        ("fitness-coach", "zh", "达到最大轮次限制 (3)"),
        ("requirements-interview", "en", "Understanding 93 reached 85 and no questions are open"),
    ] {
        let transcript = out.join(format!("{name}.jsonl"));
        let ran = run_example(name, &["--language", language, "--transcript", &transcript.to_string_lossy()]);
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
        let ran = run(&["script", "check", &example_path(name).join("script.yaml").to_string_lossy()], "");
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
    assert!(ran.stderr.contains("there is no template folder `no/such`"), "{ran:?}");
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
    let out = new_folder("templates");
    write_file(&out, "config/prompts/mine.md", "{topic_content} {%time%} {%nothing%}");
    write_file(&out, "s.yaml", script("{type: ai_say, content: \"{spare}\", template: mine}"));
    let ran = run_in(&out, &["script", "check", "s.yaml"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("`{%nothing%}`") && !ran.stdout.contains("unused"), "{}", ran.stdout); // S-043
    assert_eq!(run(&["script", "check", "/nowhere.yaml"], "").code, Some(2));
}

#[test]
fn a_dialogue_can_be_looked_into_and_left() {
    let folder = example_path("abc-model");
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
    let out = new_folder("reasks");
    let script = std::fs::read_to_string(example_path("abc-model").join("script.yaml")).expect("it is there");
    write_file(&out, "script.yaml", script.replace("max_rounds: 5", "max_rounds: 1"));
    let good = r#"{\"response\":{\"咨询师\":\"好\"}}"#;
    let record = |id: &str, text: &str| {
        format!("{{\"id\":\"{id}\",\"chunks\":[\"{text}\"],\"finish_reason\":\"stop\"}}\n")
    };
    write_file(&out, "replies.jsonl", &(record("a", "sorry, no JSON") + &record("b", good)));
    let ran = run_in(&out, &["run", "script.yaml", "--upstream", "replay:replies.jsonl"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("好\n"), "{}", ran.stdout); // S-054
}

/// The script of the end-to-end case, and its three replies.
fn end_to_end_folder(name: &str, rounds: u32) -> PathBuf {
    let out = new_folder(name);
    let script = format!(
        "sessions:\n  - session: 测试ABC模型讲解\n    declare:\n      - {{var: 教育背景, value: 本科}}\n      - {{var: 用户名, value: 测试用户}}\n      \
         - {{var: 咨询师名, value: AI助手}}\n    phases:\n      - phase: 概念讲解\n        steps:\n          - topic: ABC模型\n            actions:\n              \
         - type: ai_say\n                content: ABC模型包括...\n                max_rounds: {rounds}\n                exit_criteria: {{understanding_threshold: 80}}\n"
    );
    write_file(&out, "script.yaml", script);
    let reply = |(id, level, exit, message): (u32, u32, bool, &str)| {
        let answer = serde_json::json!({
            "assessment": {"understanding_level": level, "has_questions": !exit, "expressed_understanding": exit, "reasoning": "r"},
            "response": {"咨询师": message}, "should_exit": exit, "exit_reason": "原因",
        });
        let record = serde_json::json!({"id": id.to_string(), "chunks": [answer.to_string()], "finish_reason": "stop"});
        format!("{record}\n")
    };
    let replies =
        [(1, 30, false, "ABC模型包括三个部分。"), (2, 60, false, "再举一个例子。"), (3, 90, true, "很好。")];
    write_file(&out, "replies.jsonl", replies.map(reply).concat());
    out
}

#[test]
fn the_user_may_have_the_first_word() {
    // S-069: three inputs, and the third ends it by understanding, or by the last round.
    for (rounds, reason) in [(5, "理解度90达到80且无疑问"), (3, "达到最大轮次限制 (3)")] {
        let out = end_to_end_folder(&format!("user-first-{rounds}"), rounds);
        let arguments = [
            "run",
            "script.yaml",
            "--upstream",
            "replay:replies.jsonl",
            "--user-first",
            "--transcript",
            "t.jsonl",
        ];
        let ran = run_in(&out, &arguments, "什么是ABC模型？\n我有点理解了\n我完全明白了\n");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let expected = format!("ABC模型包括三个部分。\n再举一个例子。\n很好。\n[对话结束: {reason}]\n");
        assert_eq!(ran.stdout, expected); // S-069
        let turns = std::fs::read_to_string(out.join("t.jsonl")).expect("a transcript"); // S-106
        let turns: Vec<Value> = turns.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let completed: Vec<bool> = turns.iter().map(|turn| turn["turn"]["completed"] == true).collect();
        assert_eq!(completed, [false, false, true]); // S-069
        assert!(turns[0]["calls"][0]["prompt"][0]["content"].to_string().contains("user: 什么是ABC模型？")); // S-063
    }
}

#[test]
fn a_round_without_a_message_shows_nothing_and_can_be_asked_again() {
    let out = end_to_end_folder("silent", 1);
    let silent = r#"{\"response\":{\"咨询师\":\"\"},\"should_exit\":true}"#;
    let record = |id: u32, text: &str| {
        format!("{{\"id\":\"{id}\",\"chunks\":[\"{text}\"],\"finish_reason\":\"stop\"}}\n")
    };
    let good = r#"{\"response\":{\"咨询师\":\"好\"}}"#;
    write_file(&out, "replies.jsonl", record(1, silent) + &record(2, silent) + &record(3, good));
    let ran = run_in(&out, &["run", "script.yaml", "--upstream", "replay:replies.jsonl"], "\n\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("好\n"), "{}", ran.stdout); // S-054
    assert!(ran.stderr.contains("message_missing: 模型的回复里没有要说的话"), "{}", ran.stderr); // X-009
}

#[test]
fn messages_of_scripts_are_in_the_language_of_the_texts() {
    let script = |action: &str| {
        format!(
            "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            actions:\n              - {action}\n"
        )
    };
    for (text, zh, en) in [
        ("a: 1\na: 2\n".to_owned(), "`a` 在同一个映射里写了两次", "`a` appears twice in one map"),
        (
            script("{type: ai_say, content: x, condition: a = 1}"),
            "比较相等请写 `==`",
            "write `==` to compare, not `=`",
        ),
        (
            "sessions:\n  - session: {名} 的会话\n    phases: []\n".to_owned(),
            "以 `{` 开头的值要加引号",
            "a value that begins with `{` must be in quotes",
        ),
        (
            "session:\n  - session: s\n    phases: []\n".to_owned(),
            "应写在 `sessions` 下",
            "belongs under `sessions`",
        ),
        (
            script("{type: ai_say, contnet: x}"),
            "是不是把它写成了 `contnet`？",
            "is `contnet` a misspelling of it?",
        ),
        (
            script("{type: ai_say, content: x, max_rounds: 21}"),
            "应在 1 到 20 之间",
            "must be from 1 to 20, not 21",
        ),
    ] {
        for (language, expected_text) in [("zh", zh), ("en", en)] {
            let ran = run(&["script", "check", "--language", language, "-"], text.as_str());
            assert_eq!(ran.stdout.matches(expected_text).count(), 1, "{language}: {}", ran.stdout); // S-011
            assert!(!ran.stdout.contains("DuplicateKeyPolicy"), "{}", ran.stdout);
        }
    }
}

#[test]
fn a_run_is_saved_as_a_test_and_compared() {
    let source = example_path("abc-model");
    let out = new_folder("script-tests");
    for name in ["script.yaml", "replies.jsonl"] {
        write_file(&out, name, std::fs::read_to_string(source.join(name)).expect("it is there"));
    }
    let inputs = std::fs::read_to_string(source.join("inputs.txt")).expect("it has inputs");
    let arguments =
        ["run", "script.yaml", "--upstream", "replay:replies.jsonl", "--save-test", "abc.test.yaml"];
    let ran = run_in(&out, &arguments, &inputs);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let test = std::fs::read_to_string(out.join("abc.test.yaml")).expect("it was written");
    assert!(test.starts_with("script: script.yaml\n"), "{test}");
    // No model or recordings needed.
    std::fs::remove_file(out.join("replies.jsonl")).expect("it is there");
    let ran = run_in(&out, &["run", "--test", "abc.test.yaml"], "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stdout.ends_with(" turns as expected\n"), "{}", ran.stdout);
    // With fewer rounds another rule ends it.
    let script = std::fs::read_to_string(out.join("script.yaml")).expect("it is there");
    write_file(&out, "script.yaml", script.replace("max_rounds: 5", "max_rounds: 4"));
    let ran = run_in(&out, &["run", "--test", "abc.test.yaml", "--junit", "report.xml"], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("exit_decision"), "{}", ran.stdout);
    let report = std::fs::read_to_string(out.join("report.xml")).expect("it was written");
    assert!(
        report.contains("<testsuites name=\"tambour run\"")
            && report.contains("<failure type=\"difference\"")
    );
    let printed = run_in(&out, &["run", "--test", "abc.test.yaml", "--format", "junit"], "");
    assert_eq!((printed.code, printed.stdout), (Some(1), report));
    // An unreadable test is reported, and the others are run.
    write_file(&out, "broken.yaml", "turns: 7\n");
    let ran = run_in(&out, &["run", "--test", "broken.yaml", "abc.test.yaml"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stdout.starts_with("broken.yaml:1:8: ") && ran.stdout.contains("abc.test.yaml: turn"),
        "{}",
        ran.stdout
    );
    write_file(&out, "script.yaml", "sessions: 7\n");
    let ran = run_in(&out, &["run", "--test", "abc.test.yaml"], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("the script cannot run"), "{}", ran.stdout);
    assert_eq!(run(&["run"], "").code, Some(2));
}

#[test]
fn a_test_that_cannot_fail_is_refused() {
    let out = new_folder("empty-tests");
    write_file(&out, "script.yaml", "sessions: [{session: s, phases: []}]\n");
    for (text, expected_text) in [
        ("script: script.yaml\nturns: []\n", "t.yaml:2:8: `turns` is empty"),
        ("{\"script\": \"script.yaml\", \"turns\": []}", "t.yaml:1:36: `turns` is empty"),
        ("script: script.yaml\n", "t.yaml:1:1: the test is not YAML as expected: missing field `turns`"),
        ("turns:\n  - text: a\n    reply: b\n", "t.yaml:3:5: the test is not YAML as expected: "),
    ] {
        write_file(&out, "t.yaml", text);
        let ran = run_in(&out, &["run", "--test", "t.yaml"], "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stdout.starts_with(expected_text), "{}", ran.stdout);
        assert_eq!(ran.stdout.matches("t.yaml").count(), 1, "{}", ran.stdout);
        let ran = run_in(&out, &["run", "--test", "t.yaml", "--format", "junit"], "");
        assert!(ran.stdout.contains("errors=\"1\""), "{}", ran.stdout);
    }
    let ran = run_in(&out, &["run", "--test", "missing.yaml"], "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.stdout.matches("missing.yaml").count(), 1, "{}", ran.stdout);
    // A test that would be refused is not written.
    let arguments = ["run", "script.yaml", "--upstream", "demo", "--user-first", "--save-test", "saved.yaml"];
    let ran = run_in(&out, &arguments, "");
    assert!(ran.stderr.contains("saved.yaml is not written"), "{ran:?}");
    assert!(!out.join("saved.yaml").exists());
}

#[test]
fn a_saved_test_names_its_script() {
    let source = example_path("abc-model");
    let out = new_folder("saved-tests");
    for (from, to) in [("script.yaml", "scripts/calm.yaml"), ("replies.jsonl", "replies.jsonl")] {
        write_file(&out, to, std::fs::read_to_string(source.join(from)).expect("it is there"));
    }
    std::fs::create_dir_all(out.join("tests")).expect("a folder can be made");
    for (test, script) in
        [("tests/calm.test.yaml", "../scripts/calm.yaml"), ("scripts/calm.test.yaml", "calm.yaml")]
    {
        let arguments =
            ["run", "scripts/calm.yaml", "--upstream", "replay:replies.jsonl", "--save-test", test];
        let ran = run_in(&out, &arguments, "/quit\n");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let text = std::fs::read_to_string(out.join(test)).expect("it was written");
        assert!(text.starts_with(&format!("script: {script}\n")), "{text}");
        let ran = run_in(&out, &["run", "--test", test], "");
        assert_eq!((ran.code, ran.stdout), (Some(0), format!("{test}: 1 turn as expected\n")));
    }
}

#[test]
fn a_dialogue_begins_at_a_step() {
    let folder = example_path("fitness-coach");
    let place = "sessions[0].phases[0].steps[0].actions[0]";
    let arguments = ["run", "script.yaml", "--upstream", "replay:replies.jsonl", "--start", place];
    let ran = run_in(&folder, &arguments, "/quit\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let arguments = ["run", "script.yaml", "--upstream", "replay:replies.jsonl", "--start", "sessions[9]"];
    let ran = run_in(&folder, &arguments, "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("place in the script"), "{}", ran.stderr);
    // Steps and actions, the closest first.
    let near_path = "sessions[0].phases[0].steps[0].action[0]";
    let ran = run_in(
        &folder,
        &["run", "script.yaml", "--upstream", "replay:replies.jsonl", "--start", near_path],
        "",
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(&format!("known: {place}")), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(", sessions[0].phases[0].steps[0],") || ran.stderr.contains("steps[0]\n"),
        "{}",
        ran.stderr
    );
}
