//! Finds the answer among the objects of a reply and streams its message.
//!
//! The first object with a message is the answer; if none has one, the first that looks like an answer
//! . `object` holds the state of the current value and `values` takes it once it is complete. `shapes`
//! reads answers in other shapes; `marks` tells marks that end reasoning from mere mentions of them.
//!
//! Reasoning is a draft if it precedes the answer, and an aside if it follows it.

use serde_json::Value;

use super::examples::ExampleDetector;
use super::fields::{ANSWER_FIELDS, ASSESSMENT_FIELDS, ParsedAnswer, ResponseShape};
use super::marks::{MarkContext, MarkMeaning, PendingMark};
use super::message::{AnswerMessage, StringOutcome, TextPosition};
use super::object::AnswerObject;
use super::prose::{AnswerProse, ProseExtents};
use super::rules;
use super::shapes::{self, ValuePlace};
use crate::dialect::draft::{LeadingDraft, ReasoningRules};
use crate::dialect::preface::Preface;
use crate::dialect::structure_reader::JsonStructure;
use crate::dialect::surroundings::KeptText;
use crate::dialect::thoughts::Thoughts;
use crate::dialect::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::finding::{FindingReport, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{
    BuiltValue, JsonEvent, JsonReader, ThoughtClosing, ThoughtMark, TokenPlace, ValueBuilder, ValueDoubts,
    ValueOrigin, ValueStart,
};
use crate::repair::rules as repairs;
use crate::span::{Extent, Place};

/// Reader of one `ai_say` reply.
pub(super) struct AiSayReader {
    /// Extents of the text around the answer.
    pub(super) prose_extents: ProseExtents,
    /// Set once something that looks like an answer has begun.
    pub(super) has_begun: bool,
    pub(super) thoughts: Thoughts,
    /// Start of an object that was truncated before it could be recognized as an answer.
    pub(super) truncated_object: Option<Place>,
    pub(super) message: AnswerMessage,
    /// The current value.
    pub(super) object: AnswerObject,
    /// Builder of the current value.
    builder: ValueBuilder,
    /// The answer; until a message is emitted, the first object that looks like one.
    pub(super) answer: Option<ParsedAnswer>,
    /// Findings on an object that may turn out not to be an answer.
    pub(super) pending_reports: Vec<FindingReport>,
    /// Text after the answer, which becomes an aside if a closing mark shows that it was reasoning. Kept only
    /// while nothing but text follows the answer.
    pub(super) text_after: KeptText,
    /// Text directly before the next closing mark after the answer.
    pub(super) mark_context: MarkContext,
    /// A mark after the answer that is undecided until more text follows.
    pending_mark: Option<PendingMark>,
    /// Prose around the answer, which is the message if the answer has none.
    pub(super) prose: AnswerProse,
    /// Detects examples from the text around the answer.
    pub(super) examples: ExampleDetector,
    /// Set if the current object is quoted.
    pub(super) is_quoted: bool,
    pub(super) limits: Limits,
    /// Keys of the message.
    pub(super) roles: Vec<String>,
    /// Additional keys that mark an object as an answer.
    answer_keys: &'static [&'static str],
}

/// Depth to which places of keys are recorded: a key around the answer, a field, and three levels of keys in
/// it.
const PLACE_DEPTH: usize = 5;

impl JsonStructure for AiSayReader {
    const REASONING_RULES: ReasoningRules = rules::REASONING_RULES;
    const OVERFLOW: (&'static Rule, &'static str, &'static str) = (
        rules::LIMIT_EXCEEDED,
        "more text before the answer than `limits.hold` allows",
        "sent as the message",
    );

    fn new_reader(limits: &Limits) -> JsonReader {
        JsonReader::new_chat(limits).with_sought_keys(&ANSWER_FIELDS)
    }

    fn start_at(&mut self, place: Place, leading_draft: &LeadingDraft) {
        self.thoughts.set_structure_in_thought(leading_draft.is_reply_in_draft());
        self.prose_extents.start_at(place);
    }

    fn enter_thought(&mut self, place: Place) {
        self.prose_extents.start_at(place);
    }

