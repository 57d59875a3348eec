//! Order of the model's events: early ones are held back, late ones left out, missing ones added (J-015 to
//! J-023, J-053).

use serde_json::{Map, Value};

use super::event::read_as;
use super::phases::Phases;
use super::rules;
use super::told::Reports;
use crate::dialect::said::text_in;
use crate::dialect::{Intent, Output, Written};
use crate::finding::Report;
use crate::lex::markup::{Markup, Token};
use crate::options::Options;
use crate::repair::json::Stand;
use crate::span::Place;

/// Most keys of texts that are kept for a reply without an answer.
const SPARE_KEYS: usize = 64;

/// Destination of a delta's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Phase,
    Answer,
    /// Answer text held back until the end of thinking (J-016).
    Held,
    Nowhere,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Thinking {
    #[default]
    Before,
    Open,
    Over,
}

/// Order state of one reply.
pub(super) struct Order {
    thinking: Thinking,
    /// Events that the model itself wrote.
    started: bool,
    ended: bool,
    phases: Phases,
    /// Set once a phase has received text.
    thought: bool,
    summary: bool,
    answered: bool,
    held: String,
    /// Texts that become the answer if there is no other, and the keys that hold them.
    spare: String,
    spare_keys: Vec<(&'static str, Stand)>,
    /// Extent of the queries until answer text follows them.
    queries: Option<(Place, usize)>,
    /// Extent of the queries used last.
    had_queries: Option<(Place, usize)>,
    pub(super) final_end: bool,
    early_answer: bool,
    limit: usize,
    pub(super) reports: Reports,
}

impl Order {
    pub(super) fn new(options: &Options) -> Order {
        Order {
            thinking: Thinking::Before,
            started: false,
            ended: false,
            phases: Phases::default(),
            thought: false,
            summary: false,
            answered: false,
            held: String::new(),
            spare: String::new(),
            spare_keys: Vec::new(),
            queries: None,
            had_queries: None,
            final_end: false,
            early_answer: false,
            limit: options.limits.hold,
            reports: Reports::default(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held.len() + self.spare.len()
    }

    /// Returns true if text in the event `name`, which should have none, replaces a missing delta: the only
    /// one of its kind.
    pub(super) fn takes(&self, name: &str) -> bool {
        let thinking = self.thinking < Thinking::Over && !self.final_end;
        match name {
            "phase_start" => thinking,
            "thinking_end" => thinking && !self.thought && self.phases.is_open(),
            "final_end" => !self.answered && !self.final_end,
            _ => false,
        }
    }

    /// Emits such text.
    pub(super) fn meant(&mut self, name: &str, text: &str, at: Place, out: &mut dyn Output) {
        let target = match name {
            "final_end" => self.final_delta(at, out),
            _ => Target::Phase,
        };
        self.thought |= target == Target::Phase;
        self.delta(target, text, at, out);
    }

    /// Handles a complete event that is not a delta.
    pub(super) fn event(
        &mut self,
        name: &str,
        data: &Map<String, Value>,
        at: Place,
        end: usize,
        out: &mut dyn Output,
    ) {
        if self.final_end && name == "serp_queries" {
            let message = "`serp_queries` after `final_end`";
            self.reports.found(rules::AFTER_FINAL_END, at, message, "read all the same");
            self.reports.found(rules::QUERIES_MISPLACED, at, message, "sent before `final_end`");
            return self.serp_queries(data, at, end, out);
        }
        if self.final_end {
            let rule = if name == "final_end" { rules::FINAL_END_DUPLICATE } else { rules::AFTER_FINAL_END };
            return self.reports.found(rule, at, format!("`{name}` after `final_end`"), "left out");
        }
        match name {
            "serp_summary" => self.summary(data, at, out),
            "thinking_start" => self.thinking_start(at, out),
            "phase_start" => self.phase_start(data, at, out),
            "thinking_end" => self.thinking_end(at, out),
            "serp_queries" => self.serp_queries(data, at, end, out),
            _ => self.final_end(out),
        }
    }

    fn summary(&mut self, data: &Map<String, Value>, at: Place, out: &mut dyn Output) {
        if self.thinking > Thinking::Before || self.answered {
            return self.reports.found(
                rules::SUMMARY_LATE,
                at,
                "the summary comes after `thinking_start`",
                "left out",
            );
        }
        if std::mem::replace(&mut self.summary, true) {
            return self.reports.found(rules::SUMMARY_DUPLICATE, at, "a second `serp_summary`", "left out");
        }
        let Some(text) = self.text(data, at) else {
            self.summary = false;
            return;
        };
        if text.trim().is_empty() {
            self.summary = false;
            return self.reports.found(rules::SUMMARY_EMPTY, at, "the summary is blank", "left out");
        }
        let plain = without_tags(&text);
        if plain != text {
            self.reports.found(rules::SUMMARY_MARKUP, at, "the summary holds tags", "tags removed");
        }
        out.intent(Intent::Summary(plain.into()));
    }

    /// Returns the field `text` of an event.
    fn text(&mut self, data: &Map<String, Value>, at: Place) -> Option<String> {
        match data.get("text") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => {
                let text = text_in(value);
                let repair = if text.is_some() { read_as(value) } else { "event left out" };
                self.reports.found(rules::FIELD_TYPE, at, "`text` is not a string", repair);
                text
            }
            None => {
                self.reports.found(rules::FIELD_MISSING, at, "`text` is missing", "event left out");
                None
            }
        }
    }

    fn thinking_start(&mut self, at: Place, out: &mut dyn Output) {
        if std::mem::replace(&mut self.started, true) {
            return self.reports.found(
                rules::THINKING_START_DUPLICATE,
                at,
                "a second `thinking_start`",
                "left out",
            );
        }
        if self.thinking > Thinking::Before {
            return self.reports.found(
                rules::ORDER_INVALID,
                at,
                "`thinking_start` comes too late",
                "left out",
            );
        }
        self.thinking = Thinking::Open;
        out.intent(Intent::ThinkingStart);
    }

    fn phase_start(&mut self, data: &Map<String, Value>, at: Place, out: &mut dyn Output) {
        if self.thinking == Thinking::Over {
            self.phases.start_late();
            let message = "`phase_start` after `thinking_end`";
            return self.reports.found(rules::PHASE_AFTER_THINKING_END, at, message, "left out");
        }
        self.thinking = Thinking::Open;
        self.phases.start(data.get("id"), at, &mut self.reports);
        let title = match data.get("title") {
            Some(Value::String(title)) => title.as_str(),
            // A title that is not a string has its own finding.
            _ => "",
        };
        if title.trim().is_empty() {
            self.reports.found(rules::TITLE_EMPTY, at, "the title is blank", "fallback title");
        }
        out.intent(Intent::Phase(title.into(), at));
    }

    /// Begins a `phase_delta` and returns the destination of its text.
    pub(super) fn phase_delta(&mut self, id: Option<&Value>, at: Place, out: &mut dyn Output) -> Target {
        if self.final_end {
            self.reports.found(rules::AFTER_FINAL_END, at, "`phase_delta` after `final_end`", "left out");
            return Target::Nowhere;
        }
        if self.thinking == Thinking::Over {
            let message = "`phase_delta` after `thinking_end`";
            self.reports.found(rules::PHASE_AFTER_THINKING_END, at, message, "left out");
            return Target::Nowhere;
        }
        let Some(id) = id else {
            self.reports.found(rules::FIELD_MISSING, at, "`id` is missing", "event left out");
            return Target::Nowhere;
        };
        self.thinking = Thinking::Open;
        self.phases.delta(id, at, &mut self.reports, out);
        self.thought = true;
        Target::Phase
    }

    /// Begins a `final_delta` and returns the destination of its text.
    pub(super) fn final_delta(&mut self, at: Place, out: &mut dyn Output) -> Target {
        if self.final_end {
            self.reports.found(rules::AFTER_FINAL_END, at, "`final_delta` after `final_end`", "left out");
            return Target::Nowhere;
        }
        if let Some((place, end)) = self.queries.take() {
            let report =
                Report::new(rules::QUERIES_MISPLACED, place, end, "`serp_queries` before answer text");
            out.report(report.repaired("held until the end"));
        }
        self.answered = true;
        if self.thinking == Thinking::Over {
            return Target::Answer;
        }
        if !std::mem::replace(&mut self.early_answer, true) {
            let message = "`final_delta` before `thinking_end`";
            let repair = if self.thinking == Thinking::Open { "held until then" } else { "thinking closed" };
            self.reports.found(rules::FINAL_BEFORE_THINKING_END, at, message, repair);
        }
        if self.thinking == Thinking::Open {
            return Target::Held;
        }
        self.thinking = Thinking::Over;
        out.intent(Intent::ThinkingEnd);
        Target::Answer
    }

    /// Emits or buffers text of the current delta.
    #[inline]
    pub(super) fn delta(&mut self, target: Target, text: &str, at: Place, out: &mut dyn Output) {
        match target {
            Target::Phase => out.intent(Intent::PhaseText(text)),
            Target::Answer => out.intent(Intent::FinalText(text)),
            Target::Held if self.thinking == Thinking::Over => out.intent(Intent::FinalText(text)),
            Target::Held => {
                let room = text.floor_char_boundary(self.limit - self.held.len());
                self.held.push_str(&text[..room]);
                if room < text.len() {
                    let message = "more answer text before `thinking_end` than `limits.hold`";
                    self.reports.found(rules::LIMIT_EXCEEDED, at, message, "thinking closed");
                    self.close_thinking(out);
                    out.intent(Intent::FinalText(&text[room..]));
                }
            }
            Target::Nowhere => {}
        }
    }

    /// Reports that the delta `name` has an empty text or none.
    pub(super) fn delta_empty(&mut self, name: &str, at: Place, message: &str) {
        self.reports.found_on(rules::DELTA_EMPTY, row_of(name), at, message, "left out");
    }

    fn thinking_end(&mut self, at: Place, out: &mut dyn Output) {
        if std::mem::replace(&mut self.ended, true) {
            return self.reports.found(
                rules::THINKING_END_DUPLICATE,
                at,
                "a second `thinking_end`",
                "left out",
            );
        }
        if self.thinking == Thinking::Over {
            return self.reports.found(rules::ORDER_INVALID, at, "`thinking_end` comes too late", "left out");
        }
        self.close_thinking(out);
    }

    fn close_thinking(&mut self, out: &mut dyn Output) {
        self.thinking = Thinking::Over;
        out.intent(Intent::ThinkingEnd);
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            out.intent(Intent::FinalText(&held));
        }
    }

