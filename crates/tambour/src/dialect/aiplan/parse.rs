//! Reads the objects of a reply while they arrive: thought and answer stream out of their strings, everything
//! else is held back until its object is complete (P-035).
//!
//! The answer is emitted only once the mode is known to allow it and the thought has been read, whatever the
//! order of the keys. An object whose answer was emitted is the plan, whatever follows.

use std::sync::Arc;

use serde_json::Value;

use super::check::{Checked, FIELDS};
use super::judge::{judge, too_large};
use super::modes::{Text, mode};
use super::object::PlanObject;
use super::options;
use super::outside::{Frame, Left, Outside, join};
use super::rules;
use crate::dialect::draft::{LeadingThink, Rules};
use crate::dialect::front::Body;
use crate::dialect::preface::Preface;
use crate::dialect::thoughts::Thoughts;
use crate::dialect::{Intent, Output};
use crate::finding::{Doubt, Report, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{Builder, Built, Closing, End, JsonEvent, Reader, TopKey};
use crate::repair::rules as json_rules;
use crate::span::Place;

/// Reader of one AIPlan reply.
pub(super) struct Plans {
    options: Arc<Options>,
    pub(super) outside: Outside,
    builder: Builder,
    top: TopKey,
    /// The current object.
    object: Option<PlanObject>,
    /// Set once something that looks like a plan has begun.
    pub(super) begun: bool,
    thoughts: Thoughts,
    /// Place of the last thought's beginning.
    thought_at: Place,
    /// Set if an object was truncated before it could be recognized as a plan.
    pub(super) cut: bool,
    /// The plan, once it is known which object that is.
    pub(super) chosen: Option<Read>,
    /// The first object that was not a plan, kept for its findings.
    pub(super) first: Option<Read>,
    /// The last plan with calls that a later `</think>` made a thought.
    pub(super) aside: Option<Aside>,
    /// Extent of objects that look like plans and are not used.
    pub(super) others: Left,
    /// Set once text of a thought has been emitted.
    pub(super) thought: bool,
    /// Set once text of an answer has been emitted.
    pub(super) answered: bool,
}

/// A complete object that may be the plan.
pub(super) struct Read {
    pub(super) checked: Checked,
    pub(super) frame: Frame,
    pub(super) start: Place,
    pub(super) end: End,
    /// Extent of earlier objects that look like plans.
    pub(super) others: Left,
    /// Set if its answer was emitted.
    pub(super) sent: bool,
    /// Its answer, if that was not emitted because the object is not a plan.
    pub(super) unsent: String,
    /// Set if it has a field of plans.
    likely: bool,
}

/// A plan with calls that was a thought.
#[derive(Clone, Copy)]
pub(super) struct Aside {
    pub(super) start: Place,
    pub(super) end: usize,
    /// Text between the plan and the end of the thought.
    pub(super) behind: Left,
}

impl Body for Plans {
    const DRAFT: Rules = rules::DRAFT;
    const OVERFLOW: (&'static Rule, &'static str, &'static str) =
        (&json_rules::LIMIT_EXCEEDED, "more text before the plan than `limits.hold`", "given as the answer");

    fn reader(limits: &Limits) -> Reader {
        Reader::chat(limits).seeking(&FIELDS)
    }

    fn start_at(&mut self, place: Place, draft: &LeadingThink) {
        self.outside = Outside::starting_at(place);
        if let Some(place) = draft.opened() {
            self.outside.led_by(place);
        }
        if draft.found() {
            self.outside.in_thought(place);
        }
    }

    fn in_thought(&mut self, place: Place) {
        self.outside.in_thought(place);
    }

    #[inline]
    fn event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output) {
        if let JsonEvent::StringDelta(text) = event {
            // Emission of an answer depends on the text before the limit, not on the chunks.
            let room = self.builder.room();
            if room > 0 && text.len() > room {
                let (last, rest) = text.split_at(text.floor_char_boundary(room));
                self.see(&JsonEvent::StringDelta(last), preface, out);
                return self.see(&JsonEvent::StringDelta(rest), preface, out);
            }
        }
        self.see(event, preface, out);
    }

    fn report(&mut self, report: Report, out: &mut dyn Output) {
        self.builder.note(&report);
        match &mut self.object {
            Some(object) => object.reports.push(report),
            None => out.report(report),
        }
    }

    fn rounded(&mut self, place: Place, end: usize) {
        let message = "a number with more digits than are kept";
        let report = Report::new(&json_rules::NUMBER, place, end, message).doubtful(Doubt::Range);
        self.builder.note(&report);
        if let Some(object) = &mut self.object
            && !std::mem::replace(&mut object.rounded, true)
        {
            object.reports.push(report.repaired("rounded"));
        }
    }

    fn begun(&self) -> bool {
        self.begun
    }

    fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.thoughts
    }

    /// Counts the bytes of answers held back for the mode or the thought, for the end of their wrapper, or
    /// for another plan.
    fn held(&self) -> usize {
        let waiting = self.object.as_ref().map_or(0, |object| match object.is_wrapped() {
            true => self.builder.size().0,
            false => object.held.len(),
        });
        waiting + self.thoughts.held() + self.first.as_ref().map_or(0, |first| first.unsent.len())
    }
}

