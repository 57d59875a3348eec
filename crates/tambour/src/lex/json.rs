//! Characters of JSON and their common substitutes: typographic quotes, full-width punctuation, odd spaces.
//!
//! A character is found by its byte offset in the text and classified by at most three bytes.

/// Kind of quotation mark; the opening and the closing mark of a pair are of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuoteKind {
    /// `"`, the only one in the JSON standard.
    Double,
    /// `'`
    Single,
    /// `` ` `` and `´`
    Back,
    /// `“`, `”`, `„`, `‟`, `＂`
    Curly,
    /// `‘`, `’`, `‚`, `‛`, `＇`
    CurlySingle,
    /// `«`, `»`, `‹`, `›`
    Angle,
    /// `「`, `」`, `『`, `』`
    Corner,
    /// `\"`, in a JSON text that was escaped as a whole.
    Escaped,
    /// `"""`
    Triple,
}

impl QuoteKind {
    /// Returns whether `quote` can end a string that `self` opened.
    pub(crate) fn can_end_with(self, quote: QuoteKind) -> bool {
        match self {
            // `quote_at` finds the first `"` of the three; the caller looks for the others.
            QuoteKind::Triple => quote == QuoteKind::Double,
            QuoteKind::Back => matches!(quote, QuoteKind::Back | QuoteKind::Single),
            QuoteKind::Curly => matches!(quote, QuoteKind::Curly | QuoteKind::Double),
            QuoteKind::CurlySingle => matches!(quote, QuoteKind::CurlySingle | QuoteKind::Single),
            QuoteKind::Escaped => matches!(quote, QuoteKind::Escaped | QuoteKind::Double),
            _ => self == quote,
        }
    }

    /// Bytes at which a reader of a string in these quotes must stop: possible first bytes of its end,
    /// backslashes and control characters.
    pub(crate) fn stop_bytes(self) -> &'static ByteSet {
        match self {
            QuoteKind::Double | QuoteKind::Escaped | QuoteKind::Triple => &DOUBLE_STOPS,
            QuoteKind::Single => &SINGLE_STOPS,
            QuoteKind::Back => &BACK_STOPS,
            QuoteKind::Curly => &CURLY_STOPS,
            QuoteKind::CurlySingle => &CURLY_SINGLE_STOPS,
            QuoteKind::Angle => &ANGLE_STOPS,
            QuoteKind::Corner => &CORNER_STOPS,
        }
    }
}

/// Quotation mark at `at` and its length in bytes; of a triple quote, its first `"`. Typographic quotes have
/// two or three bytes.
#[inline]
pub(crate) fn quote_at(bytes: &[u8], at: usize) -> Option<(QuoteKind, usize)> {
    let rest = &bytes[at..];
    Some(match *rest.first()? {
        b'"' => (QuoteKind::Double, 1),
        b'\'' => (QuoteKind::Single, 1),
        b'`' => (QuoteKind::Back, 1),
        b'\\' if rest.get(1) == Some(&b'"') => (QuoteKind::Escaped, 2),
        0xC2 => match rest.get(1)? {
            0xAB | 0xBB => (QuoteKind::Angle, 2),
            0xB4 => (QuoteKind::Back, 2),
            _ => return None,
        },
        0xE2 if rest.get(1) == Some(&0x80) => match rest.get(2)? {
            0x98..=0x9B => (QuoteKind::CurlySingle, 3),
            0x9C..=0x9F => (QuoteKind::Curly, 3),
            0xB9 | 0xBA => (QuoteKind::Angle, 3),
            _ => return None,
        },
        0xE3 if rest.get(1) == Some(&0x80) => match rest.get(2)? {
            0x8C..=0x8F => (QuoteKind::Corner, 3),
            _ => return None,
        },
        0xEF if rest.get(1) == Some(&0xBC) => match rest.get(2)? {
            0x82 => (QuoteKind::Curly, 3),
            0x87 => (QuoteKind::CurlySingle, 3),
            _ => return None,
        },
        _ => return None,
    })
}

/// Structural character at `at`, as ASCII, and its length in bytes: `, : { } [ ] ( )` or their full-width
/// forms; `、` counts as a comma.
#[inline]
pub(crate) fn mark_at(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let rest = &bytes[at..];
    match *rest.first()? {
        b @ (b',' | b':' | b'{' | b'}' | b'[' | b']' | b'(' | b')') => Some((b, 1)),
        0xEF => Some((
            match (rest.get(1)?, rest.get(2)?) {
                (0xBC, 0x8C) => b',',
                (0xBC, 0x9A) => b':',
                (0xBD, 0x9B) => b'{',
                (0xBD, 0x9D) => b'}',
                (0xBC, 0xBB) => b'[',
                (0xBC, 0xBD) => b']',
                (0xBC, 0x88) => b'(',
                (0xBC, 0x89) => b')',
                _ => return None,
            },
            3,
        )),
        0xE3 if rest.get(1) == Some(&0x80) && rest.get(2) == Some(&0x81) => Some((b',', 3)),
        _ => None,
    }
}

