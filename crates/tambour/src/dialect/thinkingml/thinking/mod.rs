//! The content of `<thinking>`: text and tags directly in it and in its phases.

mod early_final;
mod phase;

use super::context::{self, Context, Quote};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::entity::Entities;
use crate::lex::markup::{Tag, TagKind, Token};
use crate::span::Place;
pub(super) use early_final::EarlyFinal;

/// Effect of a token on `<thinking>`.
pub(super) enum Outcome<'a> {
    /// Thinking continues.
    Open,
    /// Later text is at the top level.
    Outside,
    /// `<final>` begins with a tag of `len` bytes, and thinking has ended. `rest` is unread.
    Final { at: Place, len: usize, rest: Option<(Token<'a>, Place)> },
    /// The held `<final>` is the answer, and thinking has ended. `rest` is unread.
    Answer { answer: Quote, rest: (Token<'a>, Place) },
    /// The held text is to be read again as text, then `rest`.
    Release { hold: EarlyFinal, rest: (Token<'a>, Place) },
    /// A `<final>` is held from here on: the blanks after it and `rest` are unread.
    Held { blanks: (String, Place), rest: (Token<'a>, Place) },
    /// A late summary begins.
    Serp,
}

/// State of `<thinking>`.
#[derive(Default)]
pub(super) struct Thinking {
    at: Place,
    /// Set while an HTML comment is open; its content is text (T-027).
    in_comment: bool,
    entities: Entities,
    /// Set while its tag is open.
    open: bool,
    /// Set if phases are outside of it.
    loose: bool,
    /// Set if it has no tag.
    tagless: bool,
    part: Part,
    /// Start of the current phase.
    phase_at: Place,
    /// Set once a real `<phase>` has begun.
    phased: bool,
    /// Extent of the text before the first phase.
    unphased: Option<(Place, usize)>,
    /// Set if the current run of text directly in `<thinking>` was reported.
    stray: bool,
    last_id: u64,
    /// The title attribute of `<phase>`, with place and length of the tag, until a `<title>` follows or is
    /// known to be missing.
    attribute: Option<(String, Place, usize)>,
    /// Number of phases closed by another one inside them: each may still have its closing tag.
    nested: u32,
    /// Set if `<final>` closed it; a later closing tag belongs to it.
    forgotten: bool,
    /// A `<final>` in a phase, and the text after it.
    hold: Option<EarlyFinal>,
    /// Set if a `<final>` in the middle of a line of the current phase is known to be text.
    literal: bool,
    /// Set if every `<final>` is text, since it is read a second time.
    again: bool,
    /// Decision on tags that end thinking in the middle of a line: text, or not; `None` while undecided.
    mentions: Option<bool>,
    /// `<final>` at the start of a line and the blanks after it, under `thinkingml.lone_final=close`.
    lone: Option<(String, Place)>,
    /// The last `<final>...</final>` inside a phase after which thinking continued: the answer if no other
    /// one follows.
    quoted: Option<Quote>,
    /// Set if a phase, and `<thinking>`, is still open after the answer that interrupted it.
    phase_open_late: bool,
    thinking_open_late: bool,
}

/// Position of the reader in `<thinking>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Part {
    /// Directly in `<thinking>`.
    #[default]
    Direct,
    /// In a phase without a title so far, and the text read instead.
    Untitled { text: String, at: Place },
    /// In a title; `before` is the text before it in the phase.
    Title { text: String, at: Place, before: String },
    /// In the text of a phase.
    Text,
}

impl Thinking {
    /// Begins `<thinking>`.
    pub(super) fn begin(&mut self, at: Place) {
        *self = Thinking { at, open: true, ..Thinking::default() };
    }

    /// Begins thinking with its first phase, without a tag.
    pub(super) fn begin_tagless(&mut self) {
        (self.open, self.loose, self.tagless) = (false, true, true);
    }

    /// Records a further phase outside of it.
    pub(super) fn loosen(&mut self) {
        self.loose = true;
    }

    /// Handles a tag that comes after phases without it: `<thinking>` at a place, or `</thinking>`.
    pub(super) fn tag_came(&mut self, opening: Option<Place>) {
        self.loose = false;
        if let Some(at) = opening {
            (self.at, self.open, self.tagless) = (at, true, false);
        }
    }

    /// Returns whether phases are outside of it.
    pub(super) fn is_loose(&self) -> bool {
        self.loose
    }

    /// Returns whether `</thinking>` may be a mere mention here.
    pub(super) fn may_mention(&self) -> bool {
        self.open && self.mentions.is_none() && !self.in_comment && self.hold.is_none() && self.lone.is_none()
    }

    /// Sets whether tags that end thinking in the middle of a line are text.
    pub(super) fn reads_mentions(&mut self, text: Option<bool>) {
        self.mentions = text;
        self.again = text == Some(true);
    }

    /// Returns whether it has no tag.
    pub(super) fn is_tagless(&self) -> bool {
        self.tagless
    }

    /// Returns whether later text is at the top level: after a phase without `<thinking>` around it.
    pub(super) fn is_left(&self) -> bool {
        !self.open && self.part == Part::Direct
    }

    /// Consumes the closing tag of a phase without `<thinking>` that another phase closed; returns whether
    /// one was due.
    pub(super) fn close_nested(&mut self) -> bool {
        let nested = self.loose && self.nested > 0;
        self.nested -= u32::from(nested);
        nested
    }

    /// Consumes the closing tag after a `<final>` that closed thinking; returns whether it was due.
    pub(super) fn close_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.forgotten)
    }

    /// Handles a closing tag, after the answer, of an element that the answer interrupted.
    pub(super) fn closed_late(&mut self, name: Name) {
        match name {
            Name::Phase => self.phase_open_late = false,
            _ => self.thinking_open_late = false,
        }
    }

    pub(super) fn held(&self) -> usize {
        let part = match &self.part {
            Part::Untitled { text, .. } => text.len(),
            Part::Title { before, .. } => before.len(),
            Part::Direct | Part::Text => 0,
        };
        let lone = self.lone.as_ref().map_or(0, |(raw, _)| raw.len());
        self.entities.held() + part + lone + self.hold.as_ref().map_or(0, EarlyFinal::len)
    }

    /// Returns whether text continues a phase.
    #[inline]
    pub(super) fn flows(&self) -> bool {
        matches!(self.part, Part::Text) && self.hold.is_none() && self.lone.is_none()
    }

    /// Emits text of the phase.
    #[inline]
    pub(super) fn flow(&mut self, text: &str, out: &mut dyn Output) {
        self.entities.push(text, &mut |text| out.intent(Intent::PhaseText(text)));
    }

    /// Ends a run of text.
    pub(super) fn flush(&mut self, out: &mut dyn Output) {
        self.entities.flush(&mut |text| out.intent(Intent::PhaseText(text)));
    }

    /// Handles the next token.
    pub(super) fn token<'a>(
        &mut self,
        token: Token<'a>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome<'a> {
        if !matches!(token, Token::Text(_)) {
            self.flush(out);
        }
        if self.hold.is_some() {
            return self.held_token(token, at, context, out);
        }
        if let Some((raw, start)) = self.lone.take() {
            return self.lone_final(raw, start, (token, at), context, out);
        }
        match token {
            Token::Text(_) | Token::Reasoning(..) => {}
            Token::Tag(tag) => return self.phase_tag(&tag, at, context, out),
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose | Token::CommentEnd(_) => self.in_comment = false,
            Token::Mark(_) => context::embedded_marker(at, "kept as text", out),
        }
        self.phase_text(token.raw(), at, out);
        Outcome::Open
    }

    /// Emits text after a phase without `<thinking>` as text of that phase, because thinking continues or the
    /// answer begins.
    pub(super) fn loose_text<'a>(
        &mut self,
        runs: impl Iterator<Item = (&'a str, Place)>,
        blank: bool,
        out: &mut dyn Output,
    ) {
        self.stray = false;
        if !blank {
            out.intent(Intent::PhaseText("\n"));
        }
        for (text, at) in runs {
            self.stray_text(text, at, out);
        }
        self.flush(out);
    }

    /// Closes open elements at the end of the input.
    pub(super) fn close(&mut self, end: Place, out: &mut dyn Output) {
        if self.part != Part::Direct {
            context::unclosed(Name::Phase, self.phase_at, end.offset, out);
            self.end_phase(end, out);
        }
        if self.open {
            context::unclosed(Name::Thinking, self.at, end.offset, out);
        }
        self.end_thinking(out);
    }

    /// Reports elements that the answer interrupted and nothing closed after it.
    pub(super) fn left_open_late(&self, end: Place, out: &mut dyn Output) {
        if self.phase_open_late {
            context::unclosed(Name::Phase, self.phase_at, end.offset, out);
        }
        if self.thinking_open_late {
            context::unclosed(Name::Thinking, self.at, end.offset, out);
        }
    }

    /// Reports a missing `</thinking>` that `<final>` replaced.
    pub(super) fn left_open(&mut self, end: Place, out: &mut dyn Output) {
        if self.close_forgotten() {
            context::unclosed(Name::Thinking, self.at, end.offset, out);
        }
    }

    fn phase_tag<'a>(
        &mut self,
        tag: &Tag<'_>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome<'a> {
        let len = tag.raw.len();
        let close = tag.kind == TagKind::Close;
        let found = structure::find(tag.name);
        if self.in_comment {
            // In a comment only the end of an open element counts, so that an unclosed comment swallows
            // nothing.
            let ends = match found {
                Some((Name::Phase, _)) => close && self.part != Part::Direct,
                Some((Name::Title, _)) => close && matches!(self.part, Part::Title { .. }),
                Some((Name::Thinking, _)) => close,
                _ => false,
            };
            if !ends {
                self.phase_text(tag.raw, at, out);
                return Outcome::Open;
            }
            self.in_comment = false;
        }
        let Some((name, exact)) = found else {
            let message = format!("`{}` is not a tag of ThinkingML", tag.name);
            let report = Report::new(rules::UNEXPECTED_TAG, at, at.offset + len, message);
            out.report(report.row("T-037").repaired("kept as text"));
            self.phase_text(tag.raw, at, out);
            return Outcome::Open;
        };
        let in_phase = self.part != Part::Direct;
        let mut outcome = Outcome::Open;
        match (name, close) {
            (Name::Thinking, true) if self.mentions == Some(true) => {
                self.literal(rules::TAG_MISPLACED, tag, at, out);
            }
            (Name::Thinking, true) => {
                context::check_tag(name, exact, tag, at, out);
                if in_phase {
                    context::unclosed(Name::Phase, self.phase_at, at.offset, out);
                    self.end_phase(at, out);
                }
                self.end_thinking(out);
                self.open = false;
                outcome = Outcome::Outside;
            }
            (Name::Phase, false) => {
                context::check_tag(name, exact, tag, at, out);
                if in_phase {
                    context::report(
                        rules::PHASE_NESTED,
                        at,
                        len,
                        "a phase begins inside a phase",
                        "outer phase closed first",
                        out,
                    );
                    self.nested += 1;
                    self.end_phase(at, out);
                }
                self.begin_phase(tag, at, out);
                if tag.kind == TagKind::SelfClosing {
                    self.end_phase(at, out);
                }
            }
            (Name::Phase, true) if in_phase => {
                context::check_tag(name, exact, tag, at, out);
                self.end_phase(at, out);
                if self.is_left() {
                    outcome = Outcome::Outside;
                }
            }
            (Name::Phase, true) if self.nested > 0 => {
                context::check_tag(name, exact, tag, at, out);
                self.nested -= 1;
            }
            (Name::Title, _) if in_phase => self.title_tag(exact, tag, at, out),
            (Name::Final, false) if !in_phase => {
                outcome = self.final_in_thinking(exact, tag, at, context, out);
            }
            (Name::Final, false) => self.final_in_phase(tag, at, context, out),
            (Name::Final, true) => self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out),
            (Name::Serp, false) if !in_phase => {
                self.stray = false;
                outcome = Outcome::Serp;
            }
            (Name::Thinking, false) if !in_phase && !self.phased && self.unphased.is_none() => {
                context::report(
                    rules::THINKING_DUPLICATE,
                    at,
                    len,
                    "`<thinking>` is opened twice",
                    "left out",
                    out,
                );
            }
            (Name::Thinking, false) => self.literal(rules::THINKING_DUPLICATE, tag, at, out),
            _ => self.literal(rules::TAG_MISPLACED, tag, at, out),
        }
        self.stray &= !matches!(name, Name::Phase | Name::Thinking);
        outcome
    }

    /// Emits a tag as text.
    fn literal(&mut self, rule: &'static Rule, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let message = format!("`{}` does not stand here", tag.raw);
        context::report(rule, at, tag.raw.len(), message, "kept as text", out);
        self.phase_text_unchecked(tag.raw, at, out);
    }
}
