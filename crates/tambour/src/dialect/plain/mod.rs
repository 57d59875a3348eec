//! Plain replies: reasoning in front, in its own marks or in a field of its own, the rest is the answer.
//!
//! `parse` says what is reasoning and what is not, `answer` is the answer on its way out, `late` sees structures that begin
//! too late.

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

/// A reader of plain replies, also of those that hold what another dialect reads.
pub(super) struct Plain {
    lexer: Markup,
    reader: parse::Reader,
    /// Whether replies start inside of reasoning.
    open: bool,
    /// Whether it is still to be said that thinking may be absent.
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

/// What another dialect wants of the text around what it reads itself.
impl Plain {
    /// Whether a mark of another dialect that comes next would count: not in reasoning, and not in code, as far as that is known.
    pub(super) fn admits(&self) -> bool {
        self.reader.admits()
    }

    /// Whether nothing has come but white space, and reasoning that is over.
    pub(super) fn is_blank(&self) -> bool {
        self.lexer.carry().is_empty() && self.reader.is_blank()
    }

    /// Whether the answer has begun.
    pub(super) fn answers(&self) -> bool {
        self.reader.answers()
    }

    /// Passes over a piece of the reply that is not its text. What stands on both sides makes no markup together.
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

    /// Passes over marks with which the next message of the answer begins: a paragraph of its own.
    pub(super) fn next_message(&mut self, raw: &str, out: &mut dyn Output) {
        self.pass_over(raw, out);
        self.reader.next_message(self.lexer.place(), out);
    }

    /// A mark of reasoning that is written in another way.
    pub(super) fn mark(&mut self, raw: &str, mark: Mark, out: &mut dyn Output) {
        self.insert(Token::Reasoning(raw, mark), raw, out);
    }

    /// Text in which nothing is a mark.
    pub(super) fn verbatim(&mut self, raw: &str, out: &mut dyn Output) {
        self.reader.see_marks(raw, self.lexer.place());
        self.insert(Token::Text(raw), raw, out);
    }

    /// The written form of a call that is shown: a text in which nothing is a mark, nor Markdown.
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

    /// Follows the prose of the answer, for [`Plain::line`] and [`Plain::watch`].
    pub(super) fn follow(mut self) -> Plain {
        self.reader.answer().follow();
        self
    }

    /// The line that what comes next stands in.
    pub(super) fn line(&mut self) -> Line {
        self.reader.answer().line()
    }

    /// Watches what was passed over last, for [`Plain::is_text`].
    pub(super) fn watch(&mut self) -> usize {
        self.reader.answer().prose().map_or(0, Prose::watch)
    }

    /// Whether what was passed over at `offset`, and watched, has turned out to be text: it stands in a code span, in reasoning
    /// that is shown as text, or in reasoning whose beginning is missing.
    pub(super) fn is_text(&mut self, offset: usize, watched: usize) -> bool {
        is_text(&mut self.reader, offset, watched)
    }

    /// The end of the reply. It need not have an answer if one of these may act, each with what [`Plain::is_text`] is asked.
    pub(super) fn end(&mut self, ending: Ending, acting: &[(usize, usize)], out: &mut dyn Output) {
        self.begin(out);
        let reader = &mut self.reader;
        if reader.is_half_mark(self.lexer.carry()) {
            // It is no text of the reasoning, which the reply ends in.
            self.lexer.drop_carry();
        }
        self.lexer.finish(&mut |token, place| reader.token(token, place, out));
        let mut lone = |reader: &mut parse::Reader| {
            ending.cut || acting.iter().any(|(offset, watched)| !is_text(reader, *offset, *watched))
        };
        reader.finish(self.lexer.place(), &mut lone, out);
    }

    /// Text in which tokens may begin. Not inlined, so that what most text goes is short.
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
