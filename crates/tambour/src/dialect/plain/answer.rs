//! The answer on its way out: what stands in code is text, marks of reasoning elsewhere are taken out.
//!
//! A mark behind an open backtick waits for the end of the span, with the text behind it. If it turns out to be no code, the
//! text is read again, as if the mark had come only now: what follows reasoning is Markdown of the answer as if there
//! were none in between. Where something is taken out its neighbours make no new markup, so that the answer, written
//! down and read again, is the same.

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

pub(super) struct Answer {
    code: Code,
    comment: Comment,
    late: Late,
    /// What the answer begins with, as long as it may be the failure marker.
    lead: Option<Lead>,
    /// Unfinished markup directly before this place, and where it starts.
    tail: String,
    tail_at: Place,
    hold: Option<Waiting>,
    /// Whether marks behind an open backtick are no code, since that was found out before.
    decided: bool,
    /// The last byte that went out, and whether something was taken out since.
    last: u8,
    cut: bool,
    sent: bool,
    /// Whether nothing but white space stands before this place on its line.
    begins: bool,
    /// What the text so far is, where somebody asks ([`Answer::follow`]).
    prose: Option<Prose>,
    /// A `<thinking>` stayed, since a structure begins with it: its end stays too.
    structure: bool,
    /// Set while the written form of a call goes out, in which nothing is Markdown.
    is_form: bool,
    /// Elements of HTML that quote.
    quoting: Quoting,
    /// Most bytes of unfinished markup, and of a line with a mark in an open code span.
    tag: usize,
    line: usize,
}

/// A mark that is taken out of the answer.
pub(super) struct Fate {
    pub(super) found: Candidate,
    pub(super) raw: String,
    pub(super) at: Place,
    /// What has come behind it, which is to be read again.
    pub(super) behind: String,
    /// Whether marks in that behind open backticks are no code.
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

    /// Whether text has been sent.
    pub(super) fn is_sent(&self) -> bool {
        self.sent
    }

    /// Whether a blank of its line stands directly before what comes next.
    pub(super) fn is_apart(&self) -> bool {
        self.last == b' ' && self.sent && self.tail.is_empty() && self.lead.is_none()
    }

    /// Whether nothing but white space came.
    pub(super) fn is_blank(&self) -> bool {
        self.lead.as_ref().is_some_and(Lead::is_blank)
    }

    pub(super) fn held(&self) -> usize {
        let lead = self.lead.as_ref().map_or(0, Lead::held);
        lead + self.tail.len() + self.hold.as_ref().map_or(0, |hold| hold.text.len())
    }

    /// Whether what comes next stands in text, and not in code, or behind a backtick that is open on its line.
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

    /// Follows the prose of the answer from here on.
    pub(super) fn follow(&mut self) {
        self.prose = Some(Prose::default());
    }

    /// The prose so far.
    pub(super) fn prose(&mut self) -> Option<&mut Prose> {
        self.prose.as_mut()
    }

    /// The line that what comes next stands in.
    pub(super) fn line(&self) -> Line {
        let mut line = self.prose.as_ref().map(Prose::line).unwrap_or_default();
        if let Some(lead) = &self.lead {
            line.text(lead.text());
        }
        line.text(&self.tail);
        line
    }

    /// What is not its text stands here: nothing goes on across it.
    pub(super) fn break_off(&mut self, out: &mut dyn Output) {
        if !self.is_blank() {
            self.end_lead(out);
        }
        self.end_tail(out);
        self.code.boundary();
        self.cut = self.sent;
    }

    /// Sets whether marks behind open backticks are no code; returns what it was.
    pub(super) fn decided(&mut self, decided: bool) -> bool {
        std::mem::replace(&mut self.decided, decided)
    }

    /// Whether text goes out with nothing to think of.
    #[inline]
    pub(super) fn passes(&self, text: &str) -> bool {
        !matches!(text.as_bytes().first(), Some(b'<' | b'[' | 0xE2)) && self.goes_on()
    }

