//! What is wrong with a script.

use tambour::finding::{Finding, Profile, Report, Severity};

/// One fault of a script: what a [`Finding`] says, and the path of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The field, such as `sessions[0].phases[1].steps[0].actions[2].max_rounds`; empty for the whole script.
    pub path: String,
    /// The rule, the place in the YAML text, and the fault in words.
    pub report: Report,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, report: Report) -> Problem {
        Problem { path: path.into(), report }
    }

    /// Whether the script cannot run because of it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.finding().severity == Severity::Error
    }

    /// The same as a finding. Scripts are always judged strictly: nothing in them is repaired.
    #[must_use]
    pub fn finding(&self) -> Finding {
        self.report.clone().judge(Profile::Strict)
    }
}
