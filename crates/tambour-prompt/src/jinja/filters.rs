//! Filters of templates (F-021), including replacements of minijinja filters that would spell values as Python
//! does.

use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State};

use super::budget::{self, SHORT_BYTES, charge, charge_bytes, charge_slots};
use super::builtins::{self, TESTS, charged_filter};
use super::dates;
use super::scope::PromptScope;
use super::values::{GroupObject, MessageList, MissingValue, TimeObject, is_missing, missing_value};
use tambour::yaml;

/// Names of the filters that only this library has.
pub(super) const OWN_FILTERS: &[&str] =
    &["time_format", "date_format", "utc_offset", "to_yaml", "format_examples", "filter_not_muted"];

/// Registers the filters, in place of those of `builtins` with the same name.
pub(super) fn register(env: &mut Environment<'_>) {
    env.add_filter("__out", check_output);
    env.add_filter("time_format", |state: &State<'_, '_>, value: &Value, pattern: Option<String>| {
        format_time(state, value, pattern.as_deref().unwrap_or("LT"))
    });
    env.add_filter("date_format", |state: &State<'_, '_>, value: &Value, pattern: Option<String>| {
        format_time(state, value, pattern.as_deref().unwrap_or("LL"))
    });
    env.add_filter("utc_offset", apply_utc_offset);
    env.add_filter("to_yaml", to_yaml);
    env.add_filter("format_examples", format_examples);
    env.add_filter("filter_not_muted", filter_not_muted);
    for (name, attribute) in [("select", "selectattr"), ("reject", "rejectattr")] {
        let (builtin, by_attribute) = (charged_filter(name), charged_filter(attribute));
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            select_items(state, &args, &builtin, &by_attribute)
        });
    }
    for name in ["selectattr", "rejectattr"] {
        let builtin = charged_filter(name);
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let result = builtin(state, &args)?;
            rewrap_messages(args.first(), result)
        });
    }
    for name in ["first", "last"] {
        let builtin = charged_filter(name);
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let result = builtin(state, &args)?;
            let is_message_list =
                args.first().is_some_and(|value| value.downcast_object_ref::<MessageList>().is_some());
            Ok::<_, Error>(if is_message_list && result.is_undefined() { missing_value() } else { result })
        });
    }
    for name in ["default", "d"] {
        let builtin = charged_filter(name);
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let mut args = args.into_values();
            if let Some(value) = args.first_mut().filter(|value| is_missing(value)) {
                *value = Value::UNDEFINED;
            }
            builtin(state, &args)
        });
    }
    env.add_filter("string", |state: &State<'_, '_>, value: &Value| builtins::to_text_value(state, value));
    for name in
        ["upper", "lower", "title", "capitalize", "trim", "replace", "split", "lines", "indent", "reverse"]
    {
        let builtin = charged_filter(name);
        env.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let mut args = args.into_values();
            let needs_text = |value: &Value| {
                value.as_str().is_none()
                    && !value.is_undefined()
                    && (name != "reverse" || !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable))
            };
            // A number among the options, such as the width of `indent`, stays a number. As the first
            // argument it is printed.
            for value in args.iter_mut().filter(|value| !value.is_kwargs()) {
                if needs_text(value) && !value.is_number() {
                    *value = builtins::to_text_value(state, value)?;
                }
            }
            if let Some(value) = args.first_mut().filter(|value| needs_text(value)) {
                *value = builtins::to_text_value(state, value)?;
            }
            builtin(state, &args)
        });
    }
    env.add_filter("join", join_printed);
    env.add_test("defined", |value: &Value| !is_missing(value));
    env.add_test("undefined", |value: &Value| is_missing(value));
}

/// Implements `__out`, the filter around the content of `{{ }}`: reports a missing value with its place.
fn check_output(state: &State<'_, '_>, value: &Value, at: usize) -> Result<Value, Error> {
    if value.is_undefined() {
        if state.undefined_behavior() == minijinja::UndefinedBehavior::Strict {
            let expression = PromptScope::from_state(state)?.expression_at(at);
            return Err(Error::new(ErrorKind::UndefinedError, format!("`{expression}` is not defined")));
        }
        PromptScope::from_state(state)?.warn_undefined(at);
    }
    Ok(value.clone())
}

