//! Numbers and literals, in the notation of JSON and of related languages.

use serde_json::Number;

/// A literal, and whether its spelling is that of JSON.
#[derive(Clone, Copy)]
pub(super) struct JsonLiteral {
    /// Truth value; `None` is `null`.
    pub(super) value: Option<bool>,
    pub(super) is_standard: bool,
}

/// Literal that `word` stands for; `None` if it is none.
pub(super) fn parse_literal(word: &str) -> Option<JsonLiteral> {
    let standard = |value| Some(JsonLiteral { value, is_standard: true });
    let nonstandard = |value| Some(JsonLiteral { value, is_standard: false });
    match word {
        "true" => standard(Some(true)),
        "false" => standard(Some(false)),
        "null" => standard(None),
        "True" | "TRUE" => nonstandard(Some(true)),
        "False" | "FALSE" => nonstandard(Some(false)),
        "None" | "NONE" | "Null" | "NULL" | "nil" | "undefined" | "NaN" | "nan" | "Infinity"
        | "-Infinity" | "+Infinity" => nonstandard(None),
        _ => None,
    }
}

/// Literal of which `word` is a prefix, at the end of a truncated text. The prefix needs two letters, or
/// three if two could begin another word.
pub(super) fn complete_literal(word: &str) -> Option<JsonLiteral> {
    let is_prefix_of = |literal: &str, min_len: usize| word.len() >= min_len && literal.starts_with(word);
    let value = if is_prefix_of("true", 2) || is_prefix_of("True", 2) {
        Some(true)
    } else if is_prefix_of("false", 2) || is_prefix_of("False", 2) {
        Some(false)
    } else if is_prefix_of("null", 2) || is_prefix_of("None", 3) || is_prefix_of("undefined", 3) {
        None
    } else {
        return None;
    };
    Some(JsonLiteral { value, is_standard: false })
}

/// A parsed number.
pub(super) struct ParsedNumber {
    pub(super) number: Number,
    /// Number in JSON notation, if it was written otherwise.
    pub(super) text: Option<String>,
    /// True if its notation is not that of JSON.
    pub(super) is_nonstandard: bool,
    /// True if digits are lost.
    pub(super) is_rounded: bool,
}

/// Parses a number; `None` if `word` is none. With `is_exact` the caller uses the digits as written, so
/// [`ParsedNumber::number`] is not computed.
pub(super) fn parse_number(word: &str, is_exact: bool) -> Option<ParsedNumber> {
    let bytes = word.as_bytes();
    if !matches!(bytes.first()?, b'0'..=b'9' | b'-' | b'+' | b'.') {
        return None;
    }
    if !is_json_number(bytes) {
        let text = normalize_number(word)?;
        let parsed = parse_number(&text, is_exact)?;
        return Some(ParsedNumber { text: Some(text), is_nonstandard: true, ..parsed });
    }
    let parsed_number =
        |number| Some(ParsedNumber { number, text: None, is_nonstandard: false, is_rounded: false });
    if is_exact {
        return parsed_number(Number::from(0));
    }
    // Fast path: digits only, few enough for 64 bits.
    if bytes.len() < 18 && bytes.iter().all(u8::is_ascii_digit) {
        let value = bytes.iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
        return parsed_number(Number::from(value));
    }
    let number: Number = serde_json::from_str(word).ok()?;
    let has_rounding = number.is_f64() && is_rounded(word);
    Some(ParsedNumber { number, text: None, is_nonstandard: false, is_rounded: has_rounding })
}

/// Number of digits, and absolute value of the exponent, up to which a double keeps all digits.
const EXACT_RANGE: (usize, i64) = (15, 290);

/// Maximum number of digits that a double is printed with.
const MAX_PRINTED_DIGITS: usize = 17;

