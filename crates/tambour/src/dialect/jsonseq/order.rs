//! The events of a model in the order they were meant: what comes early is held, what comes late is left out, what is
//! missing is added (J-015 to J-023, J-053).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::rules;
use crate::dialect::{Intent, Output, Written};
use crate::finding::clip;
use crate::finding::{Report, Rule};
use crate::lex::markup::{Markup, Token};
use crate::options::Options;
use crate::repair::json::Stand;
use crate::span::Place;

/// Where the text of a delta goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Phase,
    Answer,
    /// Answer text that has to wait for the end of thinking (J-016).
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

/// The state of one reply.
pub(super) struct Order {
    thinking: Thinking,
    /// What the model itself wrote.
    started: bool,
    ended: bool,
    phases: HashSet<u64>,
    real_phases: u32,
    current: Option<u64>,
    /// The id of that phase as it was written.
    written: Option<Value>,
    last_id: u64,
    summary: bool,
    answered: bool,
    held: String,
    /// Where queries stand, until answer text follows them.
    queries: Option<(Place, usize)>,
    /// Where the queries stand that were used last.
    had_queries: Option<(Place, usize)>,
    pub(super) final_end: bool,
    early_answer: bool,
    limit: usize,
    /// Findings about the line under way; its end is not known yet.
    pub(super) reports: Vec<Report>,
}

