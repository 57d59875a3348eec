//! Text outside the elements: held until it is known whether a structure makes it superfluous (X-013, T-015), and
//! the fence around a reply (T-018).

use crate::lex::space::is_blank;
use crate::span::Place;

/// Text outside the elements, with the place of its first character that is not blank.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    text: String,
    /// Where `text` starts.
    start: Place,
    /// Whether nothing more is kept.
    closed: bool,
}

/// The opening of a fence around the reply.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) len: usize,
    pub(super) place: Place,
    pub(super) end: usize,
}

impl Outside {
    /// Bytes at the start of `text` that are not kept: white space before anything else.
    pub(super) fn lead(&self, text: &str) -> usize {
        if !self.text.is_empty() {
            return 0;
        }
        text.len() - text.trim_start_matches([' ', '\t', '\r', '\n', '\u{FEFF}']).len()
    }

    /// Adds text that starts at `place`.
    pub(super) fn push(&mut self, text: &str, place: Place) {
        if self.closed || text.is_empty() {
            return;
        }
        let lead = self.lead(text);
        if self.text.is_empty() {
            self.start = place.after(&text[..lead]);
        }
        self.text.push_str(&text[lead..]);
    }

    /// Keeps nothing more, until all is taken.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        is_blank(&self.text)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Start, and offset after the last character that is not blank.
    pub(super) fn range(&self) -> (Place, usize) {
        (self.start, self.start.offset + self.text.trim_end().len())
    }

    /// Takes everything.
    pub(super) fn take(&mut self) -> (String, Place) {
        self.closed = false;
        (std::mem::take(&mut self.text), self.start)
    }

    /// Removes a fence that opens on the last line, and returns it.
    pub(super) fn take_fence(&mut self) -> Option<Fence> {
        let body = self.text.trim_end();
        let line_at = body.rfind('\n').map_or(0, |at| at + 1);
        let line = &body[line_at..];
        let indent = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let len = line.chars().take_while(|&c| c == mark).count();
        let info = line[len..].trim();
        if len < 3 || info.contains(mark) || info.contains(char::is_whitespace) {
            return None;
        }
        let place = self.start.after(&self.text[..line_at + indent]);
        let end = place.offset + line.len();
        self.text.truncate(line_at);
        Some(Fence { mark, len, place, end })
    }

    /// Removes the line that closes `fence`; whether there was one.
    pub(super) fn take_closing(&mut self, fence: &Fence) -> bool {
        let line = self.text.lines().next().unwrap_or("").trim();
        let closes = line.len() >= fence.len && line.chars().all(|c| c == fence.mark);
        if closes {
            let after = self.text.find('\n').map_or(self.text.len(), |at| at + 1);
            let rest = self.text.split_off(after);
            let place = self.start.after(&self.text);
            self.text.clear();
            self.push(&rest, place);
        }
        closes
    }
}
