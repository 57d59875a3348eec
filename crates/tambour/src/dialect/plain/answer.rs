//! Emission of the answer: code stays text, and reasoning marks elsewhere are removed.
//!
//! A mark after an open backtick is held until the span ends, together with the text after it. If it turns
//! out not to be code, the text is read again from the mark on: text after reasoning is Markdown of the
//! answer as if the reasoning were not there. Neighbours of removed text form no new markup, so that the
//! answer, written and read again, stays the same.

mod begin;
mod wait;

use super::late::Late;
use super::lead::Lead;
use super::parse::Candidate;
use super::rules;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::code::{Code, Inside, Stop};
use crate::lex::comment::Comment;
use crate::lex::fence;
use crate::lex::marks::{self, Kind, Seen};
use crate::lex::markup::{Markup, Token};
use crate::lex::prose::{Line, Prose};
use crate::lex::quoting::Quoting;
use crate::lex::signs::Signs;
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;
use wait::Waiting;

/// Emits the answer.
pub(super) struct Answer {
    code: Code,
    comment: Comment,
    late: Late,
    /// Beginning of the answer, as long as it may be the failure marker.
    lead: Option<Lead>,
    /// Unfinished markup right before the current place, and its start.
    tail: String,
    tail_at: Place,
    hold: Option<Waiting>,
    /// Set if marks after an open backtick are known not to be code.
    decided: bool,
    /// Last emitted byte, and whether something was removed after it.
    last: u8,
    cut: bool,
    sent: bool,
    /// Set if only white space precedes the current place on its line.
    begins: bool,
    /// Prose of the text so far, if it is tracked ([`Answer::follow`]).
    prose: Option<Prose>,
    /// Set once a `<thinking>` was kept, because a structure begins with it: its closing tag is kept too.
    structure: bool,
    /// Set while the written form of a call is emitted, which is not Markdown.
    is_form: bool,
    /// HTML elements that quote.
    quoting: Quoting,
    /// Longest unfinished markup, and longest line with a mark in an open code span, in bytes.
    tag: usize,
    line: usize,
}

/// A mark removed from the answer.
pub(super) struct Fate {
    pub(super) found: Candidate,
    pub(super) raw: String,
    pub(super) at: Place,
    /// Text after it, to be read again.
    pub(super) behind: String,
    /// Set if marks after open backticks in that text are not code.
    pub(super) decided: bool,
}

impl Answer {
    pub(super) fn new(options: &Options, detected: bool) -> Answer {
        Answer {
            code: Code::default(),
            comment: Comment::default(),
            late: Late::new(detected),
            lead: Some(Lead::default()),
            tail: String::new(),
            tail_at: Place::START,
            hold: None,
            decided: false,
            last: b'\n',
            cut: false,
            sent: false,
            begins: true,
            prose: None,
            structure: false,
            is_form: false,
            quoting: Quoting::default(),
            tag: options.limits.tag,
            line: options.limits.line,
        }
    }

    /// Returns whether non-blank text was emitted.
    pub(super) fn is_sent(&self) -> bool {
        self.sent
    }

    /// Returns whether a blank on the same line directly precedes the current place.
    pub(super) fn is_apart(&self) -> bool {
        self.last == b' ' && self.sent && self.tail.is_empty() && self.lead.is_none()
    }

    /// Returns whether only white space was read.
    pub(super) fn is_blank(&self) -> bool {
        self.lead.as_ref().is_some_and(Lead::is_blank)
    }

    pub(super) fn held(&self) -> usize {
        let lead = self.lead.as_ref().map_or(0, Lead::held);
        lead + self.tail.len() + self.hold.as_ref().map_or(0, |hold| hold.text.len())
    }

    /// Returns whether the current place is in text: not in code, and not after a backtick that is open on
    /// its line.
    pub(super) fn admits(&self) -> bool {
        if self.hold.is_some() || self.comment.is_open() || self.quoting.is_open() {
            return false;
        }
        let mut code = self.code.clone();
        if let Some(lead) = &self.lead {
            code.skim(lead.text(), false);
        }
        code.skim(&self.tail, false);
        code.boundary();
        code.inside() == Inside::Text
    }

    /// Tracks the prose of the answer from here on.
    pub(super) fn follow(&mut self) {
        self.prose = Some(Prose::default());
    }

    /// Returns the prose so far, if it is tracked.
    pub(super) fn prose(&mut self) -> Option<&mut Prose> {
        self.prose.as_mut()
    }

    /// Returns the line at the current place.
    pub(super) fn line(&self) -> Line {
        let mut line = self.prose.as_ref().map(Prose::line).unwrap_or_default();
        if let Some(lead) = &self.lead {
            line.text(lead.text());
        }
        line.text(&self.tail);
        line
    }

    /// Flushes at a boundary that no markup may span.
    pub(super) fn break_off(&mut self, out: &mut dyn Output) {
        if !self.is_blank() {
            self.end_lead(out);
        }
        self.end_tail(out);
        self.code.boundary();
        self.cut = self.sent;
    }

