//! Markdown code: which places of a text are inside a fence or a code span (T-029).
//!
//! Only what decides that is read: the starts of lines, runs of backticks, and line ends. A span counts only if
//! it closes on its own line.

mod filter;

pub use filter::{CodeEntities, CodeFilter, Piece};

use super::scan;

/// Whether a place is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Plain Markdown.
    Text,
    /// In a fenced block.
    Fence,
    /// After so many backtick runs that may still close on this line.
    Undecided(usize),
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The open run with this index closed: what follows it on the line is code.
    Closed(usize),
    /// The line ended: runs still open are text.
    LineEnd,
    /// `&` comes next, where there is or may be code.
    Ampersand,
}

/// Follows the code structure of a Markdown text. Linear, constant memory.
#[derive(Clone, Debug, Default)]
pub struct Code {
    fence: Option<Fence>,
    line: Line,
    /// Backticks of the run under way.
    run: usize,
    /// Lengths of the runs of this line that have not closed.
    runs: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: u8,
    len: usize,
}

/// What is known of the current line.
#[derive(Clone, Copy, Debug, Default)]
enum Line {
    /// Only blanks and quote marks so far.
    #[default]
    Start,
    /// A run of fence characters began the line.
    Mark { mark: u8, len: usize },
    /// The run is over; what follows may be an info string.
    Info { mark: u8, len: usize },
    /// Inside a fence: only blanks since a run that could close it.
    Closing,
    /// Anything else.
    Inline,
}

/// Open backtick runs of one line that are remembered; later ones are text.
const RUNS: usize = 32;

impl Code {
    /// Reads text up to the first stop; returns the bytes read. `ampersand`: whether it stops at `&` too. Outside of
    /// code that is not looked for.
    #[inline]
    pub fn text(&mut self, text: &str, ampersand: bool) -> (usize, Option<Stop>) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if matches!(self.line, Line::Inline) && self.run == 0 {
                let rest = &bytes[at..];
                let found = match (self.fence.is_some(), ampersand) {
                    (true, true) => scan::find2(b'\n', b'&', rest),
                    (true, false) => scan::find(b'\n', rest),
                    (false, true) if !self.runs.is_empty() => scan::find3(b'`', b'\n', b'&', rest),
                    (false, _) => scan::find2(b'`', b'\n', rest),
                };
                let Some(found) = found else { break };
                at += found;
            }
            if ampersand && bytes[at] == b'&' {
                let closed = self.end_run();
                if closed.is_some() {
                    return (at, closed);
                }
                if let Line::Mark { mark, len } = self.line {
                    self.line = self.after_mark(mark, len);
                }
                if self.fence.is_some() || !self.runs.is_empty() {
                    return (at, Some(Stop::Ampersand));
                }
            }
            if let Some(stop) = self.byte(bytes[at]) {
                // A closing run is noticed at the byte after it, which is not part of it.
                let read = at + usize::from(stop == Stop::LineEnd);
                return (read, Some(stop));
            }
            at += 1;
        }
        (bytes.len(), None)
    }

    /// What the place after all text so far is.
    #[must_use]
    pub fn inside(&self) -> Inside {
        if self.fence.is_some() {
            Inside::Fence
        } else if self.runs.is_empty() && !matches!(self.line, Line::Info { .. }) {
            Inside::Text
        } else {
            Inside::Undecided(self.runs.len())
        }
    }

    /// Ends a run of backticks, since what follows is not text.
    pub fn boundary(&mut self) -> Option<Stop> {
        if let Line::Mark { mark, len } = self.line {
            self.line = self.after_mark(mark, len);
        }
        if matches!(self.line, Line::Start | Line::Closing) {
            self.line = Line::Inline;
        }
        self.end_run()
    }

    fn byte(&mut self, byte: u8) -> Option<Stop> {
        if self.run > 0 && byte != b'`' {
            let closed = self.end_run();
            if closed.is_some() {
                return closed;
            }
        }
        if byte == b'\n' {
            self.end_line();
            return Some(Stop::LineEnd);
        }
        match self.line {
            Line::Start => match byte {
                b' ' | b'\t' | b'\r' | b'>' => {}
                b'`' | b'~' => self.line = Line::Mark { mark: byte, len: 1 },
                _ => self.line = Line::Inline,
            },
            Line::Mark { mark, len } if byte == mark => self.line = Line::Mark { mark, len: len + 1 },
            Line::Mark { mark, len } => {
                self.line = self.after_mark(mark, len);
                return self.byte(byte);
            }
            Line::Closing if matches!(byte, b' ' | b'\t' | b'\r') => {}
            Line::Closing => self.line = Line::Inline,
            Line::Info { mark: b'`', .. } if byte == b'`' => {
                // An info string holds no backtick: the run was the start of a code span.
                self.line = Line::Inline;
                self.run = 1;
            }
            Line::Info { .. } => {}
            Line::Inline if byte == b'`' && self.fence.is_none() => self.run += 1,
            Line::Inline => {}
        }
        None
    }

    /// What a line is after the run of fence characters that began it.
    fn after_mark(&mut self, mark: u8, len: usize) -> Line {
        if let Some(fence) = self.fence {
            let closes = mark == fence.mark && len >= fence.len;
            return if closes { Line::Closing } else { Line::Inline };
        }
        if mark == b'`' {
            self.runs.push(len);
        }
        if len >= 3 { Line::Info { mark, len } } else { Line::Inline }
    }

    fn end_run(&mut self) -> Option<Stop> {
        let len = std::mem::take(&mut self.run);
        if len == 0 {
            return None;
        }
        // The leftmost open run of the same length closes; runs inside it were its content.
        if let Some(first) = self.runs.iter().position(|&open| open == len) {
            self.runs.truncate(first);
            return Some(Stop::Closed(first));
        }
        if self.runs.len() < RUNS {
            self.runs.push(len);
        }
        None
    }

    fn end_line(&mut self) {
        let line = match self.line {
            Line::Mark { mark, len } => self.after_mark(mark, len),
            line => line,
        };
        match line {
            Line::Info { mark, len } => self.fence = Some(Fence { mark, len }),
            Line::Closing => self.fence = None,
            Line::Start | Line::Mark { .. } | Line::Inline => {}
        }
        self.line = Line::Start;
        self.runs.clear();
    }
}
