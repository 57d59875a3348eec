//! Tokens to reasoning and answer.

use super::answer::{Answer, Fate};
use super::closing::Closing;
use super::control::Ends;
use super::held::{Held, Mention, Nested};
use super::lead_in::LeadIn;
use super::leading::{BEGIN, Leading, TURN};
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

/// Separates reasoning from the answer.
pub(super) struct Reader {
    pub(super) part: Part,
    mode: Reasoning,
    /// Open mark of the current reasoning (none if the reply starts inside), its start, and whether it has
    /// text.
    pub(super) open: Option<Open>,
    pub(super) opened_at: Place,
    filled: bool,
    /// The mark that ended the last reasoning, as long as no text follows it.
    pub(super) closed: Option<Mark>,
    /// An undecided leading mark.
    pub(super) leading: Option<Leading>,
    /// Text before it, such as a role word.
    pub(super) lead_in: LeadIn,
    /// Reasoning held until its end, and marks that end a message.
    pub(super) held: Option<Held>,
    pub(super) ends: Option<Ends>,
    /// A mark that closes nothing and may be a word of a sentence.
    pub(super) closing: Option<Closing>,
    /// Openings of the same mark inside the current reasoning.
    pub(super) nested: Nested,
    /// A mark that was read as text and has not been closed.
    pub(super) mention: Option<Mention>,
    /// Set once an HTML tag was read that is also the begin mark of a template: its closing tag is no mark
    /// either.
    pub(super) struck: bool,
    /// Set if no mark opens reasoning, because none is ever closed.
    pub(super) plainly: bool,
    /// Offset of the last mark that closed reasoning without a beginning: all text before it was reasoning.
    pub(super) unopened: Option<usize>,
    pub(super) answer: Answer,
    /// Longest tag, and longest held reasoning, in bytes.
    pub(super) limit: usize,
    pub(super) most: usize,
}

/// Part of a plain reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Only white space so far.
    Start,
    /// In leading reasoning.
    Reasoning,
    /// In the answer.
    Answer,
}

/// A reasoning mark that may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) mark: Mark,
    /// Set for a self-closing tag: reasoning without text.
    pub(super) empty: bool,
}

