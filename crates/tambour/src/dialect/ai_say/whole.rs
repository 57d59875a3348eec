//! Complete values: selects the answer, reports what is not its message, and reads it at the end.

use serde_json::{Map, Value};

use super::fields::{self, Response, TOP, Whole};
use super::mention::{Before, Reading};
use super::object::{AnswerObject, Renamed};
use super::other::{self, Standing};
use super::parse::Answers;
use super::placeholder::is_placeholder;
use super::response::Beside;
use super::rules;
use super::stands::Stands;
use crate::dialect::Output;
use crate::dialect::preface::Preface;
use crate::dialect::said::{is_whole, text_in};
use crate::exit::Answer;
use crate::finding::{Report, clip};
use crate::repair::json::Built;
use crate::span::Place;

impl Answers {
    /// Handles a complete value.
    pub(super) fn value(&mut self, built: Built, out: &mut dyn Output) {
        let Built { value, end, duplicates, members, .. } = built;
        self.outside.start_at(end.place);
        self.before = Before::default();
        let (at, end_at) = (self.object.at, end.offset);
        if self.object.late && self.object.known {
            self.another();
            self.lost(at, end_at, out);
        }
        // Counts of items before and after the answer in a list.
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
        if end.closed_by_us && value.as_ref().is_some_and(may_begin) {
            self.cut.get_or_insert(at);
        }
        let mut stands = Stands::new(members, at, end_at);
        if !self.object.known && !self.begun {
            value = self.unwrapped(value, &mut stands, out);
        }
        if !self.object.known || self.object.late {
            // An object that is not an answer is used only as prose.
            self.surroundings.forget();
            if !std::mem::take(&mut self.object).known {
                self.outside.prose(at);
                self.prose.value(value.as_ref());
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
        self.canonical(&mut value, &mut stands, end.closed_by_us, out);
        let renamed = self.renamed(&mut value, &stands, out);
        let mut object = std::mem::take(&mut self.object);
        let cut = end.closed_by_us;
        let (name, response) = match &renamed {
            Some((name, response)) => (name.as_str(), Some(response)),
            None => ("response", value.get("response")),
        };
        self.joined(name, response, &stands, &mut object, out);
        let (name, response) = match &renamed {
            Some((name, response)) => (name.as_str(), response),
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

    /// Reports an answer that is an item of an array.
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

    /// Reports the members of the response `name` that are not the message. Returns true if `response`
    /// contains the message.
    fn beside(&self, name: &str, value: &Value, stands: &Stands, cut: bool, out: &mut dyn Output) -> bool {
        let beside = Beside { stands, message: &self.message, roles: &self.roles, cut };
        let mut reports = Vec::new();
        beside.report(name, value, &mut reports);
        reports.into_iter().for_each(|report| out.report(report));
        stands.get(&["response"]).is_some_and(|member| beside.has_message(member))
    }

    /// Keeps the value as the answer, or keeps the one before it.
    fn keep(&mut self, whole: Whole, out: &mut dyn Output) {
        self.another();
        self.behind = Some(String::new());
        let replaces = self.answer.as_ref().is_none_or(|answer| answer.thought) || self.message.is_sent();
        let lost = if replaces { self.answer.replace(whole) } else { Some(whole) };
        if let Some((at, end)) = lost.map(|whole| whole.stands.all()) {
            self.lost(at, end, out);
        }
    }

    /// Notes that another answer has come: an answer that a closing mark followed was a draft and does not
    /// act.
    pub(super) fn another(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.thought |= answer.doubtful;
        }
    }

    /// Reports that one of several answers is left out.
    fn lost(&self, at: Place, end: usize, out: &mut dyn Output) {
        let report = Report::new(rules::MULTIPLE_ANSWERS, at, end, "one of several answer objects");
        out.report(report.repaired("left out: the first one with a message is the answer"));
    }

    /// Unwraps an answer in an object with a single key, if it is the first of the reply.
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
        // A response nested in an unclosed assessment is the response all the same.
        let lifted = || inner.get("assessment").and_then(|assessment| assessment.get("response"));
        let (response, path) = match inner.get("response") {
            Some(response) => (Some(response), ["response"].as_slice()),
            None => (lifted(), ["assessment", "response"].as_slice()),
        };
        if let Some(response) = response.filter(|response| !response.is_null()) {
            self.take(response, Standing::under(stands, path), out);
        }
        Some(inner)
    }

    /// Takes a response under another name if `response` is absent. Returns its name and value.
    fn renamed(
        &mut self,
        answer: &mut Map<String, Value>,
        stands: &Stands,
        out: &mut dyn Output,
    ) -> Option<(String, Value)> {
        if self.message.is_sent() {
            return None;
        }
        let name = other::response_of(answer, &self.roles).filter(|name| *name != "response")?.to_owned();
        let name = name.as_str();
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
        self.take(&response, Standing::under(stands, &[name]), out);
        Some((name.to_owned(), response))
    }

    /// Reports fields with other spellings, whose values are already under their own names, and moves
    /// fields of the answer out of an assessment that was not closed before them.
    fn canonical(
        &self,
        answer: &mut Map<String, Value>,
        stands: &mut Stands,
        cut: bool,
        out: &mut dyn Output,
    ) {
        for Renamed { at, written, name } in &self.object.renamed {
            let (at, end) = stands.key(*at);
            let report = Report::new(
                rules::FIELD_RENAMED,
                at,
                end,
                format!("`{name}` is called `{}`", clip(written, 40)),
            );
            out.report(report.repaired(format!("read as `{name}`")));
        }
        let Some(Value::Object(assessment)) = answer.get_mut("assessment") else { return };
        let mut lifted = Vec::new();
        // `should_exit` is read only in its own place, or from a truncated answer, which does not end the
        // action.
        let lifts = |name: &&&str| **name != "assessment" && (cut || **name != "should_exit");
        for name in TOP.iter().filter(lifts) {
            lifted.extend(assessment.shift_remove(*name).map(|value| (*name, value)));
        }
        for (name, value) in lifted {
            let (at, end) = stands.near(&["assessment", name]);
            let report =
                Report::new(rules::FIELD_MISPLACED, at, end, format!("`{name}` stands in `assessment`"));
            if answer.contains_key(name) {
                out.report(report.repaired("left out"));
            } else {
                out.report(report.repaired("read all the same"));
                answer.insert(name.to_owned(), value);
                stands.lift(name);
            }
        }
    }

    /// Joins the texts of a response that is not a string to the message.
    fn joined(
        &mut self,
        name: &str,
        response: Option<&Value>,
        stands: &Stands,
        object: &mut AnswerObject,
        out: &mut dyn Output,
    ) {
        let Some(response) = response.filter(|_| !self.message.is_sent() && object.placeholders.is_empty())
        else {
            return;
        };
        let role = self.roles.iter().find(|role| response.get(role.as_str()).is_some());
        let (path, value) = match role {
            Some(role) => (vec![name, role.as_str()], &response[role.as_str()]),
            None => (vec![name], response),
        };
        if value.is_string() {
            return;
        }
        let Some(text) = text_in(value).filter(|text| !is_placeholder(text)) else { return };
        let (at, end) = stands.near(&path);
        let repair = match is_whole(value) {
            true => "its text is taken",
            false => "its text is taken, the rest not used",
        };
        let (rule, message) = match (role, response) {
            (Some(_), _) => (Some(rules::FIELD_TYPE), "the message is not a text"),
            (None, Value::Object(_)) => {
                (Some(rules::ROLE_KEY_UNEXPECTED), "the message stands under another key than the role")
            }
            // A response that is not an object has its own finding.
            (None, _) => (None, ""),
        };
        if let Some(rule) = rule {
            out.report(Report::new(rule, at, end, message).repaired(repair));
        }
        object.response = Response::Text;
        self.message.send_joined(&text, at, out);
    }

    /// Ends the input and returns the answer.
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
        let mut beside = ("text beside the answer", "left out");
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
            // The prose around the answer is what the model says.
            if let Some(text) = self.prose.take() {
                self.message.send(&text, out);
                beside.1 = "taken as the message";
                reports.push(report.repaired("the text beside it is the message"));
            } else {
                reports.push(report.repaired("fallback text"));
            }
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
        self.beside_answer(end.offset, beside, out);
        said
    }
}

/// Returns true if a truncated object could have become an answer: it has at most the start of one key.
fn may_begin(object: &Map<String, Value>) -> bool {
    let half = |key: &String| TOP.iter().any(|name| name.starts_with(key.as_str()));
    object.len() < 2 && object.iter().all(|(key, value)| half(key) && value.is_null())
}
