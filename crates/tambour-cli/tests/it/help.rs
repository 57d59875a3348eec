//! `--help`, `--version` and their examples.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tambour::exit::ExitRound;
use tambour::options::SettingValues;
use tambour_server::upstream::UpstreamKind;

use crate::{RunOutput, run};

/// Every command, as a list of words.
fn command_words() -> Vec<Vec<String>> {
    let mut command_list = vec![Vec::new()];
    let mut index = 0;
    while index < command_list.len() {
        let path: Vec<String> = command_list[index].clone();
        let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = run(&words, "").stdout;
        let help_lines = help.split("Commands:\n").nth(1).unwrap_or_default();
        for line in help_lines.lines().take_while(|line| line.starts_with("  ")) {
            let name = line.split_whitespace().next().expect("a line of a command has its name");
            if name != "help" && line.starts_with("  ") && !line.starts_with("   ") {
                command_list.push(path.iter().cloned().chain([name.to_owned()]).collect());
            }
        }
        index += 1;
    }
    command_list
}

/// Runs a shell line with the command in its path.
fn run_shell(line: &str) -> RunOutput {
    let bin = Path::new(env!("CARGO_BIN_EXE_tambour")).parent().expect("it is in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", format!("{}:{path}", bin.display())).stdin(Stdio::null());
    RunOutput::from(command.output().expect("there is a shell"))
}

#[test]
fn every_command_has_an_example_that_runs() {
    let commands = command_words();
    assert!(commands.len() >= 9, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let ran = run(&words, "");
        assert_eq!(ran.code, Some(0));
        let (_, examples) =
            ran.stdout.split_once("Example").unwrap_or_else(|| panic!("{words:?} has no example"));
        let lines = examples.lines().skip(1).take_while(|line| line.starts_with("  "));
        let examples: Vec<&str> = lines.map(str::trim).collect();
        assert!(!examples.is_empty(), "{words:?}");
        for example in examples {
            if example.contains("postgres://") {
                // There is no such database; the arguments are right.
                let ran = run_shell(&format!("{example} --help"));
                assert_eq!(ran.code, Some(0), "{example}: {ran:?}");
                continue;
            }
            let ran = run_shell(example);
            assert_eq!(ran.code, Some(0), "{example}: {ran:?}");
            assert!(!ran.stdout.is_empty(), "{example}");
        }
        assert!(!ran.stdout.contains('\u{1b}'), "no colours in a pipe");
    }
}

#[test]
fn arguments_list_what_the_tables_hold() {
    for command in ["decode", "check", "repair"] {
        let help = run(&[command, "--help"], "").stdout;
        for entry in tambour::dialect::DIALECTS {
            assert!(help.contains(&format!("- {}:", entry.name)), "{command} lists {}", entry.name);
        }
        assert!(help.contains("thinkingml.serp_block"));
    }
    assert!(run(&["check", "--help"], "").stdout.contains("- events:"));
}

#[test]
fn versions_agree() {
    let ran = run(&["-V"], "");
    let version = format!("tambour {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((ran.stdout, ran.code), (version.clone(), Some(0)));
    let ran = run(&["--version"], "");
    assert_eq!(ran.code, Some(0));
    let build = ran.stdout.strip_prefix(&version).expect("the version comes first");
    let names: Vec<&str> = build.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(names, ["commit", "date", "target", "features"], "{build}");
    assert!(build.contains(std::env::consts::ARCH), "{build}");
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(&["completions", shell], "");
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("decode") && ran.stdout.contains("thinkingml"), "{shell}");
    }
    assert_eq!(run(&["completions", "nonsense"], "").code, Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let ran = run(&["man", "contract", "show"], "");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("gbnf"), "{}", ran.stdout);
    assert_eq!(run(&["man", "nonsense"], "").code, Some(2));
    let folder = std::env::temp_dir().join(format!("tambour-man-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let ran = run(&["man", "--folder", &folder.display().to_string()], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in command_words() {
        let page = folder.join(format!("{}.1", [vec!["tambour".to_owned()], words].concat().join("-")));
        let text =
            std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        assert!(text.contains(".SH SYNOPSIS"), "{}", page.display());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_command_in_the_documents_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = document("docs/cli.md");
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() > 10);
    for command in commands {
        let ran = run_shell(&format!("cd '{}' && {command}", root.display()));
        // Some of the replies are broken, but every command runs.
        assert!(matches!(ran.code, Some(0 | 1)), "{command}: {ran:?}");
        assert!(!ran.stdout.is_empty(), "{command}: {ran:?}");
    }
}

/// Text of a document of the repository.
fn document(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect("the document is there")
}

#[test]
fn documents_name_every_kind_of_upstream() {
    let forms: Vec<String> = UpstreamKind::all().map(UpstreamKind::argument_form).collect();
    assert!(document("docs/cli.md").contains(&format!("`--upstream {}`", forms.join("|"))));
    let names: Vec<String> = UpstreamKind::all().map(|kind| format!("`{}`", kind.name())).collect();
    let row = format!("| `upstreams.NAME.kind` | | `demo` | {};", names.join(", "));
    assert!(document("docs/http-api.md").contains(&row), "{row}");
}

#[test]
fn texts_have_the_rounds_of_the_library() {
    let read = |round: serde_json::Value| ExitRound::from_json(&round);
    let default = read(json!({"round": 1})).expect("a round").max_rounds;
    let most = (1_u32..).take_while(|rounds| read(json!({"round": 1, "max_rounds": rounds})).is_ok()).last();
    let most = most.expect("one is allowed");
    for (rounds, is_usage_error) in [(most, false), (most + 1, true)] {
        let ran =
            run(&["decode", "--from", "ai_say", "--round", "1", "--max-rounds", &rounds.to_string()], "x");
        assert_eq!(ran.code == Some(2), is_usage_error, "{rounds}: {ran:?}");
    }
    let (most, default) = (most.to_string(), format!("default: {default}"));
    let help = run(&["decode", "-h"], "").stdout;
    let help = help.lines().find(|line| line.contains("--max-rounds")).expect("an option").to_owned();
    let page = document("docs/cli.md").replace("default ", "default: ");
    let row = page.lines().find(|line| line.starts_with("| `--max-rounds N`")).expect("a row");
    for text in [help.as_str(), row] {
        assert!(text.contains(&most) && text.contains(&default), "{most}, {default}: {text}");
    }
}

#[test]
fn the_document_names_every_option() {
    let text = document("docs/cli.md");
    let ran = run_shell(&format!("'{}' decode --help", env!("CARGO_BIN_EXE_tambour")));
    for (_, setting) in tambour::settings::all_settings().filter(|(_, setting)| setting.name != "profile") {
        let name = setting.name;
        let row = text.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` | ")));
        let values = row.unwrap_or_else(|| panic!("{name} is not in docs/cli.md"));
        let first = match setting.accepts {
            SettingValues::Number(unit, _) if setting.default.is_empty() => format!("{unit} |"),
            SettingValues::Number(unit, _) => format!("{unit}, {} |", setting.default),
            SettingValues::Choice(..) | SettingValues::Flag(_) => format!("`{}`", setting.default),
            SettingValues::Text(_) | SettingValues::Json(_) => String::new(),
        };
        assert!(values.starts_with(&first), "{name}: the default comes first, {first}: {values}");
        assert!(ran.stdout.contains(name), "{name} is not in the help");
    }
}
