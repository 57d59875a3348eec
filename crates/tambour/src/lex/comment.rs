//! HTML comments: whether one is open in text that goes out, and where one ends.

/// Bytes from behind `<!--` to behind the end of the comment, as HTML has it: `-->`, `--!>`, or `>` and `->` at once.
#[must_use]
pub fn comment_len(text: &str) -> Option<usize> {
    let empty = [">", "->"].into_iter().find(|end| text.starts_with(end));
    let ends = || ["-->", "--!>"].into_iter().filter_map(|end| Some(text.find(end)? + end.len())).min();
    empty.map(str::len).or_else(ends)
}

/// Follows a comment to its end. Outside of comments nothing is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comment {
    open: bool,
    dashes: u8,
}

impl Comment {
    /// `<!--` went out.
    pub fn begin(&mut self) {
        *self = Comment { open: true, dashes: 0 };
    }

    /// Whether a comment is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Text went out.
    #[inline]
    pub fn text(&mut self, text: &str) {
        if self.open {
            self.read(text);
        }
    }

    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            self.dashes = match (byte, self.dashes) {
                (b'-', dashes) => (dashes + 1).min(2),
                (b'>', 2) => return *self = Comment::default(),
                _ => 0,
            };
        }
    }
}
