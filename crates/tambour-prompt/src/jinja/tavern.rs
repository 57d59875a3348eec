//! Functions that migrated macros call: SillyTavern variables on top of the temporary scope and the read-only
//! state (F-027).

use minijinja::Error;
use minijinja::value::{Serde, Value};
use serde_json::Value as Json;

use super::budget::{self, allocate, charge};
use super::functions::Call;
use super::marks;
use super::values::is_missing;
use crate::print;
use tambour::state::{Path, Step};
use tambour::yaml;

pub(super) type Done = Result<Value, Error>;

pub(super) fn empty() -> Value {
    Value::from("")
}

/// Returns a variable from the temporary scope, else from the state, where the name may also be a path.
pub(super) fn variable(call: &Call<'_, '_, '_>, name: &str) -> Result<Option<Json>, Error> {
    let local = match call.scope.local(name) {
        Some(value) => Some(budget::json(call.state, &value)?),
        None => None,
    };
    let found = match local {
        Some(local) => Some(local),
        None if call.scope.is_deleted(name) => None,
        None => at_path(call, &call.scope.context.state, name)?,
    };
    Ok(found.filter(|value| !value.is_null()))
}

pub(super) fn global(call: &Call<'_, '_, '_>, name: &str) -> Result<Option<Json>, Error> {
    let size = call.scope.with_global(name, budget::json_weight);
    if let Some(size) = size {
        budget::charge_copy(call.state, size)?;
    }
    Ok(call.scope.with_global(name, Json::clone).filter(|value| !value.is_null()))
}

/// Looks up a literal key, then the place that a path leads to.
fn at_path(call: &Call<'_, '_, '_>, value: &Json, path: &str) -> Result<Option<Json>, Error> {
    charge(call.state, 1, path.len() as u64)?;
    let found = value.get(path).or_else(|| down(value, path));
    if let Some(found) = found {
        budget::charge_json(call.state, found)?;
    }
    Ok(found.cloned())
}

fn down<'v>(value: &'v Json, path: &str) -> Option<&'v Json> {
    let path = path.parse::<Path>().ok()?;
    path.steps().iter().try_fold(value, |value, step| match step {
        Step::Key(key) => match value {
            Json::Array(items) => items.get(key.parse::<usize>().ok()?),
            value => value.get(key),
        },
        Step::Index(index) => {
            let items = value.as_array()?;
            let size = usize::try_from(index.unsigned_abs()).ok()?;
            items.get(if *index < 0 { items.len().checked_sub(size)? } else { size })
        }
        Step::Token(token) => value.get(token),
        _ => None,
    })
}

/// Converts a value as SillyTavern reads it: text that looks like a number becomes one.
pub(super) fn normal(value: &Json) -> Value {
    match value {
        Json::String(text) => match number(text) {
            Some(number) if !text.trim().is_empty() => Value::from(print::float(number)),
            _ => Value::from(text.as_str()),
        },
        value => Value::from(print::text(value).into_owned()),
    }
}

/// Converts a text like JavaScript's `Number`; returns `None` unless the result is finite.
pub(super) fn number(text: &str) -> Option<f64> {
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
            .filter(|_| !text[2..].starts_with('+'))
            .map(|whole| whole as f64);
    }
    // Rust also parses `inf` and `nan`, JavaScript does not.
    let digits =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse().ok().filter(|number: &f64| digits && number.is_finite())
}

fn of_json(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => number(text),
        Json::Bool(value) => Some(f64::from(u8::from(*value))),
        Json::Null => Some(0.0),
        _ => None,
    }
}

/// Adds as SillyTavern does: numbers are summed, a list gets an item, other text is appended, and nothing
/// counts as 0.
fn sum(call: &Call<'_, '_, '_>, old: Option<&Json>, added: &str) -> Result<Json, Error> {
    // A list is copied; a text may be parsed and printed as one.
    if let Some(old) = old {
        let (values, bytes) = budget::json_weight(old);
        budget::charge_copy(
            call.state,
            (values + bytes / 2, (bytes + added.len() as u64).saturating_mul(4)),
        )?;
    }
    Ok(summed(old, added))
}

fn summed(old: Option<&Json>, added: &str) -> Json {
    let list = match old {
        Some(Json::Array(items)) => Some((items.clone(), false)),
        Some(Json::String(text)) if text.trim_start().starts_with('[') => {
            serde_json::from_str::<Vec<Json>>(text).ok().map(|items| (items, true))
        }
        _ => None,
    };
    if let Some((mut items, written)) = list {
        items.push(added.into());
        let items = Json::Array(items);
        return if written { Json::String(items.to_string()) } else { items };
    }
    let numbers = old.map_or(Some(0.0), of_json).zip(number(added));
    if let Some((old, added)) = numbers {
        let sum = old + added;
        let exact = sum.fract() == 0.0 && sum.abs() < 9_007_199_254_740_992.0;
        return if exact {
            (sum as i64).into()
        } else {
            serde_json::Number::from_f64(sum).map_or(Json::Null, Json::Number)
        };
    }
    let old = old.map(|old| print::text(old).into_owned()).unwrap_or_default();
    Json::String(old + added)
}

