//! Complete values: selects the answer, reports the members of its `response` that are not the message, and
//! reads its other fields at the end of the reply.

use serde_json::{Map, Value};

use super::field_extents::FieldExtents;
use super::fields::{self, ANSWER_FIELDS, ParsedAnswer, ResponseShape};
use super::marks::{MarkContext, MarkMeaning};
use super::object::{AnswerObject, RenamedKey};
use super::parse::AiSayReader;
use super::placeholder::is_placeholder;
use super::response::ResponseMembers;
use super::rules;
use super::shapes::{self, ValuePlace};
use crate::dialect::IntentSink;
use crate::dialect::preface::Preface;
use crate::dialect::value_text::{is_lossless, text_in};
use crate::exit::RoundAnswer;
use crate::finding::{FindingReport, clip};
use crate::repair::json::BuiltValue;
use crate::span::{Extent, Place};

impl AiSayReader {
    /// Handles a complete value.
    pub(super) fn push_value(&mut self, built_value: BuiltValue, out: &mut dyn IntentSink) {
        let BuiltValue { value, end, duplicates, members, .. } = built_value;
        self.prose_extents.start_at(end.place);
        self.mark_context = MarkContext::default();
        let (at, end_offset) = (self.object.place, end.offset);
        if self.object.is_late && self.object.is_recognized {
            self.mark_doubtful_as_thought();
            self.report_extra_answer(at, end_offset, out);
        }
        // Numbers of items before and after the answer in a list.
        let mut item_counts = (0, 0);
        let value = match value {
            Value::Array(list) => {
                let length = list.len();
                let mut list = list.into_iter().enumerate();
                let found = list.find(|(_, value)| value.is_object());
                item_counts = found.as_ref().map_or(item_counts, |(index, _)| (*index, length - index - 1));
                found.map(|(_, value)| value)
            }
            value => Some(value),
        };
        let mut value = match value {
            Some(Value::Object(value)) => Some(value),
            _ => None,
        };
        if end.is_auto_closed && value.as_ref().is_some_and(may_become_answer) {
            self.truncated_object.get_or_insert(at);
        }
        let mut places = FieldExtents::new(members, Extent { place: at, end: end_offset });
        if !self.object.is_recognized && !self.has_begun {
            value = self.unwrap_answer(value, &mut places, out);
        }
        if !self.object.is_recognized || self.object.is_late {
            // An object that is not an answer may still be used as prose; a second answer is not used.
            self.examples.discard_object();
            if !std::mem::take(&mut self.object).is_recognized {
                self.prose_extents.mark_prose(at);
                self.prose.push_object(value.as_ref());
            }
            self.text_after.stop();
            return;
        }
        if self.object.base_depth > 0 {
            self.report_array(item_counts, end_offset, out);
        }
        let mut value = value.unwrap_or_else(|| {
            let message = "the answer has more text or values than `limits.value` and `limits.items` allow";
            let report = FindingReport::new(rules::LIMIT_EXCEEDED, at, end_offset, message);
            out.report(report.with_repair("only its message is read, the rest not used"));
            Map::new()
        });
        for duplicate in &duplicates {
            let is_first_sent = self.object.keys_after_message.contains(&duplicate.second.place.offset);
            out.report(if is_first_sent {
                duplicate.report_first_kept()
            } else {
                duplicate.report_last_kept()
            });
        }
        places.add_duplicates(&duplicates, &self.object.keys_after_message);
        self.normalize_fields(&mut value, &mut places, end.is_auto_closed, out);
        let renamed_response = self.take_renamed_response(&mut value, &places, out);
        let mut object = std::mem::take(&mut self.object);
        let is_truncated = end.is_auto_closed;
        let (name, response) = match &renamed_response {
            Some((name, response)) => (name.as_str(), Some(response)),
            None => ("response", value.get("response")),
        };
        self.join_texts(name, response, &places, &mut object, out);
        let (name, response) = match &renamed_response {
            Some((name, response)) => (name.as_str(), response),
            None => ("response", value.get("response").unwrap_or(&Value::Null)),
        };
        let has_message = self.report_members(name, response, &places, is_truncated, out);
        if object.inner_fields.keys().any(|name| value.contains_key(name)) {
            object.response_shape = ResponseShape::PartialAnswer;
        }
        for (name, inner) in object.inner_fields {
            value.entry(name).or_insert(inner);
        }
        let answer = ParsedAnswer {
            value,
            places,
            placeholders: object.placeholders,
            is_truncated,
            is_thought: self.thoughts.is_structure_in_thought(),
            is_doubtful: false,
            is_example: std::mem::take(&mut self.is_quoted),
            response_shape: object.response_shape,
            has_message,
        };
        self.keep_answer(answer, out);
    }

