//! Arguments of a call in a form other than `args`, or under another name (P-031, R-76).

use serde_json::{Map, Value};

use crate::finding::{Doubt, FindingReport};
use crate::limits::Limits;
use crate::repair::json::{DuplicateKey, JsonEvent, JsonReader, JsonSink, ValueBuilder};
use crate::repair::rules as json_rules;
use crate::span::Place;

/// Other names of `args`.
const ARGS_ALIASES: &[&str] = &["arguments", "parameters"];

/// Returns true if the key is another name of `args`.
pub(super) fn is_args_name(key: &str) -> bool {
    ARGS_ALIASES.contains(&key)
}

/// Moves the name and arguments of a call to their proper keys if they are under other names, the proper keys
/// are absent and the other names are not ambiguous. Returns a description of the change.
pub(super) fn rename_args(call: &mut Map<String, Value>) -> Option<String> {
    if call.contains_key("args") {
        return None;
    }
    if !call.contains_key("name") {
        return unwrap_function(call);
    }
    let key = find_only_key(call, ARGS_ALIASES)?;
    let args = call.shift_remove(key)?;
    call.insert("args".to_owned(), args);
    Some(format!("`{key}` is used instead of `args`"))
}

/// Moves the name and arguments out of OpenAI's shape: `{"type": "function", "function": {"name": "...",
/// "arguments": "{...}"}}`. Returns a description of the change.
fn unwrap_function(call: &mut Map<String, Value>) -> Option<String> {
    let function = call
        .get("function")?
        .as_object()
        .filter(|_| ARGS_ALIASES.iter().all(|&key| !call.contains_key(key)))?;
    let name = function.get("name").filter(|name| name.is_string())?.clone();
    let args = function.get(find_only_key(function, &["args", ARGS_ALIASES[0], ARGS_ALIASES[1]])?)?.clone();
    call.shift_remove("function");
    call.insert("name".to_owned(), name);
    call.insert("args".to_owned(), args);
    Some("the name and arguments are nested in `function`".to_owned())
}

/// Returns the only one of these keys that is present, if it holds arguments.
fn find_only_key<'k>(fields: &Map<String, Value>, keys: &[&'k str]) -> Option<&'k str> {
    let mut found = keys.iter().filter(|&&key| fields.contains_key(key));
    let key = found.next()?;
    (found.next().is_none() && fields.get(*key).is_some_and(is_args)).then_some(*key)
}

/// Returns true if the value may be arguments: an object, or a string that begins like one.
fn is_args(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::String(text) => text.trim_start().starts_with('{'),
        _ => false,
    }
}

/// Returns true if the value of a field other than `args` may be the missing arguments; empty ones do not
/// count.
pub(super) fn holds_misplaced_args(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => text.trim_start().starts_with('{') && text.trim() != "{}",
        _ => false,
    }
}

/// Result of reading arguments that are written as a string.
pub(super) enum DecodedArgs {
    /// The arguments, and the duplicate keys in them.
    Object(Value, Vec<DuplicateKey>),
    /// The string has no object, or is not JSON.
    NoObject,
    /// The string has an object with a value that may differ from the intended one: the doubt, and its
    /// description.
    Doubtful(Doubt, String),
    /// The string has an object that is unusable, for this reason.
    Unusable(String),
}

/// Reads arguments written as a string. `budget` holds the number of bytes and the number of values that such
/// strings of the plan may still use (`limits.value`, `limits.items`); it is reduced by the size of this
/// string.
pub(super) fn decode_args(text: &str, limits: &Limits, budget: &mut (usize, usize)) -> DecodedArgs {
    let mut sink = ArgsSink {
        builder: ValueBuilder::with_limits(budget.0, budget.1),
        value: None,
        fault: None,
        has_rounded_number: false,
    };
    let mut reader = JsonReader::new_document(limits);
    reader.push(text, &mut sink);
    reader.finish(&mut sink);
    let (bytes, items) = sink.builder.size();
    *budget = (budget.0 - bytes.min(budget.0), budget.1 - items.min(budget.1));
    if sink.builder.is_over_limit() {
        *budget = (0, 0);
        return DecodedArgs::Unusable("more text or more values than the limits allow".to_owned());
    }
    match (sink.fault, sink.value) {
        (Some(fault), _) if fault.rule.code == json_rules::LIMIT_EXCEEDED.code => {
            DecodedArgs::Unusable(fault.message)
        }
        (Some(FindingReport { doubt: Some(doubt @ Doubt::InexactNumber), message, .. }), _) => {
            DecodedArgs::Doubtful(doubt, message)
        }
        (None, Some((value @ Value::Object(_), duplicates))) => {
            if sink.has_rounded_number {
                return DecodedArgs::Doubtful(
                    Doubt::InexactNumber,
                    "a number with more digits than can be kept".to_owned(),
                );
            }
            DecodedArgs::Object(value, duplicates)
        }
        _ => DecodedArgs::NoObject,
    }
}

/// Sink for the single value of a string and its first fault.
struct ArgsSink {
    builder: ValueBuilder,
    /// The value, once it is complete, and the duplicate keys in it.
    value: Option<(Value, Vec<DuplicateKey>)>,
    fault: Option<FindingReport>,
    /// Set if a number was rounded.
    has_rounded_number: bool,
}

impl JsonSink for ArgsSink {
    fn event(&mut self, event: JsonEvent<'_>) {
        if let (JsonEvent::ValueStart(start), Some(_)) = (&event, &self.value) {
            let (place, message) = (start.place, "a second value");
            self.fault = Some(FindingReport::new(&json_rules::SEVERAL_VALUES, place, place.offset, message));
        }
        if self.fault.is_none()
            && let Some(built_value) = self.builder.push_event(&event)
        {
            self.value = Some((built_value.value, built_value.duplicates));
        }
    }

    fn report(&mut self, report: FindingReport) {
        self.fault.get_or_insert(report);
    }

    fn report_rounding(&mut self, _: Place, _: usize) {
        self.has_rounded_number = true;
    }
}
