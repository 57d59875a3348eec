//! Assigns objects to events. The text of a delta is streamed while its line is still arriving.

use std::sync::Arc;

use super::event::{self, Whole};
use super::line::{Done, Line};
use super::order::Order;
use super::outer::Outer;
use super::outside::{Named, Outside};
use super::told::Told;
use super::{rules, streamed};
use crate::dialect::draft::{LeadingThink, Rules};
use crate::dialect::front::Body;
use crate::dialect::preface::Preface;
use crate::dialect::thoughts::Thoughts;
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{Builder, Closing, End, JsonEvent, KeyPlace, Members, Reader, Start};
use crate::span::Place;

/// Reader of one JSONSeq reply.
pub(super) struct Lines {
    pub(super) order: Order,
    text: Outside,
    told: Told,
    thoughts: Thoughts,
    /// Set once the input has ended.
    finishing: bool,
    /// Set if the input ended in an object before it could be recognized as an event.
    pub(super) cut: bool,
    builder: Builder,
    outer: Outer,
    line: Line,
    /// The previous line and its object: an item of an array, kept until it is known whether its end was
    /// written or added.
    last: Line,
    done: Option<Done>,
    pretty: bool,
    options: Arc<Options>,
}

/// Least capacity for findings held back before the first event; a caller that lists fewer still counts the
/// rest.
const FEW: usize = 64;

impl Body for Lines {
    const DRAFT: Rules = rules::DRAFT;
    const OVERFLOW: (&'static Rule, &'static str, &'static str) =
        (rules::LIMIT_EXCEEDED, "more text before the first event than `limits.hold`", "given as the answer");

    fn reader(limits: &Limits) -> Reader {
        Reader::lines(limits)
    }

    fn start_at(&mut self, place: Place, _: &LeadingThink) {
        self.text.start_at(place);
    }

    fn in_thought(&mut self, place: Place) {
        self.text.start_at(place);
    }

    #[inline]
    fn event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output) {
        if let JsonEvent::StringDelta(text) = event
            && let Some(target) = self.line.streamed()
        {
            return self.order.delta(target, text, self.line.at, out);
        }
        if let JsonEvent::ThoughtEnd(_, Closing::Unopened) = event
            && self.told.begun()
        {
            // The text before the mark is text between events, reasoning or not.
            let ended = self.text.thought_begins(&mut self.told, out);
            self.frame_ended(ended, out);
            self.text.drop_prose();
        }
        if self.line.depth > 0 {
            self.inside(event, out);
        } else if self.thoughts.see(event, self.told.begun(), preface, out) {
            self.thought(event, out);
        } else {
            self.outside(event, out);
        }
    }

    fn report(&mut self, report: Report, out: &mut dyn Output) {
        self.told.add(report, out);
    }

    fn bracket(&mut self, place: KeyPlace<'_>) {
        if self.outer.arrays > 0 && self.line.depth <= 1 {
            self.outer.bracket(place.get());
        }
    }

    fn begun(&self) -> bool {
        self.told.begun()
    }

    fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.thoughts
    }

    fn held(&self) -> usize {
        // Before the first event all text is held back anyway.
        let thoughts = self.thoughts.held();
        let done = if self.done.is_some() { self.last.waiting } else { 0 };
        let begun = self.line.waiting + done + self.text.held();
        self.order.held() + thoughts + if self.told.begun() { begun } else { 0 }
    }

    fn ending(&mut self) {
        self.finishing = true;
    }

    fn ended(&mut self, found: Option<&str>, end: Place, out: &mut dyn Output) {
        if let Some(text) = found.filter(|_| !self.told.begun()) {
            // The object that looked like an event was a draft as well.
            out.intent(Intent::Draft(text));
        }
        let ended = self.text.end_line(&mut self.told, out);
        self.frame_ended(ended, out);
        let named = self.text.named.take();
        self.frame_ended(named, out);
        self.flush(end.offset, out);
    }
}

impl Lines {
    pub(super) fn new(options: &Arc<Options>) -> Lines {
        let limits = &options.limits;
        Lines {
            order: Order::new(options),
            text: Outside::default(),
            told: Told::new(limits.findings.max(FEW)),
            thoughts: Thoughts::new(rules::DRAFT, limits),
            finishing: false,
            cut: false,
            builder: Builder::limited(limits.hold, limits.items).placing(2),
            outer: Outer::default(),
            line: Line::default(),
            last: Line::default(),
            done: None,
            pretty: false,
            options: Arc::clone(options),
        }
    }

