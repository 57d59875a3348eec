//! Numbers of JSON, with bounds.

use super::{CharClass, Node};

/// Maximum number of digits of a whole number in a number; all of them are exact.
const MAX_DIGITS: u32 = 15;

/// Maximum number of digits of an integer, which is read as 64 bits.
const MAX_INTEGER_DIGITS: u32 = 18;

/// Maximum numbers of digits before and after a point, together as many as are exact.
const MAX_POINT_DIGITS: (u32, u32) = (9, 6);

/// Restriction on all numbers.
pub(super) const RESTRICTION: &str = "an integer has at most 18 digits, a number 15 or, with a point, 9 before it and 6 \
                                      after it, and no exponent";

/// Bounds of a number; both belong to the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberBounds {
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
}

fn digits(range: (char, char)) -> Node {
    Node::Class(CharClass::new([range]))
}

/// Digits of one kind, from `min` to `max` of them.
fn some_digits(min: u32, max: u32) -> Node {
    digits(('0', '9')).repeat(min, Some(max))
}

/// Fraction of a number.
fn fraction() -> Node {
    Node::sequence([Node::literal("."), some_digits(1, MAX_POINT_DIGITS.1)])
}

/// Whole number of the range.
pub(super) fn integer(bounds: NumberBounds) -> Node {
    Node::token([integer_body(bounds, MAX_INTEGER_DIGITS)])
}

fn integer_body(NumberBounds { min, max }: NumberBounds, digits: u32) -> Node {
    let limit = 10_i64.pow(digits) - 1;
    if min.is_none() && max.is_none() {
        return Node::sequence([Node::literal("-").optional(), natural(0, limit.unsigned_abs())]);
    }
    let (min, max) = (min.unwrap_or(-limit).max(-limit), max.unwrap_or(limit).min(limit));
    let mut parts = Vec::new();
    if min < 0 && min <= max {
        let largest = max.min(-1);
        parts.push(Node::sequence([Node::literal("-"), natural(largest.unsigned_abs(), min.unsigned_abs())]));
    }
    if max >= 0 && min <= max {
        parts.push(natural(min.max(0).unsigned_abs(), max.unsigned_abs()));
    }
    Node::choice(parts)
}

/// Number of the range.
pub(super) fn number(bounds: NumberBounds) -> Node {
    let limit = 10_i64.pow(MAX_DIGITS) - 1;
    let NumberBounds { min, max } = bounds;
    if min.is_none() && max.is_none() {
        let whole = natural(0, 10_u64.pow(MAX_POINT_DIGITS.0) - 1);
        let with_point = Node::sequence([Node::literal("-").optional(), whole, fraction()]);
        return Node::token([Node::choice([integer_body(bounds, MAX_DIGITS), with_point])]);
    }
    let (min, max) = (min.unwrap_or(-limit).max(-limit), max.unwrap_or(limit).min(limit));
    let mut parts = vec![integer_body(bounds, MAX_DIGITS)];
    let limit = 10_i64.pow(MAX_POINT_DIGITS.0) - 1;
    let (min, max) = (min.max(-limit), max.min(limit));
    // A fraction after the whole part lies between it and the next whole number away from zero.
    if max > 0 && min < max {
        parts
            .push(Node::sequence([natural(min.max(0).unsigned_abs(), (max - 1).unsigned_abs()), fraction()]));
    }
    if min < 0 && min < max {
        let smallest = if max < 0 { max.unsigned_abs() } else { 0 };
        let whole = natural(smallest, min.unsigned_abs() - 1);
        parts.push(Node::sequence([Node::literal("-"), whole, fraction()]));
    }
    Node::token([Node::choice(parts)])
}

/// Natural number from `min` to `max`, without zeros before it.
fn natural(min: u64, max: u64) -> Node {
    let mut parts = Vec::new();
    let mut start = min;
    while start <= max {
        // Numbers of the same length as `start`.
        let len = start.checked_ilog10().unwrap_or(0);
        let last = 10_u64.pow(len + 1) - 1;
        let end = last.min(max);
        parts.push(same_length(&start.to_string(), &end.to_string()));
        start = last + 1;
    }
    // Whole lengths next to each other are one repetition.
    if min == 0 && max.checked_add(1).is_some_and(|next| next == 10_u64.pow(next.ilog10()) && next > 9) {
        let more = some_digits(0, (max + 1).ilog10() - 1);
        return Node::choice([Node::literal("0"), Node::sequence([digits(('1', '9')), more])]);
    }
    Node::choice(parts)
}

/// Numbers between two of the same length.
fn same_length(min: &str, max: &str) -> Node {
    let (Some(low), Some(high)) = (min.chars().next(), max.chars().next()) else {
        return Node::Sequence(Vec::new());
    };
    let (low_rest, high_rest) = (&min[1..], &max[1..]);
    let len = u32::try_from(low_rest.len()).unwrap_or(u32::MAX);
    let free = |range| match len {
        0 => digits(range),
        len => Node::sequence([digits(range), some_digits(len, len)]),
    };
    let is_lowest = low_rest.bytes().all(|digit| digit == b'0');
    let is_highest = high_rest.bytes().all(|digit| digit == b'9');
    if low == high {
        return match is_lowest && is_highest {
            true => free((low, high)),
            false => Node::sequence([Node::literal(low), same_length(low_rest, high_rest)]),
        };
    }
    let nines = "9".repeat(low_rest.len());
    let zeros = "0".repeat(low_rest.len());
    let step = |digit: char, by: i32| char::from_u32((digit as i32 + by) as u32).unwrap_or(digit);
    let mut parts = Vec::new();
    let (mut from, mut to) = (low, high);
    if !is_lowest {
        parts.push(Node::sequence([Node::literal(low), same_length(low_rest, &nines)]));
        from = step(low, 1);
    }
    if !is_highest {
        parts.push(Node::sequence([Node::literal(high), same_length(&zeros, high_rest)]));
        to = step(high, -1);
    }
    if from <= to {
        parts.push(free((from, to)));
    }
    Node::choice(parts)
}
