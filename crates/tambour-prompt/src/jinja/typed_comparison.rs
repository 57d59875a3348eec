//! Typed comparisons for conditions: values of the same type, or a number with a text that is a number. Any
//! value can be tested for being `none`. Any other comparison is an error that names both types.

use std::fmt;

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use serde_json::Number;

use super::operators::{assert_defined, charge_comparison, contains, satisfies};
use super::source::{TokenKind, tokenize};
use super::{budget::charge, grammar};

/// Type of a value, as comparisons distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OperandType {
    /// `null`, or `none`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A list.
    List,
    /// A map.
    Map,
    /// Any other value that an expression may produce.
    Other,
}

impl OperandType {
    /// Returns the type of a variable's value.
    #[must_use]
    pub(crate) fn from_json(value: &serde_json::Value) -> OperandType {
        match value {
            serde_json::Value::Null => OperandType::Null,
            serde_json::Value::Bool(_) => OperandType::Boolean,
            serde_json::Value::Number(_) => OperandType::Number,
            serde_json::Value::String(_) => OperandType::Text,
            serde_json::Value::Array(_) => OperandType::List,
            serde_json::Value::Object(_) => OperandType::Map,
        }
    }

    fn from_value(value: &Value) -> OperandType {
        match value.kind() {
            ValueKind::None => OperandType::Null,
            ValueKind::Bool => OperandType::Boolean,
            ValueKind::Number => OperandType::Number,
            ValueKind::String => OperandType::Text,
            ValueKind::Seq | ValueKind::Iterable => OperandType::List,
            ValueKind::Map => OperandType::Map,
            _ => OperandType::Other,
        }
    }
}