impl Plans {
    pub(super) fn new(options: &Arc<Options>) -> Plans {
        Plans {
            options: Arc::clone(options),
            outside: Outside::default(),
            builder: Builder::limited(options.limits.value, options.limits.items),
            top: TopKey::default(),
            object: None,
            begun: false,
            thoughts: Thoughts::new(rules::DRAFT, &options.limits),
            thought_at: Place::START,
            cut: false,
            chosen: None,
            first: None,
            aside: None,
            others: None,
            thought: false,
            answered: false,
        }
    }

    #[inline]
    fn see(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output) {
        self.top.see(event);
        if self.thoughts.see(event, self.begun, preface, out) {
            return self.around_thought(event);
        }
        match event {
            JsonEvent::Text(text) => return self.outside.text(text),
            JsonEvent::Comment(text) => return self.outside.comment(text),
            JsonEvent::ValueStart(start) => {
                let frame = self.outside.value(start);
                let (idle, beside) = (self.chosen.is_some(), self.outside.is_prose());
                self.object = Some(PlanObject::new(frame, start.place, idle, beside));
            }
            _ => {}
        }
        let Some(object) = &mut self.object else { return };
        if !object.idle {
            let built = self.builder.see(event);
            if self.builder.over() {
                object.over();
            }
            object.follow(event, &self.top, &self.options, (&mut self.thought, &mut self.answered), out);
            self.begun |= object.likely;
            if let JsonEvent::ValueEnd(end) = event {
                return self.finish_object(*end, built, out);
            }
        } else if let JsonEvent::Key { text, depth: 1, .. } = event {
            object.likely |= FIELDS.contains(text);
        }
        if let JsonEvent::ValueEnd(end) = event {
            self.outside.value_end(end);
            let (start, likely) = (object.frame.begins(), object.likely);
            self.object = None;
            self.unused(start, end.offset, likely);
        }
    }

