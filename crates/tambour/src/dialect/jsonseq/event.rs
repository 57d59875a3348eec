//! Converts an object to an event: resolves its name and its fields, including misnamed and misplaced ones
//! (J-050, R-76).

use serde_json::{Map, Value};

use super::line::Line;
use super::order::{Order, row_of};
use super::phases::lenient_id;
use super::told::Told;
use super::{rules, streamed};
use crate::dialect::Output;
use crate::dialect::said::{is_whole, text_in};
use crate::event::{CONTRACT, EventKind, kind_of};
use crate::finding::{Rule, clip};
use crate::limits::Limits;
use crate::repair::json::{Found, Members, Stand, find_in_string};
use crate::span::Place;

/// A parsed object with the facts recorded while it was read.
pub(super) struct Whole<'a> {
    pub(super) line: &'a Line,
    pub(super) object: Map<String, Value>,
    pub(super) members: &'a Members,
    /// Offset after the object.
    pub(super) end: usize,
    /// Set if the reply ends inside the object.
    pub(super) cut: bool,
}

/// The fields of one event, without its name.
struct Fields<'a> {
    own: Map<String, Value>,
    /// Keys beside the event's name, when the fields are in `data`.
    beside: Map<String, Value>,
    at: Place,
    members: &'a Members,
    /// Set if the object itself is the data (SSE framing).
    framed: bool,
    /// Set if `data` is a string.
    text: bool,
    gathered: Vec<&'static str>,
}

/// Returns the fields the contract defines for an event.
pub(super) fn known(name: &str) -> &'static [&'static str] {
    match name {
        "serp_summary" | "final_delta" => &["text"],
        "phase_start" => &["id", "title"],
        "phase_delta" => &["id", "text"],
        "serp_queries" => &["queries"],
        _ => &[],
    }
}

/// Returns true for fields of the envelope (J-030), which a model need not write.
pub(super) fn of_envelope(key: &str) -> bool {
    matches!(key, "message_id" | "request_id")
}

/// Most unexpected fields of one event that get a finding each.
const EXTRA: usize = 32;

/// Returns true if `id` is a number, can be read as one, or is null or a boolean, which say no more than a
/// number.
pub(super) fn is_id(id: &Value) -> bool {
    matches!(id, Value::Null | Value::Bool(_) | Value::Number(_)) || lenient_id(Some(id)).is_some()
}

/// Usual other names of `text`.
const TEXTS: [&str; 3] = ["content", "delta", "message"];

/// Less usual other names, tried when no usual one is present.
const OTHERS: [&str; 9] =
    ["value", "answer", "response", "reply", "output", "body", "chunk", "token", "string"];

/// Returns the event that a misspelled name, or one with other case or separators, stands for.
fn spelled(name: &str) -> Option<&'static str> {
    let plain = name.to_ascii_lowercase().replace(['-', ' '], "_");
    let same = CONTRACT.iter().copied().find(|known| *known == plain || known.replace('_', "") == plain);
    let near = || CONTRACT.iter().copied().find(|known| strsim::osa_distance(known, &plain) <= SLIPS);
    // Text under one of these names is the answer.
    same.or_else(near).or_else(|| ANSWERS.contains(&plain.as_str()).then_some("final_delta"))
}

