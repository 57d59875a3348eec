//! Arithmetic of the state (F-113, F-114): exact decimals; integers stay integers.

use std::borrow::Cow;

use bigdecimal::{BigDecimal, Zero};
use serde_json::Number;

use super::operation::{Op, OperationRefusal, RefusalReason};

/// Absolute value up to which a double holds every integer: 2^53.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Returns the value after `ADD`, `SUB`, `MUL` or `DIV` of `operand` on `old_value`.
///
/// The result is an integer if the old value was one and the exact result is whole; otherwise it is the
/// double closest to the exact decimal result.
pub(super) fn calculate(op: Op, old_value: &Number, operand: &Number) -> Result<Number, OperationRefusal> {
    if let (Some(a), Some(b)) = (to_integer(old_value), to_integer(operand)) {
        let result = match op {
            Op::Sub => a.checked_sub(b),
            Op::Mul => a.checked_mul(b),
            Op::Div if b == 0 => return Err(division_by_zero()),
            Op::Div if a % b == 0 => Some(a / b),
            Op::Div => return calculate_decimal(op, old_value, operand),
            // `ADD`, the only other arithmetic operation.
            _ => a.checked_add(b),
        };
        return result.and_then(from_integer).ok_or_else(out_of_range);
    }
    calculate_decimal(op, old_value, operand)
}

/// Returns true if the number can be kept exactly: an integer of 64 bits, or a decimal of at most 2^53.
pub(super) fn is_in_range(number: &Number) -> bool {
    to_integer(number).is_some() || number.as_f64().is_some_and(|float| float.abs() <= MAX_EXACT)
}

/// Replaces each number in a JSON text that is too large for a double by the largest double, which operations
/// refuse. A text without such numbers is returned as it is.
#[must_use]
pub fn bound_numbers(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut result, mut copied_end, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            // Strings are skipped.
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
            }
            b'0'..=b'9' | b'-' => {
                let is_number_byte =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(is_number_byte).count();
                let number = &text[at..end];
                if number.parse().is_ok_and(f64::is_infinite) {
                    result.push_str(&text[copied_end..at]);
                    result.push_str(if number.starts_with('-') { "-" } else { "" });
                    result.push_str(MAX_DOUBLE);
                    copied_end = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied_end == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[copied_end..]);
    Cow::Owned(result)
}

/// The largest double.
const MAX_DOUBLE: &str = "1.7976931348623157e308";

fn calculate_decimal(op: Op, old_value: &Number, operand: &Number) -> Result<Number, OperationRefusal> {
    let (a, b) = (to_decimal(old_value)?, to_decimal(operand)?);
    let result = match op {
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div if b.is_zero() => return Err(division_by_zero()),
        Op::Div => a / b,
        _ => a + b,
    };
    if to_integer(old_value).is_some() && result.is_integer() {
        let digits = result.with_scale(0).to_plain_string();
        return digits.parse().ok().and_then(from_integer).ok_or_else(out_of_range);
    }
    let float: f64 = result.to_scientific_notation().parse().unwrap_or(f64::NAN);
    let Some(number) = Number::from_f64(float) else {
        let message = "the result is too large for a number";
        return Err(OperationRefusal::new(RefusalReason::NumberNotFinite, message));
    };
    // Integers beyond the range would be rounded silently.
    if float.abs() > MAX_EXACT && to_decimal(&number)? != result {
        return Err(out_of_range());
    }
    Ok(number)
}

/// Returns the integer that a JSON number holds; `None` for a decimal.
fn to_integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Converts an integer to a JSON number; `None` if it does not fit 64 bits.
fn from_integer(value: i128) -> Option<Number> {
    match i64::try_from(value) {
        Ok(value) => Some(value.into()),
        Err(_) => u64::try_from(value).ok().map(Number::from),
    }
}

/// Returns the decimal as written, not the closest binary number.
fn to_decimal(number: &Number) -> Result<BigDecimal, OperationRefusal> {
    number.to_string().parse().map_err(|_| out_of_range())
}

fn division_by_zero() -> OperationRefusal {
    OperationRefusal::new(RefusalReason::DivisionByZero, "a division by 0")
}

fn out_of_range() -> OperationRefusal {
    OperationRefusal::new(
        RefusalReason::NumberOutOfRange,
        "the result is outside the range in which numbers are exact",
    )
}
