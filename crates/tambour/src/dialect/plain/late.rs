//! A structure that begins after a reply was taken for plain text.

use super::rules;
use crate::dialect::Output;
use crate::event::{EventKind, kind_of};
use crate::finding::Report;
use crate::span::Place;

/// Watch for such a structure, until one was reported.
#[derive(Clone, Debug)]
pub(super) struct Late {
    /// `None` if the caller chose the plain dialect.
    lines: Option<Lines>,
}

/// Finder of a line that begins with an object naming an event of the contract.
#[derive(Clone, Debug)]
struct Lines {
    /// Bytes of `PATTERN` that the line has matched; `None` if it can no longer match.
    matched: Option<usize>,
    /// The event name after the pattern, so far.
    name: String,
}

/// Beginning of an event object. White space between the characters does not count.
const PATTERN: &[u8] = b"{\"event\":\"";

/// Longest event name, in bytes.
const NAME: usize = 32;

impl Late {
    pub(super) fn new(detected: bool) -> Late {
        Late { lines: detected.then_some(Lines { matched: Some(0), name: String::new() }) }
    }

    /// Examines text of the answer.
    #[inline]
    pub(super) fn text(&mut self, text: &str, at: impl FnOnce() -> Place, out: &mut dyn Output) {
        if let Some(lines) = &mut self.lines
            && let Some(found) = lines.find(text)
        {
            self.found(at().after(&text[..found]), out);
        }
    }

    #[cold]
    fn found(&mut self, at: Place, out: &mut dyn Output) {
        self.lines = None;
        let message = "events begin after the reply was taken for plain text";
        let report = Report::new(rules::STRUCTURE_LATE, at, at.offset + 1, message);
        out.report(report.repaired("kept as text"));
    }

    /// Examines a tag of the answer.
    pub(super) fn tag(&mut self, name: &str, raw: &str, at: Place, out: &mut dyn Output) {
        if self.lines.is_some() && matches!(name, "thinking" | "serp" | "final" | "phase") {
            self.lines = None;
            let message = format!("`{raw}` begins a structure after the reply was taken for plain text");
            let report = Report::new(rules::STRUCTURE_LATE, at, at.offset + raw.len(), message);
            out.report(report.repaired("kept as text"));
        }
    }
}

impl Lines {
    /// Examines text of the answer; returns the index of the quote that ends the event name, if found.
    #[inline]
    fn find(&mut self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let Some(matched) = self.matched else {
                at += memchr::memchr(b'\n', &bytes[at..])? + 1;
                self.matched = Some(0);
                continue;
            };
            match bytes[at] {
                b'\n' => self.matched = Some(0),
                b'"' if matched == PATTERN.len() => {
                    if kind_of(&self.name) == Some(EventKind::Contract) {
                        return Some(at);
                    }
                    self.matched = None;
                }
                b if matched == PATTERN.len() => match b.is_ascii_graphic() && self.name.len() < NAME {
                    true => self.name.push(char::from(b)),
                    false => self.matched = None,
                },
                b if b.is_ascii_whitespace() => {}
                b if b == PATTERN[matched] => {
                    self.name.clear();
                    self.matched = Some(matched + 1);
                }
                _ => self.matched = None,
            }
            at += 1;
        }
        None
    }
}
