//! Expressions over a map of variables, used for conditions of scripts.

use minijinja::value::Serde;
use minijinja::{Environment, Error as EngineError, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

use super::rewrite::{RewrittenSource, rewrite_comparisons, rewrite_expression};
use super::typed_comparison::{self, TypeMismatch};
use super::{builtins, flatten, operators, source, text};
use tambour::error::{Error, Location, Result};

/// Maximum length of an expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 4 << 10;

/// Maximum number of tokens of an expression.
const MAX_EXPRESSION_TOKENS: usize = 500;

/// Maximum number of steps of an evaluation.
const EXPRESSION_FUEL: u64 = 10_000;

/// Creates the environment of expressions: without the functions of prompts.
fn expression_environment() -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(EXPRESSION_FUEL));
    env.set_debug(true);
    builtins::register(&mut env);
    operators::register(&mut env);
    env.add_filter("__flat", flatten::flatten);
    env
}

/// Evaluates an expression, such as `年龄 >= 18 and 城市 in ['北京', '上海']`; `none` gives `null`. The expression
/// cannot change the variables.
///
/// ```
/// use serde_json::json;
/// use tambour_prompt::jinja::evaluate;
///
/// let variables = json!({"年龄": 20, "scores": [1, 5]}).as_object().cloned().unwrap_or_default();
/// assert_eq!(evaluate("年龄 + scores[1]", &variables)?, 25);
/// # Ok::<(), tambour::Error>(())
/// ```
///
/// # Errors
/// Fails when the text is not an expression, is too long, applies an operator to unsuitable values, reads a
/// missing variable (code `variable_undefined`) or takes too many steps. The error has the position if it
/// concerns only a part of the text.
pub fn evaluate(expression: &str, variables: &Map<String, Value>) -> Result<Value> {
    let is_typed = false;
    evaluate_as(expression, variables, is_typed).map_err(|failure| failure.error)
}

/// Failed evaluation of an expression.
#[derive(Debug)]
pub(crate) struct ExpressionFailure {
    /// The error in words, with the position if there is one.
    pub(crate) error: Error,
    /// The comparison of values of different types, if that was the cause.
    pub(crate) mismatch: Option<TypeMismatch>,
}

impl From<Error> for ExpressionFailure {
    fn from(error: Error) -> ExpressionFailure {
        ExpressionFailure { error, mismatch: None }
    }
}

/// Evaluates an expression. With `is_typed`, only the comparisons of [`evaluate_typed_condition`] are
/// allowed.
fn evaluate_as(
    expression: &str,
    variables: &Map<String, Value>,
    is_typed: bool,
) -> std::result::Result<Value, ExpressionFailure> {
    if expression.len() > MAX_EXPRESSION_BYTES {
        let error = Error::invalid(format!("an expression may have at most {MAX_EXPRESSION_BYTES} bytes"));
        return Err(error.with_code("limit_exceeded").into());
    }
    // A longer chain of operators would nest too deeply in minijinja.
    if source::tokenize(expression, 0..expression.len()).len() > MAX_EXPRESSION_TOKENS {
        let error = Error::invalid(format!("an expression may have at most {MAX_EXPRESSION_TOKENS} parts"));
        return Err(error.with_code("limit_exceeded").into());
    }
    let mut env = expression_environment();
    if is_typed {
        typed_comparison::register(&mut env);
    }
    let rewritten_source =
        if is_typed { rewrite_comparisons(expression) } else { rewrite_expression(expression) };
    let Some(rewritten_source) = rewritten_source else {
        // Minijinja's own error explains the problem.
        env.compile_expression(expression).map_err(|error| expression_error(expression, &error, None))?;
        let excerpt = tambour::finding::clip(expression, 60);
        let error = Error::invalid(format!("`{excerpt}` cannot be read as an expression"));
        return Err(error.with_code("expression_invalid").into());
    };
    // The appended filter traverses the result and charges for it before it is converted.
    let charged_source = format!("{CHARGE_PREFIX}{}){CHARGE_SUFFIX}", rewritten_source.text);
    let value = env
        .compile_expression(&charged_source)
        .and_then(|compiled_expression| compiled_expression.eval(minijinja::Value::from(Serde(variables))))
        .and_then(|value| match value.is_undefined() {
            true => Err(EngineError::new(ErrorKind::UndefinedError, "it is not defined")),
            false => text::to_json(&value),
        });
    value.map_err(|engine_error| {
        // Finds the mismatch among the causes of the error.
        let mut cause = std::error::Error::source(&engine_error);
        let mut mismatch = None;
        while let Some(error) = cause {
            mismatch = mismatch.or_else(|| error.downcast_ref::<TypeMismatch>().copied());
            cause = error.source();
        }
        ExpressionFailure {
            error: expression_error(expression, &engine_error, Some(&rewritten_source)),
            mismatch,
        }
    })
}

