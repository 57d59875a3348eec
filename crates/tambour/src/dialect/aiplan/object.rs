//! The current object: its thought and answer are emitted as they arrive, when allowed; its places and mode
//! are tracked.

use super::check::{CheckedPlan, MIN_NESTED_FIELDS, PlanPlaces};
use super::modes::{AnswerRequirement, find_mode};
use super::options;
use super::surroundings::PlanContext;
use crate::dialect::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::finding::FindingReport;
use crate::lex::space::{is_blank, is_space};
use crate::options::Options;
use crate::repair::json::{JsonEvent, TopKeyTracker};
use crate::span::Place;

/// State of the object being read.
pub(super) struct PlanObject {
    /// Position of the object in the reply.
    pub(super) context: PlanContext,
    /// Places of its members.
    pub(super) places: PlanPlaces,
    /// Places of an object nested in it, which may be the plan.
    pub(super) inner_places: PlanPlaces,
    /// Findings on its JSON.
    pub(super) reports: Vec<FindingReport>,
    /// Set if a number in it was rounded.
    pub(super) has_rounded_number: bool,
    /// Set once it looks like a plan: it has `min_fields` fields of plans, or an object in it has several.
    pub(super) is_likely: bool,
    /// Minimum number of plan fields for it to look like a plan; more than one after prose.
    min_fields: usize,
    /// The thought, held back until the object looks like a plan.
    held_thought: String,
    /// Field that the current string is the value of.
    current_string: PlanString,
    /// The mode as written; cut after [`MAX_MODE`] bytes and one character if it is too long.
    mode: String,
    /// Set once the mode is known to allow an answer.
    pub(super) allows_answer: bool,
    /// Set once a thought has been read, or can no longer follow.
    pub(super) has_thought: bool,
    /// The answer, while it is held back.
    pub(super) held_answer: String,
    /// Part of the answer that was emitted.
    pub(super) answer: PlanAnswer,
    /// Set once the object exceeds the limits, so that it is not a plan.
    pub(super) is_too_large: bool,
}

/// Part of the answer that was emitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanAnswer {
    /// No part of it was emitted.
    Unsent,
    /// Text under its last key was emitted, and none under an earlier key.
    Sent,
    /// Text was emitted, and a second key of the answer came after it.
    SentBeforeKey,
}

/// Field that a string is the value of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanString {
    Other,
    Thought,
    Mode,
    Answer,
}

/// Longest mode, in bytes.
const MAX_MODE: usize = 64;

impl PlanObject {
    /// Creates the state of an object that begins at `start`. After prose, a single plan field does not make
    /// it a plan.
    pub(super) fn new(context: PlanContext, start: Place, follows_prose: bool) -> PlanObject {
        PlanObject {
            context,
            places: PlanPlaces::new(start),
            inner_places: PlanPlaces::new(start),
            reports: Vec::new(),
            has_rounded_number: false,
            is_likely: false,
            min_fields: if follows_prose { MIN_NESTED_FIELDS } else { 1 },
            held_thought: String::new(),
            current_string: PlanString::Other,
            mode: String::new(),
            allows_answer: false,
            has_thought: false,
            held_answer: String::new(),
            answer: PlanAnswer::Unsent,
            is_too_large: false,
        }
    }

    /// Returns true once text of its answer was emitted.
    pub(super) fn has_sent_answer(&self) -> bool {
        self.answer != PlanAnswer::Unsent
    }

    /// Follows the JSON of the object and emits text that may be emitted. The two flags say whether the reply
    /// has emitted text of a thought and of an answer; they are updated.
    #[inline]
    pub(super) fn push_event(
        &mut self,
        event: &JsonEvent<'_>,
        tracker: &TopKeyTracker,
        options: &Options,
        (has_thought, has_answer): (&mut bool, &mut bool),
        out: &mut dyn IntentSink,
    ) {
        match event {
            JsonEvent::StringDelta(text) => match self.current_string {
                PlanString::Other => {}
                PlanString::Thought if !self.is_likely => self.held_thought.push_str(text),
                PlanString::Thought => self.emit_thought(text, (has_thought, *has_answer), out),
                // One byte more than the longest mode shows that the word is too long.
                PlanString::Mode => {
                    for c in text.chars() {
                        if self.mode.len() <= MAX_MODE {
                            self.mode.push(c);
                        }
                    }
                }
                PlanString::Answer if self.has_sent_answer() && self.held_answer.is_empty() => {
                    out.emit_intent(Intent::FinalText(text))
                }
                // The object is too large, so the answer will never be emitted.
                PlanString::Answer if self.is_too_large && !self.has_sent_answer() => {}
                PlanString::Answer => {
                    self.hold_answer(text);
                    self.emit_answer(options, has_answer, out);
                }
            },
            JsonEvent::Key { text, place, depth } => match *depth {
                1 => {
                    self.push_top_key(text, place.place());
                    self.is_likely |= self.places.field_count() >= self.min_fields;
                    if self.is_likely {
                        self.emit_held_thought((has_thought, *has_answer), out);
                    }
                }
                // A key of an object that the object or a list contains.
                2 if !self.is_likely || self.inner_places.field_count() > 0 => {
                    self.inner_places.push_key(text, place.place());
                    self.is_likely |= self.inner_places.field_count() >= MIN_NESTED_FIELDS;
                }
                // Keys of a call are at depth 3, keys of a call in a wrapped plan at depth 4.
                3 if tracker.enclosing_key() == Some("tool_calls") => {
                    self.places.push_call_key(|| place.place())
                }
                4 if self.inner_places.is_in_calls() => self.inner_places.push_call_key(|| place.place()),
                _ => {}
            },
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => self.begin_value(tracker, tracker.depth() - 1),
            JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null => {
                self.begin_value(tracker, tracker.depth())
            }
            JsonEvent::StringStart => {
                self.begin_value(tracker, tracker.depth());
                self.current_string = match tracker.current_key() {
                    Some("thought") => {
                        if *has_thought && !*has_answer {
                            // A reply has one phase, even if its first object turns out not to be a plan
                            //
                            out.emit_intent(Intent::PhaseText("\n\n"));
                        }
                        PlanString::Thought
                    }
                    Some("response_mode") => {
                        self.mode.clear();
                        PlanString::Mode
                    }
                    Some("direct_response") => {
                        // The last of several answers counts; emitted text is not retracted.
                        self.held_answer.clear();
                        if self.has_sent_answer() {
                            self.held_answer.push('\n');
                        }
                        PlanString::Answer
                    }
                    _ => PlanString::Other,
                };
            }
            JsonEvent::StringEnd => {
                match std::mem::replace(&mut self.current_string, PlanString::Other) {
                    PlanString::Thought => self.has_thought = true,
                    PlanString::Mode => {
                        let mode = find_mode(options::plan_variant(options), &self.mode);
                        let mode = mode.filter(|_| self.mode.len() <= MAX_MODE);
                        self.allows_answer = !self.is_too_large
                            && mode.is_some_and(|mode| mode.answer != AnswerRequirement::Null);
                    }
                    PlanString::Answer | PlanString::Other => return,
                }
                self.emit_answer(options, has_answer, out);
            }
            _ => {}
        }
    }

