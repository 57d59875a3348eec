//! Elements that come too late: left out, or read as late thoughts. One finding covers the whole element.

use super::context;
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::{Report, Rule};
use crate::lex::entity::Entities;
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_space;
use crate::span::Place;

/// Effect of a token on a late element.
pub(super) enum Outcome {
    /// The element continues.
    Open,
    /// The element has ended.
    Over,
    /// The element was left open before the token, which is unread.
    LeftOpen,
}

/// An element that comes too late.
pub(super) struct Late {
    name: Name,
    rule: &'static Rule,
    message: String,
    at: Place,
    /// Offset after the opening tag.
    opened: usize,
    /// Set if the element is in an open `<thinking>`, which continues after it.
    in_thinking: bool,
    entities: Entities,
    /// Set once text of it was emitted, and if markup followed that text.
    begun: bool,
    gap: bool,
}

impl Late {
    pub(super) fn new(name: Name, rule: &'static Rule, message: String, at: Place, len: usize) -> Late {
        let opened = at.offset + len;
        let (in_thinking, entities) = (false, Entities::default());
        Late { name, rule, message, at, opened, in_thinking, entities, begun: false, gap: false }
    }

    /// Marks the element as part of an open `<thinking>`, which continues after it.
    pub(super) fn in_thinking(self) -> Late {
        Late { in_thinking: true, ..self }
    }

    /// Marks the element as a further late thought, which begins a new paragraph.
    pub(super) fn further(self) -> Late {
        Late { begun: true, gap: true, ..self }
    }

    pub(super) fn held(&self) -> usize {
        self.entities.held()
    }

    /// Returns whether the text is a thought after the answer.
    pub(super) fn is_thought(&self) -> bool {
        matches!(self.name, Name::Thinking | Name::Phase)
    }

    /// Emits text of a late thought: its phases and titles are paragraphs.
    fn thought(&mut self, text: &str, out: &mut dyn Output) {
        let inner = if self.begun && !self.gap { text } else { text.trim_start_matches(is_space) };
        if inner.is_empty() {
            return;
        }
        if self.begun && self.gap {
            out.intent(Intent::Aside { kind: AsideKind::Thought, text: "\n" });
        }
        (self.begun, self.gap) = (true, false);
        out.intent(Intent::Aside { kind: AsideKind::Thought, text: inner });
    }

    /// Returns whether a tag other than its own closing tag ends the element.
    fn ends_at(&self, tag: &Tag<'_>, name: Name) -> bool {
        let open = tag.kind == TagKind::Open;
        match (self.in_thinking, name) {
            (true, Name::Thinking | Name::Phase) => true,
            // A late phase may be the first of several.
            (_, Name::Thinking) if self.name == Name::Phase => true,
            _ => open && name.is_top() && name != self.name,
        }
    }

    /// Handles the next token.
    pub(super) fn token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) -> Outcome {
        if !matches!(token, Token::Text(_)) {
            self.flush(out);
        }
        if let Token::Tag(tag) = token
            && let Some((name, exact)) = structure::find(tag.name)
        {
            if name == self.name && tag.kind == TagKind::Close {
                context::check_tag(name, exact, &tag, at, out);
                return Outcome::Over;
            }
            if self.ends_at(&tag, name) {
                return Outcome::LeftOpen;
            }
            if self.is_thought() && matches!(name, Name::Phase | Name::Title) {
                self.gap = true;
                context::check_tag(name, exact, &tag, at, out);
                check_attributes(name, &tag, at, out);
                return Outcome::Open;
            }
        }
        if self.is_thought() {
            match token {
                Token::Text(text) => self.text(text, out),
                other => self.thought(other.raw(), out),
            }
        }
        Outcome::Open
    }

    fn text(&mut self, text: &str, out: &mut dyn Output) {
        let mut entities = std::mem::take(&mut self.entities);
        entities.push(text, &mut |text| self.thought(text, out));
        self.entities = entities;
    }

    /// Ends a run of text.
    pub(super) fn flush(&mut self, out: &mut dyn Output) {
        let mut entities = std::mem::take(&mut self.entities);
        entities.flush(&mut |text| self.thought(text, out));
    }

    /// Ends the element at `end`. Returns whether an open `<thinking>` continues after it.
    pub(super) fn end(mut self, end: usize, out: &mut dyn Output) -> bool {
        self.flush(out);
        let repair = if self.is_thought() { "read as a late thought" } else { "left out" };
        let report = Report::new(self.rule, self.at, end.max(self.opened), self.message);
        out.report(report.repaired(repair));
        self.in_thinking
    }
}

/// Reports attributes of a late phase, other than its number, that are lost.
pub(super) fn check_attributes(name: Name, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
    let number = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit());
    let plain = tag.rest().trim().is_empty()
        || tag
            .rest()
            .trim()
            .strip_prefix("id=\"")
            .and_then(|rest| rest.strip_suffix('"'))
            .is_some_and(number);
    if name == Name::Phase && tag.kind != TagKind::Close && !plain {
        let message = "a phase is written exactly `<phase id=\"N\">`";
        context::report(rules::PHASE_ATTR_INVALID, at, tag.raw.len(), message, "left out", out);
    }
}