    /// Whether text in which no markup begins does.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        !self.cut && self.lead.is_none() && self.hold.is_none() && self.tail.is_empty()
    }

    /// Text of the answer that goes out.
    #[inline]
    pub(super) fn text(&mut self, text: &str, at: impl FnOnce() -> Place, out: &mut dyn Output) {
        self.pass(text, None, at, out);
    }

    /// The same, where its signs may be known.
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

    /// The part of a text that is Markdown: what stands behind a comment that is open, and nothing of a call's form.
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

    /// Says whether what comes is the written form of a call, in which nothing is Markdown.
    pub(super) fn set_form(&mut self, is_form: bool, out: &mut dyn Output) {
        if is_form {
            self.end_lead(out);
        }
        self.end_tail(out);
        self.code.boundary();
        self.is_form = is_form;
    }

    /// The next token of the answer. Gives a mark that is taken out.
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

    /// Whether text goes on with a mark that has begun directly before it.
    fn continues(&self, text: &str) -> bool {
        let short = !self.tail.is_empty() && self.tail.len() + text.len() <= marks::LONGEST;
        short && marks::at([&self.tail, text].concat().as_bytes()) == Seen::Part
    }

    /// Whether a mark counts where it stands, code aside.
    fn counts(&self, found: Candidate) -> bool {
        let Candidate { mark, .. } = found;
        let of_structure = self.structure && mark.is_thinking() && mark.kind == Kind::Close;
        !self.comment.is_open() && mark.kind != Kind::CloseOwn && !of_structure
    }

    /// Markup that stays as it is.
    fn markup(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        if self.code.inside() == Inside::Fence && matches!(token, Token::Tag(_) | Token::CommentOpen) {
            // Its line may not be in the fence any more.
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

    /// A `<thinking>` that begins a structure stays as it is.
    pub(super) fn keep_thinking(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        self.structure = true;
        self.cut = false;
        self.end_lead(out);
        self.end_tail(out);
        self.late.tag("thinking", raw, at, out);
        self.text(raw, || at, out);
    }

    /// A mark, with nothing waiting before it.
    fn mark(&mut self, found: Candidate, raw: &str, at: Place, out: &mut dyn Output) -> Option<Fate> {
        if self.tail.contains(['`', '\n']) {
            // Only in quoted attributes: too odd to be taken apart.
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

    /// A mark in code.
    fn keep(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        self.code.boundary();
        self.line_break(raw);
        self.send(raw, raw, || at, out);
    }

    /// A mark's own line breaks count, its backticks do not.
    fn line_break(&mut self, raw: &str) {
        if raw.contains('\n') {
            self.code.text("\n", false);
        }
    }

    /// Takes a mark out of the answer.
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

    /// The end of the reply: what waits is decided. Gives a mark that is taken out after all.
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

    /// Unfinished markup is text.
    fn end_tail(&mut self, out: &mut dyn Output) {
        if !self.tail.is_empty() {
            let (tail, tail_at) = (std::mem::take(&mut self.tail), self.tail_at);
            self.text(&tail, || tail_at, out);
        }
    }
}

/// Whether a text token is markup that came to no end, and could go on behind what is taken out next.
fn is_unfinished(text: &str) -> bool {
    // What else follows a `<` makes it a sign of its own.
    let begins = |next: &u8| matches!(next, b'/' | b'!' | b'<' | b'|') || next.is_ascii_alphabetic();
    // Text behind a tag that failed may have come with it.
    let open = || {
        let mut lexer = Markup::new("", usize::MAX);
        lexer.push(text, &mut |_, _| {});
        lexer.carry().len() == text.len()
    };
    text.starts_with('<') && text.as_bytes().get(1).is_none_or(begins) && (text.len() < 2 || open())
        || text.starts_with(['[', '◁']) && marks::at(text.as_bytes()) == Seen::Part
}
