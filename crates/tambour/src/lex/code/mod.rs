//! Tracker of Markdown code: whether a place of a text is inside a fence or a code span (T-029).
//!
//! Follows CommonMark, from the bytes that decide it alone: line starts, backtick runs with the backslashes
//! before them, and line ends. Deviations:
//!
//! - a span counts only if it closes on its own line: each line begins without an open one;
//! - indented code is text, and so is anything nested deeper than 32 quotations and list items;
//! - HTML blocks, comments, autolinks and link definitions are text;
//! - a line ends with a line feed only.

mod block;
mod filter;

pub use filter::{CodeEntities, CodeFilter, Piece};

use super::scan;
use super::signs::Signs;
use block::{Block, Line};

/// Code context of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Plain Markdown.
    Text,
    /// Inside a fenced block.
    Fence,
    /// After this many backtick runs that may still close on this line.
    Undecided(usize),
}

/// Reason why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The open run with this index closed: the text between is code.
    Closed(usize),
    /// The line ended: open runs are text.
    LineEnd,
    /// `&` follows, in code or possible code.
    Ampersand,
}

/// Tracks the code structure of a Markdown text in linear time and constant memory.
#[derive(Clone, Debug, Default)]
pub struct Code {
    block: Block,
    /// Length of the current backtick run, and whether its first one is escaped outside of code.
    run: usize,
    run_escaped: bool,
    /// True if the next byte is escaped by an unescaped backslash.
    escaped: bool,
    /// Lengths of the open runs of this line.
    runs: Vec<usize>,
}

/// Kind of text being scanned, which determines the bytes that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    Text,
    Fence,
    /// Backtick runs that may still close.
    Runs,
}

/// Most open backtick runs tracked per line; further ones are text.
const RUNS: usize = 32;

impl Code {
    /// Reads text up to the first stop; returns the bytes read. With `ampersand` it also stops at `&` in code
    /// or possible code.
    #[inline]
    pub fn text(&mut self, text: &str, ampersand: bool) -> (usize, Option<Stop>) {
        self.read::<true>(text.as_bytes(), ampersand)
    }

    /// Reads text while nothing is undecided: it stops only at `&`, and only with `ampersand`. Returns the
    /// bytes read.
    #[inline]
    pub fn skim(&mut self, text: &str, ampersand: bool) -> (usize, Option<Stop>) {
        let bytes = text.as_bytes();
        // Fast path: most text is in the middle of a line and outside of code.
        let inline = self.run == 0 && matches!(self.block.line, Line::Inline);
        if inline
            && (!ampersand || self.block.fence.is_none() && self.runs.is_empty())
            && scan::find2(b'`', b'\n', bytes).is_none()
        {
            self.pass(bytes);
            return (bytes.len(), None);
        }
        self.read::<false>(text.as_bytes(), ampersand)
    }

    /// Like [`Code::skim`], for text with known signs. It does not stop.
    #[inline]
    pub fn skim_with(&mut self, text: &str, signs: Signs) {
        let bytes = text.as_bytes();
        let inline = self.run == 0 && matches!(self.block.line, Line::Inline);
        if inline && signs.lines | signs.marks == 0 {
            return self.pass(bytes);
        }
        self.read_with(bytes, signs);
    }

    #[inline(never)]
    fn read_with(&mut self, bytes: &[u8], signs: Signs) {
        let ticks = signs.ticks(bytes);
        if ticks == 0 && self.run == 0 {
            return self.lines(bytes, signs.lines);
        }
        self.follow::<false>(bytes, false, |from, among| {
            let behind = if among == Among::Fence { signs.lines } else { signs.lines | ticks } >> from;
            (behind != 0).then(|| behind.trailing_zeros() as usize)
        });
    }

    /// Reads bytes without backticks, outside of a backtick run; `ends` is the mask of line feeds.
    fn lines(&mut self, bytes: &[u8], mut ends: u64) {
        let mut at = 0;
        while ends != 0 {
            let end = ends.trailing_zeros() as usize;
            ends &= ends - 1;
            let line = &bytes[at..end];
            if at > 0 && self.block.line(line) {
                at = end + 1;
                continue;
            }
            // Within content only the line end matters.
            if !matches!(self.block.line, Line::Inline) {
                self.piece(line);
                if matches!(self.block.line, Line::Mark { .. }) {
                    self.end_marks();
                }
            }
            self.end_line();
            at = end + 1;
        }
        self.piece(&bytes[at..]);
    }

    /// Reads part of a line without backticks.
    #[inline]
    fn piece(&mut self, piece: &[u8]) {
        match piece.first() {
            None => {}
            Some(&first) if self.block.begins_plain(first) => self.pass(piece),
            Some(_) => _ = self.follow::<false>(piece, false, |_, _| None),
        }
    }

    fn read<const STOPS: bool>(&mut self, bytes: &[u8], ampersand: bool) -> (usize, Option<Stop>) {
        self.follow::<STOPS>(bytes, ampersand, |rest, among| match (among, ampersand) {
            (Among::Fence, true) => scan::find2(b'\n', b'&', &bytes[rest..]),
            (Among::Fence, false) => scan::find(b'\n', &bytes[rest..]),
            (Among::Runs, true) => scan::find3(b'`', b'\n', b'&', &bytes[rest..]),
            _ => scan::find2(b'`', b'\n', &bytes[rest..]),
        })
    }

