//! Phases: their ids, their titles, and text before a title.

use super::super::context;
use super::super::rules;
use super::super::structure::ThinkingMlElement;
use super::{FirstPhase, ThinkingPosition, ThinkingReader};
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::lex::entity;
use crate::lex::markup::{MarkupTag, TagKind};
use crate::lex::space::is_blank;
use crate::span::Place;

/// Maximum length in bytes of a title, and of the text before a title that is held back.
const MAX_TITLE_BYTES: usize = 1024;

/// Maximum length in bytes of a title as written, where each byte may be an entity of six bytes. A title that
/// is longer as written is too long in any case, so the rest of it need not be held.
const MAX_TITLE_SOURCE_BYTES: usize = 6 * (MAX_TITLE_BYTES + 1);

impl ThinkingReader {
    /// Handles text at the current position: of a phase, of a title, or outside of both.
    pub(super) fn push_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        match &mut self.position {
            ThinkingPosition::Text => {
                self.pass(text, out);
            }
            ThinkingPosition::Direct => self.push_stray_text(text, at, out),
            ThinkingPosition::Untitled { text: untitled_text, at: start } => {
                let text = if untitled_text.is_empty() { trim_leading(text, start, at) } else { text };
                let fitting_len = text.floor_char_boundary(MAX_TITLE_BYTES - untitled_text.len());
                untitled_text.push_str(&text[..fitting_len]);
                if fitting_len < text.len() {
                    let rest = text[fitting_len..].to_owned();
                    self.end_untitled(out);
                    self.pass(&rest, out);
                }
            }
            ThinkingPosition::Title { text: title, .. } => {
                let room = MAX_TITLE_SOURCE_BYTES.saturating_sub(title.len());
                let fitting_len = text.floor_char_boundary(room);
                title.push_str(&text[..fitting_len]);
                if fitting_len < text.len() {
                    let rest = text[fitting_len..].to_owned();
                    self.end_title(out);
                    self.pass(&rest, out);
                }
            }
        }
    }

    /// Handles text directly in `<thinking>`: it belongs to the previous phase, or makes a new one (T-030,
    /// T-038).
    pub(super) fn push_stray_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        if is_blank(text) {
            if self.first_phase != FirstPhase::Absent {
                self.pass(text, out);
            }
            return;
        }
        let mut start = at;
        let inner = trim_leading(text, &mut start, at);
        // The finding covers only the first character, since the end of the text is not known yet.
        let end = start.offset + inner.chars().next().map_or(0, char::len_utf8);
        match self.first_phase {
            FirstPhase::Absent => {
                self.first_phase = FirstPhase::Untagged { start, end };
                out.emit_intent(Intent::Phase("".into(), start));
            }
            FirstPhase::Tagged if !self.is_stray_reported => {
                self.is_stray_reported = true;
                let report =
                    FindingReport::new(rules::TEXT_BETWEEN_PHASES, start, end, "text between phases");
                out.report(report.with_repair("read as text of the previous phase"));
            }
            FirstPhase::Untagged { .. } | FirstPhase::Tagged => {}
        }
        self.pass(text, out);
    }

    /// Begins a phase at its tag.
    pub(super) fn begin_phase(&mut self, tag: &MarkupTag<'_>, at: Place, out: &mut dyn IntentSink) {
        if let FirstPhase::Untagged { start, end } = self.first_phase {
            let report =
                FindingReport::new(rules::TEXT_BETWEEN_PHASES, start, end, "text before the first phase");
            out.report(report.with_repair("read as a phase with the fallback title"));
        }
        let title =
            tag.attributes().find(|attribute| attribute.name == "title").and_then(|title| title.value);
        let title = title.map(entity::decode).filter(|title| !title.trim().is_empty());
        self.title_attribute = title.map(|title| (title, at, tag.raw.len()));
        let id = self.check_phase_id(tag, at, out);
        self.last_id = id.unwrap_or(self.last_id.saturating_add(1));
        self.first_phase = FirstPhase::Tagged;
        self.phase_start = at;
        self.position = ThinkingPosition::Untitled { text: String::new(), at };
        self.is_mention_text = false;
        self.is_in_comment = false;
    }

    /// Checks the id of a phase (T-022, T-031 to T-033); returns `None` if the phase has no usable id.
    pub(super) fn check_phase_id(
        &mut self,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<u64> {
        let len = tag.raw.len();
        let repair = "numbered in order";
        let Some(id) = tag.attributes().find(|a| a.name == "id") else {
            let has_attributes = tag.attributes().next().is_some();
            context::report_at(rules::PHASE_ID_MISSING, at, len, "`<phase>` has no id", repair, out);
            if has_attributes && self.title_attribute.is_none() {
                let message = "`<phase>` has another attribute";
                context::report_at(rules::PHASE_ATTR_INVALID, at, len, message, "left out", out);
            }
            return None;
        };
        let value = id.value.unwrap_or("");
        let is_valid =
            value.bytes().all(|b| b.is_ascii_digit()) && !value.is_empty() && !value.starts_with('0');
        if !is_valid {
            let message = format!("`{value}` is not a positive integer");
            let trimmed = value.trim();
            let report = FindingReport::new(rules::PHASE_ID_INVALID, at, at.offset + len, message);
            // T-031: a number, but not a valid id.
            let is_not_natural = trimmed.starts_with('-') || trimmed.contains('.');
            let is_other_number = is_not_natural && trimmed.parse::<f64>().is_ok();
            let report = if is_other_number { report.with_row("T-031") } else { report };
            out.report(report.with_repair("not used, numbered in order"));
            // A number with a sign, white space or leading zeros is used all the same if the ids increase.
            return trimmed.parse().ok().filter(|&id: &u64| id > self.last_id);
        }
        let number: u64 = value.parse().unwrap_or(u64::MAX);
        let tag_text = tag.raw.trim_end_matches("/>").trim_end_matches('>');
        let is_exact =
            tag_text.split_once("phase").is_some_and(|(_, rest)| rest == format!(" id=\"{value}\""));
        if !is_exact && self.title_attribute.is_none() {
            let message = "a phase must be written exactly `<phase id=\"N\">`";
            context::report_at(
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
            context::report_at(rules::PHASE_ID_NOT_INCREASING, at, len, message, repair, out);
        } else if number != self.last_id + 1 {
            let message = format!("phase {number} where phase {} is expected", self.last_id + 1);
            context::report_at(rules::PHASE_ID_NOT_CONSECUTIVE, at, len, message, repair, out);
        }
        Some(number)
    }

    /// Handles `<title>` or `</title>` in a phase.
    pub(super) fn handle_title_tag(
        &mut self,
        is_exact: bool,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let is_closing = tag.kind == TagKind::Close;
        match &mut self.position {
            ThinkingPosition::Untitled { text, at: start } if !is_closing => {
                let (before, start) = (std::mem::take(text), *start);
                if !is_blank(&before) {
                    let end = start.offset + before.trim_end().len();
                    let report =
                        FindingReport::new(rules::TEXT_BEFORE_TITLE, start, end, "text before the title");
                    out.report(report.with_repair("kept as text of the phase"));
                }
                context::check_tag(ThinkingMlElement::Title, is_exact, tag, at, out);
                self.take_title_attribute("left out", out);
                self.position = ThinkingPosition::Title { text: String::new(), at, before };
                if tag.kind == TagKind::SelfClosing {
                    self.end_title(out);
                }
            }
            ThinkingPosition::Title { .. } if is_closing => {
                context::check_tag(ThinkingMlElement::Title, is_exact, tag, at, out);
                self.end_title(out);
            }
            ThinkingPosition::Text if !is_closing => {
                self.keep_tag_as_text(rules::TITLE_DUPLICATE, tag, at, out)
            }
            // The closing tag of a second title is text like its opening tag, which was reported.
            ThinkingPosition::Text => self.push_text(tag.raw, at, out),
            _ => self.keep_tag_as_text(rules::TAG_MISPLACED, tag, at, out),
        }
    }

    /// Ends the title: begins the phase with it, and emits the text that came before it.
    pub(super) fn end_title(&mut self, out: &mut dyn IntentSink) {
        self.is_in_comment = false;
        let ThinkingPosition::Title { text, at, before } =
            std::mem::replace(&mut self.position, ThinkingPosition::Text)
        else {
            return;
        };
        let title = entity::decode(&text);
        if title.trim().is_empty() {
            let end = at.offset + "<title>".len() + text.len();
            let report = FindingReport::new(rules::TITLE_EMPTY, at, end, "the title is blank");
            out.report(report.with_repair("fallback title"));
        }
        self.emit_phase(title, at, out);
        self.pass(&before, out);
    }

    /// Emits the beginning of a phase with this title; what exceeds the limit is text of the phase.
    fn emit_phase(&mut self, mut title: String, at: Place, out: &mut dyn IntentSink) {
        let rest = title.split_off(title.floor_char_boundary(MAX_TITLE_BYTES));
        if !rest.is_empty() {
            let report = FindingReport::new(
                rules::LIMIT_EXCEEDED,
                at,
                at.offset,
                "a title is longer than 1,024 bytes",
            );
            out.report(report.with_repair("the rest is text of the phase"));
        }
        out.emit_intent(Intent::Phase(title.into(), at));
        if !rest.is_empty() {
            out.emit_intent(Intent::PhaseText(&rest));
        }
    }

    /// Takes the title attribute of `<phase>`, if any, and reports it with `repair`.
    fn take_title_attribute(&mut self, repair: &str, out: &mut dyn IntentSink) -> Option<String> {
        let (title, at, len) = self.title_attribute.take()?;
        let message = "`<phase>` carries a title as an attribute";
        context::report_at(rules::PHASE_ATTR_INVALID, at, len, message, repair, out);
        Some(title)
    }

    /// Begins a phase without a title: it gets its attribute or the fallback title, and the text read so far
    /// is its text.
    pub(super) fn end_untitled(&mut self, out: &mut dyn IntentSink) {
        let ThinkingPosition::Untitled { text, .. } =
            std::mem::replace(&mut self.position, ThinkingPosition::Text)
        else {
            return;
        };
        let at = self.phase_start;
        let title = self.take_title_attribute("read as the title, the rest not used", out);
        let repair = if title.is_some() { "the attribute is the title" } else { "fallback title" };
        let report = FindingReport::new(rules::TITLE_MISSING, at, at.offset, "the phase has no title");
        out.report(report.with_repair(repair));
        self.emit_phase(title.unwrap_or_default(), at, out);
        self.pass(&text, out);
    }

    /// Ends the phase at `at`, and a title that is open in it.
    pub(super) fn end_phase(&mut self, at: Place, out: &mut dyn IntentSink) {
        if let ThinkingPosition::Title { at: start, .. } = self.position {
            context::report_unclosed(ThinkingMlElement::Title, start, at.offset, out);
            self.end_title(out);
        }
        if let ThinkingPosition::Untitled { .. } = self.position {
            self.end_untitled(out);
        }
        self.flush(out);
        self.position = ThinkingPosition::Direct;
        self.is_stray_reported = false;
        self.is_mention_text = false;
        self.is_in_comment = false;
    }

    /// Ends thinking, and reports it if it has no `<phase>`.
    pub(super) fn end_thinking(&mut self, out: &mut dyn IntentSink) {
        self.is_in_comment = false;
        let (at, end) = match self.first_phase {
            FirstPhase::Absent => (self.start, self.start.offset),
            FirstPhase::Untagged { start, end } => (start, end),
            FirstPhase::Tagged => return,
        };
        let report = FindingReport::new(rules::PHASE_MISSING, at, end, "`<thinking>` has no phase");
        out.report(report.with_repair("a phase with the fallback title"));
    }

    /// Emits text that was reported already.
    pub(super) fn push_reported_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        if self.position == ThinkingPosition::Direct && self.first_phase == FirstPhase::Tagged {
            self.is_stray_reported = true;
        }
        self.push_text(text, at, out);
    }
}

/// Returns `text`, which is at the place `at`, without leading white space; `start` becomes the place of the
/// rest.
fn trim_leading<'a>(text: &'a str, start: &mut Place, at: Place) -> &'a str {
    let trimmed = text.trim_start_matches([' ', '\t', '\r', '\n']);
    *start = at.end_of(&text[..text.len() - trimmed.len()]);
    trimmed
}
