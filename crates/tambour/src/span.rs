//! Places in the raw reply: byte offsets, lines and columns. Where bytes are not UTF-8, readers count their
//! replacement characters; the pipeline translates the offsets of findings to the bytes received.
//!
//! Places are counted while the reply arrives, a few hundred bytes at a time, so that a finding can name its
//! line without the whole reply being buffered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of byte offsets into the raw reply, end exclusive.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

/// A part of the raw reply, with the line and column at which it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// Place of its first byte.
    pub place: Place,
    /// Byte offset after its last byte.
    pub end: usize,
}

impl Extent {
    /// Empty extent at `place`.
    pub(crate) fn empty(place: Place) -> Extent {
        Extent { place, end: place.offset }
    }

    /// Returns whether the extent has no bytes.
    pub(crate) fn is_empty(self) -> bool {
        self.end <= self.place.offset
    }

    /// Smallest extent that covers both.
    #[must_use]
    pub(crate) fn join(self, other: Extent) -> Extent {
        Extent { place: self.place.min(other.place), end: self.end.max(other.end) }
    }

    /// Smallest extent that covers those that are present.
    pub(crate) fn join_present(extents: impl IntoIterator<Item = Option<Extent>>) -> Option<Extent> {
        extents.into_iter().flatten().reduce(Extent::join)
    }
}

/// A position in the raw reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Byte offset, from 0.
    pub offset: usize,
    /// Line, from 1; a line ends after its line feed.
    pub line: u32,
    /// Column in Unicode scalar values, from 1.
    pub column: u32,
}

impl Place {
    /// Start of a reply.
    pub const START: Place = Place { offset: 0, line: 1, column: 1 };

    /// Moves the place past `text`; linear in `text`.
    #[doc(hidden)]
    #[inline]
    pub fn advance(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.offset += bytes.len();
        // In a short text a plain loop beats the start-up cost of a search.
        if bytes.len() < 12 {
            for &byte in bytes {
                if byte == b'\n' {
                    self.line += 1;
                    self.column = 1;
                } else {
                    // A continuation byte is 0b10xxxxxx: as a signed byte it is below -64.
                    self.column += u32::from(byte as i8 >= -64);
                }
            }
            return;
        }
        match memchr::memrchr(b'\n', bytes) {
            None => self.column += count_scalars(bytes),
            Some(last) => {
                self.line += count_line_feeds(&bytes[..last]) + 1;
                self.column = 1 + count_scalars(&bytes[last + 1..]);
            }
        }
    }

    /// Place of the start of `text`, which ends at this place; `None` if `text` contains a line break or does
    /// not fit before this place.
    #[must_use]
    pub(crate) fn start_of(self, text: &str) -> Option<Place> {
        let column = self.column.checked_sub(u32::try_from(text.chars().count()).ok()?)?;
        let offset = self.offset.checked_sub(text.len())?;
        (!text.contains('\n') && column > 0).then_some(Place { offset, column, ..self })
    }

    /// Translates a place within a text into one of the reply, where the text starts at `base`.
    #[must_use]
    pub(crate) fn rebase(self, base: Place) -> Place {
        let column = if self.line == 1 { base.column + self.column - 1 } else { self.column };
        Place { offset: base.offset + self.offset, line: base.line + self.line - 1, column }
    }

    /// Place after `text`, which starts at this place.
    #[doc(hidden)]
    #[must_use]
    pub fn end_of(mut self, text: &str) -> Place {
        self.advance(text);
        self
    }
}

impl Default for Place {
    fn default() -> Place {
        Place::START
    }
}

/// A place that is counted lazily: small texts are buffered, and counted together.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaceCounter {
    place: Place,
    /// Text after `place` that is not counted yet; less than [`MAX_PENDING`] bytes.
    pending: String,
}

/// Number of bytes at which pending text is counted.
const MAX_PENDING: usize = 512;

impl PlaceCounter {
    pub(crate) fn new(place: Place) -> PlaceCounter {
        PlaceCounter { place, pending: String::new() }
    }

