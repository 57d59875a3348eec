//! What can be decided only when a text is finished: which line breaks `{{trim}}` takes away (M-064), and in which column a value
//! of several lines stands (M-091). Until then characters stand for it that Unicode keeps for the inside of programs; they are
//! taken out of everything that comes from outside.

/// Takes itself away, and the line breaks that touch it.
pub(super) const TRIM: char = '\u{FDD0}';

/// Stops [`TRIM`] on its side.
pub(super) const BARRIER: char = '\u{FDD1}';

/// Begins a value whose further lines stand in the column of this mark.
pub(super) const COLUMN: char = '\u{FDD2}';

/// A line break in such a value.
pub(super) const LINE: char = '\u{FDD3}';

/// The bytes all of them begin with.
const LEAD: &[u8] = "\u{FDD0}".as_bytes().split_at(2).0;

fn is_mark(c: char) -> bool {
    (TRIM..=LINE).contains(&c)
}

/// Whether `text` has a mark, or another character that begins alike.
pub(super) fn any(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), LEAD).is_some_and(|at| text[at..].contains(is_mark))
}

/// `text` with the replacement character for each mark; of the same length.
pub(super) fn without(text: &str) -> String {
    text.chars().map(|c| if is_mark(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// `text` without its marks.
pub(super) fn taken_out(text: &str) -> String {
    text.chars().filter(|c| !is_mark(*c)).collect()
}

/// The text after its marks did what they stand for, unless it comes to more than `most` bytes. Linear.
pub(super) fn settle(text: String, most: usize) -> Option<String> {
    if !any(&text) {
        return Some(text);
    }
    let broken = |c: char| matches!(c, '\n' | '\r');
    let mut out = String::with_capacity(text.len());
    let mut lines = Lines::default();
    let mut column = 0;
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_mark) {
        let mark = rest[at..].chars().next().unwrap_or(BARRIER);
        out.push_str(&rest[..at]);
        rest = &rest[at + mark.len_utf8()..];
        match mark {
            TRIM => {
                out.truncate(out.trim_end_matches(broken).len());
                lines.cut(out.len());
                rest = rest.trim_start_matches(broken);
            }
            COLUMN => column = lines.column(&out),
            LINE => {
                if out.len() + column + 1 > most {
                    return None;
                }
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', column));
            }
            // Kept until the end, so that no trim gets past it.
            barrier => out.push(barrier),
        }
    }
    out.push_str(rest);
    out.retain(|c| !is_mark(c));
    Some(out)
}

/// Where the lines of a growing text begin; each of its characters is counted once.
#[derive(Default)]
struct Lines {
    /// Bytes that were looked at, and characters in them that are no marks.
    bytes: usize,
    chars: usize,
    /// The same, where each line after the first begins.
    starts: Vec<(usize, usize)>,
}

impl Lines {
    /// The column behind the end of `text`.
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

    /// Line breaks were taken away at the end, down to so many bytes.
    fn cut(&mut self, bytes: usize) {
        // Each of them is one byte and one character.
        let cut = self.bytes.saturating_sub(bytes);
        self.bytes -= cut;
        self.chars -= cut;
        while self.starts.last().is_some_and(|(start, _)| *start > bytes) {
            self.starts.pop();
        }
    }
}
