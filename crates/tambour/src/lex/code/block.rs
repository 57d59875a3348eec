//! Block structure of a line: the quotations and list items it belongs to, and the block that begins in them.
//! Follows CommonMark without HTML and link definitions.

use crate::lex::fence::Fence;

/// Tracks the blocks of a Markdown text, byte by byte up to the content of each line.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockTracker {
    /// Position on the current line.
    pub(super) line: LineState,
    /// Container markers and blanks before the content of the line.
    prefix: LinePrefix,
    /// Fence of the open code block.
    pub(super) fence: Option<Fence>,
    /// Open quotations (`QUOTE`) and list items (columns before their content), outermost first.
    containers: [u8; MAX_DEPTH],
    /// Number of open containers.
    depth: u8,
    /// True if the last line is text that the next one may continue.
    has_paragraph: bool,
    /// True if the innermost item has only its marker so far.
    is_item_empty: bool,
}

/// Maximum number of containers tracked; deeper ones are text.
const MAX_DEPTH: usize = 32;

/// The same limit in the type of the depth.
const MAX_DEPTH_U8: u8 = MAX_DEPTH as u8;

/// Value that marks a quotation among the open containers.
const QUOTE: u8 = 0;

/// Minimum columns of indentation that make a line indented code or a paragraph continuation.
const INDENTED_COLUMNS: u32 = 4;

impl BlockTracker {
    /// Reads a byte before the content of a line. Returns whether it begins the content; the bytes of the
    /// line before it then contain no backtick and no backslash.
    pub(super) fn push_byte(&mut self, byte: u8) -> bool {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r');
        match self.line {
            LineState::Start => return self.start_line(byte),
            LineState::Number { digits, value } => match byte {
                // CommonMark allows nine digits.
                b'0'..=b'9' if digits < 9 => {
                    self.advance_column();
                    self.prefix.marker.width += 1;
                    self.line = LineState::Number {
                        digits: digits + 1,
                        value: value.saturating_mul(10).saturating_add(byte - b'0'),
                    };
                }
                b'.' | b')' => {
                    self.advance_column();
                    self.prefix.marker =
                        ItemMarker { width: self.prefix.marker.width + 1, can_interrupt: value == 1 };
                    self.line = LineState::Marker;
                }
                _ => return self.begin_text(),
            },
            LineState::Marker if is_blank && self.prefix.matched_containers < MAX_DEPTH_U8 => {
                if self.is_in_paragraph() && !self.prefix.marker.can_interrupt {
                    return self.begin_text();
                }
                self.line = LineState::Space;
                self.prefix.indent = 0;
                self.push_blank(byte);
            }
            // A second `-` or `*` directly after the first: no list item, but perhaps a thematic break.
            LineState::Marker if self.prefix.thematic_break.mark == byte => {
                self.prefix.thematic_break.count = self.prefix.thematic_break.count.saturating_add(1);
                self.line = LineState::ThematicBreak { is_indented: false };
            }
            LineState::Space if is_blank => self.push_blank(byte),
            LineState::Space => {
                // Up to four blanks belong to the marker. If there are more, all but the first belong to
                // indented code.
                let padding =
                    if self.prefix.indent > INDENTED_COLUMNS { 1 } else { self.prefix.indent.max(1) };
                self.open_container(self.prefix.marker.width + padding as u8);
                self.prefix.indent = self.prefix.indent.saturating_sub(padding);
                return self.start_line(byte);
            }
            LineState::ThematicBreak { .. } if byte == self.prefix.thematic_break.mark => {
                self.prefix.thematic_break.count = self.prefix.thematic_break.count.saturating_add(1)
            }
            LineState::ThematicBreak { .. } if is_blank => {}
            LineState::ThematicBreak { is_indented: true } => return self.leave_paragraph(),
            LineState::Heading(count) if byte == b'#' && count < 6 => {
                self.line = LineState::Heading(count + 1)
            }
            LineState::Heading(_) if is_blank => return self.leave_paragraph(),
            LineState::Underline { is_ended: false } if byte == b'=' => {}
            LineState::Underline { .. } if is_blank => self.line = LineState::Underline { is_ended: true },
            LineState::Marker
            | LineState::ThematicBreak { .. }
            | LineState::Heading(_)
            | LineState::Underline { .. } => {
                return self.begin_text();
            }
            LineState::FenceRun { mark, len } => {
                self.line = LineState::FenceRun { mark, len: len.saturating_add(1) }
            }
            LineState::ClosingFence if is_blank => {}
            LineState::ClosingFence => self.line = LineState::Inline,
            // Not called in these states: the content of the line has begun.
            LineState::Info { .. } | LineState::Inline => {}
        }
        false
    }

