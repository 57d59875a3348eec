//! Errors of the caller. Model output never yields an [`Error`]: it yields events and findings.

use std::fmt;
use std::sync::Arc;

use crate::texts::list_names;

/// A mistake of the caller: an unknown option, a malformed value, a file of the wrong shape.
#[derive(Debug, Clone)]
pub struct Error(Box<ErrorInner>);

#[derive(Debug, Clone)]
struct ErrorInner {
    kind: ErrorKind,
    code: Option<&'static str>,
    message: String,
    location: Option<Location>,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A name that is not known, such as that of a dialect, option or contract.
    Unknown,
    /// A value outside the allowed range or set.
    Invalid,
    /// Text that cannot be parsed, such as invalid JSON.
    Malformed,
}

/// A line and column in a text that the caller supplied.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Location {
    /// Line, from 1.
    pub line: usize,
    /// Column in Unicode scalar values, from 1.
    pub column: usize,
    /// The line, or for a long line the part around the column.
    pub excerpt: String,
}

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Characters of a long line that an excerpt shows on each side of the column.
const EXCERPT_RADIUS: usize = 40;

impl Location {
    /// Location of a byte offset in `text`; an offset past the end gives the end.
    #[doc(hidden)]
    #[must_use]
    pub fn from_offset(text: &str, offset: usize) -> Location {
        let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let column = before[line_start..].chars().count();
        let excerpt =
            line.chars().skip(column.saturating_sub(EXCERPT_RADIUS)).take(2 * EXCERPT_RADIUS).collect();
        Location { line: before.matches('\n').count() + 1, column: column + 1, excerpt }
    }

    /// Location of a line and a column in characters, both from 1.
    #[cfg(feature = "yaml")]
    #[must_use]
    pub(crate) fn from_char_column(text: &str, line: usize, column: usize) -> Location {
        let line_start = line_offset(text, line);
        let column_offset: usize =
            text[line_start..].chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
        Location::from_offset(text, line_start + column_offset)
    }

    /// Location of a line and a column in bytes, both from 1, as parsers report them.
    #[must_use]
    pub(crate) fn from_byte_column(text: &str, line: usize, column: usize) -> Location {
        Location::from_offset(text, line_offset(text, line) + column.saturating_sub(1))
    }

    /// Location of a JSON syntax error. `serde_json` counts columns in bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn from_json_error(text: &str, fault: &serde_json::Error) -> Location {
        match (fault.is_eof(), fault.column()) {
            (true, _) => Location::from_offset(text, text.trim_end().len()),
            // Column 0 means that the fault is the line break before the line.
            (_, 0) => Location::from_offset(text, line_offset(text, fault.line()).saturating_sub(1)),
            (_, column) => Location::from_byte_column(text, fault.line(), column),
        }
    }
}

/// Byte offset of the start of a line, given by its number from 1.
fn line_offset(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

/// Message of a JSON error without its trailing "at line … column …", which counts bytes.
#[doc(hidden)]
#[must_use]
pub fn json_error_message(fault: &serde_json::Error) -> String {
    let message = fault.to_string();
    let place = format!(" at line {} column {}", fault.line(), fault.column());
    message.strip_suffix(&place).map(str::to_owned).unwrap_or(message)
}

impl Error {
    fn new(kind: ErrorKind, message: String) -> Error {
        Error(Box::new(ErrorInner { kind, code: None, message, location: None, cause: None }))
    }

    /// An unknown name; the message lists `known_names`, the closest first.
    #[doc(hidden)]
    pub fn unknown<'a>(subject: &str, name: &str, known_names: impl IntoIterator<Item = &'a str>) -> Error {
        let message = format!("unknown {subject} `{name}`; known: {}", list_names(name, known_names));
        Error::new(ErrorKind::Unknown, message)
    }

    /// A value that is not allowed.
    #[doc(hidden)]
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message.into())
    }

    /// Text that should be JSON but is not.
    #[doc(hidden)]
    pub fn invalid_json(subject: &str, text: &str, cause: serde_json::Error) -> Error {
        let location = Location::from_byte_column(text, cause.line(), cause.column());
        let mut error = Error::new(ErrorKind::Malformed, format!("{subject} is not JSON: {cause}"));
        error.0.location = Some(location);
        error.0.cause = Some(Arc::new(cause));
        error
    }

    /// Attaches a public code.
    #[must_use]
    #[doc(hidden)]
    pub fn with_code(mut self, code: &'static str) -> Error {
        self.0.code = Some(code);
        self
    }

    /// Public code such as `template_not_found`, if there is one.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.0.code
    }

    /// Text that cannot be parsed, with the location of the fault if it is known.
    #[doc(hidden)]
    pub fn malformed(message: impl Into<String>, location: Option<Location>) -> Error {
        let mut error = Error::new(ErrorKind::Malformed, message.into());
        error.0.location = location;
        error
    }

    /// Kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Location of the fault in the caller's text; `None` if it is not known.
    #[must_use]
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}
