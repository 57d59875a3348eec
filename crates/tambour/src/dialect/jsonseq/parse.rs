//! Reader of one reply: tracks the top-level values and the objects in them, and hands each complete object
//! over to `event`. The text of a delta is streamed, which means emitted while its line is still arriving.

use std::sync::Arc;

use super::event::{self, ParsedObject};
use super::line::{CompleteObject, ObjectState, OuterValue};
use super::order::EventOrder;
use super::reports::PendingReports;
use super::rules;
use super::surroundings::{EventFrame, LineSurroundings};
use crate::dialect::draft::{LeadingDraft, ReasoningRules};
use crate::dialect::preface::Preface;
use crate::dialect::structure_reader::JsonStructure;
use crate::dialect::thoughts::Thoughts;
use crate::dialect::{Intent, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{
    JsonEvent, JsonReader, MemberPlaces, ThoughtClosing, TokenPlace, ValueBuilder, ValueEnd, ValueStart,
};
use crate::span::Place;

/// Reader of one JSONSeq reply.
pub(super) struct JsonseqReader {
    pub(super) order: EventOrder,
    surroundings: LineSurroundings,
    /// Findings before the first event.
    pending: PendingReports,
    /// Thoughts between the objects.
    thoughts: Thoughts,
    /// Set once the input has ended.
    is_finishing: bool,
    /// Set if the input ended in an object before it could be recognized as an event.
    pub(super) is_truncated: bool,
    /// Builder of the current object.
    builder: ValueBuilder,
    /// The top-level value: the current object, or the array around it.
    outer: OuterValue,
    /// State of the current object.
    object_state: ObjectState,
    /// State of the last complete object, and the object, kept until it is known whether its end was written
    /// or added by the JSON reader.
    last_object_state: ObjectState,
    last_object: Option<CompleteObject>,
    /// Set once an object over several lines was reported.
    has_reported_pretty: bool,
    options: Arc<Options>,
}

/// Minimum capacity for findings held back before the first event. A smaller `limits.findings` does not lower
/// it, because findings beyond that limit are not listed, but still counted.
const MIN_HELD_REPORTS: usize = 64;

impl JsonStructure for JsonseqReader {
    const REASONING_RULES: ReasoningRules = rules::REASONING_RULES;
    const OVERFLOW: (&'static Rule, &'static str, &'static str) = (
        rules::LIMIT_EXCEEDED,
        "more text before the first event than `limits.hold` allows",
        "sent as the answer",
    );

    fn new_reader(limits: &Limits) -> JsonReader {
        JsonReader::new_lines(limits)
    }

    fn start_at(&mut self, place: Place, _: &LeadingDraft) {
        self.surroundings.start_at(place);
    }

    fn enter_thought(&mut self, place: Place) {
        self.surroundings.start_at(place);
    }

    #[inline]
    fn handle_event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn IntentSink) {
        if let JsonEvent::StringDelta(text) = event
            && let Some(target) = self.object_state.begin_piece()
        {
            return self.order.push_delta(target, text, self.object_state.event_start, out);
        }
        if let JsonEvent::ThoughtEnd(_, ThoughtClosing::Unopened) = event
            && self.pending.has_begun()
        {
            // The text before the mark may be reasoning, but after the first event it is read as a line
            // between events.
            let ended_frame = self.surroundings.begin_thought(&mut self.pending, out);
            self.end_frame(ended_frame, out);
            self.surroundings.clear_prose();
        }
        if self.object_state.depth > 0 {
            self.handle_object_event(event, out);
        } else if self.thoughts.handle_event(event, self.pending.has_begun(), preface, out) {
            self.handle_thought_event(event, out);
        } else {
            self.handle_outside_event(event, out);
        }
    }

    fn handle_report(&mut self, report: FindingReport, out: &mut dyn IntentSink) {
        self.pending.add(report, out);
    }

    fn handle_bracket(&mut self, place: TokenPlace<'_>) {
        if self.outer.array_depth > 0 && self.object_state.depth <= 1 {
            self.outer.set_bracket(place.place());
        }
    }

    fn has_begun(&self) -> bool {
        self.pending.has_begun()
    }

    fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.thoughts
    }

    fn held_bytes(&self) -> usize {
        // Before the first event, the preface holds and counts all text.
        let thought_bytes = self.thoughts.held_bytes();
        let last_object_bytes =
            if self.last_object.is_some() { self.last_object_state.held_bytes } else { 0 };
        let text_bytes = self.object_state.held_bytes + last_object_bytes + self.surroundings.held_bytes();
        self.order.held_bytes() + thought_bytes + if self.pending.has_begun() { text_bytes } else { 0 }
    }

    fn prepare_finish(&mut self) {
        self.is_finishing = true;
    }

    fn complete(&mut self, thought_structure: Option<&str>, end: Place, out: &mut dyn IntentSink) {
        if let Some(text) = thought_structure.filter(|_| !self.pending.has_begun()) {
            // The text that looked like events contains none, so it is part of the draft.
            out.emit_intent(Intent::Draft(text));
        }
        let ended_frame = self.surroundings.end_line(&mut self.pending, out);
        self.end_frame(ended_frame, out);
        let open_frame = self.surroundings.open_frame.take();
        self.end_frame(open_frame, out);
        self.flush(end.offset, out);
    }
}