    #[inline]
    fn handle_event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn IntentSink) {
        if let JsonEvent::StringDelta(text) = event
            && self.object.is_response_text
        {
            return self.message.push(text, out);
        }
        if self.pending_mark.is_some() && self.push_to_mark(event, preface, out) {
            return;
        }
        if self.hold_mark(event) || self.thoughts.handle_event(event, self.has_begun, preface, out) {
            return self.handle_thought_event(event, out);
        }
        if let JsonEvent::Key { text, depth, place } = event
            && !self.object.has_ended
        {
            let object = &mut self.object;
            let mut level = depth.saturating_sub(object.field_depth());
            if object.leave_unclosed_assessment(text, level) {
                level = 1;
            }
            if let Some(text) = object.find_renamed_field(text, level, *place) {
                return self.read_event(&JsonEvent::Key { text, depth: *depth, place: *place }, out);
            }
        }
        self.read_event(event, out);
    }

    fn handle_report(&mut self, report: FindingReport, out: &mut dyn IntentSink) {
        // Faults of JSON get the specification row of this dialect, if their rule has one.
        let answer_row = report.rule.rows.iter().find(|row| row.starts_with("S-"));
        let report = match answer_row {
            Some(row) => report.with_row(row),
            None => report,
        };
        let object = &self.object;
        // Findings wait until the object is known to be an answer. After a message has been emitted, an
        // object is not read as the answer, so its findings are dropped.
        if report.rule.code == rules::LIMIT_EXCEEDED.code || object.is_recognized && !object.is_late {
            out.report(report);
        } else if !object.is_late {
            self.pending_reports.push(report);
        }
    }

    fn handle_bracket(&mut self, place: TokenPlace<'_>) {
        self.object.set_bracket(place);
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.thoughts
    }

    fn held_bytes(&self) -> usize {
        let after_bytes = self.text_after.held_bytes();
        // Before an answer has begun, the preface holds and counts all text.
        let object_bytes = if self.has_begun { self.object.held_bytes } else { 0 };
        // The prose includes the text after the answer, so only the larger of the two counts.
        let prose_bytes = if self.has_begun && !self.message.is_sent() { self.prose.held_bytes() } else { 0 };
        self.message.held_bytes() + self.thoughts.held_bytes() + after_bytes.max(prose_bytes) + object_bytes
    }
}

impl AiSayReader {
    pub(super) fn new(options: &Options) -> AiSayReader {
        AiSayReader {
            prose_extents: ProseExtents::default(),
            has_begun: false,
            thoughts: Thoughts::new(rules::REASONING_RULES, rules::THINK_LATE, &options.limits),
            truncated_object: None,
            message: AnswerMessage::new(options.limits.hold),
            object: AnswerObject::default(),
            builder: ValueBuilder::with_limits(options.limits.value, options.limits.items)
                .with_member_places(PLACE_DEPTH),
            answer: None,
            pending_reports: Vec::new(),
            text_after: KeptText::stopped(options.limits.hold),
            mark_context: MarkContext::default(),
            pending_mark: None,
            prose: AnswerProse::new(options.limits.hold),
            examples: ExampleDetector::default(),
            is_quoted: false,
            limits: options.limits.clone(),
            roles: super::roles(options),
            answer_keys: super::answer_keys(options),
        }
    }

    /// Returns true once text of a message has been emitted.
    pub(super) fn is_sent(&self) -> bool {
        self.message.is_sent()
    }

    /// Handles the next event, with its keys translated to the fields they stand for.
    fn read_event(&mut self, event: &JsonEvent<'_>, out: &mut dyn IntentSink) {
        self.object.count_held(event, self.limits.hold);
        let object = &mut self.object;
        match event {
            JsonEvent::Text(text) => return self.push_text(text),
            JsonEvent::Comment(text) => return self.push_comment(text),
            JsonEvent::ValueStart(start) => {
                self.prose_extents.end_line();
                self.is_quoted = self.examples.begin_object();
                if start.is_in_open_comment {
                    self.thoughts.set_structure_in_thought(true);
                }
                self.object = AnswerObject::new(start, self.message.is_sent());
                self.pending_reports.clear();
                self.message.forget_lost_keys();
            }
            JsonEvent::ObjectStart => object.open_object(),
            JsonEvent::ArrayStart => {
                object.begin_list();
                object.open_array();
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                object.depth = object.depth.saturating_sub(1);
                let depth = object.depth;
                object.end_list();
                if depth == object.field_depth() + 1 && object.top_key == "response" && !object.has_ended {
                    self.close_response(out);
                } else {
                    object.close_bracket();
                }
            }
            JsonEvent::Key { text, depth, place } if !object.has_ended => {
                let is_role = self.roles.iter().any(|role| role == text);
                let level = depth.saturating_sub(object.field_depth());
                let is_answer_key = object.push_key(text, level, *place, self.message.is_sent(), is_role);
                if is_answer_key || (level == 1 && !object.is_recognized && self.answer_keys.contains(text)) {
                    self.recognize_answer(out);
                }
            }
            JsonEvent::StringStart => self.begin_string(),
            JsonEvent::StringEnd if std::mem::take(&mut object.is_response_text) => {
                match self.message.end(out) {
                    StringOutcome::Text => {}
                    StringOutcome::Placeholder => object.placeholders.push(object.key_place),
                    StringOutcome::PossibleObject(text) => self.read_string_response(&text, out),
                }
            }
            _ => {}
        }
        match (self.builder.push_event(event), event) {
            (Some(built_value), _) => self.push_value(built_value, out),
            // The builder has discarded the contents of an oversized value.
            (None, JsonEvent::ValueEnd(end)) => {
                let start = ValueStart {
                    index: 0,
                    place: self.object.place,
                    origin: self.object.origin,
                    is_in_open_comment: false,
                };
                let (duplicates, members) = (Vec::new(), self.builder.take_members(end.offset));
                let doubts = ValueDoubts::default();
                self.push_value(
                    BuiltValue { value: Value::Null, start, end: *end, duplicates, doubts, members },
                    out,
                );
            }
            _ => {}
        }
    }