impl Order {
    pub(super) fn new(options: &Options) -> Order {
        Order {
            thinking: Thinking::Before,
            started: false,
            ended: false,
            phases: HashSet::new(),
            real_phases: 0,
            current: None,
            written: None,
            last_id: 0,
            summary: false,
            answered: false,
            held: String::new(),
            queries: None,
            had_queries: None,
            final_end: false,
            early_answer: false,
            limit: options.limits.hold,
            reports: Vec::new(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Reports on the event under way.
    pub(super) fn found(&mut self, rule: &'static Rule, at: Place, message: impl Into<String>, repair: &str) {
        self.found_on(rule, rule.rows[0], at, message, repair);
    }

    /// As `found`, on another row of the rule.
    pub(super) fn found_on(
        &mut self,
        rule: &'static Rule,
        row: &'static str,
        at: Place,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.found_in(rule, row, (at, at.offset), message, repair);
    }

    /// As `found_on`, about a part of the event; an empty one is the event, whose end is not known yet.
    pub(super) fn found_in(
        &mut self,
        rule: &'static Rule,
        row: &'static str,
        (at, end): Stand,
        message: impl Into<String>,
        repair: &str,
    ) {
        self.reports.push(Report::new(rule, at, end, message).row(row).repaired(repair));
    }

    /// A whole event that is no delta.
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
            self.found(rules::AFTER_FINAL_END, at, message, "read all the same");
            self.found(rules::QUERIES_MISPLACED, at, message, "sent before `final_end`");
            return self.serp_queries(data, at, end, out);
        }
        if self.final_end {
            let rule = if name == "final_end" { rules::FINAL_END_DUPLICATE } else { rules::AFTER_FINAL_END };
            return self.found(rule, at, format!("`{name}` after `final_end`"), "left out");
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
            return self.found(
                rules::SUMMARY_LATE,
                at,
                "the summary comes after `thinking_start`",
                "left out",
            );
        }
        if std::mem::replace(&mut self.summary, true) {
            return self.found(rules::SUMMARY_DUPLICATE, at, "a second `serp_summary`", "left out");
        }
        let Some(text) = self.text(data, at) else {
            self.summary = false;
            return;
        };
        if text.trim().is_empty() {
            self.summary = false;
            return self.found(rules::SUMMARY_EMPTY, at, "the summary is blank", "left out");
        }
        let plain = without_tags(&text);
        if plain != text {
            self.found(rules::SUMMARY_MARKUP, at, "the summary holds tags", "tags removed");
        }
        out.intent(Intent::Summary(plain.into()));
    }

    /// The field `text` of an event.
    fn text(&mut self, data: &Map<String, Value>, at: Place) -> Option<String> {
        match data.get("text") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                self.found(rules::FIELD_TYPE, at, "`text` is not a string", "event left out");
                None
            }
            None => {
                self.found(rules::FIELD_MISSING, at, "`text` is missing", "event left out");
                None
            }
        }
    }

    fn thinking_start(&mut self, at: Place, out: &mut dyn Output) {
        if std::mem::replace(&mut self.started, true) {
            return self.found(rules::THINKING_START_DUPLICATE, at, "a second `thinking_start`", "left out");
        }
        if self.thinking > Thinking::Before {
            return self.found(rules::ORDER_INVALID, at, "`thinking_start` comes too late", "left out");
        }
        self.thinking = Thinking::Open;
        out.intent(Intent::ThinkingStart);
    }

    fn phase_start(&mut self, data: &Map<String, Value>, at: Place, out: &mut dyn Output) {
        self.real_phases += 1;
        if self.thinking == Thinking::Over {
            self.current = None;
            let message = "`phase_start` after `thinking_end`";
            return self.found(rules::PHASE_AFTER_THINKING_END, at, message, "left out");
        }
        self.thinking = Thinking::Open;
        let id = self.phase_id(data.get("id"), at);
        self.last_id = id;
        self.phases.insert(id);
        self.current = Some(id);
        self.written = data.get("id").cloned();
        let title = match data.get("title") {
            Some(Value::String(title)) => title.as_str(),
            // One that is no string is reported where it stands.
            _ => "",
        };
        if title.trim().is_empty() {
            self.found(rules::TITLE_EMPTY, at, "the title is blank", "fallback title");
        }
        out.intent(Intent::Phase(title.into(), at));
    }

    /// The model's number of a phase; an unusable one counts as the next.
    fn phase_id(&mut self, value: Option<&Value>, at: Place) -> u64 {
        let due = self.last_id.saturating_add(1);
        let Some(id) = value.and_then(Value::as_u64).filter(|&id| id > 0) else {
            let shown = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let shown = clip(&shown, 40);
            let message = format!("the id of a phase is a positive integer, not {shown}");
            self.found(rules::PHASE_ID_INVALID, at, message, "numbered in order");
            return lenient_id(value).filter(|&id| id > self.last_id).unwrap_or(due);
        };
        if id <= self.last_id {
            let message = format!("phase {id} comes after phase {}", self.last_id);
            self.found(rules::PHASE_ID_NOT_INCREASING, at, message, "numbered in order");
        } else if id != due {
            let message = format!("phase {id} where phase {due} is due");
            self.found(rules::PHASE_ID_NOT_CONSECUTIVE, at, message, "numbered in order");
        }
        id
    }

    /// A `phase_delta` begins: where its text goes.
    pub(super) fn phase_delta(&mut self, id: Option<&Value>, at: Place, out: &mut dyn Output) -> Target {
        if self.final_end {
            self.found(rules::AFTER_FINAL_END, at, "`phase_delta` after `final_end`", "left out");
            return Target::Nowhere;
        }
        if self.thinking == Thinking::Over {
            let message = "`phase_delta` after `thinking_end`";
            self.found(rules::PHASE_AFTER_THINKING_END, at, message, "left out");
            return Target::Nowhere;
        }
        let Some(value) = id else {
            self.found(rules::FIELD_MISSING, at, "`id` is missing", "event left out");
            return Target::Nowhere;
        };
        let same = self.current.filter(|_| self.written.as_ref() == Some(value));
        let id = same.or_else(|| lenient_id(Some(value))).unwrap_or(0);
        self.thinking = Thinking::Open;
        match self.current {
            None => {
                let message = format!("phase {id} has not started");
                self.found_on(rules::DELTA_UNKNOWN, "J-017", at, message, "a phase with the fallback title");
                self.current = Some(id);
                self.written = Some(value.clone());
                self.last_id = self.last_id.max(id);
                out.intent(Intent::Phase("".into(), at));
            }
            Some(current) if current == id && self.phases.contains(&id) => {}
            Some(current) => {
                let started = self.phases.contains(&id);
                let rule = if started { rules::DELTA_NOT_CURRENT } else { rules::DELTA_UNKNOWN };
                let message = format!("a delta for phase {id} while phase {current} is the last one");
                self.found(rule, at, message, "text of the last phase");
            }
        }
        Target::Phase
    }

    /// A `final_delta` begins: where its text goes.
    pub(super) fn final_delta(&mut self, at: Place, out: &mut dyn Output) -> Target {
        if self.final_end {
            self.found(rules::AFTER_FINAL_END, at, "`final_delta` after `final_end`", "left out");
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
            self.found(rules::FINAL_BEFORE_THINKING_END, at, message, repair);
        }
        if self.thinking == Thinking::Open {
            return Target::Held;
        }
        self.thinking = Thinking::Over;
        out.intent(Intent::ThinkingEnd);
        Target::Answer
    }

    /// Text of the delta under way.
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
                    self.found(rules::LIMIT_EXCEEDED, at, message, "thinking closed");
                    self.close_thinking(out);
                    out.intent(Intent::FinalText(&text[room..]));
                }
            }
            Target::Nowhere => {}
        }
    }

    /// The delta called `name` has an empty text, or none.
    pub(super) fn delta_empty(&mut self, name: &str, at: Place, message: &str) {
        self.found_on(rules::DELTA_EMPTY, row_of(name), at, message, "left out");
    }

    fn thinking_end(&mut self, at: Place, out: &mut dyn Output) {
        if std::mem::replace(&mut self.ended, true) {
            return self.found(rules::THINKING_END_DUPLICATE, at, "a second `thinking_end`", "left out");
        }
        if self.thinking == Thinking::Over {
            return self.found(rules::ORDER_INVALID, at, "`thinking_end` comes too late", "left out");
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
                    // What is lost are those of the event before.
                    let report =
                        Report::new(rules::QUERIES_DUPLICATE, place, end, "a second `serp_queries` follows");
                    out.report(report.repaired("the last valid one used, others not used"));
                }
                out.queries(Written::Value(queries), at, end);
            }
            Some(_) => {
                if before.is_some() {
                    let message = "a second `serp_queries`";
                    self.found(
                        rules::QUERIES_DUPLICATE,
                        at,
                        message,
                        "the last valid one used, others not used",
                    );
                }
                let message = "`queries` is not an array";
                self.found_on(rules::FIELD_TYPE, "J-003", at, message, "event left out");
            }
            None => self.found(rules::FIELD_MISSING, at, "`queries` is missing", "event left out"),
        }
    }

    fn final_end(&mut self, out: &mut dyn Output) {
        self.final_end = true;
        if self.thinking == Thinking::Open {
            self.close_thinking(out);
        }
    }

    /// The end of the input.
    pub(super) fn finish(&mut self, end: Place, out: &mut dyn Output) {
        if self.thinking == Thinking::Open {
            self.close_thinking(out);
        }
        let missing = [
            (!self.started, rules::THINKING_START_MISSING, "there is no `thinking_start`"),
            (self.real_phases == 0, rules::PHASE_MISSING, "there is no `phase_start`"),
            (!self.ended, rules::THINKING_END_MISSING, "there is no `thinking_end`"),
            (!self.answered, rules::FINAL_DELTA_MISSING, "there is no `final_delta`"),
            (!self.final_end, rules::FINAL_END_MISSING, "there is no `final_end`"),
        ];
        for (_, rule, message) in missing.into_iter().filter(|(missing, ..)| *missing) {
            out.report(Report::new(rule, end, end.offset, message).repaired("added"));
        }
        if self.real_phases == 1 {
            out.report(Report::new(rules::SINGLE_PHASE, end, end.offset, "there is only one phase"));
        }
    }
}

/// A positive integer, also where it is written as a string or as `1.0`.
pub(super) fn lenient_id(value: Option<&Value>) -> Option<u64> {
    let id = match value? {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|id| id.fract() == 0.0).map(|id| id as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    id.filter(|&id| id > 0)
}

/// The text without its tags. Text whose neighbours become a tag when one between them is gone stays text.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    tokens(text, &mut |token| match token {
        Token::Tag(_) => {}
        _ => out.push_str(token.raw()),
    });
    if out.len() == text.len() {
        return out;
    }
    // A tag holds no second `<`, so that a blank behind its own makes text of it and tags of nothing else.
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

/// The row that describes the delta called `name`.
pub(super) fn row_of(name: &str) -> &'static str {
    if name == "final_delta" { "J-013" } else { "J-011" }
}
