//! Objects in the reply, while they arrive: the thought and the answer stream out of their strings, everything else
//! waits until its object is complete (P-035).
//!
//! The answer is sent only once the mode is known to allow it and the thought is there, whatever the order of the keys;
//! an object whose answer was sent is the plan, come what may.

use super::around::{Around, Frame};
use super::check::{Checked, FIELDS, Places, check};
use super::modes::{Text, mode};
use super::rules;
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::space::is_blank;
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

/// The object under way.
struct Object {
    frame: Frame,
    places: Places,
    /// Repairs of its JSON.
    reports: Vec<Report>,
    /// Whether one of them was more than cosmetic.
    guessed: bool,
    /// Whether a number of it was rounded.
    rounded: bool,
    likely: bool,
    /// Another object is the plan: nothing of this one is used.
    idle: bool,
    /// What is done with the string under way.
    target: Target,
    mode: String,
    /// How often the key of the calls has come.
    lists: usize,
    /// Whether the mode is known to allow an answer; `None` before it is known.
    allowed: Option<bool>,
    /// Whether a thought has come, or can no longer come.
    thought: bool,
    /// The answer, while it may not be sent.
    held: String,
    sent: bool,
    too_large: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Nowhere,
    Thought,
    Mode,
    Answer,
}

/// Bytes of a mode that are kept while it arrives.
const MODE: usize = 64;

/// Keys of an object whose places are kept.
const KEYS: usize = 64;

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

    fn rounded(&mut self) {
        if let Some(object) = &mut self.plans.object
            && !std::mem::replace(&mut object.rounded, true)
        {
            let place = object.places.start;
            let message = "the object has a number with more digits than are kept";
            let report = Report::new(&json_rules::NUMBER, place, place.offset, message);
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
                self.object = Some(Object {
                    frame,
                    places: Places { start: start.place, ..Places::default() },
                    reports: Vec::new(),
                    guessed: false,
                    rounded: false,
                    likely: false,
                    idle: self.chosen.is_some(),
                    target: Target::Nowhere,
                    mode: String::new(),
                    lists: 0,
                    allowed: None,
                    thought: false,
                    held: String::new(),
                    sent: false,
                    too_large: false,
                });
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
        let checked = built.map(|built| judge(built, &mut object, &self.options)).unwrap_or_default();
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
        let mut checked = checked;
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
    for mut report in built.duplicates {
        if twice && report.place == calls_at {
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

impl Object {
    /// Follows the JSON of the object, and sends what may be sent.
    #[inline]
    fn follow(
        &mut self,
        event: &JsonEvent<'_>,
        top: &TopKey,
        options: &Options,
        (thought, answered): (&mut bool, &mut bool),
        out: &mut dyn Output,
    ) {
        match event {
            JsonEvent::StringDelta(text) => match self.target {
                Target::Nowhere => {}
                Target::Thought => {
                    if *answered {
                        // Thinking is over in the stream.
                        return out.intent(Intent::Aside { kind: AsideKind::Thought, text });
                    }
                    if !*thought && !is_blank(text) {
                        // In a tool loop the stream has phases already.
                        out.intent(Intent::Phase("".into(), self.places.key("thought")));
                        *thought = true;
                    }
                    out.intent(Intent::PhaseText(text));
                }
                // One byte more than is kept tells that the word is longer.
                Target::Mode => {
                    for c in text.chars() {
                        if self.mode.len() <= MODE {
                            self.mode.push(c);
                        }
                    }
                }
                Target::Answer if self.sent && self.held.is_empty() => out.intent(Intent::FinalText(text)),
                Target::Answer => {
                    self.held.push_str(text);
                    self.release(options, answered, out);
                }
            },
            JsonEvent::Key { text, place, depth } => {
                if *depth == 1 {
                    self.likely |= FIELDS.contains(text);
                    self.top_key(text, || place.get());
                } else if *depth == 3
                    && top.under() == Some("tool_calls")
                    && let Some(call @ None) = self.places.calls.last_mut()
                {
                    *call = Some(place.get());
                }
            }
            JsonEvent::ObjectStart | JsonEvent::ArrayStart if top.depth() == 3 => self.item(top),
            JsonEvent::Number(_) | JsonEvent::Bool(_) | JsonEvent::Null if top.depth() == 2 => self.item(top),
            JsonEvent::StringStart => {
                if top.depth() == 2 {
                    self.item(top);
                }
                self.target = match top.get() {
                    Some("thought") => {
                        if *thought && !*answered {
                            // A reply is one phase, also when its first plan proves to be none.
                            out.intent(Intent::PhaseText("\n\n"));
                        }
                        Target::Thought
                    }
                    Some("response_mode") => {
                        self.mode.clear();
                        Target::Mode
                    }
                    Some("direct_response") => {
                        // The last of several counts; what was sent is not taken back.
                        self.held.clear();
                        if self.sent {
                            self.held.push('\n');
                        }
                        Target::Answer
                    }
                    _ => Target::Nowhere,
                };
            }
            JsonEvent::StringEnd => {
                match std::mem::replace(&mut self.target, Target::Nowhere) {
                    Target::Thought => self.thought = true,
                    Target::Mode => {
                        let found = mode(options.plan_variant, &self.mode);
                        let found = found.filter(|_| self.mode.len() <= MODE);
                        self.allowed =
                            Some(!self.too_large && found.is_some_and(|mode| mode.text != Text::None));
                    }
                    Target::Answer | Target::Nowhere => return,
                }
                self.release(options, answered, out);
            }
            _ => {}
        }
    }

    /// A key of the object itself. What an earlier one of its name has brought and was not used counts no more.
    fn top_key(&mut self, text: &str, place: impl Fn() -> Place) {
        let keys = &mut self.places.keys;
        let known = FIELDS.contains(&text);
        match keys.iter().rposition(|(key, _)| known && key == text) {
            Some(at) => keys[at].1 = place(),
            None if known || keys.len() < KEYS => keys.push((text.to_owned(), place())),
            None => {}
        }
        match text {
            "tool_calls" => self.lists += 1,
            "response_mode" => self.allowed = None,
            "direct_response" if !self.sent => self.held.clear(),
            _ => {}
        }
    }

    /// The object is too large to be kept: it is no plan, and an answer that waits is not sent.
    fn over(&mut self, options: &Options) {
        if std::mem::replace(&mut self.too_large, true) {
            return;
        }
        let place = self.places.start;
        let message = format!(
            "the object has more than {} bytes of text or {} values",
            options.limits.value, options.limits.items
        );
        self.reports.push(Report::new(&json_rules::LIMIT_EXCEEDED, place, place.offset, message));
        self.held = String::new();
        if !self.sent {
            self.allowed = Some(false);
        }
    }

    /// An item of a list begins: a call, if the list is that of calls.
    fn item(&mut self, top: &TopKey) {
        if top.under() == Some("tool_calls") && !self.too_large {
            self.places.calls.push(None);
        }
    }

    /// Sends the answer so far, if it may be sent.
    fn release(&mut self, options: &Options, answered: &mut bool, out: &mut dyn Output) {
        let waits = !self.thought && self.held.len() <= options.limits.hold;
        if self.allowed != Some(true) || waits || self.held.is_empty() {
            return;
        }
        if !self.sent && is_blank(&self.held) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        out.intent(Intent::FinalText(&held));
        self.sent = true;
        *answered = true;
    }
}
