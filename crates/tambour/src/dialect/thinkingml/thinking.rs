//! The inside of `<thinking>`: phases, titles, and what to do with a `<final>` that may be only text.

use super::context;
use super::late::Late;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;

/// What is known of `<thinking>`.
#[derive(Default)]
pub(super) struct Thinking {
    pub(super) at: Place,
    /// Whether its tag is open.
    pub(super) open: bool,
    /// Whether phases stand outside of it.
    pub(super) loose: bool,
    /// Whether its tag never came.
    pub(super) tagless: bool,
    pub(super) part: Part,
    /// Where the phase under way starts.
    pub(super) phase_at: Place,
    /// Whether a real `<phase>` has begun.
    pub(super) phased: bool,
    /// Text before the first phase: start, and offset after it.
    pub(super) unphased: Option<(Place, usize)>,
    /// Whether the text run under way, directly in `<thinking>`, has been reported.
    pub(super) stray: bool,
    pub(super) last_id: u64,
    /// The title that `<phase>` carries as an attribute, and where the tag stands, until a `<title>` comes or none.
    pub(super) attribute: Option<(String, Place, usize)>,
    /// Phases closed because another one began inside them: each may still bring its closing tag.
    pub(super) nested: u32,
    /// Whether `<final>` closed it; a closing tag that comes later belongs to it.
    pub(super) forgotten: bool,
    /// A `<final>` in a phase and what followed it.
    pub(super) hold: Option<Hold>,
    /// Whether `<final>` in the middle of a line of the phase under way is known to be text.
    pub(super) literal: bool,
    /// Whether every `<final>` is, since it is read again.
    pub(super) again: bool,
    /// `<final>` at the start of a line and the blanks after it, with `thinkingml.lone_final=close`.
    pub(super) lone: Option<(String, Place)>,
    /// The last `<final>...</final>` inside a phase after which thinking went on: the answer if no other one comes.
    pub(super) quoted: Option<Hold>,
    pub(super) phase_open_late: bool,
    pub(super) thinking_open_late: bool,
}

/// Where in `<thinking>` the reader is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Part {
    /// Directly in `<thinking>`.
    #[default]
    Direct,
    /// In a phase whose title has not come; text that came instead.
    Untitled { text: String, at: Place },
    /// In a title.
    Title { text: String, at: Place, before: String },
    /// In the text of a phase.
    Text,
}

/// Everything since a `<final>` inside a phase, as it was written.
pub(super) struct Hold {
    pub(super) raw: String,
    pub(super) tag_len: usize,
    pub(super) at: Place,
    /// Whether it stands in the middle of a line, so that one at the start of a line goes before it.
    pub(super) mentioned: bool,
    /// Whether it stands directly in `<thinking>`.
    pub(super) direct: bool,
    pub(super) closed_phase: bool,
    pub(super) closed_thinking: bool,
}

/// Bytes of text before a title that are held back, and of a title.
pub(super) const TITLE_LIMIT: usize = 1024;

/// Bytes of a title as it is written: each may be an entity of six. What reaches this is too long in any case.
const TITLE_WRITTEN: usize = 6 * (TITLE_LIMIT + 1);

impl Thinking {
    pub(super) fn begin(&mut self, at: Place) {
        *self = Thinking { at, open: true, ..Thinking::default() };
    }

    /// Decoded text of the phase under way.
    pub(super) fn plain(&self, text: &str, out: &mut dyn Output) {
        out.intent(Intent::PhaseText(text));
    }

    pub(super) fn held(&self) -> usize {
        let part = match &self.part {
            Part::Untitled { text, .. } => text.len(),
            Part::Title { before, .. } => before.len(),
            Part::Direct | Part::Text => 0,
        };
        let lone = self.lone.as_ref().map_or(0, |(raw, _)| raw.len());
        part + lone + self.hold.as_ref().map_or(0, |hold| hold.raw.len())
    }

    /// Whether text is text of a phase.
    #[inline]
    pub(super) fn flows(&self) -> bool {
        matches!(self.part, Part::Text) && self.hold.is_none() && self.lone.is_none()
    }

    /// A closing tag that came after the answer closed what it interrupted.
    pub(super) fn closed_late(&mut self, name: Name) {
        match name {
            Name::Phase => self.phase_open_late = false,
            _ => self.thinking_open_late = false,
        }
    }
}