/// End mark of some templates that is an HTML tag too, and end marks that are not.
const END: &str = "</s>";
const ENDS: &[&str] = &["<end_of_turn>", "<eos>"];

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
            leading: None,
            lead_in: LeadIn::default(),
            held: None,
            ends: None,
            closing: None,
            nested: Nested::default(),
            mention: None,
            struck: false,
            plainly: false,
            unopened: None,
            answer: Answer::new(options, detected),
            limit: options.limits.tag,
            most: options.limits.hold,
        }
    }

    /// Returns whether some mark is undecided.
    fn waits(&self) -> bool {
        self.leading.is_some() || self.held.is_some() || self.ends.is_some() || self.closing.is_some()
    }

    /// Returns whether text without tokens continues the current part.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        let open = if self.part == Part::Answer { self.answer.goes_on() } else { self.part != Part::Start };
        open && !self.waits()
    }

    /// Emits such text, with its signs if they are known.
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
            _ => self.reason_with(text, signs.is_none_or(|signs| signs.lines != 0), out),
        }
    }

    /// Returns whether a mark of another dialect counts here.
    pub(super) fn admits(&self) -> bool {
        let text = match self.part {
            Part::Start => !self.lead_in.is_fence(),
            Part::Answer => self.answer.admits(),
            Part::Reasoning => false,
        };
        text && !self.waits()
    }

    /// Returns whether the answer has not begun, but could begin here.
    pub(super) fn is_blank(&self) -> bool {
        self.part == Part::Start && self.lead_in.is_empty()
            || self.part == Part::Answer && self.answer.is_blank()
    }

    /// Returns whether the answer has begun.
    pub(super) fn answers(&self) -> bool {
        self.part == Part::Answer && !self.answer.is_blank()
    }

    /// Returns whether an offset precedes a mark that closed reasoning without a beginning.
    pub(super) fn is_reasoning(&self, offset: usize) -> bool {
        self.unopened.is_some_and(|mark| offset < mark)
    }

    /// Returns the answer.
    pub(super) fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }

    /// Flushes the answer at a boundary that no markup may span.
    pub(super) fn break_off(&mut self, out: &mut dyn Output) {
        self.answer.break_off(out);
    }

    /// Handles the next token.
    #[inline]
    pub(super) fn token<'a>(&mut self, token: Token<'_>, at: impl Into<At<'a>>, out: &mut dyn Output) {
        match token {
            // Most text continues the current part, so that its place is never computed.
            Token::Text(text) if !self.waits() && self.part == Part::Answer && self.answer.passes(text) => {
                self.answer.text(text, || at.into().get(), out);
            }
            Token::Text(text) if !self.waits() && self.part == Part::Reasoning => self.reason(text, out),
            _ => self.placed(token, at.into().get(), out),
        }
    }

    fn placed(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.leading.is_some() && self.after_leading(&token, out)
            || self.held.is_some() && self.hold(&token, at, out)
            || self.ends.is_some() && self.behind_ends(&token, at, out)
            || self.closing.is_some() && self.behind_closing(&token, out)
        {
            return;
        }
        match (self.part, token) {
            (Part::Answer, Token::Text(text)) if self.answer.passes(text) => {
                self.answer.text(text, || at, out)
            }
            (Part::Reasoning, Token::Text(text)) => self.reason(text, out),
            (Part::Start, Token::Text(text)) => {
                if let Some(at) = self.lead_in.push(text, at) {
                    let text = self.lead_in.take();
                    self.begin_answer(Some((Token::Text(&text), at)), out);
                }
            }
            (part, token) => match (part, self.candidate(&token)) {
                (Part::Start, Some(found)) if found.mark.kind != Kind::CloseOwn => {
                    self.lead(found, &token, at, out);
                }
                (Part::Start, _) => self.begin_answer(Some((token, at)), out),
                (Part::Reasoning, Some(found)) if !found.empty => {
                    self.inside(found.mark, token.raw(), at, out);
                }
                (Part::Reasoning, _) => self.reason(token.raw(), out),
                (Part::Answer, found) => self.answered(&token, found, at, out),
            },
        }
    }

    /// Examines text that was taken for a call: a mark in it that closes reasoning without a beginning makes
    /// all text before it reasoning.
    pub(super) fn see_marks(&mut self, raw: &str, at: Place) {
        let mut begun = false;
        let mut last = None;
        let mut lexer = lexer(at, self.limit, true);
        let mut see = |token: Token<'_>, place: Place| match self
            .candidate(&token)
            .filter(|found| !found.empty)
            .map(|found| found.mark.kind)
        {
            Some(Kind::Open) => begun = true,
            Some(Kind::Close) if !std::mem::take(&mut begun) => last = Some(place.offset),
            _ => {}
        };
        lexer.push(raw, &mut |token, place| see(token, place.get()));
        lexer.finish(&mut |token, place| see(token, place.get()));
        self.unopened = last.or(self.unopened);
    }

    /// Reads the written form of a displayed call.
    pub(super) fn form(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        if self.part == Part::Start {
            self.begin_answer(None, out);
        }
        self.answer.set_form(true, out);
        self.token(Token::Text(raw), at, out);
        self.answer.set_form(false, out);
    }

    /// Reads text of the answer in which nothing is a mark.
    pub(super) fn answer_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        let fate = self.answer.token(&Token::Text(text), None, at, out);
        self.carry_out(fate, out);
    }

    pub(super) fn candidate(&self, token: &Token<'_>) -> Option<Candidate> {
        let found = match token {
            Token::Tag(tag) if ENDS.contains(&tag.raw) || tag.raw == END && !self.struck => {
                Candidate { mark: marks::TEMPLATE.1, empty: false }
            }
            Token::Tag(tag)
                if matches!(tag.raw, BEGIN | TURN) && self.part == Part::Start && self.lead_in.is_empty() =>
            {
                Candidate { mark: marks::TEMPLATE.0, empty: false }
            }
            Token::Tag(tag) => {
                let mark = marks::of_tag(tag.name, tag.kind == TagKind::Close)?;
                Candidate { mark, empty: tag.kind == TagKind::SelfClosing }
            }
            Token::Reasoning(_, mark) => Candidate { mark: *mark, empty: false },
            _ => return None,
        };
        (self.mode != Reasoning::None).then_some(found)
    }

    /// Handles a mark inside reasoning.
    fn inside(&mut self, mark: Mark, raw: &str, at: Place, out: &mut dyn Output) {
        let effect = match &mut self.open {
            Some(open) => {
                if mark.kind == Kind::Open && mark.same(open.mark()) && self.filled {
                    self.nested.begins();
                }
                open.see(mark)
            }
            None if mark.kind == Kind::Close => Effect::Close,
            // A model whose template swallows the mark may write it all the same.
            None if mark.kind == Kind::Open && !self.filled => {
                attributes(rules::THINK_ATTRIBUTES, raw, at, out);
                return self.begin(mark, at, out);
            }
            None => Effect::Text,
        };
        match (effect, self.open) {
            (Effect::Text, _) => return self.reason(raw, out),
            (Effect::Close, Some(open)) if !self.nested.is_none() => {
                self.held = Some(Held::behind_end(open, std::mem::take(&mut self.nested), raw, at));
                return;
            }
            (Effect::Close, _) => {}
            (Effect::CloseForeign, _) => out.report(mismatched(rules::THINK_MISMATCHED, raw, at)),
        }
        attributes(rules::THINK_ATTRIBUTES, raw, at, out);
        self.end_reasoning(mark, out);
    }

    pub(super) fn reason(&mut self, text: &str, out: &mut dyn Output) {
        self.reason_with(text, true, out);
    }

    /// Like [`reason`](Reader::reason); `may_break` is `false` if the text has no line break.
    #[inline]
    fn reason_with(&mut self, text: &str, may_break: bool, out: &mut dyn Output) {
        self.filled = self.filled || !is_blank(text);
        self.nested.text(text, may_break);
        out.intent(Intent::PhaseText(text));
    }

    /// Handles a token of the answer that is not only text.
    fn answered(&mut self, token: &Token<'_>, found: Option<Candidate>, at: Place, out: &mut dyn Output) {
        self.struck |= matches!(token, Token::Tag(tag) if tag.kind == TagKind::Open && tag.name == "s");
        if let (Some(found), Some(closed)) = (found, self.closed)
            && found.mark.kind != Kind::Open
            && found.mark.same(closed)
            && self.answer.is_blank()
        {
            // Some reasoning ends with two closing marks; a call between them is inside it.
            self.closed = None;
            self.unopened = Some(at.offset);
            attributes(rules::THINK_ATTRIBUTES, token.raw(), at, out);
            return;
        }
        let found = match found {
            Some(found) if self.control(found, token.raw(), at, out) => return,
            Some(found) if !found.mark.is_control() => self.marks(found, token.raw()),
            _ => None,
        };
        match found {
            Some(found)
                if found.mark.kind == Kind::Close && self.answer.admits() && self.answer.is_apart() =>
            {
                self.closing = Some(Closing::new(found, token.raw(), at));
            }
            Some(found) if found.mark.kind == Kind::Open && !found.empty => {
                // Before the held mark no possible failure marker may be held.
                self.answer.settle(out);
                self.held = Some(Held::new(found, token.raw(), at));
            }
            found => {
                let fate = self.answer.token(token, found, at, out);
                self.carry_out(fate, out);
            }
        }
    }

    /// Returns the mark if it counts at its place: an opening mark at the start of a line, a closing
    /// mark unless an opening one was read as text.
    fn marks(&mut self, found: Candidate, raw: &str) -> Option<Candidate> {
        let mark = found.mark;
        let text = self.answer.admits();
        if mark.kind == Kind::Open {
            let element = self.mention.as_ref().is_some_and(|mention| mention.element);
            let begins = !self.plainly && !element && text && self.answer.begins_line();
            if begins && (raw.starts_with("<|") || !marks::has_attributes(raw)) {
                self.mention = None;
                return Some(found);
            }
            match &mut self.mention {
                _ if found.empty || !text => {}
                Some(mention) => _ = mention.open.see(mark),
                mention => *mention = Some(Mention::new(mark, false, &mut self.answer)),
            }
            return None;
        }
        let Some(mention) = self.mention.as_mut().filter(|_| text) else { return Some(found) };
        if mention.open.see(mark) != Effect::Text {
            // Actions between the two are inside reasoning that is shown as text.
            if let Some(prose) = self.answer.prose() {
                prose.set_text(mention.watched);
            }
            self.mention = None;
        }
        None
    }

    /// Handles a mark removed from the answer, and reads the text held with it again.
    pub(super) fn carry_out(&mut self, fate: Option<Fate>, out: &mut dyn Output) {
        let Some(Fate { found, raw, at, behind, decided }) = fate else { return };
        if found.empty {
            in_answer(&raw, at, out);
        } else if found.mark.kind != Kind::Open {
            self.unopened = Some(at.offset);
            unopened(&raw, at, out);
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

    /// Reads reasoning from a field of its own.
    pub(super) fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        if self.answer.is_sent() {
            out.intent(Intent::Aside { kind: AsideKind::Thought, text });
        } else {
            out.intent(Intent::PhaseText(text));
        }
    }

    pub(super) fn held(&self) -> usize {
        self.answer.held()
            + self.lead_in.len()
            + self.leading.as_ref().map_or(0, |leading| leading.raw.len())
            + self.held.as_ref().map_or(0, Held::len)
            + self.ends.as_ref().map_or(0, Ends::len)
            + self.closing.as_ref().map_or(0, Closing::len)
    }

    /// Returns whether an unfinished token at the very end begins a closing mark.
    pub(super) fn is_half_mark(&self, carry: &str) -> bool {
        self.part == Part::Reasoning && self.held.is_none() && marks::is_half_close(carry)
    }

    /// Ends the reply. `lone` tells, once all of it is known, whether it may lack an answer.
    pub(super) fn finish(
        &mut self,
        end: Place,
        lone: &mut dyn FnMut(&mut Reader) -> bool,
        out: &mut dyn Output,
    ) {
        self.finish_leading(out);
        if !self.lead_in.is_empty() {
            self.begin_answer(None, out);
        }
        loop {
            self.give_up(out);
            self.finish_ends(out);
            self.finish_closing(out);
            let Some(fate) = self.answer.end(out) else { break };
            self.carry_out(Some(fate), out);
        }
        if self.part == Part::Reasoning {
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

/// Reports reasoning in the answer that begins with this mark.
pub(super) fn in_answer(raw: &str, at: Place, out: &mut dyn Output) {
    let message = format!("`{raw}` stands in the answer");
    let report = Report::new(rules::THINK_IN_ANSWER, at, at.offset + raw.len(), message);
    out.report(report.repaired("taken out of the answer"));
}

pub(super) fn unopened(raw: &str, at: Place, out: &mut dyn Output) {
    let message = format!("`{raw}` closes nothing");
    out.report(Report::new(rules::THINK_UNOPENED, at, at.offset + raw.len(), message).repaired("left out"));
}
