//! Fences of code blocks: three or more backticks or tildes, closed by at least as many of the same. Where they may stand, and
//! what their first line may say, differs from reader to reader.

/// Fewest characters of a fence.
const LEAST: usize = 3;

/// The characters of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Which one.
    pub mark: u8,
    /// How many.
    pub len: usize,
}

impl Fence {
    /// A run of so many of a character, if there are enough.
    #[must_use]
    #[inline]
    pub fn new(mark: u8, len: usize) -> Option<Fence> {
        (is_mark(mark) && len >= LEAST).then_some(Fence { mark, len })
    }

    /// The fence that a line begins with, and what stands behind it.
    #[must_use]
    pub fn of(line: &str) -> Option<(Fence, &str)> {
        let mark = *line.as_bytes().first()?;
        let len = line.bytes().take_while(|&byte| byte == mark).count();
        Some((Fence::new(mark, len)?, &line[len..]))
    }

    /// Whether `run` closes it.
    #[must_use]
    #[inline]
    pub fn is_closed_by(self, run: Fence) -> bool {
        run.mark == self.mark && run.len >= self.len
    }

    /// Whether a line closes it, without the blanks around.
    #[must_use]
    pub fn is_closed_by_line(self, line: &str) -> bool {
        Fence::of(line.trim()).is_some_and(|(run, rest)| rest.is_empty() && self.is_closed_by(run))
    }
}

/// Whether a byte is a character of fences.
#[must_use]
#[inline]
pub fn is_mark(byte: u8) -> bool {
    matches!(byte, b'`' | b'~')
}

/// Whether a language is JSON or a kind of it, such as `jsonl` and `JSON5`.
#[must_use]
pub fn is_json(language: &str) -> bool {
    language.len() < 8 && language.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("json"))
}
