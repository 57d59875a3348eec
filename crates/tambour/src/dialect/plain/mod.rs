//! Plain replies: leading reasoning, in marks or in a field of its own, then the answer.
//!
//! `parse` separates reasoning from the answer, `answer` emits the answer, `late` reports structures that
//! begin too late.

mod answer;
mod closing;
mod control;
mod held;
mod late;
mod lead;
mod lead_in;
mod leading;
mod options;
mod parse;
pub(super) mod rules;
mod write;

use super::opening::Opening;
use super::{Dialect, Ending, Entry, Examples, Intent, MARKER, Output};
use crate::event::Event;
use crate::lex::marks::Mark;
use crate::lex::markup::{Markup, Token};
use crate::lex::prose::{Line, Prose};
use crate::lex::signs::Signs;
use crate::options::Options;
use crate::span::Place;
pub(super) use lead_in::is_role;
use options::{PlainOptions, Reasoning};

/// Entry in the table of dialects.
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

/// Creates a reader for a reply that `auto` took for plain: a structure that begins later is reported.
pub(super) fn detected(options: &Options) -> Box<dyn Dialect> {
    Box::new(Plain::new(options, true))
}

/// Reader of plain replies, also for dialects whose replies contain plain text.
pub(super) struct Plain {
    lexer: Markup,
    reader: parse::Reader,
    /// Set if replies start inside reasoning.
    open: bool,
    /// Set until `SkipThinking` has been emitted, if thinking may be absent.
    skip_thinking: bool,
}

impl Plain {
    pub(super) fn new(options: &Options, detected: bool) -> Plain {
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

/// Methods for dialects that read their own parts of a reply, and pass the surrounding text here.
impl Plain {
    /// Returns whether a mark of another dialect would count here: not in reasoning, and not in code as far
    /// as known.
    pub(super) fn admits(&self) -> bool {
        self.reader.admits()
    }

    /// Returns whether only white space and finished reasoning were read.
    pub(super) fn is_blank(&self) -> bool {
        self.lexer.carry().is_empty() && self.reader.is_blank()
    }

    /// Returns whether the answer has begun.
    pub(super) fn answers(&self) -> bool {
        self.reader.answers()
    }

    /// Skips a part of the reply that is not its text. The text before and after it forms no joint markup.
    pub(super) fn pass_over(&mut self, raw: &str, out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        reader.break_off(out);
        if let Some(prose) = reader.answer().prose() {
            prose.pass_over();
        }
        self.lexer.pass(raw);
    }

    /// Skips marks that begin the next message of the answer, which is a paragraph of its own.
    pub(super) fn next_message(&mut self, raw: &str, out: &mut dyn Output) {
        self.pass_over(raw, out);
        self.reader.next_message(self.lexer.place(), out);
    }

    /// Handles a reasoning mark in another notation.
    pub(super) fn mark(&mut self, raw: &str, mark: Mark, out: &mut dyn Output) {
        self.insert(Token::Reasoning(raw, mark), raw, out);
    }

    /// Reads text in which nothing is a mark.
    pub(super) fn verbatim(&mut self, raw: &str, out: &mut dyn Output) {
        self.reader.see_marks(raw, self.lexer.place());
        self.insert(Token::Text(raw), raw, out);
    }

    /// Reads the written form of a displayed call: text without marks or Markdown.
    pub(super) fn form(&mut self, raw: &str, out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        reader.see_marks(raw, self.lexer.place());
        reader.form(raw, self.lexer.place(), out);
        self.lexer.pass(raw);
    }

    fn insert(&mut self, token: Token<'_>, raw: &str, out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        reader.token(token, self.lexer.place(), out);
        self.lexer.pass(raw);
    }

    /// Tracks the prose of the answer, for [`Plain::line`] and [`Plain::watch`].
    pub(super) fn follow(mut self) -> Plain {
        self.reader.answer().follow();
        self
    }

    /// Returns the line at the current place.
    pub(super) fn line(&mut self) -> Line {
        self.reader.answer().line()
    }

    /// Watches the part skipped last, for [`Plain::is_text`].
    pub(super) fn watch(&mut self) -> usize {
        self.reader.answer().prose().map_or(0, Prose::watch)
    }

    /// Returns whether a watched part skipped at `offset` has turned out to be text: in a code span, in
    /// reasoning shown as text, or in reasoning without a beginning.
    pub(super) fn is_text(&mut self, offset: usize, watched: usize) -> bool {
        is_text(&mut self.reader, offset, watched)
    }

    /// Ends the reply. It needs no answer if one of the `acting` parts may act, each given by the arguments
    /// of [`Plain::is_text`].
    pub(super) fn end(&mut self, ending: Ending, acting: &[(usize, usize)], out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        if reader.is_half_mark(self.lexer.carry()) {
            // A reply that ends in reasoning ends with part of its closing mark.
            self.lexer.drop_carry();
        }
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        let mut lone = |reader: &mut parse::Reader| {
            ending.cut || acting.iter().any(|(offset, watched)| !is_text(reader, *offset, *watched))
        };
        reader.finish(self.lexer.place(), &mut lone, out);
    }

    /// Reads text in which tokens may begin. Not inlined, to keep the fast path for most text short.
    #[inline(never)]
    fn tokens(&mut self, text: &str, out: &mut dyn Output) {
        let reader = &mut self.reader;
        self.lexer.push(text, &mut |token, place| reader.token(token, place, out));
    }

    #[inline]
    fn begin(&mut self, out: &mut dyn Output) {
        if std::mem::take(&mut self.skip_thinking) {
            out.intent(Intent::SkipThinking);
        }
    }
}

fn is_text(reader: &mut parse::Reader, offset: usize, watched: usize) -> bool {
    reader.is_reasoning(offset) || reader.answer().prose().is_some_and(|prose| prose.is_text(watched))
}

/// Creates a lexer for plain replies. Comments are tracked where the answer is emitted.
fn lexer(place: Place, limit: usize, marked: bool) -> Markup {
    let lexer = Markup::at(place, MARKER, limit).without_comments();
    if marked { lexer.with_reasoning() } else { lexer }
}

impl Dialect for Plain {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        if reader.goes_on() {
            match Signs::of(text) {
                Some(signs) if self.lexer.passes_with(text, signs) => {
                    reader.pass(text, Some(signs), || self.lexer.place(), out);
                    return self.lexer.pass_with(text, signs);
                }
                None if self.lexer.passes(text) => {
                    reader.pass(text, None, || self.lexer.place(), out);
                    return self.lexer.pass(text);
                }
                _ => {}
            }
        }
        self.tokens(text, out);
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        self.reader.reasoning(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        self.end(ending, &[], out);
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