/// Returns whether a double does not keep all digits of a JSON number.
fn is_rounded(word: &str) -> bool {
    let (digits, exponent) = significant_digits(word);
    if digits.is_empty() || digits.len() <= EXACT_RANGE.0 && exponent.abs() <= EXACT_RANGE.1 {
        return false;
    }
    let Ok(float) = word.parse::<f64>() else { return true };
    // Nothing is lost if the double is printed as the number was written. The shortest text of a double is
    // not unique: of two equally short texts, a printer may choose either. So the number is also compared
    // with the double as printed with the same number of digits. The limit of 40 digits saves memory: more
    // than 17 digits are not compared.
    let (shortest_text, nearest_text) =
        (format!("{float:e}"), format!("{float:.*e}", digits.len().min(40) - 1));
    let written_digits = (digits, exponent);
    let is_printed = written_digits.0.len() <= MAX_PRINTED_DIGITS
        && self::significant_digits(&nearest_text) == written_digits;
    self::significant_digits(&shortest_text) != written_digits && !is_printed
}

/// Digits without zeros at either end, and the decimal exponent of the first of them. Zero has no digits.
fn significant_digits(word: &str) -> (Vec<u8>, i64) {
    let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let mantissa = mantissa.trim_start_matches(['-', '+']);
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Vec<u8> = integer.bytes().chain(fraction.bytes()).collect();
    let leading_zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    digits.drain(..leading_zeros);
    digits.truncate(digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1));
    // An exponent too long for an `i64` only has to be out of range.
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX / 2);
    (digits, exponent.saturating_add(integer.len() as i64 - leading_zeros as i64 - 1))
}

/// Returns whether `bytes` is a number by RFC 8259.
pub(super) fn is_json_number(bytes: &[u8]) -> bool {
    let mut unread = bytes.strip_prefix(b"-").unwrap_or(bytes);
    // Skips digits; returns their number.
    let skip_digits = |unread: &mut &[u8]| {
        let count = unread.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *unread = &unread[count..];
        count
    };
    let has_zero = unread.first() == Some(&b'0');
    let integer_len = skip_digits(&mut unread);
    if integer_len == 0 || has_zero && integer_len > 1 {
        return false;
    }
    if let Some(fraction) = unread.strip_prefix(b".") {
        unread = fraction;
        if skip_digits(&mut unread) == 0 {
            return false;
        }
    }
    if let [b'e' | b'E', exponent @ ..] = unread {
        unread = exponent;
        if let [b'+' | b'-', digits @ ..] = unread {
            unread = digits;
        }
        if skip_digits(&mut unread) == 0 {
            return false;
        }
    }
    unread.is_empty()
}

/// JSON notation of a number such as `+1`, `.5`, `5.`, `1e`, `1_000`, `0x1F` or `-`. `None` for other words,
/// and for numbers with leading zeros, which carry meaning.
fn normalize_number(word: &str) -> Option<String> {
    let (is_negative, digits) = match word.strip_prefix(['+', '-']) {
        Some(digits) => (word.starts_with('-'), digits),
        None => (false, word),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let value = i64::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with(['+', '-']))?;
        return Some(if is_negative { -value } else { value }.to_string());
    }
    let mut normalized = String::with_capacity(word.len() + 3);
    if is_negative {
        normalized.push('-');
    }
    let bytes = digits.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        if byte == b'_' {
            // An underscore may only separate digits.
            let is_digit =
                |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
            if !is_digit(index.checked_sub(1)) || !is_digit(Some(index + 1)) {
                return None;
            }
            continue;
        }
        let is_after_digits = normalized.bytes().next_back().is_some_and(|last| last.is_ascii_digit());
        match byte {
            // `.5` gets a zero before its point, and `1.e5` one after it.
            b'.' | b'e' | b'E' if !is_after_digits && normalized.bytes().next_back() != Some(b'.') => {
                if byte != b'.' || bytes.len() == 1 {
                    return None;
                }
                normalized.push('0');
            }
            b'e' | b'E' if !is_after_digits => normalized.push('0'),
            _ => {}
        }
        normalized.push(byte as char);
    }
    if normalized.ends_with(['.', 'e', 'E', '+', '-']) {
        normalized.push('0');
    }
    is_json_number(normalized.as_bytes()).then_some(normalized)
}

/// Returns whether `word` begins like the name of a function.
pub(super) fn is_function_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
}
