//! Bounded reading of files and of their lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

use crate::input::{self, BYTE_ORDER_MARK};

/// Maximum length of a line in bytes. A reply and its reasoning of [`MAX_REPLY_BYTES`] each fit in, even if JSON
/// writes every byte as six.
const MAX_LINE_BYTES: usize = 512 << 20;
/// Maximum of the option `limits.input` in an evaluation, in bytes.
pub(super) const MAX_REPLY_BYTES: usize = 32 << 20;

/// Reads a text file of at most `max_bytes`, without a byte order mark.
///
/// # Errors
/// The file cannot be read, is longer, or is not UTF-8.
pub(super) fn read_text(path: &Path, max_bytes: u64) -> Result<String> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > max_bytes {
        bail!("{name} is longer than {max_bytes} bytes");
    }
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))?;
    Ok(text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text))
}

/// Lines of a file, one at a time.
pub(super) struct LineReader {
    reader: BufReader<File>,
    name: String,
    line: Vec<u8>,
    /// Number of the current line, from 1.
    pub(super) number: u64,
    /// Offset of the current line in bytes.
    pub(super) offset: u64,
    next_offset: u64,
}

impl LineReader {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(path: &Path) -> Result<LineReader> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let reader = BufReader::with_capacity(64 << 10, file);
        Ok(LineReader { reader, name, line: Vec::new(), number: 0, offset: 0, next_offset: 0 })
    }

    /// Opens a file that need not exist.
    ///
    /// # Errors
    /// The file exists and cannot be opened.
    pub(super) fn open_if_present(path: &Path) -> Result<Option<LineReader>> {
        if path.exists() { LineReader::open(path).map(Some) } else { Ok(None) }
    }

    /// Reads the next line that is not blank, without its line break; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or the line is too long.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            self.offset = self.next_offset;
            let mut limited = (&mut self.reader).take(MAX_LINE_BYTES as u64 + 1);
            let length = limited
                .read_until(b'\n', &mut self.line)
                .with_context(|| format!("cannot read {}", self.name))?;
            if length == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.next_offset += length as u64;
            if length > MAX_LINE_BYTES {
                bail!("{}: the line is longer than {MAX_LINE_BYTES} bytes", self.place());
            }
            if !self.line.trim_ascii().is_empty() {
                let has_mark = self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK);
                let start = if has_mark { BYTE_ORDER_MARK.len() } else { 0 };
                let end = self.line.len() - usize::from(self.line.ends_with(b"\n"));
                return Ok(Some(&self.line[start..end]));
            }
        }
    }

    /// Reads the line at an offset, which [`LineReader::offset`] had before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read_at(&mut self, offset: u64) -> Result<Option<&[u8]>> {
        self.reader.seek(SeekFrom::Start(offset)).with_context(|| format!("cannot read {}", self.name))?;
        self.next_offset = offset;
        self.next()
    }

    /// Returns `FILE:LINE`.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.name, self.number)
    }
}

/// Parses a line of JSON.
///
/// # Errors
/// The line is not JSON of this form: a message without the place of the line.
pub(super) fn parse_json<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line).map_err(|fault| {
        let (message, location) = input::describe_json_fault(line, &fault);
        if fault.is_data() {
            anyhow::anyhow!("{message} (column {})", location.column)
        } else {
            anyhow::anyhow!("not JSON: {message} (column {}): {}", location.column, location.excerpt)
        }
    })
}
