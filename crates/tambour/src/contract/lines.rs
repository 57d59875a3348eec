//! Lines of a transcript, for any chunking: a line feed, a carriage return or both end a line.

use super::Extent;
use crate::span::Place;

/// Splits bytes that arrive in chunks into lines.
#[derive(Debug)]
pub(super) struct Lines {
    /// Most bytes of a line that are kept.
    limit: usize,
    kept: Vec<u8>,
    /// Bytes and scalar values of the open line, kept or not.
    length: usize,
    scalars: u32,
    /// Start of the open line.
    place: Place,
    /// The last byte was a carriage return: a line feed after it belongs to the same line end.
    after_return: bool,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Bytes, truncated at the limit if the line is longer.
    pub(super) bytes: &'a [u8],
    pub(super) at: Extent,
    pub(super) overlong: bool,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Lines {
        Lines { limit, kept: Vec::new(), length: 0, scalars: 0, place: Place::START, after_return: false }
    }

    /// Reads the next bytes and passes on each completed line.
    pub(super) fn push(&mut self, mut bytes: &[u8], line: &mut dyn FnMut(Line<'_>)) {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                self.place = Place { offset: self.place.offset + 1, line: self.place.line + 1, column: 1 };
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            self.keep(piece);
            let Some(end) = end else { return };
            self.end(line);
            // Only line feeds count as line ends here, as in all places (`Place`).
            self.place = if bytes[end] == b'\n' {
                Place { offset: self.place.offset + 1, line: self.place.line + 1, column: 1 }
            } else {
                self.after_return = true;
                Place { offset: self.place.offset + 1, column: self.place.column + 1, ..self.place }
            };
            bytes = &bytes[end + 1..];
        }
    }

    /// Passes on the last line if its end is missing; returns the place of the end.
    pub(super) fn finish(&mut self, line: &mut dyn FnMut(Line<'_>)) -> Place {
        if self.length > 0 {
            self.end(line);
        }
        self.place
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = self.limit.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&piece[..room.min(piece.len())]);
        self.length += piece.len();
        // Bytes of the form 0b10xxxxxx continue a scalar value.
        self.scalars += piece.iter().map(|&byte| u32::from(byte as i8 >= -64)).sum::<u32>();
    }

    fn end(&mut self, line: &mut dyn FnMut(Line<'_>)) {
        let end = self.place.offset + self.length;
        let at = Extent { place: self.place, end };
        line(Line { bytes: &self.kept, at, overlong: self.length > self.kept.len() });
        self.place =
            Place { offset: end, column: self.place.column.saturating_add(self.scalars), ..self.place };
        self.kept.clear();
        self.length = 0;
        self.scalars = 0;
    }
}
