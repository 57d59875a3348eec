//! Decoder of UTF-8 across chunks; invalid bytes become replacement characters.

use ascii::AsAsciiStr;
use simdutf8::compat::from_utf8;

/// Decodes chunks that may be cut inside a character.
#[derive(Clone, Debug, Default)]
pub struct Utf8Decoder {
    /// First bytes of a character that the last chunk did not complete: `tail_len` of them.
    tail: [u8; 4],
    tail_len: usize,
}

/// Maximum length in bytes of a chunk that is tested for being all ASCII first.
const MAX_ASCII_PROBE: usize = 64;

/// Maximum length in bytes of a chunk that is copied after the tail, so that both are emitted together.
const MAX_JOINED: usize = 16;

/// Replacement for bytes that are not UTF-8.
pub const REPLACEMENT: &str = "\u{FFFD}";

impl Utf8Decoder {
    /// Decodes `chunk` and passes its text to `out` in order: decoded text with `None`, and each replacement
    /// character with the number of bytes it replaces.
    #[inline]
    pub fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(&str, Option<usize>)) {
        // Fast path: most chunks are short and ASCII, which is checked sixteen bytes at a time.
        if self.tail_len == 0
            && (1..=MAX_ASCII_PROBE).contains(&chunk.len())
            && chunk.is_ascii()
            && let Ok(ascii) = chunk.as_ascii_str()
        {
            return out(ascii.as_str(), None);
        }
        self.decode(chunk, out);
    }

    /// Decodes a chunk that is not short ASCII text.
    #[inline(never)]
    fn decode(&mut self, chunk: &[u8], out: &mut impl FnMut(&str, Option<usize>)) {
        let mut buffer = [0; 4 + MAX_JOINED];
        let mut unread = match self.tail_len {
            0 => chunk,
            _ if chunk.len() > MAX_JOINED => self.complete_tail(chunk, out),
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
            match from_utf8(unread) {
                Ok(valid) => {
                    if !valid.is_empty() {
                        out(valid, None);
                    }
                    return;
                }
                Err(error) => {
                    let (valid, after) = unread.split_at(error.valid_up_to());
                    if let Ok(valid) = from_utf8(valid)
                        && !valid.is_empty()
                    {
                        out(valid, None);
                    }
                    // Without an error length the chunk ends inside a character.
                    let Some(bad_len) = error.error_len() else {
                        self.tail[..after.len()].copy_from_slice(after);
                        self.tail_len = after.len();
                        return;
                    };
                    out(REPLACEMENT, Some(bad_len));
                    unread = &after[bad_len..];
                }
            }
        }
    }

    /// Completes the character carried from the last chunk and returns the bytes after it.
    fn complete_tail<'a>(&mut self, chunk: &'a [u8], out: &mut impl FnMut(&str, Option<usize>)) -> &'a [u8] {
        let mut len = 0;
        while let Some(&byte) = chunk.get(len) {
            self.tail[self.tail_len] = byte;
            match std::str::from_utf8(&self.tail[..=self.tail_len]) {
                Ok(valid) => {
                    out(valid, None);
                    self.tail_len = 0;
                    return &chunk[len + 1..];
                }
                Err(error) if error.error_len().is_none() => {
                    self.tail_len += 1;
                    len += 1;
                }
                Err(_) => {
                    // The new byte does not continue the character: it begins another.
                    out(REPLACEMENT, Some(self.tail_len));
                    self.tail_len = 0;
                    return &chunk[len..];
                }
            }
        }
        &[]
    }

    /// Ends the input; an unfinished character is replaced.
    pub fn finish(&mut self, out: &mut impl FnMut(&str, Option<usize>)) {
        if self.tail_len > 0 {
            out(REPLACEMENT, Some(std::mem::take(&mut self.tail_len)));
        }
    }

    /// Drops an unfinished character without a replacement.
    pub fn discard_tail(&mut self) {
        self.tail_len = 0;
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.tail_len
    }
}

/// Length in bytes of the UTF-8 character that begins with `byte`. A byte inside a character counts as 1.
#[inline]
pub(crate) fn char_width(byte: u8) -> usize {
    match byte {
        0..=0xBF => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
    }
}