impl JsonseqReader {
    pub(super) fn new(options: &Arc<Options>) -> JsonseqReader {
        let limits = &options.limits;
        JsonseqReader {
            order: EventOrder::new(options),
            surroundings: LineSurroundings::new(limits.hold),
            pending: PendingReports::new(limits.findings.max(MIN_HELD_REPORTS)),
            thoughts: Thoughts::new(rules::REASONING_RULES, rules::THINK_LATE, limits),
            is_finishing: false,
            is_truncated: false,
            builder: ValueBuilder::with_limits(limits.hold, limits.items).with_member_places(2),
            outer: OuterValue::default(),
            object_state: ObjectState::default(),
            last_object_state: ObjectState::default(),
            last_object: None,
            has_reported_pretty: false,
            options: Arc::clone(options),
        }
    }

    /// Ends the reply: prose around the events is the answer if there is no other.
    pub(super) fn finish(&mut self, end: Place, out: &mut dyn IntentSink) {
        if !self.order.is_answered()
            && let Some(text) = self.surroundings.take_prose()
        {
            let target = self.order.begin_final_delta(end, out);
            self.order.push_delta(target, &text, end, out);
            self.flush(end.offset, out);
        }
        self.order.finish(end, out);
    }

    /// Handles the start or end of a thought between the objects, after [`Thoughts::handle_event`].
    fn handle_thought_event(&mut self, event: &JsonEvent<'_>, out: &mut dyn IntentSink) {
        match event {
            JsonEvent::ThoughtStart(_) => {
                let ended_frame = self.surroundings.begin_thought(&mut self.pending, out);
                self.end_frame(ended_frame, out);
            }
            JsonEvent::ThoughtEnd(mark, closing) => {
                if *closing == ThoughtClosing::Unopened && !self.pending.has_begun() {
                    // The text so far is a draft, not lines.
                    self.surroundings.discard_line();
                    self.pending.discard();
                }
                if let Some(open_frame) =
                    self.surroundings.open_frame.as_mut().filter(|_| *closing != ThoughtClosing::Unopened)
                {
                    // A thought between an `event:` line and its data is not part of the event.
                    open_frame.at = mark.end();
                }
                self.surroundings.start_at(mark.end());
            }
            _ => {}
        }
    }

