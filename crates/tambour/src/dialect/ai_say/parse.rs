//! Finds the answer among the objects of a reply and streams its message.
//!
//! The first object with a message is the answer; if none has one, the first that looks like an answer
//! . `object` holds the state of the current value and `whole` takes it once it is complete. `other`
//! reads answers in other shapes; `mention` separates marks of reasoning from mentions of them.

use serde_json::Value;

use super::fields::{ASSESSMENT, Response, TOP, Whole};
use super::mention::{Before, Pending, Reading};
use super::message::{Ended, Message, Stand};
use super::object::AnswerObject;
use super::options;
use super::other::{self, Standing};
use super::outside::Outside;
use super::prose::Prose;
use super::rules;
use super::surroundings::Surroundings;
use crate::dialect::draft::{LeadingThink, Rules};
use crate::dialect::front::Body;
use crate::dialect::preface::Preface;
use crate::dialect::thoughts::Thoughts;
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::{Report, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{
    Builder, Built, Closing, Doubts, JsonEvent, KeyPlace, Origin, Reader, Start, ThoughtMark,
};
use crate::repair::rules as repairs;
use crate::span::Place;

/// Reader of one `ai_say` reply.
pub(super) struct Answers {
    pub(super) outside: Outside,
    /// Set once something that looks like an answer has begun.
    pub(super) begun: bool,
    pub(super) thoughts: Thoughts,
    /// Start of an object that was truncated before it could be recognized as an answer.
    pub(super) cut: Option<Place>,
    pub(super) message: Message,
    pub(super) object: AnswerObject,
    builder: Builder,
    /// The answer; until a message is emitted, the first object that looks like one.
    pub(super) answer: Option<Whole>,
    /// Findings on an object that may turn out not to be an answer.
    pub(super) pending: Vec<Report>,
    /// Text after the answer, an aside if it was reasoning. `None` if it exceeds the hold limit or is not
    /// only text.
    pub(super) behind: Option<String>,
    pub(super) before: Before,
    /// A mark after the answer that is undecided until more text follows.
    mark: Option<Pending>,
    /// Prose around the answer, which is the message if the answer has none.
    pub(super) prose: Prose,
    /// Detects examples from the text around the answer.
    pub(super) surroundings: Surroundings,
    /// Set if the current object is quoted.
    pub(super) quoted: bool,
    pub(super) limits: Limits,
    /// Keys of the message.
    pub(super) roles: Vec<String>,
    /// Additional keys that mark an object as an answer.
    keys: &'static [&'static str],
}

/// Depth to which places of keys are recorded: a key around the answer, a field, and the keys nested in it.
const DEPTH: usize = 5;

impl Body for Answers {
    const DRAFT: Rules = rules::DRAFT;
    const OVERFLOW: (&'static Rule, &'static str, &'static str) =
        (rules::LIMIT_EXCEEDED, "more text before the answer than `limits.hold`", "given as the message");

    fn reader(limits: &Limits) -> Reader {
        Reader::chat(limits).seeking(&TOP)
    }

    fn start_at(&mut self, place: Place, draft: &LeadingThink) {
        self.thoughts.found_in_draft(draft.found());
        self.outside.start_at(place);
    }

    fn in_thought(&mut self, place: Place) {
        self.outside.start_at(place);
    }

    #[inline]
    fn event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output) {
        if let JsonEvent::StringDelta(text) = event
            && self.object.text
        {
            return self.message.push(text, out);
        }
        if self.mark.is_some() && self.settle(event, preface, out) {
            return;
        }
        if self.may_be_mentioned(event) || self.thoughts.see(event, self.begun, preface, out) {
            return self.thought(event, out);
        }
        if let JsonEvent::Key { text, depth, place } = event
            && !self.object.over
        {
            let object = &mut self.object;
            let mut level = depth.saturating_sub(object.above());
            if object.shifts(text, level) {
                level = 1;
            }
            if let Some(text) = object.field(text, level, *place) {
                return self.read(&JsonEvent::Key { text, depth: *depth, place: *place }, out);
            }
        }
        self.read(event, out);
    }

