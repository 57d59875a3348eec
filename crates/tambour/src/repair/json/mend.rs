//! Reports of repairs, and lazy computation of the places they need.

use crate::finding::{Doubt, Report, Rule};
use crate::repair::rules;
use crate::span::Place;

use super::event::{JsonSink, KeyPlace};
use super::reader::Reader;
use super::state::{Cursor, Expect, Lexeme, Spot};

/// Bytes after which places are counted without a request, so that later requests stay cheap.
const STEP: usize = 1 << 10;

/// Rule of a repair, and the doubt that it casts on the value.
#[derive(Clone, Copy)]
pub(super) struct Repair {
    rule: &'static Rule,
    doubt: Option<Doubt>,
}

impl From<&'static Rule> for Repair {
    fn from(rule: &'static Rule) -> Repair {
        Repair { rule, doubt: rules::doubt(rule) }
    }
}

impl Repair {
    /// Repair with one reading, although others of its rule are guesses.
    pub(super) fn certain(rule: &'static Rule) -> Repair {
        Repair { rule, doubt: None }
    }

    /// Repair that casts this doubt.
    pub(super) fn doubtful(rule: &'static Rule, doubt: Doubt) -> Repair {
        Repair { rule, doubt: Some(doubt) }
    }
}

impl Reader {
    /// Saves the places of the last comma and the current key before their text is dropped.
    pub(super) fn settle(&mut self, text: &str) {
        // Only the comma before an item still to come can be requested.
        if let (Spot::At(at), Expect::Item) = (self.comma, self.expect) {
            self.comma = Spot::Was(self.place_at(text, at));
        }
        if let (Spot::At(at), Lexeme::String, true) = (self.key_at, self.lexeme, self.string.in_key) {
            self.key_at = Spot::Was(self.place_at(text, at));
        }
    }

    /// Lazy place of a key whose text ends at `end`.
    pub(super) fn key_place<'b>(&mut self, text: &'b str, end: usize) -> KeyPlace<'b> {
        let end = self.base.offset + end;
        KeyPlace { end, ..self.marked(text, self.key_at) }
    }

    /// Lazy place of a spot in the current text or before it.
    pub(super) fn marked<'b>(&mut self, text: &'b str, mark: Spot) -> KeyPlace<'b> {
        match mark {
            Spot::Was(from) => KeyPlace { from, over: "", end: 0 },
            Spot::At(at) if at < self.known.0 => KeyPlace { from: self.base, over: &text[..at], end: 0 },
            Spot::At(at) => {
                if at - self.known.0 > STEP {
                    self.place_at(text, at);
                }
                KeyPlace { from: self.known.1, over: &text[self.known.0..at], end: 0 }
            }
        }
    }

    /// Place of `at` in the current text. Linear in total, since places are requested in order.
    pub(super) fn place_at(&mut self, text: &str, at: usize) -> Place {
        let (offset, place) = self.known;
        debug_assert!(at >= offset, "places are asked for in order");
        if at < offset {
            return self.base.after(&text[..at]);
        }
        if at > offset {
            self.known = (at, place.after(&text[offset..at]));
        }
        self.known.1
    }

    /// Reports a repair of `start..end` of the current text.
    pub(super) fn mend<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        (start, end): (usize, usize),
        rule: impl Into<Repair>,
        (message, repair): (&str, &str),
        sink: &mut S,
    ) {
        let rule = rule.into();
        self.end.repaired = true;
        self.suspicion.broken |= rules::doubt(rule.rule).is_some();
        if self.reports < self.findings {
            self.settle(c.text);
            let place = self.place_at(c.text, start);
            self.mend_at(place, end - start, rule, (message, repair), sink);
        } else {
            self.reports += 1;
        }
    }

    /// Reports a repair at a known place.
    pub(super) fn mend_at<S: JsonSink + ?Sized>(
        &mut self,
        place: Place,
        length: usize,
        rule: impl Into<Repair>,
        (message, repair): (&str, &str),
        sink: &mut S,
    ) {
        let Repair { rule, doubt } = rule.into();
        self.end.repaired = true;
        self.suspicion.broken |= rules::doubt(rule).is_some();
        self.reports += 1;
        if self.reports > self.findings {
            return;
        }
        if self.reports == self.findings && self.findings > 1 {
            let more = "more repairs than are reported; the later ones are made without a report";
            let report = Report::new(&rules::LIMIT_EXCEEDED, place, place.offset, more);
            sink.report(report.doubtful(Doubt::Guess));
            return;
        }
        let report = Report::new(rule, place, place.offset + length, message).repaired(repair);
        sink.report(Report { doubt, ..report });
    }

    /// Number of repairs so far, reported or not.
    #[must_use]
    pub fn repairs(&self) -> usize {
        self.reports
    }

    /// Reports the stray words just skipped, once something else follows.
    #[inline]
    pub(super) fn stray_over<S: JsonSink + ?Sized>(&mut self, sink: &mut S) {
        if let Some((place, end)) = self.stray.take() {
            let what = ("words that are neither key nor value", "left them out");
            self.mend_at(place, end - place.offset, &rules::STRAY_TEXT, what, sink);
        }
    }
}
