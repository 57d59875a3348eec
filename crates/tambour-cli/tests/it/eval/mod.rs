//! `tambour eval`.

mod compare;
mod formats;
mod hostile;
mod model;
mod models;
mod runs;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{RunOutput, run_in, write_file};

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The recorded replies of real models in one dialect.
fn recorded_file(dialect: &str) -> String {
    root().join(format!("fixtures/recorded/{dialect}.jsonl")).display().to_string()
}

/// Writes `e.toml`, and evaluates it in `folder`.
fn eval(folder: &Path, file: &str, arguments: &[&str]) -> RunOutput {
    write_file(folder, "e.toml", file);
    run_in(folder, &[&["eval", "e.toml"], arguments].concat(), "")
}

/// The report of a run that succeeds.
fn report(folder: &Path, file: &str, arguments: &[&str]) -> Value {
    let ran = eval(folder, file, &[arguments, &["--format", "json"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).expect("a report is JSON")
}

/// Records of so many replies, of which the first `valid` are good plain text and the others empty.
fn records(valid: usize, total: usize) -> String {
    (0..total)
        .map(|number| {
            let reply = if number < valid { "It is 4." } else { "" };
            format!("{}\n", json!({"id": number, "reply": reply, "finish_reason": "stop"}))
        })
        .collect()
}

/// Evaluation of `r.jsonl` as plain text.
const PLAIN: &str = "[contract]\ndialect = \"plain\"\n[[sources]]\nname = \"m\"\nrecorded = \"r.jsonl\"\n";
