//! Block structure of a line: the quotations and list items it belongs to, and the block that begins in them.
//! Follows CommonMark without HTML and link definitions.

mod line;

pub(super) use self::line::Line;
use self::line::{Before, Marker, Rule, is_letter, is_text};
use crate::lex::fence::Fence;

/// Tracks the blocks of a Markdown text, byte by byte up to the content of each line.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) line: Line,
    /// State of the line before its content.
    before: Before,
    pub(super) fence: Option<Fence>,
    /// Open quotations (`QUOTE`) and list items (columns before their content), outermost first.
    open: [u8; DEPTH],
    depth: u8,
    /// True if the last line is text that the next one may continue.
    paragraph: bool,
    /// True if the innermost item has only its marker so far.
    empty: bool,
}

/// Most containers tracked; deeper ones are text.
const DEPTH: usize = 32;

/// The same limit in the type of the depth.
const DEEPEST: u8 = DEPTH as u8;

/// Value that marks a quotation among the open containers.
const QUOTE: u8 = 0;

/// Columns of indentation that make a line indented code or a paragraph continuation.
const INDENTED: u32 = 4;

impl Block {
    /// Reads a byte before the content of a line. Returns whether it begins the content; the bytes of the
    /// line before it then contain no backtick and no backslash.
    pub(super) fn byte(&mut self, byte: u8) -> bool {
        let blank = matches!(byte, b' ' | b'\t' | b'\r');
        match self.line {
            Line::Start => return self.start(byte),
            Line::Number { digits, value } => match byte {
                b'0'..=b'9' if digits < 9 => {
                    self.step();
                    self.before.marker.width += 1;
                    self.line = Line::Number {
                        digits: digits + 1,
                        value: value.saturating_mul(10).saturating_add(byte - b'0'),
                    };
                }
                b'.' | b')' => {
                    self.step();
                    self.before.marker =
                        Marker { width: self.before.marker.width + 1, interrupts: value == 1 };
                    self.line = Line::Marker;
                }
                _ => return self.text(),
            },
            Line::Marker if blank && self.before.matched < DEEPEST => {
                if self.in_paragraph() && !self.before.marker.interrupts {
                    return self.text();
                }
                self.line = Line::Space;
                self.before.indent = 0;
                self.blank(byte);
            }
            Line::Marker if self.before.rule.mark == byte => {
                self.before.rule.count = self.before.rule.count.saturating_add(1);
                self.line = Line::Rule { indented: false };
            }
            Line::Space if blank => self.blank(byte),
            Line::Space => {
                // More blanks belong to indented code, all but the first.
                let own = if self.before.indent > INDENTED { 1 } else { self.before.indent.max(1) };
                self.begin(self.before.marker.width + own as u8);
                self.before.indent = self.before.indent.saturating_sub(own);
                return self.start(byte);
            }
            Line::Rule { .. } if byte == self.before.rule.mark => {
                self.before.rule.count = self.before.rule.count.saturating_add(1)
            }
            Line::Rule { .. } if blank => {}
            Line::Rule { indented: true } => return self.no_paragraph(),
            Line::Heading(count) if byte == b'#' && count < 6 => self.line = Line::Heading(count + 1),
            Line::Heading(_) if blank => return self.no_paragraph(),
            Line::Underline { ended: false } if byte == b'=' => {}
            Line::Underline { .. } if blank => self.line = Line::Underline { ended: true },
            Line::Marker | Line::Rule { .. } | Line::Heading(_) | Line::Underline { .. } => {
                return self.text();
            }
            Line::Mark { mark, len } => self.line = Line::Mark { mark, len: len.saturating_add(1) },
            Line::Closing if blank => {}
            Line::Closing => self.line = Line::Inline,
            Line::Info { .. } | Line::Inline => {}
        }
        false
    }

