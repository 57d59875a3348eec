//! Converts an object to an event: resolves its name and its fields, including misnamed and misplaced ones
//! (J-050, R-76, R-87), and reports the members that are not emitted.

use serde_json::{Map, Value};

use super::line::ObjectState;
use super::order::{EventOrder, delta_row, parse_lenient_id};
use super::reports::PendingReports;
use super::rules;
use crate::dialect::IntentSink;
use crate::dialect::value_text::{is_lossless, text_in};
use crate::event::{CONTRACT_EVENTS, EventKind, parse_kind};
use crate::finding::{Rule, clip};
use crate::limits::Limits;
use crate::repair::json::{FoundValue, MemberPlace, MemberPlaces, find_in_string};
use crate::span::{Extent, Place};

/// A parsed object, with the facts recorded while it was read.
pub(super) struct ParsedObject<'a> {
    /// State recorded while the object was read.
    pub(super) state: &'a ObjectState,
    pub(super) object: Map<String, Value>,
    /// Places of its members.
    pub(super) members: &'a MemberPlaces,
    /// Offset after the object.
    pub(super) end: usize,
    /// Set if the reply ends inside the object.
    pub(super) is_truncated: bool,
}

/// The fields of one event, without its name.
struct EventFields<'a> {
    data: Map<String, Value>,
    /// Members of the object next to `event` and `data`; empty if the object itself is the data. Before
    /// [`EventFields::open_data`], they include `data`.
    siblings: Map<String, Value>,
    /// Start of the event.
    place: Place,
    /// Places of the object's members.
    members: &'a MemberPlaces,
    /// Set if the object itself is the data, as in the framing of SSE (server-sent events).
    is_framed: bool,
    /// Set if `data` is not written as an object, so that the places of its fields are unknown.
    is_data_text: bool,
    /// Keys moved from `siblings` to `data`.
    moved_keys: Vec<&'static str>,
}

/// Returns the fields the contract defines for an event.
fn contract_fields(name: &str) -> &'static [&'static str] {
    match name {
        "serp_summary" | "final_delta" => &["text"],
        "phase_start" => &["id", "title"],
        "phase_delta" => &["id", "text"],
        "serp_queries" => &["queries"],
        _ => &[],
    }
}

/// Returns true for fields of the envelope (J-030), which the server adds; a model may write them.
fn is_envelope_field(key: &str) -> bool {
    matches!(key, "message_id" | "request_id")
}

/// Maximum number of unexpected fields of one event that get a finding each.
const MAX_EXTRA_FIELDS: usize = 32;

/// Returns true if a number can replace `id` without a loss: `id` is a number, can be read as a number, or is
/// null or a boolean.
fn is_acceptable_id(id: &Value) -> bool {
    matches!(id, Value::Null | Value::Bool(_) | Value::Number(_)) || parse_lenient_id(Some(id)).is_some()
}

/// Common other names of `text`.
const TEXT_ALIASES: [&str; 3] = ["content", "delta", "message"];

/// Less common other names, tried when no common one is present.
const RARE_TEXT_ALIASES: [&str; 9] =
    ["value", "answer", "response", "reply", "output", "body", "chunk", "token", "string"];

/// Returns the event that `name` means: a name with another spelling, letter case or separators, or a
/// common name of the answer.
fn find_misspelled(name: &str) -> Option<&'static str> {
    let normalized = name.to_ascii_lowercase().replace(['-', ' '], "_");
    let exact = CONTRACT_EVENTS
        .iter()
        .copied()
        .find(|event| *event == normalized || event.replace('_', "") == normalized);
    let similar = || {
        CONTRACT_EVENTS
            .iter()
            .copied()
            .find(|event| strsim::osa_distance(event, &normalized) <= MAX_EDIT_DISTANCE)
    };
    exact.or_else(similar).or_else(|| ANSWER_ALIASES.contains(&normalized.as_str()).then_some("final_delta"))
}