    fn serp_queries(&mut self, data: &Map<String, Value>, at: Place, end: usize, out: &mut dyn Output) {
        let before = self.had_queries;
        match data.get("queries") {
            Some(queries @ Value::Array(_)) => {
                self.had_queries = Some((at, end));
                self.queries = Some((at, end));
                if let Some((place, end)) = before {
                    // The earlier queries are the ones lost.
                    let report =
                        Report::new(rules::QUERIES_DUPLICATE, place, end, "a second `serp_queries` follows");
                    out.report(report.repaired("the last valid one used, others not used"));
                }
                out.queries(Written::Value(queries), at, end);
            }
            Some(_) => {
                if before.is_some() {
                    let message = "a second `serp_queries`";
                    self.reports.found(
                        rules::QUERIES_DUPLICATE,
                        at,
                        message,
                        "the last valid one used, others not used",
                    );
                }
                let message = "`queries` is not an array";
                self.reports.found_on(rules::FIELD_TYPE, "J-003", at, message, "event left out");
            }
            None => self.reports.found(rules::FIELD_MISSING, at, "`queries` is missing", "event left out"),
        }
    }

    fn final_end(&mut self, out: &mut dyn Output) {
        self.final_end = true;
        if self.thinking == Thinking::Open {
            self.close_thinking(out);
        }
    }

