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

pub use filter::{CodeEntityPolicy, CodeFilter, FilteredPiece};

use super::scan::{self, SignMasks};
use block::{BlockTracker, LineState};

/// Code context of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeContext {
    /// Plain Markdown.
    Text,
    /// Inside a fenced block.
    Fence,
    /// After this many backtick runs that may still close on this line.
    Undecided(usize),
}

/// Reason why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeStop {
    /// The open run with this index closed: the text between is code.
    Closed(usize),
    /// The line ended: open runs are text.
    LineEnd,
    /// `&` follows, in code or possible code.
    Ampersand,
}

/// Tracks the code structure of a Markdown text in linear time and constant memory.
#[derive(Clone, Debug, Default)]
pub struct CodeTracker {
    block: BlockTracker,
    /// Length of the current backtick run, and whether its first one is escaped outside of code.
    run_len: usize,
    is_run_escaped: bool,
    /// True if the next byte is escaped by an unescaped backslash.
    is_escaped: bool,
    /// Lengths of the open runs of this line.
    open_runs: Vec<usize>,
}

/// Kind of text being scanned, which determines the bytes that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanContext {
    Text,
    Fence,
    /// Backtick runs that may still close.
    Runs,
}

/// Most open backtick runs tracked per line; further ones are text.
const MAX_OPEN_RUNS: usize = 32;

impl CodeTracker {
    /// Reads text up to the first stop; returns the bytes read. With `ampersand` it also stops at `&` in code
    /// or possible code.
    #[inline]
    pub fn read_to_stop(&mut self, text: &str, ampersand: bool) -> (usize, Option<CodeStop>) {
        self.read::<true>(text.as_bytes(), ampersand)
    }

    /// Reads text while nothing is undecided: it stops only at `&`, and only with `ampersand`. Returns the
    /// bytes read.
    #[inline]
    pub fn skim(&mut self, text: &str, ampersand: bool) -> (usize, Option<CodeStop>) {
        let bytes = text.as_bytes();
        // Fast path: most text is in the middle of a line and outside of code.
        let inline = self.run_len == 0 && matches!(self.block.line, LineState::Inline);
        if inline
            && (!ampersand || self.block.fence.is_none() && self.open_runs.is_empty())
            && scan::find2(b'`', b'\n', bytes).is_none()
        {
            self.skip_bytes(bytes);
            return (bytes.len(), None);
        }
        self.read::<false>(text.as_bytes(), ampersand)
    }

    /// Like [`CodeTracker::skim`], for text with known signs. It does not stop.
    #[inline]
    pub fn skim_signs(&mut self, text: &str, signs: SignMasks) {
        let bytes = text.as_bytes();
        let inline = self.run_len == 0 && matches!(self.block.line, LineState::Inline);
        if inline && signs.line_feeds | signs.marks == 0 {
            return self.skip_bytes(bytes);
        }
        self.read_signs(bytes, signs);
    }

    #[inline(never)]
    fn read_signs(&mut self, bytes: &[u8], signs: SignMasks) {
        let ticks = signs.backtick_mask(bytes);
        if ticks == 0 && self.run_len == 0 {
            return self.read_lines(bytes, signs.line_feeds);
        }
        self.scan_bytes::<false>(bytes, false, |from, context| {
            let stops =
                if context == ScanContext::Fence { signs.line_feeds } else { signs.line_feeds | ticks }
                    >> from;
            (stops != 0).then(|| stops.trailing_zeros() as usize)
        });
    }

    /// Reads bytes without backticks, outside of a backtick run; `line_ends` is the mask of line feeds.
    fn read_lines(&mut self, bytes: &[u8], mut line_ends: u64) {
        let mut at = 0;
        while line_ends != 0 {
            let end = line_ends.trailing_zeros() as usize;
            line_ends &= line_ends - 1;
            let line = &bytes[at..end];
            if at > 0 && self.block.read_simple_line(line) {
                at = end + 1;
                continue;
            }
            // Within content only the line end matters.
            if !matches!(self.block.line, LineState::Inline) {
                self.read_piece(line);
                if matches!(self.block.line, LineState::FenceRun { .. }) {
                    self.end_marks();
                }
            }
            self.end_line();
            at = end + 1;
        }
        self.read_piece(&bytes[at..]);
    }

