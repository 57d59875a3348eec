//! Elements that come too late: left out, or read as late thoughts. Their findings cover all of them.

use super::context;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::{Report, Rule};
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_space;
use crate::span::Place;

/// An element that came too late.
pub(super) struct Late {
    name: Name,
    rule: &'static Rule,
    message: String,
    at: Place,
    /// Offset after its opening tag.
    opened: usize,
    /// Where the reader goes on after it.
    back: Mode,
    /// Whether text of it has been handed on, and whether markup came since.
    begun: bool,
    gap: bool,
}

impl Late {
    pub(super) fn new(name: Name, rule: &'static Rule, message: String, at: Place, len: usize) -> Late {
        let opened = at.offset + len;
        Late { name, rule, message, at, opened, back: Mode::Outside, begun: false, gap: false }
    }

    /// The same in an open `<thinking>`, which goes on after it.
    pub(super) fn in_thinking(self) -> Late {
        Late { back: Mode::Thinking, ..self }
    }

    /// Whether its text is a thought that came after the answer.
    fn is_thought(&self) -> bool {
        matches!(self.name, Name::Thinking | Name::Phase)
    }

    /// Text of a late thought: its phases and titles are paragraphs.
    pub(super) fn thought(&mut self, text: &str, out: &mut dyn Output) {
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

    /// Whether a tag ends it without being its own closing tag.
    fn ends_at(&self, tag: &Tag<'_>, name: Name) -> bool {
        let open = tag.kind == TagKind::Open;
        match (self.back, name) {
            (Mode::Thinking, Name::Thinking | Name::Phase) => true,
            // A late phase may be the first of several.
            (_, Name::Thinking) if self.name == Name::Phase => true,
            _ => open && name.is_top() && name != self.name,
        }
    }
}

impl Reader {
    pub(super) fn begin_late(&mut self, late: Late) {
        // A further one is a paragraph of its own.
        let begun = late.is_thought() && self.had_late_thought;
        self.had_late_thought |= late.is_thought();
        self.late = Some(Late { begun, gap: begun, ..late });
        self.mode = Mode::Late;
        self.in_comment = false;
    }

    pub(super) fn late_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(late) = &mut self.late else { return };
        if let Token::Tag(tag) = token
            && let Some((name, exact)) = structure::find(tag.name)
        {
            if name == late.name && tag.kind == TagKind::Close {
                context::check_tag(name, exact, &tag, at, out);
                return self.end_late(at.offset + tag.raw.len(), out);
            }
            if late.ends_at(&tag, name) {
                self.end_late(at.offset, out);
                return self.token(token, at, out);
            }
            if late.is_thought() && matches!(name, Name::Phase | Name::Title) {
                late.gap = true;
                context::check_tag(name, exact, &tag, at, out);
                return self.late_attributes(name, &tag, at, out);
            }
        }
        if !late.is_thought() {
            return;
        }
        match token {
            Token::Text(text) => self.entities.push(text, &mut |text| late.thought(text, out)),
            other => late.thought(other.raw(), out),
        }
    }

    /// The element ends at `end`.
    pub(super) fn end_late(&mut self, end: usize, out: &mut dyn Output) {
        self.flush(out);
        let Some(late) = self.late.take() else { return };
        let repair = if late.is_thought() { "read as a late thought" } else { "left out" };
        let report = Report::new(late.rule, late.at, end.max(late.opened), late.message);
        out.report(report.repaired(repair));
        self.mode = late.back;
    }

    /// A phase after the answer.
    pub(super) fn late_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        self.late_attributes(Name::Phase, tag, at, out);
        let message = "a phase stands in `<thinking>`, before `<final>`".to_owned();
        self.begin_late(Late::new(Name::Phase, rules::TAG_MISPLACED, message, at, tag.raw.len()));
    }

    /// What a phase says beside its number is lost where it is none any more.
    fn late_attributes(&self, name: Name, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
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
}
