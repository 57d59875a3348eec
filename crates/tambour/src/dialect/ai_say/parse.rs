//! JSON to an answer: which of the objects is the answer, where its fields stand, and its message as it arrives.
//!
//! The first object with a message is the answer; if none has one, the first that looks like an answer.

use serde_json::{Map, Value};

use super::around::Around;
use super::fields::{self, ASSESSMENT, Said, TOP, Whole};
use super::message::{Message, Stand};
use super::rules;
use crate::dialect::Output;
use crate::dialect::preface::Preface;
use crate::dialect::thoughts::Thoughts;
use crate::finding::Report;
use crate::options::Options;
use crate::repair::json::{Builder, Closing, Duplicate, End, JsonEvent, JsonSink, Origin};
use crate::repair::rules as repairs;
use crate::span::Place;

/// The objects of one reply.
pub(super) struct Answers {
    pub(super) around: Around,
    /// Whether something that looks like an answer has begun.
    pub(super) begun: bool,
    pub(super) thoughts: Thoughts,
    message: Message,
    object: Object,
    builder: Builder,
    /// The answer; until a message was sent, the first object that looks like one.
    answer: Option<Whole>,
    /// Repairs of an object that may yet turn out not to be an answer.
    pending: Vec<Report>,
    several: bool,
    /// Keys of the message.
    roles: Vec<String>,
}

/// What is known of the value under way.
#[derive(Debug, Default)]
struct Object {
    at: Place,
    origin: Origin,
    depth: usize,
    /// Open brackets of an array around the object.
    base: usize,
    /// Whether it looks like an answer.
    known: bool,
    /// Whether a message had been sent before it began.
    late: bool,
    /// Whether the object is over and further items of its array follow.
    over: bool,
    top: String,
    /// The key of `response` under way, and the last key in it at any depth.
    sub: String,
    last: String,
    key_at: Place,
    /// Whether the string under way is text of `response`.
    text: bool,
    /// Where the fields stand.
    places: Vec<(String, Place)>,
    /// Keys that came again after their text had been sent.
    kept: Vec<usize>,
    placeholders: Vec<Place>,
}

/// Lends the objects to the JSON reader.
pub(super) struct Feed<'a> {
    pub(super) answers: &'a mut Answers,
    pub(super) preface: &'a mut Preface,
    pub(super) out: &'a mut dyn Output,
}

impl JsonSink for Feed<'_> {
    #[inline]
    fn event(&mut self, event: JsonEvent<'_>) {
        self.answers.see(&event, self.preface, self.out);
    }

    fn report(&mut self, report: Report) {
        let answers = &mut *self.answers;
        // Faults of JSON are on the row of this dialect, where their rule has one.
        let own = report.rule.rows.iter().find(|row| row.starts_with("S-"));
        let report = match own {
            Some(row) => report.row(row),
            None => report,
        };
        let object = &answers.object;
        if report.rule.code == rules::LIMIT_EXCEEDED.code || object.known && !object.late {
            self.out.report(report);
        } else if !object.late {
            answers.pending.push(report);
        }
    }
}

