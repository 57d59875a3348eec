//! `tambour run --test`: repeats recorded runs of scripts and compares the results.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use tambour::options::Language;
use tambour::texts::format_count;
use tambour_prompt::dialogue::script_test::{ScriptTest, TestDifference, TestEnv};

use super::RunCommand;
use crate::check::escape_xml;
use crate::script::{problem_line, read_script};
use crate::{CommandOutcome, input};

/// Format of the printed results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TestReportFormat {
    /// One line for each test and each difference
    Pretty,
    /// JUnit XML: a suite for each test, a case for each turn
    Junit,
}

/// Result of one test.
struct ScriptTestResult {
    /// Path of the test file.
    name: String,
    /// Number of turns.
    turns: usize,
    verdict: ScriptTestVerdict,
}

/// Outcome of one test.
enum ScriptTestVerdict {
    /// The test ran; the list has the differences.
    Compared(Vec<TestDifference>),
    /// The script has faults and cannot run; the text has one fault a line.
    FaultyScript(String),
    /// The test could not be run: a file cannot be read, or test and script do not match.
    NotRunnable {
        /// `:line:column`, or empty if unknown.
        place: String,
        message: String,
    },
}

impl ScriptTestVerdict {
    /// Creates a verdict on a test that could not be run, without a place.
    fn not_runnable(message: impl Into<String>) -> ScriptTestVerdict {
        ScriptTestVerdict::NotRunnable { place: String::new(), message: message.into() }
    }
}

