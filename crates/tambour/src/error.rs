//! Mistakes of the caller. Model output never yields an [`Error`]: it yields events and findings.

use std::fmt;

/// A mistake of the caller: an unknown option, a malformed value, a file of the wrong shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
}

/// What kind of mistake it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such dialect, option or contract.
    Unknown,
    /// A value outside what is allowed.
    Invalid,
}

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A name that does not exist; `known` lists what does.
    pub(crate) fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        let known: Vec<&str> = known.into_iter().collect();
        Error(Box::new(Inner {
            kind: ErrorKind::Unknown,
            message: format!("unknown {what} `{name}`; known: {}", known.join(", ")),
        }))
    }

    /// A value that is not allowed.
    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind: ErrorKind::Invalid, message: message.into() }))
    }

    /// What kind of mistake it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