    /// Handles an event outside the objects.
    fn handle_outside_event(&mut self, event: &JsonEvent<'_>, out: &mut dyn IntentSink) {
        match event {
            JsonEvent::Text(text) => {
                // Split by line, so that the order of findings does not depend on the chunks.
                for piece in text.split_inclusive('\n') {
                    match self.order.is_answered() {
                        true => self.surroundings.stop_keeping_prose(),
                        false => self.surroundings.keep_line(piece),
                    }
                    let ended_frame = self.surroundings.push(piece, &mut self.pending, out);
                    self.end_frame(ended_frame, out);
                }
            }
            // A comment counts as one line, even if it contains line breaks.
            JsonEvent::Comment(text) => {
                let ended_frame = self.surroundings.push(text, &mut self.pending, out);
                self.end_frame(ended_frame, out);
            }
            JsonEvent::ValueStart(start) => self.begin_value(start, out),
            JsonEvent::ValueEnd(end) => self.end_value(end, out),
            JsonEvent::ObjectStart => {
                self.end_item(false, out);
                let gap_report = self.outer.begin_object();
                gap_report.into_iter().for_each(|report| self.pending.add(report, out));
                self.begin_object();
                self.builder.push_event(event);
            }
            JsonEvent::ArrayStart => {
                self.end_item(false, out);
                self.outer.begin_array();
            }
            // An `ObjectEnd` here belongs to the object around the array.
            JsonEvent::ArrayEnd | JsonEvent::ObjectEnd => self.outer.end_array(),
            JsonEvent::StringStart | JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null => {
                self.outer.mark_other_item();
            }
            _ => {}
        }
    }

