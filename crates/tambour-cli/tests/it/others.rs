//! `tambour repair`, `json`, `rules` and `contract`.

use std::process::Stdio;

use tambour::Options;
use tambour::options::{Language, Texts};

use crate::{VALID_REPLY, broken_reply, new_folder, run, tambour_command, write_file};

#[test]
fn repaired_replies_pass_the_strict_check() {
    let broken = broken_reply();
    let replies = [
        broken.as_str(),
        "Sure!\n```xml\n<thinking>a<phase>b</thinking> so <final>Vec<String>",
        "<think>draft</think><thinking><phase id='7'><Title>t</Title>a &lt;b&gt;</phase></thinking><final>x</final>",
        "only text",
    ];
    for reply in replies {
        let ran = run(&["repair", "--from", "thinkingml"], reply);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.lines().all(|line| line.starts_with("standard input:")), "{}", ran.stderr);
        assert!(!ran.stderr.is_empty());
        let check_run = run(&["check", "--contract", "thinkingml", "-"], &ran.stdout);
        assert_eq!(check_run.code, Some(0), "{}\n{}", ran.stdout, check_run.stdout);
    }
}

#[test]
fn a_valid_reply_keeps_its_events() {
    let ran = run(&["repair"], VALID_REPLY);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let events = |reply: &str| run(&["decode", "--extensions"], reply).joined_events();
    assert_eq!(events(&ran.stdout), events(VALID_REPLY)); // X-003
    assert_eq!(run(&["repair"], &ran.stdout).stdout, ran.stdout);
}

#[test]
fn a_reply_without_an_answer_gets_the_fallback() {
    let ran = run(&["repair", "--from", "thinkingml"], "<<ParsingError>>");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("T-025 parsing_error_marker"), "{}", ran.stderr);
    assert_eq!(run(&["check", "--contract", "thinkingml", "-"], &ran.stdout).code, Some(0));
    assert_eq!(run(&["repair", "no/such/file"], "").code, Some(2));
    let ran = run(&["repair", "--option", "limits.input=2"], "abc");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

#[test]
fn json_is_found_and_mended() {
    let ran = run(&["json"], "Here you go:\n```json\n{'a': [1, 2,], \"b\": None}\n```\nBye");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"a\":[1,2],\"b\":null}\n"));
    assert!(ran.stderr.contains("json_trailing_comma"), "{}", ran.stderr);
    let ran = run(&["json"], "nothing of the kind here, sorry.");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(!ran.stderr.is_empty());
    let ran = run(&["json"], b"{\"a\": \"\xFF\"}");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"a\":\"\u{FFFD}\"}\n"));
}

#[test]
fn json_keeps_the_digits_of_numbers() {
    // R-33
    let numbers = "{\"a\":123456789012345678901234567890,\"b\":0.12345678901234567890,\"c\":1e400}";
    for arguments in [&["json"][..], &["json", "--strict"]] {
        let ran = run(arguments, numbers);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (Some(0), &*format!("{numbers}\n"), "")
        );
    }
}