/// Other names of `final_delta`.
const ANSWER_ALIASES: [&str; 10] = [
    "final",
    "answer",
    "final_text",
    "final_answer",
    "final_response",
    "response",
    "reply",
    "message",
    "text",
    "content",
];

/// Edit distance up to which a name counts as misspelled.
const MAX_EDIT_DISTANCE: usize = 1;

/// Returns true if a truncated object could still have become an event: at most the start of the event's name
/// was read, or the start of the first key, whose value is then null.
pub(super) fn may_become_event(object: &Map<String, Value>) -> bool {
    object.len() < 2
        && object.iter().all(|(key, value)| match value {
            Value::Null => ["event", "data"].iter().any(|name| name.starts_with(key.as_str())),
            Value::String(name) => {
                key == "event" && CONTRACT_EVENTS.iter().any(|candidate| candidate.starts_with(name))
            }
            _ => false,
        })
}

/// Reads an object as an event. `frame_name` is the name in an `event:` line before the object.
pub(super) fn read_event(
    mut parsed: ParsedObject<'_>,
    frame_name: Option<String>,
    limits: &Limits,
    order: &mut EventOrder,
    pending: &mut PendingReports,
    out: &mut dyn IntentSink,
) {
    let is_framed = frame_name.is_some();
    let Some(name) = frame_name.or_else(|| take_name(&mut parsed, order)) else { return };
    let (mut name, place) = (name.trim(), parsed.state.event_start);
    if parse_kind(name).is_none()
        && let Some(event_name) = find_misspelled(name)
    {
        let message = format!("the event is written `{}`", clip(name, 40));
        order.reports.add(rules::FIELD_RENAMED, place, message, &format!("read as `{event_name}`"));
        name = event_name;
    }
    match parse_kind(name) {
        Some(EventKind::Contract) => {}
        kind => {
            if kind == Some(EventKind::System) {
                pending.release(out);
            }
            return report_foreign(name, kind, place, order);
        }
    }
    pending.release(out);
    // The text of a streamed delta has been emitted.
    let is_streamed = parsed.state.target.is_some();
    if parsed.is_truncated {
        let repair = if is_streamed { "the text so far is kept" } else { "left out" };
        order.reports.add(rules::LINE_CUT, place, "the reply ends inside a line", repair);
        if !is_streamed {
            return;
        }
    }
    if is_streamed {
        let is_over_limit = false;
        return report_unsent(name, parsed.state, parsed.members, is_over_limit, order);
    }
    let object = std::mem::take(&mut parsed.object);
    let (data, siblings) = if is_framed { (object, Map::new()) } else { (Map::new(), object) };
    let (members, is_data_text, moved_keys) = (parsed.members, false, Vec::new());
    let mut fields = EventFields { data, siblings, place, members, is_framed, is_data_text, moved_keys };
    fields.open_data(name, limits, order);
    if fields.rename_text(name, place, order) {
        return fields.report_unexpected(name, order);
    }
    fields.take_siblings(name, place, order);
    let misplaced_text = fields.take_misplaced_text(name, order);
    fields.report_unexpected(name, order);
    // The text of a missing delta follows the start of its phase, but precedes the end of thinking or of the
    // answer.
    let text_before = misplaced_text.as_deref().filter(|_| name != "phase_start");
    text_before.into_iter().for_each(|text| order.emit_misplaced_text(name, text, place, out));
    emit_event(name, &fields.data, place, parsed.end, order, out);
    let text_after = misplaced_text.as_deref().filter(|_| name == "phase_start");
    text_after.into_iter().for_each(|text| order.emit_misplaced_text(name, text, place, out));
}

/// Handles an event that has a name and no data: an SSE frame without an object after `data:`.
pub(super) fn emit_without_data(
    name: &str,
    at: Place,
    end: usize,
    order: &mut EventOrder,
    pending: &mut PendingReports,
    out: &mut dyn IntentSink,
) {
    match parse_kind(name) {
        Some(EventKind::Contract) => {
            pending.release(out);
            emit_event(name, &Map::new(), at, end, order, out);
        }
        kind => report_foreign(name, kind, at, order),
    }
}

