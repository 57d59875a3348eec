//! Recorded replies: figures that agree with `check`, runs that are killed and continued.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tambour_server::upstream::RecordedReplies;

use super::{PLAIN, eval, recorded_file, records, report, root};
use crate::{new_folder, run_in, tambour_command, write_file};

const DIALECTS: [&str; 5] = ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament"];

/// A thousand recorded replies of real models in all dialects; each copy has an id of its own.
fn thousand_replies() -> String {
    let files: String =
        DIALECTS.map(|dialect| std::fs::read_to_string(recorded_file(dialect)).expect("recordings")).concat();
    let lines: Vec<Value> =
        files.lines().map(|line| serde_json::from_str(line).expect("a recording")).collect();
    (0..1000)
        .map(|number| {
            let mut record = lines[number % lines.len()].clone();
            record["id"] = json!(format!("{number}"));
            record.as_object_mut().expect("an object").shift_remove("prompt");
            format!("{record}\n")
        })
        .collect()
}

const RECORDED: &str = "[[sources]]\nname = \"m\"\nrecorded = \"r.jsonl\"\n";

/// Sum of a count of all rows.
fn sum(report: &Value, count: impl Fn(&Value) -> &Value) -> u64 {
    report["rows"].as_array().expect("rows").iter().map(|row| count(row).as_u64().expect("a count")).sum()
}

#[test]
fn figures_agree_with_check() {
    let folder = new_folder("eval-check");
    write_file(&folder, "r.jsonl", thousand_replies());
    let report = report(&folder, RECORDED, &[]);
    assert_eq!(sum(&report, |row| &row["replies"]), 1000);
    let check = ["check", "--contract-field", "protocol", "--summary", "--format", "json", "--field"];
    // The file as it was given, and the replies that the run keeps.
    for (field, file) in [("chunks", "r.jsonl"), ("chunks", "e.run/replies.jsonl")] {
        let ran = run_in(&folder, &[&check[..], &[field, file]].concat(), "");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let lines = ran.json_lines();
        let summary = &lines.last().expect("a summary")["summary"];
        let passed =
            summary["texts"].as_u64().expect("a count") - summary["failed"].as_u64().expect("a count");
        assert_eq!(sum(&report, |row| &row["valid"]["count"]), passed);
        assert!(passed > 100 && passed < 900, "{passed}");
        let mut findings = BTreeMap::new();
        for rule in report["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .flat_map(|row| row["rules"].as_array().expect("rules"))
        {
            let key = (rule["severity"].to_string(), rule["rule"].to_string(), rule["code"].to_string());
            let counts: &mut (u64, u64) = findings.entry(key).or_default();
            counts.0 += rule["findings"].as_u64().expect("a count");
            counts.1 += rule["replies"].as_u64().expect("a count");
        }
        let rules = summary["rules"].as_array().expect("rules");
        assert_eq!(rules.len(), findings.len());
        for rule in rules {
            let key = (rule["severity"].to_string(), rule["rule"].to_string(), rule["code"].to_string());
            let counts = (rule["findings"].as_u64(), rule["texts"].as_u64());
            assert_eq!(findings.get(&key).map(|(a, b)| (Some(*a), Some(*b))), Some(counts), "{rule}");
        }
    }
    // The profile of the check as written can be chosen.
    let lenient =
        super::report(&folder, &format!("[contract]\nprofile = \"lenient\"\n{RECORDED}"), &["--run", "l"]);
    let ran = run_in(&folder, &[&check[..], &["chunks", "--profile", "lenient", "r.jsonl"]].concat(), "");
    let failed = ran.json_lines().pop().expect("a summary")["summary"]["failed"].as_u64().expect("a count");
    assert_eq!(sum(&lenient, |row| &row["valid"]["count"]), 1000 - failed);
}

#[test]
fn each_prompt_is_on_one_step_of_the_ladder() {
    let folder = new_folder("eval-ladder");
    write_file(&folder, "r.jsonl", thousand_replies());
    let report = report(&folder, RECORDED, &[]);
    for row in report["rows"].as_array().expect("rows") {
        let count = |name: &str| row["yield"][name].as_u64().expect("a count");
        let steps = ["constrained", "plain", "repaired", "reasked", "fallback"].map(count);
        assert_eq!(json!(steps.iter().sum::<u64>()), row["replies"], "{row}");
        // A reply with an answer in its format may have been cut, or have a fault that is not repaired.
        assert!(json!(steps[1] + steps[2]).as_u64() >= row["repaired"]["count"].as_u64(), "{row}");
        assert_eq!(row["repaired"]["count"], row["usable"]["count"], "{row}");
        assert!(row["text"]["count"].as_u64() >= row["usable"]["count"].as_u64(), "{row}");
    }
    assert!(sum(&report, |row| &row["yield"]["repaired"]) > 0);
    assert!(sum(&report, |row| &row["yield"]["fallback"]) > 0);
}

#[test]
fn structure_is_what_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/measure.md")).expect("it is there");
    let folder = new_folder("eval-structure");
    let replies = [
        ("thinkingml", "<final>Hi.</final>", crate::VALID_REPLY),
        (
            "jsonseq",
            "{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}",
            "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"a\"}}\n{\"event\":\"final_delta\",\"data\":{\"text\":\"x\"}}",
        ),
        (
            "ai_say",
            "{\"response\":{\"counsellor\":\"hi\"}}",
            "{\"assessment\":{\"understanding_level\":40,\"has_questions\":true,\"expressed_understanding\":false,\"reasoning\":\"r\"},\"response\":{\"counsellor\":\"hi\"},\"should_exit\":false,\"exit_reason\":\"x\"}",
        ),
        ("filament", "hello", "<thought>a</thought><content>hi</content>"),
        ("toolcall", "<tool_call>{\"name\":\"x\",\"argu", "hello"),
    ];
    for (dialect, usable, structured) in replies {
        let lines: String = [usable, structured]
            .iter()
            .map(|reply| {
                format!("{}\n", json!({"protocol": dialect, "reply": reply, "finish_reason": "stop"}))
            })
            .collect();
        write_file(&folder, "r.jsonl", lines);
        let file = format!("[contract]\noptions = {{ text_language = \"en\" }}\n{RECORDED}");
        let row = report(&folder, &file, &["--run", dialect])["rows"][0].clone();
        assert_eq!((&row["usable"]["count"], &row["structured"]["count"]), (&json!(2), &json!(1)), "{row}");
        // The page names the rules that deny it, and they are rules.
        let line = page.lines().find(|line| line.starts_with(&format!("| `{dialect}` | "))).expect("a row");
        let (_, codes) = line.trim_end_matches(" |").rsplit_once("| ").expect("a last cell");
        let codes: Vec<&str> = codes.split(", ").map(|code| code.trim_matches('`')).collect();
        let broken = row["rules"]
            .as_array()
            .expect("rules")
            .iter()
            .any(|rule| codes.contains(&rule["code"].as_str().expect("a code")));
        assert!(broken, "{codes:?}: {row}");
        for code in codes {
            assert_eq!(run_in(&folder, &["rules", code], "").code, Some(0), "{code}");
        }
    }
}