    /// Reads part of a line without backticks.
    #[inline]
    fn read_piece(&mut self, piece: &[u8]) {
        match piece.first() {
            None => {}
            Some(&first) if self.block.begins_content(first) => self.skip_bytes(piece),
            Some(_) => _ = self.scan_bytes::<false>(piece, false, |_, _| None),
        }
    }

    fn read<const STOPS: bool>(&mut self, bytes: &[u8], ampersand: bool) -> (usize, Option<CodeStop>) {
        self.scan_bytes::<STOPS>(bytes, ampersand, |rest, context| match (context, ampersand) {
            (ScanContext::Fence, true) => scan::find2(b'\n', b'&', &bytes[rest..]),
            (ScanContext::Fence, false) => scan::find(b'\n', &bytes[rest..]),
            (ScanContext::Runs, true) => scan::find3(b'`', b'\n', b'&', &bytes[rest..]),
            _ => scan::find2(b'`', b'\n', &bytes[rest..]),
        })
    }

    /// Main loop; `find_stop` returns the distance from an offset to the next byte that matters.
    #[inline(always)]
    fn scan_bytes<const STOPS: bool>(
        &mut self,
        bytes: &[u8],
        ampersand: bool,
        find_stop: impl Fn(usize, ScanContext) -> Option<usize>,
    ) -> (usize, Option<CodeStop>) {
        let mut at = 0;
        while at < bytes.len() {
            if self.run_len == 0 && self.block.begins_content(bytes[at]) {
                let rest = &bytes[at..];
                let context = match self.block.fence {
                    Some(_) => ScanContext::Fence,
                    None if self.open_runs.is_empty() => ScanContext::Text,
                    None => ScanContext::Runs,
                };
                let found = find_stop(at, context);
                self.skip_bytes(&rest[..found.unwrap_or(rest.len())]);
                let Some(found) = found else { break };
                at += found;
                if bytes[at] == b'\n' {
                    self.end_line();
                    at += 1;
                    if STOPS {
                        return (at, Some(CodeStop::LineEnd));
                    }
                    continue;
                }
            }
            if self.run_len == 0 && self.block.line.is_prefix() {
                // Markers before the content only decide where it begins.
                at += self.block.read_prefix(&bytes[at..]);
                match bytes.get(at) {
                    None => break,
                    // A run of fence characters may have begun before the line end; it ends here.
                    Some(b'\n') if self.block.line.is_prefix() => {
                        self.end_line();
                        at += 1;
                        if STOPS {
                            return (at, Some(CodeStop::LineEnd));
                        }
                        continue;
                    }
                    // This byte begins the content.
                    Some(_) if matches!(self.block.line, LineState::Inline) => {
                        self.is_escaped = false;
                        continue;
                    }
                    Some(_) => {}
                }
            }
            if ampersand && bytes[at] == b'&' {
                let stop = self.end_line_start();
                if STOPS && stop.is_some() {
                    return (at, stop);
                }
                if self.block.fence.is_some() || !self.open_runs.is_empty() {
                    return (at, Some(CodeStop::Ampersand));
                }
            }
            let stop = self.push_byte(bytes[at]);
            // A closing run is noticed at the byte after it, which does not belong to it.
            at += usize::from(!matches!(stop, Some(CodeStop::Closed(_))));
            if STOPS && stop.is_some() {
                return (at, stop);
            }
        }
        (bytes.len(), None)
    }