    /// Handles text outside the objects.
    fn push_text(&mut self, text: &str) {
        self.prose_extents.push(text);
        if self.message.is_sent() {
            self.prose.stop();
        } else {
            self.prose.push(text);
        }
        self.push_outside(text);
    }

    /// Handles a comment outside the objects.
    fn push_comment(&mut self, text: &str) {
        self.prose_extents.push_comment(text);
        if !self.message.is_sent() {
            self.prose.push(text);
        }
        self.push_outside(text);
    }

    /// Passes text outside the objects to the trackers of examples, marks and asides.
    fn push_outside(&mut self, text: &str) {
        if self.examples.push(text) {
            self.mark_example();
        }
        self.mark_context.push(text);
        self.text_after.push(text);
    }

    /// Marks the answer that precedes the current text as an example.
    pub(super) fn mark_example(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.is_example = true;
        }
    }

    /// Holds a closing mark after a complete answer, because it may be only a mention. Returns true if the
    /// event is such a mark.
    fn hold_mark(&mut self, event: &JsonEvent<'_>) -> bool {
        let JsonEvent::ThoughtEnd(mark, ThoughtClosing::Unopened) = event else { return false };
        if self.answer.as_ref().is_none_or(|answer| answer.is_truncated || answer.is_thought) {
            return false;
        }
        self.pending_mark = Some(PendingMark::new(mark.text, mark.place, self.mark_context));
        true
    }

    /// Passes text to an undecided mark. Returns true if the mark consumed the event.
    fn push_to_mark(
        &mut self,
        event: &JsonEvent<'_>,
        preface: &mut Preface,
        out: &mut dyn IntentSink,
    ) -> bool {
        let (Some(mark), JsonEvent::Text(text)) = (&mut self.pending_mark, event) else {
            self.resolve_mark(MarkMeaning::EndOfReasoning, preface, out);
            return false;
        };
        let (read_len, meaning) = mark.push(text);
        if meaning != MarkMeaning::Undecided {
            self.resolve_mark(meaning, preface, out);
            if read_len < text.len() {
                self.push_text(&text[read_len..]);
            }
        }
        true
    }

    /// Handles a mark after the answer whose meaning is now known.
    pub(super) fn resolve_mark(
        &mut self,
        meaning: MarkMeaning,
        preface: &mut Preface,
        out: &mut dyn IntentSink,
    ) {
        let Some(mark) = self.pending_mark.take() else { return };
        if meaning == MarkMeaning::Mention {
            self.push_text(&mark.text);
        } else {
            let mark = ThoughtMark { text: &mark.text, place: mark.place };
            let end = JsonEvent::ThoughtEnd(mark, ThoughtClosing::Unopened);
            self.thoughts.handle_event(&end, self.has_begun, preface, out);
            self.handle_thought_event(&end, out);
        }
        if !mark.text_after.is_empty() {
            self.push_text(&mark.text_after);
        }
    }

    /// Handles the start or end of a thought outside the objects.
    fn handle_thought_event(&mut self, event: &JsonEvent<'_>, out: &mut dyn IntentSink) {
        match event {
            // This event is a mark that was held; its meaning is not known yet.
            _ if self.pending_mark.is_some() => {}
            JsonEvent::ThoughtStart(mark) => self.prose_extents.end_prose(mark.place.offset),
            JsonEvent::ThoughtEnd(mark, closing) => {
                if *closing == ThoughtClosing::Unopened {
                    self.prose_extents.end_line();
                    // After an emitted message the mark is dropped, unless another answer follows:
                    // then the mark ended a draft.
                    if let Some(answer) = &mut self.answer {
                        answer.is_thought |= !self.message.is_sent();
                        answer.is_doubtful = true;
                    }
                    self.discard_reasoning(out);
                }
                self.prose_extents.start_at(mark.end());
            }
            _ => {}
        }
    }

    /// Treats the text before an unopened closing mark as reasoning: a draft, or an aside after the answer
    ///
    fn discard_reasoning(&mut self, out: &mut dyn IntentSink) {
        self.prose.clear();
        // The extents of prose are dropped, because reasoning is not reported as prose.
        if !self.has_begun {
            self.prose_extents.take_extents(0);
        } else if self.text_after.is_keeping() {
            let text = self.text_after.take();
            if !text.trim().is_empty() {
                out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text: &text });
            }
            self.prose_extents.take_extents(0);
        }
    }

    /// Marks the current object as an answer.
    fn recognize_answer(&mut self, out: &mut dyn IntentSink) {
        self.object.is_recognized = true;
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        self.prose_extents.end_prose(self.object.place.offset);
        if self.object.is_late {
            return;
        }
        if is_first {
            self.begin_answer(self.object.place, self.object.origin, out);
        }
        self.pending_reports.drain(..).for_each(|report| out.report(report));
    }

    /// Begins the first answer.
    pub(super) fn begin_answer(&mut self, at: Place, origin: ValueOrigin, out: &mut dyn IntentSink) {
        self.prose.begin_answer(origin != ValueOrigin::Bare);
        self.report_prose(
            at.offset,
            ("text before the answer", "not used, unless the answer has no message"),
            out,
        );
        if origin != ValueOrigin::Bare {
            let message = "the answer is in a code fence";
            out.report(
                FindingReport::new(rules::FENCED_REPLY, at, at.offset, message).with_repair("fence removed"),
            );
        }
    }

    /// Reports the text around the answer up to `end`.
    pub(super) fn report_prose(
        &mut self,
        end: usize,
        (message, repair): (&str, &str),
        out: &mut dyn IntentSink,
    ) {
        for Extent { place, end } in self.prose_extents.take_extents(end) {
            let report = FindingReport::new(&repairs::TEXT_AROUND, place, end, message);
            out.report(report.with_row("S-053").with_repair(repair));
        }
    }

    /// Begins a string, which may be a text of `response`.
    fn begin_string(&mut self) {
        let object = &mut self.object;
        if !object.is_recognized || object.is_late || object.has_ended || object.top_key != "response" {
            return;
        }
        let list_place = object.list_place();
        let position = match object.depth.saturating_sub(object.field_depth()) {
            1 => TextPosition::WholeResponse,
            2 if self.roles.contains(&object.response_key)
                && (object.first_role.is_empty() || object.first_role == object.response_key) =>
            {
                object.first_role.clone_from(&object.response_key);
                TextPosition::Role
            }
            // A field that slipped into `response` is not a message.
            _ if ANSWER_FIELDS.contains(&object.last_key.as_str())
                || ASSESSMENT_FIELDS.contains(&object.last_key.as_str()) =>
            {
                return;
            }
            // The type of a list item is not its text.
            _ if list_place.is_some() && object.last_key == "type" => return,
            _ => TextPosition::for_key(&object.last_key),
        };
        object.is_response_text = true;
        // Texts of one list belong together.
        self.message.begin_in_list(list_place, position, object.key_place);
        if position == TextPosition::WholeResponse {
            object.response_key.clear();
        }
    }

    /// Closes `response`, whose value ended with a bracket.
    fn close_response(&mut self, out: &mut dyn IntentSink) {
        if self.object.is_recognized && !self.object.is_late {
            self.message.close(out);
        }
    }

    /// Handles a `response` that is a string and may be an object.
    fn read_string_response(&mut self, text: &str, out: &mut dyn IntentSink) {
        let inner = shapes::parse_object(text, &self.limits);
        let Some(mut inner) =
            inner.filter(|inner| shapes::is_answer(inner) || inner.values().any(Value::is_string))
        else {
            return self.message.send(text, out);
        };
        let at = self.object.key_place;
        if !shapes::is_answer(&inner) {
            self.object.response_shape = ResponseShape::Object;
            return self.read_response(&Value::Object(inner), ValuePlace::new(at), out);
        }
        self.object.response_shape = ResponseShape::Answer;
        if let Some(name) = shapes::find_response_key(&inner, &self.roles).map(str::to_owned) {
            let response = inner.shift_remove(&name).unwrap_or_default();
            self.read_response(&response, ValuePlace::new(at), out);
        }
        self.object.inner_fields = inner;
    }

    /// Takes the message out of a complete response.
    pub(super) fn read_response<'a>(
        &'a mut self,
        response: &'a Value,
        place: ValuePlace<'a>,
        out: &mut dyn IntentSink,
    ) {
        let AiSayReader { roles, limits, message, object, .. } = self;
        let at = place.place();
        if (shapes::ResponseReader { roles, limits, message, place }).read_message(response, out) {
            object.placeholders.push(at);
        }
    }
}
