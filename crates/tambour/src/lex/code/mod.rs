//! Tracker of Markdown code: finds whether a place of a text is inside a fence or a code span (T-029).
//!
//! Follows CommonMark, but looks only at the bytes that decide: line starts, backtick runs with the
//! backslashes before them, and line ends. Deviations:
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
    /// After this many backtick runs that may still close on this line; 0 in what may be the info string of a
    /// fence.
    Undecided(usize),
}

/// Reason why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeStop {
    /// The open run with this index was closed by another: the text between them is code.
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
    /// Number of backticks in the current run; 0 outside of runs.
    run_len: usize,
    /// True if a backslash precedes the run: outside of code its first backtick is escaped.
    is_run_escaped: bool,
    /// True if the next byte is escaped by an unescaped backslash.
    is_escaped: bool,
    /// Lengths of the runs of this line that may still close.
    open_runs: Vec<usize>,
}

/// Kind of text being scanned, which determines the bytes that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanContext {
    /// Text without open backtick runs.
    Text,
    /// Inside a fence.
    Fence,
    /// After backtick runs that may still close.
    Runs,
}

/// Maximum number of open backtick runs tracked per line; further ones are text.
const MAX_OPEN_RUNS: usize = 32;

impl CodeTracker {
    /// Reads text up to the first stop; returns the number of bytes read. With `stops_at_ampersand` it also
    /// stops before `&` in code or possible code.
    #[inline]
    pub fn read_to_stop(&mut self, text: &str, stops_at_ampersand: bool) -> (usize, Option<CodeStop>) {
        self.read::<true>(text.as_bytes(), stops_at_ampersand)
    }

    /// Reads text when no caller waits for a decision: it stops only before `&`, and only with
    /// `stops_at_ampersand`. Returns the number of bytes read, and the stop.
    #[inline]
    pub fn skim(&mut self, text: &str, stops_at_ampersand: bool) -> (usize, Option<CodeStop>) {
        let bytes = text.as_bytes();
        // Fast path: most text is in the middle of a line and outside of code.
        let is_inline = self.run_len == 0 && matches!(self.block.line, LineState::Inline);
        if is_inline
            && (!stops_at_ampersand || self.block.fence.is_none() && self.open_runs.is_empty())
            && scan::find2(b'`', b'\n', bytes).is_none()
        {
            self.skip_bytes(bytes);
            return (bytes.len(), None);
        }
        self.read::<false>(text.as_bytes(), stops_at_ampersand)
    }

    /// Like [`CodeTracker::skim`], for text whose [`SignMasks`] are known. It does not stop.
    #[inline]
    pub fn skim_signs(&mut self, text: &str, signs: SignMasks) {
        let bytes = text.as_bytes();
        let is_inline = self.run_len == 0 && matches!(self.block.line, LineState::Inline);
        if is_inline && signs.line_feeds | signs.marks == 0 {
            return self.skip_bytes(bytes);
        }
        self.read_signs(bytes, signs);
    }