    /// Reports an answer that is an item of an array, and the other items, given the number of items before
    /// and after the answer.
    fn report_array(
        &self,
        (count_before, count_after): (usize, usize),
        end: usize,
        out: &mut dyn IntentSink,
    ) {
        let (at, (object_start, object_end)) = (self.object.place, self.object.object_bounds);
        let report = |at, end, message| FindingReport::new(rules::ANSWER_IN_ARRAY, at, end, message);
        out.report(report(at, end, "the answer is an item of an array").with_repair("read alone"));
        if count_before > 0 {
            out.report(report(at, object_start.offset, "items before the answer").with_repair("left out"));
        }
        if count_after > 0 {
            out.report(report(object_end, end, "items after the answer").with_repair("left out"));
        }
    }

    /// Reports the members of `value`, the response under the key `name`, that are not the message. Returns true
    /// if the member `response` contains the message.
    fn report_members(
        &self,
        name: &str,
        value: &Value,
        places: &FieldExtents,
        is_truncated: bool,
        out: &mut dyn IntentSink,
    ) -> bool {
        let response_members =
            ResponseMembers { places, message: &self.message, roles: &self.roles, is_truncated };
        let mut reports = Vec::new();
        response_members.report(name, value, &mut reports);
        reports.into_iter().for_each(|report| out.report(report));
        places.get(&["response"]).is_some_and(|member| response_members.has_message(member))
    }

    /// Keeps either this answer or the one before it, and reports the other.
    fn keep_answer(&mut self, answer: ParsedAnswer, out: &mut dyn IntentSink) {
        self.mark_doubtful_as_thought();
        self.text_after.restart();
        let is_replacement =
            self.answer.as_ref().is_none_or(|answer| answer.is_thought) || self.message.is_sent();
        let lost_answer = if is_replacement { self.answer.replace(answer) } else { Some(answer) };
        if let Some(Extent { place, end }) = lost_answer.map(|answer| answer.places.outer_extent()) {
            self.report_extra_answer(place, end, out);
        }
    }

