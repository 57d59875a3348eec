//! Fast path for a text that is one object or array, valid or with slight faults of which each has one
//! reading: builds the value without events. At any other fault or limit it gives up, and the repairing reader
//! starts from the beginning.

use serde_json::{Map, Number, Value};

use crate::limits::Limits;
use crate::span::Span;

use super::number;

/// Parses a text that contains one value and nothing else; returns the value and its span. `None` if anything
/// would have to be reported: a fault, a duplicate key, lost digits, a limit.
pub(super) fn parse(text: &str, limits: &Limits) -> Option<(Value, Span)> {
    parse_text(text, limits, false)
}

/// Like [`parse`], but also accepts, without a report, what the repairing reader reads in the same way
/// whatever surrounds it: a comma before a closing bracket, `True`, `False` and `None`, and strings in single
/// quotes without quotes, escapes and brackets in them.
pub(super) fn parse_slightly_broken(text: &str, limits: &Limits) -> Option<Value> {
    parse_text(text, limits, true).map(|(value, _)| value)
}

fn parse_text(text: &str, limits: &Limits, accepts_faults: bool) -> Option<(Value, Span)> {
    let mut parser = DirectParser {
        accepts_faults,
        text,
        bytes: text.as_bytes(),
        at: 0,
        bytes_left: limits.value,
        items_left: limits.items,
        depth_left: limits.depth,
        max_word_len: limits.hold,
        entries: Vec::new(),
        values: Vec::new(),
    };
    let first_byte = parser.skip_blanks()?;
    let start = parser.at;
    let value = match first_byte {
        b'{' => parser.parse_object()?,
        b'[' => parser.parse_array()?,
        _ => return None,
    };
    let span = Span { start, end: parser.at };
    parser.skip_blanks().is_none().then_some((value, span))
}

/// Parser of one value. Its methods return `None` where the text needs the repairing reader.
struct DirectParser<'a> {
    /// True if the faults of [`parse_slightly_broken`] are accepted.
    accepts_faults: bool,
    text: &'a str,
    bytes: &'a [u8],
    /// Offset of the next unread byte.
    at: usize,
    /// Bytes of strings that may still follow.
    bytes_left: usize,
    /// Values and keys that may still follow.
    items_left: usize,
    /// Levels of brackets that may still be opened.
    depth_left: usize,
    /// Maximum length in bytes of a key or a number.
    max_word_len: usize,
    /// Members of all open objects.
    entries: Vec<(String, Value)>,
    /// Elements of all open arrays.
    values: Vec<Value>,
}

/// Bytes of a string that are checked one by one before a search pays off.
const SHORT_STRING: usize = 16;
/// Maximum length of a number without exponent that a double always keeps with all its digits.
const EXACT_DIGITS: usize = 15;

