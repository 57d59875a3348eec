//! `tambour run --test`: repeats recorded runs of scripts and compares the results.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;
use tambour::options::Language;
use tambour::texts::counted;
use tambour_prompt::dialogue::script_test::{Difference, ScriptTest, TestEnv};

use super::Args;
use crate::check::escape;
use crate::script::{line, read};
use crate::{Outcome, input};

/// Form of the printed results.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One line for each test and each difference
    Pretty,
    /// JUnit XML: a suite for each test, a case for each turn
    Junit,
}

/// Result of one test.
struct Tested {
    /// Path of the test.
    name: String,
    /// Number of turns.
    turns: usize,
    verdict: Verdict,
}

enum Verdict {
    /// The test ran; the list has the differences.
    Ran(Vec<Difference>),
    /// The script has faults and cannot run.
    Refused(String),
    /// The test or its script cannot be read.
    Unreadable {
        /// `:line:column`, or empty if unknown.
        place: String,
        message: String,
    },
}

impl Verdict {
    fn unreadable(message: impl Into<String>) -> Verdict {
        Verdict::Unreadable { place: String::new(), message: message.into() }
    }
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let mut results = Vec::new();
    for path in &args.tests {
        results.push(tested(args, path)?);
    }
    let printed: String = match args.format {
        Format::Pretty => results.iter().map(pretty).collect(),
        Format::Junit => junit(&results),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(printed.as_bytes())?;
    stdout.flush()?;
    if let Some(file) = &args.junit {
        std::fs::write(file, junit(&results)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let is_unreadable = |tested: &Tested| matches!(tested.verdict, Verdict::Unreadable { .. });
    Ok(match results.iter().all(Tested::passed) {
        true => Outcome::Fine,
        false if results.iter().any(is_unreadable) => Outcome::Unclear,
        false => Outcome::Refused,
    })
}

/// Runs the test in a file.
fn tested(args: &Args, path: &Path) -> Result<Tested> {
    let templates = args.templates.files()?;
    let name = input::name_of(Some(path));
    let language: Language = args.templates.language.into();
    let test = match parsed(path) {
        Ok(test) => test,
        Err(unreadable) => return Ok(Tested { name, turns: 0, verdict: unreadable }),
    };
    let turns = test.turns.len();
    let verdict = match verdict(args, path, &test, (&templates, test.language.unwrap_or(language))) {
        Ok(verdict) => verdict,
        Err(error) => Verdict::unreadable(format!("{error:#}")),
    };
    Ok(Tested { name, turns, verdict })
}

fn parsed(path: &Path) -> Result<ScriptTest, Verdict> {
    let read = input::read_raw(Some(path));
    let bytes =
        read.map_err(|error| Verdict::unreadable(format!("cannot be read: {}", error.root_cause())))?;
    let text = String::from_utf8(bytes).map_err(|_| Verdict::unreadable("the test is not UTF-8 text"))?;
    ScriptTest::parse("the test", &text).map_err(|error| Verdict::Unreadable {
        place: error.place().map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default(),
        message: error.to_string(),
    })
}

fn verdict(
    args: &Args,
    path: &Path,
    test: &ScriptTest,
    (templates, language): (&tambour_prompt::template::Files, Language),
) -> Result<Verdict> {
    let file = match (&args.script, &test.script) {
        (Some(given), _) => given.clone(),
        (None, Some(named)) => path.parent().unwrap_or(Path::new("")).join(named),
        (None, None) => return Err(anyhow!("the test names no `script`, and none is given")),
    };
    let (script, problems) = read(&file, templates, language)?;
    let Some(script) = script else {
        let name = input::name_of(Some(&file));
        let faults: Vec<String> = problems
            .iter()
            .filter(|problem| problem.is_error())
            .map(|problem| line(&name, problem))
            .collect();
        return Ok(Verdict::Refused(faults.join("\n")));
    };
    Ok(Verdict::Ran(test.run(&script, TestEnv { templates, language })?))
}

impl Tested {
    fn passed(&self) -> bool {
        matches!(&self.verdict, Verdict::Ran(differences) if differences.is_empty())
    }
}

/// Formats a difference in one line.
fn told(difference: &Difference) -> String {
    let Difference { field, expected, found, .. } = difference;
    format!("{field}: expected {expected}, found {found}")
}

fn pretty(tested: &Tested) -> String {
    let Tested { name, turns, verdict } = tested;
    match verdict {
        Verdict::Ran(differences) if differences.is_empty() => {
            format!("{name}: {} as expected\n", counted(*turns, "turn"))
        }
        Verdict::Ran(differences) => {
            let lines = differences.iter();
            lines.map(|one| format!("{name}: turn {}: {}\n", one.turn, told(one))).collect()
        }
        Verdict::Refused(faults) => format!("{name}: the script cannot run\n{faults}\n"),
        Verdict::Unreadable { place, message } => format!("{name}{place}: {message}\n"),
    }
}

/// Formats all results as one JUnit document.
fn junit(results: &[Tested]) -> String {
    let (mut suites, mut all) = (String::new(), (0, 0, 0));
    for tested in results {
        let Tested { name, turns, verdict } = tested;
        let (mut cases, mut counts) = (String::new(), (0, 0, 0));
        let mut case = |title: &str, inner: String| {
            let _ = writeln!(cases, "    <testcase classname=\"{}\" name=\"{title}\"{inner}", escape(name));
        };
        match verdict {
            Verdict::Ran(differences) => {
                for turn in 1..=*turns {
                    let own = differences.iter().filter(|one| one.turn == turn);
                    let lines: Vec<String> = own.map(told).collect();
                    counts.0 += 1;
                    let title = format!("turn {turn}");
                    if lines.is_empty() {
                        case(&title, "/>".to_owned());
                        continue;
                    }
                    counts.1 += 1;
                    let failure = format!(
                        ">\n      <failure type=\"difference\" message=\"{}\">{}</failure>\n    </testcase>",
                        escape(&lines[0]),
                        escape(&lines.join("\n"))
                    );
                    case(&title, failure);
                }
            }
            Verdict::Refused(_) | Verdict::Unreadable { .. } => {
                counts = (1, 0, 1);
                let error = format!(
                    ">\n      <error type=\"unreadable\" message=\"{}\"/>\n    </testcase>",
                    escape(pretty(tested).trim_end())
                );
                case("script", error);
            }
        }
        all = (all.0 + counts.0, all.1 + counts.1, all.2 + counts.2);
        let _ = writeln!(
            suites,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{cases}  </testsuite>",
            escape(name),
            counts.0,
            counts.1,
            counts.2,
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tambour run\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\">\n{suites}</testsuites>\n",
        all.0, all.1, all.2
    )
}
