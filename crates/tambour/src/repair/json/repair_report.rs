//! Reports of repairs, and lazy computation of the places they need.

use crate::finding::{Doubt, FindingReport, Rule};
use crate::repair::rules;
use crate::span::{Extent, Place};

use super::event::{JsonSink, TokenPlace};
use super::reader::JsonReader;
use super::state::{ExpectedToken, OpenLexeme, TextCursor, TextSpot};

/// Distance in bytes from the last known place beyond which a place is computed at once instead of on
/// request, so that later places stay cheap.
const MAX_UNCOUNTED_BYTES: usize = 1 << 10;

/// Rule of a repair, and the doubt that it casts on the value.
#[derive(Clone, Copy)]
pub(super) struct RepairRule {
    rule: &'static Rule,
    doubt: Option<Doubt>,
}

impl From<&'static Rule> for RepairRule {
    fn from(rule: &'static Rule) -> RepairRule {
        RepairRule { rule, doubt: rules::repair_doubt(rule) }
    }
}

impl RepairRule {
    /// Repair that has only one reading, although other repairs by its rule are guesses.
    pub(super) fn certain(rule: &'static Rule) -> RepairRule {
        RepairRule { rule, doubt: None }
    }

    /// Repair that casts this doubt on the value.
    pub(super) fn doubtful(rule: &'static Rule, doubt: Doubt) -> RepairRule {
        RepairRule { rule, doubt: Some(doubt) }
    }
}

impl JsonReader {
    /// Saves the places of the last comma and the current key before their text is dropped.
    pub(super) fn save_places(&mut self, text: &str) {
        // Only the comma before an item still to come can be requested.
        if let (TextSpot::Current(at), ExpectedToken::Item) = (self.comma_spot, self.expected) {
            self.comma_spot = TextSpot::Known(self.place_at(text, at));
        }
        if let (TextSpot::Current(at), OpenLexeme::String, true) =
            (self.key_spot, self.lexeme, self.string.is_key)
        {
            self.key_spot = TextSpot::Known(self.place_at(text, at));
        }
    }

    /// Lazy place of a key whose text ends at `end`.
    pub(super) fn key_place<'b>(&mut self, text: &'b str, end: usize) -> TokenPlace<'b> {
        let end = self.base_place.offset + end;
        TokenPlace { end, ..self.spot_place(text, self.key_spot) }
    }

    /// Lazy place of a spot; `text` is the current text.
    pub(super) fn spot_place<'b>(&mut self, text: &'b str, spot: TextSpot) -> TokenPlace<'b> {
        match spot {
            TextSpot::Known(base) => TokenPlace { base, skipped: "", end: 0 },
            // The known place is past the spot: counting starts at the beginning of the text.
            TextSpot::Current(at) if at < self.known_place.0 => {
                TokenPlace { base: self.base_place, skipped: &text[..at], end: 0 }
            }
            TextSpot::Current(at) => {
                if at - self.known_place.0 > MAX_UNCOUNTED_BYTES {
                    self.place_at(text, at);
                }
                TokenPlace { base: self.known_place.1, skipped: &text[self.known_place.0..at], end: 0 }
            }
        }
    }

    /// Place of `at` in the current text. Linear in total, since places are requested in order.
    pub(super) fn place_at(&mut self, text: &str, at: usize) -> Place {
        let (offset, place) = self.known_place;
        debug_assert!(at >= offset, "places are asked for in order");
        if at < offset {
            return self.base_place.end_of(&text[..at]);
        }
        if at > offset {
            self.known_place = (at, place.end_of(&text[offset..at]));
        }
        self.known_place.1
    }

    /// Reports a repair of `start..end` of the current text, with a description of the fault and of the
    /// repair.
    pub(super) fn report_repair<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        (start, end): (usize, usize),
        rule: impl Into<RepairRule>,
        (message, repair): (&str, &str),
        sink: &mut S,
    ) {
        let rule = rule.into();
        self.value_end.is_repaired = true;
        self.suspicion.is_damaged |= rules::repair_doubt(rule.rule).is_some();
        if self.repair_count < self.max_reports {
            self.save_places(cursor.text);
            let place = self.place_at(cursor.text, start);
            self.report_repair_at(place, end - start, rule, (message, repair), sink);
        } else {
            self.repair_count += 1;
        }
    }

    /// Reports a repair of `length` bytes at a known place.
    pub(super) fn report_repair_at<S: JsonSink + ?Sized>(
        &mut self,
        place: Place,
        length: usize,
        rule: impl Into<RepairRule>,
        (message, repair): (&str, &str),
        sink: &mut S,
    ) {
        let RepairRule { rule, doubt } = rule.into();
        self.value_end.is_repaired = true;
        self.suspicion.is_damaged |= rules::repair_doubt(rule).is_some();
        self.repair_count += 1;
        if self.repair_count > self.max_reports {
            return;
        }
        // The last report says that the later repairs are not reported.
        if self.repair_count == self.max_reports && self.max_reports > 1 {
            let limit_message = "more repairs than are reported; the later ones are made without a report";
            let report = FindingReport::new(&rules::LIMIT_EXCEEDED, place, place.offset, limit_message);
            sink.report(report.with_doubt(Doubt::Guess));
            return;
        }
        let report = FindingReport::new(rule, place, place.offset + length, message).with_repair(repair);
        sink.report(FindingReport { doubt, ..report });
    }

    /// Reports the stray words just skipped, once something else follows.
    #[inline]
    pub(super) fn report_stray_text<S: JsonSink + ?Sized>(&mut self, sink: &mut S) {
        if let Some(Extent { place, end }) = self.stray_text.take() {
            let texts = ("words that are neither key nor value", "left them out");
            self.report_repair_at(place, end - place.offset, &rules::STRAY_TEXT, texts, sink);
        }
    }
}
