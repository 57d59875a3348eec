//! Phases: their ids, their titles, and text that comes before a title.

use super::context;
use super::parse::Reader;
use super::rules;
use super::structure::Name;
use super::thinking::{Part, TITLE_LIMIT};
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::entity;
use crate::lex::markup::{Tag, TagKind};
use crate::lex::space::is_blank;
use crate::span::Place;

impl Reader {
    pub(super) fn begin_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        if let Some((start, end)) = self.thinking.unphased.take()
            && !self.thinking.phased
        {
            let report = Report::new(rules::TEXT_BETWEEN_PHASES, start, end, "text before the first phase");
            out.report(report.repaired("read as a phase with the fallback title"));
        }
        let title =
            tag.attributes().find(|attribute| attribute.name == "title").and_then(|title| title.value);
        let title = title.map(entity::decode).filter(|title| !title.trim().is_empty());
        self.thinking.attribute = title.map(|title| (title, at, tag.raw.len()));
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
    pub(super) fn phase_id(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) -> Option<u64> {
        let len = tag.raw.len();
        let renumbered = "numbered in order";
        let Some(id) = tag.attributes().find(|a| a.name == "id") else {
            let others = tag.attributes().next().is_some();
            context::report(rules::PHASE_ID_MISSING, at, len, "`<phase>` has no id", renumbered, out);
            if others && self.thinking.attribute.is_none() {
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
            // T-031: a number, but none that counts.
            let counts_not = trimmed.starts_with('-') || trimmed.contains('.');
            let number = counts_not && trimmed.parse::<f64>().is_ok();
            let report = if number { report.row("T-031") } else { report };
            out.report(report.repaired("not used, numbered in order"));
            return trimmed.parse().ok().filter(|&id: &u64| id > self.thinking.last_id);
        }
        let number: u64 = value.parse().unwrap_or(u64::MAX);
        let written = tag.raw.trim_end_matches("/>").trim_end_matches('>');
        let exact = written.split_once("phase").is_some_and(|(_, rest)| rest == format!(" id=\"{value}\""));
        if !exact && self.thinking.attribute.is_none() {
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
        if number <= self.thinking.last_id {
            let message = format!("phase {number} comes after phase {}", self.thinking.last_id);
            context::report(rules::PHASE_ID_NOT_INCREASING, at, len, message, renumbered, out);
        } else if number != self.thinking.last_id + 1 {
            let message = format!("phase {number} where phase {} is due", self.thinking.last_id + 1);
            context::report(rules::PHASE_ID_NOT_CONSECUTIVE, at, len, message, renumbered, out);
        }
        Some(number)
    }

    pub(super) fn title_tag(&mut self, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let close = tag.kind == TagKind::Close;
        match &mut self.thinking.part {
            Part::Untitled { text, at: start } if !close => {
                let (before, start) = (std::mem::take(text), *start);
                if !is_blank(&before) {
                    let end = start.offset + before.trim_end().len();
                    let report = Report::new(rules::TEXT_BEFORE_TITLE, start, end, "text before the title");
                    out.report(report.repaired("kept as text of the phase"));
                }
                context::check_tag(Name::Title, exact, tag, at, out);
                self.title_attribute("left out", out);
                self.thinking.part = Part::Title { text: String::new(), at, before };
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
        let Part::Title { text, at, before } = std::mem::replace(&mut self.thinking.part, Part::Text) else {
            return;
        };
        let title = entity::decode(&text);
        if title.trim().is_empty() {
            let end = at.offset + "<title>".len() + text.len();
            let report = Report::new(rules::TITLE_EMPTY, at, end, "the title is blank");
            out.report(report.repaired("fallback title"));
        }
        self.titled(title, at, out);
        self.entities.push(&before, &mut |text| out.intent(Intent::PhaseText(text)));
    }

    /// A phase begins with this title.
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

    /// The title that `<phase>` carries as an attribute, if it does, and what became of it.
    fn title_attribute(&mut self, repair: &str, out: &mut dyn Output) -> Option<String> {
        let (title, at, len) = self.thinking.attribute.take()?;
        let message = "`<phase>` carries a title as an attribute";
        context::report(rules::PHASE_ATTR_INVALID, at, len, message, repair, out);
        Some(title)
    }

    /// No title came: that of the attribute or the fallback title, and what came instead is text.
    pub(super) fn end_untitled(&mut self, out: &mut dyn Output) {
        let Part::Untitled { text, .. } = std::mem::replace(&mut self.thinking.part, Part::Text) else {
            return;
        };
        let at = self.thinking.phase_at;
        let title = self.title_attribute("read as the title, the rest not used", out);
        let repair = if title.is_some() { "the attribute is the title" } else { "fallback title" };
        let report = Report::new(rules::TITLE_MISSING, at, at.offset, "the phase has no title");
        out.report(report.repaired(repair));
        self.titled(title.unwrap_or_default(), at, out);
        self.entities.push(&text, &mut |text| out.intent(Intent::PhaseText(text)));
    }

    pub(super) fn end_phase(&mut self, at: Place, out: &mut dyn Output) {
        if let Part::Title { at: start, .. } = self.thinking.part {
            context::unclosed(Name::Title, start, at.offset, out);
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

    pub(super) fn end_thinking(&mut self, out: &mut dyn Output) {
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
            context::unclosed(Name::Phase, self.thinking.phase_at, end.offset, out);
            self.end_phase(end, out);
        }
        if self.thinking.open {
            context::unclosed(Name::Thinking, self.thinking.at, end.offset, out);
        }
        self.end_thinking(out);
    }
}
