//! Values that are complete: which of them is the answer, what stands beside its message, and what it comes to at the end.

use serde_json::{Map, Value};

use super::fields::{self, Response, TOP, Whole};
use super::mention::{Before, Reading};
use super::other::{self, Standing};
use super::parse::Answers;
use super::response::Beside;
use super::rules;
use super::stands::Stands;
use crate::dialect::Output;
use crate::dialect::preface::Preface;
use crate::exit::Answer;
use crate::finding::Report;
use crate::repair::json::Built;
use crate::span::Place;

impl Answers {
    /// A whole value.
    pub(super) fn value(&mut self, built: Built, out: &mut dyn Output) {
        let Built { value, end, duplicates, members, .. } = built;
        self.outside.start_at(end.place);
        self.before = Before::default();
        let (at, end_at) = (self.object.at, end.offset);
        if self.object.late && self.object.known {
            self.another();
            self.lost(at, end_at, out);
        }
        // Items before and behind the answer in a list.
        let mut items = (0, 0);
        let value = match value {
            Value::Array(list) => {
                let length = list.len();
                let mut list = list.into_iter().enumerate();
                let found = list.find(|(_, value)| value.is_object());
                items = found.as_ref().map_or(items, |(at, _)| (*at, length - at - 1));
                found.map(|(_, value)| value)
            }
            value => Some(value),
        };
        let mut value = match value {
            Some(Value::Object(value)) => Some(value),
            _ => None,
        };
        self.cut |= end.closed_by_us && value.as_ref().is_some_and(may_begin);
        let mut stands = Stands::new(members, at, end_at);
        if !self.object.known && !self.begun {
            value = self.unwrapped(value, &mut stands, out);
        }
        if !self.object.known || self.object.late {
            // What is no answer is not used.
            self.surroundings.forget();
            if !std::mem::take(&mut self.object).known {
                self.outside.prose(at);
            }
            self.behind = None;
            return;
        }
        if self.object.base > 0 {
            self.in_list(items, end_at, out);
        }
        let mut value = value.unwrap_or_else(|| {
            let message = "the answer has more text or values than `limits.value` and `limits.items`";
            let report = Report::new(rules::LIMIT_EXCEEDED, at, end_at, message);
            out.report(report.repaired("only its message is read, the rest not used"));
            Map::new()
        });
        for duplicate in &duplicates {
            let sent = self.object.kept.contains(&duplicate.again.0.offset);
            out.report(if sent { duplicate.first_kept() } else { duplicate.last_kept() });
        }
        stands.told(&duplicates, &self.object.kept);
        let renamed = self.renamed(&mut value, &stands, out);
        let mut object = std::mem::take(&mut self.object);
        let cut = end.closed_by_us;
        let (name, response) = match &renamed {
            Some((name, response)) => (*name, response),
            None => ("response", value.get("response").unwrap_or(&Value::Null)),
        };
        let message = self.beside(name, response, &stands, cut, out);
        if object.inner.keys().any(|name| value.contains_key(name)) {
            object.response = Response::Part;
        }
        for (name, inner) in object.inner {
            value.entry(name).or_insert(inner);
        }
        let whole = Whole {
            value,
            stands,
            placeholders: object.placeholders,
            cut,
            thought: self.thoughts.found(),
            doubtful: false,
            example: std::mem::take(&mut self.quoted),
            response: object.response,
            message,
        };
        self.keep(whole, out);
    }

    /// The answer is an item of an array.
    fn in_list(&self, (before, behind): (usize, usize), end: usize, out: &mut dyn Output) {
        let (at, (first, last)) = (self.object.at, self.object.edges);
        let report = |at, end, message| Report::new(rules::ANSWER_IN_ARRAY, at, end, message);
        out.report(report(at, end, "the answer is an item of an array").repaired("read alone"));
        if before > 0 {
            out.report(report(at, first.offset, "items before the answer").repaired("left out"));
        }
        if behind > 0 {
            out.report(report(last, end, "items behind the answer").repaired("left out"));
        }
    }

    /// Tells what the response called `name` holds beside the message, and whether `response` holds that.
    fn beside(&self, name: &str, value: &Value, stands: &Stands, cut: bool, out: &mut dyn Output) -> bool {
        let beside = Beside { stands, message: &self.message, roles: &self.roles, cut };
        let mut reports = Vec::new();
        beside.report(name, value, &mut reports);
        reports.into_iter().for_each(|report| out.report(report));
        stands.get(&["response"]).is_some_and(|member| beside.has_message(member))
    }

    /// Keeps an answer, or the one before it.
    fn keep(&mut self, whole: Whole, out: &mut dyn Output) {
        self.another();
        self.behind = Some(String::new());
        let replaces = self.answer.as_ref().is_none_or(|answer| answer.thought) || self.message.is_sent();
        let lost = if replaces { self.answer.replace(whole) } else { Some(whole) };
        if let Some((at, end)) = lost.map(|whole| whole.stands.all()) {
            self.lost(at, end, out);
        }
    }