    /// Ends the reply: prose around the events is the answer if there is no other.
    pub(super) fn finish(&mut self, end: Place, out: &mut dyn Output) {
        if !self.order.is_answered()
            && let Some(text) = self.text.take_prose()
        {
            let target = self.order.final_delta(end, out);
            self.order.delta(target, &text, end, out);
            self.flush(end.offset, out);
        }
        self.order.finish(end, out);
    }

    /// Handles the start or end of a thought between the objects.
    fn thought(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        match event {
            JsonEvent::ThoughtStart(_) => {
                let ended = self.text.thought_begins(&mut self.told, out);
                self.frame_ended(ended, out);
            }
            JsonEvent::ThoughtEnd(mark, closing) => {
                if *closing == Closing::Unopened && !self.told.begun() {
                    // The text so far is a draft, not lines.
                    self.text.forget();
                    self.told.forget();
                }
                if let Some(named) = self.text.named.as_mut().filter(|_| *closing != Closing::Unopened) {
                    // A thought in the middle of a frame is not part of it.
                    named.at = mark.end();
                }
                self.text.start_at(mark.end());
            }
            _ => {}
        }
    }

    /// Handles an event outside the objects.
    fn outside(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        match event {
            JsonEvent::Text(text) => {
                // Split by line, so that the order of findings does not depend on the chunks.
                for piece in text.split_inclusive('\n') {
                    match self.order.is_answered() {
                        true => self.text.leave_prose(),
                        false => self.text.keep_whole(piece, self.options.limits.hold),
                    }
                    let ended = self.text.push(piece, &mut self.told, out);
                    self.frame_ended(ended, out);
                }
            }
            // A comment counts as one line, whatever lines it contains.
            JsonEvent::Comment(text) => {
                let ended = self.text.push(text, &mut self.told, out);
                self.frame_ended(ended, out);
            }
            JsonEvent::ValueStart(start) => self.value_begins(start, out),
            JsonEvent::ValueEnd(end) => self.value_ends(end, out),
            JsonEvent::ObjectStart => {
                self.item_ends(false, out);
                let before = self.outer.object_begins();
                before.into_iter().for_each(|report| self.told.add(report, out));
                self.object_begins();
                self.builder.see(event);
            }
            JsonEvent::ArrayStart => {
                self.item_ends(false, out);
                self.outer.array_begins();
            }
            // An `ObjectEnd` here belongs to the object around the array.
            JsonEvent::ArrayEnd | JsonEvent::ObjectEnd => self.outer.array_ends(),
            JsonEvent::StringStart | JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null => {
                self.outer.other();
            }
            _ => {}
        }
    }

