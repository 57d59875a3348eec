//! Lines of a transcript, for any chunking: a line feed, a carriage return or both end a line.

use super::Extent;
use crate::span::Place;

/// Splits bytes that arrive in chunks into lines.
#[derive(Debug)]
pub(super) struct TranscriptLines {
    /// Most bytes of a line that are kept.
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes and scalar values of the open line, kept or not.
    length: usize,
    scalar_count: u32,
    /// Start of the open line.
    place: Place,
    /// The last byte was a carriage return: a line feed after it belongs to the same line end.
    is_after_cr: bool,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct TranscriptLine<'a> {
    /// Bytes, truncated at the limit if the line is longer.
    pub(super) bytes: &'a [u8],
    pub(super) extent: Extent,
    pub(super) is_overlong: bool,
}

impl TranscriptLines {
    pub(super) fn new(limit: usize) -> TranscriptLines {
        TranscriptLines {
            limit,
            buffer: Vec::new(),
            length: 0,
            scalar_count: 0,
            place: Place::START,
            is_after_cr: false,
        }
    }

    /// Reads the next bytes and passes on each completed line.
    pub(super) fn push(&mut self, mut bytes: &[u8], line: &mut dyn FnMut(TranscriptLine<'_>)) {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.is_after_cr) && first == b'\n' {
                self.place = Place { offset: self.place.offset + 1, line: self.place.line + 1, column: 1 };
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.append(piece);
            let Some(end) = end else { return };
            self.end_line(line);
            // Only line feeds count as line ends here, as in all places (`Place`).
            self.place = if bytes[end] == b'\n' {
                Place { offset: self.place.offset + 1, line: self.place.line + 1, column: 1 }
            } else {
                self.is_after_cr = true;
                Place { offset: self.place.offset + 1, column: self.place.column + 1, ..self.place }
            };
            bytes = &bytes[end + 1..];
        }
    }

    /// Passes on the last line if its end is missing; returns the place of the end.
    pub(super) fn finish(&mut self, line: &mut dyn FnMut(TranscriptLine<'_>)) -> Place {
        if self.length > 0 {
            self.end_line(line);
        }
        self.place
    }

    fn append(&mut self, piece: &[u8]) {
        let room = self.limit.saturating_sub(self.buffer.len());
        self.buffer.extend_from_slice(&piece[..room.min(piece.len())]);
        self.length += piece.len();
        // Bytes of the form 0b10xxxxxx continue a scalar value.
        self.scalar_count += piece.iter().map(|&byte| u32::from(byte as i8 >= -64)).sum::<u32>();
    }

    fn end_line(&mut self, line: &mut dyn FnMut(TranscriptLine<'_>)) {
        let end = self.place.offset + self.length;
        let extent = Extent { place: self.place, end };
        line(TranscriptLine { bytes: &self.buffer, extent, is_overlong: self.length > self.buffer.len() });
        self.place =
            Place { offset: end, column: self.place.column.saturating_add(self.scalar_count), ..self.place };
        self.buffer.clear();
        self.length = 0;
        self.scalar_count = 0;
    }
}
