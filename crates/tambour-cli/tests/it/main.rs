//! Runs the built command on files and pipes.

mod check;
mod check_ci;
mod check_records;
mod decode;
mod dialogues;
mod eval;
mod formats;
mod help;
mod import;
mod macros;
#[cfg(feature = "mcp")]
mod mcp;
mod others;
mod sanitize;
#[cfg(unix)]
mod serve;
mod state;
mod structure;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

/// A ThinkingML reply without a fault.
const VALID_REPLY: &str = "<serp>The user greets.</serp>\n<thinking>\n<phase id=\"1\">\n<title>Goal</title>\nBe kind &amp; short.\n\
    </phase>\n<phase id=\"2\">\n<title>Plan</title>\n</phase>\n</thinking>\n<final>\n# Hi\n\n- 你好 😀\n\
    <!-- <serp_queries>\n[\"ways to greet\"]\n</serp_queries> -->\n</final>\n";

/// The reply with a fault: its first phase has number 2.
fn broken_reply() -> String {
    VALID_REPLY.replace("id=\"2\"", "id=\"3\"")
}

/// The command with these arguments; standard input is empty, and no variable sets colours.
fn tambour_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tambour"));
    command.args(arguments).stdin(Stdio::null()).env_remove("NO_COLOR");
    command
}

/// Runs the command with this standard input.
fn run(arguments: &[&str], input: impl AsRef<[u8]>) -> RunOutput {
    run_in(Path::new("."), arguments, input)
}

/// Runs the command in a folder.
fn run_in(folder: &Path, arguments: &[&str], input: impl AsRef<[u8]>) -> RunOutput {
    let mut command = tambour_command(arguments);
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let input = input.as_ref().to_vec();
    // The command may end before it has read everything.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("writing does not panic");
    RunOutput::from(output)
}

/// Result of a run.
#[derive(Debug)]
struct RunOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> RunOutput {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        RunOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl RunOutput {
    /// The lines of standard output, each as JSON.
    fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    /// Names and data of the events, adjacent deltas joined.
    fn joined_events(&self) -> Vec<(String, serde_json::Value)> {
        let mut out: Vec<(String, serde_json::Value)> = Vec::new();
        for mut line in self.json_lines() {
            let (name, data) = (line["event"].as_str().expect("a name").to_owned(), line["data"].take());
            match out.last_mut() {
                Some((before, joined_events))
                    if *before == name && name.ends_with("_delta") && joined_events["id"] == data["id"] =>
                {
                    let text = joined_events["text"].as_str().expect("text").to_owned();
                    joined_events["text"] = (text + data["text"].as_str().expect("text")).into();
                }
                _ => out.push((name, data)),
            }
        }
        out
    }
}

/// An empty folder for one test.
fn new_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Writes a file in `folder`, and creates its parent folders.
fn write_file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
    std::fs::write(&path, content).expect("a file can be written");
    path.display().to_string()
}
