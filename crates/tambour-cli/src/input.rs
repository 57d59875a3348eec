//! Input from a file, or from standard input as its bytes arrive.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use tambour::error::{self, Location};

/// Argument that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Byte order mark of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Source of bytes that arrive in pieces.
pub(crate) struct InputReader {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    name: String,
}

impl InputReader {
    /// Opens `path`; `None` and `-` are standard input.
    pub(crate) fn open(path: Option<&Path>) -> Result<InputReader> {
        let name = display_name(path);
        let reader: Box<dyn Read> = match path {
            Some(path) if path != Path::new(STDIN) => {
                Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
            }
            _ => Box::new(io::stdin().lock()),
        };
        Ok(InputReader { reader, buffer: vec![0; 64 << 10], name })
    }

    /// Waits for bytes and returns those that have arrived, at least one; `None` at the end.
    pub(crate) fn next_bytes(&mut self) -> Result<Option<&[u8]>> {
        loop {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(&self.buffer[..length])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", self.name)),
            }
        }
    }

    /// Reads all bytes up to the end.
    pub(crate) fn read_to_end(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", self.name))?;
        Ok(bytes)
    }
}

/// Name of `path` in messages.
pub(crate) fn display_name(path: Option<&Path>) -> String {
    match path {
        Some(path) if path != Path::new(STDIN) => path.display().to_string(),
        _ => "standard input".to_owned(),
    }
}

/// Reads the JSON value of a file or of standard input.
///
/// # Errors
/// The input cannot be read, or is not JSON; the message names the place.
pub(crate) fn read_json(path: &Path) -> Result<Value> {
    let bytes = read_without_bom(Some(path))?;
    serde_json::from_slice(&bytes).map_err(|fault| {
        let (message, location) = describe_json_fault(&bytes, &fault);
        let Location { line, column, excerpt, .. } = location;
        anyhow!("{}: not JSON: {message} (line {line}, column {column}): {excerpt}", display_name(Some(path)))
    })
}

/// Describes the fault of JSON text, with its place.
pub(crate) fn describe_json_fault(bytes: &[u8], fault: &serde_json::Error) -> (String, Location) {
    (error::json_error_message(fault), Location::from_json_error(&String::from_utf8_lossy(bytes), fault))
}

/// Reads all of a file or of standard input, without a byte order mark.
pub(crate) fn read_without_bom(path: Option<&Path>) -> Result<Vec<u8>> {
    let mut bytes = read_raw(path)?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(bytes)
}

/// Reads all of a file or of standard input unchanged, so that findings on a reply keep their places.
pub(crate) fn read_raw(path: Option<&Path>) -> Result<Vec<u8>> {
    InputReader::open(path)?.read_to_end()
}

/// Splits arriving bytes into pieces of equal size, `size` bytes each.
pub(crate) struct PieceSplitter {
    size: usize,
    /// Bytes of the incomplete piece.
    remainder: Vec<u8>,
}

impl PieceSplitter {
    pub(crate) fn new(size: usize) -> PieceSplitter {
        PieceSplitter { size, remainder: Vec::new() }
    }

    /// Returns the last, incomplete piece.
    pub(crate) fn into_remainder(self) -> Vec<u8> {
        self.remainder
    }

    /// Takes the next bytes and passes each piece that is complete to `on_piece`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut on_piece: impl FnMut(&[u8])) {
        if !self.remainder.is_empty() {
            let fill_len = (self.size - self.remainder.len()).min(bytes.len());
            self.remainder.extend_from_slice(&bytes[..fill_len]);
            bytes = &bytes[fill_len..];
            if self.remainder.len() < self.size {
                return;
            }
            on_piece(&self.remainder);
            self.remainder.clear();
        }
        let pieces = bytes.chunks_exact(self.size);
        self.remainder.extend_from_slice(pieces.remainder());
        pieces.for_each(on_piece);
    }
}