/// Text before the rewritten expression.
const CHARGE_PREFIX: &str = "(";
/// Text after the rewritten expression and its closing parenthesis: the filter that charges for the result.
const CHARGE_SUFFIX: &str = "|__flat";

/// Evaluates a condition; returns `None` if it reads a missing variable. Empty texts, lists and maps, 0 and
/// `null` are false.
///
/// # Errors
/// Same as [`evaluate`], except for missing variables.
pub fn evaluate_condition(expression: &str, variables: &Map<String, Value>) -> Result<Option<bool>> {
    match evaluate(expression, variables) {
        Ok(value) => Ok(Some(is_true(&value))),
        Err(error) if error.code() == Some("variable_undefined") => Ok(None),
        Err(error) => Err(error),
    }
}

/// Like [`evaluate_condition`], but compares only values of the same type, or a number with a text that is a
/// number as a whole ([`parse_number`](super::parse_number)). Any value can be compared with `none` for
/// equality.
///
/// # Errors
/// Same as [`evaluate`], except for missing variables; also fails when values of different types are
/// compared.
pub(crate) fn evaluate_typed_condition(
    expression: &str,
    variables: &Map<String, Value>,
) -> std::result::Result<Option<bool>, ExpressionFailure> {
    let is_typed = true;
    match evaluate_as(expression, variables, is_typed) {
        Ok(value) => Ok(Some(is_true(&value))),
        Err(failure) if failure.error.code() == Some("variable_undefined") => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns true for a value that counts as true in a condition.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Returns the names of the variables that an expression reads, sorted.
///
/// # Errors
/// The text is not an expression.
pub fn list_variables(expression: &str) -> Result<Vec<String>> {
    let env = expression_environment();
    let compiled_expression =
        env.compile_expression(expression).map_err(|error| expression_error(expression, &error, None))?;
    let includes_fields = false;
    let mut names: Vec<String> =
        compiled_expression.undeclared_variables(includes_fields).into_iter().collect();
    names.sort();
    Ok(names)
}

/// Converts an engine error, with its code and its position in the expression.
fn expression_error(
    expression: &str,
    error: &EngineError,
    rewritten_source: Option<&RewrittenSource>,
) -> Error {
    let code = match error.kind() {
        ErrorKind::UndefinedError => "variable_undefined",
        ErrorKind::OutOfFuel => "limit_exceeded",
        _ => "expression_invalid",
    };
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let offset = error.range().map_or(0, |range| match rewritten_source {
        Some(rewritten_source) => rewritten_source
            .source_offset(range.start.saturating_sub(CHARGE_PREFIX.len()).min(rewritten_source.text.len())),
        None => range.start,
    });
    let offset = offset.min(expression.len());
    let location = Location::from_offset(expression, offset);
    let message =
        format!("column {} of `{}`: {detail}", location.column, tambour::finding::clip(expression, 60));
    Error::malformed(message, Some(location)).with_code(code)
}