    /// Main loop; `find` returns the distance from an offset to the next byte that matters.
    #[inline(always)]
    fn follow<const STOPS: bool>(
        &mut self,
        bytes: &[u8],
        ampersand: bool,
        find: impl Fn(usize, Among) -> Option<usize>,
    ) -> (usize, Option<Stop>) {
        let mut at = 0;
        while at < bytes.len() {
            if self.run == 0 && self.block.begins_plain(bytes[at]) {
                let rest = &bytes[at..];
                let among = match self.block.fence {
                    Some(_) => Among::Fence,
                    None if self.runs.is_empty() => Among::Text,
                    None => Among::Runs,
                };
                let found = find(at, among);
                self.pass(&rest[..found.unwrap_or(rest.len())]);
                let Some(found) = found else { break };
                at += found;
                if bytes[at] == b'\n' {
                    self.end_line();
                    at += 1;
                    if STOPS {
                        return (at, Some(Stop::LineEnd));
                    }
                    continue;
                }
            }
            if self.run == 0 && self.block.line.is_beginning() {
                // Markers before the content only decide where it begins.
                at += self.block.beginning(&bytes[at..]);
                match bytes.get(at) {
                    None => break,
                    // A run of fence characters may have begun before the line end; it ends here.
                    Some(b'\n') if self.block.line.is_beginning() => {
                        self.end_line();
                        at += 1;
                        if STOPS {
                            return (at, Some(Stop::LineEnd));
                        }
                        continue;
                    }
                    // This byte begins the content.
                    Some(_) if matches!(self.block.line, Line::Inline) => {
                        self.escaped = false;
                        continue;
                    }
                    Some(_) => {}
                }
            }
            if ampersand && bytes[at] == b'&' {
                let stop = self.boundary();
                if STOPS && stop.is_some() {
                    return (at, stop);
                }
                if self.block.fence.is_some() || !self.runs.is_empty() {
                    return (at, Some(Stop::Ampersand));
                }
            }
            let stop = self.byte(bytes[at]);
            // A closing run is noticed at the byte after it, which does not belong to it.
            at += usize::from(!matches!(stop, Some(Stop::Closed(_))));
            if STOPS && stop.is_some() {
                return (at, stop);
            }
        }
        (bytes.len(), None)
    }

    /// Context of the place after all text so far. At the start of a line call [`Code::boundary`] first.
    #[must_use]
    pub fn inside(&self) -> Inside {
        if self.block.fence.is_some() {
            Inside::Fence
        } else if self.runs.is_empty() && !matches!(self.block.line, Line::Info { .. }) {
            Inside::Text
        } else {
            Inside::Undecided(self.runs.len())
        }
    }

    /// Returns whether the current line is marked as a quotation (`>`). At the start of a line call
    /// [`Code::boundary`] first.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.block.is_quoted()
    }

    /// Ends a backtick run and the start of a line, because neither continues in what follows.
    pub fn boundary(&mut self) -> Option<Stop> {
        let stop = self.end_marks();
        self.escaped = false;
        if !matches!(self.block.line, Line::Inline | Line::Info { .. }) {
            // Any character that begins no block.
            self.block.byte(b'<');
        }
        stop
    }

    /// Skips bytes that decide nothing. Only backslashes at their end matter, since they may escape a
    /// backtick.
    #[inline]
    fn pass(&mut self, bytes: &[u8]) {
        if bytes.last() != Some(&b'\\') {
            self.escaped &= bytes.is_empty();
            return;
        }
        let count = bytes.iter().rev().take_while(|&&byte| byte == b'\\').count();
        self.escaped = (count % 2 == 1) != (count == bytes.len() && self.escaped);
    }

    fn byte(&mut self, byte: u8) -> Option<Stop> {
        let ends = match self.block.line {
            Line::Mark { mark, .. } => byte != mark,
            _ => self.run > 0 && byte != b'`',
        };
        if ends {
            let stop = self.end_marks();
            if stop.is_some() {
                return stop;
            }
        }
        if byte == b'\n' {
            self.end_line();
            return Some(Stop::LineEnd);
        }
        match self.block.line {
            Line::Inline => self.inline(byte),
            Line::Info { mark: b'`', .. } if byte == b'`' => {
                // An info string contains no backtick: the run began a code span instead.
                self.block.text();
                self.inline(byte);
            }
            Line::Info { .. } => self.pass(&[byte]),
            _ => {
                if self.block.byte(byte) {
                    self.inline(byte);
                }
            }
        }
        None
    }

    /// Reads a byte of the content of a line.
    fn inline(&mut self, byte: u8) {
        if byte != b'`' {
            self.pass(&[byte]);
        } else if self.block.fence.is_none() {
            if self.run == 0 {
                self.run_escaped = std::mem::take(&mut self.escaped);
            }
            self.run += 1;
        }
    }

    /// Ends the current run of fence characters or backticks.
    fn end_marks(&mut self) -> Option<Stop> {
        if let Line::Mark { mark, len } = self.block.line {
            let text = self.block.end_mark(mark, len);
            if mark == b'`' && (text || matches!(self.block.line, Line::Info { .. })) {
                self.run = len as usize;
            }
        }
        self.end_run()
    }

    fn end_run(&mut self) -> Option<Stop> {
        let len = std::mem::take(&mut self.run);
        let escaped = std::mem::take(&mut self.run_escaped);
        if len == 0 {
            return None;
        }
        // The leftmost open run of the same length closes. Runs inside were its content, where a backslash
        // does not escape.
        if let Some(first) = self.runs.iter().position(|&open| open == len) {
            self.runs.truncate(first);
            return Some(Stop::Closed(first));
        }
        let opening = len - usize::from(escaped);
        // A second run of the same length could never be the closed one.
        if opening > 0 && self.runs.len() < RUNS && !self.runs.contains(&opening) {
            self.runs.push(opening);
        }
        None
    }

    #[inline]
    fn end_line(&mut self) {
        self.block.end_line();
        self.runs.clear();
        self.escaped = false;
    }
}
