//! Arithmetic of the state (F-113, F-114): exact in decimals, integers stay integers.

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
