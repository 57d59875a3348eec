//! Functions that migrated macros call (F-027): variables of SillyTavern, on top of the temporary scope and
//! the read-only state. The function `st_NAME` of templates is `call_NAME` here; `functions` has the table.
//!
//! Tavern-Helper, an extension of SillyTavern, has variables in scopes such as `chat` and `global`. A scope
//! is a key of the state here.

use minijinja::Error;
use minijinja::value::{Serde, Value};
use serde_json::Value as Json;

use super::budget::{self, charge, charge_bytes};
use super::functions::FunctionCall;
use super::marks;
use super::values::is_missing;
use crate::print;
use tambour::state::{StatePath, StateStep};
use tambour::yaml;

/// Result of a function: the value that a template prints or tests.
pub(super) type MacroResult = Result<Value, Error>;

/// Returns the value of a macro that prints nothing.
pub(super) fn empty_value() -> Value {
    Value::from("")
}

/// Returns a variable from the temporary scope, else from the state, where the name may also be a path.
/// `None` if it is missing or null.
pub(super) fn read_variable(call: &FunctionCall<'_, '_, '_>, name: &str) -> Result<Option<Json>, Error> {
    let local = match call.scope.local_variable(name) {
        Some(value) => Some(budget::to_json_charged(call.state, &value)?),
        None => None,
    };
    let found = match local {
        Some(local) => Some(local),
        None if call.scope.is_hidden(name) => None,
        None => find_by_path(call, &call.scope.context.state, name)?,
    };
    Ok(found.filter(|value| !value.is_null()))
}

/// Returns a global variable; `None` if it is missing or null.
pub(super) fn read_global(call: &FunctionCall<'_, '_, '_>, name: &str) -> Result<Option<Json>, Error> {
    let size = call.scope.with_global(name, budget::weigh_json);
    if let Some(size) = size {
        budget::charge_copy(call.state, size)?;
    }
    Ok(call.scope.with_global(name, Json::clone).filter(|value| !value.is_null()))
}

/// Looks up a literal key, then the place that a path leads to.
fn find_by_path(call: &FunctionCall<'_, '_, '_>, value: &Json, path: &str) -> Result<Option<Json>, Error> {
    charge(call.state, 1, path.len() as u64)?;
    let found = value.get(path).or_else(|| follow_path(value, path));
    if let Some(found) = found {
        budget::charge_json(call.state, found)?;
    }
    Ok(found.cloned())
}

/// Returns the value to which a path leads.
fn follow_path<'v>(value: &'v Json, path: &str) -> Option<&'v Json> {
    let path = path.parse::<StatePath>().ok()?;
    path.steps().iter().try_fold(value, |value, step| match step {
        StateStep::Key(key) => match value {
            Json::Array(items) => items.get(key.parse::<usize>().ok()?),
            value => value.get(key),
        },
        StateStep::Index(index) => {
            let items = value.as_array()?;
            let size = usize::try_from(index.unsigned_abs()).ok()?;
            items.get(if *index < 0 { items.len().checked_sub(size)? } else { size })
        }
        StateStep::Token(token) => value.get(token),
        _ => None,
    })
}

/// Converts a value to the text that SillyTavern prints: text that looks like a number is printed as that
/// number.
pub(super) fn normalize(value: &Json) -> Value {
    match value {
        Json::String(text) => match parse_js_number(text) {
            Some(number) if !text.trim().is_empty() => Value::from(print::format_float(number)),
            _ => Value::from(text.as_str()),
        },
        value => Value::from(print::print(value).into_owned()),
    }
}

/// Converts a text like JavaScript's `Number`; returns `None` unless the result is finite.
pub(super) fn parse_js_number(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0.0);
    }
    let radix = match text.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    if radix != 10 {
        return u64::from_str_radix(&text[2..], radix)
            .ok()
            // Rust would also accept a sign.
            .filter(|_| !text[2..].starts_with('+'))
            .map(|integer| integer as f64);
    }
    // Rust would also parse `inf` and `nan`, which JavaScript does not know.
    let is_decimal =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())
}

/// Converts a value like JavaScript's `Number`; lists and objects are not numbers.
fn number_from_json(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => parse_js_number(text),
        Json::Bool(value) => Some(f64::from(u8::from(*value))),
        Json::Null => Some(0.0),
        _ => None,
    }
}