    /// Context of the place after all text so far. At the start of a line call [`CodeTracker::end_line_start`] first.
    #[must_use]
    pub fn context(&self) -> CodeContext {
        if self.block.fence.is_some() {
            CodeContext::Fence
        } else if self.open_runs.is_empty() && !matches!(self.block.line, LineState::Info { .. }) {
            CodeContext::Text
        } else {
            CodeContext::Undecided(self.open_runs.len())
        }
    }

    /// Returns whether the current line is marked as a quotation (`>`). At the start of a line call
    /// [`CodeTracker::end_line_start`] first.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.block.is_quoted()
    }

    /// Ends a backtick run and the start of a line, because neither continues in what follows.
    pub fn end_line_start(&mut self) -> Option<CodeStop> {
        let stop = self.end_marks();
        self.is_escaped = false;
        if !matches!(self.block.line, LineState::Inline | LineState::Info { .. }) {
            // Any character that begins no block.
            self.block.push_byte(b'<');
        }
        stop
    }

    /// Skips bytes that decide nothing. Only backslashes at their end matter, since they may escape a
    /// backtick.
    #[inline]
    fn skip_bytes(&mut self, bytes: &[u8]) {
        if bytes.last() != Some(&b'\\') {
            self.is_escaped &= bytes.is_empty();
            return;
        }
        let count = bytes.iter().rev().take_while(|&&byte| byte == b'\\').count();
        self.is_escaped = (count % 2 == 1) != (count == bytes.len() && self.is_escaped);
    }

    fn push_byte(&mut self, byte: u8) -> Option<CodeStop> {
        let is_run_end = match self.block.line {
            LineState::FenceRun { mark, .. } => byte != mark,
            _ => self.run_len > 0 && byte != b'`',
        };
        if is_run_end {
            let stop = self.end_marks();
            if stop.is_some() {
                return stop;
            }
        }
        if byte == b'\n' {
            self.end_line();
            return Some(CodeStop::LineEnd);
        }
        match self.block.line {
            LineState::Inline => self.push_inline(byte),
            LineState::Info { mark: b'`', .. } if byte == b'`' => {
                // An info string contains no backtick: the run began a code span instead.
                self.block.begin_text();
                self.push_inline(byte);
            }
            LineState::Info { .. } => self.skip_bytes(&[byte]),
            _ => {
                if self.block.push_byte(byte) {
                    self.push_inline(byte);
                }
            }
        }
        None
    }

    /// Reads a byte of the content of a line.
    fn push_inline(&mut self, byte: u8) {
        if byte != b'`' {
            self.skip_bytes(&[byte]);
        } else if self.block.fence.is_none() {
            if self.run_len == 0 {
                self.is_run_escaped = std::mem::take(&mut self.is_escaped);
            }
            self.run_len += 1;
        }
    }

    /// Ends the current run of fence characters or backticks.
    fn end_marks(&mut self) -> Option<CodeStop> {
        if let LineState::FenceRun { mark, len } = self.block.line {
            let text = self.block.end_mark(mark, len);
            if mark == b'`' && (text || matches!(self.block.line, LineState::Info { .. })) {
                self.run_len = len as usize;
            }
        }
        self.end_run()
    }

    fn end_run(&mut self) -> Option<CodeStop> {
        let len = std::mem::take(&mut self.run_len);
        let is_escaped = std::mem::take(&mut self.is_run_escaped);
        if len == 0 {
            return None;
        }
        // The leftmost open run of the same length closes. Runs inside were its content, where a backslash
        // does not escape.
        if let Some(first) = self.open_runs.iter().position(|&run| run == len) {
            self.open_runs.truncate(first);
            return Some(CodeStop::Closed(first));
        }
        let opening_len = len - usize::from(is_escaped);
        // A second run of the same length could never be the closed one.
        if opening_len > 0 && self.open_runs.len() < MAX_OPEN_RUNS && !self.open_runs.contains(&opening_len) {
            self.open_runs.push(opening_len);
        }
        None
    }

    #[inline]
    fn end_line(&mut self) {
        self.block.end_line();
        self.open_runs.clear();
        self.is_escaped = false;
    }
}