    /// Keeps texts that may be the answer, at most `limits.hold` bytes. Returns true if they are kept.
    pub(super) fn spare(&mut self, text: &str, keys: Vec<(&'static str, Stand)>) -> bool {
        let room = self.spare.len() + text.len() <= self.limit && self.spare_keys.len() < SPARE_KEYS;
        let kept = !self.answered && !self.final_end && room;
        if kept {
            self.spare.push_str(text);
            self.spare_keys.extend(keys);
        }
        kept
    }

    /// Emits the kept texts as the answer, or reports that they are lost.
    fn finish_spare(&mut self, out: &mut dyn Output) {
        let taken = !self.answered && !self.spare_keys.is_empty();
        for (key, (at, end)) in self.spare_keys.drain(..) {
            let (rule, row, message, repair) = match taken {
                true => (
                    rules::FIELD_RENAMED,
                    "R-76",
                    format!("the text is called `{key}`, and not alone"),
                    "read as the answer, since there is no other",
                ),
                false => (
                    rules::FIELD_EXTRA,
                    "J-051",
                    format!("`final_delta` has no field `{key}`"),
                    if end > at.offset { "left out" } else { "not used" },
                ),
            };
            out.report(Report::new(rule, at, end, message).row(row).repaired(repair));
        }
        let spare = std::mem::take(&mut self.spare);
        if taken {
            out.intent(Intent::FinalText(&spare));
            self.answered = true;
        }
    }

    /// Returns true once a piece of the answer has been seen.
    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    /// Ends the input.
    pub(super) fn finish(&mut self, end: Place, out: &mut dyn Output) {
        if self.thinking == Thinking::Open {
            self.close_thinking(out);
        }
        self.finish_spare(out);
        let missing = [
            (!self.started, rules::THINKING_START_MISSING, "there is no `thinking_start`"),
            (self.phases.count() == 0, rules::PHASE_MISSING, "there is no `phase_start`"),
            (!self.ended, rules::THINKING_END_MISSING, "there is no `thinking_end`"),
            (!self.answered, rules::FINAL_DELTA_MISSING, "there is no `final_delta`"),
            (!self.final_end, rules::FINAL_END_MISSING, "there is no `final_end`"),
        ];
        for (_, rule, message) in missing.into_iter().filter(|(missing, ..)| *missing) {
            out.report(Report::new(rule, end, end.offset, message).repaired("added"));
        }
        if self.phases.count() == 1 {
            out.report(Report::new(rules::SINGLE_PHASE, end, end.offset, "there is only one phase"));
        }
    }
}

/// Returns the text without its tags. If removing a tag would join its neighbours to a new tag, they stay
/// text.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    tokens(text, &mut |token| match token {
        Token::Tag(_) => {}
        _ => out.push_str(token.raw()),
    });
    if out.len() == text.len() {
        return out;
    }
    // A tag holds no second `<`, so a blank after its `<` turns it into text and creates no other tag.
    let mut apart = String::with_capacity(out.len());
    tokens(&out, &mut |token| match token {
        Token::Tag(tag) => apart.extend(["< ", &tag.raw[1..]]),
        _ => apart.push_str(token.raw()),
    });
    apart
}

fn tokens(text: &str, see: &mut dyn FnMut(Token<'_>)) {
    let mut lexer = Markup::new("", text.len() + 1);
    lexer.push(text, &mut |token, _| see(token));
    lexer.finish(&mut |token, _| see(token));
}

/// Returns the specification row of the delta `name`.
pub(super) fn row_of(name: &str) -> &'static str {
    if name == "final_delta" { "J-013" } else { "J-011" }
}