/// Charges for the copies that [`add_values`] makes, then adds.
fn charged_sum(call: &FunctionCall<'_, '_, '_>, current: Option<&Json>, addend: &str) -> Result<Json, Error> {
    // A list is copied. A text may be parsed as a list, which has at most one value for every two bytes, and
    // printed again.
    if let Some(current) = current {
        let (values, bytes) = budget::weigh_json(current);
        budget::charge_copy(
            call.state,
            (values + bytes / 2, (bytes + addend.len() as u64).saturating_mul(4)),
        )?;
    }
    Ok(add_values(current, addend))
}

/// Adds as SillyTavern does: numbers are summed, a list (or the JSON text of a list) gets a new item, the
/// addend is appended to other text, and a missing value counts as 0.
fn add_values(current: Option<&Json>, addend: &str) -> Json {
    let list = match current {
        Some(Json::Array(items)) => Some((items.clone(), false)),
        Some(Json::String(text)) if text.trim_start().starts_with('[') => {
            serde_json::from_str::<Vec<Json>>(text).ok().map(|items| (items, true))
        }
        _ => None,
    };
    if let Some((mut items, is_text)) = list {
        items.push(addend.into());
        let items = Json::Array(items);
        return if is_text { Json::String(items.to_string()) } else { items };
    }
    let numbers = current.map_or(Some(0.0), number_from_json).zip(parse_js_number(addend));
    if let Some((current, addend)) = numbers {
        let sum = current + addend;
        // Below 2^53 every integer is exact.
        let is_exact = sum.fract() == 0.0 && sum.abs() < 9_007_199_254_740_992.0;
        return if is_exact {
            (sum as i64).into()
        } else {
            serde_json::Number::from_f64(sum).map_or(Json::Null, Json::Number)
        };
    }
    let current = current.map(|current| print::print(current).into_owned()).unwrap_or_default();
    Json::String(current + addend)
}

/// Returns the addend, which is the second argument, negated if there is a third one. `None`, with a warning,
/// if it should be negated and is not a number.
fn read_addend(call: &FunctionCall<'_, '_, '_>) -> Result<Option<String>, Error> {
    let addend = call.text_argument(1)?;
    Ok(match parse_js_number(&addend) {
        _ if call.args.len() < 3 => Some(addend),
        Some(number) => Some(print::format_float(-number)),
        None => {
            call.warn(
                "not_a_number",
                format!("`-=` takes a number, not `{}`", tambour::finding::clip(&addend, 40)),
            );
            None
        }
    })
}

/// Sets a variable of the temporary scope.
pub(super) fn store_variable(call: &FunctionCall<'_, '_, '_>, name: &str, value: Json) {
    call.scope.set_local(name, Value::from(Serde(value)));
}

pub(super) fn call_get(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    Ok(read_variable(call, &name)?.map_or_else(empty_value, |value| normalize(&value)))
}

pub(super) fn call_set(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, value) = (call.text_argument(0)?, call.text_argument(1)?);
    store_variable(call, &name, value.into());
    Ok(empty_value())
}

pub(super) fn call_add(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, addend) = (call.text_argument(0)?, read_addend(call)?);
    if let Some(addend) = addend {
        let value = charged_sum(call, read_variable(call, &name)?.as_ref(), &addend)?;
        store_variable(call, &name, value);
    }
    Ok(empty_value())
}

pub(super) fn call_inc(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    step_variable(call, "1")
}

pub(super) fn call_dec(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    step_variable(call, "-1")
}

/// Adds to a variable and returns its new value.
fn step_variable(call: &mut FunctionCall<'_, '_, '_>, addend: &str) -> MacroResult {
    let name = call.text_argument(0)?;
    let value = charged_sum(call, read_variable(call, &name)?.as_ref(), addend)?;
    let text = normalize(&value);
    store_variable(call, &name, value);
    Ok(text)
}

pub(super) fn call_has(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    Ok(Value::from(read_variable(call, &name)?.is_some()))
}

