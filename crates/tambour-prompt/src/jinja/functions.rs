//! Functions of templates (F-021, F-036), and those that migrated macros call.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ObjectRepr, Value};
use minijinja::{Environment, Error, ErrorKind, State};

use super::budget::{self, allocate, allocate_slots, charge};
use super::scope::Scope;
use super::values::{Moment, is_missing};
use super::{chance, dates, flat, keyed, marks, tavern};

/// A template function together with the place of its call.
#[derive(Clone, Copy)]
pub(super) struct Function {
    name: &'static str,
    run: Run,
    site: Option<usize>,
}

type Run = fn(&mut Call<'_, '_, '_>) -> Result<Value, Error>;

/// One call of a function.
pub(super) struct Call<'a, 't, 'e> {
    /// State of the engine, to which the cost is charged.
    pub(super) state: &'a State<'t, 'e>,
    pub(super) scope: Arc<Scope>,
    pub(super) name: &'static str,
    pub(super) args: &'a [Value],
    /// Byte offset of the call in the template.
    pub(super) site: Option<usize>,
}

/// All functions that depend on the place of their call.
static FUNCTIONS: &[Function] = &[
    function("random", random),
    function("pick", pick),
    function("roll", roll),
    function("time_diff", time_diff),
    function("outlet", outlet),
    function("set_global", set_global),
    function("time", time),
    function("format", format),
    function("st_get", tavern::get),
    function("st_set", tavern::set),
    function("st_add", tavern::add),
    function("st_inc", tavern::inc),
    function("st_dec", tavern::dec),
    function("st_has", tavern::has),
    function("st_delete", tavern::delete),
    function("st_set_key", keyed::set_key),
    function("st_get_key", keyed::get_key),
    function("st_set_global_key", keyed::set_global_key),
    function("st_get_global_key", keyed::get_global_key),
    function("st_get_global", tavern::get_global),
    function("st_set_global", tavern::set_global),
    function("st_add_global", tavern::add_global),
    function("st_inc_global", tavern::inc_global),
    function("st_dec_global", tavern::dec_global),
    function("st_has_global", tavern::has_global),
    function("st_delete_global", tavern::delete_global),
    function("st_bare", tavern::bare),
    function("st_if", tavern::condition),
    function("st_test", tavern::test),
    function("st_compare", tavern::compare),
    function("st_scope", tavern::scoped),
    function("st_yaml", tavern::scoped_yaml),
    function("st_banned", tavern::banned),
    function("st_greeting", tavern::greeting),
    function("st_original", |call| Ok(call.scope.original())),
    // Its arguments are evaluated for their side effects only.
    function("st_comment", |_| Ok(Value::from(""))),
    function("st_trim", |_| Ok(Value::from(marks::TRIM.to_string()))),
    function("st_noop", |_| Ok(Value::from(marks::BARRIER.to_string()))),
    function("st_text", |call| {
        let mut all = String::new();
        for at in 0..call.args.len() {
            let text = call.text(at)?;
            allocate(call.state, 2 * text.len() as u64)?;
            all.push_str(&text);
        }
        Ok(Value::from(all))
    }),
    function("__keep", |call| {
        for at in (0..call.args.len()).step_by(2) {
            let value = call.value(at + 1);
            // The captured output of a block.
            if let Some(text) = value.as_str() {
                allocate(call.state, text.len() as u64)?;
            }
            call.scope.set_local(&call.text(at)?, value);
        }
        Ok(Value::from(""))
    }),
];

const fn function(name: &'static str, run: Run) -> Function {
    Function { name, run, site: None }
}

/// Returns the names of the functions of a template; those with `st_` are called by migrated macros.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name).filter(|name| !name.starts_with("__"))
}

/// Returns true if calls of this function receive their place.
pub(super) fn is_placed(name: &str) -> bool {
    !name.starts_with("__") && FUNCTIONS.iter().any(|function| function.name == name)
}

/// Prefix of function names in a rewritten source. No variable has such a name, so templates cannot shadow
/// them.
pub(super) const OURS: &str = "__f_";

pub(super) fn register(env: &mut Environment<'_>) {
    for function in FUNCTIONS {
        env.add_global(function.name, Value::from_object(*function));
        env.add_global(format!("{OURS}{}", function.name), Value::from_object(*function));
    }
    env.add_function("__flat", flat::flat);
    env.add_function("__flat_row", flat::flat_row);
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function {}>", self.name)
    }
}