/// Reports an event outside the contract; `kind` is `None` for an unknown name.
fn report_foreign(name: &str, kind: Option<EventKind>, at: Place, order: &mut EventOrder) {
    if kind == Some(EventKind::System) {
        let message = format!("a model must not write `{name}`");
        order.reports.add(rules::EVENT_SPOOFED, at, message, "left out");
    } else {
        let clipped_name = clip(name, 40);
        let message = format!("`{clipped_name}` is not an event of the contract");
        order.reports.add(rules::EVENT_UNKNOWN, at, message, "left out");
    }
}

/// Emits an event whose text has not been streamed.
fn emit_event(
    name: &str,
    fields: &Map<String, Value>,
    at: Place,
    end: usize,
    order: &mut EventOrder,
    out: &mut dyn IntentSink,
) {
    if !matches!(name, "phase_delta" | "final_delta") {
        return order.push_event(name, fields, at, end, out);
    }
    match fields.get("text") {
        Some(Value::String(text)) => {
            let target = match name {
                "final_delta" => order.begin_final_delta(at, out),
                _ => order.begin_phase_delta(fields.get("id"), at, out),
            };
            if text.is_empty() {
                order.report_empty_delta(name, at, "the text of a delta is empty");
            }
            order.push_delta(target, text, at, out);
        }
        Some(value) => {
            let (row, message) = (delta_row(name), "`text` is not a string");
            let Some(text) = text_in(value) else {
                return order.reports.add_on_row(rules::FIELD_TYPE, row, at, message, "event left out");
            };
            let repair = text_repair(value);
            order.reports.add_on_row(rules::FIELD_TYPE, row, at, message, repair);
            let target = match name {
                "final_delta" => order.begin_final_delta(at, out),
                _ => order.begin_phase_delta(fields.get("id"), at, out),
            };
            order.push_delta(target, &text, at, out);
        }
        None => order.report_empty_delta(name, at, "the delta has no `text`"),
    }
}

/// Returns the repair text for a value that is not a string but contains one.
pub(super) fn text_repair(value: &Value) -> &'static str {
    if is_lossless(value) { "its text is taken" } else { "its text is taken, the rest not used" }
}

/// Takes the event's name out of the object; `None`, with a finding, if the object names no event.
fn take_name(parsed: &mut ParsedObject<'_>, order: &mut EventOrder) -> Option<String> {
    let ObjectState { event_start, has_string_name, .. } = *parsed.state;
    match parsed.object.shift_remove("event") {
        Some(Value::String(name)) => return Some(name),
        // Once the text is streamed, the builder has discarded the members, `event` included; the name was
        // read before the text.
        None if parsed.state.target.is_some() && has_string_name => return Some(parsed.state.name.clone()),
        None if parsed.state.target.is_none() => {}
        _ => {
            order.reports.add_on_row(
                rules::FIELD_TYPE,
                "J-051",
                event_start,
                "`event` is not a string",
                "left out",
            );
            return None;
        }
    }
    // Other objects have the keys `type` and `name` too, so their value must be the name of an event; under
    // `type` it may be misspelled.
    let is_known_name =
        |name: &str| matches!(parse_kind(name.trim()), Some(EventKind::Contract | EventKind::System));
    let is_event_name = |name: &str| is_known_name(name) || find_misspelled(name.trim()).is_some();
    if parsed.object.get("type").and_then(Value::as_str).is_some_and(is_event_name)
        && let Some(Value::String(name)) = parsed.object.shift_remove("type")
    {
        order.reports.add(
            rules::FIELD_RENAMED,
            event_start,
            "the event is named by `type`",
            "read as `event`",
        );
        return Some(name);
    }
    let is_named_event = parsed.object.get("name").and_then(Value::as_str).is_some_and(is_known_name);
    if is_named_event && let Some(Value::String(name)) = parsed.object.shift_remove("name") {
        order.reports.add(
            rules::FIELD_RENAMED,
            event_start,
            "the event is named by `name`",
            "read as `event`",
        );
        return Some(name);
    }
    let key = parsed.object.keys().next().filter(|key| parse_kind(key) == Some(EventKind::Contract)).cloned();
    if parsed.object.len() == 1
        && let Some(name) = key
    {
        let data = parsed.object.shift_remove(&name).unwrap_or_default();
        parsed.object.insert("data".to_owned(), data);
        order.reports.add(
            rules::FIELD_RENAMED,
            event_start,
            "the event is named by a key",
            "read as `event`, its value as `data`",
        );
        return Some(name);
    }
    order.reports.add(rules::EVENT_MISSING, event_start, "the object names no event", "left out");
    None
}