    /// Handles a key of the object itself. If the key repeats the mode or the answer, the earlier value is
    /// dropped, unless it is an answer that was emitted.
    fn push_top_key(&mut self, text: &str, place: Place) {
        self.places.push_key(text, place);
        match text {
            "response_mode" => self.allows_answer = false,
            "direct_response" if self.has_sent_answer() => self.answer = PlanAnswer::SentBeforeKey,
            "direct_response" => self.held_answer.clear(),
            _ => {}
        }
    }

    /// Returns true if the value contains a likely plan, but is not a plan itself.
    pub(super) fn is_wrapped(&self) -> bool {
        self.is_likely && self.places.field_count() == 0
    }

    /// Buffers the answer of a valid plan if it was not a string and was read as one.
    pub(super) fn hold_converted_answer(&mut self, checked_plan: &CheckedPlan) {
        if checked_plan.is_valid && checked_plan.is_converted_answer && !self.has_sent_answer() {
            self.held_answer.clear();
            self.hold_answer(checked_plan.plan["direct_response"].as_str().unwrap_or_default());
        }
    }

    /// Emits the held-back thought, because the object counts as a plan.
    pub(super) fn emit_held_thought(
        &mut self,
        (has_thought, has_answer): (&mut bool, bool),
        out: &mut dyn IntentSink,
    ) {
        let held_thought = std::mem::take(&mut self.held_thought);
        if !held_thought.is_empty() {
            self.emit_thought(&held_thought, (has_thought, has_answer), out);
        }
    }

    /// Emits text of the thought. Once an answer was emitted, thinking is over and the text is an aside.
    pub(super) fn emit_thought(
        &self,
        text: &str,
        (has_thought, has_answer): (&mut bool, bool),
        out: &mut dyn IntentSink,
    ) {
        if has_answer {
            return out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text });
        }
        if !*has_thought && !is_blank(text) {
            // A phase begins explicitly, because in a tool loop the stream already has earlier phases.
            out.emit_intent(Intent::Phase("".into(), self.places.member_extent("thought").place));
            *has_thought = true;
        }
        out.emit_intent(Intent::PhaseText(text));
    }

    /// Buffers text of the answer; leading white space is dropped.
    pub(super) fn hold_answer(&mut self, text: &str) {
        let text = if self.held_answer.is_empty() && !self.has_sent_answer() {
            text.trim_start_matches(is_space)
        } else {
            text
        };
        self.held_answer.push_str(text);
    }

    /// Marks the object as too large: it is not a plan, and a held-back answer is dropped.
    pub(super) fn mark_too_large(&mut self) {
        if !std::mem::replace(&mut self.is_too_large, true) {
            self.held_answer = String::new();
            self.allows_answer &= self.has_sent_answer();
        }
    }

    /// Begins a value at this nesting depth, which may be an item of the list of calls.
    fn begin_value(&mut self, tracker: &TopKeyTracker, depth: usize) {
        if self.is_too_large {
            return;
        }
        if depth == 2 && tracker.enclosing_key() == Some("tool_calls") {
            self.places.begin_call();
        } else if depth == 3 && self.inner_places.is_in_calls() {
            self.inner_places.begin_call();
        }
    }

    /// Emits the buffered answer if the mode allows it, once the thought has been read or more than
    /// `limits.hold` bytes of the answer are waiting for the thought.
    pub(super) fn emit_answer(&mut self, options: &Options, has_answer: &mut bool, out: &mut dyn IntentSink) {
        let must_wait = !self.has_thought && self.held_answer.len() <= options.limits.hold;
        if !self.allows_answer || must_wait || self.held_answer.is_empty() {
            return;
        }
        let held_answer = std::mem::take(&mut self.held_answer);
        out.emit_intent(Intent::FinalText(&held_answer));
        if self.answer == PlanAnswer::Unsent {
            self.answer = PlanAnswer::Sent;
        }
        *has_answer = true;
    }
}