/// Length in bytes of the white space character at `at` that JSON does not allow: a Unicode space or
/// zero-width character, the byte order mark, vertical tab or form feed.
#[inline]
pub(crate) fn odd_space_len(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    match *rest.first()? {
        0x0B | 0x0C => Some(1),
        0xC2 => matches!(rest.get(1)?, 0x85 | 0xA0).then_some(2),
        0xE1 => (rest.get(1) == Some(&0xA0) && rest.get(2) == Some(&0x8E)).then_some(3),
        0xE2 => match (rest.get(1)?, rest.get(2)?) {
            (0x80, 0x80..=0x8F | 0xA8 | 0xA9 | 0xAF) | (0x81, 0x9F | 0xA0) => Some(3),
            _ => None,
        },
        0xE3 => (rest.get(1) == Some(&0x80) && rest.get(2) == Some(&0x80)).then_some(3),
        0xEF => (rest.get(1) == Some(&0xBB) && rest.get(2) == Some(&0xBF)).then_some(3),
        _ => None,
    }
}

/// Returns whether JSON allows `byte` between tokens.
#[inline]
pub(crate) fn is_json_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Returns whether `byte` can be part of a word without quotes: a number, a literal, an identifier.
#[inline]
pub(crate) fn is_word_byte(byte: u8) -> bool {
    WORD_BYTES.0[byte as usize]
}

/// Set of bytes, with a search for the first of them.
pub(crate) struct ByteSet([bool; 256]);

impl ByteSet {
    /// Creates a set of `bytes`; `has_controls` adds the control characters below 0x20.
    const fn new(bytes: &[u8], has_controls: bool) -> ByteSet {
        let mut set = [false; 256];
        let mut i = 0;
        while i < bytes.len() {
            set[bytes[i] as usize] = true;
            i += 1;
        }
        i = 0;
        while has_controls && i < 0x20 {
            set[i] = true;
            i += 1;
        }
        ByteSet(set)
    }

    /// Offset of the first byte of the set in `bytes` at or after `at`; the length if there is none.
    #[inline]
    pub(crate) fn find(&self, bytes: &[u8], mut at: usize) -> usize {
        // Eight bytes at a time, since the loop condition costs more than the look-up in the table.
        while let Some(block) = bytes.get(at..at + 8) {
            let hit = |i: usize| self.0[block[i] as usize];
            if hit(0) | hit(1) | hit(2) | hit(3) | hit(4) | hit(5) | hit(6) | hit(7) {
                break;
            }
            at += 8;
        }
        while at < bytes.len() && !self.0[bytes[at] as usize] {
            at += 1;
        }
        at
    }
}

// Stop bytes by kind of quote, with the control characters (`true`). Bytes from 0x80 are first bytes of
// typographic quotes.
static DOUBLE_STOPS: ByteSet = ByteSet::new(b"\"\\", true);
static SINGLE_STOPS: ByteSet = ByteSet::new(b"'\\", true);
static BACK_STOPS: ByteSet = ByteSet::new(b"`'\\\xC2", true);
static CURLY_STOPS: ByteSet = ByteSet::new(b"\"\\\xE2\xEF", true);
static CURLY_SINGLE_STOPS: ByteSet = ByteSet::new(b"'\\\xE2\xEF", true);
static ANGLE_STOPS: ByteSet = ByteSet::new(b"\\\xC2\xE2", true);
static CORNER_STOPS: ByteSet = ByteSet::new(b"\\\xE3", true);
static WORD_BYTES: ByteSet =
    ByteSet::new(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.$", false);

/// Bytes that may end an unquoted string; 0xEF and 0xE3 begin full-width punctuation.
pub(crate) static BARE_STOPS: ByteSet = ByteSet::new(b",]}[{()\n\"`/#\\\xEF\xE3", false);

/// Bytes that matter in the text around JSON values: possible beginnings of values, strings in backticks,
/// fences, tags and comments. From 0x80 on they are first bytes of typographic quotes and full-width
/// punctuation.
pub(crate) static PROSE_STOPS: ByteSet = ByteSet::new(b"{[`~</\xE2\xEF\xE3", false);
