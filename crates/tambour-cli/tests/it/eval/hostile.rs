//! Input that is broken, models that misbehave, and disks that are full.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tambour_server::upstream::RecordedReplies;

use super::model::{Answer, ScriptedModel, last_text};
use super::{PLAIN, eval, records, report};
use crate::{RunOutput, new_folder, run_in, tambour_command, write_file};

/// Evaluation of one model as plain text, with short timeouts.
fn model_file(model: &ScriptedModel) -> String {
    format!(
        "max_reasks = 0\nparallel = 3\n[contract]\ndialect = \"plain\"\n[prompts]\npath = \"prompts.jsonl\"\n[[sources]]\nname = \"m\"\n\
         upstream = \"openai={}\"\nmodel = \"small\"\n[timeouts]\nattempts = 1\nfirst_byte_ms = 300\nsilence_ms = 300\n",
        model.url()
    )
}

#[test]
fn broken_prompts_are_named_by_their_line() {
    let folder = new_folder("eval-broken-prompts");
    let model = ScriptedModel::start(|_, _| Answer::Silence);
    let good = "{\"id\": \"a\", \"text\": \"x\"}\n";
    for (line, message) in [
        ("{\"text\": \"x\"", "prompts.jsonl:2: not JSON"),
        ("[1]", "prompts.jsonl:2: "),
        ("\"x\"", "prompts.jsonl:2: "),
        ("{}", "prompts.jsonl:2: a prompt needs `text`, or `messages`"),
        ("{\"text\": \" \"}", "prompts.jsonl:2: a prompt needs `text`, or `messages`"),
        ("{\"text\": 4}", "prompts.jsonl:2: "),
        ("{\"text\": \"x\", \"messages\": []}", "prompts.jsonl:2: give `text` or `messages`, not both"),
        ("{\"messages\": []}", "prompts.jsonl:2: a prompt needs"),
        (
            "{\"messages\": [{\"role\": \"system\", \"content\": \"x\"}]}",
            "prompts.jsonl:2: the `messages` of a prompt need one",
        ),
        ("{\"messages\": [{\"role\": \"robot\", \"content\": \"x\"}]}", "prompts.jsonl:2: a role must be"),
        (
            "{\"messages\": [{\"role\": \"user\"}]}",
            "prompts.jsonl:2: the message of role `user` has no `content`",
        ),
        ("{\"id\": \"a\", \"text\": \"y\"}", "prompts.jsonl:2: the id `a` occurs twice"),
        ("{\"id\": [], \"text\": \"y\"}", "prompts.jsonl:2: `id` must be a number or a text"),
    ] {
        write_file(&folder, "prompts.jsonl", format!("{good}{line}\n"));
        let ran = eval(&folder, &model_file(&model), &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}: {ran:?}");
        assert!(ran.stderr.contains(message), "{line}: {}", ran.stderr);
    }
    for (name, content, message) in [
        ("prompts.jsonl", b"\n\n".to_vec(), "there are no prompts"),
        ("prompts.jsonl", b"{\"text\": \"\xFF\"}\n".to_vec(), "prompts.jsonl:1: "),
    ] {
        write_file(&folder, name, content);
        let ran = eval(&folder, &model_file(&model), &[]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
    assert!(model.requests().is_empty(), "nothing is asked before all prompts are read");
}

#[test]
fn broken_recordings_are_named_by_their_line() {
    let folder = new_folder("eval-broken-recordings");
    for (line, message) in [
        ("{\"reply\": \"x\"", "r.jsonl:3: not JSON"),
        ("{}", "r.jsonl:3: a recorded reply needs `chunks`, a list of texts, or `reply`, a text"),
        ("{\"reply\": \"x\", \"chunks\": []}", "r.jsonl:3: give `chunks` or `reply`, not both"),
        ("{\"chunks\": [1]}", "r.jsonl:3: "),
        ("{\"reply\": \"x\", \"finish_reason\": \"tired\"}", "r.jsonl:3: "),
        ("{\"reply\": \"x\", \"attempt\": 0}", "r.jsonl:3: `attempt` counts from 1"),
        ("{\"id\": 1, \"reply\": \"x\"}", "r.jsonl:3: the id `1` occurs twice"),
    ] {
        write_file(&folder, "r.jsonl", format!("{}{line}\n", records(2, 2)));
        let ran = eval(&folder, PLAIN, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}: {ran:?}");
        assert!(ran.stderr.contains(message), "{line}: {}", ran.stderr);
    }
    // A dialect that is not measured is left out and told; a file of none is wrong use.
    write_file(
        &folder,
        "r.jsonl",
        format!("{}{{\"protocol\": \"aiplan\", \"reply\": \"x\"}}\n", records(2, 2)),
    );
    let ran = eval(&folder, PLAIN, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("1 reply of other dialects left out"), "{}", ran.stderr);
    let ran = eval(&folder, &PLAIN.replace("\"plain\"", "\"filament\""), &["--run", "x"]);
    assert_eq!(ran.code, Some(0), "records without a dialect take that of the contract: {ran:?}");
    write_file(&folder, "r.jsonl", "{\"reply\": \"x\"}\n");
    let ran = eval(&folder, "[[sources]]\nrecorded = \"r.jsonl\"\n", &["--run", "y"]);
    assert!(ran.stderr.contains("r.jsonl:1: the reply names no `protocol`"), "{}", ran.stderr);
}

#[test]
fn broken_evaluations_are_named_by_their_place() {
    let folder = new_folder("eval-broken-file");
    write_file(&folder, "r.jsonl", records(1, 1));
    for (file, message) in [
        ("", "there is no source of replies"),
        ("[contract", "e.toml:1:"),
        ("paralel = 3\n[[sources]]\nrecorded = \"r.jsonl\"", "e.toml:1:1: "),
        ("parallel = 0\n[[sources]]\nrecorded = \"r.jsonl\"", "`parallel` takes 1 to 256, not 0"),
        ("max_reasks = 6\n[[sources]]\nrecorded = \"r.jsonl\"", "`max_reasks` is at most 5, not 6"),
        ("[[sources]]\nname = \"x\"", "source 1: give one of `upstream`, `alias` and `recorded`"),
        ("[[sources]]\nrecorded = \"r.jsonl\"\nalias = \"x\"", "source 1: give one of"),
        ("[[sources]]\nrecorded = \"none.jsonl\"", "cannot open none.jsonl"),
        ("[[sources]]\nrecorded = \".\"", "is a folder"),
        ("[[sources]]\nupstream = \"demo\"", "upstreams and aliases need `[prompts]`"),
        ("[contract]\ndialect = \"klingon\"\n[[sources]]\nrecorded = \"r.jsonl\"", "klingon"),
        (
            "[contract]\nprofile = \"mild\"\n[[sources]]\nrecorded = \"r.jsonl\"",
            "`contract.profile` takes `strict` or `lenient`",
        ),
        (
            "[contract]\ndialect = \"plain\"\noptions = { mood = 1 }\n[[sources]]\nrecorded = \"r.jsonl\"",
            "mood",
        ),
        (
            "[contract]\ndialect = \"plain\"\ntools = \"none.json\"\n[[sources]]\nrecorded = \"r.jsonl\"",
            "none.json",
        ),
        (
            "[contract]\ndialect = \"plain\"\n[[sources]]\nrecorded = \"r.jsonl\"\n[[sources]]\nrecorded = \"r.jsonl\"",
            "two sources are called `r`",
        ),
        (
            "[[sources]]\nrecorded = \"r.jsonl\"\n[prices.x]\ninput = -1\noutput = 1",
            "`prices.x.input` takes the price",
        ),
    ] {
        let ran = eval(&folder, file, &["--run", "x"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{file}: {ran:?}");
        assert!(ran.stderr.contains(message), "{file}: {}", ran.stderr);
    }
    assert!(!folder.join("x").exists(), "no run is begun");
    for arguments in [["--parallel", "0"], ["--parallel", "257"], ["--max-drop", "1"], ["--format", "pdf"]] {
        assert_eq!(eval(&folder, PLAIN, &arguments).code, Some(2), "{arguments:?}");
    }
    assert_eq!(eval(&folder, PLAIN, &["--retry-failed"]).code, Some(2));
}

#[test]
fn models_that_fail_are_counted_apart_and_asked_again_on_demand() {
    let folder = new_folder("eval-failing-model");
    let texts = ["good", "fail", "silence", "cut", "large", "good"];
    let prompts: String =
        texts.iter().enumerate().map(|(id, text)| format!("{}\n", json!({"id": id, "text": text}))).collect();
    write_file(&folder, "prompts.jsonl", prompts);
    let is_repaired = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = is_repaired.clone();
    let model = ScriptedModel::start(move |body, _| match last_text(body) {
        "large" => Answer::Reply("word ".repeat(2 << 20)),
        _ if flag.load(std::sync::atomic::Ordering::SeqCst) => Answer::Reply("It is 4.".to_owned()),
        "fail" => Answer::Status(500, "{\"error\": {\"message\": \"out of order\"}}"),
        "silence" => Answer::Silence,
        "cut" => Answer::Cut("It is".to_owned()),
        _ => Answer::Reply("It is 4.".to_owned()),
    });
    // Long enough for the large reply on a slow machine.
    let file = model_file(&model).replace("= 300", "= 5000");
    let ran = eval(&folder, &file, &["--format", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("3 of 6 prompts got no reply; the first, `1`: "), "{}", ran.stderr);
    let row = serde_json::from_str::<Value>(&ran.stdout).expect("a report")["rows"][0].clone();
    assert_eq!(
        (&row["failed"], &row["replies"], &row["usable"]["count"]),
        (&json!(3), &json!(3), &json!(3)),
        "{row}"
    );
    let failures = row["failures"].as_array().expect("failures");
    let count: u64 = failures.iter().map(|failure| failure["prompts"].as_u64().expect("a count")).sum();
    assert!(count == 3 && failures.len() >= 2, "{failures:?}");
    // The large reply is kept as a whole.
    let replies = std::fs::read_to_string(folder.join("e.run/replies.jsonl")).expect("replies");
    assert!(replies.len() > 10 << 20, "{}", replies.len());
    let junit = eval(&folder, &file, &["--resume", "--format", "junit"]);
    assert_eq!(junit.code, Some(1));
    assert!(junit.stdout.contains("tests=\"6\" failures=\"0\" errors=\"3\""), "{}", &junit.stdout[..300]);
    // Failures are results too, until they are to be asked again.
    let before = model.requests().len();
    assert_eq!(eval(&folder, &file, &["--resume"]).code, Some(1));
    assert_eq!(model.requests().len(), before);
    is_repaired.store(true, std::sync::atomic::Ordering::SeqCst);
    let row = report(&folder, &file, &["--resume", "--retry-failed"])["rows"][0].clone();
    assert_eq!((&row["failed"], &row["usable"]["count"]), (&json!(0), &json!(6)), "{row}");
    assert_eq!(model.requests().len(), before + 3);
    assert_eq!(report(&folder, &file, &["--resume"])["rows"][0], row);
}

#[test]
fn a_recorded_reply_of_ten_megabytes_is_measured() {
    let folder = new_folder("eval-large");
    let reply = "<".repeat(10 << 20);
    write_file(&folder, "r.jsonl", format!("{}\n", json!({"reply": reply, "finish_reason": "stop"})));
    let row = report(&folder, &PLAIN.replace("plain", "thinkingml"), &[])["rows"][0].clone();
    assert_eq!((&row["replies"], &row["valid"]["count"]), (&json!(1), &json!(0)), "{row}");
}

#[test]
fn two_processes_do_not_write_one_run() {
    let folder = new_folder("eval-lock");
    write_file(&folder, "prompts.jsonl", "{\"text\": \"x\"}\n");
    let model = ScriptedModel::start(|_, _| Answer::Silence);
    let file = model_file(&model).replace("= 300", "= 60000");
    write_file(&folder, "e.toml", &file);
    let mut first =
        tambour_command(&["eval", "e.toml"]).current_dir(&folder).spawn().expect("the command starts");
    model.wait_requests(1);
    let ran = eval(&folder, &file, &["--resume"]);
    first.kill().expect("it can be killed");
    first.wait().expect("it ends");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("another process works on this run"), "{}", ran.stderr);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told_and_the_run_goes_on_when_there_is_room() {
    let folder = new_folder("eval-disk");
    write_file(&folder, "r.jsonl", records(700, 1000));
    write_file(&folder, "e.toml", PLAIN);
    let whole = report(&folder, PLAIN, &[]);
    std::fs::create_dir(folder.join("disk")).expect("a folder can be made");
    let script = "mount -t tmpfs -o size=64k none disk && { \"$0\" eval e.toml --run disk/run; echo \"code $?\"; \
                  mount -o remount,size=8m disk && \"$0\" eval e.toml --run disk/run --resume --format json; }";
    let ran = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, env!("CARGO_BIN_EXE_tambour")])
        .current_dir(&folder)
        .output()
        .expect("`unshare` of util-linux");
    let ran = RunOutput::from(ran);
    assert_eq!(ran.code, Some(0), "(it needs user namespaces) {ran:?}");
    let (first, second) = ran.stdout.split_once('\n').expect("a line");
    assert_eq!(first, "code 1", "{ran:?}");
    assert!(ran.stderr.contains("cannot write disk/run/replies.jsonl: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("`--resume` continues"), "{}", ran.stderr);
    assert_eq!(serde_json::from_str::<Value>(second).expect("a report"), whole);
}

#[test]
fn a_folder_that_cannot_be_written_is_wrong_use() {
    let folder = new_folder("eval-no-folder");
    write_file(&folder, "r.jsonl", records(1, 1));
    write_file(&folder, "file", "");
    for run in ["file", "file/run"] {
        let ran = eval(&folder, PLAIN, &["--run", run]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(run), "{}", ran.stderr);
    }
    assert!(!Path::new("e.run").exists());
}

#[test]
fn a_recording_keeps_failures_and_the_prices_of_each_source() {
    let folder = new_folder("eval-record-failures");
    let failure = json!({
        "id": "lost", "chunks": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0},
        "error": {"code": "upstream_error", "message": "down\u{1b}]0;x\u{7}\n::error::y", "retryable": true},
    });
    let reply = json!({
        "id": "kept", "reply": "It is 4.", "finish_reason": "stop",
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    });
    write_file(&folder, "a.jsonl", format!("{reply}\n{failure}\n"));
    write_file(&folder, "b.jsonl", format!("{failure}\n"));
    let source = |name: &str, price: u32| {
        format!(
            "[[sources]]\nname = \"{name}\"\nrecorded = \"{name}.jsonl\"\nprices = {{ \"*\" = {{ input = {price}, output = {price} }} }}\n"
        )
    };
    let file = format!("[contract]\ndialect = \"plain\"\n{}{}", source("a", 3), source("b", 5));
    let ran = eval(&folder, &file, &["--format", "json", "--record", "kept"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // Control characters of a failure's message do not reach the terminal.
    assert!(ran.stderr.contains("down\u{241b}]0;x") && !ran.stderr.contains("\n::error::"), "{ran:?}");
    // No server could start with a recording that has no reply.
    let message = "the source `b` has no reply, so tambour.toml has no upstream that replays it";
    assert!(ran.stderr.contains(message) && !ran.stderr.contains("source `a`"), "{}", ran.stderr);
    let configuration = std::fs::read_to_string(folder.join("kept/tambour.toml")).expect("a configuration");
    let configuration: toml::Table = toml::from_str(&configuration).expect("TOML");
    let upstreams = configuration["upstreams"].as_table().expect("a table");
    assert_eq!(upstreams.keys().collect::<Vec<_>>(), ["a"]);
    for upstream in upstreams.values() {
        let file = folder.join("kept").join(upstream["url"].as_str().expect("a file"));
        RecordedReplies::load_file(&file).expect("recordings");
    }
    let measured: Value = serde_json::from_str(&ran.stdout).expect("a report");
    assert!(measured["rows"][1]["cost"].as_f64().is_some_and(|cost| cost > 0.0), "{measured}");
    write_file(&folder, "kept/e.toml", std::fs::read(folder.join("kept/eval.toml")).expect("an evaluation"));
    let again = run_in(&folder.join("kept"), &["eval", "e.toml", "--format", "json"], "");
    let again: Value = serde_json::from_str(&again.stdout).expect("a report");
    assert_eq!(again["rows"], measured["rows"]);
}
