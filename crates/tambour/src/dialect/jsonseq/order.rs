//! Order of the model's events: early ones are held back, late ones left out, missing ones added (J-015 to
//! J-023, J-053), and phases numbered.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::event::text_repair;
use super::reports::EventReports;
use super::rules;
use crate::dialect::value_text::text_in;
use crate::dialect::{Intent, IntentSink, RawQueries};
use crate::finding::{FindingReport, clip};
use crate::lex::markup::{MarkupLexer, MarkupToken};
use crate::options::Options;
use crate::span::{Extent, Place};

/// Limit on kept keys; once it is reached, no more texts are kept for a reply without an answer.
const MAX_SPARE_KEYS: usize = 64;

/// Destination of a delta's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaTarget {
    /// The current phase.
    Phase,
    /// The answer.
    Answer,
    /// Answer text held back until the end of thinking (J-016).
    HeldAnswer,
    /// No destination: the delta is left out.
    Discarded,
}

/// Progress of the thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ThinkingStage {
    #[default]
    NotStarted,
    Open,
    Ended,
}

/// Progress of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AnswerStage {
    #[default]
    Absent,
    /// Begun after `thinking_end`, or only at the end of the reply.
    Begun,
    /// Begun before `thinking_end`; this has been reported.
    BegunEarly,
}

