//! Functions of templates (F-021, F-036), and those that migrated macros call.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ObjectRepr, Value};
use minijinja::{Environment, Error, ErrorKind, State};

use super::budget::{self, SHORT_BYTES, charge, charge_bytes, charge_slots};
use super::scope::PromptScope;
use super::values::{TimeObject, is_missing};
use super::{chance, dates, flatten, marks, tavern, variable_keys};

/// Function of templates, with the place of its call once that is known.
#[derive(Clone, Copy)]
pub(super) struct TemplateFunction {
    name: &'static str,
    handler: FunctionHandler,
    /// Byte offset of the call in the template.
    call_site: Option<usize>,
}

type FunctionHandler = fn(&mut FunctionCall<'_, '_, '_>) -> Result<Value, Error>;

/// One call of a function.
pub(super) struct FunctionCall<'a, 't, 'e> {
    /// State of minijinja, to which the cost is charged.
    pub(super) state: &'a State<'t, 'e>,
    pub(super) scope: Arc<PromptScope>,
    /// Name of the function.
    pub(super) name: &'static str,
    pub(super) args: &'a [Value],
    /// Byte offset of the call in the template.
    pub(super) call_site: Option<usize>,
}

/// All functions of this library. A rewritten source writes a call as `function.at(offset)(arguments)`: the
/// method `at` returns the function with that offset as its call site.
static FUNCTION_TABLE: &[TemplateFunction] = &[
    new_function("random", call_random),
    new_function("pick", call_pick),
    new_function("roll", call_roll),
    new_function("time_diff", call_time_diff),
    new_function("outlet", call_outlet),
    new_function("set_global", call_set_global),
    new_function("time", call_time),
    new_function("format", call_format),
    new_function("st_get", tavern::call_get),
    new_function("st_set", tavern::call_set),
    new_function("st_add", tavern::call_add),
    new_function("st_inc", tavern::call_inc),
    new_function("st_dec", tavern::call_dec),
    new_function("st_has", tavern::call_has),
    new_function("st_delete", tavern::call_delete),
    new_function("st_set_key", variable_keys::call_set_key),
    new_function("st_get_key", variable_keys::call_get_key),
    new_function("st_set_global_key", variable_keys::call_set_global_key),
    new_function("st_get_global_key", variable_keys::call_get_global_key),
    new_function("st_get_global", tavern::call_get_global),
    new_function("st_set_global", tavern::call_set_global),
    new_function("st_add_global", tavern::call_add_global),
    new_function("st_inc_global", tavern::call_inc_global),
    new_function("st_dec_global", tavern::call_dec_global),
    new_function("st_has_global", tavern::call_has_global),
    new_function("st_delete_global", tavern::call_delete_global),
    new_function("st_bare", tavern::call_bare),
    new_function("st_if", tavern::call_condition),
    new_function("st_test", tavern::call_test),
    new_function("st_compare", tavern::call_compare),
    new_function("st_scope", tavern::call_scoped),
    new_function("st_yaml", tavern::call_scoped_yaml),
    new_function("st_banned", tavern::call_ban),
    new_function("st_greeting", tavern::call_greeting),
    new_function("st_original", |call| Ok(call.scope.original_text())),
    // Its arguments are evaluated for their side effects only.
    new_function("st_comment", |_| Ok(Value::from(""))),
    new_function("st_trim", |_| Ok(Value::from(marks::TRIM.to_string()))),
    new_function("st_noop", |_| Ok(Value::from(marks::BARRIER.to_string()))),
    new_function("st_text", |call| {
        let mut joined = String::new();
        for at in 0..call.args.len() {
            let text = call.text_argument(at)?;
            charge_bytes(call.state, 2 * text.len() as u64)?;
            joined.push_str(&text);
        }
        Ok(Value::from(joined))
    }),
    // Keeps variables for later templates. The arguments are pairs of a name and a value.
    new_function("__keep", |call| {
        for at in (0..call.args.len()).step_by(2) {
            let value = call.argument(at + 1);
            // The captured output of a block was not charged as a value.
            if let Some(text) = value.as_str() {
                charge_bytes(call.state, text.len() as u64)?;
            }
            call.scope.set_local(&call.text_argument(at)?, value);
        }
        Ok(Value::from(""))
    }),
];

/// Creates a function whose call site is not known yet.
const fn new_function(name: &'static str, handler: FunctionHandler) -> TemplateFunction {
    TemplateFunction { name, handler, call_site: None }
}