impl DirectParser<'_> {
    /// Skips white space; returns the next byte, `None` at the end.
    #[inline]
    fn skip_blanks(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Counts an item; `None` beyond the limit.
    #[inline]
    fn count_item(&mut self) -> Option<()> {
        self.items_left = self.items_left.checked_sub(1)?;
        Some(())
    }

    fn parse_value(&mut self) -> Option<Value> {
        let first = self.skip_blanks()?;
        match first {
            b'"' => {
                self.count_item()?;
                Some(Value::String(self.parse_string()?))
            }
            b'{' => self.parse_object(),
            b'[' => self.parse_array(),
            b't' => self.parse_literal("true", Value::Bool(true)),
            b'f' => self.parse_literal("false", Value::Bool(false)),
            b'n' => self.parse_literal("null", Value::Null),
            b'-' | b'0'..=b'9' => self.parse_number(),
            _ if self.accepts_faults => self.parse_faulty_value(first),
            _ => None,
        }
    }

    /// Parses a string in single quotes, or a literal of Python.
    fn parse_faulty_value(&mut self, first: u8) -> Option<Value> {
        match first {
            b'\'' => {
                self.count_item()?;
                Some(Value::String(self.parse_single_quoted()?))
            }
            b'T' => self.parse_literal("True", Value::Bool(true)),
            b'F' => self.parse_literal("False", Value::Bool(false)),
            b'N' => self.parse_literal("None", Value::Null),
            _ => None,
        }
    }

    /// Parses a string in single quotes whose content cannot be taken for anything else.
    fn parse_single_quoted(&mut self) -> Option<String> {
        let start = self.at + 1;
        let is_stop = |byte: &u8| {
            *byte < b' ' || matches!(byte, b'\'' | b'"' | b'\\' | b'{' | b'}' | b'[' | b']' | b':')
        };
        let end = start + self.bytes.get(start..)?.iter().position(is_stop)?;
        if self.bytes[end] != b'\'' {
            return None;
        }
        self.at = end + 1;
        self.bytes_left = self.bytes_left.checked_sub(end - start)?;
        Some(self.text[start..end].to_owned())
    }

    fn parse_literal(&mut self, word: &str, value: Value) -> Option<Value> {
        self.count_item()?;
        self.bytes[self.at..].starts_with(word.as_bytes()).then(|| self.at += word.len())?;
        Some(value)
    }

    /// Reads an opening bracket; `None` beyond the limits.
    fn enter(&mut self) -> Option<()> {
        self.count_item()?;
        self.depth_left = self.depth_left.checked_sub(1)?;
        self.at += 1;
        Some(())
    }

    /// Reads a closing bracket.
    fn leave(&mut self) {
        self.depth_left += 1;
        self.at += 1;
    }

    /// Reads a comma, if there is one, and returns whether another item follows; `None` if neither a comma
    /// nor the closing bracket `end` follows.
    fn read_comma(&mut self, end: u8) -> Option<bool> {
        match self.skip_blanks()? {
            b',' => {
                self.at += 1;
                Some(!self.accepts_faults || self.skip_blanks()? != end)
            }
            byte => (byte == end).then_some(false),
        }
    }

    fn parse_object(&mut self) -> Option<Value> {
        self.enter()?;
        let first = self.entries.len();
        let mut has_more = self.skip_blanks()? != b'}';
        while has_more {
            let quote = self.skip_blanks()?;
            self.count_item()?;
            let key_start = self.at;
            let key = match quote {
                b'"' => self.parse_string()?,
                b'\'' if self.accepts_faults => self.parse_single_quoted()?,
                _ => return None,
            };
            // Length as written; the decoded key is not longer.
            if self.at - key_start > self.max_word_len {
                return None;
            }
            if self.skip_blanks()? != b':' {
                return None;
            }
            self.at += 1;
            let value = self.parse_value()?;
            self.entries.push((key, value));
            has_more = self.read_comma(b'}')?;
        }
        self.leave();
        let entries = self.entries.drain(first..);
        let mut map = Map::with_capacity(entries.len());
        for (key, value) in entries {
            if map.insert(key, value).is_some() {
                return None;
            }
        }
        Some(Value::Object(map))
    }

    fn parse_array(&mut self) -> Option<Value> {
        self.enter()?;
        let first = self.values.len();
        let mut has_more = self.skip_blanks()? != b']';
        while has_more {
            let value = self.parse_value()?;
            self.values.push(value);
            has_more = self.read_comma(b']')?;
        }
        self.leave();
        Some(Value::Array(self.values.drain(first..).collect()))
    }

    /// Parses a string from its opening quote on.
    fn parse_string(&mut self) -> Option<String> {
        let start = self.at + 1;
        let end = self.find_string_stop(start)?;
        if self.bytes[end] == b'"' {
            self.at = end + 1;
            self.bytes_left = self.bytes_left.checked_sub(end - start)?;
            return Some(self.text[start..end].to_owned());
        }
        let mut text = String::with_capacity((end - start) * 2);
        text.push_str(&self.text[start..end]);
        self.at = end;
        loop {
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                self.bytes_left = self.bytes_left.checked_sub(text.len())?;
                return Some(text);
            }
            let character = self.parse_escape()?;
            text.push(character);
            let end = self.find_string_stop(self.at)?;
            text.push_str(&self.text[self.at..end]);
            self.at = end;
        }
    }

    /// Offset of the next quote or backslash in a string, from `from` on; `None` if there is none, or a
    /// control character precedes it.
    #[inline]
    fn find_string_stop(&self, from: usize) -> Option<usize> {
        let unread = &self.bytes[from..];
        for (at, &byte) in unread.iter().take(SHORT_STRING).enumerate() {
            if byte == b'"' || byte == b'\\' {
                return Some(from + at);
            }
            if byte < b' ' {
                return None;
            }
        }
        let unread = unread.get(SHORT_STRING..)?;
        let at = memchr::memchr2(b'"', b'\\', unread)?;
        // Checks all bytes, which is faster than stopping early.
        let has_control = unread[..at].iter().fold(false, |has_control, &byte| has_control | (byte < b' '));
        (!has_control).then_some(from + SHORT_STRING + at)
    }

    /// Parses an escape from its backslash on.
    fn parse_escape(&mut self) -> Option<char> {
        let character = match *self.bytes.get(self.at + 1)? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.parse_hex(self.at + 2)?;
                self.at += 6;
                if !(0xD800..0xE000).contains(&high) {
                    return char::from_u32(high);
                }
                if self.bytes.get(self.at..self.at + 2)? != b"\\u" {
                    return None;
                }
                let low = self.parse_hex(self.at + 2)?;
                self.at += 6;
                // A pair of surrogates.
                let code = 0x10000 + ((high.checked_sub(0xD800)? & 0x3FF) << 10) + low.checked_sub(0xDC00)?;
                return (high < 0xDC00 && low < 0xE000).then(|| char::from_u32(code)).flatten();
            }
            _ => return None,
        };
        self.at += 2;
        Some(character)
    }

    /// Parses the four hexadecimal digits at `at`.
    fn parse_hex(&self, at: usize) -> Option<u32> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
    }

    fn parse_number(&mut self) -> Option<Value> {
        self.count_item()?;
        let (start, mut is_integer, mut has_exponent) = (self.at, true, false);
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'0'..=b'9' => {}
                b'.' | b'-' | b'+' => is_integer = false,
                b'e' | b'E' => (is_integer, has_exponent) = (false, true),
                _ => break,
            }
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        if word.len() > self.max_word_len {
            return None;
        }
        // Digits without a leading zero, few enough for `u64`.
        if is_integer && word.len() < 18 && (word.len() == 1 || !word.starts_with('0')) {
            let digits = word.bytes();
            return Some(digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0')).into());
        }
        if !has_exponent
            && word.len() <= EXACT_DIGITS
            && word.contains('.')
            && number::is_json_number(word.as_bytes())
        {
            return Number::from_f64(word.parse().ok()?).map(Value::Number);
        }
        let is_exact = false;
        let parsed = number::parse_number(word, is_exact)
            .filter(|parsed| !parsed.is_nonstandard && !parsed.is_rounded)?;
        Some(Value::Number(parsed.number))
    }
}