/// Reports the faults of a delta whose text was streamed, above all its members that were not emitted.
/// `is_over_limit` is set if the object exceeded the limits.
pub(super) fn report_unsent(
    name: &str,
    state: &ObjectState,
    members: &MemberPlaces,
    is_over_limit: bool,
    order: &mut EventOrder,
) {
    let at = state.event_start;
    if is_over_limit {
        let message = "an event with more text or values than `limits.hold` and `limits.items` allow";
        order.reports.add(rules::LIMIT_EXCEEDED, at, message, "the part already sent is kept");
    } else if !state.is_framed
        && members.object_members(&[]).any(|member| contract_fields(name).contains(&member.key.as_str()))
    {
        order.reports.add(
            rules::DATA_FLAT,
            at,
            "the fields are beside `event`, not in `data`",
            "read anyway",
        );
    }
    let is_expected = |key: &str| contract_fields(name).contains(&key) || is_envelope_field(key);
    for member in members.iter() {
        let (key, level, extent) = (member.key.as_str(), member.level, member.extent);
        let parent = members.parent(member).map(|member| (member.key.as_str(), member.level));
        let is_field = match (parent, key) {
            (None, _) if state.is_framed => is_expected(key),
            (None, "data") => member.has_object(),
            (None, "event") => true,
            (None, _) => is_expected(key),
            (Some(("data", 1)), _) if !state.is_framed => level == 2 && is_expected(key),
            // Nested inside a member that is left out.
            _ => continue,
        };
        // A second `text` in the same object already has a finding as a duplicate key.
        if key == "text"
            && extent.place.offset != state.text_at
            && (is_over_limit || level != state.text_depth)
        {
            let repair = "left out, the first one was sent";
            order.reports.add_at(
                rules::FIELD_EXTRA,
                "J-051",
                extent,
                "the delta has a second `text`",
                repair,
            );
        } else if key == "id" && is_field && state.id.as_ref().is_some_and(|id| !is_acceptable_id(id)) {
            order.reports.add_at(rules::FIELD_TYPE, "J-009", extent, "`id` has the wrong type", "left out");
        } else if !is_field {
            let clipped_key = clip(key, 40);
            let message = format!("`{name}` has the unknown field `{clipped_key}`");
            order.reports.add_at(rules::FIELD_EXTRA, "J-051", extent, message, "left out");
        }
    }
    if !state.has_text {
        order.report_empty_delta(name, at, "the text of a delta is empty");
    }
}

