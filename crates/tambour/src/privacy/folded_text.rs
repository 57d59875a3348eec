//! Text as detectors read it: full-width forms folded, invisible characters dropped.

use std::ops::Range;

/// A text with its folded characters.
///
/// Full-width letters, digits and signs are folded to ASCII, typographic dashes and blanks to `-` and space,
/// and Arabic-Indic digits to digits. Zero-width characters are dropped, since they would hide a number.
#[derive(Debug)]
pub struct FoldedText<'a> {
    raw: &'a str,
    chars: Vec<char>,
    /// Byte offset in `raw` of each character, and of the end.
    starts: Vec<usize>,
}

impl<'a> FoldedText<'a> {
    pub(super) fn new(raw: &'a str) -> FoldedText<'a> {
        let mut chars = Vec::with_capacity(raw.len());
        let mut starts = Vec::with_capacity(raw.len() + 1);
        for (start, c) in raw.char_indices() {
            if let Some(c) = fold_char(c) {
                chars.push(c);
                starts.push(start);
            }
        }
        starts.push(raw.len());
        FoldedText { raw, chars, starts }
    }

    /// Original text.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// Folded characters.
    #[must_use]
    pub fn chars(&self) -> &[char] {
        &self.chars
    }

    /// Byte range in the original text of the characters `chars()[range]`.
    ///
    /// # Panics
    /// Panics if the range is out of bounds.
    #[must_use]
    pub fn byte_range(&self, range: Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return self.starts[range.start]..self.starts[range.start];
        }
        // Invisible characters after the last character are not part of the range.
        let last_start = self.starts[range.end - 1];
        let last_len = self.raw[last_start..].chars().next().map_or(0, char::len_utf8);
        self.starts[range.start]..last_start + last_len
    }

    /// Character before `index`.
    pub(super) fn char_before(&self, index: usize) -> Option<char> {
        index.checked_sub(1).map(|index| self.chars[index])
    }

    /// Character at `index`.
    pub(super) fn char_at(&self, index: usize) -> Option<char> {
        self.chars.get(index).copied()
    }

    /// ASCII word before `index`, in lower case. Only blanks and `:`, `.`, `=` and `#` may separate it from
    /// `index`. Empty if there is none. Only 16 characters are examined.
    pub(super) fn word_before(&self, index: usize) -> String {
        const MAX_REACH: usize = 16;
        let from = index.saturating_sub(MAX_REACH);
        let window: String = self.chars[from..index].iter().collect();
        let window = window.trim_end_matches([' ', ':', '.', '=', '#']);
        let start = window
            .rfind(|c: char| !c.is_ascii_alphabetic())
            .map_or(0, |at| at + window[at..].chars().next().map_or(0, char::len_utf8));
        window[start..].to_ascii_lowercase()
    }
}

/// Folded character; `None` for an invisible one.
fn fold_char(c: char) -> Option<char> {
    Some(match c {
        ' '..='~' => c,
        // Full-width ASCII.
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(c as u32 - 0xFF01 + 0x21)?,
        // Ideographic, no-break and typographic blanks.
        '\u{3000}' | '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' => ' ',
        // Hyphens, dashes and minus signs.
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE63}' => '-',
        // Zero-width characters and the soft hyphen.
        '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' | '\u{AD}' => return None,
        // Arabic-Indic digits, then their Eastern forms.
        '\u{660}'..='\u{669}' => char::from_u32(c as u32 - 0x660 + 0x30)?,
        '\u{6F0}'..='\u{6F9}' => char::from_u32(c as u32 - 0x6F0 + 0x30)?,
        _ => c,
    })
}

/// Returns whether `c` is an ASCII letter or digit; most detectors allow none directly before or after a
/// match.
pub(super) fn is_alnum(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

/// Returns whether `c` is an ASCII digit.
pub(super) fn is_digit(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_digit())
}
