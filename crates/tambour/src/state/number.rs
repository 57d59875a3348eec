//! Arithmetic of the state (F-113, F-114): exact in decimals, integers stay integers.

use std::borrow::Cow;

use bigdecimal::{BigDecimal, Zero};
use serde_json::Number;

use super::operation::{Op, Reason, Refusal};

/// Beyond this a double no longer holds every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value of a place after `ADD`, `SUB`, `MUL` or `DIV`.
///
/// The result is an integer if the place held one and it is exact; a decimal is the double next to the exact decimal result.
pub(super) fn calculate(op: Op, place: &Number, operand: &Number) -> Result<Number, Refusal> {
    if let (Some(a), Some(b)) = (integer(place), integer(operand)) {
        let result = match op {
            Op::Sub => a.checked_sub(b),
            Op::Mul => a.checked_mul(b),
            Op::Div if b == 0 => return Err(zero()),
            Op::Div if a % b == 0 => Some(a / b),
            Op::Div => return decimal(op, place, operand),
            _ => a.checked_add(b),
        };
        return result.and_then(number).ok_or_else(too_large);
    }
    decimal(op, place, operand)
}

/// Whether a number is kept exactly: a whole number of 64 bits, or a decimal within the whole numbers that a double holds.
pub(super) fn is_in_range(number: &Number) -> bool {
    integer(number).is_some() || number.as_f64().is_some_and(|double| double.abs() <= EXACT)
}

/// A text of JSON whose numbers that no double holds are the largest one, which is refused by itself wherever it is used
/// . A text without such numbers is as it was.
#[must_use]
pub fn bounded(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut result, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
            }
            b'0'..=b'9' | b'-' => {
                let word = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(word).count();
                let number = &text[at..end];
                if number.parse().is_ok_and(f64::is_infinite) {
                    result.push_str(&text[copied..at]);
                    result.push_str(if number.starts_with('-') { "-" } else { "" });
                    result.push_str(LARGEST);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[copied..]);
    Cow::Owned(result)
}

/// The largest double.
const LARGEST: &str = "1.7976931348623157e308";

fn decimal(op: Op, place: &Number, operand: &Number) -> Result<Number, Refusal> {
    let (a, b) = (exact(place)?, exact(operand)?);
    let result = match op {
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if b.is_zero() => return Err(zero()),
        Op::Div => a / b,
        _ => a + b,
    };
    if integer(place).is_some() && result.is_integer() {
        let digits = result.with_scale(0).to_plain_string();
        return digits.parse().ok().and_then(number).ok_or_else(too_large);
    }
    let double: f64 = result.to_scientific_notation().parse().unwrap_or(f64::NAN);
    let Some(number) = Number::from_f64(double) else {
        let message = "the result is too large for a number";
        return Err(Refusal::new(Reason::NumberNotFinite, message));
    };
    // Integers that far out would be rounded without a word.
    if double.abs() > EXACT && exact(&number)? != result {
        return Err(too_large());
    }
    Ok(number)
}

/// An integer as JSON may hold it.
fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn number(value: i128) -> Option<Number> {
    match i64::try_from(value) {
        Ok(value) => Some(value.into()),
        Err(_) => u64::try_from(value).ok().map(Number::from),
    }
}

/// The decimal that is written, not the binary one next to it.
fn exact(number: &Number) -> Result<BigDecimal, Refusal> {
    number.to_string().parse().map_err(|_| too_large())
}

fn zero() -> Refusal {
    Refusal::new(Reason::DivisionByZero, "a division by 0")
}

fn too_large() -> Refusal {
    Refusal::new(Reason::NumberOutOfRange, "the result lies beyond the range in which numbers are exact")
}