    /// Reads the bytes before the content of a line. Stops before a line end, the content, or a possible
    /// fence.
    #[inline]
    pub(super) fn beginning(&mut self, bytes: &[u8]) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' {
                return at;
            }
            // Fast path: most items are text, and many begin with strong emphasis.
            if matches!(self.line, Line::Space)
                && (1..=INDENTED).contains(&self.before.indent)
                && is_text(&bytes[at..])
            {
                self.begin(self.before.marker.width + self.before.indent as u8);
                self.text();
                return at;
            }
            if self.byte(byte) {
                return at;
            }
            if !self.line.is_beginning() {
                return at + 1;
            }
        }
        bytes.len()
    }

    /// Returns whether the content has begun, with `byte` or before. Fast path: most lines begin with a
    /// letter, which begins no block.
    #[inline]
    pub(super) fn begins_plain(&mut self, byte: u8) -> bool {
        if matches!(self.line, Line::Start) && self.before.column == 0 && is_letter(byte) {
            self.letter();
        }
        matches!(self.line, Line::Inline)
    }

    /// Handles a line that begins with a letter: it is in no container.
    fn letter(&mut self) {
        if self.fence.is_some() && self.depth == 0 {
            self.line = Line::Inline;
        } else {
            self.fence = None;
            self.text();
        }
    }

    /// Returns whether the line has begun with a quotation marker so far. A lazy continuation of a quoted
    /// paragraph has not.
    pub(super) fn is_quoted(&self) -> bool {
        self.open[..usize::from(self.before.matched)].contains(&QUOTE)
    }

    /// Reads a whole line without backticks at its start. Returns false, without reading, for kinds of lines
    /// that are rare outside of fences.
    #[inline]
    pub(super) fn line(&mut self, line: &[u8]) -> bool {
        if self.fence.is_some() {
            return false;
        }
        match line {
            [] if self.depth == 0 => self.paragraph = false,
            [] => {
                self.end_blank();
                self.before.matched = 0;
            }
            [first, ..] if is_letter(*first) => {
                if !self.paragraph {
                    self.depth = 0;
                }
                self.paragraph = true;
            }
            [b'-' | b'+' | b'*', b' ', content @ ..] if is_text(content) => {
                (self.open[0], self.depth, self.paragraph) = (2, 1, true);
            }
            [number @ b'0'..=b'9', b'.', b' ', content @ ..] if is_text(content) => {
                // Directly behind a paragraph only number 1 begins a list.
                if *number == b'1' || self.depth > 0 || !self.paragraph {
                    (self.open[0], self.depth, self.paragraph) = (3, 1, true);
                }
            }
            _ => return false,
        }
        self.empty = false;
        true
    }

    /// Ends the run of fence characters that began the line; returns whether it was text.
    pub(super) fn end_mark(&mut self, mark: u8, len: u32) -> bool {
        if let Some(fence) = self.fence {
            let closes = Fence::new(mark, len as usize).is_some_and(|run| fence.is_closed_by(run));
            self.line = if closes { Line::Closing } else { Line::Inline };
            return false;
        }
        if Fence::new(mark, len as usize).is_some() {
            self.line = Line::Info { mark, len };
            return false;
        }
        self.text()
    }

    /// The line is text of a paragraph.
    pub(super) fn text(&mut self) -> bool {
        self.line = Line::Inline;
        if !self.paragraph {
            // A paragraph may continue without the markers of its containers.
            self.depth = self.before.matched;
        }
        self.paragraph = true;
        true
    }

    /// Ends the line, which is not in a run of fence characters.
    #[inline]
    pub(super) fn end_line(&mut self) {
        self.empty = match self.line {
            Line::Inline => false,
            // Fast path: outside of containers a blank line only ends a paragraph.
            Line::Start if self.depth == 0 => {
                self.paragraph = false;
                false
            }
            _ => self.end_start(),
        };
        self.line = Line::Start;
        self.before = Before::default();
    }

    /// Ends a line without content. Returns whether it was only the marker of an item.
    fn end_start(&mut self) -> bool {
        let setext = self.in_paragraph() && self.before.rule.mark == b'-';
        match self.line {
            Line::Marker | Line::Space | Line::Rule { .. } if self.before.rule.count >= 3 => {
                self.depth = self.before.rule.depth;
                self.paragraph = false;
            }
            Line::Marker | Line::Space | Line::Rule { .. } if setext => self.paragraph = false,
            Line::Marker | Line::Space if !self.in_paragraph() && self.before.matched < DEEPEST => {
                self.begin(self.before.marker.width + 1);
                return true;
            }
            Line::Heading(_) | Line::Rule { indented: true } => {
                self.no_paragraph();
            }
            Line::Marker | Line::Space | Line::Rule { .. } | Line::Number { .. } => {
                self.text();
            }
            Line::Underline { .. } => self.paragraph = false,
            Line::Start => self.end_blank(),
            Line::Info { mark, len } => {
                self.no_paragraph();
                self.fence = Fence::new(mark, len as usize);
            }
            Line::Closing => self.fence = None,
            Line::Mark { .. } | Line::Inline => {}
        }
        false
    }

    /// Reads the first bytes of a line or of a new container.
    fn start(&mut self, byte: u8) -> bool {
        if matches!(byte, b' ' | b'\t' | b'\r') {
            self.blank(byte);
            return false;
        }
        self.before.quoted = false;
        while self.before.matched < self.depth {
            let width = self.next_open();
            if width == QUOTE {
                if byte != b'>' || self.before.indent >= INDENTED {
                    break;
                }
                self.before.matched += 1;
                self.quote();
                return false;
            }
            if self.before.indent < u32::from(width) {
                break;
            }
            self.before.indent -= u32::from(width);
            self.before.matched += 1;
        }
        if let Some(fence) = self.fence {
            if self.before.matched == self.depth {
                let closes = byte == fence.mark && self.before.indent < INDENTED;
                self.line = if closes { Line::Mark { mark: byte, len: 1 } } else { Line::Inline };
                return !closes;
            }
            // A fence ends with its container.
            self.fence = None;
        }
        self.begin_block(byte)
    }

    /// Reads a byte that may begin a block, after the containers that continue.
    fn begin_block(&mut self, byte: u8) -> bool {
        let ruled = self.before.rule.mark == byte;
        if ruled {
            self.before.rule.count = self.before.rule.count.saturating_add(1);
        } else {
            let mark = if matches!(byte, b'*' | b'-' | b'_') { byte } else { 0 };
            self.before.rule = Rule { mark, count: u8::from(mark != 0), depth: self.before.matched };
        }
        if self.before.indent >= INDENTED {
            if ruled {
                self.line = Line::Rule { indented: true };
                return false;
            }
            self.before.rule = Rule::default();
            return if self.paragraph { self.text() } else { self.no_paragraph() };
        }
        match byte {
            b'>' if self.before.matched < DEEPEST => {
                self.begin(QUOTE);
                self.quote();
            }
            b'`' | b'~' => self.line = Line::Mark { mark: byte, len: 1 },
            b'-' | b'+' | b'*' => {
                self.step();
                self.before.marker = Marker { width: self.before.indent as u8 + 1, interrupts: true };
                self.line = Line::Marker;
            }
            b'0'..=b'9' => {
                self.step();
                self.before.marker = Marker { width: self.before.indent as u8 + 1, interrupts: false };
                self.line = Line::Number { digits: 1, value: byte - b'0' };
            }
            b'_' => self.line = Line::Rule { indented: false },
            b'#' => self.line = Line::Heading(1),
            b'=' if self.in_paragraph() => self.line = Line::Underline { ended: false },
            _ => return self.text(),
        }
        false
    }

    /// The line is not text of a paragraph and does not continue one.
    fn no_paragraph(&mut self) -> bool {
        self.line = Line::Inline;
        self.depth = self.before.matched;
        self.paragraph = false;
        true
    }

    /// Ends a blank line: it continues list items, but not quotations without `>`.
    fn end_blank(&mut self) {
        while self.before.matched < self.depth && self.next_open() != QUOTE {
            // An item does not begin with two blank lines.
            if self.empty && self.before.matched + 1 == self.depth {
                break;
            }
            self.before.matched += 1;
        }
        if self.before.matched < self.depth {
            self.fence = None;
        }
        self.depth = self.before.matched;
        self.paragraph = false;
    }

    /// Opens a container; there must be room for one.
    fn begin(&mut self, container: u8) {
        self.open[usize::from(self.before.matched)] = container;
        self.before.matched += 1;
        self.depth = self.before.matched;
        self.paragraph = false;
        self.line = Line::Start;
    }

    /// Handles `>`.
    fn quote(&mut self) {
        self.step();
        self.before.indent = 0;
        self.before.quoted = true;
    }

    /// Outermost open container that the line has not matched yet.
    fn next_open(&self) -> u8 {
        self.open[usize::from(self.before.matched)]
    }

    fn step(&mut self) {
        self.before.column = self.before.column.saturating_add(1);
    }

    fn blank(&mut self, byte: u8) {
        let width = match byte {
            b' ' => 1,
            b'\t' => 4 - self.before.column % 4,
            _ => return,
        };
        let before = &mut self.before;
        before.column = before.column.saturating_add(width);
        before.indent = before.indent.saturating_add(width - u32::from(std::mem::take(&mut before.quoted)));
    }

    /// Returns whether the line would continue the paragraph of its own container.
    fn in_paragraph(&self) -> bool {
        self.paragraph && self.before.matched == self.depth
    }
}
