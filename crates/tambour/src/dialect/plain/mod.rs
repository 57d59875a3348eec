//! Plain replies: reasoning in a leading `<think>` or a field of its own, the rest is the answer.

mod late;
mod parse;
pub(super) mod rules;
mod write;

use super::{Dialect, Ending, Entry, Examples, MARKER, Output};
use crate::lex::markup::Markup;
use crate::options::Options;
use crate::span::Place;

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "plain",
    summary: "text without a contract; a leading <think> is reasoning",
    reader: |options| Box::new(Plain::new(options, false)),
    rules: rules::RULES,
    write: Some(write::write),
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
}

impl Plain {
    fn new(options: &Options, detected: bool) -> Plain {
        Plain {
            lexer: Markup::new(MARKER, options.limits.tag),
            reader: parse::Reader::new(options, detected),
        }
    }
}

impl Dialect for Plain {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        let reader = &mut self.reader;
        self.lexer.push(text, &mut |token, place| reader.token(token, place, out));
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        self.reader.reasoning(text, out);
    }

    fn finish(&mut self, _ending: Ending, out: &mut dyn Output) {
        let reader = &mut self.reader;
        if reader.is_half_tag(self.lexer.carry()) {
            let half = self.lexer.carry().len();
            let place = self.lexer.drop_carry();
            reader.half_tag(half, place, out);
        }
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        reader.finish(self.lexer.place(), out);
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
}
