//! Tokens to reasoning and answer.

use super::answer::{Answer, Fate};
use super::options::{PlainOptions, Reasoning};
use super::{lexer, rules};
use crate::dialect::draft::{attributes, mismatched};
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{TagKind, Token};
use crate::lex::signs::Signs;
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::{At, Place};

/// Bytes kept until it is known what a `<thinking>` is.
const PENDING: usize = 1023;

pub(super) struct Reader {
    part: Part,
    mode: Reasoning,
    /// Reasoning or an aside under way, where it began, and whether it has text; no mark where the reply starts inside.
    open: Option<Open>,
    opened_at: Place,
    filled: bool,
    /// The mark that ended the last reasoning, while nothing else has come.
    closed: Option<Mark>,
    thinking: Option<Thinking>,
    /// Where the last mark stands that closed reasoning which had not begun: what came before it was some.
    unopened: Option<usize>,
    answer: Answer,
    /// Most bytes of a tag.
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Only white space so far.
    Start,
    /// In leading reasoning.
    Reasoning,
    /// In the answer.
    Answer,
    /// In reasoning after the answer has begun.
    Aside,
}

/// `<thinking>` and the white space after it: a phase behind it makes it text, since it begins a structure.
struct Thinking {
    mark: Mark,
    raw: String,
    /// Bytes of the tag.
    tag: usize,
    at: Place,
}

/// A mark of reasoning that may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) mark: Mark,
    /// A tag that closes itself: reasoning without text.
    pub(super) empty: bool,
}

impl Reader {
    pub(super) fn new(options: &Options, detected: bool) -> Reader {
        let mode = options.of::<PlainOptions>().reasoning;
        let part = if mode == Reasoning::Open { Part::Reasoning } else { Part::Start };
        Reader {
            part,
            mode,
            open: None,
            opened_at: Place::START,
            filled: false,
            closed: None,
            thinking: None,
            unopened: None,
            answer: Answer::new(options, detected),
            limit: options.limits.tag,
        }
    }