    /// Another answer has come: one that a mark followed was a draft, and does not act.
    pub(super) fn another(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.thought |= answer.doubtful;
        }
    }

    /// One of several answers is left out.
    fn lost(&self, at: Place, end: usize, out: &mut dyn Output) {
        let report = Report::new(rules::MULTIPLE_ANSWERS, at, end, "one of several answer objects");
        out.report(report.repaired("left out: the first one with a message is the answer"));
    }

    /// The answer in an object with one key, if it is the first of the reply.
    fn unwrapped(
        &mut self,
        value: Option<Map<String, Value>>,
        stands: &mut Stands,
        out: &mut dyn Output,
    ) -> Option<Map<String, Value>> {
        let value = value?;
        let inner = other::unwrapped(&value, &self.limits)?;
        let (at, origin) = (self.object.at, self.object.origin);
        self.begun = true;
        self.object.known = true;
        stands.wrapped(value.values().any(Value::is_string));
        self.first(at, origin, out);
        self.pending.drain(..).for_each(|report| out.report(report));
        let message = "the answer stands in an object of its own";
        let report = Report::new(rules::ANSWER_WRAPPED, at, stands.outer_end(), message);
        out.report(report.repaired("left out: what it holds is read alone"));
        if let Some(response) = inner.get("response").filter(|response| !response.is_null()) {
            self.take(response, Standing::under(stands, "response"), out);
        }
        Some(inner)
    }

    /// A response under another name, where its own is absent: its name and value.
    fn renamed(
        &mut self,
        answer: &mut Map<String, Value>,
        stands: &Stands,
        out: &mut dyn Output,
    ) -> Option<(&'static str, Value)> {
        if self.message.is_sent() {
            return None;
        }
        let name = other::response_of(answer).filter(|name| *name != "response")?;
        let (at, end) = stands.near(&[name]);
        let response = answer.shift_remove(name).unwrap_or_default();
        if self.object.overlong {
            let message = format!("a text under `{name}` is longer than `limits.hold`");
            let repair = if stands.get(&[name]).is_some() { "left out" } else { "not used" };
            out.report(Report::new(rules::LIMIT_EXCEEDED, at, end, message).repaired(repair));
            return None;
        }
        let report = Report::new(rules::FIELD_RENAMED, at, end, format!("the response is called `{name}`"));
        out.report(report.repaired("read as `response`"));
        self.take(&response, Standing::under(stands, name), out);
        Some((name, response))
    }

    /// The end of the input: the answer.
    pub(super) fn finish(
        &mut self,
        cut: bool,
        end: Place,
        preface: &mut Preface,
        out: &mut dyn Output,
    ) -> Answer {
        self.settled(Reading::End, preface, out);
        if self.surroundings.end() {
            self.quote();
        }
        self.behind = None;
        self.outside.end_line();
        let mut reports = Vec::new();
        let Some(whole) = self.answer.take() else { return Answer::default() };
        let mut said = fields::read(&whole, &self.limits, &mut reports);
        if let Some(&at) = whole.placeholders.first() {
            let message = "the message is a placeholder of the instructions";
            let (_, end) = whole.stands.near(&["response"]);
            let report = Report::new(rules::PLACEHOLDER_COPIED, at, end.max(at.offset), message);
            reports.push(report.repaired("not taken"));
        }
        if !self.message.is_sent() {
            let (at, end) = whole.stands.near(&["response"]);
            let report = Report::new(rules::MESSAGE_MISSING, at, end, "the answer has no message");
            reports.push(report.repaired("fallback text"));
        }
        let answer = &mut said;
        let (at, end_at) = whole.stands.all();
        if whole.thought || whole.doubtful {
            let message = "the answer stands in a thought";
            let report = Report::new(rules::ANSWER_IN_THOUGHT, at, end_at, message);
            reports.push(report.repaired("it does not end the action"));
            answer.should_exit = false;
        }
        if whole.example {
            let report =
                Report::new(rules::ANSWER_QUOTED, at, end_at, "the answer is quoted, or part of a sentence");
            reports.push(report.repaired("it does not end the action"));
            answer.should_exit = false;
        }
        if whole.cut || cut && answer.should_exit {
            let message = if whole.cut { "the answer is cut" } else { "the reply was cut after the answer" };
            let repair =
                if answer.should_exit { "it does not end the action" } else { "what there is of it is kept" };
            let report = Report::new(rules::TRUNCATED, at, end_at, message);
            reports.push(report.repaired(repair));
            answer.should_exit = false;
        }
        reports.into_iter().for_each(|report| out.report(report));
        self.left_out(end.offset, "text beside the answer", out);
        said
    }
}

/// Whether an object that was cut may have become an answer: it has at most the beginning of one key.
fn may_begin(object: &Map<String, Value>) -> bool {
    let half = |key: &String| TOP.iter().any(|name| name.starts_with(key.as_str()));
    object.len() < 2 && object.iter().all(|(key, value)| half(key) && value.is_null())
}