/// Formats a time, or a text that is one, by a pattern. Any other value prints nothing, with a warning.
fn format_time(state: &State<'_, '_>, value: &Value, pattern: &str) -> Result<Value, Error> {
    let scope = PromptScope::from_state(state)?;
    if is_missing(value) {
        scope.warn("time_missing", "the context has no `now`", None);
        return Ok(missing_value());
    }
    let locale = scope.context.locale;
    // Upper bound: each letter of a pattern may expand to the name of a month.
    charge_bytes(state, (pattern.len() as u64).saturating_mul(40))?;
    if let Some(time_object) = value.downcast_object_ref::<TimeObject>() {
        return Ok(Value::from(dates::format(&time_object.0, pattern, locale)));
    }
    let text = budget::print_charged(state, value)?;
    charge(state, 0, text.len() as u64)?;
    match dates::parse(&text, scope.context.now.as_ref()) {
        Some(time) => Ok(Value::from(dates::format(&time, pattern, locale))),
        None => {
            scope.warn(
                "time_invalid",
                format!("`{}` is not a time", tambour::finding::clip(&text, 40)),
                None,
            );
            Ok(Value::from(""))
        }
    }
}

/// Returns a time at another offset from UTC.
fn apply_utc_offset(state: &State<'_, '_>, value: &Value, offset: &Value) -> Result<Value, Error> {
    let scope = PromptScope::from_state(state)?;
    if is_missing(value) {
        return Ok(missing_value());
    }
    let text = budget::print_charged(state, offset)?;
    let time_value = match value.downcast_object_ref::<TimeObject>() {
        Some(time_object) => Some(time_object.0.clone()),
        None => dates::parse(&budget::print_charged(state, value)?, scope.context.now.as_ref()),
    };
    let offset = text.trim().parse::<i64>().ok();
    match time_value.zip(offset).and_then(|(time, offset)| dates::with_offset(&time, offset)) {
        Some(time) => Ok(Value::from_object(TimeObject(time))),
        None => {
            let message = format!("`{}` is not an offset in whole hours", tambour::finding::clip(&text, 40));
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
    }
}

/// Returns text unchanged and other values as YAML without a final line break. `indent` is a number of
/// blanks, at most 1,000, before the second and each further line.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes the arguments by value")]
fn to_yaml(
    state: &State<'_, '_>,
    value: &Value,
    indent: Option<usize>,
    options: minijinja::value::Kwargs,
) -> Result<Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<usize>>("indent")?,
    };
    options.assert_all_used()?;
    if is_missing(value) {
        return Ok(value.clone());
    }
    if value.as_str().is_some() {
        return Ok(value.clone());
    }
    let weight = budget::weigh(state, value)?;
    let json = budget::to_json_charged(state, value)?;
    // An upper bound: YAML indents by two spaces a level, and may break a text at every character.
    charge_bytes(state, weight.indented_bytes(4).saturating_mul(2))?;
    let indent = " ".repeat(indent.unwrap_or(0).min(1000));
    let text = yaml::print(&json);
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
    charge_bytes(
        state,
        lines.saturating_mul(indent.len() as u64).saturating_add(text.len() as u64).saturating_mul(2),
    )?;
    Ok(Value::from(text.trim_end_matches('\n').replace('\n', &format!("\n{indent}"))))
}

/// Formats example dialogues. In the input, `<START>` in any letter case separates blocks. In the output,
/// each block begins with a line `<START>`, or the `example_separator` of the config, and has no white space
/// around it.
fn format_examples(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    const START: &str = "<start>";
    let scope = PromptScope::from_state(state)?;
    let configured = scope.context.get("config").and_then(|config| config.get("example_separator"));
    let separator = configured.and_then(|text| text.as_str()).unwrap_or("<START>").to_owned();
    let value_text = budget::print_charged(state, value)?;
    let starts = memchr::memchr_iter(b'<', value_text.as_bytes()).count() as u64 + 1;
    let separators = starts.saturating_mul(separator.len() as u64 + 64);
    // Copies of the text in lower case, in blocks and joined, with room for buffers that grow by doubling.
    charge_bytes(
        state,
        (value_text.len() as u64).saturating_mul(5).saturating_add(separators.saturating_mul(2)),
    )?;
    let lower = value_text.to_ascii_lowercase();
    let (mut blocks, mut from) = (Vec::new(), 0);
    for (at, _) in lower.match_indices(START) {
        blocks.push(&value_text[from..at]);
        from = at + START.len();
    }
    blocks.push(&value_text[from..]);
    let blocks = blocks.into_iter().map(str::trim).filter(|block| !block.is_empty());
    let blocks: Vec<String> = blocks
        .map(|block| if separator.is_empty() { block.to_owned() } else { format!("{separator}\n{block}") })
        .collect();
    Ok(Value::from(blocks.join("\n")))
}

