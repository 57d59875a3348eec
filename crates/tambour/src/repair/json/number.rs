//! Numbers and literals, in the forms of JSON and of its neighbours.

use serde_json::Number;

/// A literal and whether it is one of JSON's.
#[derive(Clone, Copy)]
pub(super) struct Literal {
    /// `None` is `null`.
    pub(super) value: Option<bool>,
    pub(super) exact: bool,
}

/// The literal `word` means.
pub(super) fn literal(word: &str) -> Option<Literal> {
    let exact = |value| Some(Literal { value, exact: true });
    let meant = |value| Some(Literal { value, exact: false });
    match word {
        "true" => exact(Some(true)),
        "false" => exact(Some(false)),
        "null" => exact(None),
        "True" | "TRUE" => meant(Some(true)),
        "False" | "FALSE" => meant(Some(false)),
        "None" | "NONE" | "Null" | "NULL" | "nil" | "undefined" | "NaN" | "nan" | "Infinity"
        | "-Infinity" | "+Infinity" => meant(None),
        _ => None,
    }
}

/// The literal that was cut off after `word`, where the text ends.
pub(super) fn cut_literal(word: &str) -> Option<Literal> {
    let starts = |whole: &str, least: usize| word.len() >= least && whole.starts_with(word);
    let value = if starts("true", 2) || starts("True", 2) {
        Some(true)
    } else if starts("false", 2) || starts("False", 2) {
        Some(false)
    } else if starts("null", 2) || starts("None", 3) || starts("undefined", 3) {
        None
    } else {
        return None;
    };
    Some(Literal { value, exact: false })
}

/// The number `word` means, and whether it is written in a way JSON does not know.
pub(super) fn read(word: &str) -> Option<(Number, bool)> {
    let bytes = word.as_bytes();
    if !matches!(bytes.first()?, b'0'..=b'9' | b'-' | b'+' | b'.') {
        return None;
    }
    if is_json(bytes) {
        // The common case: few digits and nothing else.
        if bytes.len() < 18 && bytes[0] != b'-' && bytes.iter().all(u8::is_ascii_digit) {
            let value = bytes.iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
            return Some((Number::from(value), false));
        }
        return serde_json::from_str(word).ok().map(|number| (number, false));
    }
    odd(word).map(|number| (number, true))
}

/// Whether digits of a number are lost: a double keeps 17 of them, whole numbers of 64 bits are kept whole.
pub(super) fn is_rounded(word: &str, number: &Number) -> bool {
    let mantissa = word.split(['e', 'E']).next().unwrap_or(word);
    let digits = || mantissa.bytes().filter(u8::is_ascii_digit);
    let zeros = digits().take_while(|&digit| digit == b'0').count();
    let last = digits().enumerate().filter(|(_, digit)| *digit != b'0').last().map_or(0, |(at, _)| at + 1);
    number.is_f64() && last.saturating_sub(zeros) > 17
}

/// Whether `bytes` is a number by RFC 8259.
fn is_json(bytes: &[u8]) -> bool {
    let mut rest = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let digits = |rest: &mut &[u8]| {
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *rest = &rest[count..];
        count
    };
    let zero = rest.first() == Some(&b'0');
    let whole = digits(&mut rest);
    if whole == 0 || zero && whole > 1 {
        return false;
    }
    if let Some(after) = rest.strip_prefix(b".") {
        rest = after;
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    if let [b'e' | b'E', after @ ..] = rest {
        rest = after;
        if let [b'+' | b'-', after @ ..] = rest {
            rest = after;
        }
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty()
}

/// `+1`, `.5`, `5.`, `1e`, `1_000`, `0x1F`, `-`. Leading zeros make it no number: they say something.
fn odd(word: &str) -> Option<Number> {
    let (negative, digits) = match word.strip_prefix(['+', '-']) {
        Some(rest) => (word.starts_with('-'), rest),
        None => (false, word),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let value = i64::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with(['+', '-']))?;
        return Some(Number::from(if negative { -value } else { value }));
    }
    let mut plain = String::with_capacity(word.len() + 3);
    if negative {
        plain.push('-');
    }
    let bytes = digits.as_bytes();
    for (i, &byte) in bytes.iter().enumerate() {
        if byte == b'_' {
            // Only between digits.
            let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
            if !digit(i.checked_sub(1)) || !digit(Some(i + 1)) {
                return None;
            }
            continue;
        }
        let after_digits = plain.bytes().next_back().is_some_and(|last| last.is_ascii_digit());
        match byte {
            b'.' | b'e' | b'E' if !after_digits && plain.bytes().next_back() != Some(b'.') => {
                if byte != b'.' || bytes.len() == 1 {
                    return None;
                }
                plain.push('0');
            }
            b'e' | b'E' if !after_digits => plain.push('0'),
            _ => {}
        }
        plain.push(byte as char);
    }
    if plain.ends_with(['.', 'e', 'E', '+', '-']) {
        plain.push('0');
    }
    is_json(plain.as_bytes()).then(|| serde_json::from_str(&plain).ok()).flatten()
}

/// Whether `word` can name a function.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
}