    /// Reads the bytes before the content of a line. Stops before a line end or the content, or after the
    /// first character of a possible fence. Returns the number of bytes read.
    #[inline]
    pub(super) fn read_prefix(&mut self, bytes: &[u8]) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' {
                return at;
            }
            // Fast path: the content of most list items is text, often in strong emphasis.
            if matches!(self.line, LineState::Space)
                && (1..=INDENTED_COLUMNS).contains(&self.prefix.indent)
                && begins_text(&bytes[at..])
            {
                self.open_container(self.prefix.marker.width + self.prefix.indent as u8);
                self.begin_text();
                return at;
            }
            if self.push_byte(byte) {
                return at;
            }
            if !self.line.is_prefix() {
                return at + 1;
            }
        }
        bytes.len()
    }

    /// Begins the content if `byte` is a letter at the very start of a line, as in most lines. Returns
    /// whether the content has begun, with `byte` or before it.
    #[inline]
    pub(super) fn try_begin_content(&mut self, byte: u8) -> bool {
        if matches!(self.line, LineState::Start) && self.prefix.column == 0 && is_letter(byte) {
            self.begin_with_letter();
        }
        matches!(self.line, LineState::Inline)
    }

    /// Handles a line that begins with a letter: it is in no container.
    fn begin_with_letter(&mut self) {
        if self.fence.is_some() && self.depth == 0 {
            self.line = LineState::Inline;
        } else {
            self.fence = None;
            self.begin_text();
        }
    }

    /// Returns whether the line so far has a quotation marker. A lazy continuation line of a quoted paragraph
    /// has none.
    pub(super) fn is_quoted(&self) -> bool {
        self.containers[..usize::from(self.prefix.matched_containers)].contains(&QUOTE)
    }

    /// Reads a whole line that has no backticks, from its start. Returns false, without reading, for rare
    /// kinds of lines.
    #[inline]
    pub(super) fn read_simple_line(&mut self, line: &[u8]) -> bool {
        if let Some(fence) = self.fence {
            return self.depth == 0 && self.read_simple_code_line(line, fence);
        }
        match line {
            [] if self.depth == 0 => self.has_paragraph = false,
            [] => {
                self.end_blank_line();
                self.prefix.matched_containers = 0;
            }
            [first, ..] if is_letter(*first) => {
                if !self.has_paragraph {
                    self.depth = 0;
                }
                self.has_paragraph = true;
            }
            // The first container is a list item whose content begins at column 2, and it is the only one.
            [b'-' | b'+' | b'*', b' ', content @ ..] if begins_text(content) => {
                (self.containers[0], self.depth, self.has_paragraph) = (2, 1, true);
            }
            [number @ b'0'..=b'9', b'.', b' ', content @ ..] if begins_text(content) => {
                // Directly after a paragraph only number 1 begins a list.
                if *number == b'1' || self.depth > 0 || !self.has_paragraph {
                    (self.containers[0], self.depth, self.has_paragraph) = (3, 1, true);
                }
            }
            _ => return false,
        }
        self.is_item_empty = false;
        true
    }

    /// Reads a whole line in a code block outside of containers. Returns false, without reading, if the line
    /// may close the block. Code changes nothing else; a blank line ends a paragraph, as everywhere.
    fn read_simple_code_line(&mut self, line: &[u8], fence: Fence) -> bool {
        match line.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r')) {
            Some(&first) if first == fence.mark => return false,
            Some(_) => {}
            None => self.has_paragraph = false,
        }
        self.is_item_empty = false;
        true
    }

    /// Ends the run of fence characters that began the line; returns whether it was text.
    pub(super) fn end_fence_run(&mut self, mark: u8, len: u32) -> bool {
        if let Some(fence) = self.fence {
            let is_closing = Fence::new(mark, len as usize).is_some_and(|run| fence.is_closed_by(run));
            self.line = if is_closing { LineState::ClosingFence } else { LineState::Inline };
            return false;
        }
        if Fence::new(mark, len as usize).is_some() {
            self.line = LineState::Info { mark, len };
            return false;
        }
        self.begin_text()
    }

    /// Begins content that is text of a paragraph. Returns true, as [`BlockTracker::push_byte`] does for
    /// content.
    pub(super) fn begin_text(&mut self) -> bool {
        self.line = LineState::Inline;
        if !self.has_paragraph {
            // A paragraph may continue without the markers of its containers.
            self.depth = self.prefix.matched_containers;
        }
        self.has_paragraph = true;
        true
    }

    /// Ends the line. A run of fence characters must have been ended before.
    #[inline]
    pub(super) fn end_line(&mut self) {
        self.is_item_empty = match self.line {
            LineState::Inline => false,
            // Fast path: outside of containers a blank line only ends a paragraph.
            LineState::Start if self.depth == 0 => {
                self.has_paragraph = false;
                false
            }
            _ => self.end_line_without_content(),
        };
        self.line = LineState::Start;
        self.prefix = LinePrefix::default();
    }

    /// Ends a line without content. Returns whether it was only the marker of an item.
    fn end_line_without_content(&mut self) -> bool {
        // Dashes below a paragraph make it a heading.
        let is_underline = self.is_in_paragraph() && self.prefix.thematic_break.mark == b'-';
        match self.line {
            LineState::Marker | LineState::Space | LineState::ThematicBreak { .. }
                if self.prefix.thematic_break.count >= 3 =>
            {
                self.depth = self.prefix.thematic_break.depth;
                self.has_paragraph = false;
            }
            LineState::Marker | LineState::Space | LineState::ThematicBreak { .. } if is_underline => {
                self.has_paragraph = false
            }
            LineState::Marker | LineState::Space
                if !self.is_in_paragraph() && self.prefix.matched_containers < MAX_DEPTH_U8 =>
            {
                self.open_container(self.prefix.marker.width + 1);
                return true;
            }
            LineState::Heading(_) | LineState::ThematicBreak { is_indented: true } => {
                self.leave_paragraph();
            }
            LineState::Marker
            | LineState::Space
            | LineState::ThematicBreak { .. }
            | LineState::Number { .. } => {
                self.begin_text();
            }
            LineState::Underline { .. } => self.has_paragraph = false,
            LineState::Start => self.end_blank_line(),
            LineState::Info { mark, len } => {
                self.leave_paragraph();
                self.fence = Fence::new(mark, len as usize);
            }
            LineState::ClosingFence => self.fence = None,
            LineState::FenceRun { .. } | LineState::Inline => {}
        }
        false
    }

    /// Reads a byte at the start of a line or directly after a container marker. Returns whether it begins
    /// the content.
    fn start_line(&mut self, byte: u8) -> bool {
        if matches!(byte, b' ' | b'\t' | b'\r') {
            self.push_blank(byte);
            return false;
        }
        self.prefix.is_after_quote = false;
        while self.prefix.matched_containers < self.depth {
            let width = self.next_container();
            if width == QUOTE {
                if byte != b'>' || self.prefix.indent >= INDENTED_COLUMNS {
                    break;
                }
                self.prefix.matched_containers += 1;
                self.open_quote();
                return false;
            }
            if self.prefix.indent < u32::from(width) {
                break;
            }
            self.prefix.indent -= u32::from(width);
            self.prefix.matched_containers += 1;
        }
        if let Some(fence) = self.fence {
            if self.prefix.matched_containers == self.depth {
                let is_closing = byte == fence.mark && self.prefix.indent < INDENTED_COLUMNS;
                self.line =
                    if is_closing { LineState::FenceRun { mark: byte, len: 1 } } else { LineState::Inline };
                return !is_closing;
            }
            // A fence ends with its container.
            self.fence = None;
        }
        self.begin_block(byte)
    }

    /// Reads a byte that may begin a block, after the containers that the line continues. Returns whether it
    /// begins the content.
    fn begin_block(&mut self, byte: u8) -> bool {
        let continues_break = self.prefix.thematic_break.mark == byte;
        if continues_break {
            self.prefix.thematic_break.count = self.prefix.thematic_break.count.saturating_add(1);
        } else {
            let mark = if matches!(byte, b'*' | b'-' | b'_') { byte } else { 0 };
            self.prefix.thematic_break =
                ThematicBreak { mark, count: u8::from(mark != 0), depth: self.prefix.matched_containers };
        }
        if self.prefix.indent >= INDENTED_COLUMNS {
            if continues_break {
                self.line = LineState::ThematicBreak { is_indented: true };
                return false;
            }
            self.prefix.thematic_break = ThematicBreak::default();
            return if self.has_paragraph { self.begin_text() } else { self.leave_paragraph() };
        }
        match byte {
            b'>' if self.prefix.matched_containers < MAX_DEPTH_U8 => {
                self.open_container(QUOTE);
                self.open_quote();
            }
            b'`' | b'~' => self.line = LineState::FenceRun { mark: byte, len: 1 },
            b'-' | b'+' | b'*' => {
                self.advance_column();
                self.prefix.marker = ItemMarker { width: self.prefix.indent as u8 + 1, can_interrupt: true };
                self.line = LineState::Marker;
            }
            b'0'..=b'9' => {
                self.advance_column();
                self.prefix.marker = ItemMarker { width: self.prefix.indent as u8 + 1, can_interrupt: false };
                self.line = LineState::Number { digits: 1, value: byte - b'0' };
            }
            b'_' => self.line = LineState::ThematicBreak { is_indented: false },
            b'#' => self.line = LineState::Heading(1),
            b'=' if self.is_in_paragraph() => self.line = LineState::Underline { is_ended: false },
            _ => return self.begin_text(),
        }
        false
    }

    /// Begins content that is not text of a paragraph and does not continue one. Returns true, as
    /// [`BlockTracker::push_byte`] does for content.
    fn leave_paragraph(&mut self) -> bool {
        self.line = LineState::Inline;
        self.depth = self.prefix.matched_containers;
        self.has_paragraph = false;
        true
    }

    /// Ends a blank line: it continues list items, but not quotations without `>`.
    fn end_blank_line(&mut self) {
        while self.prefix.matched_containers < self.depth && self.next_container() != QUOTE {
            // A blank line after a line with only the item's marker ends the item.
            if self.is_item_empty && self.prefix.matched_containers + 1 == self.depth {
                break;
            }
            self.prefix.matched_containers += 1;
        }
        if self.prefix.matched_containers < self.depth {
            self.fence = None;
        }
        self.depth = self.prefix.matched_containers;
        self.has_paragraph = false;
    }

    /// Opens a container; there must be room for one.
    fn open_container(&mut self, container: u8) {
        self.containers[usize::from(self.prefix.matched_containers)] = container;
        self.prefix.matched_containers += 1;
        self.depth = self.prefix.matched_containers;
        self.has_paragraph = false;
        self.line = LineState::Start;
    }

    /// Reads the `>` of a quotation.
    fn open_quote(&mut self) {
        self.advance_column();
        self.prefix.indent = 0;
        self.prefix.is_after_quote = true;
    }

    /// Outermost open container that the line has not matched yet.
    fn next_container(&self) -> u8 {
        self.containers[usize::from(self.prefix.matched_containers)]
    }

    fn advance_column(&mut self) {
        self.prefix.column = self.prefix.column.saturating_add(1);
    }

    /// Reads a blank, tab or carriage return before the content; a carriage return has no width.
    fn push_blank(&mut self, byte: u8) {
        let width = match byte {
            b' ' => 1,
            b'\t' => 4 - self.prefix.column % 4,
            _ => return,
        };
        let prefix = &mut self.prefix;
        prefix.column = prefix.column.saturating_add(width);
        prefix.indent =
            prefix.indent.saturating_add(width - u32::from(std::mem::take(&mut prefix.is_after_quote)));
    }

    /// Returns whether a paragraph is open and the line continues all containers around it.
    fn is_in_paragraph(&self) -> bool {
        self.has_paragraph && self.prefix.matched_containers == self.depth
    }
}

