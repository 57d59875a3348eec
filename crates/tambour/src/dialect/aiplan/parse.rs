//! Objects in the reply, while they arrive: the thought and the answer stream out of their strings, everything else
//! waits until its object is complete (P-035).
//!
//! The answer is sent only once the mode is known to allow it and the thought is there, whatever the order of the keys;
//! an object whose answer was sent is the plan, come what may.

use super::around::{Around, Frame};
use super::check::{Checked, FIELDS, check};
use super::object::Object;
use super::rules;
use crate::dialect::Output;
use crate::finding::Report;
use crate::options::Options;
use crate::repair::json::{Builder, Built, End, JsonEvent, JsonSink, TopKey};
use crate::repair::rules as json_rules;
use crate::span::Place;

/// The objects of one reply.
pub(super) struct Plans {
    options: Options,
    pub(super) around: Around,
    builder: Builder,
    top: TopKey,
    /// The object under way.
    object: Option<Object>,
    /// The plan, once it is known which object that is.
    pub(super) chosen: Option<Read>,
    /// The first object that was none, for its findings.
    pub(super) first: Option<Read>,
    /// Objects that look like plans.
    pub(super) seen: usize,
    /// Whether the text of a thought was sent, and text of an answer.
    pub(super) thought: bool,
    pub(super) answered: bool,
}

/// An object that was read.
pub(super) struct Read {
    pub(super) checked: Checked,
    pub(super) frame: Frame,
    pub(super) end: End,
    /// Whether its answer was sent.
    pub(super) sent: bool,
    /// Its answer, if it was not sent since the object is no plan.
    pub(super) unsent: String,
    /// Whether it has a field of plans.
    likely: bool,
}

/// Repairs after which a call may still run: they change how a value is written, not what it is (P-026).
const COSMETIC: &[&str] = &[
    json_rules::TRAILING_COMMA.code,
    json_rules::QUOTE.code,
    json_rules::UNQUOTED_KEY.code,
    json_rules::COMMENT.code,
    json_rules::RAW_CONTROL.code,
    json_rules::LITERAL.code,
    json_rules::PUNCTUATION.code,
    json_rules::SPACE.code,
];

/// Lends the plans to the JSON reader.
pub(super) struct Feed<'a> {
    pub(super) plans: &'a mut Plans,
    pub(super) out: &'a mut dyn Output,
}

impl JsonSink for Feed<'_> {
    #[inline]
    fn event(&mut self, event: JsonEvent<'_>) {
        self.plans.see(&event, self.out);
    }

    fn report(&mut self, report: Report) {
        match &mut self.plans.object {
            Some(object) => {
                object.guessed |= !COSMETIC.contains(&report.rule.code);
                object.reports.push(report);
            }
            None => self.out.report(report),
        }
    }

    fn rounded(&mut self, place: Place, end: usize) {
        if let Some(object) = &mut self.plans.object
            && !std::mem::replace(&mut object.rounded, true)
        {
            let message = "a number with more digits than are kept";
            let report = Report::new(&json_rules::NUMBER, place, end, message);
            object.guessed = true;
            object.reports.push(report.repaired("rounded"));
        }
    }
}

impl Plans {
    pub(super) fn new(options: &Options) -> Plans {
        Plans {
            options: options.clone(),
            around: Around::default(),
            builder: Builder::limited(options.limits.value, options.limits.items),
            top: TopKey::default(),
            object: None,
            chosen: None,
            first: None,
            seen: 0,
            thought: false,
            answered: false,
        }
    }

    #[inline]
    fn see(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        self.top.see(event);
        match event {
            JsonEvent::Text(text) => return self.around.text(text),
            JsonEvent::ThoughtEnd => {
                // What came so far was thinking, plans too; only an answer that was sent stays.
                match &mut self.chosen {
                    Some(Read { sent: true, checked, end, .. }) => {
                        if checked.valid && checked.acts {
                            let message = "the plan stands in a thought; no call of it may run";
                            let report = Report::new(rules::REPAIR_UNSAFE, end.place, end.offset, message);
                            checked.reports.push(report);
                            checked.valid = false;
                        }
                    }
                    chosen => *chosen = None,
                }
                self.first = None;
                self.seen = usize::from(self.chosen.is_some());
                return;
            }
            JsonEvent::ValueStart(start) => {
                let frame = self.around.value(start);
                self.object = Some(Object::new(frame, start.place, self.chosen.is_some()));
            }
            _ => {}
        }
        let Some(object) = &mut self.object else { return };
        if !object.idle {
            let built = self.builder.see(event);
            if self.builder.over() {
                object.over(&self.options);
            }
            object.follow(event, &self.top, &self.options, (&mut self.thought, &mut self.answered), out);
            if let JsonEvent::ValueEnd(end) = event {
                return self.finish_object(*end, built, out);
            }
        } else if let JsonEvent::Key { text, depth: 1, .. } = event {
            object.likely |= FIELDS.contains(text);
        }
        if let JsonEvent::ValueEnd(end) = event {
            self.around.value_end(end);
            if object.likely {
                self.seen += 1;
            } else {
                self.around.led_by(object.places.start);
            }
            self.object = None;
        }
    }

    /// An object is complete: whether it is the plan. There is no value of one that was too large.
    fn finish_object(&mut self, end: End, built: Option<Built>, out: &mut dyn Output) {
        let Some(mut object) = self.object.take() else { return };
        self.around.value_end(&end);
        let mut checked = built.map(|built| judge(built, &mut object, &self.options)).unwrap_or_default();
        object.thought = true;
        // An object after this one may be the plan, if this one is none.
        if checked.valid {
            object.allowed = Some(true);
        }
        if checked.valid || object.sent {
            object.release(&self.options, &mut self.answered, out);
        }
        let unsent = match object.allowed {
            Some(true) if !object.sent => std::mem::take(&mut object.held),
            _ => String::new(),
        };
        if object.likely {
            self.seen += 1;
        } else {
            self.around.led_by(object.places.start);
        }
        let Object { frame, mut reports, likely, sent, .. } = object;
        reports.append(&mut checked.reports);
        checked.reports = reports;
        let read = Read { frame, end, sent, unsent, likely, checked };
        if read.checked.valid || read.sent {
            self.chosen = Some(read);
        } else if self.first.as_ref().is_none_or(|first| read.likely && !first.likely) {
            self.first = Some(read);
        }
    }
}

/// Holds an object against the contract, its repairs and its end included.
fn judge(built: Built, object: &mut Object, options: &Options) -> Checked {
    let Object { frame, places, reports, guessed, lists, .. } = object;
    let end = built.end;
    let twice = *lists > 1;
    let calls_at = places.key("tool_calls");
    let mut checked = check(built.value, places, options);
    for duplicate in built.duplicates {
        let mut report = duplicate.last_kept();
        if twice && duplicate.again.0 == calls_at {
            // Which of two lists of calls is meant cannot be known.
            report.repair = None;
        }
        reports.push(report);
    }
    checked.valid &= !twice;
    if checked.acts && end.closed_by_us {
        checked.valid = false;
        let message = "the plan is cut; no call of it may run";
        checked.reports.push(Report::new(rules::TRUNCATED, end.place, end.offset, message));
    } else if checked.acts && (*guessed || frame.thinking) {
        checked.valid = false;
        let message = match *guessed {
            true => "the JSON of a plan that calls tools had to be guessed; no call of it may run",
            false => "the plan stands in a thought; no call of it may run",
        };
        checked.reports.push(Report::new(rules::REPAIR_UNSAFE, places.start, end.offset, message));
    }
    checked
}