impl Reader {
    pub(super) fn thinking_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.thinking.hold.is_some() {
            return self.held_token(token, at, out);
        }
        if self.thinking.lone.is_some() && self.lone_final(&token, at, out) {
            return;
        }
        match token {
            Token::Text(text) => self.phase_text(text, at, out),
            Token::Tag(tag) => self.phase_tag(&tag, at, out),
            other => {
                self.plain_token(&other, at, out);
                self.phase_text(other.raw(), at, out);
            }
        }
    }

    /// Text at the present place: of a phase, of a title, or astray.
    pub(super) fn phase_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        match &mut self.thinking.part {
            Part::Text => {
                self.entities.push(text, &mut |text| out.intent(Intent::PhaseText(text)));
            }
            Part::Direct => self.stray_text(text, at, out),
            Part::Untitled { text: kept, at: start } => {
                let text = if kept.is_empty() { trim_start(text, start, at) } else { text };
                let room = text.floor_char_boundary(TITLE_LIMIT - kept.len());
                kept.push_str(&text[..room]);
                if room < text.len() {
                    let rest = text[room..].to_owned();
                    self.end_untitled(out);
                    self.entities.push(&rest, &mut |text| out.intent(Intent::PhaseText(text)));
                }
            }
            Part::Title { text: title, .. } => {
                let room = text.floor_char_boundary(TITLE_WRITTEN.saturating_sub(title.len()));
                title.push_str(&text[..room]);
                if room < text.len() {
                    let rest = text[room..].to_owned();
                    self.end_title(out);
                    self.entities.push(&rest, &mut |text| out.intent(Intent::PhaseText(text)));
                }
            }
        }
    }

    /// Text directly in `<thinking>`: it belongs to the previous phase, or makes one (T-030, T-038).
    pub(super) fn stray_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if is_blank(text) {
            if self.thinking.phased || self.thinking.unphased.is_some() {
                self.entities.push(text, &mut |text| out.intent(Intent::PhaseText(text)));
            }
            return;
        }
        let mut start = at;
        let inner = trim_start(text, &mut start, at);
        // The first character stands for the run, whose end is not known yet.
        let end = start.offset + inner.chars().next().map_or(0, char::len_utf8);
        if self.thinking.phased {
            if !std::mem::replace(&mut self.thinking.stray, true) {
                let report = Report::new(rules::TEXT_BETWEEN_PHASES, start, end, "text between phases");
                out.report(report.repaired("read as text of the previous phase"));
            }
        } else if self.thinking.unphased.is_none() {
            self.thinking.unphased = Some((start, end));
            out.intent(Intent::Phase("".into(), start));
        }
        self.entities.push(text, &mut |text| out.intent(Intent::PhaseText(text)));
    }

    pub(super) fn phase_tag(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let len = tag.raw.len();
        let close = tag.kind == TagKind::Close;
        let found = structure::find(tag.name);
        if self.in_comment {
            // In a comment only the end of what is open counts, so that a comment left open swallows nothing.
            let ends = match found {
                Some((Name::Phase, _)) => close && self.thinking.part != Part::Direct,
                Some((Name::Title, _)) => close && matches!(self.thinking.part, Part::Title { .. }),
                Some((Name::Thinking, _)) => close,
                _ => false,
            };
            if !ends {
                return self.phase_text(tag.raw, at, out);
            }
            self.in_comment = false;
        }
        let Some((name, exact)) = found else {
            let message = format!("`{}` is not a tag of ThinkingML", tag.name);
            let report = Report::new(rules::UNEXPECTED_TAG, at, at.offset + len, message);
            out.report(report.row("T-037").repaired("kept as text"));
            return self.phase_text(tag.raw, at, out);
        };
        let in_phase = self.thinking.part != Part::Direct;
        match (name, close) {
            (Name::Thinking, true) => {
                context::check_tag(name, exact, tag, at, out);
                if in_phase {
                    context::unclosed(Name::Phase, self.thinking.phase_at, at.offset, out);
                    self.end_phase(at, out);
                }
                self.end_thinking(out);
                self.thinking.open = false;
                self.mode = Mode::Outside;
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
                    self.thinking.nested += 1;
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
                self.after_phase();
            }
            (Name::Phase, true) if self.thinking.nested > 0 => {
                context::check_tag(name, exact, tag, at, out);
                self.thinking.nested -= 1;
            }
            (Name::Title, _) if in_phase => self.title_tag(exact, tag, at, out),
            (Name::Final, false) if !in_phase => self.final_in_thinking(exact, tag, at, out),
            (Name::Final, false) => self.final_in_phase(tag, at, out),
            (Name::Final, true) => self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out),
            (Name::Serp, false) if !in_phase => {
                let message = "`<serp>` stands before `<thinking>`".to_owned();
                let late = Late::new(name, rules::SERP_AFTER_THINKING, message, at, len).in_thinking();
                self.begin_late(late);
                self.thinking.stray = false;
                if tag.kind == TagKind::SelfClosing {
                    self.end_late(at.offset + len, out);
                }
            }
            (Name::Thinking, false)
                if !in_phase && !self.thinking.phased && self.thinking.unphased.is_none() =>
            {
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
        self.thinking.stray &= !matches!(name, Name::Phase | Name::Thinking);
    }

    /// A tag that is only text here.
    pub(super) fn literal(&mut self, rule: &'static Rule, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let message = format!("`{}` does not stand here", tag.raw);
        context::report(rule, at, tag.raw.len(), message, "kept as text", out);
        self.phase_text_unchecked(tag.raw, at, out);
    }

    /// Text that has been reported already.
    pub(super) fn phase_text_unchecked(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if self.thinking.part == Part::Direct && self.thinking.phased {
            self.thinking.stray = true;
        }
        self.phase_text(text, at, out);
    }
}

/// `text` without the white space before it; `start` becomes the place of what is left.
fn trim_start<'a>(text: &'a str, start: &mut Place, at: Place) -> &'a str {
    let kept = text.trim_start_matches([' ', '\t', '\r', '\n']);
    *start = at.after(&text[..text.len() - kept.len()]);
    kept
}