    /// Whether text in which no token begins goes on with what is under way.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        let open = if self.part == Part::Answer { self.answer.goes_on() } else { self.part != Part::Start };
        open && self.thinking.is_none()
    }

    /// Text that does, and its signs if they are known.
    #[inline]
    pub(super) fn pass(
        &mut self,
        text: &str,
        signs: Option<Signs>,
        at: impl FnOnce() -> Place,
        out: &mut dyn Output,
    ) {
        match self.part {
            Part::Answer => self.answer.pass(text, signs, at, out),
            _ => self.reason(text, out),
        }
    }

    /// Whether a mark of another dialect counts where this is.
    pub(super) fn admits(&self) -> bool {
        let text = match self.part {
            Part::Start => true,
            Part::Answer => self.answer.admits(),
            Part::Reasoning | Part::Aside => false,
        };
        text && self.thinking.is_none()
    }

    /// Whether the answer has not begun, and could here.
    pub(super) fn is_blank(&self) -> bool {
        self.part == Part::Start || self.part == Part::Answer && self.answer.is_blank()
    }

    /// Whether the answer has begun.
    pub(super) fn answers(&self) -> bool {
        matches!(self.part, Part::Answer | Part::Aside) && !self.answer.is_blank()
    }

    /// Where the last mark stands that closed reasoning which had not begun.
    pub(super) fn unopened(&self) -> Option<usize> {
        self.unopened
    }

    /// The answer on its way out.
    pub(super) fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }

    /// Something that is not its text stands here.
    pub(super) fn break_off(&mut self, out: &mut dyn Output) {
        self.answer.break_off(out);
    }

    /// The next token.
    #[inline]
    pub(super) fn token<'a>(&mut self, token: Token<'_>, at: impl Into<At<'a>>, out: &mut dyn Output) {
        match token {
            // Most text goes on with what is under way; its place is not asked for.
            Token::Text(text)
                if self.thinking.is_none() && self.part == Part::Answer && self.answer.passes(text) =>
            {
                self.answer.text(text, || at.into().get(), out);
            }
            Token::Text(text)
                if self.thinking.is_none() && matches!(self.part, Part::Reasoning | Part::Aside) =>
            {
                self.reason(text, out);
            }
            _ => self.placed(token, at.into().get(), out),
        }
    }

    fn placed(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.thinking.is_some() && self.after_thinking(&token, out) {
            return;
        }
        match (self.part, token) {
            (Part::Answer, Token::Text(text)) if self.answer.passes(text) => {
                self.answer.text(text, || at, out)
            }
            (Part::Reasoning | Part::Aside, Token::Text(text)) => self.reason(text, out),
            (Part::Start, Token::Text(text)) => {
                // A byte order mark is no text, nor is the white space around it.
                let body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
                if !body.is_empty() {
                    self.part = Part::Answer;
                    let at = at.after(&text[..text.len() - body.len()]);
                    self.token(Token::Text(body), at, out);
                }
            }
            (part, token) => match (part, self.candidate(&token)) {
                (Part::Start, Some(found)) if found.mark.kind != Kind::CloseOwn => {
                    self.leading(found, token.raw(), at, out);
                }
                (Part::Start, _) => {
                    self.part = Part::Answer;
                    self.token(token, at, out);
                }
                (Part::Reasoning | Part::Aside, Some(found)) if !found.empty => {
                    self.inside(found.mark, token.raw(), at, out);
                }
                (Part::Reasoning | Part::Aside, _) => self.reason(token.raw(), out),
                (Part::Answer, found) => self.answered(&token, found, at, out),
            },
        }
    }

    fn candidate(&self, token: &Token<'_>) -> Option<Candidate> {
        let found = match token {
            Token::Tag(tag) => {
                let mark = marks::of_tag(tag.name, tag.kind == TagKind::Close)?;
                Candidate { mark, empty: tag.kind == TagKind::SelfClosing }
            }
            Token::Reasoning(_, mark) => Candidate { mark: *mark, empty: false },
            _ => return None,
        };
        (self.mode != Reasoning::None).then_some(found)
    }

    /// A mark that nothing but white space stands before.
    fn leading(&mut self, found: Candidate, raw: &str, at: Place, out: &mut dyn Output) {
        if found.empty {
            let report =
                Report::new(rules::THINK_SELF_CLOSING, at, at.offset + raw.len(), "reasoning without text");
            out.report(report.repaired("left out"));
        } else if found.mark.kind != Kind::Open {
            self.unopened = Some(at.offset);
            unopened(raw, at, out);
        } else if found.mark.is_thinking() {
            self.thinking = Some(Thinking { mark: found.mark, raw: raw.to_owned(), tag: raw.len(), at });
        } else {
            attributes(rules::THINK_ATTRIBUTES, raw, at, out);
            self.begin(Part::Reasoning, found.mark, at);
        }
    }

    /// A mark in reasoning.
    fn inside(&mut self, mark: Mark, raw: &str, at: Place, out: &mut dyn Output) {
        let effect = match &mut self.open {
            Some(open) => open.see(mark),
            None if mark.kind == Kind::Close => Effect::Close,
            // A model whose template swallows the mark may write it all the same.
            None if mark.kind == Kind::Open && !self.filled => {
                attributes(rules::THINK_ATTRIBUTES, raw, at, out);
                return self.begin(self.part, mark, at);
            }
            None => Effect::Text,
        };
        match effect {
            Effect::Text => return self.reason(raw, out),
            Effect::Close => {}
            Effect::CloseForeign => out.report(mismatched(rules::THINK_MISMATCHED, raw, at)),
        }
        attributes(rules::THINK_ATTRIBUTES, raw, at, out);
        if self.part == Part::Reasoning {
            out.intent(Intent::ThinkingEnd);
            self.closed = Some(mark);
        }
        self.part = Part::Answer;
    }

    fn begin(&mut self, part: Part, mark: Mark, at: Place) {
        (self.part, self.open, self.opened_at) = (part, Some(Open::new(mark)), at);
    }

    fn reason(&mut self, text: &str, out: &mut dyn Output) {
        self.filled = self.filled || !is_blank(text);
        if self.part == Part::Reasoning {
            out.intent(Intent::PhaseText(text));
        } else {
            out.intent(Intent::Aside { kind: AsideKind::Thought, text });
        }
    }

    /// A token after `<thinking>`, of which nothing is known yet. Whether it is used up.
    fn after_thinking(&mut self, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let Some(mut thinking) = self.thinking.take() else { return false };
        match token {
            Token::Text(text) if is_blank(text) && thinking.raw.len() + text.len() <= PENDING => {
                thinking.raw.push_str(text);
                self.thinking = Some(thinking);
                return true;
            }
            Token::Tag(tag) if tag.name.eq_ignore_ascii_case("phase") && tag.kind != TagKind::Close => {
                let Thinking { raw, tag, at, .. } = thinking;
                self.part = Part::Answer;
                self.answer.keep_thinking(&raw[..tag], at, out);
                if raw.len() > tag {
                    self.token(Token::Text(&raw[tag..]), at.after(&raw[..tag]), out);
                }
            }
            _ => self.thinking_begins(&thinking, out),
        }
        false
    }

    fn thinking_begins(&mut self, thinking: &Thinking, out: &mut dyn Output) {
        let Thinking { mark, raw, tag, at } = thinking;
        if self.part == Part::Answer {
            in_answer(&raw[..*tag], *at, out);
            self.begin(Part::Aside, *mark, *at);
        } else {
            attributes(rules::THINK_ATTRIBUTES, &raw[..*tag], *at, out);
            self.begin(Part::Reasoning, *mark, *at);
        }
        if raw.len() > *tag {
            self.reason(&raw[*tag..], out);
        }
    }

    /// A token of the answer that is not only text.
    fn answered(&mut self, token: &Token<'_>, found: Option<Candidate>, at: Place, out: &mut dyn Output) {
        if let (Some(found), Some(closed)) = (found, self.closed)
            && found.mark.kind != Kind::Open
            && found.mark.same(closed)
            && self.answer.is_blank()
        {
            // Some reasoning ends in two marks.
            self.closed = None;
            attributes(rules::THINK_ATTRIBUTES, token.raw(), at, out);
            return;
        }
        let fate = self.answer.token(token, found, at, out);
        self.carry_out(fate, out);
    }

    /// What became of a mark in the answer, and of the text behind it that waited with it.
    fn carry_out(&mut self, fate: Option<Fate>, out: &mut dyn Output) {
        let Some(Fate { found, raw, at, behind, decided }) = fate else { return };
        if found.empty {
            in_answer(&raw, at, out);
        } else if found.mark.kind != Kind::Open {
            self.unopened = Some(at.offset);
            unopened(&raw, at, out);
        } else if found.mark.is_thinking() {
            self.thinking = Some(Thinking { mark: found.mark, tag: raw.len(), raw: raw.clone(), at });
        } else {
            in_answer(&raw, at, out);
            self.begin(Part::Aside, found.mark, at);
        }
        if behind.is_empty() {
            return;
        }
        let before = self.answer.decided(decided);
        let mut lexer = lexer(at.after(&raw), self.limit, true);
        lexer.push(&behind, &mut |token, at| self.token(token, at, out));
        lexer.finish(&mut |token, at| self.token(token, at, out));
        self.answer.decided(before);
    }

    /// Reasoning from a field of its own.
    pub(super) fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        if self.answer.is_sent() {
            out.intent(Intent::Aside { kind: AsideKind::Thought, text });
        } else {
            out.intent(Intent::PhaseText(text));
        }
    }

    pub(super) fn held(&self) -> usize {
        self.answer.held() + self.thinking.as_ref().map_or(0, |thinking| thinking.raw.len())
    }

    /// Whether an unfinished token at the very end is the beginning of a mark that closes.
    pub(super) fn is_half_mark(&self, carry: &str) -> bool {
        matches!(self.part, Part::Reasoning | Part::Aside) && marks::is_half_close(carry)
    }

    /// The end of the reply. `lone`: whether it may be without an answer, once all of it is known.
    pub(super) fn finish(
        &mut self,
        end: Place,
        lone: &mut dyn FnMut(&mut Reader) -> bool,
        out: &mut dyn Output,
    ) {
        if let Some(thinking) = self.thinking.take() {
            self.thinking_begins(&thinking, out);
        }
        while let Some(fate) = self.answer.end(out) {
            self.carry_out(Some(fate), out);
            if let Some(thinking) = self.thinking.take() {
                self.thinking_begins(&thinking, out);
            }
        }
        if matches!(self.part, Part::Reasoning | Part::Aside) {
            let at = self.opened_at;
            let report = Report::new(rules::THINK_UNCLOSED, at, end.offset, "reasoning is not closed");
            out.report(report.repaired("closed at the end"));
        }
        if let Some((form, at)) = self.answer.marker() {
            return rules::MARKER.declare(form, at, end.offset, out);
        }
        if !self.answer.is_sent() && !lone(self) {
            let report =
                Report::new(rules::ANSWER_MISSING, Place::START, end.offset, "the reply has no answer");
            out.report(report.repaired("fallback text"));
        }
    }
}

/// Reports reasoning in the answer, which begins with this mark.
fn in_answer(raw: &str, at: Place, out: &mut dyn Output) {
    let message = format!("`{raw}` stands in the answer");
    let report = Report::new(rules::THINK_IN_ANSWER, at, at.offset + raw.len(), message);
    out.report(report.repaired("taken out of the answer"));
}

fn unopened(raw: &str, at: Place, out: &mut dyn Output) {
    let message = format!("`{raw}` closes nothing");
    out.report(Report::new(rules::THINK_UNOPENED, at, at.offset + raw.len(), message).repaired("left out"));
}