/// Other names of the event that carries a piece of the answer.
const ANSWERS: [&str; 10] = [
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
const SLIPS: usize = 1;

/// Returns true if a truncated object could have become an event: it has at most the start of its first key
/// or of the event name.
pub(super) fn may_begin(object: &Map<String, Value>) -> bool {
    object.len() < 2
        && object.iter().all(|(key, value)| match value {
            Value::Null => ["event", "data"].iter().any(|name| name.starts_with(key.as_str())),
            Value::String(name) => key == "event" && CONTRACT.iter().any(|known| known.starts_with(name)),
            _ => false,
        })
}

/// Reads an object as an event. `frame` is the name given by an `event:` line before it.
pub(super) fn read(
    mut whole: Whole<'_>,
    frame: Option<String>,
    limits: &Limits,
    order: &mut Order,
    told: &mut Told,
    out: &mut dyn Output,
) {
    let framed = frame.is_some();
    let Some(name) = frame.or_else(|| name_of(&mut whole, order)) else { return };
    let (mut name, at) = (name.trim(), whole.line.at);
    if kind_of(name).is_none()
        && let Some(known) = spelled(name)
    {
        let message = format!("the event is written `{}`", clip(name, 40));
        order.reports.found(rules::FIELD_RENAMED, at, message, &format!("read as `{known}`"));
        name = known;
    }
    match kind_of(name) {
        Some(EventKind::Contract) => {}
        kind => {
            if kind == Some(EventKind::System) {
                told.begin(out);
            }
            return foreign(name, kind, at, order);
        }
    }
    told.begin(out);
    let streamed = whole.line.target.is_some();
    if whole.cut {
        let repair = if streamed { "the text so far is kept" } else { "left out" };
        order.reports.found(rules::LINE_CUT, at, "the reply ends inside a line", repair);
        if !streamed {
            return;
        }
    }
    if streamed {
        return streamed::rest(name, whole.line, whole.members, false, order);
    }
    let object = std::mem::take(&mut whole.object);
    let (own, beside) = if framed { (object, Map::new()) } else { (Map::new(), object) };
    let (members, text, gathered) = (whole.members, false, Vec::new());
    let mut fields = Fields { own, beside, at, members, framed, text, gathered };
    fields.open_data(name, limits, order);
    if fields.rename(name, at, order) {
        return fields.unexpected(name, order);
    }
    fields.gather(name, at, order);
    let meant = fields.meant(name, order);
    fields.unexpected(name, order);
    let before = meant.as_deref().filter(|_| name != "phase_start");
    before.into_iter().for_each(|text| order.meant(name, text, at, out));
    apply(name, &fields.own, at, whole.end, order, out);
    let behind = meant.as_deref().filter(|_| name == "phase_start");
    behind.into_iter().for_each(|text| order.meant(name, text, at, out));
}

/// Handles an event that has a name and no data.
pub(super) fn without_data(
    name: &str,
    at: Place,
    end: usize,
    order: &mut Order,
    told: &mut Told,
    out: &mut dyn Output,
) {
    match kind_of(name) {
        Some(EventKind::Contract) => {
            told.begin(out);
            apply(name, &Map::new(), at, end, order, out);
        }
        kind => foreign(name, kind, at, order),
    }
}

/// Reports an event outside the contract.
fn foreign(name: &str, kind: Option<EventKind>, at: Place, order: &mut Order) {
    if kind == Some(EventKind::System) {
        let message = format!("a model writes no `{name}`");
        order.reports.found(rules::EVENT_SPOOFED, at, message, "left out");
    } else {
        let short = clip(name, 40);
        let message = format!("`{short}` is not an event of the contract");
        order.reports.found(rules::EVENT_UNKNOWN, at, message, "left out");
    }
}

/// Emits an event whose text has not been streamed.
fn apply(
    name: &str,
    fields: &Map<String, Value>,
    at: Place,
    end: usize,
    order: &mut Order,
    out: &mut dyn Output,
) {
    if !matches!(name, "phase_delta" | "final_delta") {
        return order.event(name, fields, at, end, out);
    }
    match fields.get("text") {
        Some(Value::String(text)) => {
            let target = match name {
                "final_delta" => order.final_delta(at, out),
                _ => order.phase_delta(fields.get("id"), at, out),
            };
            if text.is_empty() {
                order.delta_empty(name, at, "the text of a delta is empty");
            }
            order.delta(target, text, at, out);
        }
        Some(value) => {
            let (row, message) = (row_of(name), "`text` is not a string");
            let Some(text) = text_in(value) else {
                return order.reports.found_on(rules::FIELD_TYPE, row, at, message, "event left out");
            };
            let repair = read_as(value);
            order.reports.found_on(rules::FIELD_TYPE, row, at, message, repair);
            let target = match name {
                "final_delta" => order.final_delta(at, out),
                _ => order.phase_delta(fields.get("id"), at, out),
            };
            order.delta(target, &text, at, out);
        }
        None => order.delta_empty(name, at, "the delta has no `text`"),
    }
}

/// Returns the repair text for a value that is not a string but contains one.
pub(super) fn read_as(value: &Value) -> &'static str {
    if is_whole(value) { "its text is taken" } else { "its text is taken, the rest not used" }
}

