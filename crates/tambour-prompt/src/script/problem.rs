//! Problem of a script: a finding with the path of its field.

use tambour::finding::{Finding, FindingReport, Profile, Severity};

/// A fault of a script: a [`Finding`] with the path of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptProblem {
    /// Path of the field, such as `sessions[0].phases[1].steps[0].actions[2].max_rounds`; empty for the
    /// entire script.
    pub path: String,
    /// Rule, place in the YAML text, and message.
    pub report: FindingReport,
}

impl ScriptProblem {
    pub(crate) fn new(path: impl Into<String>, report: FindingReport) -> ScriptProblem {
        ScriptProblem { path: path.into(), report }
    }

    /// Returns true if the script cannot run because of this problem.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.finding().severity == Severity::Error
    }

    /// Converts to a finding. Scripts are always judged strictly, because nothing in them is repaired.
    #[must_use]
    pub fn finding(&self) -> Finding {
        self.report.clone().judge(Profile::Strict)
    }
}
