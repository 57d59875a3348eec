//! Escape sequences in strings: those of JSON, of other languages, and of a text that was escaped as a whole.

use crate::lex::json::Quote;
use crate::repair::rules;

use super::event::JsonSink;
use super::mend::Repair;
use super::reader::Reader;
use super::state::{Cursor, Flow};

impl Reader {
    /// Reads the escape sequence at the cursor.
    pub(super) fn escape<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        let bytes = c.bytes();
        let start = c.at;
        let mut at = start + 1;
        let Some(&next) = bytes.get(at) else {
            if !c.last {
                return Flow::Wait;
            }
            return self.broken_escape(c, 1, sink);
        };
        // In a text escaped as a whole the backslash is doubled, and the escaped character may be too.
        let mut next = next;
        if self.string.quote == Quote::Escaped && next == b'\\' {
            match (bytes.get(at + 1), bytes.get(at + 2)) {
                (None, _) | (Some(b'\\'), None) if !c.last => return Flow::Wait,
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
        let plain = match next {
            b'"' | b'\\' | b'/' => next as char,
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return self.unicode_escape(c, at + 1, sink),
            b'x' => return self.hex_escape(c, at + 1, sink),
            _ => {
                // The backslash before a letter without a JSON meaning was most likely meant: `\d`, `\alpha`.
                // Before punctuation and line breaks it is dropped: `\'`, `\_`, `\$`.
                let kept = next.is_ascii_alphanumeric() || b".()[]{}|?+^".contains(&next);
                let repair = if kept { "kept the backslash as text" } else { "left the backslash out" };
                let what = ("an escape JSON does not know", repair);
                let text = &c.text[at..];
                let length = text.chars().next().map_or(0, char::len_utf8);
                // An escaped quote means the quote.
                let rule = match next {
                    b'\'' | b'`' => Repair::certain(&rules::ESCAPE),
                    _ => Repair::from(&rules::ESCAPE),
                };
                self.mend(c, (start, at + length), rule, what, sink);
                if kept {
                    self.add("\\", sink);
                }
                // The escaped character is text.
                self.add(&text[..length], sink);
                c.at = at + length;
                return Flow::Go;
            }
        };
        self.add_char(plain, sink);
        c.at = at + 1;
        Flow::Go
    }

    /// Reads `\x41`, which is not JSON.
    fn hex_escape<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, digits: usize, sink: &mut S) -> Flow {
        match hex(c.bytes(), digits, 2) {
            Hex::Unit(unit) => {
                let span = (c.at, digits + 2);
                let what = ("an escape JSON does not know", "read as the character it names");
                self.mend(c, span, &rules::ESCAPE, what, sink);
                self.add_char(char::from_u32(u32::from(unit)).unwrap_or('\u{FFFD}'), sink);
                c.at = digits + 2;
                Flow::Go
            }
            Hex::Short if !c.last => Flow::Wait,
            _ => self.broken_escape(c, 0, sink),
        }
    }

    fn unicode_escape<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        digits: usize,
        sink: &mut S,
    ) -> Flow {
        let bytes = c.bytes();
        let unit = match hex(bytes, digits, 4) {
            Hex::Unit(unit) => unit,
            Hex::Short if !c.last => return Flow::Wait,
            Hex::Short => return self.broken_escape(c, bytes.len() - c.at, sink),
            Hex::Broken => return self.broken_escape(c, 0, sink),
        };
        let end = digits + 4;
        if let Some(character) = char::from_u32(u32::from(unit)) {
            self.add_char(character, sink);
            c.at = end;
            return Flow::Go;
        }
        if unit < 0xDC00 {
            // The other half of the pair, in the same form.
            let form = &bytes[c.at..digits];
            let rest = &bytes[end..];
            if rest.len() < form.len() && form.starts_with(rest) && !c.last {
                return Flow::Wait;
            }
            if rest.starts_with(form) {
                match hex(bytes, end + form.len(), 4) {
                    Hex::Short if !c.last => return Flow::Wait,
                    Hex::Unit(low @ 0xDC00..=0xDFFF) => {
                        let code = 0x10000 + ((u32::from(unit) - 0xD800) << 10) + (u32::from(low) - 0xDC00);
                        self.add_char(char::from_u32(code).unwrap_or('\u{FFFD}'), sink);
                        c.at = end + form.len() + 4;
                        return Flow::Go;
                    }
                    _ => {}
                }
            }
            if c.last && rest.len() < form.len() + 4 && form.starts_with(&rest[..rest.len().min(form.len())])
            {
                // Truncated inside the pair: the character is lost.
                return self.broken_escape(c, bytes.len() - c.at, sink);
            }
        }
        let what = ("half of a surrogate pair", "put U+FFFD in its place");
        self.mend(c, (c.at, end), &rules::ESCAPE, what, sink);
        self.add_char('\u{FFFD}', sink);
        c.at = end;
        Flow::Go
    }

    /// Repairs an escape that is truncated or has no digits: drops `skip` bytes, or keeps the backslash as
    /// text.
    fn broken_escape<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, skip: usize, sink: &mut S) -> Flow {
        let span = (c.at, c.at + skip.max(2).min(c.text.len() - c.at));
        if skip == 0 {
            let what = ("an escape without its digits", "kept the backslash as text");
            self.mend(c, span, &rules::ESCAPE, what, sink);
            self.add("\\", sink);
            c.at += 1;
        } else {
            let what = ("an escape that is cut off", "left it out");
            self.mend(c, span, &rules::ESCAPE, what, sink);
            c.at += skip;
        }
        Flow::Go
    }
}

enum Hex {
    Unit(u16),
    /// The text ends before the last digit.
    Short,
    Broken,
}

fn hex(bytes: &[u8], at: usize, digits: usize) -> Hex {
    let mut unit = 0;
    for i in 0..digits {
        let Some(&byte) = bytes.get(at + i) else { return Hex::Short };
        let Some(digit) = (byte as char).to_digit(16) else { return Hex::Broken };
        unit = unit << 4 | digit as u16;
    }
    Hex::Unit(unit)
}
