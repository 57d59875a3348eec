//! Lines of a file of records, in chunks that are read as a whole.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use memchr::memchr;

/// Bytes after which a chunk ends with its line.
const CHUNK_BYTES: usize = 256 << 10;
/// Longest line that is read, in bytes.
const MAX_LINE_BYTES: usize = 256 << 20;

/// Reader of chunks.
pub(super) struct ChunkReader {
    reader: BufReader<Box<dyn Read + Send>>,
    /// Number of the last line, from 1.
    line: u64,
    /// True after the end or an error.
    has_ended: bool,
}

/// Some lines of a file, without blank ones.
#[derive(Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    lines: Vec<Line>,
    /// Error after the last line, which ends the file.
    pub(super) error: Option<String>,
}

struct Line {
    number: u64,
    range: Range<usize>,
    is_too_long: bool,
}

impl Chunk {
    /// Lines with their numbers, from 1; a line that is too long is a message for people.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, Result<&[u8], String>)> {
        self.lines.iter().map(|line| {
            let bytes = if line.is_too_long {
                Err(format!("longer than {} MiB", MAX_LINE_BYTES >> 20))
            } else {
                Ok(&self.bytes[line.range.clone()])
            };
            (line.number, bytes)
        })
    }
}

impl ChunkReader {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> ChunkReader {
        ChunkReader { reader: BufReader::with_capacity(CHUNK_BYTES, reader), line: 0, has_ended: false }
    }

    /// Adds a line to the chunk; returns `false` at the end of the file.
    fn read_line(&mut self, chunk: &mut Chunk) -> io::Result<bool> {
        let start = chunk.bytes.len();
        let (mut is_too_long, mut has_bytes) = (false, false);
        loop {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    // The part of a line before an error is no record.
                    chunk.bytes.truncate(start);
                    return Err(error);
                }
            };
            if available.is_empty() && !has_bytes {
                return Ok(false);
            }
            has_bytes = true;
            let end = memchr(b'\n', available);
            let length = end.map_or(available.len(), |end| end + 1);
            is_too_long |= chunk.bytes.len() - start + length > MAX_LINE_BYTES;
            if is_too_long {
                chunk.bytes.truncate(start);
            } else {
                chunk.bytes.extend_from_slice(&available[..length]);
            }
            let is_end = end.is_some() || available.is_empty();
            self.reader.consume(length);
            if is_end {
                break;
            }
        }
        self.line += 1;
        let range = start..chunk.bytes.len();
        if is_too_long || !chunk.bytes[range.clone()].trim_ascii().is_empty() {
            chunk.lines.push(Line { number: self.line, range, is_too_long });
        }
        Ok(true)
    }
}

impl Iterator for ChunkReader {
    type Item = Chunk;

    /// Reads the next chunk. It ends early where the source has no further line yet, so that records of a pipe
    /// are checked as they arrive.
    fn next(&mut self) -> Option<Chunk> {
        if self.has_ended {
            return None;
        }
        let mut chunk = Chunk::default();
        loop {
            match self.read_line(&mut chunk) {
                Ok(true) => {}
                Ok(false) => self.has_ended = true,
                Err(error) => {
                    self.has_ended = true;
                    chunk.error = Some(error.to_string());
                }
            }
            let has_line = memchr(b'\n', self.reader.buffer()).is_some();
            if self.has_ended || chunk.bytes.len() >= CHUNK_BYTES || !has_line && !chunk.lines.is_empty() {
                return Some(chunk);
            }
        }
    }
}
