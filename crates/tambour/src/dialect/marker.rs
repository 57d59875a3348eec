//! Recognition of replies that are only the failure marker, `<<ParsingError>>`, with which a model declares
//! that it cannot answer in the requested form (T-025, J-055), or an inexact form of the marker (R-72).

use super::{FAILURE_MARKER, IntentSink};
use crate::finding::{FindingReport, Rule, RuleLevel};
use crate::span::Place;

/// Form in which a reply declares that the model failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerForm {
    /// The exact marker.
    Exact,
    /// An inexact marker: `<ParsingError>`, in a fence, with a full stop.
    Near,
}

/// Rule that a reply is not the marker, without the parts that each dialect adds: the specification rows and
/// the correct example.
pub(super) const DECLARATION: Rule = Rule {
    code: "parsing_error_marker",
    rows: &[],
    level: RuleLevel::Must,
    title: "The model did not declare that it failed.",
    with: &[],
    broken: FAILURE_MARKER,
    correct: "",
};

/// Rule that the marker is exact, without the parts that each dialect adds, like [`DECLARATION`].
pub(super) const FORM: Rule = Rule {
    code: "parsing_error_form",
    rows: &[],
    level: RuleLevel::Should,
    title: "The failure marker is written exactly.",
    with: &[],
    broken: "```\n<ParsingError>.\n```",
    correct: "",
};

/// Rules that a reply with the failure marker breaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerRules {
    /// Broken by a reply that declares a failure.
    pub(super) declaration: &'static Rule,
    /// Broken by a marker that is not written exactly.
    pub(super) form: &'static Rule,
}

impl MarkerRules {
    /// Reports that the reply is the marker, which spans `at..end`, and requests the fallback text.
    pub(super) fn report_marker(self, form: MarkerForm, at: Place, end: usize, out: &mut dyn IntentSink) {
        if form == MarkerForm::Near {
            let report = FindingReport::new(
                self.form,
                at,
                end,
                format!("the failure marker must be exactly `{FAILURE_MARKER}`"),
            );
            out.report(report.with_repair("read as the marker"));
        }
        let message = "the model declared that it cannot answer in this form";
        out.report(FindingReport::new(self.declaration, at, end, message).with_repair("fallback text"));
        out.fall_back("parsing_error");
    }
}

/// Returns the form of the marker if the whole text is one.
pub(super) fn marker_form(text: &str) -> Option<MarkerForm> {
    let mut watch = MarkerWatch::default();
    watch.push(text);
    watch.form()
}

/// Follows a reply as long as it may be the marker and nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerWatch {
    state: MarkerState,
    /// Fence or code span character around the marker.
    fence: Option<char>,
    /// Set once that fence has closed.
    is_fence_closed: bool,
    /// Set once the one punctuation mark that may follow the marker was read.
    has_punctuation: bool,
    /// Set if the text so far can only be an inexact marker.
    is_near: bool,
}

/// Part of the marker that was read last. Each number counts the characters of that part so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkerState {
    /// White space before everything else.
    Start,
    /// Backticks or tildes of the opening fence or code span.
    Fence(u8),
    /// Language name after the fence.
    Info(u8),
    /// White space inside the fence.
    FenceSpace,
    /// `<` before the name.
    Opening(u8),
    /// Name of the marker.
    Name(u8),
    /// `>` after the name.
    Closing(u8),
    /// White space or punctuation after the marker.
    After,
    /// Closing fence.
    FenceEnd,
    /// The text is not the marker.
    Other,
}

/// Maximum length of a fence around a marker, in characters.
const MAX_FENCE_LEN: u8 = 8;

/// Maximum length of the language name of such a fence, in characters.
const MAX_INFO_LEN: u8 = 16;

impl Default for MarkerWatch {
    fn default() -> MarkerWatch {
        MarkerWatch {
            state: MarkerState::Start,
            fence: None,
            is_fence_closed: false,
            has_punctuation: false,
            is_near: false,
        }
    }
}

impl MarkerWatch {
    /// Returns whether a fence or code span around the marker is open.
    pub(super) fn is_in_fence(&self) -> bool {
        self.fence.is_some() && !self.is_fence_closed && self.state != MarkerState::FenceEnd
    }

