//! Typed comparisons for conditions: values of the same type, or a number with a text that is a number.
//! Comparing values of different types is an error that names both types.

use std::fmt;

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use serde_json::Number;

use super::operators::{assert_defined, charge_comparison, contains, ordered};
use super::source::{TokenKind, tokens};
use super::{budget::charge, grammar};

/// Type of a value, as comparisons distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// `null`, or `none`.
    Nothing,
    /// `true` or `false`.
    Flag,
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

impl Type {
    /// Returns the type of a variable's value.
    #[must_use]
    pub fn of(value: &serde_json::Value) -> Type {
        match value {
            serde_json::Value::Null => Type::Nothing,
            serde_json::Value::Bool(_) => Type::Flag,
            serde_json::Value::Number(_) => Type::Number,
            serde_json::Value::String(_) => Type::Text,
            serde_json::Value::Array(_) => Type::List,
            serde_json::Value::Object(_) => Type::Map,
        }
    }

    fn of_engine(value: &Value) -> Type {
        match value.kind() {
            ValueKind::None => Type::Nothing,
            ValueKind::Bool => Type::Flag,
            ValueKind::Number => Type::Number,
            ValueKind::String => Type::Text,
            ValueKind::Seq | ValueKind::Iterable => Type::List,
            ValueKind::Map => Type::Map,
            _ => Type::Other,
        }
    }
}

