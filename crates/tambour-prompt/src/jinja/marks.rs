//! Marks that are resolved only when a text is finished: the line breaks that `{{trim}}` removes (M-064) and
//! the column of a multi-line value (M-091). The marks are Unicode noncharacters, which are reserved for use
//! inside programs and are replaced in all outside text.

/// Removes itself and the adjacent line breaks.
pub(super) const TRIM: char = '\u{FDD0}';

/// Stops [`TRIM`] from removing line breaks beyond it.
pub(super) const BARRIER: char = '\u{FDD1}';

/// Begins a value whose further lines are indented to the column of this mark.
pub(super) const COLUMN: char = '\u{FDD2}';

/// A line break in a value that [`COLUMN`] begins.
pub(super) const LINE: char = '\u{FDD3}';

/// The first bytes that all marks share.
const MARK_PREFIX: &[u8] = "\u{FDD0}".as_bytes().split_at(2).0;

/// Returns true for the marks of this module.
fn is_mark(c: char) -> bool {
    (TRIM..=LINE).contains(&c)
}

/// Returns true if `text` contains a mark.
pub(super) fn has_mark(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), MARK_PREFIX).is_some_and(|at| text[at..].contains(is_mark))
}

/// Replaces each mark by the replacement character, which has the same length in bytes.
pub(super) fn replace_marks(text: &str) -> String {
    text.chars().map(|c| if is_mark(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Removes all marks from `text`.
pub(super) fn remove_marks(text: &str) -> String {
    text.chars().filter(|c| !is_mark(*c)).collect()
}

/// Resolves all marks. Returns `None` if indentation would make the result longer than `limit` bytes. Runs in
/// linear time.
pub(super) fn resolve_marks(text: String, limit: usize) -> Option<String> {
    if !has_mark(&text) {
        return Some(text);
    }
    let is_line_break = |c: char| matches!(c, '\n' | '\r');
    let mut out = String::with_capacity(text.len());
    let mut lines = LineStarts::default();
    let mut column = 0;
    let mut remaining = text.as_str();
    while let Some(at) = remaining.find(is_mark) {
        let mark = remaining[at..].chars().next().unwrap_or(BARRIER);
        out.push_str(&remaining[..at]);
        remaining = &remaining[at + mark.len_utf8()..];
        match mark {
            TRIM => {
                out.truncate(out.trim_end_matches(is_line_break).len());
                lines.truncate(out.len());
                remaining = remaining.trim_start_matches(is_line_break);
            }
            COLUMN => column = lines.column(&out),
            LINE => {
                if out.len() + column + 1 > limit {
                    return None;
                }
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', column));
            }
            // Left in until the end, so that no trim removes line breaks beyond it.
            barrier => out.push(barrier),
        }
    }
    out.push_str(remaining);
    out.retain(|c| !is_mark(c));
    Some(out)
}

/// Offsets of the lines of a growing text; each character is counted once.
#[derive(Default)]
struct LineStarts {
    /// Number of bytes scanned so far.
    bytes: usize,
    /// Characters other than marks in these bytes.
    chars: usize,
    /// The same two counts at the beginning of each line after the first.
    starts: Vec<(usize, usize)>,
}

impl LineStarts {
    /// Returns the column at the end of `text`, in characters from 0. Between two calls `text` may grow; if
    /// it was shortened, [`LineStarts::truncate`] must have been called.
    fn column(&mut self, text: &str) -> usize {
        for (at, c) in text[self.bytes..].char_indices() {
            self.chars += usize::from(!is_mark(c));
            if c == '\n' {
                self.starts.push((self.bytes + at + 1, self.chars));
            }
        }
        self.bytes = text.len();
        self.chars - self.starts.last().map_or(0, |(_, chars)| *chars)
    }

    /// Accounts for line breaks removed at the end, after which `bytes` bytes remain.
    fn truncate(&mut self, bytes: usize) {
        // Each line break is one byte and one character.
        let removed = self.bytes.saturating_sub(bytes);
        self.bytes -= removed;
        self.chars -= removed;
        while self.starts.last().is_some_and(|(start, _)| *start > bytes) {
            self.starts.pop();
        }
    }
}