pub(super) fn call_delete(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    call.scope.delete_local(&name);
    if call.scope.has_state_key(&name) {
        let name = tambour::finding::clip(&name, 60);
        call.warn(
            "state_read_only",
            format!("`{name}` is removed for this prompt only: templates do not change the state"),
        );
    }
    Ok(empty_value())
}

pub(super) fn call_get_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    Ok(read_global(call, &name)?.map_or_else(empty_value, |value| normalize(&value)))
}

pub(super) fn call_set_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, value) = (call.text_argument(0)?, call.text_argument(1)?);
    call.scope.set_global(&name, Some(value.into()))?;
    Ok(empty_value())
}

pub(super) fn call_add_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, addend) = (call.text_argument(0)?, read_addend(call)?);
    if let Some(addend) = addend {
        let value = charged_sum(call, read_global(call, &name)?.as_ref(), &addend)?;
        call.scope.set_global(&name, Some(value))?;
    }
    Ok(empty_value())
}

pub(super) fn call_inc_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    step_global(call, "1")
}

pub(super) fn call_dec_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    step_global(call, "-1")
}

/// Adds to a global variable and returns its new value.
fn step_global(call: &mut FunctionCall<'_, '_, '_>, addend: &str) -> MacroResult {
    let name = call.text_argument(0)?;
    let value = charged_sum(call, read_global(call, &name)?.as_ref(), addend)?;
    let text = normalize(&value);
    call.scope.set_global(&name, Some(value))?;
    Ok(text)
}

pub(super) fn call_has_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    Ok(Value::from(call.scope.with_global(&name, |value| !value.is_null()).unwrap_or(false)))
}

pub(super) fn call_delete_global(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    call.scope.set_global(&name, None)?;
    Ok(empty_value())
}

/// Resolves a bare name such as `{{name}}` in the temporary scope, the state and the context. If none has it,
/// returns the macro as written, with a warning (F-031).
pub(super) fn call_bare(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let name = call.text_argument(0)?;
    if let Some(value) = read_variable(call, &name)? {
        return Ok(normalize(&value));
    }
    if call.scope.context.get(&name).is_some() {
        return Ok(call.scope.read_value(&name).unwrap_or_default());
    }
    let text = if call.args.len() > 1 { call.text_argument(1)? } else { format!("{{{{{name}}}}}") };
    call.warn(
        "macro_unknown",
        format!("`{}` is neither a macro nor a variable", tambour::finding::clip(&text, 60)),
    );
    Ok(Value::from(text))
}

/// Returns whether a text counts as true: anything but an empty text, `false`, `off` and `0` (M-006).
pub(super) fn call_condition(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    Ok(Value::from(is_truthy(&call.text_argument(0)?)))
}

/// Like [`call_condition`], for a bare word: tests the variable of this name, else the word itself (M-015).
pub(super) fn call_test(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let word = call.text_argument(0)?;
    let value = call.scope.local_variable(&word);
    let value = value.or_else(|| call.scope.read_state(&word).filter(|_| !call.scope.is_hidden(&word)));
    Ok(Value::from(match value {
        Some(value) => is_truthy(&budget::print_charged(call.state, &value)?),
        None => is_truthy(&word),
    }))
}

/// Returns true for a text that counts as true (M-006). Marks in it do not count.
fn is_truthy(text: &str) -> bool {
    if marks::has_mark(text) {
        return is_truthy(&marks::remove_marks(text));
    }
    let word = text.trim();
    // A blank text is true, as in SillyTavern.
    !text.is_empty() && !["false", "off", "0"].iter().any(|candidate| word.eq_ignore_ascii_case(candidate))
}

/// Evaluates a comparison of the short forms (`{{.name > 3}}`): `==` and `!=` compare texts, the other
/// operators numbers.
pub(super) fn call_compare(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (left, operator, right) = (call.text_argument(0)?, call.text_argument(1)?, call.text_argument(2)?);
    let is_true = match &*operator {
        "==" => left == right,
        "!=" => left != right,
        operator => match (parse_js_number(&left), parse_js_number(&right)) {
            (Some(left), Some(right)) => match operator {
                ">" => left > right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left <= right,
            },
            _ => {
                call.warn("not_a_number", format!("`{operator}` compares numbers"));
                false
            }
        },
    };
    Ok(Value::from(is_true))
}