#[test]
fn strict_json_mends_nothing() {
    assert_eq!(run(&["json", "--strict"], " {\"b\":1,\"a\":2} \n").stdout, "{\"b\":1,\"a\":2}\n");
    for text in ["{\"a\":1,}", "x {}", "", "{} {}"] {
        let ran = run(&["json", "--strict"], text);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{text}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    assert_eq!(run(&["json", "--strict"], b"\"\xFF\"").code, Some(1));
    assert_eq!(run(&["json", "no/such/file"], "").code, Some(2));
}

#[test]
fn rules_are_listed_and_explained() {
    let ran = run(&["rules"], "");
    assert_eq!(ran.code, Some(0));
    for rule in tambour_prompt::catalogue::all() {
        let is_rule_line = |line: &str| {
            line.split_whitespace().next() == Some(rule.rule.code) && line.contains(rule.rule.title)
        };
        assert!(ran.stdout.lines().any(is_rule_line), "{}", rule.rule.code);
    }
    let ran = run(&["rules", "t-032"], "");
    for part in ["phase_id_not_increasing", "T-032", "must", "thinkingml", "Broken:", "Correct:"] {
        assert!(ran.stdout.contains(part), "no {part}: {}", ran.stdout);
    }
    let ran = run(&["rules", "order_invalid"], "");
    assert!(ran.stdout.matches("Broken:").count() > 1, "the same code in several dialects");
}

#[test]
fn unknown_rules_get_close_names() {
    let ran = run(&["rules", "final_mising"], "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("final_missing"), "{}", ran.stderr);
    assert_eq!(run(&["rules", "zzzz"], "").code, Some(2));
}

#[test]
fn contracts_are_shown_to_models() {
    let help = run(&["contract", "show", "--help"], "").stdout;
    for entry in tambour::dialect::DIALECTS {
        let is_offered = help.contains(&format!("- {}:", entry.name));
        let is_constrainable = entry.schema.is_some() || entry.grammar.is_some();
        assert_eq!(is_offered, entry.prompt.is_some() || is_constrainable, "{}", entry.name);
        for (lang, language) in [("zh", Language::Zh), ("en", Language::En)] {
            let ran = run(&["contract", "show", entry.name, "--lang", lang], "");
            match entry.prompt {
                Some(prompt) => assert_eq!(ran.stdout, prompt(&in_language(language)).text()), // T-066
                None => assert_eq!(ran.code, Some(2)),
            }
        }
        let ran = run(&["contract", "show", entry.name, "--format", "json-schema"], "");
        match entry.schema {
            Some(schema) => {
                let mut contract_json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
                // The notes stand where validators ignore them.
                let comment = contract_json.as_object_mut().and_then(|it| it.shift_remove("$comment"));
                let comment = comment.expect("a comment");
                let comment = comment.as_str().expect("a text");
                assert!(comment.contains("the checker still reads each reply"), "{comment}");
                assert!(entry.grammar.is_none() || comment.contains("not stated, rule "), "{comment}");
                assert_eq!(contract_json, schema(&Options::default()));
            }
            None => assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), "")),
        }
    }
    let refusal = run(&["contract", "show", "plain"], "");
    assert_eq!((refusal.code, refusal.stderr.contains("thinkingml")), (Some(2), true), "{}", refusal.stderr);
    assert_eq!(run(&["contract", "show", "nonsense"], "").code, Some(2));
}

#[test]
fn contracts_are_shown_as_grammars() {
    let folder = new_folder("grammars");
    let schemas = r#"{"roll": {"type": "object", "properties": {"sides": {"type": "integer"}}}}"#;
    let tools = write_file(&folder, "tools.json", schemas);
    for entry in tambour::dialect::DIALECTS.iter().filter(|entry| entry.grammar.is_some()) {
        for (format, beginning) in [("lark", "%llguidance {}\n//"), ("gbnf", "# "), ("structural-tag", "{\n")]
        {
            let ran = run(&["contract", "show", entry.name, "--format", format, "--tools", &tools], "");
            assert_eq!(ran.code, Some(0), "{} as {format}: {}", entry.name, ran.stderr);
            assert!(ran.stdout.starts_with(beginning), "{} as {format}: {:.80}", entry.name, ran.stdout);
            let has_tools = matches!(entry.name, "aiplan" | "filament" | "toolcall");
            assert_eq!(ran.stdout.contains("sides"), has_tools, "{} as {format}", entry.name);
        }
    }
    let ran = run(&["contract", "show", "toolcall", "--format", "lark"], "");
    assert_eq!((ran.code, ran.stderr.contains("set the option `tools`")), (Some(2), true), "{}", ran.stderr);
}