    /// Handles an event inside an object.
    fn handle_object_event(&mut self, event: &JsonEvent<'_>, out: &mut dyn IntentSink) {
        if matches!(event, JsonEvent::ArrayStart) && self.object_state.is_wrapper() {
            // The object is a wrapper, not an event.
            self.object_state.clear();
            return self.outer.begin_wrapper();
        }
        self.object_state.begin_value(event);
        match event {
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => self.object_state.depth += 1,
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                self.object_state.depth -= 1;
                if self.object_state.depth == 0 {
                    self.builder.push_event(event);
                    return self.end_object();
                }
            }
            JsonEvent::Key { text, depth, place } => {
                self.object_state.push_key(text, depth - self.outer.array_depth, *place)
            }
            JsonEvent::StringStart => self.begin_string(out),
            JsonEvent::StringDelta(text) => {
                self.object_state.push_string(text);
                self.builder.push_event(event);
                if self.builder.is_over_limit() {
                    // The builder has discarded the value.
                    self.object_state.held_bytes = 0;
                }
                return;
            }
            JsonEvent::StringEnd => self.object_state.end_string(),
            JsonEvent::Number(number) => self.object_state.push_number(number),
            _ => {}
        }
        self.builder.push_event(event);
    }

    /// Begins a top-level value.
    fn begin_value(&mut self, start: &ValueStart, out: &mut dyn IntentSink) {
        let object_prefix = self.surroundings.begin_object(&mut self.pending, out);
        object_prefix.ended_frames.into_iter().for_each(|ended_frame| self.end_frame(Some(ended_frame), out));
        self.outer = OuterValue::new(start.place, object_prefix.is_framed);
        if object_prefix.is_glued {
            let place = start.place;
            self.order.reports.add(
                rules::LINES_GLUED,
                place,
                "two objects on one line",
                "read one after the other",
            );
        }
    }

    /// Begins an object that may be an event.
    fn begin_object(&mut self) {
        let start = self.outer.object_start();
        self.object_state.begin(start, self.outer.is_framed);
        if let Some(frame) = self.surroundings.open_frame.as_ref().filter(|_| self.outer.is_framed) {
            self.object_state.event_start = frame.at;
            self.object_state.name.clone_from(&frame.name);
        }
        self.builder.push_event(&JsonEvent::ValueStart(ValueStart {
            index: 0,
            place: start,
            origin: Default::default(),
            is_in_open_comment: false,
        }));
    }

    /// Ends the current object. [`JsonseqReader::end_item`] reads it later.
    fn end_object(&mut self) {
        let end = self.outer.end_object();
        std::mem::swap(&mut self.object_state, &mut self.last_object_state);
        self.object_state.clear();
        self.last_object = Some(CompleteObject::new(&mut self.builder, end));
    }

    /// Reads the last complete object, once the next item has begun or the top-level value has ended.
    /// `is_truncated` is set if the reply ended in the object.
    fn end_item(&mut self, is_truncated: bool, out: &mut dyn IntentSink) {
        if let Some(last_object) = self.last_object.take() {
            let end = last_object.end;
            let members = self.read_object(last_object, is_truncated, out);
            self.builder.recycle_members(members);
            self.flush(end, out);
        }
    }

    /// Ends the top-level value.
    fn end_value(&mut self, end: &ValueEnd, out: &mut dyn IntentSink) {
        self.surroundings.end_object(end.place);
        let place = self.outer.place;
        if self.outer.is_lone_object()
            && let Some(last_object) = &mut self.last_object
        {
            last_object.end = end.offset;
            let spans_lines =
                end.place.line > self.last_object_state.object_start.line && !end.is_auto_closed;
            if spans_lines && !std::mem::replace(&mut self.has_reported_pretty, true) {
                self.order.reports.add(
                    rules::LINES_PRETTY,
                    place,
                    "an object over several lines",
                    "read as one",
                );
            }
        }
        self.end_item(end.is_auto_closed && self.is_finishing, out);
        let reports = self.outer.finish(end.offset).into_iter().flatten();
        reports.for_each(|report| self.pending.add(report, out));
        self.flush(end.offset, out);
    }

    /// Starts a string in an object, and streams it if it is the text of a delta with a known name and id.
    fn begin_string(&mut self, out: &mut dyn IntentSink) {
        if !self.object_state.begin_string() {
            return;
        }
        let (at, id) = (self.object_state.event_start, self.object_state.id.as_ref());
        let target = match self.object_state.name.trim() {
            "final_delta" => {
                self.pending.release(out);
                self.order.begin_final_delta(at, out)
            }
            "phase_delta" if id.is_some() => {
                self.pending.release(out);
                self.order.begin_phase_delta(id, at, out)
            }
            _ => return,
        };
        self.object_state.stream(target);
        self.builder.discard_value();
    }

    /// Reads a complete object as an event. Returns its members, so that their memory can be reused.
    fn read_object(
        &mut self,
        complete_object: CompleteObject,
        is_truncated: bool,
        out: &mut dyn IntentSink,
    ) -> MemberPlaces {
        let CompleteObject { value, duplicates, mut members, end } = complete_object;
        let state = &self.last_object_state;
        members.end_members(end);
        for duplicate in duplicates {
            let is_late = state.is_late(duplicate.second.place.offset);
            let mut report =
                if is_late { duplicate.report_first_kept() } else { duplicate.report_last_kept() };
            // The value of the last member has no recorded end.
            report.end = if report.end <= report.place.offset { end } else { report.end };
            self.pending.add(report, out);
        }
        let open_frame = if state.is_framed { self.surroundings.open_frame.take() } else { None };
        let Some(object) = value else {
            if state.target.is_some() {
                let is_over_limit = true;
                event::report_unsent(state.name.trim(), state, &members, is_over_limit, &mut self.order);
            } else {
                let message = "an event with more text or values than `limits.hold` and `limits.items` allow";
                self.order.reports.add(rules::LIMIT_EXCEEDED, state.event_start, message, "left out");
            }
            return members;
        };
        self.is_truncated |= is_truncated && open_frame.is_none() && event::may_become_event(&object);
        let frame_name = open_frame.map(|frame| frame.name).filter(|name| !name.is_empty());
        let parsed = ParsedObject { state, object, members: &members, end, is_truncated };
        event::read_event(parsed, frame_name, &self.options.limits, &mut self.order, &mut self.pending, out);
        members
    }

    /// Handles a frame that ended without data: an event without fields.
    fn end_frame(&mut self, frame: Option<EventFrame>, out: &mut dyn IntentSink) {
        if let Some(EventFrame { name, at, end }) = frame {
            event::emit_without_data(&name, at, end, &mut self.order, &mut self.pending, out);
            self.flush(end, out);
        }
    }

    /// Emits the findings on the current event, whose end is now known.
    fn flush(&mut self, end: usize, out: &mut dyn IntentSink) {
        self.order.reports.flush(end, &mut self.pending, out);
    }
}