impl EventFields<'_> {
    /// Returns the extent of a field, in `data` if `is_in_data`, else among the siblings. If the place of the
    /// field is unknown, the extent is empty and at the start of the event.
    fn field_extent(&self, is_in_data: bool, key: &str) -> Extent {
        let unknown = Extent::empty(self.place);
        if is_in_data && self.is_data_text && !self.moved_keys.contains(&key) {
            return unknown;
        }
        let extent_in_data = || self.members.extent(&["data", key]).filter(|_| is_in_data && !self.is_framed);
        extent_in_data().or_else(|| self.members.extent(&[key])).unwrap_or(unknown)
    }

    /// Returns the extent of the key of a field in `data`, or that of the field when the key's place is
    /// unknown.
    fn data_key_extent(&self, key: &str) -> Extent {
        let path: &[&str] = if self.is_framed { &[key] } else { &["data", key] };
        let member = self.members.find(path).filter(|_| !self.is_data_text);
        member.map_or_else(|| self.field_extent(true, key), MemberPlace::key_extent)
    }

    /// Returns the extent of the key of a sibling.
    fn sibling_key_extent(&self, key: &str) -> Extent {
        let member = self.members.find(&[key]);
        member.map_or_else(|| self.field_extent(false, key), MemberPlace::key_extent)
    }

    /// Reports a field, in `data` if `is_in_data`, whose value is lost.
    fn report_lost(
        &self,
        rule: &'static Rule,
        row: &'static str,
        (is_in_data, key): (bool, &str),
        message: &str,
        order: &mut EventOrder,
    ) {
        let extent = self.field_extent(is_in_data, key);
        // A finding without the field's place spans the whole event, which is not left out.
        let repair = if extent.is_empty() { "not used" } else { "left out" };
        order.reports.add_at(rule, row, extent, message, repair);
    }

    /// Replaces `self.data` with the member `data`, or with the object or text that it contains.
    fn open_data(&mut self, name: &str, limits: &Limits, order: &mut EventOrder) {
        self.data = match self.siblings.shift_remove("data") {
            Some(Value::Object(data)) => data,
            Some(Value::Null) | None => return,
            Some(data) => {
                let text_len = data.as_str().map_or(0, |text| text.trim().len());
                // A string that contains an object stays a string if the object has no field of the event and
                // is not the whole string.
                let is_event = |data: &Map<String, Value>| {
                    contract_fields(name).iter().any(|key| data.contains_key(*key))
                };
                let has_text = contract_fields(name).contains(&"text");
                let text = Some(&data).filter(|_| has_text).filter(|data| text_in(data).is_some());
                let (data, repair) = match (find_in_string(&data, limits), text) {
                    (Some(FoundValue { value: Some(Value::Object(data)), reports, span, .. }), text)
                        if text.is_none() || is_event(&data) || span.end - span.start == text_len =>
                    {
                        let is_complete = reports.is_empty() && span.end - span.start == text_len;
                        (
                            data,
                            if is_complete {
                                "read as the object"
                            } else {
                                "read as the object, the rest is not used"
                            },
                        )
                    }
                    (_, Some(text)) => {
                        let data = Map::from_iter([("text".to_owned(), text.clone())]);
                        (data, "read as its text")
                    }
                    _ => (Map::new(), "left out"),
                };
                let extent = self.field_extent(false, "data");
                order.reports.add_at(rules::FIELD_TYPE, "J-051", extent, "`data` is not an object", repair);
                self.is_data_text = true;
                data
            }
        };
    }

    /// Moves fields of the event from the siblings to `data`, if `data` lacks them.
    fn take_siblings(&mut self, name: &str, at: Place, order: &mut EventOrder) {
        let mut has_siblings = false;
        for field in contract_fields(name) {
            if !self.data.contains_key(*field)
                && let Some(value) = self.siblings.shift_remove(*field)
            {
                has_siblings = true;
                self.moved_keys.push(field);
                self.data.insert((*field).to_owned(), value);
            }
        }
        if has_siblings {
            let message = "the fields are beside `event`, not in `data`";
            order.reports.add(rules::DATA_FLAT, at, message, "read anyway");
        }
    }

    /// Renames a field to `text` if the event has no `text` and only one field can be meant. Returns true if
    /// the event is not emitted, because its texts are kept until the end of the reply, in case the reply has
    /// no other answer.
    fn rename_text(&mut self, name: &str, at: Place, order: &mut EventOrder) -> bool {
        let has_text = |fields: &Map<String, Value>| fields.get("text").is_some_and(|text| !text.is_null());
        if has_text(&self.data) || has_text(&self.siblings) || !contract_fields(name).contains(&"text") {
            return false;
        }
        let mut texts = self.find_texts(&TEXT_ALIASES);
        if texts.is_empty() {
            if self.rename_only_text(name, order) {
                return false;
            }
            texts = self.find_texts(&RARE_TEXT_ALIASES);
        }
        let [(is_in_data, key)] = texts[..] else { return self.merge_texts(name, texts, at, order) };
        let from = if is_in_data { &mut self.data } else { &mut self.siblings };
        if let Some(text) = from.shift_remove(key) {
            from.insert("text".to_owned(), text);
            order.reports.add(
                rules::FIELD_RENAMED,
                at,
                format!("the text is called `{key}`"),
                "read as `text`",
            );
        }
        false
    }

    /// Handles an event in which no key or several keys may hold the text; the flag of a key is set if the
    /// key is in `data`. If all hold the same text, it is the text of the event. Otherwise the intended text
    /// is unknown; the texts of a `final_delta` are kept in source order, for a reply that has no other
    /// answer. Returns true if they are kept.
    fn merge_texts(
        &mut self,
        name: &str,
        mut keys: Vec<(bool, &'static str)>,
        at: Place,
        order: &mut EventOrder,
    ) -> bool {
        keys.sort_by_key(|&(is_in_data, key)| self.field_extent(is_in_data, key).place.offset);
        let value = |(is_in_data, key): (bool, &str)| {
            if is_in_data { self.data.get(key) } else { self.siblings.get(key) }
        };
        if !keys.iter().all(|&key| value(key).is_some_and(is_lossless)) {
            return false;
        }
        let mut texts: Vec<String> = Vec::new();
        for &key in &keys {
            texts.extend(value(key).and_then(text_in).filter(|text| !texts.contains(text)));
        }
        if let [text] = &mut texts[..] {
            let text = std::mem::take(text);
            let names: Vec<String> = keys.iter().map(|(_, key)| format!("`{key}`")).collect();
            self.remove(&keys);
            self.data.insert("text".to_owned(), text.into());
            let message = format!("the text is called {}", names.join(" and "));
            order.reports.add(rules::FIELD_RENAMED, at, message, "read as `text`");
            return false;
        }
        let extents =
            keys.iter().map(|&(is_in_data, key)| (key, self.field_extent(is_in_data, key))).collect();
        let is_kept =
            name == "final_delta" && !texts.is_empty() && order.keep_spare(&texts.join("\n\n"), extents);
        if is_kept {
            self.remove(&keys);
        }
        is_kept
    }

    /// Removes the members under these keys, each from `data` if its flag is set, else from the siblings.
    fn remove(&mut self, keys: &[(bool, &'static str)]) {
        for &(is_in_data, key) in keys {
            let from = if is_in_data { &mut self.data } else { &mut self.siblings };
            from.shift_remove(key);
        }
    }

    /// Returns the keys that hold text, each with true if it is in `data`, false if it is a sibling.
    fn find_texts(&self, keys: &[&'static str]) -> Vec<(bool, &'static str)> {
        let is_text = |fields: &Map<String, Value>, key: &str| {
            fields.get(key).is_some_and(|text| text_in(text).is_some() || text.is_string())
        };
        let found = keys.iter().flat_map(|&key| {
            let data_text = is_text(&self.data, key).then_some((true, key));
            data_text.into_iter().chain(is_text(&self.siblings, key).then_some((false, key)))
        });
        found.collect()
    }

    /// Renames a field with an unknown key to `text`, if it can only be the text: it is the only
    /// unknown field of `data`, or, if `data` has none, the only text among the siblings. Returns true if a
    /// field was renamed. The information in the key is lost.
    fn rename_only_text(&mut self, name: &str, order: &mut EventOrder) -> bool {
        let contract_keys = contract_fields(name);
        let is_other = |key: &&String| !contract_keys.contains(&key.as_str()) && !is_envelope_field(key);
        let is_text = |value: &Value| !value.is_number() && text_in(value).is_some();
        let is_in_data = self.data.keys().any(|key| is_other(&key));
        let from = if is_in_data { &self.data } else { &self.siblings };
        let mut other_members =
            from.iter().filter(|(key, value)| is_other(key) && (is_in_data || is_text(value)));
        let (Some((key, value)), None) = (other_members.next(), other_members.next()) else { return false };
        if TEXT_ALIASES.contains(&key.as_str()) || !is_text(value) {
            return false;
        }
        let key = key.clone();
        let extent = if is_in_data { self.data_key_extent(&key) } else { self.sibling_key_extent(&key) };
        let from = if is_in_data { &mut self.data } else { &mut self.siblings };
        if let Some(text) = from.shift_remove(&key) {
            from.insert("text".to_owned(), text);
            let message = format!("the text is called `{}`", clip(&key, 40));
            let repair = "read as `text`, the key not used";
            order.reports.add_at(rules::FIELD_RENAMED, "R-76", extent, message, repair);
        }
        true
    }

    /// Takes the text of an event that should have none, if the text can only belong to a missing delta
    ///
    fn take_misplaced_text(&mut self, name: &str, order: &mut EventOrder) -> Option<String> {
        if !order.accepts_text(name) {
            return None;
        }
        let is_in_data = self.data.get("text").is_some_and(|text| text_in(text).is_some());
        let from = if is_in_data { &self.data } else { &self.siblings };
        let value = from.get("text")?;
        let text = text_in(value)?;
        let repair = if is_lossless(value) {
            "read as the delta that was meant"
        } else {
            "read as the delta that was meant, the rest not used"
        };
        let extent = self.field_extent(is_in_data, "text");
        let from = if is_in_data { &mut self.data } else { &mut self.siblings };
        from.shift_remove("text");
        let message = format!("`{name}` has no field `text`");
        order.reports.add_at(rules::FIELD_EXTRA, "J-051", extent, message, repair);
        Some(text)
    }

    /// Returns the phase fields that hold a value of an unusable type.
    fn unusable_fields(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let contract_keys = contract_fields(name);
        let has_bad_id =
            contract_keys.contains(&"id") && self.data.get("id").is_some_and(|id| !is_acceptable_id(id));
        let has_bad_title = contract_keys.contains(&"title")
            && self.data.get("title").is_some_and(|title| !matches!(title, Value::Null | Value::String(_)));
        has_bad_id.then_some("id").into_iter().chain(has_bad_title.then_some("title"))
    }

    /// Reports fields that the event does not define and fields with unusable values.
    fn report_unexpected(&self, name: &str, order: &mut EventOrder) {
        for field in self.unusable_fields(name) {
            let message = format!("`{field}` has the wrong type");
            self.report_lost(rules::FIELD_TYPE, "J-009", (true, field), &message, order);
        }
        // Events without fields have their own rule.
        let (rule, row) = match name {
            "thinking_start" => (rules::FIELD_UNEXPECTED, "J-006"),
            "thinking_end" => (rules::FIELD_UNEXPECTED, "J-012"),
            "final_end" => (rules::FIELD_UNEXPECTED, "J-014"),
            _ => (rules::FIELD_EXTRA, "J-051"),
        };
        let contract_keys = contract_fields(name);
        let data_keys =
            self.data.keys().filter(|key| !contract_keys.contains(&key.as_str())).map(|key| (true, key));
        let extra = data_keys.chain(self.siblings.keys().map(|key| (false, key)));
        let mut extra = extra.filter(|(_, key)| !is_envelope_field(key));
        for (is_in_data, key) in extra.by_ref().take(MAX_EXTRA_FIELDS) {
            let clipped_key = clip(key, 40);
            let message = format!("`{name}` has the unknown field `{clipped_key}`");
            self.report_lost(rule, row, (is_in_data, key), &message, order);
        }
        let extents = extra.map(|(is_in_data, key)| self.field_extent(is_in_data, key));
        if let Some(extent) = extents.reduce(Extent::join) {
            let message = format!("`{name}` has more unknown fields");
            order.reports.add_at(rule, row, extent, message, "not used");
        }
    }
}
