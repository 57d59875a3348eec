//! Reader for replies that are a JSON structure. It handles the text before the structure: a leading draft,
//! then text held until the structure begins. At the end it reports whether there was one.

use super::draft::{LeadingDraft, ReasoningRules};
use super::preface::{Preface, PrefaceOverflow};
use super::thoughts::Thoughts;
use super::{Intent, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::limits::Limits;
use crate::repair::json::{JsonEvent, JsonReader, JsonSink, TokenPlace};
use crate::span::{Extent, Place};

/// The structure of a reply, built from the events of a JSON reader and the text around it.
pub(super) trait JsonStructure {
    /// Rules that reasoning may break.
    const REASONING_RULES: ReasoningRules;
    /// Finding for more text before the structure than `limits.hold`: its rule, message and repair.
    const OVERFLOW: (&'static Rule, &'static str, &'static str);

    /// Builds a JSON reader.
    fn new_reader(limits: &Limits) -> JsonReader;

    /// Sets the place of the reply itself, after the leading draft.
    fn start_at(&mut self, place: Place, draft: &LeadingDraft);

    /// Announces that the following events belong to a structure at the end of an unclosed thought. The
    /// structure begins at `place`.
    fn enter_thought(&mut self, place: Place);

    /// Handles the next event of the reader.
    fn handle_event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn IntentSink);

    /// Handles the next finding of the reader.
    fn handle_report(&mut self, report: FindingReport, out: &mut dyn IntentSink);

    /// Like [`JsonSink::bracket`].
    fn handle_bracket(&mut self, _place: TokenPlace<'_>) {}

    /// Like [`JsonSink::report_rounding`].
    fn handle_rounding(&mut self, _place: Place, _end: usize) {}

    /// Returns whether the structure has begun.
    fn has_begun(&self) -> bool;

    /// Returns the thoughts in the surrounding text.
    fn thoughts(&mut self) -> &mut Thoughts;

    /// Returns the bytes of text held back.
    fn held_bytes(&self) -> usize;

    /// Called before the reader finishes.
    fn prepare_finish(&mut self) {}

    /// Called after the reader has finished. `thought_structure` is the text read as the structure at the end
    /// of an unclosed thought, `end` the end of the reply.
    fn complete(&mut self, _thought_structure: Option<&str>, _end: Place, _out: &mut dyn IntentSink) {}
}

/// Reads the text before a structure, and passes the events of a JSON reader to the structure.
pub(super) struct StructureReader<S> {
    draft: LeadingDraft,
    reader: JsonReader,
    pub(super) structure: S,
    pub(super) preface: Preface,
    limits: Limits,
    /// Place after all text of the reply itself; used once the leading draft is over.
    end: Place,
}

/// Kind of a complete reply.
pub(super) enum ReplyShape {
    /// No structure arrived in time: the reply was emitted unchanged.
    Plain,
    /// No structure, only this text, without thoughts.
    Text(String),
    /// The structure has begun.
    Structure,
}

impl<S: JsonStructure> StructureReader<S> {
    pub(super) fn new(structure: S, limits: &Limits) -> StructureReader<S> {
        StructureReader {
            draft: LeadingDraft::new(S::REASONING_RULES, limits),
            reader: S::new_reader(limits),
            structure,
            preface: Preface::new(limits.hold),
            limits: limits.clone(),
            end: Place::START,
        }
    }

    /// Returns the extent of the reply itself, once the leading draft is over.
    pub(super) fn extent(&self) -> Extent {
        Extent { place: self.draft.place(), end: self.end.offset }
    }

    /// Returns the place after all text so far.
    pub(super) fn place(&self) -> Place {
        if self.draft.is_over() { self.end } else { self.draft.place() }
    }

    /// Returns the bytes of text held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.draft.held_bytes()
            + self.reader.held_bytes()
            + self.preface.held_bytes()
            + self.structure.held_bytes()
    }

    /// Reads text of the reply.
    #[inline]
    pub(super) fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        if self.draft.is_over() {
            return self.read_text(text, out);
        }
        let reply_text = self.draft.push(text, out);
        if self.draft.is_over() {
            self.begin_reply(&reply_text, out);
        }
    }

    /// Ends the reply.
    pub(super) fn finish(&mut self, out: &mut dyn IntentSink) -> ReplyShape {
        if !self.draft.is_over() {
            let reply_text = self.draft.finish(out);
            self.begin_reply(&reply_text, out);
        }
        if self.preface.is_plain() {
            return ReplyShape::Plain;
        }
        let StructureReader { structure, preface, .. } = self;
        structure.prepare_finish();
        self.reader.finish(&mut StructureSink { structure, preface, out });
        let thought_structure = structure.thoughts().finish(self.end.offset, out);
        if let Some((place, text)) = &thought_structure {
            structure.enter_thought(*place);
            let mut reader = S::new_reader(&self.limits).without_thoughts().with_start(*place);
            reader.push(text, &mut StructureSink { structure, preface, out });
            reader.finish(&mut StructureSink { structure, preface, out });
        }
        structure.complete(thought_structure.as_ref().map(|(_, text)| text.as_str()), self.end, out);
        match self.preface.take_text().filter(|_| !self.structure.has_begun()) {
            Some(text) => ReplyShape::Text(text),
            None => ReplyShape::Structure,
        }
    }

    /// Begins the reply itself with its first text, once the leading draft is over.
    fn begin_reply(&mut self, first_text: &str, out: &mut dyn IntentSink) {
        self.end = self.draft.place();
        self.reader.set_start(self.end);
        self.preface.start_at(self.end.offset);
        self.structure.start_at(self.end, &self.draft);
        self.read_text(first_text, out);
    }

    /// Reads text after the leading draft.
    fn read_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        if text.is_empty() {
            return;
        }
        let start = self.end;
        self.end.advance(text);
        if self.preface.is_plain() {
            return out.emit_intent(Intent::FinalText(text));
        }
        let StructureReader { preface, reader, structure, .. } = self;
        let overflow = preface.push(text, |text, preface| {
            reader.push(text, &mut StructureSink { structure, preface, out: &mut *out });
            structure.has_begun()
        });
        if let Some(PrefaceOverflow { held_text, fitting_text, excess_text }) = overflow {
            let (rule, message, repair) = S::OVERFLOW;
            let place = start.end_of(fitting_text);
            out.report(FindingReport::new(rule, place, place.offset, message).with_repair(repair));
            out.emit_intent(Intent::FinalText(&held_text));
            out.emit_intent(Intent::FinalText(excess_text));
        }
    }
}

/// Sink of the JSON reader that passes its events on to the structure.
struct StructureSink<'a, S> {
    structure: &'a mut S,
    preface: &'a mut Preface,
    out: &'a mut dyn IntentSink,
}

impl<S: JsonStructure> JsonSink for StructureSink<'_, S> {
    #[inline]
    fn event(&mut self, event: JsonEvent<'_>) {
        self.structure.handle_event(&event, self.preface, self.out);
    }

    fn report(&mut self, report: FindingReport) {
        self.structure.handle_report(report, self.out);
    }

    fn bracket(&mut self, place: TokenPlace<'_>) {
        self.structure.handle_bracket(place);
    }

    fn report_rounding(&mut self, place: Place, end: usize) {
        self.structure.handle_rounding(place, end);
    }
}