impl Object for Function {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let scope = Scope::of(state)?;
        (self.run)(&mut Call { state, scope, name: self.name, args, site: self.site })
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        match (method, args) {
            ("at", [site]) => Ok(Value::from_object(Function { site: site.as_usize(), ..**self })),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

impl Call<'_, '_, '_> {
    /// Returns an argument; undefined if there are fewer.
    pub(super) fn value(&self, at: usize) -> Value {
        self.args.get(at).cloned().unwrap_or_default()
    }

    /// Returns an argument as text.
    pub(super) fn text(&self, at: usize) -> Result<String, Error> {
        match self.args.get(at) {
            Some(value) => {
                let text = budget::text(self.state, value)?;
                // The text is copied and searched.
                allocate(self.state, text.len() as u64)?;
                Ok(text.into_owned())
            }
            None => {
                Err(Error::new(ErrorKind::MissingArgument, format!("{} takes more arguments", self.name)))
            }
        }
    }

    pub(super) fn warn(&self, code: &'static str, message: impl Into<String>) {
        self.scope.warn(code, message, self.site);
    }

    /// Returns the items to choose from: those of a single list, or the arguments.
    fn choices(&self) -> Result<Vec<Value>, Error> {
        match self.args {
            [one] if one.as_str().is_none() && !is_missing(one) && one.try_iter().is_ok() => {
                let items = one.len().unwrap_or(0);
                allocate_slots(self.state, items)?;
                Ok(one.try_iter()?.collect())
            }
            args => {
                allocate_slots(self.state, args.len())?;
                Ok(args.to_vec())
            }
        }
    }
}

fn random(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let choices = call.choices()?;
    if choices.is_empty() {
        return Ok(Value::from(""));
    }
    Ok(choices[call.scope.random(|source| chance::below(source, choices.len()))].clone())
}

fn pick(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let choices = call.choices()?;
    if choices.is_empty() {
        return Ok(Value::from(""));
    }
    Ok(choices[call.scope.stable(call.site, choices.len())].clone())
}

fn roll(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let formula = call.text(0)?;
    charge(call.state, 20, 0)?;
    match call.scope.random(|source| chance::roll(source, &formula)) {
        Ok(sum) => Ok(Value::from(sum)),
        Err(message) => {
            call.warn("dice_invalid", message);
            Ok(Value::from(""))
        }
    }
}

fn time_diff(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let now = call.scope.context.now.clone();
    let read = |at: usize| -> Result<Option<jiff::Timestamp>, Error> {
        if let Some(moment) = call.value(at).downcast_object_ref::<Moment>() {
            return Ok(Some(moment.0.timestamp()));
        }
        let text = call.text(at)?;
        let time = dates::parse(&text, now.as_ref()).map(|time| time.timestamp());
        if time.is_none() {
            call.warn("time_invalid", format!("`{}` is no time", tambour::finding::clip(&text, 40)));
        }
        Ok(time)
    };
    let (Some(first), Some(second)) = (read(0)?, read(1)?) else { return Ok(Value::from("")) };
    let span = first.as_millisecond().saturating_sub(second.as_millisecond());
    Ok(Value::from(dates::humanise(span, call.scope.context.locale)))
}

/// Returns the entries of an outlet, joined by line breaks (F-035).
fn outlet(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let name = call.text(0)?;
    let scope = Arc::clone(&call.scope);
    let texts = match scope.context.get("outlets").and_then(|outlets| outlets.get(&name)) {
        Some(serde_json::Value::Array(texts)) => texts.as_slice(),
        Some(text) if text.is_string() => std::slice::from_ref(text),
        _ => &[],
    };
    let label = format!("outlet {name}");
    let mut all = String::new();
    for (at, entry) in texts.iter().enumerate() {
        if !entry.is_string() {
            budget::charge_json(call.state, entry)?;
        }
        let entry = call.scope.field(&label, &Arc::from(crate::print::text(entry)));
        let entry = budget::text(call.state, &entry)?;
        allocate(call.state, 2 * entry.len() as u64)?;
        if at > 0 {
            all.push('\n');
        }
        all.push_str(&entry);
    }
    Ok(Value::from(all))
}

fn set_global(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let (name, value) = (call.text(0)?, budget::json(call.state, &call.value(1))?);
    call.scope.set_global(&name, Some(value))?;
    Ok(Value::from(""))
}

fn time(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let pattern = if call.args.is_empty() { "LT".to_owned() } else { call.text(0)? };
    let Some(now) = &call.scope.context.now else { return Ok(Value::from("")) };
    // Upper bound: each letter of a pattern may expand to the name of a month.
    allocate(call.state, (pattern.len() as u64).saturating_mul(40))?;
    Ok(Value::from(dates::format(now, &pattern, call.scope.context.locale)))
}

/// Implements `format("{} and {name}", x, name=y)`: `{{` and `}}` are single braces; fields without a value
/// are left.
fn format(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let pattern = call.text(0)?;
    let mut args = &call.args[1..];
    let named = args.last().filter(|last| last.is_kwargs()).map(|last| Kwargs::try_from(last.clone()));
    let named = named.transpose()?;
    if named.is_some() {
        args = &args[..args.len() - 1];
    }
    let (mut out, mut next, mut rest) = (String::new(), 0, pattern.as_str());
    let mut allocated = 0_u64;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            out.push_str(&rest[..1]);
            rest = &rest[2..];
            continue;
        }
        let field = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
        let Some((name, behind)) = field.filter(|(name, _)| !name.contains('{')) else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
            continue;
        };
        let value = match name.parse::<usize>() {
            Ok(place) => args.get(place).cloned(),
            Err(_) if name.is_empty() => {
                next += 1;
                args.get(next - 1).cloned()
            }
            Err(_) => named.as_ref().and_then(|named| named.peek::<Value>(name).ok()),
        };
        match value {
            Some(value) => {
                let text = budget::text(call.state, &value)?;
                allocated += text.len() as u64;
                if allocated > 256 {
                    allocate(call.state, 256 + 2 * std::mem::take(&mut allocated))?;
                }
                out.push_str(&text);
            }
            None => {
                call.warn("format_argument_missing", format!("`{{{name}}}` has no value"));
                out.push_str(&rest[..name.len() + 2]);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(Value::from(out))
}