/// State of one reply's events so far, which decides what is done with each later event.
pub(super) struct EventOrder {
    thinking: ThinkingStage,
    /// Set once the model itself wrote `thinking_start` and `thinking_end`.
    has_thinking_start: bool,
    has_thinking_end: bool,
    phases: PhaseNumbering,
    /// Set once a phase has received text.
    has_phase_text: bool,
    /// Set once a summary that is not blank was emitted.
    has_summary: bool,
    answer: AnswerStage,
    /// Answer text that waits for the end of thinking (J-016).
    held_answer: String,
    /// Texts under doubtful keys, which become the answer if there is no other, and those keys with the
    /// extents of their values.
    spare_answer: String,
    spare_keys: Vec<(&'static str, Extent)>,
    /// Extent of the last queries, until answer text after them shows that they are misplaced (J-021).
    pending_queries: Option<Extent>,
    /// Extent of the last queries.
    last_queries: Option<Extent>,
    pub(super) has_final_end: bool,
    /// Maximum number of bytes of each held text (`limits.hold`).
    hold_limit: usize,
    /// Findings on the current event.
    pub(super) reports: EventReports,
}

impl EventOrder {
    pub(super) fn new(options: &Options) -> EventOrder {
        EventOrder {
            thinking: ThinkingStage::NotStarted,
            has_thinking_start: false,
            has_thinking_end: false,
            phases: PhaseNumbering::default(),
            has_phase_text: false,
            has_summary: false,
            answer: AnswerStage::Absent,
            held_answer: String::new(),
            spare_answer: String::new(),
            spare_keys: Vec::new(),
            pending_queries: None,
            last_queries: None,
            has_final_end: false,
            hold_limit: options.limits.hold,
            reports: EventReports::default(),
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_answer.len() + self.spare_answer.len()
    }

    /// Returns true if text in the event `name`, which should have none, can only belong to a missing delta
    /// a delta of the phase that starts, of the open phase if no phase has text, or of the answer.
    pub(super) fn accepts_text(&self, name: &str) -> bool {
        let may_have_phase = self.thinking < ThinkingStage::Ended && !self.has_final_end;
        match name {
            "phase_start" => may_have_phase,
            "thinking_end" => may_have_phase && !self.has_phase_text && self.phases.is_open(),
            "final_end" => !self.is_answered() && !self.has_final_end,
            _ => false,
        }
    }

    /// Emits the text of the event `name`, which should have none, as the text of the missing delta.
    pub(super) fn emit_misplaced_text(
        &mut self,
        name: &str,
        text: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let target = match name {
            "final_end" => self.begin_final_delta(at, out),
            _ => DeltaTarget::Phase,
        };
        self.has_phase_text |= target == DeltaTarget::Phase;
        self.push_delta(target, text, at, out);
    }

    /// Handles a complete event of the contract that is not a delta.
    pub(super) fn push_event(
        &mut self,
        name: &str,
        data: &Map<String, Value>,
        at: Place,
        end: usize,
        out: &mut dyn IntentSink,
    ) {
        if self.has_final_end && name == "serp_queries" {
            let message = "`serp_queries` after `final_end`";
            self.reports.add(rules::AFTER_FINAL_END, at, message, "read anyway");
            self.reports.add(rules::QUERIES_MISPLACED, at, message, "sent before `final_end`");
            return self.push_queries(data, at, end, out);
        }
        if self.has_final_end {
            let rule = if name == "final_end" { rules::FINAL_END_DUPLICATE } else { rules::AFTER_FINAL_END };
            return self.reports.add(rule, at, format!("`{name}` after `final_end`"), "left out");
        }
        match name {
            "serp_summary" => self.push_summary(data, at, out),
            "thinking_start" => self.begin_thinking(at, out),
            "phase_start" => self.begin_phase(data, at, out),
            "thinking_end" => self.end_thinking(at, out),
            "serp_queries" => self.push_queries(data, at, end, out),
            // `final_end`.
            _ => self.end_answer(out),
        }
    }

    fn push_summary(&mut self, data: &Map<String, Value>, at: Place, out: &mut dyn IntentSink) {
        if self.thinking > ThinkingStage::NotStarted || self.is_answered() {
            return self.reports.add(
                rules::SUMMARY_LATE,
                at,
                "the summary comes after `thinking_start`",
                "left out",
            );
        }
        if std::mem::replace(&mut self.has_summary, true) {
            return self.reports.add(rules::SUMMARY_DUPLICATE, at, "a second `serp_summary`", "left out");
        }
        let Some(text) = self.read_text(data, at) else {
            self.has_summary = false;
            return;
        };
        if text.trim().is_empty() {
            self.has_summary = false;
            return self.reports.add(rules::SUMMARY_EMPTY, at, "the summary is blank", "left out");
        }
        let plain_text = strip_tags(&text);
        if plain_text != text {
            self.reports.add(rules::SUMMARY_MARKUP, at, "the summary holds tags", "tags removed");
        }
        out.emit_intent(Intent::Summary(plain_text.into()));
    }

    /// Returns the field `text` of an event, and reports its faults.
    fn read_text(&mut self, data: &Map<String, Value>, at: Place) -> Option<String> {
        match data.get("text") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => {
                let text = text_in(value);
                let repair = if text.is_some() { text_repair(value) } else { "event left out" };
                self.reports.add(rules::FIELD_TYPE, at, "`text` is not a string", repair);
                text
            }
            None => {
                self.reports.add(rules::FIELD_MISSING, at, "`text` is missing", "event left out");
                None
            }
        }
    }

    fn begin_thinking(&mut self, at: Place, out: &mut dyn IntentSink) {
        if std::mem::replace(&mut self.has_thinking_start, true) {
            return self.reports.add(
                rules::THINKING_START_DUPLICATE,
                at,
                "a second `thinking_start`",
                "left out",
            );
        }
        if self.thinking > ThinkingStage::NotStarted {
            return self.reports.add(rules::ORDER_INVALID, at, "`thinking_start` comes too late", "left out");
        }
        self.thinking = ThinkingStage::Open;
        out.emit_intent(Intent::ThinkingStart);
    }

