//! JSONSeq written by a model: one JSON object a line, each an event (J-050 to J-053).
//!
//! `parse` finds the objects, `event` reads one, `text` what stands between them, `order` puts the events in order, `told` keeps
//! findings until it is known whether there is an event at all.

mod event;
mod opening;
mod order;
mod parse;
mod prompt;
mod rules;
mod schema;
mod streamed;
mod text;
mod told;
mod write;

use std::sync::Arc;

use super::draft::LeadingThink;
use super::opening::Opening;
use super::preface::{Overflow, Preface};
use super::{Dialect, Ending, Entry, Examples, Output, echo, marker};
use crate::dialect::Intent;
use crate::finding::Report;
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json;
use crate::span::Place;

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "jsonseq",
    summary: "JSON Lines, each an event of the JSONSeq protocol",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(JsonSeq::new(options)))
    },
    opening: Opening { text: Some(opening::names_event), ..Opening::NONE },
    settings: &[],
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: Some(schema::schema),
    examples: Examples { languages: &["jsonl", "json", "jsonseq"], fenced: false },
};

struct JsonSeq {
    draft: LeadingThink,
    reader: json::Reader,
    lines: parse::Lines,
    preface: Preface,
    limits: Limits,
    end: Place,
}

impl JsonSeq {
    fn new(options: &Arc<Options>) -> JsonSeq {
        JsonSeq {
            draft: LeadingThink::new(rules::DRAFT, &options.limits),
            reader: json::Reader::lines(&options.limits),
            lines: parse::Lines::new(options),
            preface: Preface::new(options.limits.hold),
            limits: options.limits.clone(),
            end: Place::START,
        }
    }

    /// Text that belongs to the lines.
    fn read(&mut self, text: &str, out: &mut dyn Output) {
        if text.is_empty() {
            return;
        }
        let start = self.end;
        self.end.advance(text);
        if self.preface.is_plain() {
            return out.intent(Intent::FinalText(text));
        }
        let JsonSeq { preface, reader, lines, .. } = self;
        let overflow = preface.push(text, |text, preface| {
            reader.push(text, &mut parse::Feed { lines, preface, out: &mut *out });
            lines.told.begun()
        });
        if let Some(Overflow { held, last, rest }) = overflow {
            let message = "more text before the first event than `limits.hold`";
            let place = start.after(last);
            let report = Report::new(rules::LIMIT_EXCEEDED, place, place.offset, message);
            out.report(report.repaired("given as the answer"));
            out.intent(Intent::FinalText(&held));
            out.intent(Intent::FinalText(rest));
        }
    }
}

impl Dialect for JsonSeq {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        if self.draft.is_over() {
            return self.read(text, out);
        }
        let rest = self.draft.push(text, out);
        if self.draft.is_over() {
            self.begin(&rest, out);
        }
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        if !self.draft.is_over() {
            let rest = self.draft.finish(out);
            self.begin(&rest, out);
        }
        if self.preface.is_plain() {
            return self.no_events(out);
        }
        self.lines.finishing = true;
        let JsonSeq { lines, preface, .. } = self;
        self.reader.finish(&mut parse::Feed { lines, preface, out });
        if let Some((place, text)) = lines.thoughts.finish(self.end.offset, out) {
            lines.text.start_at(place);
            let mut reader = json::Reader::lines(&self.limits).without_thoughts().starting_at(place);
            reader.push(&text, &mut parse::Feed { lines, preface, out });
            reader.finish(&mut parse::Feed { lines, preface, out });
            if !lines.told.begun() {
                // What looked like an event was a draft as well.
                out.intent(Intent::Draft(&text));
            }
        }
        self.lines.end_text(self.end, out);
        match self.preface.take().filter(|_| !self.lines.told.begun()) {
            Some(_) if self.lines.cut => {
                let (at, message) = (self.draft.place(), "the reply ends before its first event has a name");
                let report = Report::new(rules::LINE_CUT, at, self.end.offset, message);
                out.report(report.repaired("fallback text"));
                out.fall_back(if ending.cut { "truncated" } else { "answer_missing" });
            }
            Some(preface) if !is_blank(&preface) => self.without_events(&preface, out),
            Some(_) | None => self.lines.order.finish(self.end, out),
        }
    }

    fn place(&self) -> Place {
        if self.draft.is_over() { self.end } else { self.draft.place() }
    }

    fn held(&self) -> usize {
        self.draft.held() + self.reader.held() + self.lines.held() + self.preface.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}

impl JsonSeq {
    /// A reply without any event is the answer as it stands, or the failure marker.
    fn without_events(&self, reply: &str, out: &mut dyn Output) {
        if let Some(form) = marker::form(reply) {
            return rules::MARKER.declare(form, self.draft.place(), self.end.offset, out);
        }
        out.intent(Intent::FinalText(reply));
        self.no_events(out);
    }

    /// The text of a reply without any event was sent.
    fn no_events(&self, out: &mut dyn Output) {
        let message = "the reply holds no event";
        let report = Report::new(rules::EVENTS_MISSING, self.draft.place(), self.end.offset, message);
        out.report(report.repaired("its text is the answer"));
        out.fall_back("events_missing");
    }

    fn begin(&mut self, rest: &str, out: &mut dyn Output) {
        self.end = self.draft.place();
        self.reader.start_at(self.end);
        self.lines.text.start_at(self.end);
        self.preface.start_at(self.end.offset);
        self.read(rest, out);
    }
}
