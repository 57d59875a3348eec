//! Expressions over a map of variables, for conditions of scripts.

use minijinja::value::Serde;
use minijinja::{Environment, Error as Fault, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

use super::rewrite::{Rewritten, rewrite_expression};
use super::{builtins, flat, operators, source, text};
use crate::error::{Error, Location, Result};

/// Bytes of an expression.
const LENGTH: usize = 4 << 10;

/// Tokens of an expression.
const TOKENS: usize = 500;

/// Steps of an expression.
const FUEL: u64 = 10_000;

fn environment() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.set_debug(true);
    builtins::register(&mut env);
    operators::register(&mut env);
    env.add_filter("__flat", flat::flat);
    env
}

/// The value of an expression, such as `年龄 >= 18 and 城市 in ['北京', '上海']`; `null` for one that comes to nothing. It reads
/// the variables and changes nothing.
///
/// ```
/// use serde_json::json;
/// use tambour::prompt::jinja::evaluate;
///
/// let variables = json!({"年龄": 20, "scores": [1, 5]}).as_object().cloned().unwrap_or_default();
/// assert_eq!(evaluate("年龄 + scores[1]", &variables)?, 25);
/// # Ok::<(), tambour::Error>(())
/// ```
///
/// # Errors
/// It is no expression, works on values that it cannot, uses a variable that is not there (code `variable_undefined`), or takes
/// too many steps; with the place.
pub fn evaluate(expression: &str, variables: &Map<String, Value>) -> Result<Value> {
    if expression.len() > LENGTH {
        return Err(
            Error::invalid(format!("an expression has at most {LENGTH} bytes")).coded("limit_exceeded")
        );
    }
    // Longer chains would nest too deeply in the engine.
    if source::tokens(expression, 0..expression.len()).len() > TOKENS {
        return Err(
            Error::invalid(format!("an expression has at most {TOKENS} parts")).coded("limit_exceeded")
        );
    }
    let env = environment();
    let Some(rewritten) = rewrite_expression(expression) else {
        // The engine says what is wrong with it.
        env.compile_expression(expression).map_err(|error| fault(expression, &error, None))?;
        return Err(Error::invalid(format!(
            "`{}` cannot be read as an expression",
            crate::finding::clip(expression, 60)
        ))
        .coded("expression_invalid"));
    };
    // What it comes to is gone through and paid for before it is taken out.
    let paid = format!("{BEFORE}{}){AFTER}", rewritten.text);
    let value = env
        .compile_expression(&paid)
        .and_then(|compiled| compiled.eval(minijinja::Value::from(Serde(variables))))
        .and_then(|value| match value.is_undefined() {
            true => Err(Fault::new(ErrorKind::UndefinedError, "it is not defined")),
            false => text::json(&value),
        });
    value.map_err(|error| fault(expression, &error, Some(&rewritten)))
}

/// What stands around a changed expression.
const BEFORE: &str = "(";
const AFTER: &str = "|__flat";

/// Whether a condition holds; `None` if it uses a variable that is not there. Empty texts, lists and maps, 0 and `null` are
/// false.
///
/// # Errors
/// Those of [`evaluate`] but that for missing variables.
pub fn condition(expression: &str, variables: &Map<String, Value>) -> Result<Option<bool>> {
    match evaluate(expression, variables) {
        Ok(value) => Ok(Some(match value {
            Value::Null => false,
            Value::Bool(holds) => holds,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
        })),
        Err(error) if error.code() == Some("variable_undefined") => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names of the variables that an expression reads, sorted.
///
/// # Errors
/// It is no expression.
pub fn variables(expression: &str) -> Result<Vec<String>> {
    let env = environment();
    let compiled = env.compile_expression(expression).map_err(|error| fault(expression, &error, None))?;
    let mut names: Vec<String> = compiled.undeclared_variables(false).into_iter().collect();
    names.sort();
    Ok(names)
}

fn fault(expression: &str, error: &Fault, rewritten: Option<&Rewritten>) -> Error {
    let code = match error.kind() {
        ErrorKind::UndefinedError => "variable_undefined",
        ErrorKind::OutOfFuel => "limit_exceeded",
        _ => "expression_invalid",
    };
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let offset = error.range().map_or(0, |range| match rewritten {
        Some(rewritten) => {
            rewritten.origin(range.start.saturating_sub(BEFORE.len()).min(rewritten.text.len()))
        }
        None => range.start,
    });
    let offset = offset.min(expression.len());
    let place = Location::at(expression, offset);
    let message = format!("column {} of `{}`: {detail}", place.column, crate::finding::clip(expression, 60));
    Error::malformed(message, Some(place)).coded(code)
}