    /// Sets whether marks after open backticks are not code; returns the previous value.
    pub(super) fn decided(&mut self, decided: bool) -> bool {
        std::mem::replace(&mut self.decided, decided)
    }

    /// Returns whether text can be emitted at once.
    #[inline]
    pub(super) fn passes(&self, text: &str) -> bool {
        !matches!(text.as_bytes().first(), Some(b'<' | b'[' | 0xE2)) && self.goes_on()
    }

    /// Returns whether text without any markup can be emitted at once.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        !self.cut && self.lead.is_none() && self.hold.is_none() && self.tail.is_empty()
    }

    /// Emits text of the answer.
    #[inline]
    pub(super) fn text(&mut self, text: &str, at: impl FnOnce() -> Place, out: &mut dyn Output) {
        self.pass(text, None, at, out);
    }

    /// Like [`text`](Answer::text), with the signs of the text if they are known.
    #[inline]
    pub(super) fn pass(
        &mut self,
        text: &str,
        signs: Option<Signs>,
        at: impl FnOnce() -> Place,
        out: &mut dyn Output,
    ) {
        let markdown = self.markdown(text);
        match signs {
            _ if markdown.len() < text.len() => {
                self.code.boundary();
                self.code.skim(markdown, false);
            }
            Some(signs) => self.code.skim_with(text, signs),
            None => _ = self.code.skim(text, false),
        }
        self.send_with(text, markdown, signs, at, out);
    }

    /// Returns the part of a text that is Markdown: the part after an open comment, and nothing of a call's
    /// form.
    #[inline]
    fn markdown<'t>(&mut self, text: &'t str) -> &'t str {
        if self.is_form {
            return "";
        }
        match self.comment.is_open() {
            true => &text[self.comment.text(text).unwrap_or(text.len())..],
            false => text,
        }
    }

    fn send(&mut self, text: &str, markdown: &str, at: impl FnOnce() -> Place, out: &mut dyn Output) {
        self.send_with(text, markdown, None, at, out);
    }

    #[inline]
    fn send_with(
        &mut self,
        text: &str,
        markdown: &str,
        signs: Option<Signs>,
        at: impl FnOnce() -> Place,
        out: &mut dyn Output,
    ) {
        if let Some(prose) = &mut self.prose {
            if markdown.len() < text.len() {
                prose.pass_over();
            }
            prose.text(markdown);
        }
        self.late.text(text, at, out);
        let line = match signs {
            Some(Signs { lines: 0, .. }) => None,
            _ => memchr::memrchr(b'\n', text.as_bytes()).map(|at| at + 1),
        };
        if self.begins || line.is_some() {
            self.begins = is_blank(&text[line.unwrap_or(0)..]);
        }
        self.last = text.as_bytes().last().copied().unwrap_or(self.last);
        self.sent = self.sent || !text.trim().is_empty();
        out.intent(Intent::FinalText(text));
    }

    /// Sets whether the following text is the written form of a call, which is not Markdown.
    pub(super) fn set_form(&mut self, is_form: bool, out: &mut dyn Output) {
        if is_form {
            self.end_lead(out);
        }
        self.end_tail(out);
        self.code.boundary();
        self.is_form = is_form;
    }

    /// Handles the next token of the answer. Returns a mark that is removed.
    pub(super) fn token(
        &mut self,
        token: &Token<'_>,
        found: Option<Candidate>,
        at: Place,
        out: &mut dyn Output,
    ) -> Option<Fate> {
        let found = found.filter(|found| self.counts(*found));
        if self.lead.is_some() && self.leads(token, found.is_some(), at, out) {
            return None;
        }
        // Runs of fence characters must not join.
        if std::mem::take(&mut self.cut)
            && fence::is_mark(self.last)
            && token.raw().as_bytes().first() == Some(&self.last)
        {
            self.text(" ", || at, out);
        }
        if self.hold.is_some() {
            return self.wait(token, found, at, out);
        }
        match (token, found) {
            (_, Some(found)) => self.mark(found, token.raw(), at, out),
            (Token::Text(text), None) if is_unfinished(text) || self.continues(text) => {
                if self.tail.len() + text.len() > self.tag {
                    self.end_tail(out);
                    if !is_unfinished(text) {
                        self.text(text, || at, out);
                        return None;
                    }
                }
                if self.tail.is_empty() {
                    self.tail_at = at;
                }
                self.tail.push_str(text);
                None
            }
            (Token::Text(text), None) => {
                self.end_tail(out);
                self.text(text, || at, out);
                None
            }
            (other, None) => {
                self.end_tail(out);
                self.markup(other, at, out);
                None
            }
        }
    }

    /// Returns whether text continues a mark that has begun right before it.
    fn continues(&self, text: &str) -> bool {
        let short = !self.tail.is_empty() && self.tail.len() + text.len() <= marks::LONGEST;
        short && marks::at([&self.tail, text].concat().as_bytes()) == Seen::Part
    }

    /// Returns whether a mark counts at its place, apart from code.
    fn counts(&self, found: Candidate) -> bool {
        let Candidate { mark, .. } = found;
        let of_structure = self.structure && mark.is_thinking() && mark.kind == Kind::Close;
        !self.comment.is_open() && mark.kind != Kind::CloseOwn && !of_structure
    }

    /// Emits markup unchanged.
    fn markup(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        if self.code.inside() == Inside::Fence && matches!(token, Token::Tag(_) | Token::CommentOpen) {
            // Its line may be outside the fence now.
            self.code.boundary();
        }
        let outside = self.code.inside() == Inside::Text;
        if let Token::Tag(tag) = token
            && outside
            && !self.comment.is_open()
        {
            self.late.tag(tag.name, tag.raw, at, out);
            self.quoting.see(tag);
        }
        let comment = *token == Token::CommentOpen && outside && !self.comment.is_open();
        self.text(token.raw(), || at, out);
        if comment {
            self.comment.begin();
        }
    }

    /// Emits a `<thinking>` that begins a structure unchanged.
    pub(super) fn keep_thinking(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        self.structure = true;
        self.cut = false;
        self.end_lead(out);
        self.end_tail(out);
        self.late.tag("thinking", raw, at, out);
        self.text(raw, || at, out);
    }

    /// Handles a mark while no other mark is held.
    fn mark(&mut self, found: Candidate, raw: &str, at: Place, out: &mut dyn Output) -> Option<Fate> {
        if self.tail.contains(['`', '\n']) {
            // Only in quoted attributes: too rare to be worth splitting.
            self.end_tail(out);
            self.keep(raw, at, out);
            return None;
        }
        let before = self.code.clone();
        if !self.tail.is_empty() {
            self.code.text(&self.tail, false);
        }
        self.code.boundary();
        match self.code.inside() {
            Inside::Fence => {
                self.code = before;
                self.end_tail(out);
                self.keep(raw, at, out);
                None
            }
            Inside::Undecided(runs) if runs > 0 && !self.decided => {
                let text = std::mem::take(&mut self.tail);
                let (before, code) = (text.len(), before);
                let mark = before + raw.len();
                let at = if before > 0 { self.tail_at } else { at };
                self.line_break(raw);
                self.hold = Some(Waiting { found, at, text: text + raw, before, mark, runs, code });
                None
            }
            Inside::Text | Inside::Undecided(_) => {
                self.code = before;
                Some(self.take_out(found, raw, at, String::new(), out))
            }
        }
    }

    /// Emits a mark that is code.
    fn keep(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        self.code.boundary();
        self.line_break(raw);
        self.send(raw, raw, || at, out);
    }

    /// Tracks the line breaks of a mark; its backticks do not count.
    fn line_break(&mut self, raw: &str) {
        if raw.contains('\n') {
            self.code.text("\n", false);
        }
    }

    /// Removes a mark from the answer.
    fn take_out(
        &mut self,
        found: Candidate,
        raw: &str,
        at: Place,
        behind: String,
        out: &mut dyn Output,
    ) -> Fate {
        if !self.tail.is_empty() {
            let (tail, tail_at) = (std::mem::take(&mut self.tail), self.tail_at);
            let message = "reasoning stands in unfinished markup";
            let end = tail_at.offset + tail.len();
            let report = Report::new(rules::THINK_IN_MARKUP, tail_at, end, message);
            out.report(report.repaired("escaped"));
            let escaped = tail.replace('<', "&lt;").replace('[', "&#91;").replace('◁', "&#9665;");
            self.text(&escaped, || tail_at, out);
        }
        self.cut = true;
        Fate { found, raw: raw.to_owned(), at, behind, decided: self.decided }
    }

    /// Ends the reply and decides on held text. Returns a mark that is removed after all.
    pub(super) fn end(&mut self, out: &mut dyn Output) -> Option<Fate> {
        if let Some(hold) = &self.hold {
            let runs = hold.runs;
            match self.code.boundary() {
                Some(Stop::Closed(run)) if run < runs => self.is_code(out),
                _ => return Some(self.not_code(true, "", out)),
            }
        }
        if self.marker().is_none() {
            self.end_lead(out);
        }
        self.end_tail(out);
        None
    }

    /// Emits unfinished markup as text.
    fn end_tail(&mut self, out: &mut dyn Output) {
        if !self.tail.is_empty() {
            let (tail, tail_at) = (std::mem::take(&mut self.tail), self.tail_at);
            self.text(&tail, || tail_at, out);
        }
    }
}

/// Returns whether a text token is unfinished markup that could continue after removed text.
fn is_unfinished(text: &str) -> bool {
    // Any other character after a `<` makes it a plain sign.
    let begins = |next: &u8| matches!(next, b'/' | b'!' | b'<' | b'|') || next.is_ascii_alphabetic();
    // The token may contain text after a tag that failed.
    let open = || {
        let mut lexer = Markup::new("", usize::MAX);
        lexer.push(text, &mut |_, _| {});
        lexer.carry().len() == text.len()
    };
    text.starts_with('<') && text.as_bytes().get(1).is_none_or(begins) && (text.len() < 2 || open())
        || text.starts_with(['[', '◁']) && marks::at(text.as_bytes()) == Seen::Part
}
