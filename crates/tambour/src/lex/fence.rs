//! Fences of code blocks: three or more backticks or tildes, closed by at least as many of the same. Where a
//! fence may begin and which info string it may have is for each reader to decide.

/// Least length of a fence.
const MIN_LEN: usize = 3;

/// Run of characters that makes a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Character of the run.
    pub mark: u8,
    /// Number of characters.
    pub len: usize,
}

impl Fence {
    /// Fence made of `len` characters `mark`, if these are enough.
    #[must_use]
    #[inline]
    pub fn new(mark: u8, len: usize) -> Option<Fence> {
        (is_mark(mark) && len >= MIN_LEN).then_some(Fence { mark, len })
    }

    /// Parses the fence at the start of a line; returns the rest of the line too.
    #[must_use]
    pub fn parse(line: &str) -> Option<(Fence, &str)> {
        let mark = *line.as_bytes().first()?;
        let len = line.bytes().take_while(|&byte| byte == mark).count();
        Some((Fence::new(mark, len)?, &line[len..]))
    }

    /// Returns whether `run` closes this fence.
    #[must_use]
    #[inline]
    pub fn is_closed_by(self, run: Fence) -> bool {
        run.mark == self.mark && run.len >= self.len
    }

    /// Returns whether a line, ignoring blanks around it, closes this fence.
    #[must_use]
    pub fn is_closed_by_line(self, line: &str) -> bool {
        Fence::parse(line.trim()).is_some_and(|(run, rest)| rest.is_empty() && self.is_closed_by(run))
    }
}

/// Returns whether fences can be made of this byte.
#[must_use]
#[inline]
pub fn is_mark(byte: u8) -> bool {
    matches!(byte, b'`' | b'~')
}

/// Returns whether a fence language is JSON or a variant of it, such as `jsonl` and `JSON5`.
#[must_use]
pub fn is_json(language: &str) -> bool {
    language.len() < 8 && language.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("json"))
}