    /// Called when another answer arrives: if an unopened closing mark followed the earlier answer, that answer
    /// counts as a thought and does not end the action.
    pub(super) fn mark_doubtful_as_thought(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.is_thought |= answer.is_doubtful;
        }
    }

    /// Reports that one of several answers is left out.
    fn report_extra_answer(&self, at: Place, end: usize, out: &mut dyn IntentSink) {
        let report = FindingReport::new(rules::MULTIPLE_ANSWERS, at, end, "one of several answer objects");
        out.report(report.with_repair("left out: the first one with a message is the answer"));
    }

    /// Unwraps an answer in an object with a single key, if it is the first of the reply.
    fn unwrap_answer(
        &mut self,
        value: Option<Map<String, Value>>,
        extents: &mut FieldExtents,
        out: &mut dyn IntentSink,
    ) -> Option<Map<String, Value>> {
        let value = value?;
        let inner = shapes::unwrap_answer(&value, &self.limits)?;
        let (at, origin) = (self.object.place, self.object.origin);
        self.has_begun = true;
        self.object.is_recognized = true;
        extents.set_wrapper(value.values().any(Value::is_string));
        self.begin_answer(at, origin, out);
        self.pending_reports.drain(..).for_each(|report| out.report(report));
        let message = "the answer is inside another object";
        let report = FindingReport::new(rules::ANSWER_WRAPPED, at, extents.wrapper_key_end(), message);
        out.report(report.with_repair("left out: only the answer inside it is read"));
        // A response nested in an unclosed assessment is still the response.
        let lifted_response = || inner.get("assessment").and_then(|assessment| assessment.get("response"));
        let (response, path) = match inner.get("response") {
            Some(response) => (Some(response), ["response"].as_slice()),
            None => (lifted_response(), ["assessment", "response"].as_slice()),
        };
        if let Some(response) = response.filter(|response| !response.is_null()) {
            self.read_response(response, ValuePlace::from_path(extents, path), out);
        }
        Some(inner)
    }

    /// Takes a response under another name if `response` is absent. Returns its name and value.
    fn take_renamed_response(
        &mut self,
        answer: &mut Map<String, Value>,
        extents: &FieldExtents,
        out: &mut dyn IntentSink,
    ) -> Option<(String, Value)> {
        if self.message.is_sent() {
            return None;
        }
        let name =
            shapes::find_response_key(answer, &self.roles).filter(|name| *name != "response")?.to_owned();
        let name = name.as_str();
        let Extent { place: at, end } = extents.nearest_extent(&[name]);
        let response = answer.shift_remove(name).unwrap_or_default();
        if self.object.is_overlong {
            let message = format!("a text under `{name}` is longer than `limits.hold`");
            let repair = if extents.get(&[name]).is_some() { "left out" } else { "not used" };
            out.report(FindingReport::new(rules::LIMIT_EXCEEDED, at, end, message).with_repair(repair));
            return None;
        }
        let report =
            FindingReport::new(rules::FIELD_RENAMED, at, end, format!("the response is called `{name}`"));
        out.report(report.with_repair("read as `response`"));
        self.read_response(&response, ValuePlace::from_path(extents, &[name]), out);
        Some((name.to_owned(), response))
    }

    /// Reports fields with other spellings, whose values are already under the right names, and moves
    /// fields of the answer out of an assessment that was not closed before them.
    fn normalize_fields(
        &self,
        answer: &mut Map<String, Value>,
        extents: &mut FieldExtents,
        is_truncated: bool,
        out: &mut dyn IntentSink,
    ) {
        for RenamedKey { at, spelling, field_name } in &self.object.renamed_keys {
            let Extent { place, end } = extents.key_extent(*at);
            let report = FindingReport::new(
                rules::FIELD_RENAMED,
                place,
                end,
                format!("`{field_name}` is called `{}`", clip(spelling, 40)),
            );
            out.report(report.with_repair(format!("read as `{field_name}`")));
        }
        let Some(Value::Object(assessment)) = answer.get_mut("assessment") else { return };
        let mut lifted_fields = Vec::new();
        // `should_exit` is read only in its own place, or from a truncated answer, which does not end the
        // action.
        let is_liftable = |name: &&&str| **name != "assessment" && (is_truncated || **name != "should_exit");
        for name in ANSWER_FIELDS.iter().filter(is_liftable) {
            lifted_fields.extend(assessment.shift_remove(*name).map(|value| (*name, value)));
        }
        for (name, value) in lifted_fields {
            let Extent { place, end } = extents.nearest_extent(&["assessment", name]);
            let report = FindingReport::new(
                rules::FIELD_MISPLACED,
                place,
                end,
                format!("`{name}` must be beside `assessment`, not inside it"),
            );
            if answer.contains_key(name) {
                out.report(report.with_repair("left out"));
            } else {
                out.report(report.with_repair("read anyway"));
                answer.insert(name.to_owned(), value);
                extents.lift(name);
            }
        }
    }

    /// Joins the texts of a response that is not a string, and emits them as the message.
    fn join_texts(
        &mut self,
        name: &str,
        response: Option<&Value>,
        extents: &FieldExtents,
        object: &mut AnswerObject,
        out: &mut dyn IntentSink,
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
        let Extent { place: at, end } = extents.nearest_extent(&path);
        let repair = match is_lossless(value) {
            true => "its text is taken",
            false => "its text is taken, the rest not used",
        };
        let (rule, message) = match (role, response) {
            (Some(_), _) => (Some(rules::FIELD_TYPE), "the message is not a string"),
            (None, Value::Object(_)) => {
                (Some(rules::ROLE_KEY_UNEXPECTED), "the message is under a key other than the role")
            }
            // A response that is not an object has its own finding.
            (None, _) => (None, ""),
        };
        if let Some(rule) = rule {
            out.report(FindingReport::new(rule, at, end, message).with_repair(repair));
        }
        object.response_shape = ResponseShape::Text;
        self.message.send_joined(&text, at, out);
    }

    /// Ends the input and returns the answer.
    pub(super) fn finish(
        &mut self,
        is_truncated: bool,
        end: Place,
        preface: &mut Preface,
        out: &mut dyn IntentSink,
    ) -> RoundAnswer {
        self.resolve_mark(MarkMeaning::EndOfReasoning, preface, out);
        if self.examples.finish() {
            self.mark_example();
        }
        self.text_after.stop();
        self.prose_extents.end_line();
        let mut reports = Vec::new();
        // Message and repair of the findings on the remaining prose.
        let mut prose_report = ("text beside the answer", "left out");
        let Some(parsed) = self.answer.take() else { return RoundAnswer::default() };
        let mut round_answer = fields::read_answer(&parsed, &self.limits, &mut reports);
        if let Some(&at) = parsed.placeholders.first() {
            let message = "the message is a placeholder from the instructions";
            let end = parsed.places.nearest_extent(&["response"]).end;
            let report = FindingReport::new(rules::PLACEHOLDER_COPIED, at, end.max(at.offset), message);
            reports.push(report.with_repair("not taken"));
        }
        if !self.message.is_sent() {
            let Extent { place, end } = parsed.places.nearest_extent(&["response"]);
            let report = FindingReport::new(rules::MESSAGE_MISSING, place, end, "the answer has no message");
            // The prose around the answer is what the model says.
            if let Some(text) = self.prose.take() {
                self.message.send(&text, out);
                prose_report.1 = "taken as the message";
                reports.push(report.with_repair("the text beside it is the message"));
            } else {
                reports.push(report.with_repair("fallback text"));
            }
        }
        let answer = &mut round_answer;
        let Extent { place: at, end: end_offset } = parsed.places.outer_extent();
        if parsed.is_thought || parsed.is_doubtful {
            let message = "the answer is inside a thought";
            let report = FindingReport::new(rules::ANSWER_IN_THOUGHT, at, end_offset, message);
            reports.push(report.with_repair("it does not end the action"));
            answer.should_exit = false;
        }
        if parsed.is_example {
            let report = FindingReport::new(
                rules::ANSWER_QUOTED,
                at,
                end_offset,
                "the answer is quoted, or part of a sentence",
            );
            reports.push(report.with_repair("it does not end the action"));
            answer.should_exit = false;
        }
        if parsed.is_truncated || is_truncated && answer.should_exit {
            let message = if parsed.is_truncated {
                "the answer is cut off"
            } else {
                "the reply was cut after the answer"
            };
            let repair = if answer.should_exit {
                "it does not end the action"
            } else {
                "the part that arrived is kept"
            };
            let report = FindingReport::new(rules::TRUNCATED, at, end_offset, message);
            reports.push(report.with_repair(repair));
            answer.should_exit = false;
        }
        reports.into_iter().for_each(|report| out.report(report));
        self.report_prose(end.offset, prose_report, out);
        round_answer
    }
}

/// Returns true if a truncated object could still have become an answer: at most the start of one key was
/// read. Such a key has the value null.
fn may_become_answer(object: &Map<String, Value>) -> bool {
    let is_name_prefix = |key: &String| ANSWER_FIELDS.iter().any(|name| name.starts_with(key.as_str()));
    object.len() < 2 && object.iter().all(|(key, value)| is_name_prefix(key) && value.is_null())
}
