//! Text before a JSON structure: a leading draft, then text held until the structure begins. At
//! the end of the reply, decides whether it has a structure at all.

use super::draft::{LeadingThink, Rules};
use super::preface::{Overflow, Preface};
use super::thoughts::Thoughts;
use super::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::limits::Limits;
use crate::repair::json::{JsonEvent, JsonSink, KeyPlace, Reader};
use crate::span::Place;

/// The structure of a reply, built from the events of a JSON reader and the text around it.
pub(super) trait Body {
    /// Rules that reasoning may break.
    const DRAFT: Rules;
    /// More text than `limits.hold` precedes the structure: the rule, the message and the repair.
    const OVERFLOW: (&'static Rule, &'static str, &'static str);

    /// Builds a JSON reader.
    fn reader(limits: &Limits) -> Reader;

    /// Sets the start of the text, after the leading draft.
    fn start_at(&mut self, place: Place, draft: &LeadingThink);

    /// Announces that the following text comes from an unclosed thought at `place`.
    fn in_thought(&mut self, place: Place);

    /// Handles the next event of the reader.
    fn event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output);

    /// Handles the next finding of the reader.
    fn report(&mut self, report: Report, out: &mut dyn Output);

    /// Like [`JsonSink::bracket`].
    fn bracket(&mut self, _place: KeyPlace<'_>) {}

    /// Like [`JsonSink::rounded`].
    fn rounded(&mut self, _place: Place, _end: usize) {}

    /// Returns whether the structure has begun.
    fn begun(&self) -> bool;

    /// Returns the thoughts in the surrounding text.
    fn thoughts(&mut self) -> &mut Thoughts;

    /// Returns the bytes of text held back.
    fn held(&self) -> usize;

    /// Called before the reader finishes.
    fn ending(&mut self) {}

    /// Called after the reader has finished; `found` is the text read as the structure at the end of a
    /// thought.
    fn ended(&mut self, _found: Option<&str>, _end: Place, _out: &mut dyn Output) {}
}

/// Reads the text before a structure, and passes the structure on.
pub(super) struct Front<B> {
    draft: LeadingThink,
    reader: Reader,
    pub(super) body: B,
    pub(super) preface: Preface,
    limits: Limits,
    end: Place,
}

/// Kind of a reply, known at its end.
pub(super) enum Reply {
    /// No structure arrived in time: the reply was emitted unchanged.
    Plain,
    /// No structure, only this text, without thoughts.
    Text(String),
    /// The structure has begun.
    Structure,
}

impl<B: Body> Front<B> {
    pub(super) fn new(body: B, limits: &Limits) -> Front<B> {
        Front {
            draft: LeadingThink::new(B::DRAFT, limits),
            reader: B::reader(limits),
            body,
            preface: Preface::new(limits.hold),
            limits: limits.clone(),
            end: Place::START,
        }
    }

    /// Returns the extent of the reply itself, after the leading draft: its place, and the offset after it.
    pub(super) fn span(&self) -> (Place, usize) {
        (self.draft.place(), self.end.offset)
    }

    /// Returns the place after all text so far.
    pub(super) fn place(&self) -> Place {
        if self.draft.is_over() { self.end } else { self.draft.place() }
    }

    /// Returns the bytes of text held back.
    pub(super) fn held(&self) -> usize {
        self.draft.held() + self.reader.held() + self.preface.held() + self.body.held()
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str, out: &mut dyn Output) {
        if self.draft.is_over() {
            return self.read(text, out);
        }
        let rest = self.draft.push(text, out);
        if self.draft.is_over() {
            self.begin(&rest, out);
        }
    }

    /// Ends the reply.
    pub(super) fn finish(&mut self, out: &mut dyn Output) -> Reply {
        if !self.draft.is_over() {
            let rest = self.draft.finish(out);
            self.begin(&rest, out);
        }
        if self.preface.is_plain() {
            return Reply::Plain;
        }
        let Front { body, preface, .. } = self;
        body.ending();
        self.reader.finish(&mut Feed { body, preface, out });
        let found = body.thoughts().finish(self.end.offset, out);
        if let Some((place, text)) = &found {
            body.in_thought(*place);
            let mut reader = B::reader(&self.limits).without_thoughts().starting_at(*place);
            reader.push(text, &mut Feed { body, preface, out });
            reader.finish(&mut Feed { body, preface, out });
        }
        body.ended(found.as_ref().map(|(_, text)| text.as_str()), self.end, out);
        match self.preface.take().filter(|_| !self.body.begun()) {
            Some(text) => Reply::Text(text),
            None => Reply::Structure,
        }
    }

    /// Begins the reply itself, once the leading draft is over.
    fn begin(&mut self, rest: &str, out: &mut dyn Output) {
        self.end = self.draft.place();
        self.reader.start_at(self.end);
        self.preface.start_at(self.end.offset);
        self.body.start_at(self.end, &self.draft);
        self.read(rest, out);
    }

    /// Reads text after the leading draft.
    fn read(&mut self, text: &str, out: &mut dyn Output) {
        if text.is_empty() {
            return;
        }
        let start = self.end;
        self.end.advance(text);
        if self.preface.is_plain() {
            return out.intent(Intent::FinalText(text));
        }
        let Front { preface, reader, body, .. } = self;
        let overflow = preface.push(text, |text, preface| {
            reader.push(text, &mut Feed { body, preface, out: &mut *out });
            body.begun()
        });
        if let Some(Overflow { held, last, rest }) = overflow {
            let (rule, message, repair) = B::OVERFLOW;
            let place = start.after(last);
            out.report(Report::new(rule, place, place.offset, message).repaired(repair));
            out.intent(Intent::FinalText(&held));
            out.intent(Intent::FinalText(rest));
        }
    }
}

/// Connects the structure to the JSON reader.
struct Feed<'a, B> {
    body: &'a mut B,
    preface: &'a mut Preface,
    out: &'a mut dyn Output,
}

impl<B: Body> JsonSink for Feed<'_, B> {
    #[inline]
    fn event(&mut self, event: JsonEvent<'_>) {
        self.body.event(&event, self.preface, self.out);
    }

    fn report(&mut self, report: Report) {
        self.body.report(report, self.out);
    }

    fn bracket(&mut self, place: KeyPlace<'_>) {
        self.body.bracket(place);
    }

    fn rounded(&mut self, place: Place, end: usize) {
        self.body.rounded(place, end);
    }
}
