//! Plain replies: reasoning in front, in its own marks or in a field of its own, the rest is the answer.
//!
//! `parse` says what is reasoning and what is not, `answer` is the answer on its way out, `late` sees structures that begin
//! too late.

mod answer;
mod late;
mod lead;
mod options;
mod parse;
pub(super) mod rules;
mod write;

use super::opening::Opening;
use super::{Dialect, Ending, Entry, Examples, Intent, MARKER, Output};
use crate::event::Event;
use crate::lex::markup::Markup;
use crate::options::Options;
use crate::span::Place;
use options::{PlainOptions, Reasoning};

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "plain",
    summary: "text without a contract; a leading <think> is reasoning",
    reader: |options| Box::new(Plain::new(options, false)),
    opening: Opening::NONE,
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(|events| write::write(events, false)),
    prompt: None,
    schema: None,
    examples: Examples { languages: &[], fenced: false },
};

/// A reader for a reply that `auto` took for plain: a structure that begins later is reported.
pub(super) fn detected(options: &Options) -> Box<dyn Dialect> {
    Box::new(Plain::new(options, true))
}

struct Plain {
    lexer: Markup,
    reader: parse::Reader,
    /// Whether replies start inside of reasoning.
    open: bool,
    /// Whether it is still to be said that thinking may be absent.
    skip_thinking: bool,
}

impl Plain {
    fn new(options: &Options, detected: bool) -> Plain {
        let own: PlainOptions = options.of();
        let marked = own.reasoning != Reasoning::None;
        Plain {
            lexer: lexer(Place::START, options.limits.tag, marked),
            reader: parse::Reader::new(options, detected),
            open: own.reasoning == Reasoning::Open,
            skip_thinking: own.skip_thinking,
        }
    }
}

impl Plain {
    #[inline]
    fn begin(&mut self, out: &mut dyn Output) {
        if std::mem::take(&mut self.skip_thinking) {
            out.intent(Intent::SkipThinking);
        }
    }
}

/// A lexer of plain replies. Comments are followed where they go out.
fn lexer(place: Place, limit: usize, marked: bool) -> Markup {
    let lexer = Markup::at(place, MARKER, limit).without_comments();
    if marked { lexer.with_reasoning() } else { lexer }
}

impl Dialect for Plain {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        if reader.goes_on() && self.lexer.passes(text) {
            reader.pass(text, || self.lexer.place(), out);
            return self.lexer.pass(text);
        }
        self.lexer.push(text, &mut |token, place| reader.token(token, place, out));
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        self.reader.reasoning(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        if reader.is_half_mark(self.lexer.carry()) {
            // It is no text of the reasoning, which the reply ends in.
            self.lexer.drop_carry();
        }
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        reader.finish(self.lexer.place(), ending.cut, out);
    }

    fn place(&self) -> Place {
        self.lexer.place().after(self.lexer.carry())
    }

    fn held(&self) -> usize {
        self.lexer.carry().len() + self.reader.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write(events, self.open))
    }
}
