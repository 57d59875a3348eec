//! The functions of a template (F-021, F-036), and those that migrated macros call.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Kwargs, Object, ObjectRepr, Value};
use minijinja::{Environment, Error, ErrorKind, State};

use super::scope::Scope;
use super::values::{Moment, is_missing};
use super::{chance, dates, flat, marks, tavern, text};

/// A function that knows where it is called.
#[derive(Clone, Copy)]
pub(super) struct Function {
    name: &'static str,
    run: fn(&mut Call<'_>) -> Result<Value, Error>,
    site: Option<usize>,
}

/// One call of a function.
pub(super) struct Call<'a> {
    pub(super) scope: Arc<Scope>,
    pub(super) name: &'static str,
    pub(super) args: &'a [Value],
    /// The place in the template.
    pub(super) site: Option<usize>,
}

/// All functions that know their place.
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
    function("st_trim", |_| Ok(Value::from(marks::TRIM.to_string()))),
    function("st_noop", |_| Ok(Value::from(marks::BARRIER.to_string()))),
    function("st_text", |call| {
        let mut all = String::new();
        for at in 0..call.args.len() {
            all.push_str(&call.text(at)?);
        }
        Ok(Value::from(all))
    }),
    function("__text", |call| Ok(Value::from(call.text(0)?))),
    function("__keep", |call| {
        for at in (0..call.args.len()).step_by(2) {
            call.scope.set_local(&call.text(at)?, call.value(at + 1));
        }
        Ok(Value::from(""))
    }),
];

const fn function(name: &'static str, run: fn(&mut Call<'_>) -> Result<Value, Error>) -> Function {
    Function { name, run, site: None }
}

/// Names of the functions of a template; those with `st_` are called by migrated macros.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name).filter(|name| !name.starts_with("__"))
}

/// Whether calls of this function are told their place.
pub(super) fn is_placed(name: &str) -> bool {
    !name.starts_with("__") && FUNCTIONS.iter().any(|function| function.name == name)
}

/// What stands before the name of a function in a changed source: no variable has such a name, whatever is set.
pub(super) const OURS: &str = "__f_";

pub(super) fn register(env: &mut Environment<'_>) {
    for function in FUNCTIONS {
        env.add_global(function.name, Value::from_object(*function));
        env.add_global(format!("{OURS}{}", function.name), Value::from_object(*function));
    }
    env.add_function("__flat", flat::flat);
    // It would print all variables.
    env.remove_global("debug");
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
        (self.run)(&mut Call { scope, name: self.name, args, site: self.site })
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

impl Call<'_> {
    /// An argument, undefined if there are fewer.
    pub(super) fn value(&self, at: usize) -> Value {
        self.args.get(at).cloned().unwrap_or_default()
    }

    /// An argument as text.
    pub(super) fn text(&self, at: usize) -> Result<String, Error> {
        match self.args.get(at) {
            Some(value) => Ok(text::text(value)?.into_owned()),
            None => {
                Err(Error::new(ErrorKind::MissingArgument, format!("{} takes more arguments", self.name)))
            }
        }
    }

    pub(super) fn warn(&self, code: &'static str, message: impl Into<String>) {
        self.scope.warn(code, message, self.site);
    }

    /// The items to choose from: those of a list, or the arguments.
    fn choices(&self) -> Result<Vec<Value>, Error> {
        match self.args {
            [one] if one.as_str().is_none() && !is_missing(one) && one.try_iter().is_ok() => {
                Ok(one.try_iter()?.collect())
            }
            args => Ok(args.to_vec()),
        }
    }
}

fn random(call: &mut Call<'_>) -> Result<Value, Error> {
    let choices = call.choices()?;
    if choices.is_empty() {
        return Ok(Value::from(""));
    }
    Ok(choices[call.scope.random(|source| chance::below(source, choices.len()))].clone())
}

fn pick(call: &mut Call<'_>) -> Result<Value, Error> {
    let choices = call.choices()?;
    if choices.is_empty() {
        return Ok(Value::from(""));
    }
    Ok(choices[call.scope.stable(call.site, choices.len())].clone())
}

fn roll(call: &mut Call<'_>) -> Result<Value, Error> {
    let formula = call.text(0)?;
    match call.scope.random(|source| chance::roll(source, &formula)) {
        Ok(sum) => Ok(Value::from(sum)),
        Err(message) => {
            call.warn("dice_invalid", message);
            Ok(Value::from(""))
        }
    }
}

fn time_diff(call: &mut Call<'_>) -> Result<Value, Error> {
    let now = call.scope.context.now.clone();
    let read = |at: usize| -> Result<Option<jiff::Timestamp>, Error> {
        if let Some(moment) = call.value(at).downcast_object_ref::<Moment>() {
            return Ok(Some(moment.0.timestamp()));
        }
        let text = call.text(at)?;
        let time = dates::parse(&text, now.as_ref()).map(|time| time.timestamp());
        if time.is_none() {
            call.warn("time_invalid", format!("`{}` is no time", crate::finding::clip(&text, 40)));
        }
        Ok(time)
    };
    let (Some(first), Some(second)) = (read(0)?, read(1)?) else { return Ok(Value::from("")) };
    let span = first.as_millisecond().saturating_sub(second.as_millisecond());
    Ok(Value::from(dates::humanise(span, call.scope.context.locale)))
}

/// The entries of an outlet, joined by line breaks (F-035).
fn outlet(call: &mut Call<'_>) -> Result<Value, Error> {
    let name = call.text(0)?;
    let outlets = call.scope.context.get("outlets").cloned();
    let texts: Vec<String> = match outlets.as_ref().and_then(|outlets| outlets.get(&name)) {
        Some(serde_json::Value::String(text)) => vec![text.clone()],
        Some(serde_json::Value::Array(texts)) => {
            texts.iter().map(|text| crate::prompt::print::text(text).into_owned()).collect()
        }
        _ => Vec::new(),
    };
    let label = format!("outlet {name}");
    let mut all = String::new();
    for (at, entry) in texts.iter().enumerate() {
        let entry = call.scope.field(&label, &entry.as_str().into());
        if at > 0 {
            all.push('\n');
        }
        all.push_str(&text::text(&entry)?);
    }
    Ok(Value::from(all))
}

fn set_global(call: &mut Call<'_>) -> Result<Value, Error> {
    let (name, value) = (call.text(0)?, text::json(&call.value(1))?);
    call.scope.set_global(&name, Some(value));
    Ok(Value::from(""))
}

fn time(call: &mut Call<'_>) -> Result<Value, Error> {
    let pattern = if call.args.is_empty() { "LT".to_owned() } else { call.text(0)? };
    let Some(now) = &call.scope.context.now else { return Ok(Value::from("")) };
    Ok(Value::from(dates::format(now, &pattern, call.scope.context.locale)))
}

/// `format("{} and {name}", x, name=y)`: `{{` and `}}` are single braces; what has no value stays.
fn format(call: &mut Call<'_>) -> Result<Value, Error> {
    let pattern = call.text(0)?;
    let mut args = &call.args[1..];
    let named = args.last().filter(|last| last.is_kwargs()).map(|last| Kwargs::try_from(last.clone()));
    let named = named.transpose()?;
    if named.is_some() {
        args = &args[..args.len() - 1];
    }
    let (mut out, mut next, mut rest) = (String::new(), 0, pattern.as_str());
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
            Some(value) => out.push_str(&text::text(&value)?),
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