/// Returns the addend, negated if there is a third argument. Returns `None` if it should be negated and is
/// not a number.
fn addend(call: &Call<'_, '_, '_>) -> Result<Option<String>, Error> {
    let added = call.text(1)?;
    Ok(match number(&added) {
        _ if call.args.len() < 3 => Some(added),
        Some(number) => Some(print::float(-number)),
        None => {
            call.warn(
                "not_a_number",
                format!("`-=` takes a number, not `{}`", tambour::finding::clip(&added, 40)),
            );
            None
        }
    })
}

pub(super) fn set_variable(call: &Call<'_, '_, '_>, name: &str, value: Json) {
    call.scope.set_local(name, Value::from(Serde(value)));
}

pub(super) fn get(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    Ok(variable(call, &name)?.map_or_else(empty, |value| normal(&value)))
}

pub(super) fn set(call: &mut Call<'_, '_, '_>) -> Done {
    let (name, value) = (call.text(0)?, call.text(1)?);
    set_variable(call, &name, value.into());
    Ok(empty())
}

pub(super) fn add(call: &mut Call<'_, '_, '_>) -> Done {
    let (name, added) = (call.text(0)?, addend(call)?);
    if let Some(added) = added {
        let value = sum(call, variable(call, &name)?.as_ref(), &added)?;
        set_variable(call, &name, value);
    }
    Ok(empty())
}

pub(super) fn inc(call: &mut Call<'_, '_, '_>) -> Done {
    step(call, "1")
}

pub(super) fn dec(call: &mut Call<'_, '_, '_>) -> Done {
    step(call, "-1")
}

fn step(call: &mut Call<'_, '_, '_>, by: &str) -> Done {
    let name = call.text(0)?;
    let value = sum(call, variable(call, &name)?.as_ref(), by)?;
    let printed = normal(&value);
    set_variable(call, &name, value);
    Ok(printed)
}

pub(super) fn has(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    Ok(Value::from(variable(call, &name)?.is_some()))
}

pub(super) fn delete(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    call.scope.delete_local(&name);
    if call.scope.has_state(&name) {
        let name = tambour::finding::clip(&name, 60);
        call.warn(
            "state_read_only",
            format!("`{name}` is gone for this prompt alone: templates do not change the state"),
        );
    }
    Ok(empty())
}

pub(super) fn get_global(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    Ok(global(call, &name)?.map_or_else(empty, |value| normal(&value)))
}

pub(super) fn set_global(call: &mut Call<'_, '_, '_>) -> Done {
    let (name, value) = (call.text(0)?, call.text(1)?);
    call.scope.set_global(&name, Some(value.into()))?;
    Ok(empty())
}

pub(super) fn add_global(call: &mut Call<'_, '_, '_>) -> Done {
    let (name, added) = (call.text(0)?, addend(call)?);
    if let Some(added) = added {
        let value = sum(call, global(call, &name)?.as_ref(), &added)?;
        call.scope.set_global(&name, Some(value))?;
    }
    Ok(empty())
}

pub(super) fn inc_global(call: &mut Call<'_, '_, '_>) -> Done {
    step_global(call, "1")
}

pub(super) fn dec_global(call: &mut Call<'_, '_, '_>) -> Done {
    step_global(call, "-1")
}

fn step_global(call: &mut Call<'_, '_, '_>, by: &str) -> Done {
    let name = call.text(0)?;
    let value = sum(call, global(call, &name)?.as_ref(), by)?;
    let printed = normal(&value);
    call.scope.set_global(&name, Some(value))?;
    Ok(printed)
}

pub(super) fn has_global(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    Ok(Value::from(call.scope.with_global(&name, |value| !value.is_null()).unwrap_or(false)))
}

pub(super) fn delete_global(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    call.scope.set_global(&name, None)?;
    Ok(empty())
}

/// Resolves a bare name: the temporary scope, the state, the context, else the macro as written, with a
/// warning (F-031).
pub(super) fn bare(call: &mut Call<'_, '_, '_>) -> Done {
    let name = call.text(0)?;
    if let Some(value) = variable(call, &name)? {
        return Ok(normal(&value));
    }
    if call.scope.context.get(&name).is_some() {
        return Ok(call.scope.read(&name).unwrap_or_default());
    }
    let written = if call.args.len() > 1 { call.text(1)? } else { format!("{{{{{name}}}}}") };
    call.warn(
        "macro_unknown",
        format!("`{}` is no macro, and no variable has this name", tambour::finding::clip(&written, 60)),
    );
    Ok(Value::from(written))
}

/// Returns whether a text counts as true: anything but an empty text, `false`, `off` and `0` (M-006).
pub(super) fn condition(call: &mut Call<'_, '_, '_>) -> Done {
    Ok(Value::from(holds(&call.text(0)?)))
}

