//! Detection of a structure that begins after a reply was taken for plain text.

use super::rules;
use crate::dialect::IntentSink;
use crate::event::{EventKind, parse_kind};
use crate::finding::FindingReport;
use crate::span::Place;

/// Watch over the answer that reports the first structure in it.
#[derive(Clone, Debug)]
pub(super) struct LateStructureWatch {
    /// `None` if nothing is to be reported: the caller chose the plain dialect, or a structure has been
    /// reported.
    event_finder: Option<EventLineFinder>,
}

/// Finds a line that begins with an event of a JSONSeq reply, such as `{"event":"final_delta"`.
#[derive(Clone, Debug)]
struct EventLineFinder {
    /// Bytes of [`EVENT_PATTERN`] that the current line has matched; `None` if it can no longer match.
    matched_len: Option<usize>,
    /// Part of the event name that has been read after the pattern.
    name: String,
}

/// Beginning of an event object. White space between the characters does not count.
const EVENT_PATTERN: &[u8] = b"{\"event\":\"";

/// Maximum length of an event name in bytes.
const MAX_EVENT_NAME_BYTES: usize = 32;

impl LateStructureWatch {
    /// Creates a watch; `is_detected` is set if `auto` took the reply for plain text.
    pub(super) fn new(is_detected: bool) -> LateStructureWatch {
        LateStructureWatch {
            event_finder: is_detected
                .then_some(EventLineFinder { matched_len: Some(0), name: String::new() }),
        }
    }

    /// Examines text of the answer that starts at the place `at`.
    #[inline]
    pub(super) fn push_text(&mut self, text: &str, at: impl FnOnce() -> Place, out: &mut dyn IntentSink) {
        if let Some(event_finder) = &mut self.event_finder
            && let Some(name_end) = event_finder.find(text)
        {
            self.report_events(at().end_of(&text[..name_end]), out);
        }
    }

    /// Reports events of JSONSeq at the end of the first event name.
    #[cold]
    fn report_events(&mut self, at: Place, out: &mut dyn IntentSink) {
        self.event_finder = None;
        let message = "events begin after the reply was taken for plain text";
        let report = FindingReport::new(rules::STRUCTURE_LATE, at, at.offset + 1, message);
        out.report(report.with_repair("kept as text"));
    }

    /// Examines a tag of the answer.
    pub(super) fn push_tag(&mut self, name: &str, raw: &str, at: Place, out: &mut dyn IntentSink) {
        if self.event_finder.is_some() && matches!(name, "thinking" | "serp" | "final" | "phase") {
            self.event_finder = None;
            let message = format!("`{raw}` begins a structure after the reply was taken for plain text");
            let report = FindingReport::new(rules::STRUCTURE_LATE, at, at.offset + raw.len(), message);
            out.report(report.with_repair("kept as text"));
        }
    }
}

impl EventLineFinder {
    /// Examines text of the answer; returns the index of the quote that ends the event name, if found.
    #[inline]
    fn find(&mut self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let Some(matched_len) = self.matched_len else {
                at += memchr::memchr(b'\n', &bytes[at..])? + 1;
                self.matched_len = Some(0);
                continue;
            };
            match bytes[at] {
                b'\n' => self.matched_len = Some(0),
                b'"' if matched_len == EVENT_PATTERN.len() => {
                    if parse_kind(&self.name) == Some(EventKind::Contract) {
                        return Some(at);
                    }
                    self.matched_len = None;
                }
                byte if matched_len == EVENT_PATTERN.len() => {
                    match byte.is_ascii_graphic() && self.name.len() < MAX_EVENT_NAME_BYTES {
                        true => self.name.push(char::from(byte)),
                        false => self.matched_len = None,
                    }
                }
                byte if byte.is_ascii_whitespace() => {}
                byte if byte == EVENT_PATTERN[matched_len] => {
                    self.name.clear();
                    self.matched_len = Some(matched_len + 1);
                }
                _ => self.matched_len = None,
            }
            at += 1;
        }
        None
    }
}
