//! An object to an event: its name and its fields, under other names and in other places too (J-050, R-76).

use serde_json::{Map, Value};

use super::order::{Order, row_of};
use super::parse::Line;
use super::rules;
use super::told::Told;
use crate::dialect::Output;
use crate::event::{EventKind, kind_of};
use crate::limits::Limits;
use crate::repair::json::find_in_string;
use crate::span::Place;

/// An object that has been read, and what was seen of it on the way.
pub(super) struct Whole<'a> {
    pub(super) line: &'a Line,
    pub(super) object: Map<String, Value>,
    /// Offset after it.
    pub(super) end: usize,
    /// Whether the reply ends inside of it.
    pub(super) cut: bool,
}

/// What an event has besides its name.
struct Fields {
    own: Map<String, Value>,
    /// Other keys beside the name, where the fields stand in `data`.
    beside: Map<String, Value>,
}

/// The fields of an event of the contract.
fn known(name: &str) -> &'static [&'static str] {
    match name {
        "serp_summary" | "final_delta" => &["text"],
        "phase_start" => &["id", "title"],
        "phase_delta" => &["id", "text"],
        "serp_queries" => &["queries"],
        _ => &[],
    }
}

/// Fields of the envelope (J-030), which a model need not write.
fn of_envelope(key: &str) -> bool {
    matches!(key, "message_id" | "request_id")
}

/// Other names of `text`.
const TEXTS: [&str; 2] = ["content", "delta"];

/// Reads an object; `frame` is the name that a line before it gave.
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
    let (name, at) = (name.trim(), whole.line.at);
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
        order.found(rules::LINE_CUT, at, "the reply ends inside a line", repair);
        if !streamed {
            return;
        }
    }
    let object = std::mem::take(&mut whole.object);
    let mut fields = if framed {
        Fields { own: object, beside: Map::new() }
    } else {
        Fields::of(object, at, limits, order)
    };
    if !streamed {
        fields.rename(name, at, order);
    }
    fields.gather(name, at, order);
    if whole.line.second {
        // It has a finding of its own below.
        fields.beside.shift_remove("text");
    }
    fields.unexpected(name, at, order);
    if streamed {
        if whole.line.second {
            let message = "the delta has a `text` in `data` and one beside it";
            order.found_on(rules::FIELD_EXTRA, "J-051", at, message, "kept the first, which was sent");
        }
        if !whole.line.filled {
            order.delta_empty(name, at, "the text of a delta is empty");
        }
        return;
    }
    apply(name, &fields.own, at, whole.end, order, out);
}

/// An event of which only the name came.
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

/// An event that is none of the contract.
fn foreign(name: &str, kind: Option<EventKind>, at: Place, order: &mut Order) {
    if kind == Some(EventKind::System) {
        let message = format!("a model writes no `{name}`");
        order.found(rules::EVENT_SPOOFED, at, message, "left out");
    } else {
        let short: String = name.chars().take(40).collect();
        let message = format!("`{short}` is not an event of the contract");
        order.found(rules::EVENT_UNKNOWN, at, message, "left out");
    }
}

/// An event whose text has not been handed on.
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
        Some(_) => {
            let (row, message) = (row_of(name), "`text` is not a string");
            order.found_on(rules::FIELD_TYPE, row, at, message, "event left out");
        }
        None => order.delta_empty(name, at, "the delta has no `text`"),
    }
}

/// The name that the object gives.
fn name_of(whole: &mut Whole<'_>, order: &mut Order) -> Option<String> {
    let at = whole.line.at;
    match whole.object.shift_remove("event") {
        // Text went out under the name that stood before it.
        Some(Value::String(_)) if whole.line.target.is_some() => return Some(whole.line.name.clone()),
        Some(Value::String(name)) => return Some(name),
        Some(_) => {
            order.found_on(rules::FIELD_TYPE, "J-051", at, "`event` is not a string", "left out");
            return None;
        }
        None => {}
    }
    let of_contract = |name: &str| kind_of(name.trim()) == Some(EventKind::Contract);
    if whole.object.get("type").and_then(Value::as_str).is_some_and(of_contract)
        && let Some(Value::String(name)) = whole.object.shift_remove("type")
    {
        order.found(rules::FIELD_RENAMED, at, "the event is named by `type`", "read as `event`");
        return Some(name);
    }
    order.found(rules::EVENT_MISSING, at, "the object names no event", "left out");
    None
}

impl Fields {
    /// The fields in `data`, or beside the name of the event.
    fn of(mut object: Map<String, Value>, at: Place, limits: &Limits, order: &mut Order) -> Fields {
        let nested = match object.shift_remove("data") {
            Some(Value::Object(data)) => Some(data),
            Some(Value::Null) | None => None,
            Some(data) => {
                let found = find_in_string(&data, limits).and_then(|found| found.value);
                let (data, repair) = match found {
                    Some(Value::Object(data)) => (Some(data), "read as the object"),
                    _ => (None, "left out"),
                };
                order.found_on(rules::FIELD_TYPE, "J-051", at, "`data` is not an object", repair);
                data
            }
        };
        Fields { own: nested.unwrap_or_default(), beside: object }
    }

    /// Takes fields of the event that stand beside its name, where `data` lacks them.
    fn gather(&mut self, name: &str, at: Place, order: &mut Order) {
        let mut flat = false;
        for field in known(name) {
            if !self.own.contains_key(*field)
                && let Some(value) = self.beside.shift_remove(*field)
            {
                flat = true;
                self.own.insert((*field).to_owned(), value);
            }
        }
        if flat {
            let message = "the fields stand beside `event`, not in `data`";
            order.found(rules::DATA_FLAT, at, message, "read all the same");
        }
    }

    /// Gives `text` its name where it has another one and that is the only reading.
    fn rename(&mut self, name: &str, at: Place, order: &mut Order) {
        let has_text = |fields: &Map<String, Value>| fields.get("text").is_some_and(|text| !text.is_null());
        if has_text(&self.own) || has_text(&self.beside) || !known(name).contains(&"text") {
            return;
        }
        let is_text = |fields: &Map<String, Value>, key: &str| fields.get(key).is_some_and(Value::is_string);
        let mut texts: Vec<(bool, &str)> = Vec::new();
        for key in TEXTS {
            texts.extend(is_text(&self.own, key).then_some((true, key)));
            texts.extend(is_text(&self.beside, key).then_some((false, key)));
        }
        let [(own, key)] = texts[..] else { return };
        let from = if own { &mut self.own } else { &mut self.beside };
        if let Some(text) = from.shift_remove(key) {
            from.insert("text".to_owned(), text);
            order.found(rules::FIELD_RENAMED, at, format!("the text is called `{key}`"), "read as `text`");
        }
    }

    /// Reports what belongs to no event of that name.
    fn unexpected(&self, name: &str, at: Place, order: &mut Order) {
        let known = known(name);
        let own = self.own.keys().filter(|key| !known.contains(&key.as_str()));
        let mut extra = own.chain(self.beside.keys()).filter(|key| !of_envelope(key));
        let Some(first) = extra.next() else { return };
        let first: String = first.chars().take(40).collect();
        let more = match extra.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        // Events without fields have a rule of their own.
        let (rule, row) = match name {
            "thinking_start" => (rules::FIELD_UNEXPECTED, "J-006"),
            "thinking_end" => (rules::FIELD_UNEXPECTED, "J-012"),
            "final_end" => (rules::FIELD_UNEXPECTED, "J-014"),
            _ => (rules::FIELD_EXTRA, "J-051"),
        };
        order.found_on(rule, row, at, format!("`{name}` has no field `{first}`{more}"), "left out");
    }
}