    fn begin_phase(&mut self, data: &Map<String, Value>, at: Place, out: &mut dyn IntentSink) {
        if self.thinking == ThinkingStage::Ended {
            self.phases.start_late();
            let message = "`phase_start` after `thinking_end`";
            return self.reports.add(rules::PHASE_AFTER_THINKING_END, at, message, "left out");
        }
        self.thinking = ThinkingStage::Open;
        self.phases.start(data.get("id"), at, &mut self.reports);
        let title = match data.get("title") {
            Some(Value::String(title)) => title.as_str(),
            // A title of another type has been reported already.
            _ => "",
        };
        if title.trim().is_empty() {
            self.reports.add(rules::TITLE_EMPTY, at, "the title is blank", "fallback title");
        }
        out.emit_intent(Intent::Phase(title.into(), at));
    }

    /// Begins a `phase_delta` and returns the destination of its text.
    pub(super) fn begin_phase_delta(
        &mut self,
        id: Option<&Value>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> DeltaTarget {
        if self.has_final_end {
            self.reports.add(rules::AFTER_FINAL_END, at, "`phase_delta` after `final_end`", "left out");
            return DeltaTarget::Discarded;
        }
        if self.thinking == ThinkingStage::Ended {
            let message = "`phase_delta` after `thinking_end`";
            self.reports.add(rules::PHASE_AFTER_THINKING_END, at, message, "left out");
            return DeltaTarget::Discarded;
        }
        let Some(id) = id else {
            self.reports.add(rules::FIELD_MISSING, at, "`id` is missing", "event left out");
            return DeltaTarget::Discarded;
        };
        self.thinking = ThinkingStage::Open;
        self.phases.begin_delta(id, at, &mut self.reports, out);
        self.has_phase_text = true;
        DeltaTarget::Phase
    }

    /// Begins a `final_delta` and returns the destination of its text.
    pub(super) fn begin_final_delta(&mut self, at: Place, out: &mut dyn IntentSink) -> DeltaTarget {
        if self.has_final_end {
            self.reports.add(rules::AFTER_FINAL_END, at, "`final_delta` after `final_end`", "left out");
            return DeltaTarget::Discarded;
        }
        if let Some(Extent { place, end }) = self.pending_queries.take() {
            let report =
                FindingReport::new(rules::QUERIES_MISPLACED, place, end, "`serp_queries` before answer text");
            out.report(report.with_repair("held until the end"));
        }
        if self.thinking == ThinkingStage::Ended {
            self.record_answer();
            return DeltaTarget::Answer;
        }
        if self.answer != AnswerStage::BegunEarly {
            self.answer = AnswerStage::BegunEarly;
            let message = "`final_delta` before `thinking_end`";
            let repair =
                if self.thinking == ThinkingStage::Open { "held until then" } else { "thinking closed" };
            self.reports.add(rules::FINAL_BEFORE_THINKING_END, at, message, repair);
        }
        if self.thinking == ThinkingStage::Open {
            return DeltaTarget::HeldAnswer;
        }
        // No thinking has begun, and none may follow the answer.
        self.thinking = ThinkingStage::Ended;
        out.emit_intent(Intent::ThinkingEnd);
        DeltaTarget::Answer
    }

    /// Emits or buffers text of the current delta.
    #[inline]
    pub(super) fn push_delta(
        &mut self,
        target: DeltaTarget,
        text: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        match target {
            DeltaTarget::Phase => out.emit_intent(Intent::PhaseText(text)),
            DeltaTarget::Answer => out.emit_intent(Intent::FinalText(text)),
            // Earlier text of this delta exceeded the limit (next arm), which ended the thinking.
            DeltaTarget::HeldAnswer if self.thinking == ThinkingStage::Ended => {
                out.emit_intent(Intent::FinalText(text))
            }
            DeltaTarget::HeldAnswer => {
                let held_len = text.floor_char_boundary(self.hold_limit - self.held_answer.len());
                self.held_answer.push_str(&text[..held_len]);
                if held_len < text.len() {
                    let message = "more answer text before `thinking_end` than `limits.hold` allows";
                    self.reports.add(rules::LIMIT_EXCEEDED, at, message, "thinking closed");
                    self.close_thinking(out);
                    out.emit_intent(Intent::FinalText(&text[held_len..]));
                }
            }
            DeltaTarget::Discarded => {}
        }
    }

    /// Reports that the delta `name` has an empty text or none.
    pub(super) fn report_empty_delta(&mut self, name: &str, at: Place, message: &str) {
        self.reports.add_on_row(rules::DELTA_EMPTY, delta_row(name), at, message, "left out");
    }

    fn end_thinking(&mut self, at: Place, out: &mut dyn IntentSink) {
        if std::mem::replace(&mut self.has_thinking_end, true) {
            return self.reports.add(
                rules::THINKING_END_DUPLICATE,
                at,
                "a second `thinking_end`",
                "left out",
            );
        }
        if self.thinking == ThinkingStage::Ended {
            return self.reports.add(rules::ORDER_INVALID, at, "`thinking_end` comes too late", "left out");
        }
        self.close_thinking(out);
    }

    /// Ends the thinking, and emits the answer text held until then.
    fn close_thinking(&mut self, out: &mut dyn IntentSink) {
        self.thinking = ThinkingStage::Ended;
        out.emit_intent(Intent::ThinkingEnd);
        let held_answer = std::mem::take(&mut self.held_answer);
        if !held_answer.is_empty() {
            out.emit_intent(Intent::FinalText(&held_answer));
        }
    }

    fn push_queries(&mut self, data: &Map<String, Value>, at: Place, end: usize, out: &mut dyn IntentSink) {
        let previous_queries = self.last_queries;
        match data.get("queries") {
            Some(queries @ Value::Array(_)) => {
                let extent = Extent { place: at, end };
                (self.last_queries, self.pending_queries) = (Some(extent), Some(extent));
                if let Some(Extent { place, end }) = previous_queries {
                    // The finding is on the earlier queries, because they are lost.
                    let report = FindingReport::new(
                        rules::QUERIES_DUPLICATE,
                        place,
                        end,
                        "a second `serp_queries` follows",
                    );
                    out.report(report.with_repair("the last valid one used, others not used"));
                }
                out.emit_queries(RawQueries::Value(queries), at, end);
            }
            Some(_) => {
                if previous_queries.is_some() {
                    let message = "a second `serp_queries`";
                    self.reports.add(
                        rules::QUERIES_DUPLICATE,
                        at,
                        message,
                        "the last valid one used, others not used",
                    );
                }
                let message = "`queries` is not an array";
                self.reports.add_on_row(rules::FIELD_TYPE, "J-003", at, message, "event left out");
            }
            None => self.reports.add(rules::FIELD_MISSING, at, "`queries` is missing", "event left out"),
        }
    }

    /// Handles `final_end`.
    fn end_answer(&mut self, out: &mut dyn IntentSink) {
        self.has_final_end = true;
        if self.thinking == ThinkingStage::Open {
            self.close_thinking(out);
        }
    }

    /// Keeps the text under doubtful keys, in case the reply has no other answer; at most `limits.hold` bytes
    /// in total, and nothing once [`MAX_SPARE_KEYS`] keys are kept. Returns whether the text was kept.
    pub(super) fn keep_spare(&mut self, text: &str, keys: Vec<(&'static str, Extent)>) -> bool {
        let has_room =
            self.spare_answer.len() + text.len() <= self.hold_limit && self.spare_keys.len() < MAX_SPARE_KEYS;
        let is_kept = !self.is_answered() && !self.has_final_end && has_room;
        if is_kept {
            self.spare_answer.push_str(text);
            self.spare_keys.extend(keys);
        }
        is_kept
    }

    /// Emits the kept texts as the answer if there is no other; otherwise reports that they are lost.
    fn finish_spare(&mut self, out: &mut dyn IntentSink) {
        let is_used = !self.is_answered() && !self.spare_keys.is_empty();
        for (key, extent) in self.spare_keys.drain(..) {
            let (rule, row, message, repair) = match is_used {
                true => (
                    rules::FIELD_RENAMED,
                    "R-76",
                    format!("the text is called `{key}`, and is not the only such text"),
                    "read as the answer, since there is no other",
                ),
                false => (
                    rules::FIELD_EXTRA,
                    "J-051",
                    format!("`final_delta` has the unknown field `{key}`"),
                    if extent.is_empty() { "not used" } else { "left out" },
                ),
            };
            let report = FindingReport::new(rule, extent.place, extent.end, message);
            out.report(report.with_row(row).with_repair(repair));
        }
        let spare_answer = std::mem::take(&mut self.spare_answer);
        if is_used {
            out.emit_intent(Intent::FinalText(&spare_answer));
            self.record_answer();
        }
    }

    /// Returns true once a piece of the answer has been seen.
    pub(super) fn is_answered(&self) -> bool {
        self.answer != AnswerStage::Absent
    }

    /// Records that the answer has begun.
    fn record_answer(&mut self) {
        if self.answer == AnswerStage::Absent {
            self.answer = AnswerStage::Begun;
        }
    }

    /// Ends the input: closes the thinking and reports missing events.
    pub(super) fn finish(&mut self, end: Place, out: &mut dyn IntentSink) {
        if self.thinking == ThinkingStage::Open {
            self.close_thinking(out);
        }
        self.finish_spare(out);
        let missing = [
            (!self.has_thinking_start, rules::THINKING_START_MISSING, "there is no `thinking_start`"),
            (self.phases.count() == 0, rules::PHASE_MISSING, "there is no `phase_start`"),
            (!self.has_thinking_end, rules::THINKING_END_MISSING, "there is no `thinking_end`"),
            (!self.is_answered(), rules::FINAL_DELTA_MISSING, "there is no `final_delta`"),
            (!self.has_final_end, rules::FINAL_END_MISSING, "there is no `final_end`"),
        ];
        for (_, rule, message) in missing.into_iter().filter(|(is_missing, ..)| *is_missing) {
            out.report(FindingReport::new(rule, end, end.offset, message).with_repair("added"));
        }
        if self.phases.count() == 1 {
            out.report(FindingReport::new(rules::SINGLE_PHASE, end, end.offset, "there is only one phase"));
        }
    }
}

/// Phases seen so far. Checks the model's ids and assigns deltas to phases (J-007, J-008, J-010, J-017).
#[derive(Default)]
struct PhaseNumbering {
    /// Ids of the phases the model itself began.
    ids: HashSet<u64>,
    /// Number of phases the model itself began, late ones included.
    begun_count: u32,
    /// Id of the current phase as a number; `None` before the first phase and after one that begins too late.
    current_id: Option<u64>,
    /// Id of the current phase as it was written, even if it is not a number.
    written_id: Option<Value>,
    /// Id that the next phase's id must exceed; 0 before the first phase.
    last_id: u64,
    /// Set if only a delta has used `last_id`, so that the phase with this id may still begin.
    is_last_from_delta: bool,
}

impl PhaseNumbering {
    /// Returns the number of phases the model itself began.
    fn count(&self) -> u32 {
        self.begun_count
    }

    /// Returns true if a phase has begun.
    fn is_open(&self) -> bool {
        self.current_id.is_some()
    }

    /// Begins a phase with this id.
    fn start(&mut self, id: Option<&Value>, at: Place, reports: &mut EventReports) {
        self.begun_count += 1;
        let number = self.read_number(id, at, reports);
        (self.last_id, self.is_last_from_delta) = (number, false);
        self.ids.insert(number);
        self.current_id = Some(number);
        self.written_id = id.cloned();
    }

    /// Counts a phase that begins where none may; its text is discarded.
    fn start_late(&mut self) {
        self.begun_count += 1;
        self.current_id = None;
    }

    /// Reads the id of a phase that begins, and reports its faults; an unusable id counts as the next number.
    fn read_number(&mut self, value: Option<&Value>, at: Place, reports: &mut EventReports) -> u64 {
        let expected_id = self.last_id.saturating_add(1);
        let Some(id) = value.and_then(Value::as_u64).filter(|&id| id > 0) else {
            let excerpt = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let excerpt = clip(&excerpt, 40);
            let message = format!("the id of a phase must be a positive integer, not {excerpt}");
            reports.add(rules::PHASE_ID_INVALID, at, message, "numbered in order");
            return parse_lenient_id(value).filter(|&id| id > self.last_id).unwrap_or(expected_id);
        };
        if id == self.last_id && self.is_last_from_delta {
            return id;
        }
        if id <= self.last_id {
            let message = format!("phase {id} comes after phase {}", self.last_id);
            reports.add(rules::PHASE_ID_NOT_INCREASING, at, message, "numbered in order");
        } else if id != expected_id {
            let message = format!("phase {id} where phase {expected_id} is expected");
            reports.add(rules::PHASE_ID_NOT_CONSECUTIVE, at, message, "numbered in order");
        }
        id
    }

    /// Begins a delta for the phase with this id. If no phase has begun, one is started.
    fn begin_delta(
        &mut self,
        value: &Value,
        at: Place,
        reports: &mut EventReports,
        out: &mut dyn IntentSink,
    ) {
        // Even an unusable id means the current phase, if the phase began with the same id.
        let current_id = self.current_id.filter(|_| self.written_id.as_ref() == Some(value));
        // No phase has the id 0.
        let id = current_id.or_else(|| parse_lenient_id(Some(value))).unwrap_or(0);
        match self.current_id {
            None => {
                let message = format!("phase {id} has not started");
                let repair = "a phase with the fallback title";
                reports.add_on_row(rules::DELTA_UNKNOWN, "J-017", at, message, repair);
                self.current_id = Some(id);
                self.written_id = Some(value.clone());
                self.is_last_from_delta = id > self.last_id;
                self.last_id = self.last_id.max(id);
                out.emit_intent(Intent::Phase("".into(), at));
            }
            Some(current) if current == id && self.ids.contains(&id) => {}
            Some(current) => {
                let has_started = self.ids.contains(&id);
                let rule = if has_started { rules::DELTA_NOT_CURRENT } else { rules::DELTA_UNKNOWN };
                let message = format!("a delta for phase {id} while phase {current} is the last one");
                reports.add(rule, at, message, "text of the last phase");
            }
        }
    }
}

/// Reads a positive integer, also one written as a string or as `1.0`; `None` for anything else.
pub(super) fn parse_lenient_id(value: Option<&Value>) -> Option<u64> {
    let id = match value? {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|id| id.fract() == 0.0).map(|id| id as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    id.filter(|&id| id > 0)
}

/// Returns the text without its tags. If the removal of a tag creates a new tag, the new one is kept as text.
fn strip_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    lex_tokens(text, &mut |token| match token {
        MarkupToken::Tag(_) => {}
        _ => out.push_str(token.raw()),
    });
    if out.len() == text.len() {
        return out;
    }
    // A tag holds no second `<`, so a blank after its `<` turns it into text and creates no other tag.
    let mut spaced = String::with_capacity(out.len());
    lex_tokens(&out, &mut |token| match token {
        MarkupToken::Tag(tag) => spaced.extend(["< ", &tag.raw[1..]]),
        _ => spaced.push_str(token.raw()),
    });
    spaced
}

/// Visits the markup tokens of a complete text.
fn lex_tokens(text: &str, visit: &mut dyn FnMut(MarkupToken<'_>)) {
    let mut lexer = MarkupLexer::new("", text.len() + 1);
    lexer.push(text, &mut |token, _| visit(token));
    lexer.finish(&mut |token, _| visit(token));
}

/// Returns the specification row of the delta `name`.
pub(super) fn delta_row(name: &str) -> &'static str {
    if name == "final_delta" { "J-013" } else { "J-011" }
}
