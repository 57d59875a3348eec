//! Steps of `cargo xtask test`: run with their output shown, their tests counted and their time measured.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Results of all steps so far. Steps of another thread are a branch, which is joined when the thread ends.
pub(crate) struct TestSteps {
    /// Start of the first step.
    started: Instant,
    /// Number of passed tests, and of passed steps without tests.
    passed: u64,
    /// Number of failed tests and steps.
    failed: u64,
    /// Name and time of each step, and whether it passed.
    times: Vec<(String, Duration, bool)>,
    /// Output so far, if these are the steps of a branch: it is shown when the branch is joined. `None` if
    /// output is shown at once.
    held_output: Option<Vec<u8>>,
}

/// Step that runs in parallel with others.
pub(crate) struct ParallelStep {
    name: String,
    /// Thread that returns the output and the time of the step.
    thread: JoinHandle<(anyhow::Result<CapturedOutput>, Duration)>,
}

/// Success of a command, and its output.
type CapturedOutput = (bool, Vec<u8>);

impl Default for TestSteps {
    fn default() -> TestSteps {
        TestSteps { started: Instant::now(), passed: 0, failed: 0, times: Vec::new(), held_output: None }
    }
}

impl TestSteps {
    /// Runs one step, shows its output, and counts its tests; a step without tests counts as one. Returns
    /// whether it passed.
    pub(crate) fn run_step(&mut self, name: &str, command: &mut Command) -> bool {
        self.print(&format!("\n== {name}"));
        let start = Instant::now();
        let result = match &self.held_output {
            None => watch_command(command),
            Some(_) => capture_command(command).map(|captured| self.show_captured(&captured)),
        };
        self.count(name, start.elapsed(), result)
    }

    /// Creates a branch: steps for another thread, whose output is held until [`TestSteps::join_thread`].
    pub(crate) fn branch(&self) -> TestSteps {
        TestSteps { started: self.started, held_output: Some(Vec::new()), ..TestSteps::default() }
    }

    /// Waits for a thread, shows the output of its branch and adds its results. Returns the second
    /// result of the thread.
    pub(crate) fn join_thread<T>(&mut self, thread: JoinHandle<(TestSteps, T)>) -> T {
        let (branch, result) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let TestSteps { passed, failed, times, held_output, .. } = branch;
        self.print(String::from_utf8_lossy(&held_output.unwrap_or_default()).trim_end_matches('\n'));
        self.passed += passed;
        self.failed += failed;
        self.times.extend(times);
        result
    }

    /// Starts a step in parallel; [`TestSteps::wait_step`] shows its output and counts its tests.
    pub(crate) fn start_step(&self, name: &str, mut command: Command) -> ParallelStep {
        let start_time = Instant::now();
        let thread = std::thread::spawn(move || {
            let captured = capture_command(&mut command);
            (captured, start_time.elapsed())
        });
        ParallelStep { name: name.to_owned(), thread }
    }

    /// Waits for a started step and returns whether it passed.
    pub(crate) fn wait_step(&mut self, ParallelStep { name, thread }: ParallelStep) -> bool {
        self.print(&format!("\n== {name}"));
        let (captured, time) = match thread.join() {
            Ok(result) => result,
            Err(_) => (Err(anyhow::anyhow!("its thread has panicked")), Duration::ZERO),
        };
        let result = captured.map(|captured| self.show_captured(&captured));
        self.count(&name, time, result)
    }

    /// Shows a line, or holds it in a branch.
    fn print(&mut self, line: &str) {
        match &mut self.held_output {
            None => println!("{line}"),
            Some(output) => {
                output.extend_from_slice(line.as_bytes());
                output.push(b'\n');
            }
        }
    }

    /// Shows captured output. Returns the success of its command, and the numbers of passed and failed tests.
    fn show_captured(&mut self, (success, output): &CapturedOutput) -> (bool, u64, u64) {
        let (mut passed, mut failed) = (0, 0);
        for line in output.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            self.print(&line);
            add_counts(&line, &mut passed, &mut failed);
        }
        (*success, passed, failed)
    }

    /// Adds the result of a step, its success and its numbers of passed and failed tests, and prints its
    /// verdict. Returns `true` if the step passed.
    fn count(&mut self, name: &str, time: Duration, result: anyhow::Result<(bool, u64, u64)>) -> bool {
        let (pass_count, fail_count) = match result {
            // A step without tests counts as one test.
            Ok((success, 0, 0)) => (u64::from(success), u64::from(!success)),
            // Tests passed, but something else, such as the build, failed.
            Ok((false, pass_count, 0)) => (pass_count, 1),
            Ok((_, pass_count, fail_count)) => (pass_count, fail_count),
            Err(error) => {
                self.print(&format!("{error:#}"));
                (0, 1)
            }
        };
        self.passed += pass_count;
        self.failed += fail_count;
        let verdict = if fail_count == 0 { "ok" } else { "FAILED" };
        self.print(&format!("== {name}: {verdict}, {:.1} s", time.as_secs_f64()));
        self.times.push((name.to_owned(), time, fail_count == 0));
        fail_count == 0
    }

    /// Time since the first step began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Prints the times, and the counts as the last line; exits with code 1 if something failed.
    pub(crate) fn print_summary(self) -> anyhow::Result<()> {
        println!();
        for (name, time, has_passed) in &self.times {
            println!("{:>7.1} s  {name}{}", time.as_secs_f64(), if *has_passed { "" } else { "  FAILED" });
        }
        println!("{:>7.1} s  together", self.elapsed().as_secs_f64());
        println!("\n{} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 {
            // An error would print another line after the counts.
            std::process::exit(1);
        }
        Ok(())
    }
}

/// Runs a command and shows its output as it arrives. Returns its success, and the numbers of passed and
/// failed tests from its `test result:` lines.
fn watch_command(command: &mut Command) -> anyhow::Result<(bool, u64, u64)> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let (mut pass_count, mut fail_count) = (0, 0);
    for line in BufReader::new(child.stdout.take().context("stdout is piped")?).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        add_counts(&line, &mut pass_count, &mut fail_count);
    }
    Ok((child.wait()?.success(), pass_count, fail_count))
}

/// Runs a command and captures standard output followed by standard error.
fn capture_command(command: &mut Command) -> anyhow::Result<CapturedOutput> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let mut joined_output = output.stdout;
    joined_output.extend_from_slice(&output.stderr);
    Ok((output.status.success(), joined_output))
}

/// Adds the counts of a `test result:` line.
fn add_counts(line: &str, pass_count: &mut u64, fail_count: &mut u64) {
    if let Some((more_passed, more_failed)) = parse_counts(line) {
        *pass_count += more_passed;
        *fail_count += more_failed;
    }
}

/// Parses the numbers of passed and failed tests from a `test result:` line; `None` for another line.
fn parse_counts(line: &str) -> Option<(u64, u64)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        let field = counts.split(';').find(|field| field.trim().ends_with(word))?;
        field.trim().strip_suffix(word)?.trim().parse().ok()
    };
    Some((count("passed")?, count("failed")?))
}

#[cfg(test)]
mod tests {
    use super::parse_counts;

    #[test]
    fn counts_come_from_test_result_lines() {
        let line =
            "test result: FAILED. 13 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1s";
        assert_eq!(parse_counts(line), Some((13, 2)));
        assert_eq!(parse_counts("test result: ok. 0 passed; 0 failed; 0 ignored"), Some((0, 0)));
        assert_eq!(parse_counts("12 passed, 0 failed"), None);
    }
}