impl Answers {
    pub(super) fn new(options: &Options) -> Answers {
        Answers {
            around: Around::default(),
            begun: false,
            thoughts: Thoughts::new(rules::DRAFT, &options.limits),
            message: Message::new(options.limits.hold),
            object: Object::default(),
            builder: Builder::limited(options.limits.value, options.limits.items),
            answer: None,
            pending: Vec::new(),
            several: false,
            roles: options.role_keys(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.message.held() + self.thoughts.held()
    }

    pub(super) fn is_sent(&self) -> bool {
        self.message.is_sent()
    }

    #[inline]
    fn see(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output) {
        if let JsonEvent::StringDelta(text) = event
            && self.object.text
        {
            return self.message.push(text, self.object.key_at, out);
        }
        if self.thoughts.see(event, self.begun, Some(preface), out) {
            return self.thought(event);
        }
        let object = &mut self.object;
        match event {
            JsonEvent::Text(text) => return self.around.push(text),
            JsonEvent::ValueStart(start) => {
                self.around.end_line();
                let late = self.message.is_sent();
                *object = Object { at: start.place, origin: start.origin, late, ..Object::default() };
                self.pending.clear();
            }
            JsonEvent::ObjectStart => object.depth += 1,
            JsonEvent::ArrayStart => {
                object.base = usize::from(object.depth == 0).max(object.base);
                object.depth += 1;
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                object.depth = object.depth.saturating_sub(1);
                let depth = object.depth;
                if depth == object.base + 1 && object.top == "response" && !object.over {
                    self.close_response(out);
                } else if depth == object.base && depth > 0 {
                    object.over = true;
                }
            }
            JsonEvent::Key { text, depth, place } if !object.over => {
                let level = depth - object.base;
                self.key(text, level, || place.get(), out);
            }
            JsonEvent::StringStart => self.string_begins(),
            JsonEvent::StringEnd if std::mem::take(&mut object.text) => {
                if self.message.end(out) {
                    object.placeholders.push(object.key_at);
                }
                if object.depth == object.base + 1 {
                    self.close_response(out);
                }
            }
            _ => {}
        }
        match (self.builder.see(event), event) {
            (Some(built), _) => self.value(built.value, &built.end, built.duplicates, out),
            // There is no value of one that was too large.
            (None, JsonEvent::ValueEnd(end)) => self.value(Value::Null, end, Vec::new(), out),
            _ => {}
        }
    }

    /// A thought begins or ends in the text around.
    fn thought(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ThoughtStart(_) => self.around.end_line(),
            JsonEvent::ThoughtEnd(mark, closing) => {
                if *closing == Closing::Unopened {
                    self.around.end_line();
                    if let Some(answer) = &mut self.answer {
                        answer.thought = true;
                    }
                    if !self.begun {
                        // It is a draft.
                        self.around.take();
                    }
                }
                self.around.start_at(mark.end());
            }
            _ => {}
        }
    }

    fn key(&mut self, text: &str, level: usize, place: impl Fn() -> Place, out: &mut dyn Output) {
        let object = &mut self.object;
        object.last.clear();
        if level > 1 {
            object.last.push_str(text);
        }
        if level == 1 {
            object.top.clear();
            object.top.push_str(text);
            object.sub.clear();
        } else if level == 2 {
            object.sub.clear();
            object.sub.push_str(text);
        }
        let path = match level {
            1 if TOP.contains(&text) || ASSESSMENT.contains(&text) => text.to_owned(),
            2 if object.top == "assessment" && ASSESSMENT.contains(&text) => format!("assessment.{text}"),
            _ if object.top == "response" => {
                object.key_at = place();
                if level == 2
                    && self.roles.iter().any(|role| role == text)
                    && self.message.is_sent()
                    && object.kept.len() < 16
                {
                    object.kept.push(object.key_at.offset);
                }
                return;
            }
            _ => return,
        };
        let at = place();
        if text == "response" {
            object.key_at = at;
            if self.message.is_sent() && object.kept.len() < 16 {
                object.kept.push(at.offset);
            }
        }
        object.places.retain(|(known, _)| *known != path);
        object.places.push((path, at));
        // A lone `reasoning` is common in other objects.
        if !object.known && level == 1 && text != "reasoning" {
            self.recognised(out);
        }
    }

    /// The object under way looks like an answer.
    fn recognised(&mut self, out: &mut dyn Output) {
        let object = &mut self.object;
        object.known = true;
        let at = object.at;
        let first = !std::mem::replace(&mut self.begun, true);
        if !first && !std::mem::replace(&mut self.several, true) {
            let report = Report::new(rules::MULTIPLE_ANSWERS, at, at.offset + 1, "a second answer object");
            let repair = "the first one with a message is the answer";
            out.report(report.repaired(repair));
        }
        if object.late {
            return;
        }
        if first {
            if let Some(place) = self.around.take() {
                let report = Report::new(&repairs::TEXT_AROUND, place, at.offset, "text before the answer");
                out.report(report.row("S-053").repaired("left out"));
            }
            if object.origin != Origin::Bare {
                let message = "the answer stands in a code fence";
                out.report(
                    Report::new(rules::FENCED_REPLY, at, at.offset + 1, message).repaired("fence removed"),
                );
            }
            if object.base > 0 {
                let message = "the answer is an item of an array";
                out.report(
                    Report::new(rules::ANSWER_IN_ARRAY, at, at.offset + 1, message).repaired("read alone"),
                );
            }
        }
        self.pending.drain(..).for_each(|report| out.report(report));
    }

    fn string_begins(&mut self) {
        let object = &mut self.object;
        if !object.known || object.late || object.over || object.top != "response" {
            return;
        }
        let stand = match object.depth - object.base {
            1 => Stand::Plain,
            2 if self.roles.contains(&object.sub) => Stand::Role,
            // A field that slipped into `response` is no message.
            _ if TOP.contains(&object.last.as_str()) || ASSESSMENT.contains(&object.last.as_str()) => return,
            _ => Stand::Elsewhere,
        };
        object.text = true;
        self.message.begin(stand);
        if stand == Stand::Plain {
            object.sub.clear();
        }
    }

    /// The value of `response` is complete.
    fn close_response(&mut self, out: &mut dyn Output) {
        let object = &self.object;
        if object.known && !object.late {
            self.message.close(object.key_at, out);
        }
    }

    /// A whole value.
    fn value(&mut self, value: Value, end: &End, duplicates: Vec<Duplicate>, out: &mut dyn Output) {
        let object = std::mem::take(&mut self.object);
        self.around.start_at(end.place);
        self.pending.clear();
        if !object.known || object.late {
            // What is no answer is not used.
            if !object.known {
                self.around.prose(object.at);
            }
            return;
        }
        let value = match value {
            Value::Array(items) => items.into_iter().find(Value::is_object),
            value => Some(value),
        };
        let value = match value {
            Some(Value::Object(value)) => value,
            _ => {
                let message = "the answer has more text or values than `limits.value` and `limits.items`";
                let report = Report::new(rules::LIMIT_EXCEEDED, object.at, end.offset, message);
                out.report(report.repaired("only its message is read"));
                Map::new()
            }
        };
        for duplicate in duplicates {
            let sent = object.kept.contains(&duplicate.again.0.offset);
            out.report(if sent { duplicate.first_kept() } else { duplicate.last_kept() });
        }
        let cut = end.closed_by_us;
        let whole = Whole {
            value,
            at: object.at,
            end: end.offset,
            places: object.places,
            placeholders: object.placeholders,
            cut,
            thought: self.thoughts.found(),
        };
        if self.answer.as_ref().is_none_or(|answer| answer.thought) || self.message.is_sent() {
            self.answer = Some(whole);
        }
    }

    /// The end of the input: the answer.
    pub(super) fn finish(&mut self, cut: bool, end: Place, out: &mut dyn Output) -> Said {
        self.around.end_line();
        let mut reports = Vec::new();
        let Some(whole) = self.answer.take() else { return Said::default() };
        let mut said = fields::read(&whole, &mut reports);
        if let Some(&at) = whole.placeholders.first() {
            let message = "the message is a placeholder of the instructions";
            reports.push(
                Report::new(rules::PLACEHOLDER_COPIED, at, at.offset + 1, message).repaired("not taken"),
            );
        }
        if !self.message.is_sent() {
            let at = whole.place("response").unwrap_or(whole.at);
            let report = Report::new(rules::MESSAGE_MISSING, at, whole.end, "the answer has no message");
            reports.push(report.repaired("fallback text"));
        }
        let answer = &mut said.answer;
        if whole.thought {
            let message = "the answer stands in a thought";
            let report = Report::new(rules::ANSWER_IN_THOUGHT, whole.at, whole.end, message);
            reports.push(report.repaired("it does not end the action"));
            answer.should_exit = false;
        }
        if whole.cut || cut && answer.should_exit {
            let message = if whole.cut { "the answer is cut" } else { "the reply was cut after the answer" };
            let repair =
                if answer.should_exit { "it does not end the action" } else { "what there is of it is kept" };
            let report = Report::new(rules::TRUNCATED, whole.at, whole.end, message);
            reports.push(report.repaired(repair));
            answer.should_exit = false;
        }
        reports.into_iter().for_each(|report| out.report(report));
        if let Some(place) = self.around.take() {
            let report = Report::new(&repairs::TEXT_AROUND, place, end.offset, "text beside the answer");
            out.report(report.row("S-053").repaired("left out"));
        }
        said
    }
}
