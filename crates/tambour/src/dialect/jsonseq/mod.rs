//! JSONSeq dialect: one JSON object per line, each an event (J-050 to J-053).
//!
//! `parse` finds the objects; `line` is one object while it arrives and `outer` the value that contains it.
//! `event` converts an object, `outside` tracks the text between objects, `order` puts events in order and
//! `phases` numbers phases. `told` holds findings back until the first event.

mod event;
mod line;
mod opening;
mod order;
mod outer;
mod outside;
mod parse;
mod phases;
mod prompt;
mod rules;
mod schema;
mod streamed;
mod told;
mod write;

use std::sync::Arc;

use super::front::{Front, Reply};
use super::opening::{Needed, Opening, Shape, Wrapped};
use super::{Dialect, Ending, Entry, Examples, Intent, Output, echo, marker};
use crate::finding::Report;
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;

/// Entry in the table of dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "jsonseq",
    summary: "JSON Lines, each an event of the JSONSeq protocol",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(JsonSeq::new(options)))
    },
    opening: Opening {
        keys: &[Needed { named: Some(opening::is_event), ..Needed::new(&["event", "type"], &[Shape::Text]) }],
        listed: true,
        wrapped: Some(Wrapped { names: &["events"], item: opening::may_be, whole: opening::is_whole }),
        ..Opening::NONE
    },
    settings: &[],
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: Some(schema::schema),
    examples: Examples { languages: &["jsonl", "json", "jsonseq"], fenced: false },
};

struct JsonSeq {
    front: Front<parse::Lines>,
}

impl JsonSeq {
    fn new(options: &Arc<Options>) -> JsonSeq {
        JsonSeq { front: Front::new(parse::Lines::new(options), &options.limits) }
    }
}

impl Dialect for JsonSeq {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.front.text(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        match self.front.finish(out) {
            Reply::Plain => self.no_events(out),
            Reply::Text(_) if self.front.body.cut => {
                let (at, end) = self.front.span();
                let message = "the reply ends before its first event has a name";
                out.report(Report::new(rules::LINE_CUT, at, end, message).repaired("fallback text"));
                out.fall_back(if ending.cut { "truncated" } else { "answer_missing" });
            }
            Reply::Text(text) if !is_blank(&text) => self.without_events(&text, out),
            Reply::Text(_) | Reply::Structure => {
                let end = self.front.place();
                self.front.body.finish(end, out);
            }
        }
    }

    fn place(&self) -> Place {
        self.front.place()
    }

    fn held(&self) -> usize {
        self.front.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}

impl JsonSeq {
    /// Emits a reply without any event as the answer, or handles the failure marker.
    fn without_events(&self, reply: &str, out: &mut dyn Output) {
        if let Some(form) = marker::form(reply) {
            let (at, end) = self.front.span();
            return rules::MARKER.declare(form, at, end, out);
        }
        out.intent(Intent::FinalText(reply));
        self.no_events(out);
    }

    /// Reports a reply without any event, after its text has been emitted.
    fn no_events(&self, out: &mut dyn Output) {
        let ((at, end), message) = (self.front.span(), "the reply holds no event");
        let report = Report::new(rules::EVENTS_MISSING, at, end, message);
        out.report(report.repaired("its text is the answer"));
        out.fall_back("events_missing");
    }
}