    /// Slow path of [`CodeTracker::skim_signs`].
    #[inline(never)]
    fn read_signs(&mut self, bytes: &[u8], signs: SignMasks) {
        let backticks = signs.backtick_mask(bytes);
        if backticks == 0 && self.run_len == 0 {
            return self.read_lines(bytes, signs.line_feeds);
        }
        let stops_at_ampersand = false;
        self.scan_bytes::<false>(bytes, stops_at_ampersand, |from, context| {
            let all_stops =
                if context == ScanContext::Fence { signs.line_feeds } else { signs.line_feeds | backticks };
            let stops = all_stops >> from;
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
                // Without backticks it can only be a run of tildes.
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
            Some(&first) if self.block.try_begin_content(first) => self.skip_bytes(piece),
            Some(_) => _ = self.scan_bytes::<false>(piece, false, |_, _| None),
        }
    }

    /// Reads bytes whose masks are not known; `STOPS` as in [`CodeTracker::scan_bytes`].
    fn read<const STOPS: bool>(
        &mut self,
        bytes: &[u8],
        stops_at_ampersand: bool,
    ) -> (usize, Option<CodeStop>) {
        self.scan_bytes::<STOPS>(bytes, stops_at_ampersand, |from, context| {
            match (context, stops_at_ampersand) {
                (ScanContext::Fence, true) => scan::find2(b'\n', b'&', &bytes[from..]),
                (ScanContext::Fence, false) => scan::find(b'\n', &bytes[from..]),
                (ScanContext::Runs, true) => scan::find3(b'`', b'\n', b'&', &bytes[from..]),
                _ => scan::find2(b'`', b'\n', &bytes[from..]),
            }
        })
    }

    /// Main loop. With `STOPS` it stops at line ends and closing runs, as [`CodeTracker::read_to_stop`] does.
    /// `find_stop` returns the distance from an offset to the next byte that matters in a context.
    #[inline(always)]
    fn scan_bytes<const STOPS: bool>(
        &mut self,
        bytes: &[u8],
        stops_at_ampersand: bool,
        find_stop: impl Fn(usize, ScanContext) -> Option<usize>,
    ) -> (usize, Option<CodeStop>) {
        let mut at = 0;
        while at < bytes.len() {
            if self.run_len == 0 && self.block.try_begin_content(bytes[at]) {
                let unread = &bytes[at..];
                let context = match self.block.fence {
                    Some(_) => ScanContext::Fence,
                    None if self.open_runs.is_empty() => ScanContext::Text,
                    None => ScanContext::Runs,
                };
                let found = find_stop(at, context);
                self.skip_bytes(&unread[..found.unwrap_or(unread.len())]);
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
                    // After a run of fence characters the line is past its prefix: `push_byte` ends the line.
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
            if stops_at_ampersand && bytes[at] == b'&' {
                let stop = self.end_line_start();
                if STOPS && stop.is_some() {
                    return (at, stop);
                }
                if self.block.fence.is_some() || !self.open_runs.is_empty() {
                    return (at, Some(CodeStop::Ampersand));
                }
            }
            let stop = self.push_byte(bytes[at]);
            // A closing run is noticed at the byte after it, which is read again.
            at += usize::from(!matches!(stop, Some(CodeStop::Closed(_))));
            if STOPS && stop.is_some() {
                return (at, stop);
            }
        }
        (bytes.len(), None)
    }

    /// Context of the place after all text so far. At the start of a line call
    /// [`CodeTracker::end_line_start`] first.
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

    /// Ends a backtick run and the start of a line before something that continues neither, such as a tag.
    /// Returns a stop if the run closed a span.
    pub fn end_line_start(&mut self) -> Option<CodeStop> {
        let stop = self.end_marks();
        self.is_escaped = false;
        if !matches!(self.block.line, LineState::Inline | LineState::Info { .. }) {
            // `<` represents any character that begins no block.
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
        // An odd number of backslashes escapes the next byte. If `bytes` holds only backslashes, they
        // continue the run before it.
        let count = bytes.iter().rev().take_while(|&&byte| byte == b'\\').count();
        self.is_escaped = (count % 2 == 1) != (count == bytes.len() && self.is_escaped);
    }

    /// Reads a byte. If it ends a run that closes a span, returns that stop without having read the byte.
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
            let is_text = self.block.end_fence_run(mark, len);
            // Backticks before an info string begin a code span if another backtick follows on the line.
            if mark == b'`' && (is_text || matches!(self.block.line, LineState::Info { .. })) {
                self.run_len = len as usize;
            }
        }
        self.end_run()
    }

    /// Ends the current backtick run, if any: it closes a span or may open one.
    fn end_run(&mut self) -> Option<CodeStop> {
        let len = std::mem::take(&mut self.run_len);
        let is_escaped = std::mem::take(&mut self.is_run_escaped);
        if len == 0 {
            return None;
        }
        // The leftmost open run of the same length closes. Runs after it were content of the span, where a
        // backslash escapes nothing.
        if let Some(first) = self.open_runs.iter().position(|&run| run == len) {
            self.open_runs.truncate(first);
            return Some(CodeStop::Closed(first));
        }
        let opening_len = len - usize::from(is_escaped);
        // A run closes the first open run of its length, so a second one is not stored.
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
