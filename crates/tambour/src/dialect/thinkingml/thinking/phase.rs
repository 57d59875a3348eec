//! Phases: their ids, their titles, and text before a title.

use super::super::context;
use super::super::rules;
use super::super::structure::Name;
use super::{Part, Thinking};
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::entity;
use crate::lex::markup::{Tag, TagKind};
use crate::lex::space::is_blank;
use crate::span::Place;

/// Longest title, and most text before a title that is held back, in bytes.
const TITLE_LIMIT: usize = 1024;

/// Longest title as written, in bytes: each byte may be an entity of six. A title that reaches this is too
/// long in any case.
const TITLE_WRITTEN: usize = 6 * (TITLE_LIMIT + 1);

impl Thinking {
    /// Handles text at the current position: of a phase, of a title, or outside of both.
    pub(super) fn phase_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        match &mut self.part {
            Part::Text => {
                self.flow(text, out);
            }
            Part::Direct => self.stray_text(text, at, out),
            Part::Untitled { text: kept, at: start } => {
                let text = if kept.is_empty() { trim_start(text, start, at) } else { text };
                let room = text.floor_char_boundary(TITLE_LIMIT - kept.len());
                kept.push_str(&text[..room]);
                if room < text.len() {
                    let rest = text[room..].to_owned();
                    self.end_untitled(out);
                    self.flow(&rest, out);
                }
            }
            Part::Title { text: title, .. } => {
                let room = text.floor_char_boundary(TITLE_WRITTEN.saturating_sub(title.len()));
                title.push_str(&text[..room]);
                if room < text.len() {
                    let rest = text[room..].to_owned();
                    self.end_title(out);
                    self.flow(&rest, out);
                }
            }
        }
    }

    /// Handles text directly in `<thinking>`: it belongs to the previous phase, or makes a new one (T-030,
    /// T-038).
    pub(super) fn stray_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if is_blank(text) {
            if self.phased || self.unphased.is_some() {
                self.flow(text, out);
            }
            return;
        }
        let mut start = at;
        let inner = trim_start(text, &mut start, at);
        // The first character stands for the run, whose end is not known yet.
        let end = start.offset + inner.chars().next().map_or(0, char::len_utf8);
        if self.phased {
            if !std::mem::replace(&mut self.stray, true) {
                let report = Report::new(rules::TEXT_BETWEEN_PHASES, start, end, "text between phases");
                out.report(report.repaired("read as text of the previous phase"));
            }
        } else if self.unphased.is_none() {
            self.unphased = Some((start, end));
            out.intent(Intent::Phase("".into(), start));
        }
        self.flow(text, out);
    }

    pub(super) fn begin_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        if let Some((start, end)) = self.unphased.take()
            && !self.phased
        {
            let report = Report::new(rules::TEXT_BETWEEN_PHASES, start, end, "text before the first phase");
            out.report(report.repaired("read as a phase with the fallback title"));
        }
        let title =
            tag.attributes().find(|attribute| attribute.name == "title").and_then(|title| title.value);
        let title = title.map(entity::decode).filter(|title| !title.trim().is_empty());
        self.attribute = title.map(|title| (title, at, tag.raw.len()));
        let id = self.phase_id(tag, at, out);
        self.last_id = id.unwrap_or(self.last_id.saturating_add(1));
        self.phased = true;
        self.phase_at = at;
        self.part = Part::Untitled { text: String::new(), at };
        self.literal = false;
        self.in_comment = false;
    }

    /// Checks the id of a phase (T-022, T-031 to T-033); returns `None` if it has no usable one.
    pub(super) fn phase_id(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) -> Option<u64> {
        let len = tag.raw.len();
        let renumbered = "numbered in order";
        let Some(id) = tag.attributes().find(|a| a.name == "id") else {
            let others = tag.attributes().next().is_some();
            context::report(rules::PHASE_ID_MISSING, at, len, "`<phase>` has no id", renumbered, out);
            if others && self.attribute.is_none() {
                let message = "`<phase>` has another attribute";
                context::report(rules::PHASE_ATTR_INVALID, at, len, message, "left out", out);
            }
            return None;
        };
        let value = id.value.unwrap_or("");
        let valid = value.bytes().all(|b| b.is_ascii_digit()) && !value.is_empty() && !value.starts_with('0');
        if !valid {
            let message = format!("`{value}` is not a positive integer");
            let trimmed = value.trim();
            let report = Report::new(rules::PHASE_ID_INVALID, at, at.offset + len, message);
            // T-031: a number, but not a valid id.
            let counts_not = trimmed.starts_with('-') || trimmed.contains('.');
            let number = counts_not && trimmed.parse::<f64>().is_ok();
            let report = if number { report.row("T-031") } else { report };
            out.report(report.repaired("not used, numbered in order"));
            return trimmed.parse().ok().filter(|&id: &u64| id > self.last_id);
        }
        let number: u64 = value.parse().unwrap_or(u64::MAX);
        let written = tag.raw.trim_end_matches("/>").trim_end_matches('>');
        let exact = written.split_once("phase").is_some_and(|(_, rest)| rest == format!(" id=\"{value}\""));
        if !exact && self.attribute.is_none() {
            let message = "a phase is written exactly `<phase id=\"N\">`";
            context::report(
                rules::PHASE_ATTR_INVALID,
                at,
                len,
                message,
                "read as such, the rest not used",
                out,
            );
        }
        if number <= self.last_id {
            let message = format!("phase {number} comes after phase {}", self.last_id);
            context::report(rules::PHASE_ID_NOT_INCREASING, at, len, message, renumbered, out);
        } else if number != self.last_id + 1 {
            let message = format!("phase {number} where phase {} is due", self.last_id + 1);
            context::report(rules::PHASE_ID_NOT_CONSECUTIVE, at, len, message, renumbered, out);
        }
        Some(number)
    }

    pub(super) fn title_tag(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let close = tag.kind == TagKind::Close;
        match &mut self.part {
            Part::Untitled { text, at: start } if !close => {
                let (before, start) = (std::mem::take(text), *start);
                if !is_blank(&before) {
                    let end = start.offset + before.trim_end().len();
                    let report = Report::new(rules::TEXT_BEFORE_TITLE, start, end, "text before the title");
                    out.report(report.repaired("kept as text of the phase"));
                }
                context::check_tag(Name::Title, exact, tag, at, out);
                self.title_attribute("left out", out);
                self.part = Part::Title { text: String::new(), at, before };
                if tag.kind == TagKind::SelfClosing {
                    self.end_title(out);
                }
            }
            Part::Title { .. } if close => {
                context::check_tag(Name::Title, exact, tag, at, out);
                self.end_title(out);
            }
            Part::Text if !close => self.literal(rules::TITLE_DUPLICATE, tag, at, out),
            // The end of a second title is text like its beginning.
            Part::Text => self.phase_text(tag.raw, at, out),
            _ => self.literal(rules::TAG_MISPLACED, tag, at, out),
        }
    }

    pub(super) fn end_title(&mut self, out: &mut dyn Output) {
        self.in_comment = false;
        let Part::Title { text, at, before } = std::mem::replace(&mut self.part, Part::Text) else {
            return;
        };
        let title = entity::decode(&text);
        if title.trim().is_empty() {
            let end = at.offset + "<title>".len() + text.len();
            let report = Report::new(rules::TITLE_EMPTY, at, end, "the title is blank");
            out.report(report.repaired("fallback title"));
        }
        self.titled(title, at, out);
        self.flow(&before, out);
    }

    /// Begins a phase with this title.
    fn titled(&mut self, mut title: String, at: Place, out: &mut dyn Output) {
        let rest = title.split_off(title.floor_char_boundary(TITLE_LIMIT));
        if !rest.is_empty() {
            let report =
                Report::new(rules::LIMIT_EXCEEDED, at, at.offset, "a title is longer than 1,024 bytes");
            out.report(report.repaired("the rest is text of the phase"));
        }
        out.intent(Intent::Phase(title.into(), at));
        if !rest.is_empty() {
            out.intent(Intent::PhaseText(&rest));
        }
    }

    /// Takes the title attribute of `<phase>`, if any, and reports it with `repair`.
    fn title_attribute(&mut self, repair: &str, out: &mut dyn Output) -> Option<String> {
        let (title, at, len) = self.attribute.take()?;
        let message = "`<phase>` carries a title as an attribute";
        context::report(rules::PHASE_ATTR_INVALID, at, len, message, repair, out);
        Some(title)
    }

    /// Begins a phase without a title: it gets its attribute or the fallback title, and the text read so far
    /// is its text.
    pub(super) fn end_untitled(&mut self, out: &mut dyn Output) {
        let Part::Untitled { text, .. } = std::mem::replace(&mut self.part, Part::Text) else {
            return;
        };
        let at = self.phase_at;
        let title = self.title_attribute("read as the title, the rest not used", out);
        let repair = if title.is_some() { "the attribute is the title" } else { "fallback title" };
        let report = Report::new(rules::TITLE_MISSING, at, at.offset, "the phase has no title");
        out.report(report.repaired(repair));
        self.titled(title.unwrap_or_default(), at, out);
        self.flow(&text, out);
    }

    pub(super) fn end_phase(&mut self, at: Place, out: &mut dyn Output) {
        if let Part::Title { at: start, .. } = self.part {
            context::unclosed(Name::Title, start, at.offset, out);
            self.end_title(out);
        }
        if let Part::Untitled { .. } = self.part {
            self.end_untitled(out);
        }
        self.flush(out);
        self.part = Part::Direct;
        self.stray = false;
        self.literal = false;
        self.in_comment = false;
    }

    pub(super) fn end_thinking(&mut self, out: &mut dyn Output) {
        self.in_comment = false;
        if !self.phased {
            let (at, end) = self.unphased.unwrap_or((self.at, self.at.offset));
            let report = Report::new(rules::PHASE_MISSING, at, end, "`<thinking>` has no phase");
            out.report(report.repaired("a phase with the fallback title"));
        }
    }

    /// Emits text that was reported already.
    pub(super) fn phase_text_unchecked(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        if self.part == Part::Direct && self.phased {
            self.stray = true;
        }
        self.phase_text(text, at, out);
    }
}

/// Returns `text` without leading white space; `start` becomes the place of the rest.
fn trim_start<'a>(text: &'a str, start: &mut Place, at: Place) -> &'a str {
    let kept = text.trim_start_matches([' ', '\t', '\r', '\n']);
    *start = at.after(&text[..text.len() - kept.len()]);
    kept
}