pub(super) fn run(args: &RunCommand) -> Result<CommandOutcome> {
    let mut results = Vec::new();
    for path in &args.tests {
        results.push(run_test(args, path)?);
    }
    let output: String = match args.format {
        TestReportFormat::Pretty => results.iter().map(format_pretty).collect(),
        TestReportFormat::Junit => format_junit(&results),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(output.as_bytes())?;
    stdout.flush()?;
    if let Some(file) = &args.junit {
        std::fs::write(file, format_junit(&results))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let is_not_runnable =
        |test_result: &ScriptTestResult| matches!(test_result.verdict, ScriptTestVerdict::NotRunnable { .. });
    Ok(match results.iter().all(ScriptTestResult::is_passed) {
        true => CommandOutcome::Success,
        false if results.iter().any(is_not_runnable) => CommandOutcome::UsageError,
        false => CommandOutcome::Failed,
    })
}

/// Runs the test in a file.
fn run_test(args: &RunCommand, path: &Path) -> Result<ScriptTestResult> {
    let templates = args.templates.template_files()?;
    let name = input::display_name(Some(path));
    let language: Language = args.templates.language.into();
    let test = match parse_test(path) {
        Ok(test) => test,
        Err(verdict) => return Ok(ScriptTestResult { name, turns: 0, verdict }),
    };
    let turns = test.turns.len();
    let verdict = match test_verdict(args, path, &test, (&templates, test.language.unwrap_or(language))) {
        Ok(verdict) => verdict,
        Err(error) => ScriptTestVerdict::not_runnable(format!("{error:#}")),
    };
    Ok(ScriptTestResult { name, turns, verdict })
}

/// Reads the test in a file; the error is a `NotRunnable` verdict.
fn parse_test(path: &Path) -> Result<ScriptTest, ScriptTestVerdict> {
    let read_result = input::read_raw(Some(path));
    let bytes = read_result.map_err(|error| {
        ScriptTestVerdict::not_runnable(format!("cannot be read: {}", error.root_cause()))
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ScriptTestVerdict::not_runnable("the test is not UTF-8 text"))?;
    ScriptTest::parse("the test", &text).map_err(|error| ScriptTestVerdict::NotRunnable {
        place: error
            .location()
            .map(|location| format!(":{}:{}", location.line, location.column))
            .unwrap_or_default(),
        message: error.to_string(),
    })
}

/// Reads the script of a test and runs the test.
fn test_verdict(
    args: &RunCommand,
    path: &Path,
    test: &ScriptTest,
    (templates, language): (&tambour_prompt::template::TemplateFiles, Language),
) -> Result<ScriptTestVerdict> {
    let file = match (&args.script, &test.script) {
        (Some(script_path), _) => script_path.clone(),
        (None, Some(script_name)) => path.parent().unwrap_or(Path::new("")).join(script_name),
        (None, None) => return Err(anyhow!("the test names no `script`, and none is given")),
    };
    let (script, problems) = read_script(&file, templates, language)?;
    let Some(script) = script else {
        let name = input::display_name(Some(&file));
        let faults: Vec<String> = problems
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| problem_line(&name, problem))
            .collect();
        return Ok(ScriptTestVerdict::FaultyScript(faults.join("\n")));
    };
    Ok(ScriptTestVerdict::Compared(test.run(&script, TestEnv { templates, language })?))
}

impl ScriptTestResult {
    fn is_passed(&self) -> bool {
        matches!(&self.verdict, ScriptTestVerdict::Compared(differences) if differences.is_empty())
    }
}

/// Formats a difference in one line.
fn difference_line(difference: &TestDifference) -> String {
    let TestDifference { field, expected, found, .. } = difference;
    format!("{field}: expected {expected}, found {found}")
}

fn format_pretty(test_result: &ScriptTestResult) -> String {
    let ScriptTestResult { name, turns, verdict } = test_result;
    match verdict {
        ScriptTestVerdict::Compared(differences) if differences.is_empty() => {
            format!("{name}: {} as expected\n", format_count(*turns, "turn"))
        }
        ScriptTestVerdict::Compared(differences) => {
            let lines = differences.iter();
            lines
                .map(|difference| {
                    format!("{name}: turn {}: {}\n", difference.turn, difference_line(difference))
                })
                .collect()
        }
        ScriptTestVerdict::FaultyScript(faults) => format!("{name}: the script cannot run\n{faults}\n"),
        ScriptTestVerdict::NotRunnable { place, message } => format!("{name}{place}: {message}\n"),
    }
}

/// Formats all results as one JUnit document.
fn format_junit(results: &[ScriptTestResult]) -> String {
    // Each triple counts tests, failures and errors.
    let (mut suites, mut totals) = (String::new(), (0, 0, 0));
    for test_result in results {
        let ScriptTestResult { name, turns, verdict } = test_result;
        let (mut cases, mut counts) = (String::new(), (0, 0, 0));
        // `content` is the rest of the element after its attributes: `/>`, or `>`, the body and `</testcase>`.
        let mut push_case = |title: &str, content: String| {
            let _ =
                writeln!(cases, "    <testcase classname=\"{}\" name=\"{title}\"{content}", escape_xml(name));
        };
        match verdict {
            ScriptTestVerdict::Compared(differences) => {
                for turn in 1..=*turns {
                    let turn_differences = differences.iter().filter(|difference| difference.turn == turn);
                    let lines: Vec<String> = turn_differences.map(difference_line).collect();
                    counts.0 += 1;
                    let title = format!("turn {turn}");
                    if lines.is_empty() {
                        push_case(&title, "/>".to_owned());
                        continue;
                    }
                    counts.1 += 1;
                    let failure = format!(
                        ">\n      <failure type=\"difference\" message=\"{}\">{}</failure>\n    </testcase>",
                        escape_xml(&lines[0]),
                        escape_xml(&lines.join("\n"))
                    );
                    push_case(&title, failure);
                }
            }
            ScriptTestVerdict::FaultyScript(_) | ScriptTestVerdict::NotRunnable { .. } => {
                counts = (1, 0, 1);
                let error = format!(
                    ">\n      <error type=\"unreadable\" message=\"{}\"/>\n    </testcase>",
                    escape_xml(format_pretty(test_result).trim_end())
                );
                push_case("script", error);
            }
        }
        totals = (totals.0 + counts.0, totals.1 + counts.1, totals.2 + counts.2);
        let _ = writeln!(
            suites,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{cases}  </testsuite>",
            escape_xml(name),
            counts.0,
            counts.1,
            counts.2,
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tambour run\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\">\n{suites}</testsuites>\n",
        totals.0, totals.1, totals.2
    )
}