/// Removes muted members from a group or a list of members.
fn filter_not_muted(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if is_missing(value) {
        return Ok(value.clone());
    }
    let is_unmuted = |member: &Value| member.get_attr("muted").is_ok_and(|muted| !muted.is_true());
    charge_slots(state, value.len().unwrap_or(0))?;
    match value.downcast_object_ref::<GroupObject>() {
        Some(group) => {
            let members: Vec<Value> =
                group.members.iter().filter(|member| is_unmuted(member)).cloned().collect();
            // A group with only muted members is still a group.
            let fallback_name =
                if group.members.is_empty() { group.fallback_name.clone() } else { String::new() };
            Ok(Value::from_object(GroupObject { members, fallback_name }))
        }
        None => Ok(value.try_iter()?.filter(is_unmuted).collect()),
    }
}

/// Implements `select` and `reject`, which also accept `('role', 'user')` for an attribute with that value.
fn select_items(
    state: &mut State<'_, '_>,
    args: &[Value],
    builtin: &impl Fn(&mut State<'_, '_>, &[Value]) -> Result<Value, Error>,
    by_attribute: &impl Fn(&mut State<'_, '_>, &[Value]) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let attribute =
        args.get(1).and_then(Value::as_str).filter(|name| args.len() == 3 && !TESTS.contains(name));
    let result = match attribute {
        Some(name) => {
            let args = [args[0].clone(), Value::from(name), Value::from("equalto"), args[2].clone()];
            by_attribute(state, &args)?
        }
        None => builtin(state, args)?,
    };
    rewrap_messages(args.first(), result)
}

/// Wraps the result of a filter as messages if the input was a list of messages or a missing value.
fn rewrap_messages(input: Option<&Value>, result: Value) -> Result<Value, Error> {
    let is_message_list = input.is_some_and(|value| {
        value.downcast_object_ref::<MessageList>().is_some()
            || value.downcast_object_ref::<MissingValue>().is_some()
    });
    if !is_message_list {
        return Ok(result);
    }
    Ok(Value::from_object(MessageList(result.try_iter()?.collect())))
}

/// Joins items in printed form.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes the arguments by value")]
fn join_printed(
    state: &State<'_, '_>,
    value: &Value,
    separator: Option<String>,
    options: minijinja::value::Kwargs,
) -> Result<String, Error> {
    let separator = match separator {
        Some(separator) => separator,
        None => options.get::<Option<String>>("d")?.unwrap_or_default(),
    };
    let attribute = options.get::<Option<String>>("attribute")?;
    options.assert_all_used()?;
    if is_missing(value) {
        return Ok(String::new());
    }
    let mut out = String::new();
    let mut pending_bytes = 0_u64;
    for (at, item) in value.try_iter()?.enumerate() {
        charge(state, 1, separator.len() as u64)?;
        let item = match &attribute {
            Some(path) => {
                charge(state, 0, path.len() as u64)?;
                path.split('.').try_fold(item, |item, key| item.get_attr(key))?
            }
            None => item,
        };
        let item = budget::print_charged(state, &item)?;
        // Short items would be free one by one, so they are charged together. Their bytes count twice,
        // because a growing text doubles its capacity, and `SHORT_BYTES` covers the last items, which are not
        // charged.
        let length = (item.len() + separator.len()) as u64;
        pending_bytes += length;
        if pending_bytes > SHORT_BYTES {
            charge_bytes(state, SHORT_BYTES + 2 * std::mem::take(&mut pending_bytes))?;
        }
        if at > 0 {
            out.push_str(&separator);
        }
        out.push_str(&item);
    }
    Ok(out)
}
