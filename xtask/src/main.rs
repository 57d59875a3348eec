//! Developer commands: `cargo xtask COMMAND`.

mod bench;
mod fixtures;
mod peers;
mod serve;
mod spec;
mod test;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a command does with its arguments; the text is the outcome when it fails.
type Run = fn(&[String]) -> anyhow::Result<()>;

/// The commands: name, arguments, purpose.
const COMMANDS: &[(&str, &str, &str, Run)] = &[
    ("serve", "[FLAGS]", "the server, with recorded replies of real models as upstream", serve::run),
    ("test", "", "everything that must hold before a change is merged", test::run),
    ("spec", "[--all | --prove]", "rows of the specification without a test, or without a proof", spec::run),
    (
        "bench",
        "[lib | json | instructions | server]",
        "speed, instructions under valgrind, or the server's costs",
        bench::run,
    ),
    ("work", "[--all]", "instructions on hostile input under valgrind, which must be linear", work::run),
    ("fixtures", "", "imports the corpora into fixtures/, where their folder is at hand", fixtures::run),
    ("peers", "[--verbose]", "other projects' cases of broken JSON, where they are at hand", peers::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return usage();
    };
    let Some((.., run)) = COMMANDS.iter().find(|(command, ..)| command == name) else {
        eprintln!("there is no command `{name}`");
        return usage();
    };
    match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("cargo xtask COMMAND\n");
    for (name, arguments, purpose, _) in COMMANDS {
        eprintln!("  {:<44} {purpose}", format!("{name} {arguments}"));
    }
    ExitCode::from(2)
}

/// The root of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}