/// A comparison of two values of different types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Comparison operator, such as `>`.
    pub sign: &'static str,
    /// Type of the left operand.
    pub left: Type,
    /// Type of the right operand.
    pub right: Type,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` compares values of different types", self.sign)
    }
}

impl std::error::Error for Mismatch {}

/// Comparison operators, each with the filter that replaces it and the tests of the same meaning.
const SIGNS: [(&str, &str, &[&str]); 6] = [
    ("==", "__eq", &["eq", "equalto", "=="]),
    ("!=", "__ne", &["ne", "!="]),
    ("<", "__lt", &["lt", "lessthan", "<"]),
    ("<=", "__le", &["le", "<="]),
    (">", "__gt", &["gt", "greaterthan", ">"]),
    (">=", "__ge", &["ge", ">="]),
];

/// Registers these comparisons in place of the engine's.
pub(super) fn register(env: &mut Environment<'_>) {
    for (sign, filter, tests) in SIGNS {
        env.add_filter(filter, move |state: &State<'_, '_>, a: &Value, b: &Value| compare(state, sign, a, b));
        for test in tests {
            env.add_test(*test, move |state: &State<'_, '_>, a: &Value, b: &Value| {
                compare(state, sign, a, b)
            });
        }
    }
    env.add_filter("__in", |state: &State<'_, '_>, a: &Value, b: &Value| is_in(state, a, b));
    env.add_filter("__not_in", |state: &State<'_, '_>, a: &Value, b: &Value| {
        is_in(state, a, b).map(|found| !found)
    });
    env.add_filter("__chain", chain);
}

/// Parses a text that is a number as a whole: digits with an optional sign, point and exponent, half or full
/// width, surrounded by white space.
#[must_use]
pub fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let narrow: String = text.chars().map(narrow).collect();
    let unsigned = narrow.strip_prefix(['+', '-']).unwrap_or(&narrow);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if !digits(whole) || !fraction.is_none_or(digits) || !exponent.is_none_or(digits) {
        return None;
    }
    let bare = narrow.strip_prefix('+').unwrap_or(&narrow);
    if fraction.is_none() && exponent.is_none() {
        if let Ok(number) = bare.parse::<i64>() {
            return Some(number.into());
        }
        if let Ok(number) = bare.parse::<u64>() {
            return Some(number.into());
        }
    }
    bare.parse::<f64>().ok().and_then(Number::from_f64)
}

/// Longest text that may be a number, in bytes.
const LONGEST: usize = 100;

/// Returns the half-width form of a digit or sign.
fn narrow(c: char) -> char {
    match c {
        '０'..='９' | '＋' | '－' | '．' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '−' => '-',
        _ => c,
    }
}

fn compare(state: &State<'_, '_>, sign: &'static str, a: &Value, b: &Value) -> Result<bool, Error> {
    assert_defined(state, a)?;
    assert_defined(state, b)?;
    charge_comparison(state, a, b)?;
    let (left, right) = (Type::of_engine(a), Type::of_engine(b));
    let equality = sign == "==" || sign == "!=";
    match (left, right) {
        _ if left == right => return Ok(ordered(sign, a, b)),
        // Any value can be tested for being `none`.
        (Type::Nothing, _) | (_, Type::Nothing) if equality => return Ok(sign == "!="),
        (Type::Number, Type::Text) => {
            if let Some(b) = of_text(b) {
                return Ok(ordered(sign, a, &b));
            }
        }
        (Type::Text, Type::Number) => {
            if let Some(a) = of_text(a) {
                return Ok(ordered(sign, &a, b));
            }
        }
        _ => {}
    }
    let mismatch = Mismatch { sign, left, right };
    Err(Error::new(ErrorKind::InvalidOperation, mismatch.to_string()).with_source(mismatch))
}

/// Returns the number that a text spells.
fn of_text(value: &Value) -> Option<Value> {
    let number = number(value.as_str()?)?;
    let whole = number.as_i64().map(Value::from).or_else(|| number.as_u64().map(Value::from));
    whole.or_else(|| number.as_f64().map(Value::from))
}

/// Returns true if `container` contains `value`; in lists, numbers match texts that spell them.
fn is_in(state: &State<'_, '_>, value: &Value, container: &Value) -> Result<bool, Error> {
    if contains(state, container, value)? {
        return Ok(true);
    }
    if Type::of_engine(container) != Type::List {
        return Ok(false);
    }
    for item in container.try_iter()? {
        charge(state, 1, 0)?;
        let same = match (Type::of_engine(value), Type::of_engine(&item)) {
            (Type::Text, Type::Number) => of_text(value).is_some_and(|value| value == item),
            (Type::Number, Type::Text) => of_text(&item).is_some_and(|item| item == *value),
            _ => false,
        };
        if same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Evaluates `a < b <= c` and so on: operators and operands alternate; stops at the first comparison that is
/// false.
#[expect(clippy::needless_pass_by_value, reason = "the engine gives them so")]
fn chain(state: &State<'_, '_>, first: &Value, rest: Rest<Value>) -> Result<bool, Error> {
    let mut left = first;
    for pair in rest.chunks_exact(2) {
        let (sign, right) = (pair[0].as_str().unwrap_or_default(), &pair[1]);
        let known = SIGNS.iter().find(|(known, ..)| *known == sign);
        let holds = match (sign, known) {
            ("in", _) => is_in(state, left, right)?,
            ("not in", _) => !is_in(state, left, right)?,
            (_, Some((sign, ..))) => compare(state, sign, left, right)?,
            (_, None) => false,
        };
        if !holds {
            return Ok(false);
        }
        left = right;
    }
    Ok(true)
}

/// An operand of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A variable, by its name.
    Variable(String),
    /// A literal value.
    Literal(serde_json::Value),
    /// Any other expression.
    Other,
}

/// Returns the comparisons of an expression, in order: `==`, `!=`, `<`, `<=`, `>` and `>=`. Empty if it
/// cannot be parsed.
#[must_use]
pub fn comparisons(expression: &str) -> Vec<(Operand, &'static str, Operand)> {
    let tokens = tokens(expression, 0..expression.len());
    let Some((_, compared)) = grammar::comparing(expression, &tokens) else { return Vec::new() };
    let operand = |range: std::ops::Range<usize>| {
        let mut inside = tokens.iter().filter(|token| range.contains(&token.range.start));
        let text = &expression[range.clone()];
        match (inside.next().map(|token| token.kind), inside.next()) {
            (Some(TokenKind::Name), None) => match text {
                "true" | "True" => Operand::Literal(true.into()),
                "false" | "False" => Operand::Literal(false.into()),
                "none" | "None" => Operand::Literal(serde_json::Value::Null),
                name => Operand::Variable(name.to_owned()),
            },
            (Some(TokenKind::Text), None) => {
                Operand::Literal(text.trim_matches(['\'', '"']).to_owned().into())
            }
            (Some(TokenKind::Number), None) => {
                number(text).map_or(Operand::Other, |number| Operand::Literal(number.into()))
            }
            _ => Operand::Other,
        }
    };
    let signs = compared.into_iter().filter(|(_, sign, _)| SIGNS.iter().any(|(known, ..)| known == sign));
    signs.map(|(left, sign, right)| (operand(left), sign, operand(right))).collect()
}