#[test]
fn contracts_are_those_of_the_options() {
    let shown_contract = |arguments: &[&str]| {
        let ran = run(&[&["contract", "show"], arguments].concat(), "");
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    };
    let english =
        shown_contract(&["ai_say", "--option", "text_language=en", "--option", "ai_say.role=coach"]);
    assert!(english.contains("\"coach\": \"Right, worms"), "{english}");
    assert_eq!(english, shown_contract(&["ai_say", "--lang", "en", "--option", "ai_say.role=coach"]));
    let schema = shown_contract(&["ai_say", "--format", "json-schema", "--option", "ai_say.role=coach"]);
    assert!(schema.contains("\"coach\""), "{schema}"); // S-052
    let plan = shown_contract(&["aiplan", "--option", "aiplan.variant=v2"]);
    assert!(plan.contains("PLAN_EXECUTION") && !plan.contains("GENERAL_CHAT"), "{plan}"); // R-30
    let optional =
        shown_contract(&["thinkingml", "--lang", "en", "--option", "thinkingml.serp_block=optional"]);
    assert!(optional.contains("(they may be left out)"), "{optional}"); // T-040
    for wrong in [&["--option", "nonsense=1"][..], &["--lang", "en", "--option", "text_language=zh"]] {
        let ran = run(&[&["contract", "show", "ai_say"], wrong].concat(), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{wrong:?}");
    }
}

#[test]
fn a_server_that_is_configured_wrongly_is_wrong_use() {
    for wrong in [
        ["--database", "foo:bar"],
        ["--upstream", "replay=/nothere.jsonl"],
        ["--upstream", "openai=127.0.0.1:9/v1"],
        ["--upstream", "nonsense"],
    ] {
        let ran = run(&[&["serve", "--listen", "127.0.0.1:0"], &wrong[..]].concat(), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{wrong:?}: {}", ran.stderr);
        // The message names the flag.
        assert!(ran.stderr.contains(&format!("{}: ", wrong[0])), "{wrong:?}: {}", ran.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_takes_as_many_files_as_it_may() {
    use std::io::{BufRead, BufReader};
    let folder = std::env::temp_dir().join(format!("tambour-cli-files-{}", std::process::id()));
    let command = format!(
        "ulimit -S -n 200; ulimit -H -n 700; exec {} serve --listen 127.0.0.1:0 --data {}",
        env!("CARGO_BIN_EXE_tambour"),
        folder.display()
    );
    let mut child = std::process::Command::new("sh")
        .args(["-c", &command])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("standard output is a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("limits");
    child.kill().expect("it runs");
    let _ = child.wait();
    let _ = std::fs::remove_dir_all(&folder);
    assert!(line.starts_with("listening on http://"), "{line}");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let numbers: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers, ["700", "700"], "{files}");
}

#[test]
fn a_closed_standard_output_ends_every_command_quietly() {
    for arguments in [&["rules"][..], &["completions", "bash"], &["contract", "show", "jsonseq"]] {
        let mut child = tambour_command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // The reading end is closed before or during the writing: either way the command ends without complaint.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{arguments:?}");
    }
}

fn in_language(language: Language) -> Options {
    let mut options = Options::default();
    options.texts = Texts::from_language(language);
    options
}

#[test]
fn an_answer_is_repaired_with_all_its_fields() {
    let broken = "Here:\n```json\n{'understanding_level': '85%', \"has_questions\": \"no\", \"reasoning\": \"r\", \
        \"response\": \"Hello.\", \"should_exit\": True,}\n```";
    let whole = broken.replace("\"reasoning\": \"r\", ", "").replace(
        "{'understanding_level': '85%', \"has_questions\": \"no\",",
        "{'assessment': {'understanding_level': '85%', \"has_questions\": \"no\", \"reasoning\": \"r\"},",
    );
    // Only a reply with all of the keys is one under `auto` (R-91).
    let whole = whole.replace("True,}", "True, 'exit_reason': ''}");
    for (from, broken) in [("ai_say", broken), ("auto", &whole)] {
        let ran = run(&["repair", "--from", from], broken);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let written: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let expected = serde_json::json!({
            "assessment": {"understanding_level": 85, "has_questions": false, "expressed_understanding": false,
                "reasoning": "r"},
            "response": {"咨询师": "Hello."}, "should_exit": true, "exit_reason": "",
        });
        assert_eq!(written, expected); // S-053
        let check_run = run(&["check", "--contract", "ai_say", "-"], &ran.stdout);
        assert_eq!(check_run.code, Some(0), "{check_run:?}");
    }
}

#[test]
fn instructions_for_answers_are_shown() {
    for lang in ["zh", "en"] {
        let ran = run(&["contract", "show", "ai_say", "--lang", lang], "");
        assert!(ran.stdout.contains("\"understanding_level\": 55"), "{}", ran.stdout);
    }
    let ran = run(&["contract", "show", "ai_say", "--format", "json-schema"], "");
    assert!(ran.stdout.contains("\"should_exit\""));
}

#[test]
fn a_cut_reply_is_repaired_as_cut() {
    // P-027, X-014: its calls do not act in the output
    let plan = r#"{"thought":"t","response_mode":"TOOL_EXECUTION","direct_response":null,"tool_calls":[{"name":"lintSRSDocument","args":{"userInput":"a"}}]}"#;
    let whole_run = run(&["repair", "--from", "aiplan"], plan);
    assert_eq!(whole_run.code, Some(0));
    assert!(whole_run.stdout.contains("TOOL_EXECUTION"), "{}", whole_run.stdout);
    let cut_run = run(&["repair", "--from", "aiplan", "--finish", "length"], plan);
    assert_eq!(cut_run.code, Some(1));
    assert!(
        cut_run.stdout.contains("GENERAL_CHAT") && !cut_run.stdout.contains("lintSRSDocument"),
        "{}",
        cut_run.stdout
    );
    assert_eq!(run(&["repair", "--from", "aiplan"], &cut_run.stdout).stdout, cut_run.stdout);
}
