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
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Source of bytes that arrive in pieces.
pub(crate) struct Input {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    name: String,
}

impl Input {
    /// Opens `path`; `None` and `-` are standard input.
    pub(crate) fn open(path: Option<&Path>) -> Result<Input> {
        let name = name_of(path);
        let reader: Box<dyn Read> = match path {
            Some(path) if path != Path::new(STDIN) => {
                Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
            }
            _ => Box::new(io::stdin().lock()),
        };
        Ok(Input { reader, buffer: vec![0; 64 << 10], name })
    }

    /// Reads the bytes that have arrived, at least one; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        loop {
            match self.reader.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => return Ok(Some(&self.buffer[..length])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", self.name)),
            }
        }
    }

    /// Reads the rest.
    pub(crate) fn rest(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", self.name))?;
        Ok(bytes)
    }
}

/// Name of `path` in messages.
pub(crate) fn name_of(path: Option<&Path>) -> String {
    match path {
        Some(path) if path != Path::new(STDIN) => path.display().to_string(),
        _ => "standard input".to_owned(),
    }
}

/// Reads the JSON value of a file or of standard input.
///
/// # Errors
/// The input cannot be read, or is not JSON; the message names the place.
pub(crate) fn json(path: &Path) -> Result<Value> {
    let bytes = read(Some(path))?;
    serde_json::from_slice(&bytes).map_err(|fault| {
        let (words, place) = json_fault(&bytes, &fault);
        let Location { line, column, excerpt, .. } = place;
        anyhow!("{}: not JSON: {words} (line {line}, column {column}): {excerpt}", name_of(Some(path)))
    })
}

/// Describes the fault of JSON text, with its place.
pub(crate) fn json_fault(bytes: &[u8], fault: &serde_json::Error) -> (String, Location) {
    (error::json_fault(fault), Location::of_json(&String::from_utf8_lossy(bytes), fault))
}

/// Reads all of a file or of standard input, without a byte order mark.
pub(crate) fn read(path: Option<&Path>) -> Result<Vec<u8>> {
    let mut bytes = read_raw(path)?;
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    Ok(bytes)
}

/// Reads all of a file or of standard input unchanged, so that findings on a reply keep their places.
pub(crate) fn read_raw(path: Option<&Path>) -> Result<Vec<u8>> {
    Input::open(path)?.rest()
}

/// Splitter of arriving bytes into pieces of one size.
pub(crate) struct Pieces {
    size: usize,
    kept: Vec<u8>,
}

impl Pieces {
    pub(crate) fn new(size: usize) -> Pieces {
        Pieces { size, kept: Vec::new() }
    }

    /// Returns the last, incomplete piece.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.kept
    }

    pub(crate) fn cut(&mut self, mut bytes: &[u8], mut piece: impl FnMut(&[u8])) {
        if !self.kept.is_empty() {
            let missing = (self.size - self.kept.len()).min(bytes.len());
            self.kept.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.kept.len() < self.size {
                return;
            }
            piece(&self.kept);
            self.kept.clear();
        }
        let pieces = bytes.chunks_exact(self.size);
        self.kept.extend_from_slice(pieces.remainder());
        pieces.for_each(piece);
    }
}