/// Reports in all formats.
fn all_reports(folder: &Path, run: &str) -> Vec<String> {
    ["table", "json", "junit", "markdown", "html"]
        .map(|format| {
            let ran = run_in(folder, &["eval", "e.toml", "--run", run, "--resume", "--format", format], "");
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
            ran.stdout
        })
        .to_vec()
}

#[test]
fn a_killed_run_goes_on_and_gives_the_same_report() {
    let folder = new_folder("eval-killed");
    write_file(&folder, "r.jsonl", thousand_replies());
    assert_eq!(eval(&folder, RECORDED, &["--run", "whole"]).code, Some(0));
    let expected = all_reports(&folder, "whole");
    let whole = std::fs::read(folder.join("whole/replies.jsonl")).expect("replies");
    for share in [0, 1, 30, 60, 95] {
        let run = format!("killed-{share}");
        let mut child = tambour_command(&["eval", "e.toml", "--run", &run, "--resume"])
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("the command starts");
        let kept_bytes =
            || std::fs::metadata(folder.join(&run).join("replies.jsonl")).map_or(0, |file| file.len());
        // It may end before it is killed, if this test is slow: then it is whole.
        while kept_bytes() < (whole.len() * share / 100) as u64
            && child.try_wait().expect("a state").is_none()
        {
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let is_same = all_reports(&folder, &run) == expected;
        assert!(is_same, "the reports after a kill at {share} % differ");
        let replies = std::fs::read_to_string(folder.join(&run).join("replies.jsonl")).expect("replies");
        assert_eq!(replies.lines().count(), 1000);
    }
}

#[test]
fn a_line_that_was_cut_is_read_again() {
    let folder = new_folder("eval-cut");
    write_file(&folder, "r.jsonl", records(7, 10));
    let whole = report(&folder, PLAIN, &[]);
    let replies = std::fs::read(folder.join("e.run/replies.jsonl")).expect("replies");
    for length in (0..replies.len()).step_by(7).chain([replies.len() - 1]) {
        std::fs::write(folder.join("e.run/replies.jsonl"), &replies[..length]).expect("it can be cut");
        std::fs::remove_file(folder.join("e.run/report.json")).expect("there is a report");
        assert_eq!(report(&folder, PLAIN, &["--resume"]), whole, "cut at {length}");
        let mended = std::fs::read(folder.join("e.run/replies.jsonl")).expect("replies");
        assert_eq!(mended.len(), replies.len(), "cut at {length}");
    }
}

#[test]
fn a_run_is_not_overwritten_and_not_mixed_with_another() {
    let folder = new_folder("eval-other");
    write_file(&folder, "r.jsonl", records(7, 10));
    assert_eq!(eval(&folder, PLAIN, &[]).code, Some(0));
    let ran = eval(&folder, PLAIN, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("e.run holds a run; `--resume` continues it"), "{}", ran.stderr);
    for (file, field) in [
        (PLAIN.replace("plain", "thinkingml"), "contract.dialects[0]"),
        (
            PLAIN.replace("\"plain\"\n", "\"plain\"\noptions = { \"plain.thinking\" = \"skip\" }\n"),
            "contract.options.plain.thinking",
        ),
        (PLAIN.replace("\"m\"", "\"n\""), "sources[0].name"),
        (format!("max_reasks = 2\n{PLAIN}"), "max_reasks"),
    ] {
        let ran = eval(&folder, &file, &["--resume"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`{field}` differs")), "{field}: {}", ran.stderr);
    }
    // Other replies in the same file.
    write_file(&folder, "r.jsonl", records(8, 10));
    let ran = eval(&folder, PLAIN, &["--resume"]);
    assert!(ran.stderr.contains("`sources[0].recorded.sha256` differs"), "{}", ran.stderr);
    // A line of another run, and one that is damaged.
    write_file(&folder, "r.jsonl", records(7, 10));
    let replies = std::fs::read_to_string(folder.join("e.run/replies.jsonl")).expect("replies");
    for (line, message) in [
        (
            replies.lines().next().expect("a line").replace("\"prompt_id\":\"0\"", "\"prompt_id\":\"x\""),
            "is not a reply of this run",
        ),
        ("{\"id\": \"1\"".to_owned(), "e.run/replies.jsonl:11: not JSON"),
    ] {
        write_file(&folder, "e.run/replies.jsonl", format!("{replies}{line}\n"));
        let ran = eval(&folder, PLAIN, &["--resume"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    // A folder with something else in it.
    write_file(&folder, "mine/replies.jsonl", "");
    let ran = eval(&folder, PLAIN, &["--run", "mine"]);
    assert!(ran.stderr.contains("it is not the folder of a run"), "{}", ran.stderr);
}

#[test]
fn a_recorded_run_gives_the_same_figures() {
    let folder = new_folder("eval-record");
    write_file(&folder, "r.jsonl", thousand_replies());
    let first = report(&folder, RECORDED, &["--record", "kept"]);
    let ran = run_in(&folder.join("kept"), &["eval", "eval.toml", "--format", "json"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let second: Value = serde_json::from_str(&ran.stdout).expect("a report");
    assert_eq!(second["rows"], first["rows"]);
    // The files are recordings of an upstream, and fixtures whose codes are those of the check.
    RecordedReplies::load_file(&folder.join("kept/m.jsonl")).expect("recordings");
    let fixtures = std::fs::read_to_string(folder.join("kept/fixtures.jsonl")).expect("fixtures");
    let arguments = ["check", "--field", "input", "--contract-field", "dialect", "--format", "json"];
    let ran = run_in(&folder.join("kept"), &[&arguments[..], &["fixtures.jsonl"]].concat(), "");
    let verdicts = ran.json_lines();
    assert_eq!(verdicts.len(), 1000);
    for (fixture, verdict) in fixtures.lines().zip(&verdicts) {
        let fixture: Value = serde_json::from_str(fixture).expect("a fixture");
        let mut codes: Vec<&Value> = Vec::new();
        for finding in verdict["findings"].as_array().expect("findings") {
            if finding["severity"] != "info" && !codes.contains(&&finding["code"]) {
                codes.push(&finding["code"]);
            }
        }
        assert_eq!(fixture["strict"], json!(codes), "{}", fixture["id"]);
    }
}

#[test]
fn recorded_re_asks_follow_their_first_reply() {
    let folder = new_folder("eval-recorded-reasks");
    let line = |attempt: u32, reply: &str| {
        format!("{}\n", json!({"id": "a", "attempt": attempt, "reply": reply, "finish_reason": "stop"}))
    };
    let json_file = PLAIN.replace("plain", "json_value");
    write_file(&folder, "r.jsonl", line(1, "no JSON") + &line(2, "none") + &line(3, "{\"a\": 1}"));
    let measured = report(&folder, &json_file, &[]);
    let row = &measured["rows"][0];
    assert_eq!((&row["reasks"], &row["yield"]["reasked"]), (&json!(2), &json!(1)), "{row}");
    assert_eq!((&row["repaired"]["count"], &row["usable"]["count"]), (&json!(0), &json!(1)), "{row}");
    // Replies that the run keeps can be recorded and measured again.
    assert_eq!(eval(&folder, &json_file, &["--resume", "--record", "kept"]).code, Some(0));
    let ran = run_in(&folder.join("kept"), &["eval", "eval.toml", "--format", "json"], "");
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).expect("a report")["rows"], measured["rows"]);
    for (records, message) in [
        (line(2, "x"), "r.jsonl:1: an attempt after the first, without the first"),
        (line(1, "x") + &line(3, "x"), "r.jsonl:2: attempt 3 does not follow the attempt before it"),
    ] {
        write_file(&folder, "r.jsonl", records);
        let ran = eval(&folder, &json_file, &["--run", "other"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

#[test]
fn the_example_runs_as_its_page_says() {
    let readme = std::fs::read_to_string(root().join("examples/measure/README.md")).expect("it is there");
    let commands: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() >= 3, "{commands:?}");
    let folder = new_folder("eval-example");
    for file in std::fs::read_dir(root().join("examples/measure")).expect("a folder") {
        let file = file.expect("a file").path();
        // Runs of somebody who tried it.
        if file.is_dir() {
            continue;
        }
        std::fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("it can be copied");
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_tambour")).parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut outputs = Vec::new();
    for command in commands {
        let ran = std::process::Command::new("sh")
            .args(["-c", command])
            .env("PATH", format!("{}:{path}", bin.display()))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .output()
            .expect("there is a shell");
        let ran = crate::RunOutput::from(ran);
        assert!(ran.code.is_some_and(|code| code < 2), "{command}: {ran:?}");
        outputs.push(ran);
    }
    // The last command finds that the smaller model is worse.
    let last = outputs.last().expect("a command");
    assert_eq!(last.code, Some(1), "{last:?}");
    assert!(last.stdout.contains("regression: "), "{last:?}");
    assert!(outputs[0].stdout.contains("thinkingml"), "{:?}", outputs[0]);
}

#[test]
fn files_that_are_no_run_are_never_replaced() {
    let folder = new_folder("eval-own-files");
    write_file(&folder, "r.jsonl", records(2, 2));
    std::fs::create_dir(folder.join("mine")).expect("a folder");
    write_file(&folder, "mine/failures.jsonl", "no line break");
    let ran = eval(&folder, PLAIN, &["--run", "mine"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("has failures.jsonl but no run.json"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(folder.join("mine/failures.jsonl")).expect("a file"), "no line break");
    let run = PLAIN.replace("name = \"m\"\n", "name = \"replies\"\n");
    let ran = eval(&folder, &run, &["--run", "kept", "--record", "kept"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("is not empty; `--record DIR` takes a new folder"), "{}", ran.stderr);
    let replies = std::fs::read_to_string(folder.join("kept/replies.jsonl")).expect("replies");
    assert_eq!(replies.lines().count(), 2);
}