    fn report(&mut self, report: Report, out: &mut dyn Output) {
        // Faults of JSON get the specification row of this dialect, if their rule has one.
        let own = report.rule.rows.iter().find(|row| row.starts_with("S-"));
        let report = match own {
            Some(row) => report.row(row),
            None => report,
        };
        let object = &self.object;
        if report.rule.code == rules::LIMIT_EXCEEDED.code || object.known && !object.late {
            out.report(report);
        } else if !object.late {
            self.pending.push(report);
        }
    }

    fn bracket(&mut self, place: KeyPlace<'_>) {
        self.object.bracket(place);
    }

    fn begun(&self) -> bool {
        self.begun
    }

    fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.thoughts
    }

    fn held(&self) -> usize {
        let behind = self.behind.as_ref().map_or(0, String::len);
        // Before an answer has begun all text is held back anyway.
        let waiting = if self.begun { self.object.waiting } else { 0 };
        // The text after an answer is already counted.
        let prose = if self.begun && !self.message.is_sent() { self.prose.held() } else { 0 };
        self.message.held() + self.thoughts.held() + behind.max(prose) + waiting
    }
}

impl Answers {
    pub(super) fn new(options: &Options) -> Answers {
        Answers {
            outside: Outside::default(),
            begun: false,
            thoughts: Thoughts::new(rules::DRAFT, &options.limits),
            cut: None,
            message: Message::new(options.limits.hold),
            object: AnswerObject::default(),
            builder: Builder::limited(options.limits.value, options.limits.items).placing(DEPTH),
            answer: None,
            pending: Vec::new(),
            behind: None,
            before: Before::default(),
            mark: None,
            prose: Prose::new(options.limits.hold),
            surroundings: Surroundings::default(),
            quoted: false,
            limits: options.limits.clone(),
            roles: options::roles(options),
            keys: options::keys(options),
        }
    }

    pub(super) fn is_sent(&self) -> bool {
        self.message.is_sent()
    }

    /// Handles the next event, with its keys translated to the fields they stand for.
    fn read(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        self.object.wait(event, self.limits.hold);
        let object = &mut self.object;
        match event {
            JsonEvent::Text(text) => return self.text(text),
            JsonEvent::Comment(text) => return self.comment(text),
            JsonEvent::ValueStart(start) => {
                self.outside.end_line();
                self.quoted = self.surroundings.object();
                if start.commented {
                    self.thoughts.found_in_draft(true);
                }
                self.object = AnswerObject::new(start, self.message.is_sent());
                self.pending.clear();
                self.message.forget();
            }
            JsonEvent::ObjectStart => object.open(true),
            JsonEvent::ArrayStart => {
                object.lists();
                object.open(false);
            }
            JsonEvent::ObjectEnd | JsonEvent::ArrayEnd => {
                object.depth = object.depth.saturating_sub(1);
                let depth = object.depth;
                object.list_ends();
                if depth == object.above() + 1 && object.top == "response" && !object.over {
                    self.close_response(out);
                } else {
                    object.closed();
                }
            }
            JsonEvent::Key { text, depth, place } if !object.over => {
                let role = self.roles.iter().any(|role| role == text);
                let level = depth.saturating_sub(object.above());
                let own = object.key(text, level, *place, self.message.is_sent(), role);
                if own || (level == 1 && !object.known && self.keys.contains(text)) {
                    self.recognised(out);
                }
            }
            JsonEvent::StringStart => self.string_begins(),
            JsonEvent::StringEnd if std::mem::take(&mut object.text) => match self.message.end(out) {
                Ended::Text => {}
                Ended::Placeholder => object.placeholders.push(object.key_at),
                Ended::Whole(text) => self.whole_response(&text, out),
            },
            _ => {}
        }
        match (self.builder.see(event), event) {
            (Some(built), _) => self.value(built, out),
            // An oversized value has no contents.
            (None, JsonEvent::ValueEnd(end)) => {
                let start =
                    Start { index: 0, place: self.object.at, origin: self.object.origin, commented: false };
                let (duplicates, members) = (Vec::new(), self.builder.members(end.offset));
                let doubts = Doubts::default();
                self.value(Built { value: Value::Null, start, end: *end, duplicates, doubts, members }, out);
            }
            _ => {}
        }
    }

