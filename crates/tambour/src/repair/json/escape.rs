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
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = c.bytes();
        let start = c.offset;
        let mut at = start + 1;
        let Some(&next) = bytes.get(at) else {
            if !c.is_last {
                return ReadFlow::NeedsInput;
            }
            return self.repair_escape(c, 1, sink);
        };
        // In a text escaped as a whole the backslash is doubled, and the escaped character may be too.
        let mut next = next;
        if self.string.quote == QuoteKind::Escaped && next == b'\\' {
            match (bytes.get(at + 1), bytes.get(at + 2)) {
                (None, _) | (Some(b'\\'), None) if !c.is_last => return ReadFlow::NeedsInput,
                (Some(b'\\'), Some(b'"' | b'\\')) => at += 2,
                (Some(&byte), _) => {
                    at += 1;
                    next = byte;
                }
                _ => {}
            }
            if bytes[at] == b'"' || bytes[at] == b'\\' {
                next = bytes[at];
            }
        }
        let character = match next {
            b'"' | b'\\' | b'/' => next as char,
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return self.read_unicode_escape(c, at + 1, sink),
            b'x' => return self.read_hex_escape(c, at + 1, sink),
            _ => {
                // The backslash before a letter without a JSON meaning was most likely meant: `\d`, `\alpha`.
                // Before punctuation and line breaks it is dropped: `\'`, `\_`, `\$`.
                let is_kept = next.is_ascii_alphanumeric() || b".()[]{}|?+^".contains(&next);
                let repair = if is_kept { "kept the backslash as text" } else { "left the backslash out" };
                let texts = ("an escape JSON does not know", repair);
                let text = &c.text[at..];
                let length = text.chars().next().map_or(0, char::len_utf8);
                // An escaped quote means the quote.
                let rule = match next {
                    b'\'' | b'`' => RepairRule::certain(&rules::ESCAPE),
                    _ => RepairRule::from(&rules::ESCAPE),
                };
                self.report_repair(c, (start, at + length), rule, texts, sink);
                if is_kept {
                    self.push_text("\\", sink);
                }
                // The escaped character is text.
                self.push_text(&text[..length], sink);
                c.offset = at + length;
                return ReadFlow::Continue;
            }
        };
        self.push_char(character, sink);
        c.offset = at + 1;
        ReadFlow::Continue
    }

    /// Reads `\x41`, which is not JSON.
    fn read_hex_escape<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        digits: usize,
        sink: &mut S,
    ) -> ReadFlow {
        match parse_hex(c.bytes(), digits, 2) {
            HexDigits::Unit(unit) => {
                let span = (c.offset, digits + 2);
                let texts = ("an escape JSON does not know", "read as the character it names");
                self.report_repair(c, span, &rules::ESCAPE, texts, sink);
                self.push_char(char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}'), sink);
                c.offset = digits + 2;
                ReadFlow::Continue
            }
            HexDigits::Truncated if !c.is_last => ReadFlow::NeedsInput,
            _ => self.repair_escape(c, 0, sink),
        }
    }

    fn read_unicode_escape<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        digits: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = c.bytes();
        let unit = match parse_hex(bytes, digits, 4) {
            HexDigits::Unit(unit) => unit,
            HexDigits::Truncated if !c.is_last => return ReadFlow::NeedsInput,
            HexDigits::Truncated => return self.repair_escape(c, bytes.len() - c.offset, sink),
            HexDigits::Invalid => return self.repair_escape(c, 0, sink),
        };
        let end = digits + 4;
        if let Some(character) = char::from_u32(u32::from(unit)) {
            self.push_char(character, sink);
            c.offset = end;
            return ReadFlow::Continue;
        }
        if unit < 0xDC00 {
            // The other half of the pair, in the same form.
            let prefix = &bytes[c.offset..digits];
            let rest = &bytes[end..];
            if rest.len() < prefix.len() && prefix.starts_with(rest) && !c.is_last {
                return ReadFlow::NeedsInput;
            }
            if rest.starts_with(prefix) {
                match parse_hex(bytes, end + prefix.len(), 4) {
                    HexDigits::Truncated if !c.is_last => return ReadFlow::NeedsInput,
                    HexDigits::Unit(low @ 0xDC00..=0xDFFF) => {
                        let code = 0x10000 + ((u32::from(unit) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                        self.push_char(char::from_u32(code).unwrap_or('\u{FFFD}'), sink);
                        c.offset = end + prefix.len() + 4;
                        return ReadFlow::Continue;
                    }
                    _ => {}
                }
            }
            if c.is_last
                && rest.len() < prefix.len() + 4
                && prefix.starts_with(&rest[..rest.len().min(prefix.len())])
            {
                // Truncated inside the pair: the character is lost.
                return self.repair_escape(c, bytes.len() - c.offset, sink);
            }
        }
        let texts = ("half of a surrogate pair", "put U+FFFD in its place");
        self.report_repair(c, (c.offset, end), &rules::ESCAPE, texts, sink);
        self.push_char('\u{FFFD}', sink);
        c.offset = end;
        ReadFlow::Continue
    }

    /// Repairs an escape that is truncated or has no digits: drops `skip_len` bytes, or keeps the backslash as
    /// text.
    fn repair_escape<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        skip_len: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let span = (c.offset, c.offset + skip_len.max(2).min(c.text.len() - c.offset));
        if skip_len == 0 {
            let texts = ("an escape without its digits", "kept the backslash as text");
            self.report_repair(c, span, &rules::ESCAPE, texts, sink);
            self.push_text("\\", sink);
            c.offset += 1;
        } else {
            let texts = ("an escape that is cut off", "left it out");
            self.report_repair(c, span, &rules::ESCAPE, texts, sink);
            c.offset += skip_len;
        }
        ReadFlow::Continue
    }
}

enum HexDigits {
    Unit(u16),
    /// The text ends before the last digit.
    Truncated,
    Invalid,
}

fn parse_hex(bytes: &[u8], at: usize, digits: usize) -> HexDigits {
    let mut unit = 0;
    for i in 0..digits {
        let Some(&byte) = bytes.get(at + i) else { return HexDigits::Truncated };
        let Some(digit) = (byte as char).to_digit(16) else { return HexDigits::Invalid };
        unit = unit << 4 | digit as u16;
    }
    HexDigits::Unit(unit)
}