/// State of the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineState {
    /// Only blanks and container markers so far.
    #[default]
    Start,
    /// Digits of a possible list item marker.
    Number { digits: u8, value: u8 },
    /// A list item marker, if a blank follows.
    Marker,
    /// Blanks after the marker.
    Space,
    /// `*`, `-` or `_`, which may form a thematic break. If they do not, the line is text: in a paragraph, or
    /// outside of one if `is_indented`.
    ThematicBreak { is_indented: bool },
    /// This many `#`, at most six.
    Heading(u8),
    /// `=` below a paragraph; `is_ended` once blanks follow.
    Underline { is_ended: bool },
    /// A run of fence characters at the start of the line.
    FenceRun { mark: u8, len: u32 },
    /// After the run that may open a fence, in its info string.
    Info { mark: u8, len: u32 },
    /// Inside a fence: only blanks so far after a run that could close it.
    ClosingFence,
    /// The content of the line.
    Inline,
}

impl LineState {
    /// Returns whether the line has no content yet, so that container markers may follow.
    #[inline]
    pub(super) fn is_prefix(self) -> bool {
        !matches!(
            self,
            LineState::FenceRun { .. } | LineState::Info { .. } | LineState::ClosingFence | LineState::Inline
        )
    }
}

/// Container markers and blanks of a line. Small, since it is reset for each line.
#[derive(Clone, Copy, Debug, Default)]
struct LinePrefix {
    /// Columns read so far.
    column: u32,
    /// Columns of blanks that belong to no container.
    indent: u32,
    /// Number of open containers that the line continues.
    matched_containers: u8,
    /// True if a blank would belong to the `>` before it.
    is_after_quote: bool,
    marker: ItemMarker,
    thematic_break: ThematicBreak,
}

/// A possible list item marker.
#[derive(Clone, Copy, Debug, Default)]
struct ItemMarker {
    /// Columns up to its end, counted from the end of the container around it.
    width: u8,
    /// True if it may directly follow a paragraph.
    can_interrupt: bool,
}

/// A possible thematic break. If it is one, its characters begin no list items.
#[derive(Clone, Copy, Debug, Default)]
struct ThematicBreak {
    /// Character of the break, or 0 if the line cannot be a break.
    mark: u8,
    /// Number of these characters; three make a break.
    count: u8,
    /// Number of containers around the break.
    depth: u8,
}

/// Returns whether a byte belongs to a letter, which begins no block.
#[inline]
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

/// Returns whether the content begins with a letter, possibly in strong emphasis, so that no block begins.
#[inline]
fn begins_text(content: &[u8]) -> bool {
    matches!(content, [first, ..] if is_letter(*first))
        || matches!(content, [b'*', b'*', first, ..] if is_letter(*first))
}