    /// Moves the place past `text`.
    #[inline]
    pub(crate) fn add(&mut self, text: &str) {
        if self.pending.len() + text.len() < MAX_PENDING {
            return self.pending.push_str(text);
        }
        self.count_pending();
        self.place.advance(text);
    }

    /// Moves the place past a text of `len` bytes, at most 64. Bit `i` of `line_feeds` is set if byte `i` is
    /// a line feed; bit `i` of `continuations` is set if byte `i` continues a character.
    #[inline]
    pub(crate) fn add_with_signs(&mut self, len: usize, mut line_feeds: u64, continuations: u64) {
        if !self.pending.is_empty() {
            self.count_pending();
        }
        let place = &mut self.place;
        place.offset += len;
        let last_line_start = u64::BITS - line_feeds.leading_zeros();
        if line_feeds != 0 {
            place.column = 1;
        }
        while line_feeds != 0 {
            place.line += 1;
            // Clears the lowest bit that is set.
            line_feeds &= line_feeds - 1;
        }
        place.column += len as u32 - last_line_start;
        // Most English text has no continuation bytes, so counting their bits is skipped: where the CPU has no
        // instruction for that, it takes a dozen instructions.
        if continuations != 0 {
            // Nothing is left if the last of 64 bytes is a line feed.
            let continuations = continuations.checked_shr(last_line_start).unwrap_or(0);
            place.column -= continuations.count_ones();
        }
    }

    /// Counts the pending text and returns the place.
    pub(crate) fn count_pending(&mut self) -> Place {
        self.place.advance(&self.pending);
        self.pending.clear();
        self.place
    }

    /// Current place, after the pending text, which stays pending.
    pub(crate) fn place(&self) -> Place {
        self.place.end_of(&self.pending)
    }
}

/// Place of the start of a token, computed only on request.
#[derive(Debug)]
#[doc(hidden)]
pub struct LazyPlace<'a>(LazyPlaceSource<'a>);

#[derive(Debug)]
enum LazyPlaceSource<'a> {
    Place(Place),
    Counter(&'a mut PlaceCounter),
}

impl<'a> LazyPlace<'a> {
    pub(crate) fn from_counter(counter: &'a mut PlaceCounter) -> LazyPlace<'a> {
        LazyPlace(LazyPlaceSource::Counter(counter))
    }

    /// Computes the place.
    #[must_use]
    pub fn resolve(self) -> Place {
        match self.0 {
            LazyPlaceSource::Place(place) => place,
            LazyPlaceSource::Counter(counter) => counter.count_pending(),
        }
    }
}

impl From<Place> for LazyPlace<'_> {
    fn from(place: Place) -> Self {
        LazyPlace(LazyPlaceSource::Place(place))
    }
}

#[inline]
fn count_line_feeds(bytes: &[u8]) -> u32 {
    // Below this length a plain loop beats the start-up cost of a search.
    match bytes.len() {
        0..64 => bytes.iter().map(|&byte| u32::from(byte == b'\n')).sum(),
        _ => memchr::memchr_iter(b'\n', bytes).count() as u32,
    }
}

/// Number of Unicode scalar values in valid UTF-8.
#[inline]
fn count_scalars(bytes: &[u8]) -> u32 {
    if bytes.is_ascii() {
        return bytes.len() as u32;
    }
    // A continuation byte is 0b10xxxxxx. Eight bytes at a time, the lowest bit of each byte is set if it is
    // one; the multiplication adds these bits up in the highest byte.
    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    let (words, last_bytes) = bytes.as_chunks::<8>();
    let mut continuation_count = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        continuation_count += (((word >> 7) & (!word >> 6) & LOW_BITS).wrapping_mul(LOW_BITS) >> 56) as u32;
    }
    continuation_count += last_bytes.iter().map(|&byte| u32::from((byte as i8) < -64)).sum::<u32>();
    bytes.len() as u32 - continuation_count
}