    /// Handles the start or end of a thought outside the objects.
    fn around_thought(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ThoughtStart(mark) => self.thought_at = mark.place,
            JsonEvent::ThoughtEnd(mark, Closing::Unopened) => {
                self.outside.thought(None, mark.end());
                if self.begun {
                    self.all_thought();
                } else {
                    self.first = None;
                    self.outside.drafted();
                }
            }
            JsonEvent::ThoughtEnd(mark, _) => {
                let early = !self.begun;
                self.outside.thought(early.then_some(self.thought_at), mark.end());
            }
            _ => {}
        }
    }

    /// Treats everything so far as thinking, plans included; only an emitted answer stays.
    fn all_thought(&mut self) {
        match &mut self.chosen {
            Some(Read { sent: true, checked, start, end, .. }) => {
                if checked.valid && checked.acts {
                    let message = "the plan stands in a thought; no call of it may run";
                    checked.reports.push(Report::new(rules::REPAIR_UNSAFE, *start, end.offset, message));
                    checked.valid = false;
                }
            }
            chosen => {
                let acting = chosen.as_ref().filter(|read| read.checked.acts);
                let aside = acting.map(|read| Aside {
                    start: read.start,
                    end: read.end.offset,
                    behind: self.outside.behind(),
                });
                for read in [chosen.take(), self.first.take()].into_iter().flatten() {
                    self.outside.passed_value(&read.frame, read.end.offset);
                }
                if let Some((start, end)) = self.others.take() {
                    self.outside.passed(start, end);
                }
                self.outside.forget();
                if aside.is_some() {
                    self.outside.set_aside();
                    self.aside = aside;
                }
            }
        }
        self.first = None;
    }

    /// Records an object that is not used.
    fn unused(&mut self, start: Place, end: usize, likely: bool) {
        if likely {
            self.others = join(self.others, Some((start, end)));
        } else {
            self.outside.passed(start, end);
        }
    }

    /// Handles a complete object and decides whether it is the plan. An object beyond the limits has no
    /// value.
    fn finish_object(&mut self, end: End, built: Option<Built>, out: &mut dyn Output) {
        let Some(mut object) = self.object.take() else { return };
        let start = object.places.start;
        self.outside.value_end(&end);
        object.places.ends(end.offset);
        object.inner.ends(end.offset);
        let is_object = built.as_ref().is_some_and(|built| built.value.is_object());
        // Unclosed brackets without an object are prose.
        let items = built.as_ref().and_then(|built| built.value.as_array());
        if end.closed_by_us && items.is_some_and(|items| !items.iter().any(holds_object)) {
            self.outside.prose();
        }
        let begins = object.places.may_begin() || object.places.fields() > 0;
        if end.closed_by_us && is_object && begins {
            self.cut = true;
            object.tell_early((&mut self.thought, self.answered), out);
        }
        let mut checked = match built {
            Some(built) => judge(built, &mut object, &self.options),
            None => {
                let report = too_large(start, end.offset, &self.options);
                Checked { reports: vec![report], ..Checked::default() }
            }
        };
        if checked.wrapped {
            self.tell_wrapped(&mut object, &checked, out);
        }
        object.thought = true;
        object.answer_as_text(&checked);
        // If this object is not the plan, a later one may be.
        if checked.valid {
            object.allowed = Some(true);
        }
        if checked.valid || object.sent {
            object.release(&self.options, &mut self.answered, out);
        }
        let unsent = match object.allowed {
            Some(true) if !object.sent && !object.held.is_empty() => std::mem::take(&mut object.held),
            _ if checked.valid || object.sent => String::new(),
            _ => checked.answer(),
        };
        let PlanObject { frame, mut reports, likely, sent, .. } = object;
        reports.append(&mut checked.reports);
        checked.reports = reports;
        let mut read = Read { frame, start, end, others: None, sent, unsent, likely, checked };
        if !likely {
            self.outside.passed_value(&read.frame, end.offset);
        }
        if read.checked.valid || read.sent {
            let first = self.first.take().filter(|first| first.likely);
            read.others =
                join(first.map(|first| (first.frame.begins(), first.end.offset)), self.others.take());
            self.outside.split(&read.frame);
            self.chosen = Some(read);
        } else if self.first.as_ref().is_none_or(|first| likely && !first.likely) {
            self.outside.split(&read.frame);
            self.first = Some(read);
        } else if likely {
            self.unused(read.frame.begins(), end.offset, true);
        }
    }

    /// Emits a plan in a list or under a key, which is held back until nothing else is known to be there.
    fn tell_wrapped(&mut self, object: &mut PlanObject, checked: &Checked, out: &mut dyn Output) {
        let text = |field: &str| checked.plan.get(field).and_then(Value::as_str).unwrap_or_default();
        if self.thought && !self.answered {
            out.intent(Intent::PhaseText("\n\n"));
        }
        object.tell(text("thought"), (&mut self.thought, self.answered), out);
        let mode = mode(options::variant(&self.options), text("response_mode"));
        object.allowed = Some(mode.is_some_and(|mode| mode.text != Text::None));
        object.hold(text("direct_response"));
    }
}

fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(holds_object),
        _ => false,
    }
}
