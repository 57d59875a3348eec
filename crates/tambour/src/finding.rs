//! Findings: faults and repairs of a reply, and the rules they name.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::{Place, Span};

/// Shortens `text` to at most `limit` characters, with an ellipsis, for use in a message.
#[doc(hidden)]
#[must_use]
pub fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        None => Cow::Borrowed(text),
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// A broken *should* rule, or in `lenient` a broken *must* rule that was repaired.
    Warning,
    /// Any other broken *must* rule.
    Error,
}

/// Force of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleLevel {
    /// Error if broken; in `lenient` a warning if the fault was repaired.
    Must,
    /// Warning if broken, in both profiles.
    Should,
    /// Information only.
    Info,
}

/// Strictness with which a reply is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every broken *must* rule is an error; meant for CI.
    Strict,
    /// Repaired faults are warnings; meant for streams.
    #[default]
    Lenient,
}

/// One entry of a rule table: a finding code and the specification rows that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Stable public code, such as `phase_id_not_increasing`.
    pub code: &'static str,
    /// Rows of the specification, such as `T-032`; the first is the main one.
    pub rows: &'static [&'static str],
    /// Force of the rule.
    pub level: RuleLevel,
    /// The rule in one sentence.
    pub title: &'static str,
    /// Settings the examples need where the defaults do not show the rule, each as `name=value`: an option by
    /// its public name; `finish`, `reasoning` or `tools` as in fixtures; `dialect`; `encoding=latin1`, where
    /// each character is one byte.
    pub with: &'static [&'static str],
    /// A complete reply (or stream of events, or list of queries, or JSON text) that breaks the rule.
    pub broken: &'static str,
    /// A counterpart of `broken` that breaks neither this rule nor any other.
    pub correct: &'static str,
}

/// One broken or repaired rule of one reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Finding {
    /// Specification row, such as `T-032`.
    pub rule: Cow<'static, str>,
    /// Stable code, such as `phase_id_not_increasing`.
    pub code: Cow<'static, str>,
    /// Severity under the profile in use.
    pub severity: Severity,
    /// Byte offsets into the raw reply.
    pub span: Span,
    /// Line of `span.start`, from 1.
    pub line: u32,
    /// Column of `span.start` in Unicode scalar values, from 1.
    pub column: u32,
    /// Description of the fault, in lower case.
    pub message: String,
    /// Description of the repair; `null` if nothing was repaired.
    pub repair: Option<String>,
}

/// Reason why a value may not be the one that was meant; such a value never acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Doubt {
    /// A repair chose one of several readings.
    Guess,
    /// A number that a double cannot represent exactly.
    InexactNumber,
    /// Two values under one key.
    DuplicateKey,
}

/// A finding without a severity, as dialects and readers report it; a profile judges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingReport {
    /// Entry of a rule table.
    pub rule: &'static Rule,
    /// Specification row that was broken; one of `rule.rows`.
    pub row: &'static str,
    /// Place of the first byte of the faulty text.
    pub place: Place,
    /// Byte offset in the reply after the faulty text.
    pub end: usize,
    /// Description of the fault.
    pub message: String,
    /// Description of the repair; `None` if nothing was repaired.
    pub repair: Option<String>,
    /// Doubt that a JSON fault casts on the value it is in; `None` if the value is certain.
    pub doubt: Option<Doubt>,
}

impl FindingReport {
    /// Report on the first row of `rule`, without a repair.
    #[doc(hidden)]
    pub fn new(rule: &'static Rule, place: Place, end: usize, message: impl Into<String>) -> FindingReport {
        FindingReport {
            rule,
            row: rule.rows[0],
            place,
            end,
            message: message.into(),
            repair: None,
            doubt: None,
        }
    }

    /// Sets another row of the same rule.
    #[doc(hidden)]
    #[must_use]
    pub fn with_row(mut self, row: &'static str) -> FindingReport {
        debug_assert!(self.rule.rows.contains(&row), "{row} is not a row of {}", self.rule.code);
        self.row = row;
        self
    }

    /// Sets the description of the repair.
    #[doc(hidden)]
    #[must_use]
    pub fn with_repair(mut self, repair: impl Into<String>) -> FindingReport {
        self.repair = Some(repair.into());
        self
    }

    /// Marks the value that contains the fault as doubtful.
    #[must_use]
    pub(crate) fn with_doubt(mut self, doubt: Doubt) -> FindingReport {
        self.doubt = Some(doubt);
        self
    }

    /// Finding with the severity that `profile` gives it.
    #[must_use]
    pub fn judge(self, profile: Profile) -> Finding {
        let severity = match (self.rule.level, profile) {
            (RuleLevel::Info, _) => Severity::Info,
            (RuleLevel::Should, _) => Severity::Warning,
            (RuleLevel::Must, Profile::Strict) => Severity::Error,
            (RuleLevel::Must, Profile::Lenient) if self.repair.is_some() => Severity::Warning,
            (RuleLevel::Must, Profile::Lenient) => Severity::Error,
        };
        Finding {
            rule: Cow::Borrowed(self.row),
            code: Cow::Borrowed(self.rule.code),
            severity,
            span: Span { start: self.place.offset, end: self.end.max(self.place.offset) },
            line: self.place.line,
            column: self.place.column,
            message: self.message,
            repair: self.repair,
        }
    }
}

/// Writes a rule table: one constant per rule, and `RULES` with all of them in order. A rule that several
/// tables share names its common part, a `Rule`, in place of its code, and gives only its own rows and
/// examples.
#[doc(hidden)]
#[macro_export]
macro_rules! rules {
    ($($name:ident = $($code:literal)? $($shared:path)? [$($row:literal),+]
        $($level:ident $title:literal, $(with [$($with:expr),+],)?
            broken $broken:expr, correct $correct:expr)?
        $(, $(broken $own_broken:expr,)? correct $own_correct:expr)?;)+) => {
        $(pub(crate) const $name: &$crate::finding::Rule = &$crate::finding::Rule {
            rows: &[$($row),+],
            $(code: $code,)?
            $(
                level: $crate::finding::RuleLevel::$level,
                title: $title,
                with: &[$($($with),+)?],
                broken: $broken,
                correct: $correct,
            )?
            $($(broken: $own_broken,)? correct: $own_correct,)?
            $(..$shared)?
        };)+
        /// The rules, in the order of the table.
        pub(crate) static RULES: &[&$crate::finding::Rule] = &[$($name),+];
    };
}
#[doc(hidden)]
pub use crate::rules;