/// A comparison of two values of different types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeMismatch {
    /// Comparison operator, such as `>`.
    pub(crate) operator: &'static str,
    /// Type of the left operand.
    pub(crate) left: OperandType,
    /// Type of the right operand.
    pub(crate) right: OperandType,
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` compares values of different types", self.operator)
    }
}

impl std::error::Error for TypeMismatch {}

/// Comparison operators, each with the filter that replaces it and the tests of the same meaning.
const COMPARISONS: [(&str, &str, &[&str]); 6] = [
    ("==", "__eq", &["eq", "equalto", "=="]),
    ("!=", "__ne", &["ne", "!="]),
    ("<", "__lt", &["lt", "lessthan", "<"]),
    ("<=", "__le", &["le", "<="]),
    (">", "__gt", &["gt", "greaterthan", ">"]),
    (">=", "__ge", &["ge", ">="]),
];

/// Registers the typed comparisons in place of the filters of `operators` and the tests of minijinja.
pub(super) fn register(env: &mut Environment<'_>) {
    for (operator, filter, tests) in COMPARISONS {
        env.add_filter(filter, move |state: &State<'_, '_>, a: &Value, b: &Value| {
            compare_typed(state, operator, a, b)
        });
        for test in tests {
            env.add_test(*test, move |state: &State<'_, '_>, a: &Value, b: &Value| {
                compare_typed(state, operator, a, b)
            });
        }
    }
    env.add_filter("__in", |state: &State<'_, '_>, a: &Value, b: &Value| contains_typed(state, a, b));
    env.add_filter("__not_in", |state: &State<'_, '_>, a: &Value, b: &Value| {
        contains_typed(state, a, b).map(|found| !found)
    });
    env.add_filter("__chain", compare_typed_chain);
}

/// Parses a text that is a number as a whole: digits with an optional sign, decimal point and exponent, half
/// or full width. White space around the number is allowed.
#[must_use]
pub(crate) fn parse_number(text: &str) -> Option<Number> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_NUMBER_BYTES {
        return None;
    }
    let half_width: String = text.chars().map(to_half_width).collect();
    let unsigned = half_width.strip_prefix(['+', '-']).unwrap_or(&half_width);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (mantissa, None),
    };
    if !is_digits(integer) || !fraction.is_none_or(is_digits) || !exponent.is_none_or(is_digits) {
        return None;
    }
    let without_plus = half_width.strip_prefix('+').unwrap_or(&half_width);
    if fraction.is_none() && exponent.is_none() {
        if let Ok(number) = without_plus.parse::<i64>() {
            return Some(number.into());
        }
        if let Ok(number) = without_plus.parse::<u64>() {
            return Some(number.into());
        }
    }
    without_plus.parse::<f64>().ok().and_then(Number::from_f64)
}

/// Maximum length, in bytes, of a text that may be a number.
const MAX_NUMBER_BYTES: usize = 100;

/// Returns the half-width form of a digit or sign.
fn to_half_width(c: char) -> char {
    match c {
        // Full-width forms have the order of ASCII, 0xFEE0 above it.
        '０'..='９' | '＋' | '－' | '．' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '−' => '-',
        _ => c,
    }
}

/// Evaluates a comparison with `operator`. Values of different types are an error with a [`TypeMismatch`].
fn compare_typed(state: &State<'_, '_>, operator: &'static str, a: &Value, b: &Value) -> Result<bool, Error> {
    assert_defined(state, a)?;
    assert_defined(state, b)?;
    charge_comparison(state, a, b)?;
    let (left, right) = (OperandType::from_value(a), OperandType::from_value(b));
    let is_equality = operator == "==" || operator == "!=";
    match (left, right) {
        _ if left == right => return Ok(satisfies(operator, a, b)),
        // Any value can be tested for being `none`.
        (OperandType::Null, _) | (_, OperandType::Null) if is_equality => return Ok(operator == "!="),
        (OperandType::Number, OperandType::Text) => {
            if let Some(b) = number_from_text(b) {
                return Ok(satisfies(operator, a, &b));
            }
        }
        (OperandType::Text, OperandType::Number) => {
            if let Some(a) = number_from_text(a) {
                return Ok(satisfies(operator, &a, b));
            }
        }
        _ => {}
    }
    let mismatch = TypeMismatch { operator, left, right };
    Err(Error::new(ErrorKind::InvalidOperation, mismatch.to_string()).with_source(mismatch))
}

/// Returns the number that a text spells.
fn number_from_text(value: &Value) -> Option<Value> {
    let number = parse_number(value.as_str()?)?;
    let integer = number.as_i64().map(Value::from).or_else(|| number.as_u64().map(Value::from));
    integer.or_else(|| number.as_f64().map(Value::from))
}

/// Returns true if `container` contains `value`. In a list a number matches a text that spells it, and vice
/// versa.
fn contains_typed(state: &State<'_, '_>, value: &Value, container: &Value) -> Result<bool, Error> {
    if contains(state, container, value)? {
        return Ok(true);
    }
    if OperandType::from_value(container) != OperandType::List {
        return Ok(false);
    }
    for item in container.try_iter()? {
        charge(state, 1, 0)?;
        let is_same = match (OperandType::from_value(value), OperandType::from_value(&item)) {
            (OperandType::Text, OperandType::Number) => {
                number_from_text(value).is_some_and(|value| value == item)
            }
            (OperandType::Number, OperandType::Text) => {
                number_from_text(&item).is_some_and(|item| item == *value)
            }
            _ => false,
        };
        if is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Evaluates `a < b <= c` and so on. In `pairs` each operator is followed by its right operand. Stops at the
/// first comparison that is false.
#[expect(clippy::needless_pass_by_value, reason = "minijinja passes them by value")]
fn compare_typed_chain(state: &State<'_, '_>, first: &Value, pairs: Rest<Value>) -> Result<bool, Error> {
    let mut left = first;
    for pair in pairs.chunks_exact(2) {
        let (operator, right) = (pair[0].as_str().unwrap_or_default(), &pair[1]);
        let comparison = COMPARISONS.iter().find(|(comparison, ..)| *comparison == operator);
        let is_true = match (operator, comparison) {
            ("in", _) => contains_typed(state, left, right)?,
            ("not in", _) => !contains_typed(state, left, right)?,
            (_, Some((operator, ..))) => compare_typed(state, operator, left, right)?,
            // The grammar writes no other operator.
            (_, None) => false,
        };
        if !is_true {
            return Ok(false);
        }
        left = right;
    }
    Ok(true)
}

/// An operand of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A variable, by its name.
    Variable(String),
    /// A literal value.
    Literal(serde_json::Value),
    /// Any other expression.
    Other,
}

/// Returns the comparisons of an expression (`==`, `!=`, `<`, `<=`, `>` and `>=`) in order, with their
/// operands. Empty if the expression cannot be parsed.
#[must_use]
pub(crate) fn list_comparisons(expression: &str) -> Vec<(Operand, &'static str, Operand)> {
    let tokens = tokenize(expression, 0..expression.len());
    let Some((_, comparisons)) = grammar::parse_comparisons(expression, &tokens) else { return Vec::new() };
    let operand = |range: std::ops::Range<usize>| {
        let mut operand_tokens = tokens.iter().filter(|token| range.contains(&token.range.start));
        let text = &expression[range.clone()];
        match (operand_tokens.next().map(|token| token.kind), operand_tokens.next()) {
            (Some(TokenKind::Name), None) => match text {
                "true" | "True" => Operand::Literal(true.into()),
                "false" | "False" => Operand::Literal(false.into()),
                "none" | "None" => Operand::Literal(serde_json::Value::Null),
                name => Operand::Variable(name.to_owned()),
            },
            (Some(TokenKind::String), None) => {
                Operand::Literal(text.trim_matches(['\'', '"']).to_owned().into())
            }
            (Some(TokenKind::Number), None) => {
                parse_number(text).map_or(Operand::Other, |number| Operand::Literal(number.into()))
            }
            _ => Operand::Other,
        }
    };
    // Leaves out `in` and `not in`.
    let typed_comparisons = comparisons
        .into_iter()
        .filter(|(_, operator, _)| COMPARISONS.iter().any(|(candidate, ..)| candidate == operator));
    typed_comparisons.map(|(left, operator, right)| (operand(left), operator, operand(right))).collect()
}
