//! Escape sequences in strings: those of JSON, of other languages, and of a text that was escaped as a whole.

use crate::lex::json::QuoteKind;
use crate::repair::rules;

use super::event::JsonSink;
use super::reader::JsonReader;
use super::repair_report::RepairRule;
use super::state::{ReadFlow, TextCursor};

impl JsonReader {
    /// Reads the escape sequence at the cursor.
    pub(super) fn read_escape<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let start = cursor.offset;
        let mut at = start + 1;
        let Some(&escaped_byte) = bytes.get(at) else {
            if !cursor.is_last {
                return ReadFlow::NeedsInput;
            }
            return self.repair_escape(cursor, 1, sink);
        };
        // In a text escaped as a whole the backslash is doubled, and the escaped character may have a
        // backslash as well: `\\n`, `\\\"`.
        let mut escaped_byte = escaped_byte;
        if self.string.quote == QuoteKind::Escaped && escaped_byte == b'\\' {
            match (bytes.get(at + 1), bytes.get(at + 2)) {
                (None, _) | (Some(b'\\'), None) if !cursor.is_last => return ReadFlow::NeedsInput,
                (Some(b'\\'), Some(b'"' | b'\\')) => at += 2,
                (Some(&byte), _) => {
                    at += 1;
                    escaped_byte = byte;
                }
                _ => {}
            }
            if bytes[at] == b'"' || bytes[at] == b'\\' {
                escaped_byte = bytes[at];
            }
        }
        let character = match escaped_byte {
            b'"' | b'\\' | b'/' => escaped_byte as char,
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return self.read_unicode_escape(cursor, at + 1, sink),
            b'x' => return self.read_hex_escape(cursor, at + 1, sink),
            _ => {
                // The backslash before a letter or digit without a JSON meaning was most likely meant: `\d`,
                // `\alpha`. So was one before a sign of a regular expression: `\.`. Before other punctuation
                // and line breaks it is dropped: `\'`, `\_`, `\$`.
                let keeps_backslash =
                    escaped_byte.is_ascii_alphanumeric() || b".()[]{}|?+^".contains(&escaped_byte);
                let repair =
                    if keeps_backslash { "kept the backslash as text" } else { "left the backslash out" };
                let texts = ("an escape that JSON does not have", repair);
                let text = &cursor.text[at..];
                let length = text.chars().next().map_or(0, char::len_utf8);
                // An escaped quote can only mean the quote.
                let rule = match escaped_byte {
                    b'\'' | b'`' => RepairRule::certain(&rules::ESCAPE),
                    _ => RepairRule::from(&rules::ESCAPE),
                };
                self.report_repair(cursor, (start, at + length), rule, texts, sink);
                if keeps_backslash {
                    self.push_text("\\", sink);
                }
                // The escaped character is text.
                self.push_text(&text[..length], sink);
                cursor.offset = at + length;
                return ReadFlow::Continue;
            }
        };
        self.push_char(character, sink);
        cursor.offset = at + 1;
        ReadFlow::Continue
    }

    /// Reads an escape such as `\x41`, which is not JSON. Its digits are at `digits_at`.
    fn read_hex_escape<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        digits_at: usize,
        sink: &mut S,
    ) -> ReadFlow {
        match parse_hex(cursor.bytes(), digits_at, 2) {
            HexDigits::Unit(unit) => {
                let span = (cursor.offset, digits_at + 2);
                let texts = ("an escape that JSON does not have", "read as the character it names");
                self.report_repair(cursor, span, &rules::ESCAPE, texts, sink);
                self.push_char(char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}'), sink);
                cursor.offset = digits_at + 2;
                ReadFlow::Continue
            }
            HexDigits::Truncated if !cursor.is_last => ReadFlow::NeedsInput,
            _ => self.repair_escape(cursor, 0, sink),
        }
    }

    /// Reads an escape such as `\u0041`, or a pair of surrogates. Its digits are at `digits_at`.
    fn read_unicode_escape<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        digits_at: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let unit = match parse_hex(bytes, digits_at, 4) {
            HexDigits::Unit(unit) => unit,
            HexDigits::Truncated if !cursor.is_last => return ReadFlow::NeedsInput,
            HexDigits::Truncated => return self.repair_escape(cursor, bytes.len() - cursor.offset, sink),
            HexDigits::Invalid => return self.repair_escape(cursor, 0, sink),
        };
        let end = digits_at + 4;
        if let Some(character) = char::from_u32(u32::from(unit)) {
            self.push_char(character, sink);
            cursor.offset = end;
            return ReadFlow::Continue;
        }
        if unit < 0xDC00 {
            // First half of a pair: the second must follow, with as many backslashes.
            let prefix = &bytes[cursor.offset..digits_at];
            let following = &bytes[end..];
            if following.len() < prefix.len() && prefix.starts_with(following) && !cursor.is_last {
                return ReadFlow::NeedsInput;
            }
            if following.starts_with(prefix) {
                match parse_hex(bytes, end + prefix.len(), 4) {
                    HexDigits::Truncated if !cursor.is_last => return ReadFlow::NeedsInput,
                    HexDigits::Unit(low @ 0xDC00..=0xDFFF) => {
                        let code = 0x10000 + ((u32::from(unit) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                        self.push_char(char::from_u32(code).unwrap_or('\u{FFFD}'), sink);
                        cursor.offset = end + prefix.len() + 4;
                        return ReadFlow::Continue;
                    }
                    _ => {}
                }
            }
            if cursor.is_last
                && following.len() < prefix.len() + 4
                && prefix.starts_with(&following[..following.len().min(prefix.len())])
            {
                // The text ends inside the pair: the character is lost.
                return self.repair_escape(cursor, bytes.len() - cursor.offset, sink);
            }
        }
        let texts = ("half of a surrogate pair", "put U+FFFD in its place");
        self.report_repair(cursor, (cursor.offset, end), &rules::ESCAPE, texts, sink);
        self.push_char('\u{FFFD}', sink);
        cursor.offset = end;
        ReadFlow::Continue
    }

    /// Repairs an escape that is truncated or has no digits: drops its `skip_len` bytes, or keeps the
    /// backslash as text if `skip_len` is 0.
    fn repair_escape<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        skip_len: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let span = (cursor.offset, cursor.offset + skip_len.max(2).min(cursor.text.len() - cursor.offset));
        if skip_len == 0 {
            let texts = ("an escape without its digits", "kept the backslash as text");
            self.report_repair(cursor, span, &rules::ESCAPE, texts, sink);
            self.push_text("\\", sink);
            cursor.offset += 1;
        } else {
            let texts = ("an escape that is cut off", "left it out");
            self.report_repair(cursor, span, &rules::ESCAPE, texts, sink);
            cursor.offset += skip_len;
        }
        ReadFlow::Continue
    }
}

/// Result of reading the digits of an escape.
enum HexDigits {
    /// Value of the digits, a UTF-16 code unit.
    Unit(u16),
    /// The text ends before the last digit.
    Truncated,
    /// A byte is no digit.
    Invalid,
}

/// Parses `digit_count` hexadecimal digits at `at`.
fn parse_hex(bytes: &[u8], at: usize, digit_count: usize) -> HexDigits {
    let mut unit = 0;
    for offset in 0..digit_count {
        let Some(&byte) = bytes.get(at + offset) else { return HexDigits::Truncated };
        let Some(digit) = (byte as char).to_digit(16) else { return HexDigits::Invalid };
        unit = unit << 4 | digit as u16;
    }
    HexDigits::Unit(unit)
}
