//! Phases without `<thinking>` around them: thinking that lacks its tags.

use super::context;
use super::context::Line;
use super::late::{self, Late};
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::Name;
use crate::dialect::Output;
use crate::lex::markup::{Tag, TagKind, Token};
use crate::span::Place;

impl Reader {
    /// A tag at the top level that belongs to phases without `<thinking>`. Whether it is used up.
    pub(super) fn loose_tag(
        &mut self,
        name: Name,
        exact: bool,
        tag: &Tag<'_>,
        at: Place,
        out: &mut dyn Output,
    ) -> bool {
        let close = tag.kind == TagKind::Close;
        match name {
            // One that is only mentioned stands in the middle of a line.
            Name::Phase if !close && (self.outside.is_blank() || self.context.line != Line::Text) => {
                self.loose_phase(tag, at, out);
                true
            }
            Name::Phase if close && self.thinking.close_nested() => {
                context::check_tag(name, exact, tag, at, out);
                true
            }
            Name::Thinking if self.thinking.is_loose() && !self.seen.contains(&"final") => {
                context::check_tag(name, exact, tag, at, out);
                self.take_loose_text(out);
                self.thinking.tag_came((!close).then_some(at));
                if !close {
                    // The tag comes after its first phase.
                    self.mode = Mode::Thinking;
                }
                true
            }
            _ => false,
        }
    }

    fn loose_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let len = tag.raw.len();
        if self.seen.contains(&"final") {
            late::check_attributes(Name::Phase, tag, at, out);
            let message = "a phase stands in `<thinking>`, before `<final>`".to_owned();
            self.begin_late(Late::new(Name::Phase, rules::TAG_MISPLACED, message, at, len));
            if tag.kind == TagKind::SelfClosing {
                self.end_late(at.offset + len, out);
            }
            return;
        }
        let further = self.seen.contains(&"thinking");
        if !self.thinking.is_loose() {
            let message = "`<phase>` stands in `<thinking>`";
            let repair =
                if further { "read as a further phase" } else { "read as thinking that lacks its tag" };
            context::report(rules::TAG_MISPLACED, at, len, message, repair, out);
        }
        if further {
            self.thinking.loosen();
            self.take_loose_text(out);
        } else {
            self.begin(Name::Thinking, at, len, out);
            self.thinking.begin_tagless();
        }
        self.mode = Mode::Thinking;
        self.thinking_token(Token::Tag(*tag), at, out);
        if self.thinking.is_left() {
            self.mode = Mode::Outside;
        }
    }

    /// Text behind a phase without `<thinking>`, now that thinking goes on or the answer begins: text of that phase.
    pub(super) fn take_loose_text(&mut self, out: &mut dyn Output) {
        if self.thinking.is_loose() && !self.seen.contains(&"final") {
            let outside = self.outside.take();
            self.thinking.loose_text(outside.runs(), outside.is_blank(), out);
        }
    }

    /// An element begins too late.
    pub(super) fn begin_late(&mut self, late: Late) {
        let further = late.is_thought() && self.had_late_thought;
        self.had_late_thought |= late.is_thought();
        self.late = Some(if further { late.further() } else { late });
        self.mode = Mode::Late;
        self.in_comment = false;
    }

    pub(super) fn late_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(late) = &mut self.late else { return };
        match late.token(token, at, out) {
            late::Outcome::Open => {}
            late::Outcome::Over => self.end_late(at.offset + token.raw().len(), out),
            late::Outcome::LeftOpen => {
                self.end_late(at.offset, out);
                self.token(token, at, out);
            }
        }
    }

    /// The element that came too late ends at `end`.
    pub(super) fn end_late(&mut self, end: usize, out: &mut dyn Output) {
        let Some(late) = self.late.take() else { return };
        self.mode = if late.end(end, out) { Mode::Thinking } else { Mode::Outside };
    }

    /// Whether there is a `<thinking>` tag.
    pub(super) fn has_thinking_tag(&self) -> bool {
        self.seen.contains(&"thinking") && !self.thinking.is_tagless()
    }
}