    /// Handles an event inside an object.
    fn inside(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        if matches!(event, JsonEvent::ArrayStart) && self.line.wraps() {
            // The object is a wrapper, not an event.
            self.line.clear();
            return self.outer.wrapper_begins();
        }
        self.line.value_begins(event);
        match event {
            JsonEvent::ObjectStart | JsonEvent::ArrayStart => self.line.depth += 1,
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                self.line.depth -= 1;
                if self.line.depth == 0 {
                    self.builder.see(event);
                    return self.object_ends();
                }
            }
            JsonEvent::Key { text, depth, place } => self.line.key(text, depth - self.outer.arrays, *place),
            JsonEvent::StringStart => self.string_begins(out),
            JsonEvent::StringDelta(text) => {
                self.line.string(text);
                self.builder.see(event);
                if self.builder.over() {
                    // The builder has discarded the value.
                    self.line.waiting = 0;
                }
                return;
            }
            JsonEvent::StringEnd => self.line.string_ends(),
            JsonEvent::Number(number) => self.line.number(number),
            _ => {}
        }
        self.builder.see(event);
    }

    fn value_begins(&mut self, start: &Start, out: &mut dyn Output) {
        let begins = self.text.object_begins(&mut self.told, out);
        begins.ended.into_iter().for_each(|ended| self.frame_ended(Some(ended), out));
        self.outer = Outer::new(start.place, begins.framed);
        if begins.glued {
            let place = start.place;
            self.order.reports.found(
                rules::LINES_GLUED,
                place,
                "two objects on one line",
                "read one after the other",
            );
        }
    }

    fn object_begins(&mut self) {
        let start = self.outer.object_at();
        self.line.begin(start, self.outer.framed);
        if let Some(named) = self.text.named.as_ref().filter(|_| self.outer.framed) {
            self.line.at = named.at;
            self.line.name.clone_from(&named.name);
        }
        self.builder.see(&JsonEvent::ValueStart(Start {
            index: 0,
            place: start,
            origin: Default::default(),
            commented: false,
        }));
    }

    fn object_ends(&mut self) {
        let end = self.outer.object_ends();
        std::mem::swap(&mut self.line, &mut self.last);
        self.line.clear();
        self.done = Some(Done::new(&mut self.builder, end));
    }

    /// Reads the pending item of the array, which continues or ends; `cut` is set if its end was added by the
    /// reader.
    fn item_ends(&mut self, cut: bool, out: &mut dyn Output) {
        if let Some(done) = self.done.take() {
            let end = done.end;
            let members = self.object(done, cut, out);
            self.builder.reuse(members);
            self.flush(end, out);
        }
    }

    fn value_ends(&mut self, end: &End, out: &mut dyn Output) {
        self.text.object_ends(end.place);
        let Outer { at, array, .. } = self.outer;
        if !array && let Some(done) = &mut self.done {
            done.end = end.offset;
            let several = end.place.line > self.last.start.line && !end.closed_by_us;
            if several && !std::mem::replace(&mut self.pretty, true) {
                self.order.reports.found(
                    rules::LINES_PRETTY,
                    at,
                    "an object over several lines",
                    "read as one",
                );
            }
        }
        self.item_ends(end.closed_by_us && self.finishing, out);
        let wrong = self.outer.ends(end.offset).into_iter().flatten();
        wrong.for_each(|report| self.told.add(report, out));
        self.flush(end.offset, out);
    }

    /// Starts a string: the event's name, an id, or the text of a delta that can be streamed.
    fn string_begins(&mut self, out: &mut dyn Output) {
        if !self.line.string_begins() {
            return;
        }
        let (at, id) = (self.line.at, self.line.id.as_ref());
        let target = match self.line.name.trim() {
            "final_delta" => {
                self.told.begin(out);
                self.order.final_delta(at, out)
            }
            "phase_delta" if id.is_some() => {
                self.told.begin(out);
                self.order.phase_delta(id, at, out)
            }
            _ => return,
        };
        self.line.stream(target);
        self.builder.forget_value();
    }

    /// Reads the complete object of the last line. Returns its members, so that their memory can be reused.
    fn object(&mut self, done: Done, cut: bool, out: &mut dyn Output) -> Members {
        let Done { value, duplicates, mut members, end } = done;
        let line = &self.last;
        members.ended(end);
        for duplicate in duplicates {
            let sent = line.is_late(duplicate.again.0.offset);
            let mut report = if sent { duplicate.first_kept() } else { duplicate.last_kept() };
            // The last value of an object has no known end.
            report.end = if report.end <= report.place.offset { end } else { report.end };
            self.told.add(report, out);
        }
        let named = if line.framed { self.text.named.take() } else { None };
        let Some(object) = value else {
            if line.target.is_some() {
                streamed::rest(line.name.trim(), line, &members, true, &mut self.order);
            } else {
                let message = "an event with more text or values than `limits.hold` and `limits.items`";
                self.order.reports.found(rules::LIMIT_EXCEEDED, line.at, message, "left out");
            }
            return members;
        };
        self.cut |= cut && named.is_none() && event::may_begin(&object);
        let frame = named.map(|named| named.name).filter(|name| !name.is_empty());
        let whole = Whole { line, object, members: &members, end, cut };
        event::read(whole, frame, &self.options.limits, &mut self.order, &mut self.told, out);
        members
    }

    /// Handles a frame that ended without data: an event without fields.
    fn frame_ended(&mut self, named: Option<Named>, out: &mut dyn Output) {
        if let Some(Named { name, at, end }) = named {
            event::without_data(&name, at, end, &mut self.order, &mut self.told, out);
            self.flush(end, out);
        }
    }

    /// Emits the findings of an event, now that its end is known.
    fn flush(&mut self, end: usize, out: &mut dyn Output) {
        self.order.reports.flush(end, &mut self.told, out);
    }
}