/// Prints a variable of a scope of Tavern-Helper: text as it is, other values as compact JSON, `null` if it
/// is missing (M-086).
pub(super) fn call_scoped(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    Ok(match read_scoped(call)? {
        Json::String(text) => Value::from(text),
        value => {
            let printed_bytes = budget::printed_bytes(budget::weigh_json(&value));
            charge_bytes(call.state, printed_bytes.saturating_mul(2))?;
            let mut out = String::new();
            print::write_json(&value, &mut out);
            Value::from(out)
        }
    })
}

/// Like [`call_scoped`], but as YAML; further lines are indented to the column of the first (M-091).
pub(super) fn call_scoped_yaml(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let value = read_scoped(call)?;
    let text = match value {
        Json::String(text) => text,
        value => {
            let (values, bytes) = budget::weigh_json(&value);
            // Each value may be on its own line, indented by its level.
            let blank_bytes = values.saturating_mul(2 * json_depth(&value) as u64);
            let printed_bytes = budget::printed_bytes((values, bytes)).saturating_add(blank_bytes);
            charge_bytes(call.state, printed_bytes.saturating_mul(2))?;
            yaml::print(&normalize_floats(value)).trim_end_matches('\n').to_owned()
        }
    };
    if !text.contains('\n') {
        return Ok(Value::from(text));
    }
    // A line break becomes a mark of three bytes, in a buffer that grows by doubling.
    charge_bytes(call.state, (text.len() as u64).saturating_mul(6))?;
    let lines = text.replace('\n', &marks::LINE.to_string());
    Ok(Value::from(format!("{}{lines}", marks::COLUMN)))
}

/// Returns the nesting depth of a value.
fn json_depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(json_depth).max().unwrap_or(0),
        Json::Object(fields) => 1 + fields.values().map(json_depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// Converts floats without a fraction to integers, so that they print without a decimal point.
fn normalize_floats(value: Json) -> Json {
    match value {
        Json::Number(number) if number.is_f64() => {
            let integer = print::format_number(&number).parse::<i64>();
            integer.map_or(Json::Number(number), Json::from)
        }
        Json::Array(items) => Json::Array(items.into_iter().map(normalize_floats).collect()),
        Json::Object(fields) => {
            Json::Object(fields.into_iter().map(|(key, field)| (key, normalize_floats(field))).collect())
        }
        value => value,
    }
}

/// Returns the value at a path of a scope of Tavern-Helper, without private keys; null if it is missing.
fn read_scoped(call: &mut FunctionCall<'_, '_, '_>) -> Result<Json, Error> {
    let (scope, path) = (call.text_argument(0)?, call.text_argument(1)?);
    let value = match call.scope.context.state.get(&scope) {
        Some(value) => find_by_path(call, value, &path)?,
        None if scope == "global" => {
            budget::charge_copy(call.state, call.scope.global_weight())?;
            find_by_path(call, &Json::Object(call.scope.globals()), &path)?
        }
        None => None,
    };
    Ok(value.map_or(Json::Null, remove_private))
}

/// Removes the keys that begin with `$`, at every depth.
fn remove_private(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let public_fields = fields.into_iter().filter(|(key, _)| !key.starts_with('$'));
            Json::Object(public_fields.map(|(key, field)| (key, remove_private(field))).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(remove_private).collect()),
        value => value,
    }
}

/// Requests that the model call bans a word, with a warning that the caller must do it.
pub(super) fn call_ban(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let word = call.text_argument(0)?;
    if !word.is_empty() {
        call.scope.ban(&word)?;
        call.warn(
            "word_banned",
            format!("`{}` must be banned in the model call", tambour::finding::clip(&word, 40)),
        );
    }
    Ok(empty_value())
}

/// Returns a greeting of the character in the first argument, by number: 0 is the first message, 1 and up the
/// alternate ones; empty if there is none.
pub(super) fn call_greeting(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (char, number) = (call.argument(0), call.text_argument(1)?);
    let number = number.trim().parse::<usize>().unwrap_or(usize::MAX);
    let found = char.get_attr(&format!("greeting_{number}")).unwrap_or_default();
    Ok(if is_missing(&found) { empty_value() } else { found })
}