    /// Returns the form of the marker, if the text so far is the whole reply.
    pub(super) fn form(&self) -> Option<MarkerForm> {
        match self.state {
            // With a single `>` the marker is inexact.
            MarkerState::Closing(len) => {
                Some(if self.is_near || len < 2 { MarkerForm::Near } else { MarkerForm::Exact })
            }
            MarkerState::After | MarkerState::FenceEnd => {
                Some(if self.is_near { MarkerForm::Near } else { MarkerForm::Exact })
            }
            _ => None,
        }
    }

    /// Reads text; returns the length of the prefix that may still be part of the marker.
    pub(super) fn push(&mut self, text: &str) -> usize {
        for (at, c) in text.char_indices() {
            self.state = self.next_state(c);
            if self.state == MarkerState::Other {
                return at;
            }
        }
        text.len()
    }

    /// Returns the state after the next character.
    fn next_state(&mut self, c: char) -> MarkerState {
        // Without `<<` and `>>`.
        let name = &FAILURE_MARKER[2..FAILURE_MARKER.len() - 2];
        let is_space = c.is_whitespace() || c == '\u{FEFF}';
        match self.state {
            MarkerState::Start if is_space => MarkerState::Start,
            MarkerState::Start if matches!(c, '`' | '~') => {
                self.fence = Some(c);
                self.is_near = true;
                MarkerState::Fence(1)
            }
            MarkerState::Fence(len) if self.fence == Some(c) && len < MAX_FENCE_LEN => {
                MarkerState::Fence(len + 1)
            }
            // One or two backticks open a code span; fewer than three tildes open nothing.
            MarkerState::Fence(len) if len < 3 && self.fence == Some('~') => MarkerState::Other,
            MarkerState::Fence(len) if len >= 3 && c.is_ascii_alphanumeric() => MarkerState::Info(1),
            MarkerState::Info(len) if c.is_ascii_alphanumeric() && len < MAX_INFO_LEN => {
                MarkerState::Info(len + 1)
            }
            MarkerState::Fence(_) | MarkerState::Info(_) | MarkerState::FenceSpace if is_space => {
                MarkerState::FenceSpace
            }
            MarkerState::Start | MarkerState::Fence(_) | MarkerState::FenceSpace if c == '<' => {
                MarkerState::Opening(1)
            }
            MarkerState::Opening(1) if c == '<' => MarkerState::Opening(2),
            MarkerState::Opening(len) if name.starts_with(c.to_ascii_uppercase()) => {
                self.is_near |= len < 2 || !name.starts_with(c);
                MarkerState::Name(1)
            }
            MarkerState::Name(len) if usize::from(len) == name.len() && c == '>' => MarkerState::Closing(1),
            MarkerState::Name(len) => match name.as_bytes().get(usize::from(len)).copied().map(char::from) {
                Some(expected) if expected.eq_ignore_ascii_case(&c) => {
                    self.is_near |= expected != c;
                    MarkerState::Name(len + 1)
                }
                _ => MarkerState::Other,
            },
            MarkerState::Closing(1) if c == '>' => MarkerState::Closing(2),
            MarkerState::Closing(len) => {
                self.is_near |= len < 2;
                self.state_after_marker(c, is_space)
            }
            MarkerState::FenceEnd if self.fence == Some(c) => MarkerState::FenceEnd,
            MarkerState::After | MarkerState::FenceEnd => self.state_after_marker(c, is_space),
            MarkerState::Start
            | MarkerState::Fence(_)
            | MarkerState::Info(_)
            | MarkerState::FenceSpace
            | MarkerState::Opening(_)
            | MarkerState::Other => MarkerState::Other,
        }
    }

    /// Returns the state after a character that follows the marker.
    fn state_after_marker(&mut self, c: char, is_space: bool) -> MarkerState {
        self.is_fence_closed |= self.state == MarkerState::FenceEnd;
        let is_punctuation =
            matches!(c, '.' | '!' | '?' | ',' | ';' | ':' | '…' | '。' | '！' | '？' | '，' | '；');
        if is_space {
            MarkerState::After
        } else if is_punctuation && !self.has_punctuation {
            self.has_punctuation = true;
            self.is_near = true;
            MarkerState::After
        } else if self.fence == Some(c) && !self.is_fence_closed {
            MarkerState::FenceEnd
        } else {
            MarkerState::Other
        }
    }
}
