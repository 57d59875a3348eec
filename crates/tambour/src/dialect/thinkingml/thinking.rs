//! The inside of `<thinking>`: phases, titles, and what to do with a `<final>` that may be only text.

use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::MARKER;
use crate::dialect::{Intent, Output};
use crate::finding::Profile;
use crate::finding::{Report, Rule};
use crate::lex::entity;
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;

/// What is known of `<thinking>`.
#[derive(Default)]
pub(super) struct Thinking {
    at: Place,
    part: Part,
    /// Where the phase under way starts.
    phase_at: Place,
    /// Whether a real `<phase>` has begun.
    phased: bool,
    /// Text before the first phase: start, and offset after it.
    unphased: Option<(Place, usize)>,
    /// Whether the text run under way, directly in `<thinking>`, has been reported.
    stray: bool,
    last_id: u64,
    /// Phases closed because another one began inside them: each may still bring its closing tag.
    nested: u32,
    /// Whether `<final>` closed it; a closing tag that comes later belongs to it.
    pub(super) forgotten: bool,
    /// A `<final>` in a phase and what followed it.
    hold: Option<Hold>,
    /// Whether `<final>` in the phase under way is known to be text.
    literal: bool,
    /// `<final>` at the start of a line and the blanks after it, with `thinkingml.lone_final=close`.
    lone: Option<(String, Place)>,
    /// The last `<final>...</final>` inside a phase after which thinking went on: the answer if no other one comes.
    quoted: Option<Hold>,
    phase_open_late: bool,
    thinking_open_late: bool,
}

/// Where in `<thinking>` the reader is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Part {
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
struct Hold {
    raw: String,
    tag_len: usize,
    at: Place,
    closed_phase: bool,
    closed_thinking: bool,
}

/// Bytes of text before a title that are held back, and of a title.
const TITLE_LIMIT: usize = 1024;

