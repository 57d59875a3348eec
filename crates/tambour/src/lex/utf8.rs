//! Decoder of UTF-8 across chunks; invalid bytes become replacement characters.

use ascii::AsAsciiStr;
use simdutf8::compat::from_utf8;

/// Decodes chunks that may be cut inside a character.
#[derive(Clone, Debug, Default)]
pub struct Utf8Decoder {
    tail: [u8; 4],
    tail_len: usize,
}

/// Longest chunk that is scanned for ASCII first.
const MAX_ASCII_PROBE: usize = 64;

/// Longest chunk that is copied behind a carried character.
const MAX_JOINED: usize = 16;

/// Replacement for bytes that are not UTF-8.
pub const REPLACEMENT: &str = "\u{FFFD}";

impl Utf8Decoder {
    /// Decodes `chunk`; passes slices of it to `text` in order, and each replacement character with the
    /// number of bytes it replaces.
    #[inline]
    pub fn push(&mut self, chunk: &[u8], text: &mut impl FnMut(&str, Option<usize>)) {
        // Fast path: most chunks are short and ASCII, which is checked sixteen bytes at a time.
        if self.tail_len == 0
            && (1..=MAX_ASCII_PROBE).contains(&chunk.len())
            && chunk.is_ascii()
            && let Ok(ascii) = chunk.as_ascii_str()
        {
            return text(ascii.as_str(), None);
        }
        self.decode(chunk, text);
    }

    #[inline(never)]
    fn decode(&mut self, chunk: &[u8], text: &mut impl FnMut(&str, Option<usize>)) {
        let mut buffer = [0; 4 + MAX_JOINED];
        let mut rest = match self.tail_len {
            0 => chunk,
            _ if chunk.len() > MAX_JOINED => self.complete_tail(chunk, text),
            // A few bytes are emitted together with the character they complete.
            tail_len => {
                let len = tail_len + chunk.len();
                buffer[..tail_len].copy_from_slice(&self.tail[..tail_len]);
                buffer[tail_len..len].copy_from_slice(chunk);
                self.tail_len = 0;
                &buffer[..len]
            }
        };
        loop {
            match from_utf8(rest) {
                Ok(valid) => {
                    if !valid.is_empty() {
                        text(valid, None);
                    }
                    return;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    if let Ok(valid) = from_utf8(valid)
                        && !valid.is_empty()
                    {
                        text(valid, None);
                    }
                    let Some(bad_len) = error.error_len() else {
                        self.tail[..after.len()].copy_from_slice(after);
                        self.tail_len = after.len();
                        return;
                    };
                    text(REPLACEMENT, Some(bad_len));
                    rest = &after[bad_len..];
                }
            }
        }
    }

    /// Completes the character carried from the last chunk and returns the bytes behind it.
    fn complete_tail<'a>(&mut self, chunk: &'a [u8], text: &mut impl FnMut(&str, Option<usize>)) -> &'a [u8] {
        let mut len = 0;
        while let Some(&byte) = chunk.get(len) {
            self.tail[self.tail_len] = byte;
            match std::str::from_utf8(&self.tail[..=self.tail_len]) {
                Ok(valid) => {
                    text(valid, None);
                    self.tail_len = 0;
                    return &chunk[len + 1..];
                }
                Err(error) if error.error_len().is_none() => {
                    self.tail_len += 1;
                    len += 1;
                }
                Err(_) => {
                    // The new byte does not continue the character: it begins another.
                    text(REPLACEMENT, Some(self.tail_len));
                    self.tail_len = 0;
                    return &chunk[len..];
                }
            }
        }
        &[]
    }

    /// Ends the input; an unfinished character is replaced.
    pub fn finish(&mut self, text: &mut impl FnMut(&str, Option<usize>)) {
        if self.tail_len > 0 {
            text(REPLACEMENT, Some(std::mem::take(&mut self.tail_len)));
        }
    }

    /// Drops an unfinished character.
    pub fn discard_tail(&mut self) {
        self.tail_len = 0;
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.tail_len
    }
}

/// Length of the UTF-8 character that begins with `byte`.
#[inline]
pub(crate) fn char_width(byte: u8) -> usize {
    match byte {
        0..=0xBF => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
    }
}