/// Like [`condition`], for a bare word: tests the variable of this name, else the word itself (M-015).
pub(super) fn test(call: &mut Call<'_, '_, '_>) -> Done {
    let word = call.text(0)?;
    let value = call.scope.local(&word);
    let value = value.or_else(|| call.scope.of_state(&word).filter(|_| !call.scope.is_deleted(&word)));
    Ok(Value::from(match value {
        Some(value) => holds(&budget::text(call.state, &value)?),
        None => holds(&word),
    }))
}

fn holds(text: &str) -> bool {
    if marks::any(text) {
        return holds(&marks::taken_out(text));
    }
    let word = text.trim();
    !text.is_empty() && !["false", "off", "0"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Compares for the short forms: `==` and `!=` compare texts, the other operators numbers.
pub(super) fn compare(call: &mut Call<'_, '_, '_>) -> Done {
    let (left, sign, right) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let holds = match &*sign {
        "==" => left == right,
        "!=" => left != right,
        sign => match (number(&left), number(&right)) {
            (Some(left), Some(right)) => match sign {
                ">" => left > right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left <= right,
            },
            _ => {
                call.warn("not_a_number", format!("`{sign}` compares numbers"));
                false
            }
        },
    };
    Ok(Value::from(holds))
}

/// Prints a variable of a state scope: text as it is, other values as compact JSON, `null` if it is missing
/// (M-086).
pub(super) fn scoped(call: &mut Call<'_, '_, '_>) -> Done {
    Ok(match in_scope(call)? {
        Json::String(text) => Value::from(text),
        value => {
            let (values, bytes) = budget::json_weight(&value);
            allocate(call.state, (values * 44 + bytes * 6).saturating_mul(2))?;
            let mut out = String::new();
            print::json(&value, &mut out);
            Value::from(out)
        }
    })
}

/// Like [`scoped`], but as YAML; further lines are indented to the column of the first (M-091).
pub(super) fn scoped_yaml(call: &mut Call<'_, '_, '_>) -> Done {
    let value = in_scope(call)?;
    let text = match value {
        Json::String(text) => text,
        value => {
            let (values, bytes) = budget::json_weight(&value);
            // Each value may be on its own line, indented by its level.
            let levels = values.saturating_mul(2 * depth(&value) as u64);
            allocate(call.state, (values * 44 + bytes * 6 + levels).saturating_mul(2))?;
            yaml::print(&whole(value)).trim_end_matches('\n').to_owned()
        }
    };
    if !text.contains('\n') {
        return Ok(Value::from(text));
    }
    allocate(call.state, (text.len() as u64).saturating_mul(6))?;
    let lines = text.replace('\n', &marks::LINE.to_string());
    Ok(Value::from(format!("{}{lines}", marks::COLUMN)))
}

/// Returns the nesting depth of a value.
fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// Converts floats without a fraction to integers, so that they print without a point.
fn whole(value: Json) -> Json {
    match value {
        Json::Number(number) if number.is_f64() => {
            let whole = print::number(&number).parse::<i64>();
            whole.map_or(Json::Number(number), Json::from)
        }
        Json::Array(items) => Json::Array(items.into_iter().map(whole).collect()),
        Json::Object(fields) => {
            Json::Object(fields.into_iter().map(|(key, field)| (key, whole(field))).collect())
        }
        value => value,
    }
}

fn in_scope(call: &mut Call<'_, '_, '_>) -> Result<Json, Error> {
    let (scope, path) = (call.text(0)?, call.text(1)?);
    let value = match call.scope.context.state.get(&scope) {
        Some(value) => at_path(call, value, &path)?,
        None if scope == "global" => {
            budget::charge_copy(call.state, call.scope.global_weight())?;
            at_path(call, &Json::Object(call.scope.globals()), &path)?
        }
        None => None,
    };
    Ok(value.map_or(Json::Null, without_private))
}

/// Removes the keys that begin with `$`, at every depth.
fn without_private(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let open = fields.into_iter().filter(|(key, _)| !key.starts_with('$'));
            Json::Object(open.map(|(key, field)| (key, without_private(field))).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(without_private).collect()),
        value => value,
    }
}

pub(super) fn banned(call: &mut Call<'_, '_, '_>) -> Done {
    let word = call.text(0)?;
    if !word.is_empty() {
        call.scope.ban(&word)?;
        call.warn(
            "word_banned",
            format!("`{}` is to be banned by the call of the model", tambour::finding::clip(&word, 40)),
        );
    }
    Ok(empty())
}

/// Returns a greeting by number: 0 is the first message, 1 and up the alternate ones; empty if there is none.
pub(super) fn greeting(call: &mut Call<'_, '_, '_>) -> Done {
    let (char, number) = (call.value(0), call.text(1)?);
    let number = number.trim().parse::<usize>().unwrap_or(usize::MAX);
    let found = char.get_attr(&format!("greeting_{number}")).unwrap_or_default();
    Ok(if is_missing(&found) { empty() } else { found })
}