/// Takes the event's name out of the object.
fn name_of(whole: &mut Whole<'_>, order: &mut Order) -> Option<String> {
    let Line { at, named, .. } = *whole.line;
    match whole.object.shift_remove("event") {
        Some(Value::String(name)) => return Some(name),
        // Text was already emitted under the name that preceded it.
        None if whole.line.target.is_some() && named => return Some(whole.line.name.clone()),
        None if whole.line.target.is_none() => {}
        _ => {
            order.reports.found_on(rules::FIELD_TYPE, "J-051", at, "`event` is not a string", "left out");
            return None;
        }
    }
    // Other objects have these keys too, so the value must be the name of an event; `type` may hold a variant
    // spelling.
    let of_event = |name: &str| matches!(kind_of(name.trim()), Some(EventKind::Contract | EventKind::System));
    let meant = |name: &str| of_event(name) || spelled(name.trim()).is_some();
    if whole.object.get("type").and_then(Value::as_str).is_some_and(meant)
        && let Some(Value::String(name)) = whole.object.shift_remove("type")
    {
        order.reports.found(rules::FIELD_RENAMED, at, "the event is named by `type`", "read as `event`");
        return Some(name);
    }
    let named = whole.object.get("name").and_then(Value::as_str).is_some_and(of_event);
    if named && let Some(Value::String(name)) = whole.object.shift_remove("name") {
        order.reports.found(rules::FIELD_RENAMED, at, "the event is named by `name`", "read as `event`");
        return Some(name);
    }
    let key = whole.object.keys().next().filter(|key| kind_of(key) == Some(EventKind::Contract)).cloned();
    if whole.object.len() == 1
        && let Some(name) = key
    {
        let data = whole.object.shift_remove(&name).unwrap_or_default();
        whole.object.insert("data".to_owned(), data);
        order.reports.found(
            rules::FIELD_RENAMED,
            at,
            "the event is named by a key",
            "read as `event`, its value as `data`",
        );
        return Some(name);
    }
    order.reports.found(rules::EVENT_MISSING, at, "the object names no event", "left out");
    None
}