    /// Handles text outside the objects.
    fn text(&mut self, text: &str) {
        self.outside.push(text);
        if self.message.is_sent() {
            self.prose.leave();
        } else {
            self.prose.push(text);
        }
        self.outside(text);
    }

    /// Handles a comment outside the objects.
    fn comment(&mut self, text: &str) {
        self.outside.comment(text);
        if !self.message.is_sent() {
            self.prose.push(text);
        }
        self.outside(text);
    }

    fn outside(&mut self, text: &str) {
        if self.surroundings.text(text) {
            self.quote();
        }
        self.before.text(text);
        self.behind = self.behind.take().filter(|behind| behind.len() + text.len() <= self.limits.hold);
        if let Some(behind) = &mut self.behind {
            behind.push_str(text);
        }
    }

    /// Marks the answer before this place as an example.
    pub(super) fn quote(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.example = true;
        }
    }

    /// Returns true if the event is a closing mark after a complete answer that may be only a mention.
    fn may_be_mentioned(&mut self, event: &JsonEvent<'_>) -> bool {
        let JsonEvent::ThoughtEnd(mark, Closing::Unopened) = event else { return false };
        if self.answer.as_ref().is_none_or(|answer| answer.cut || answer.thought) {
            return false;
        }
        self.mark = Some(Pending::new(mark.text, mark.place, self.before));
        true
    }

    /// Passes text to an undecided mark. Returns true if it used up the event.
    fn settle(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn Output) -> bool {
        let (Some(mark), JsonEvent::Text(text)) = (&mut self.mark, event) else {
            self.settled(Reading::End, preface, out);
            return false;
        };
        let (read, reading) = mark.push(text);
        if reading != Reading::Open {
            self.settled(reading, preface, out);
            if read < text.len() {
                self.text(&text[read..]);
            }
        }
        true
    }

    /// Handles a mark after the answer whose meaning is now known.
    pub(super) fn settled(&mut self, reading: Reading, preface: &mut Preface, out: &mut dyn Output) {
        let Some(mark) = self.mark.take() else { return };
        if reading == Reading::Mention {
            self.text(&mark.text);
        } else {
            let mark = ThoughtMark { text: &mark.text, place: mark.place };
            let end = JsonEvent::ThoughtEnd(mark, Closing::Unopened);
            self.thoughts.see(&end, self.begun, preface, out);
            self.thought(&end, out);
        }
        if !mark.behind.is_empty() {
            self.text(&mark.behind);
        }
    }

    /// Handles the start or end of a thought outside the objects.
    fn thought(&mut self, event: &JsonEvent<'_>, out: &mut dyn Output) {
        match event {
            _ if self.mark.is_some() => {}
            JsonEvent::ThoughtStart(mark) => self.outside.cut(mark.place.offset),
            JsonEvent::ThoughtEnd(mark, closing) => {
                if *closing == Closing::Unopened {
                    self.outside.end_line();
                    // After an emitted message the mark is dropped, unless another answer follows:
                    // then it ended a draft.
                    if let Some(answer) = &mut self.answer {
                        answer.thought |= !self.message.is_sent();
                        answer.doubtful = true;
                    }
                    self.was_thought(out);
                }
                self.outside.start_at(mark.end());
            }
            _ => {}
        }
    }

    /// Treats the text before an unopened closing mark as reasoning: a draft, or an aside after the answer
    ///
    fn was_thought(&mut self, out: &mut dyn Output) {
        self.prose.forget();
        if !self.begun {
            self.outside.take(0);
        } else if let Some(text) = &mut self.behind {
            if !text.trim().is_empty() {
                out.intent(Intent::Aside { kind: AsideKind::Thought, text });
            }
            text.clear();
            self.outside.take(0);
        }
    }

    /// Marks the current object as an answer.
    fn recognised(&mut self, out: &mut dyn Output) {
        self.object.known = true;
        let first = !std::mem::replace(&mut self.begun, true);
        // The text before it ends here.
        self.outside.cut(self.object.at.offset);
        if self.object.late {
            return;
        }
        if first {
            self.first(self.object.at, self.object.origin, out);
        }
        self.pending.drain(..).for_each(|report| out.report(report));
    }

    /// Begins the first answer.
    pub(super) fn first(&mut self, at: Place, origin: Origin, out: &mut dyn Output) {
        self.prose.begins(origin != Origin::Bare);
        self.beside_answer(
            at.offset,
            ("text before the answer", "not used, unless the answer has no message"),
            out,
        );
        if origin != Origin::Bare {
            let message = "the answer stands in a code fence";
            out.report(Report::new(rules::FENCED_REPLY, at, at.offset, message).repaired("fence removed"));
        }
    }

    /// Reports the text around the answer up to `end`.
    pub(super) fn beside_answer(
        &mut self,
        end: usize,
        (message, repair): (&str, &str),
        out: &mut dyn Output,
    ) {
        for (place, end) in self.outside.take(end) {
            let report = Report::new(&repairs::TEXT_AROUND, place, end, message);
            out.report(report.row("S-053").repaired(repair));
        }
    }

    fn string_begins(&mut self) {
        let object = &mut self.object;
        if !object.known || object.late || object.over || object.top != "response" {
            return;
        }
        let listed = object.listed();
        let stand = match object.depth.saturating_sub(object.above()) {
            1 => Stand::Plain,
            2 if self.roles.contains(&object.sub)
                && (object.role.is_empty() || object.role == object.sub) =>
            {
                object.role.clone_from(&object.sub);
                Stand::Role
            }
            // A field that slipped into `response` is not a message.
            _ if TOP.contains(&object.last.as_str()) || ASSESSMENT.contains(&object.last.as_str()) => {
                return;
            }
            // The type of a list item, beside its text.
            _ if listed.is_some() && object.last == "type" => return,
            _ => Stand::under(&object.last),
        };
        object.text = true;
        // Texts of one list belong together.
        self.message.begin_in(listed, stand, object.key_at);
        if stand == Stand::Plain {
            object.sub.clear();
        }
    }

    /// Closes `response`, whose value ended with a bracket.
    fn close_response(&mut self, out: &mut dyn Output) {
        if self.object.known && !self.object.late {
            self.message.close(out);
        }
    }

    /// Handles a `response` that is a string and may be an object.
    fn whole_response(&mut self, text: &str, out: &mut dyn Output) {
        let inner = other::object_of(text, &self.limits);
        let Some(mut inner) =
            inner.filter(|inner| other::is_answer(inner) || inner.values().any(Value::is_string))
        else {
            return self.message.send(text, out);
        };
        let at = self.object.key_at;
        if !other::is_answer(&inner) {
            self.object.response = Response::Object;
            return self.take(&Value::Object(inner), Standing::at(at), out);
        }
        self.object.response = Response::Answer;
        if let Some(name) = other::response_of(&inner, &self.roles).map(str::to_owned) {
            let response = inner.shift_remove(&name).unwrap_or_default();
            self.take(&response, Standing::at(at), out);
        }
        self.object.inner = inner;
    }

    /// Takes the message out of a complete response.
    pub(super) fn take<'a>(&'a mut self, response: &'a Value, place: Standing<'a>, out: &mut dyn Output) {
        let Answers { roles, limits, message, object, .. } = self;
        let at = place.get();
        if (other::Reader { roles, limits, message, place }).take(response, out) {
            object.placeholders.push(at);
        }
    }
}
