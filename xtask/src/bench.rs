//! `cargo xtask bench`: runs a benchmark, `lib` if none is named. With `instructions` it counts
//! instructions, if valgrind is installed.

use std::process::Command;

use anyhow::Context;

/// Benchmarks: name in this command, package, and name of the benchmark in the package.
const BENCHMARKS: &[(&str, &str, &str)] = &[
    ("lib", "tambour", "stream"),
    ("stream", "tambour", "stream"),
    ("json", "tambour", "json"),
    ("state", "tambour", "state"),
    ("grammar", "tambour", "grammar"),
    ("prompt", "tambour-prompt", "prompt"),
];

/// Sizes of two inputs in bytes. The difference of their instruction counts does not include start-up.
const COUNTED_SIZES: [usize; 2] = [64 << 10, 256 << 10];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let (name, options) = match arguments.split_first() {
        Some((name, options)) if !name.starts_with("--") => (name.as_str(), options),
        _ => ("lib", arguments),
    };
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    if name == "instructions" && options.is_empty() {
        return count_instructions();
    }
    if name == "server" {
        return bench_server(&options);
    }
    let benchmark = BENCHMARKS.iter().find(|(known_name, ..)| *known_name == name);
    let names: Vec<&str> = BENCHMARKS.iter().map(|(name, ..)| *name).collect();
    let (_, package, bench) =
        benchmark.with_context(|| format!("benches: {}, instructions, server", names.join(", ")))?;
    let mut command = cargo_command(&["bench", "--quiet", "-p", package, "--bench", bench, "--"]);
    let status = command.args(options).status()?;
    anyhow::ensure!(status.success(), "the benchmark failed");
    Ok(())
}

/// Compares release builds of the server and of the bare mapper, a minimal proxy that only converts events.
fn bench_server(options: &[&str]) -> anyhow::Result<()> {
    let status = cargo_command(&["build", "--quiet", "--release", "-p", "tambour-cli", "-p", "bench-server"])
        .status()?;
    anyhow::ensure!(status.success(), "the server or its benchmark did not build");
    let programs = crate::repository_root().join("target/release");
    let mut command = Command::new(programs.join("bench-server"));
    let status = command.arg("run").arg(programs.join("tambour")).args(options).status()?;
    anyhow::ensure!(status.success(), "the benchmark failed");
    Ok(())
}

/// Builds a Cargo command that runs in the repository.
fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(crate::repository_root());
    command
}

/// Counts instructions per byte for each case of the benchmark `stream` under callgrind, and prints them.
fn count_instructions() -> anyhow::Result<()> {
    if !crate::work::has_valgrind() {
        println!("valgrind is not installed: there are no instruction counts");
        return Ok(());
    }
    let program = build_benchmark()?;
    let output = Command::new(&program).arg("--cases").output()?;
    println!(
        "{:<21} {:>9} {:>9} {:>9} {:>9}",
        "instructions per byte", "4 bytes", "tokens", "64 bytes", "whole"
    );
    for case in String::from_utf8(output.stdout)?.lines() {
        print!("{case:<21}");
        for chunk in ["4", "tokens", "64", "whole"] {
            let counts = COUNTED_SIZES.map(|size| count_case(&program, case, size, chunk));
            let [small_count, large_count] = counts.map(|count| count.map(|count| count as f64));
            print!(" {:>9.1}", (large_count? - small_count?) / (COUNTED_SIZES[1] - COUNTED_SIZES[0]) as f64);
        }
        println!();
    }
    Ok(())
}

/// Builds the benchmark `stream` and returns the path of its program.
fn build_benchmark() -> anyhow::Result<String> {
    let arguments = ["bench", "-p", "tambour", "--bench", "stream", "--no-run", "--message-format=json"];
    let output = cargo_command(&arguments).stderr(std::process::Stdio::inherit()).output()?;
    let messages = String::from_utf8(output.stdout)?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut artifacts = messages.filter(|message| message["target"]["name"] == "stream");
    let path = artifacts.find_map(|message| message["executable"].as_str().map(str::to_owned));
    path.context("the benchmark did not build")
}

/// Counts the instructions of one case with an input of `size` bytes. `chunk` is the length of its chunks in
/// bytes, `tokens` or `whole`.
fn count_case(program: &str, case: &str, size: usize, chunk: &str) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program, "--count", case])
        .args([size.to_string().as_str(), chunk])
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find_map(|line| line.split_once("Collected :")).context("no count")?.1;
    Ok(count.trim().parse()?)
}