impl Fields<'_> {
    /// Returns the place and end of a field, in `data` if `own`, else beside the name.
    fn stand(&self, own: bool, key: &str) -> Stand {
        let unknown = (self.at, self.at.offset);
        if own && self.text && !self.gathered.contains(&key) {
            return unknown;
        }
        let inner = || self.members.get(&["data", key]).filter(|_| own && !self.framed);
        inner().or_else(|| self.members.get(&[key])).unwrap_or(unknown)
    }

    /// Returns the extent of the key of a field in `data`, or that of the field when the key's place is
    /// unknown.
    fn key(&self, key: &str) -> Stand {
        let path: &[&str] = if self.framed { &[key] } else { &["data", key] };
        let member = self.members.find(path).filter(|_| !self.text);
        member.map_or_else(|| self.stand(true, key), |member| (member.stand.0, member.key_end))
    }

    /// Returns the extent of the key of a field beside the name.
    fn beside_key(&self, key: &str) -> Stand {
        let member = self.members.find(&[key]);
        member.map_or_else(|| self.stand(false, key), |member| (member.stand.0, member.key_end))
    }

    /// Reports a field whose value is lost. The place of a field inside a `data` string is unknown.
    fn lost(
        &self,
        rule: &'static Rule,
        row: &'static str,
        (own, key): (bool, &str),
        message: &str,
        order: &mut Order,
    ) {
        let (at, end) = self.stand(own, key);
        let repair = if end > at.offset { "left out" } else { "not used" };
        order.reports.found_in(rule, row, (at, end), message, repair);
    }

    /// Takes the fields out of `data`.
    fn open_data(&mut self, name: &str, limits: &Limits, order: &mut Order) {
        self.own = match self.beside.shift_remove("data") {
            Some(Value::Object(data)) => data,
            Some(Value::Null) | None => return,
            Some(data) => {
                let whole = data.as_str().map_or(0, |text| text.trim().len());
                // A string that contains an object stays a string if the object has no field of the event.
                let is_event =
                    |data: &Map<String, Value>| known(name).iter().any(|key| data.contains_key(*key));
                let has_text = known(name).contains(&"text");
                let text = Some(&data).filter(|_| has_text).filter(|data| text_in(data).is_some());
                let (data, repair) = match (find_in_string(&data, limits), text) {
                    (Some(Found { value: Some(Value::Object(data)), reports, span, .. }), text)
                        if text.is_none() || is_event(&data) || span.end - span.start == whole =>
                    {
                        let all = reports.is_empty() && span.end - span.start == whole;
                        (
                            data,
                            if all {
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
                let stand = self.stand(false, "data");
                order.reports.found_in(rules::FIELD_TYPE, "J-051", stand, "`data` is not an object", repair);
                self.text = true;
                data
            }
        };
    }

    /// Takes fields of the event that are beside its name, where `data` lacks them.
    fn gather(&mut self, name: &str, at: Place, order: &mut Order) {
        let mut flat = false;
        for field in known(name) {
            if !self.own.contains_key(*field)
                && let Some(value) = self.beside.shift_remove(*field)
            {
                flat = true;
                self.gathered.push(field);
                self.own.insert((*field).to_owned(), value);
            }
        }
        if flat {
            let message = "the fields stand beside `event`, not in `data`";
            order.reports.found(rules::DATA_FLAT, at, message, "read all the same");
        }
    }

    /// Renames a field to `text` if the event has no `text` and only one field can be meant. Returns true if
    /// the event's texts are kept as candidates for the answer until the end of the reply.
    fn rename(&mut self, name: &str, at: Place, order: &mut Order) -> bool {
        let has_text = |fields: &Map<String, Value>| fields.get("text").is_some_and(|text| !text.is_null());
        if has_text(&self.own) || has_text(&self.beside) || !known(name).contains(&"text") {
            return false;
        }
        let mut texts = self.texts(&TEXTS);
        if texts.is_empty() {
            if self.rename_only(name, order) {
                return false;
            }
            texts = self.texts(&OTHERS);
        }
        let [(own, key)] = texts[..] else { return self.several(name, texts, at, order) };
        let from = if own { &mut self.own } else { &mut self.beside };
        if let Some(text) = from.shift_remove(key) {
            from.insert("text".to_owned(), text);
            order.reports.found(
                rules::FIELD_RENAMED,
                at,
                format!("the text is called `{key}`"),
                "read as `text`",
            );
        }
        false
    }

    /// Handles several candidate texts: equal ones are the text. Of different ones the intended one is
    /// unknown, so those of an answer are kept in source order, for a reply that has no other answer.
    /// Returns true if they are kept.
    fn several(
        &mut self,
        name: &str,
        mut keys: Vec<(bool, &'static str)>,
        at: Place,
        order: &mut Order,
    ) -> bool {
        keys.sort_by_key(|&(own, key)| self.stand(own, key).0.offset);
        let value = |(own, key): (bool, &str)| if own { self.own.get(key) } else { self.beside.get(key) };
        if !keys.iter().all(|&key| value(key).is_some_and(is_whole)) {
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
            self.own.insert("text".to_owned(), text.into());
            let message = format!("the text is called {}", names.join(" and "));
            order.reports.found(rules::FIELD_RENAMED, at, message, "read as `text`");
            return false;
        }
        let stands = keys.iter().map(|&(own, key)| (key, self.stand(own, key))).collect();
        let kept = name == "final_delta" && !texts.is_empty() && order.spare(&texts.join("\n\n"), stands);
        if kept {
            self.remove(&keys);
        }
        kept
    }

    fn remove(&mut self, keys: &[(bool, &'static str)]) {
        for &(own, key) in keys {
            let from = if own { &mut self.own } else { &mut self.beside };
            from.shift_remove(key);
        }
    }

    /// Returns the given keys that hold text, each with true if it is in `data`, false if beside the name.
    fn texts(&self, keys: &[&'static str]) -> Vec<(bool, &'static str)> {
        let is_text = |fields: &Map<String, Value>, key: &str| {
            fields.get(key).is_some_and(|text| text_in(text).is_some() || text.is_string())
        };
        let found = keys.iter().flat_map(|&key| {
            let own = is_text(&self.own, key).then_some((true, key));
            own.into_iter().chain(is_text(&self.beside, key).then_some((false, key)))
        });
        found.collect()
    }

    /// Reads the only text of `data` as the text whatever its key, or the only one beside the name
    /// when `data` has no other field. Returns true if it did. The information in the key is lost.
    fn rename_only(&mut self, name: &str, order: &mut Order) -> bool {
        let known = known(name);
        let other = |key: &&String| !known.contains(&key.as_str()) && !of_envelope(key);
        let is_text = |value: &Value| !value.is_number() && text_in(value).is_some();
        let own = self.own.keys().any(|key| other(&key));
        let from = if own { &self.own } else { &self.beside };
        let mut others = from.iter().filter(|(key, value)| other(key) && (own || is_text(value)));
        let (Some((key, value)), None) = (others.next(), others.next()) else { return false };
        if TEXTS.contains(&key.as_str()) || !is_text(value) {
            return false;
        }
        let key = key.clone();
        let stand = if own { self.key(&key) } else { self.beside_key(&key) };
        let from = if own { &mut self.own } else { &mut self.beside };
        if let Some(text) = from.shift_remove(&key) {
            from.insert("text".to_owned(), text);
            let message = format!("the text is called `{}`", clip(&key, 40));
            let repair = "read as `text`, the key not used";
            order.reports.found_in(rules::FIELD_RENAMED, "R-76", stand, message, repair);
        }
        true
    }

    /// Takes the text of an event that should have none, if it replaces a missing delta that is the only one
    /// of its kind.
    fn meant(&mut self, name: &str, order: &mut Order) -> Option<String> {
        if !order.takes(name) {
            return None;
        }
        let own = self.own.get("text").is_some_and(|text| text_in(text).is_some());
        let from = if own { &self.own } else { &self.beside };
        let value = from.get("text")?;
        let text = text_in(value)?;
        let repair = if is_whole(value) {
            "read as the delta that was meant"
        } else {
            "read as the delta that was meant, the rest not used"
        };
        let stand = self.stand(own, "text");
        let from = if own { &mut self.own } else { &mut self.beside };
        from.shift_remove("text");
        let message = format!("`{name}` has no field `text`");
        order.reports.found_in(rules::FIELD_EXTRA, "J-051", stand, message, repair);
        Some(text)
    }

    /// Returns the phase fields whose value is informative but unusable.
    fn unusable(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let known = known(name);
        let id = known.contains(&"id") && self.own.get("id").is_some_and(|id| !is_id(id));
        let title = known.contains(&"title")
            && self.own.get("title").is_some_and(|title| !matches!(title, Value::Null | Value::String(_)));
        id.then_some("id").into_iter().chain(title.then_some("title"))
    }

    /// Reports fields that the event does not define and fields with unusable values.
    fn unexpected(&self, name: &str, order: &mut Order) {
        for field in self.unusable(name) {
            let message = format!("`{field}` is not of its type");
            self.lost(rules::FIELD_TYPE, "J-009", (true, field), &message, order);
        }
        // Events without fields have their own rule.
        let (rule, row) = match name {
            "thinking_start" => (rules::FIELD_UNEXPECTED, "J-006"),
            "thinking_end" => (rules::FIELD_UNEXPECTED, "J-012"),
            "final_end" => (rules::FIELD_UNEXPECTED, "J-014"),
            _ => (rules::FIELD_EXTRA, "J-051"),
        };
        let known = known(name);
        let own = self.own.keys().filter(|key| !known.contains(&key.as_str())).map(|key| (true, key));
        let extra = own.chain(self.beside.keys().map(|key| (false, key)));
        let mut extra = extra.filter(|(_, key)| !of_envelope(key));
        for (own, key) in extra.by_ref().take(EXTRA) {
            let short = clip(key, 40);
            let message = format!("`{name}` has no field `{short}`");
            self.lost(rule, row, (own, key), &message, order);
        }
        let stands = extra.map(|(own, key)| self.stand(own, key));
        if let Some((at, end)) = stands.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
            let message = format!("`{name}` has still more fields that it should not have");
            order.reports.found_in(rule, row, (at, end), message, "not used");
        }
    }
}