/// Returns the names of this library's functions for templates. Those with `st_` are for migrated macros.
pub(crate) fn own_function_names() -> impl Iterator<Item = &'static str> {
    FUNCTION_TABLE.iter().map(|function| function.name).filter(|name| !name.starts_with("__"))
}

/// Returns true for a function of this library to whose calls a rewritten source adds the call site.
pub(super) fn needs_call_site(name: &str) -> bool {
    !name.starts_with("__") && FUNCTION_TABLE.iter().any(|function| function.name == name)
}

/// Prefix of function names in a rewritten source. No variable has such a name, so templates cannot shadow
/// the functions.
pub(super) const FUNCTION_PREFIX: &str = "__f_";

/// Registers the functions, each also under its name with [`FUNCTION_PREFIX`].
pub(super) fn register(env: &mut Environment<'_>) {
    for function in FUNCTION_TABLE {
        env.add_global(function.name, Value::from_object(*function));
        env.add_global(format!("{FUNCTION_PREFIX}{}", function.name), Value::from_object(*function));
    }
    env.add_function("__flat", flatten::flatten);
    env.add_function("__flat_row", flatten::flatten_row);
}

impl fmt::Debug for TemplateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function {}>", self.name)
    }
}

impl Object for TemplateFunction {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let scope = PromptScope::from_state(state)?;
        (self.handler)(&mut FunctionCall { state, scope, name: self.name, args, call_site: self.call_site })
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        match (method, args) {
            ("at", [site]) => {
                Ok(Value::from_object(TemplateFunction { call_site: site.as_usize(), ..**self }))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

impl FunctionCall<'_, '_, '_> {
    /// Returns an argument; undefined if it is absent.
    pub(super) fn argument(&self, at: usize) -> Value {
        self.args.get(at).cloned().unwrap_or_default()
    }

    /// Returns an argument as text, which the caller may copy and search.
    ///
    /// # Errors
    /// The argument is absent, or the budget is exhausted.
    pub(super) fn text_argument(&self, at: usize) -> Result<String, Error> {
        match self.args.get(at) {
            Some(value) => {
                let text = budget::print_charged(self.state, value)?;
                // Covers the copy and the search.
                charge_bytes(self.state, text.len() as u64)?;
                Ok(text.into_owned())
            }
            None => {
                Err(Error::new(ErrorKind::MissingArgument, format!("{} takes more arguments", self.name)))
            }
        }
    }

    /// Records a warning at the place of the call.
    pub(super) fn warn(&self, code: &'static str, message: impl Into<String>) {
        self.scope.warn(code, message, self.call_site);
    }

    /// Returns the items to choose from: those of a list that is the only argument, or else the arguments.
    fn list_choices(&self) -> Result<Vec<Value>, Error> {
        match self.args {
            [single_value]
                if single_value.as_str().is_none()
                    && !is_missing(single_value)
                    && single_value.try_iter().is_ok() =>
            {
                let items = single_value.len().unwrap_or(0);
                charge_slots(self.state, items)?;
                Ok(single_value.try_iter()?.collect())
            }
            args => {
                charge_slots(self.state, args.len())?;
                Ok(args.to_vec())
            }
        }
    }
}

fn call_random(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let choices = call.list_choices()?;
    if choices.is_empty() {
        return Ok(Value::from(""));
    }
    Ok(choices[call.scope.with_random(|rng| chance::random_below(rng, choices.len()))].clone())
}

fn call_pick(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let choices = call.list_choices()?;
    if choices.is_empty() {
        return Ok(Value::from(""));
    }
    Ok(choices[call.scope.stable_index(call.call_site, choices.len())].clone())
}

fn call_roll(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let formula = call.text_argument(0)?;
    // A flat charge for many dice.
    charge(call.state, 20, 0)?;
    match call.scope.with_random(|rng| chance::roll_dice(rng, &formula)) {
        Ok(sum) => Ok(Value::from(sum)),
        Err(message) => {
            call.warn("dice_invalid", message);
            Ok(Value::from(""))
        }
    }
}

fn call_time_diff(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let now = call.scope.context.now.clone();
    let read_time = |at: usize| -> Result<Option<jiff::Timestamp>, Error> {
        if let Some(time_object) = call.argument(at).downcast_object_ref::<TimeObject>() {
            return Ok(Some(time_object.0.timestamp()));
        }
        let text = call.text_argument(at)?;
        let time = dates::parse(&text, now.as_ref()).map(|time| time.timestamp());
        if time.is_none() {
            call.warn("time_invalid", format!("`{}` is not a time", tambour::finding::clip(&text, 40)));
        }
        Ok(time)
    };
    let (Some(first), Some(second)) = (read_time(0)?, read_time(1)?) else { return Ok(Value::from("")) };
    let span = first.as_millisecond().saturating_sub(second.as_millisecond());
    Ok(Value::from(dates::format_duration(span, call.scope.context.locale)))
}

/// Returns the rendered lore entries of an outlet, joined by line breaks (F-035).
fn call_outlet(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let name = call.text_argument(0)?;
    let scope = Arc::clone(&call.scope);
    let texts = match scope.context.get("outlets").and_then(|outlets| outlets.get(&name)) {
        Some(serde_json::Value::Array(texts)) => texts.as_slice(),
        Some(text) if text.is_string() => std::slice::from_ref(text),
        _ => &[],
    };
    let label = format!("outlet {name}");
    let mut joined = String::new();
    for (at, entry) in texts.iter().enumerate() {
        if !entry.is_string() {
            budget::charge_json(call.state, entry)?;
        }
        let entry = call.scope.render_field(&label, &Arc::from(crate::print::print(entry)));
        let entry = budget::print_charged(call.state, &entry)?;
        charge_bytes(call.state, 2 * entry.len() as u64)?;
        if at > 0 {
            joined.push('\n');
        }
        joined.push_str(&entry);
    }
    Ok(Value::from(joined))
}

fn call_set_global(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let (name, value) = (call.text_argument(0)?, budget::to_json_charged(call.state, &call.argument(1))?);
    call.scope.set_global(&name, Some(value))?;
    Ok(Value::from(""))
}

fn call_time(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let pattern = if call.args.is_empty() { "LT".to_owned() } else { call.text_argument(0)? };
    let Some(now) = &call.scope.context.now else { return Ok(Value::from("")) };
    // Upper bound: each letter of a pattern may expand to the name of a month.
    charge_bytes(call.state, (pattern.len() as u64).saturating_mul(40))?;
    Ok(Value::from(dates::format(now, &pattern, call.scope.context.locale)))
}

/// Implements `format("{} and {name}", x, name=y)`: `{{` and `}}` stand for single braces, and a field
/// without a value stays as it is.
fn call_format(call: &mut FunctionCall<'_, '_, '_>) -> Result<Value, Error> {
    let pattern = call.text_argument(0)?;
    let mut args = &call.args[1..];
    let keyword_arguments =
        args.last().filter(|last| last.is_kwargs()).map(|last| Kwargs::try_from(last.clone()));
    let keyword_arguments = keyword_arguments.transpose()?;
    if keyword_arguments.is_some() {
        args = &args[..args.len() - 1];
    }
    let (mut out, mut next_position, mut remaining) = (String::new(), 0, pattern.as_str());
    let mut pending_bytes = 0_u64;
    while let Some(at) = remaining.find(['{', '}']) {
        out.push_str(&remaining[..at]);
        remaining = &remaining[at..];
        if remaining.starts_with("{{") || remaining.starts_with("}}") {
            out.push_str(&remaining[..1]);
            remaining = &remaining[2..];
            continue;
        }
        let field = remaining.strip_prefix('{').and_then(|content| content.split_once('}'));
        let Some((name, after_field)) = field.filter(|(name, _)| !name.contains('{')) else {
            out.push_str(&remaining[..1]);
            remaining = &remaining[1..];
            continue;
        };
        let value = match name.parse::<usize>() {
            Ok(position) => args.get(position).cloned(),
            Err(_) if name.is_empty() => {
                next_position += 1;
                args.get(next_position - 1).cloned()
            }
            Err(_) => keyword_arguments
                .as_ref()
                .and_then(|keyword_arguments| keyword_arguments.peek::<Value>(name).ok()),
        };
        match value {
            Some(value) => {
                let text = budget::print_charged(call.state, &value)?;
                pending_bytes += text.len() as u64;
                // Values are charged together, so that short ones are not free: twice, because a growing text
                // doubles its capacity, and `SHORT_BYTES` more for a remainder that is not charged at the
                // end.
                if pending_bytes > SHORT_BYTES {
                    charge_bytes(call.state, SHORT_BYTES + 2 * std::mem::take(&mut pending_bytes))?;
                }
                out.push_str(&text);
            }
            None => {
                call.warn("format_argument_missing", format!("`{{{name}}}` has no value"));
                out.push_str(&remaining[..name.len() + 2]);
            }
        }
        remaining = after_field;
    }
    out.push_str(remaining);
    Ok(Value::from(out))
}
