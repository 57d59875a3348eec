//! Lines of events in a reply that has been taken for plain text.

/// Looks for a line that begins with an object naming an event.
#[derive(Clone, Debug, Default)]
pub(super) struct LateLines {
    /// Characters of `PATTERN` that the line has matched; `None` when it cannot match any more.
    matched: Option<usize>,
}

/// White space between the characters does not count.
const PATTERN: &[u8] = b"{\"event\"";

impl LateLines {
    pub(super) fn new() -> LateLines {
        LateLines { matched: Some(0) }
    }

    /// Reads text of the answer; where the pattern ends in it, if it does.
    #[inline]
    pub(super) fn find(&mut self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let Some(matched) = self.matched else {
                at += memchr::memchr(b'\n', &bytes[at..])? + 1;
                self.matched = Some(0);
                continue;
            };
            match bytes[at] {
                b'\n' => self.matched = Some(0),
                b if b.is_ascii_whitespace() => {}
                b if b == PATTERN[matched] && matched + 1 == PATTERN.len() => return Some(at),
                b if b == PATTERN[matched] => self.matched = Some(matched + 1),
                _ => self.matched = None,
            }
            at += 1;
        }
        None
    }
}