impl Thinking {
    pub(super) fn begin(&mut self, at: Place) {
        *self = Thinking { at, ..Thinking::default() };
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
    fn phase_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
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
                let room = text.floor_char_boundary(TITLE_LIMIT - title.len());
                title.push_str(&text[..room]);
                if room < text.len() {
                    let rest = text[room..].to_owned();
                    let message = "a title is longer than 1,024 bytes";
                    self.report(
                        rules::LIMIT_EXCEEDED,
                        at.after(&text[..room]),
                        0,
                        message,
                        "the rest is text of the phase",
                        out,
                    );
                    self.end_title(out);
                    self.entities.push(&rest, &mut |text| out.intent(Intent::PhaseText(text)));
                }
            }
        }
    }

    /// Text directly in `<thinking>`: it belongs to the previous phase, or makes one (T-030, T-038).
    fn stray_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
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

    fn phase_tag(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
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
                self.check_tag(name, exact, tag, at, out);
                if in_phase {
                    self.unclosed(Name::Phase, self.thinking.phase_at, at.offset, out);
                    self.end_phase(at, out);
                }
                self.end_thinking(out);
                self.mode = Mode::Outside;
            }
            (Name::Phase, false) => {
                self.check_tag(name, exact, tag, at, out);
                if in_phase {
                    self.report(
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
                self.check_tag(name, exact, tag, at, out);
                self.end_phase(at, out);
            }
            (Name::Phase, true) if self.thinking.nested > 0 => self.thinking.nested -= 1,
            (Name::Title, _) if in_phase => self.title_tag(exact, tag, at, out),
            (Name::Final, false) if !in_phase => self.forgotten_close(exact, tag, at, out),
            (Name::Final, false) => self.final_in_phase(tag, at, out),
            (Name::Final, true) => self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out),
            (Name::Serp, false) if !in_phase => {
                let message = "`<serp>` stands before `<thinking>`";
                self.report(rules::SERP_AFTER_THINKING, at, len, message, "left out", out);
                self.thinking.part = Part::Direct;
                self.mode = Mode::Dropped(Name::Serp);
                self.thinking.stray = false;
            }
            (Name::Thinking, false)
                if !in_phase && !self.thinking.phased && self.thinking.unphased.is_none() =>
            {
                self.report(
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
    fn literal(&mut self, rule: &'static Rule, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let message = format!("`{}` does not stand here", tag.raw);
        self.report(rule, at, tag.raw.len(), message, "kept as text", out);
        self.phase_text_unchecked(tag.raw, at, out);
    }

    /// Text that has been reported already.
    fn phase_text_unchecked(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if self.thinking.part == Part::Direct && self.thinking.phased {
            self.thinking.stray = true;
        }
        self.phase_text(text, at, out);
    }

    // ---- phases and titles ---------------------------------------------------------------------------------

    fn begin_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        if let Some((start, end)) = self.thinking.unphased.take()
            && !self.thinking.phased
        {
            let report = Report::new(rules::TEXT_BETWEEN_PHASES, start, end, "text before the first phase");
            out.report(report.repaired("read as a phase with the fallback title"));
        }
        let id = self.phase_id(tag, at, out);
        let thinking = &mut self.thinking;
        thinking.last_id = id.unwrap_or(thinking.last_id.saturating_add(1));
        thinking.phased = true;
        thinking.phase_at = at;
        thinking.part = Part::Untitled { text: String::new(), at };
        thinking.literal = false;
        self.in_comment = false;
    }

    /// The id of a phase, checked (T-022, T-031 to T-033); `None` when there is none that can be used.
    fn phase_id(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) -> Option<u64> {
        let len = tag.raw.len();
        let renumbered = "numbered in order";
        let Some(id) = tag.attributes().find(|a| a.name == "id") else {
            let others = tag.attributes().next().is_some();
            self.report(rules::PHASE_ID_MISSING, at, len, "`<phase>` has no id", renumbered, out);
            if others {
                self.report(
                    rules::PHASE_ATTR_INVALID,
                    at,
                    len,
                    "`<phase>` has another attribute",
                    "left out",
                    out,
                );
            }
            return None;
        };
        let value = id.value.unwrap_or("");
        let valid = value.bytes().all(|b| b.is_ascii_digit()) && !value.is_empty() && !value.starts_with('0');
        if !valid {
            let message = format!("`{value}` is not a positive integer");
            let trimmed = value.trim();
            let report = Report::new(rules::PHASE_ID_INVALID, at, at.offset + len, message);
            out.report(report.repaired(renumbered));
            return trimmed.parse().ok().filter(|&id: &u64| id > self.thinking.last_id);
        }
        let number: u64 = value.parse().unwrap_or(u64::MAX);
        let written = tag.raw.trim_end_matches("/>").trim_end_matches('>');
        if written.split_once("phase").is_none_or(|(_, rest)| rest != format!(" id=\"{value}\"")) {
            let message = "a phase is written exactly `<phase id=\"N\">`";
            self.report(rules::PHASE_ATTR_INVALID, at, len, message, "read as such", out);
        }
        if number <= self.thinking.last_id {
            let message = format!("phase {number} comes after phase {}", self.thinking.last_id);
            self.report(rules::PHASE_ID_NOT_INCREASING, at, len, message, renumbered, out);
        } else if number != self.thinking.last_id + 1 {
            let message = format!("phase {number} where phase {} is due", self.thinking.last_id + 1);
            self.report(rules::PHASE_ID_NOT_CONSECUTIVE, at, len, message, renumbered, out);
        }
        Some(number)
    }

    fn title_tag(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let close = tag.kind == TagKind::Close;
        match &mut self.thinking.part {
            Part::Untitled { text, at: start } if !close => {
                let (before, start) = (std::mem::take(text), *start);
                if !is_blank(&before) {
                    let end = start.offset + before.trim_end().len();
                    let report = Report::new(rules::TEXT_BEFORE_TITLE, start, end, "text before the title");
                    out.report(report.repaired("kept as text of the phase"));
                }
                self.check_tag(Name::Title, exact, tag, at, out);
                self.thinking.part = Part::Title { text: String::new(), at, before };
                if tag.kind == TagKind::SelfClosing {
                    self.end_title(out);
                }
            }
            Part::Title { .. } if close => {
                self.check_tag(Name::Title, exact, tag, at, out);
                self.end_title(out);
            }
            Part::Text if !close => self.literal(rules::TITLE_DUPLICATE, tag, at, out),
            // The end of a second title is text like its beginning.
            Part::Text => self.phase_text(tag.raw, at, out),
            _ => self.literal(rules::TAG_MISPLACED, tag, at, out),
        }
    }

    fn end_title(&mut self, out: &mut dyn Output) {
        self.in_comment = false;
        let Part::Title { text, at, before } = std::mem::replace(&mut self.thinking.part, Part::Text) else {
            return;
        };
        let title = entity::decode(&text);
        if title.trim().is_empty() {
            let end = at.offset + "<title>".len() + text.len();
            let report = Report::new(rules::TITLE_EMPTY, at, end, "the title is blank");
            out.report(report.repaired("fallback title"));
        }
        out.intent(Intent::Phase(title.into(), at));
        self.entities.push(&before, &mut |text| out.intent(Intent::PhaseText(text)));
    }

    /// No title came: the fallback title, and what came instead is text.
    fn end_untitled(&mut self, out: &mut dyn Output) {
        let Part::Untitled { text, .. } = std::mem::replace(&mut self.thinking.part, Part::Text) else {
            return;
        };
        let at = self.thinking.phase_at;
        let report = Report::new(rules::TITLE_MISSING, at, at.offset, "the phase has no title");
        out.report(report.repaired("fallback title"));
        out.intent(Intent::Phase("".into(), at));
        self.entities.push(&text, &mut |text| out.intent(Intent::PhaseText(text)));
    }

    fn end_phase(&mut self, at: Place, out: &mut dyn Output) {
        if let Part::Title { at: start, .. } = self.thinking.part {
            self.unclosed(Name::Title, start, at.offset, out);
            self.end_title(out);
        }
        if let Part::Untitled { .. } = self.thinking.part {
            self.end_untitled(out);
        }
        let mut entities = std::mem::take(&mut self.entities);
        entities.flush(&mut |text| out.intent(Intent::PhaseText(text)));
        self.entities = entities;
        self.thinking.part = Part::Direct;
        self.thinking.stray = false;
        self.thinking.literal = false;
        self.in_comment = false;
    }

    fn end_thinking(&mut self, out: &mut dyn Output) {
        self.in_comment = false;
        if !self.thinking.phased {
            let (at, end) = self.thinking.unphased.unwrap_or((self.thinking.at, self.thinking.at.offset));
            let report = Report::new(rules::PHASE_MISSING, at, end, "`<thinking>` has no phase");
            out.report(report.repaired("a phase with the fallback title"));
        }
    }

    /// Closes what is open in `<thinking>` at the end of the input.
    pub(super) fn close_thinking(&mut self, end: Place, out: &mut dyn Output) {
        if self.thinking.part != Part::Direct {
            self.unclosed(Name::Phase, self.thinking.phase_at, end.offset, out);
            self.end_phase(end, out);
        }
        self.unclosed(Name::Thinking, self.thinking.at, end.offset, out);
        self.end_thinking(out);
    }

    // ---- `<final>` before `</thinking>` --------------------------------------------------------------------

    /// `<final>` directly in `<thinking>`: its closing tag was forgotten.
    fn forgotten_close(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let message = "`<final>` begins before `</thinking>`";
        self.report(
            rules::FINAL_INSIDE_THINKING,
            at,
            tag.raw.len(),
            message,
            "`<thinking>` closed first",
            out,
        );
        self.end_thinking(out);
        self.thinking.forgotten = true;
        self.mode = Mode::Outside;
        self.check_tag(Name::Final, exact, tag, at, out);
        self.begin(Name::Final, at, tag.raw.len(), out);
    }

    /// `<final>` in an open phase: text, unless no real one comes.
    fn final_in_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        if self.thinking.literal {
            return self.literal(rules::FINAL_LITERAL_IN_THINKING, tag, at, out);
        }
        if self.options.lone_final_close && self.options.profile == Profile::Lenient && self.line_blank {
            self.thinking.lone = Some((tag.raw.to_owned(), at));
            return;
        }
        self.hold_from(tag.raw, at);
    }

    fn hold_from(&mut self, raw: &str, at: Place) {
        self.thinking.hold = Some(Hold {
            raw: raw.to_owned(),
            tag_len: raw.len(),
            at,
            closed_phase: false,
            closed_thinking: false,
        });
        self.in_comment = false;
    }

    /// After `<final>` at the start of a line: whether the line holds nothing else.
    fn lone_final(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let Some((mut raw, start)) = self.thinking.lone.take() else { return false };
        if let Token::Text(text) = token {
            let blanks = text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
            // Blanks at the end of the line are not kept without limit.
            let blanks = blanks.min(self.options.limits.line.saturating_sub(raw.len()));
            raw.push_str(&text[..blanks]);
            if blanks == text.len() {
                self.thinking.lone = Some((raw, start));
                return true;
            }
            if text[blanks..].starts_with('\n') {
                self.close_at_lone_final(start, out);
                let rest = &text[blanks..];
                self.token(Token::Text(rest), at.after(&text[..blanks]), out);
                return true;
            }
            raw.truncate(raw.len() - blanks);
        }
        let tag_len = raw.trim_end().len();
        let blanks = raw.split_off(tag_len);
        self.hold_from(&raw, start);
        if !blanks.is_empty() {
            self.held_token(Token::Text(&blanks), start.after(&raw), out);
        }
        self.thinking_token(*token, at, out);
        true
    }

    fn close_at_lone_final(&mut self, at: Place, out: &mut dyn Output) {
        self.unclosed(Name::Phase, self.thinking.phase_at, at.offset, out);
        self.end_phase(at, out);
        let message = "`<final>` begins before `</thinking>`";
        self.report(
            rules::FINAL_INSIDE_THINKING,
            at,
            "<final>".len(),
            message,
            "`<thinking>` closed first",
            out,
        );
        self.end_thinking(out);
        self.thinking.forgotten = true;
        self.mode = Mode::Outside;
        self.begin(Name::Final, at, "<final>".len(), out);
    }

    /// A token after a `<final>` that may be only text.
    fn held_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(hold) = &mut self.thinking.hold else { return };
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose => self.in_comment = false,
            Token::Tag(tag) => {
                let close = tag.kind == TagKind::Close;
                match structure::find(tag.name) {
                    Some((Name::Phase, _)) if close => hold.closed_phase = true,
                    Some((Name::Thinking, _)) if close => {
                        hold.closed_phase = true;
                        hold.closed_thinking = true;
                    }
                    // Thinking goes on, or the real answer begins: it was text.
                    Some((Name::Phase, _)) if !self.in_comment => return self.release(token, at, out),
                    Some((Name::Final, _)) if !close && !self.in_comment && hold.closed_phase => {
                        return self.release(token, at, out);
                    }
                    _ => {}
                }
            }
            Token::Text(_) | Token::Mark(_) => {}
        }
        let raw = token.raw();
        let room = self.options.limits.hold.saturating_sub(hold.raw.len());
        if raw.len() > room {
            // Text is cut at the limit itself, so that the result does not depend on the chunks.
            let (kept, token) = match token {
                Token::Text(text) => {
                    let (kept, rest) = text.split_at(text.floor_char_boundary(room));
                    (kept, Token::Text(rest))
                }
                token => ("", token),
            };
            hold.raw.push_str(kept);
            let at = at.after(kept);
            let message = "more text after `<final>` in a phase than `limits.hold`";
            self.report(rules::LIMIT_EXCEEDED, at, 0, message, "read as text of the phase", out);
            return self.release(token, at, out);
        }
        hold.raw.push_str(raw);
    }

    /// The held text is text of the phase; goes on with `token`.
    fn release(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(hold) = self.thinking.hold.take() else { return };
        self.thinking.literal = true;
        self.in_comment = false;
        self.replay(&hold.raw, hold.at, out);
        if hold.raw.to_ascii_lowercase().contains("</final>") {
            self.thinking.quoted = Some(hold);
        }
        self.token(token, at, out);
    }

    /// Reads text again, now that it is known what it is.
    pub(super) fn replay(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        let mut lexer = Markup::at(at, MARKER, self.options.limits.tag);
        lexer.push(raw, &mut |token, at| self.token(token, at, out));
        lexer.finish(&mut |token, at| self.token(token, at, out));
    }

    /// The input ends: a held `<final>` was the answer after all.
    pub(super) fn thinking_end_of_input(&mut self, end: Place, out: &mut dyn Output) {
        if let Some((raw, at)) = self.thinking.lone.take() {
            self.hold_from(raw.trim_end(), at);
        }
        let Some(hold) = self.thinking.hold.take() else { return };
        let message = "`<final>` begins inside a phase, and no other one comes";
        let at = hold.at;
        self.report(rules::FINAL_INSIDE_THINKING, at, hold.tag_len, message, "read as the answer", out);
        self.end_phase(at, out);
        self.end_thinking(out);
        self.thinking.phase_open_late = !hold.closed_phase;
        self.thinking.thinking_open_late = !hold.closed_thinking;
        self.mode = Mode::Outside;
        self.answer.moved = true;
        self.begin(Name::Final, at, hold.tag_len, out);
        self.replay(&hold.raw[hold.tag_len..], at.after(&hold.raw[..hold.tag_len]), out);
        if self.thinking.phase_open_late {
            self.unclosed(Name::Phase, self.thinking.phase_at, end.offset, out);
        }
        if self.thinking.thinking_open_late {
            self.unclosed(Name::Thinking, self.thinking.at, end.offset, out);
        }
    }

    /// No answer came, but a phase held a whole one: it is the answer too. Whether there was one.
    pub(super) fn quoted_answer(&mut self, out: &mut dyn Output) -> bool {
        let Some(hold) = self.thinking.quoted.take() else { return false };
        let message = "`<final>` begins inside a phase, and no other one comes";
        let at = hold.at;
        self.report(rules::FINAL_INSIDE_THINKING, at, hold.tag_len, message, "read as the answer too", out);
        self.mode = Mode::Outside;
        self.answer.moved = true;
        self.begin(Name::Final, at, hold.tag_len, out);
        self.replay(&hold.raw[hold.tag_len..], at.after(&hold.raw[..hold.tag_len]), out);
        true
    }

    /// Whether `</thinking>` never came although `<final>` did.
    pub(super) fn thinking_left_open(&mut self, end: Place, out: &mut dyn Output) {
        if std::mem::take(&mut self.thinking.forgotten) {
            self.unclosed(Name::Thinking, self.thinking.at, end.offset, out);
        }
    }
}

/// `text` without the white space before it; `start` becomes the place of what is left.
fn trim_start<'a>(text: &'a str, start: &mut Place, at: Place) -> &'a str {
    let kept = text.trim_start_matches([' ', '\t', '\r', '\n']);
    *start = at.after(&text[..text.len() - kept.len()]);
    kept
}
