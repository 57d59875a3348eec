//! Report format `junit`, JUnit XML: a suite for each file, a case for each text.

use std::fmt::Write as _;
use std::io::{self, Write};

use tambour::Severity;

use super::{CheckTotals, CheckedText, ReportEnding, ReportWriter, TextPart};
use crate::output;

/// Report format `junit`; the document is written at the end.
#[derive(Default)]
pub(super) struct JunitReport {
    suites: Vec<JunitSuite>,
}

/// Test suite: the texts of one file.
#[derive(Default)]
struct JunitSuite {
    /// Path of the file.
    name: String,
    /// Number of texts, including those that could not be read.
    tests: usize,
    /// Number of texts that failed.
    failures: usize,
    /// Number of files and records that could not be read.
    errors: usize,
    /// `testcase` elements, as XML.
    cases: String,
}

impl JunitReport {
    /// Returns the suite of a file, a new one if the last suite is of another file: texts of a file arrive
    /// together.
    fn suite_for(&mut self, path: &str) -> &mut JunitSuite {
        if self.suites.last().is_none_or(|suite| suite.name != path) {
            self.suites.push(JunitSuite { name: path.to_owned(), ..JunitSuite::default() });
        }
        self.suites.last_mut().expect("one was just pushed")
    }
}

impl ReportWriter for JunitReport {
    fn write_text(&mut self, checked_text: &CheckedText<'_>) -> io::Result<()> {
        let suite = self.suite_for(checked_text.path);
        suite.tests += 1;
        let verdict = &checked_text.verdict;
        let name = match &checked_text.part {
            TextPart::Document => checked_text.display_name(),
            part => part.to_string(),
        };
        let _ = write!(
            suite.cases,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape_xml(verdict.contract),
            escape_xml(&name)
        );
        let finding_list: String = verdict
            .findings
            .iter()
            .map(|finding| output::finding_line(&checked_text.display_name(), finding) + "\n")
            .collect();
        let finding_list = escape_xml(&finding_list);
        match checked_text.deciding_findings().find(|finding| finding.severity == Severity::Error) {
            Some(first_error) => {
                suite.failures += 1;
                let _ = write!(
                    suite.cases,
                    ">\n      <failure type=\"{}\" message=\"{}\">{finding_list}</failure>\n    </testcase>\n",
                    escape_xml(&first_error.code),
                    escape_xml(&format!("{}: {}", first_error.rule, first_error.message)),
                );
            }
            None if finding_list.is_empty() => suite.cases.push_str("/>\n"),
            None => {
                let _ = write!(
                    suite.cases,
                    ">\n      <system-out>{finding_list}</system-out>\n    </testcase>\n"
                );
            }
        }
        Ok(())
    }

    fn write_unreadable(&mut self, path: &str, line: Option<u64>, message: &str) -> io::Result<()> {
        let suite = self.suite_for(path);
        suite.tests += 1;
        suite.errors += 1;
        let _ = writeln!(
            suite.cases,
            "    <testcase classname=\"input\" name=\"{}\">\n      <error type=\"unreadable\" message=\"{}\"/>\n    \
             </testcase>",
            escape_xml(&line.map_or_else(|| path.to_owned(), |line| format!("{path}:{line}"))),
            escape_xml(message),
        );
        Ok(())
    }

    fn write_end(self: Box<Self>, _totals: &CheckTotals, _end: &ReportEnding) -> io::Result<()> {
        let sum = |field: fn(&JunitSuite) -> usize| self.suites.iter().map(field).sum::<usize>();
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(
            out,
            "<testsuites name=\"tambour check\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
            sum(|suite| suite.tests),
            sum(|suite| suite.failures),
            sum(|suite| suite.errors),
        );
        for JunitSuite { name, tests, failures, errors, cases } in &self.suites {
            let _ = writeln!(
                out,
                "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n\
                 {cases}  </testsuite>",
                escape_xml(name),
            );
        }
        out.push_str("</testsuites>\n");
        let mut stdout = io::stdout();
        stdout.write_all(out.as_bytes())?;
        stdout.flush()
    }
}

/// Escapes text for XML 1.0. Carriage returns and characters that XML forbids become U+FFFD.
pub(crate) fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c if c < ' ' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}
