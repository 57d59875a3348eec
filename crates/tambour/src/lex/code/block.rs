//! Where a line stands: the quotations and list items it is in, and what begins in them. As CommonMark has it, without
//! HTML and definitions of links.

use crate::lex::fence::Fence;

/// Follows the blocks of a Markdown text, byte by byte up to where the content of each line begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) line: Line,
    pub(super) fence: Option<Fence>,
    /// Open quotations (`QUOTE`) and list items (the columns before their content), outermost first.
    open: [u8; DEPTH],
    depth: usize,
    /// How many of them the line is in.
    matched: usize,
    /// Whether the last line is text that the next one may go on with.
    paragraph: bool,
    /// Whether the innermost item has only its marker so far.
    empty: bool,
    column: usize,
    /// Columns of blanks that belong to no container.
    indent: usize,
    /// Whether a blank would belong to the `>` before it.
    quoted: bool,
    marker: Marker,
    rule: Rule,
}

/// What is known of the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Line {
    /// Only blanks and marks of containers so far.
    #[default]
    Start,
    /// Digits of what may be the marker of a list item.
    Number { digits: usize, value: usize },
    /// The marker of a list item, if a blank follows.
    Marker,
    /// Blanks behind it.
    Space,
    /// `*`, `-` or `_`, which may make a thematic break. `indented`: text if they do not, but no paragraph.
    Rule { indented: bool },
    /// So many `#`.
    Heading(usize),
    /// `=` below a paragraph, and blanks behind them.
    Underline { ended: bool },
    /// A run of fence characters began the line.
    Mark { mark: u8, len: usize },
    /// The run is over; what follows may be an info string.
    Info { mark: u8, len: usize },
    /// Inside a fence: only blanks since a run that could close it.
    Closing,
    /// Anything else.
    Inline,
}

impl Line {
    /// Whether marks of containers and the like may come, and no content yet.
    #[inline]
    pub(super) fn is_beginning(self) -> bool {
        !matches!(self, Line::Mark { .. } | Line::Info { .. } | Line::Closing | Line::Inline)
    }
}

/// What may be the marker of a list item.
#[derive(Clone, Copy, Debug, Default)]
struct Marker {
    /// Columns up to its end.
    width: usize,
    /// Whether it may come right behind a paragraph.
    interrupts: bool,
}

/// What may be a thematic break. List items that its signs began are none then.
#[derive(Clone, Copy, Debug, Default)]
struct Rule {
    mark: u8,
    count: usize,
    depth: usize,
}

/// Containers that are remembered; what would open deeper ones is text.
const DEPTH: usize = 32;

/// A quotation among the widths of items.
const QUOTE: u8 = 0;

/// Columns from which on a line is indented code or goes on with a paragraph.
const INDENTED: usize = 4;

impl Block {
    /// A byte before the content of a line. Returns whether the byte is part of that; what came of the line before holds no
    /// backtick and no backslash.
    pub(super) fn byte(&mut self, byte: u8) -> bool {
        let blank = matches!(byte, b' ' | b'\t' | b'\r');
        match self.line {
            Line::Start => return self.start(byte),
            Line::Number { digits, value } => match byte {
                b'0'..=b'9' if digits < 9 => {
                    self.step();
                    self.marker.width += 1;
                    self.line =
                        Line::Number { digits: digits + 1, value: value * 10 + usize::from(byte - b'0') };
                }
                b'.' | b')' => {
                    self.step();
                    self.marker = Marker { width: self.marker.width + 1, interrupts: value == 1 };
                    self.line = Line::Marker;
                }
                _ => return self.text(),
            },
            Line::Marker if blank && self.matched < DEPTH => {
                if self.in_paragraph() && !self.marker.interrupts {
                    return self.text();
                }
                self.line = Line::Space;
                self.indent = 0;
                self.blank(byte);
            }
            Line::Marker if self.rule.mark == byte => {
                self.rule.count += 1;
                self.line = Line::Rule { indented: false };
            }
            Line::Space if blank => self.blank(byte),
            Line::Space => {
                // So many blanks are of indented code, all but the first.
                let own = if self.indent > INDENTED { 1 } else { self.indent.max(1) };
                self.begin(self.marker.width + own);
                self.indent = self.indent.saturating_sub(own);
                return self.start(byte);
            }
            Line::Rule { .. } if byte == self.rule.mark => self.rule.count += 1,
            Line::Rule { .. } if blank => {}
            Line::Rule { indented: true } => return self.no_paragraph(),
            Line::Heading(count) if byte == b'#' && count < 6 => self.line = Line::Heading(count + 1),
            Line::Heading(_) if blank => return self.no_paragraph(),
            Line::Underline { ended: false } if byte == b'=' => {}
            Line::Underline { .. } if blank => self.line = Line::Underline { ended: true },
            Line::Marker | Line::Rule { .. } | Line::Heading(_) | Line::Underline { .. } => {
                return self.text();
            }
            Line::Mark { mark, len } => self.line = Line::Mark { mark, len: len + 1 },
            Line::Closing if blank => {}
            Line::Closing => self.line = Line::Inline,
            Line::Info { .. } | Line::Inline => {}
        }
        false
    }

    /// Reads the bytes before the content of a line. Stops before what ends the line, begins its content or may be a fence.
    #[inline]
    pub(super) fn beginning(&mut self, bytes: &[u8]) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            if byte == b'\n' || self.byte(byte) {
                return at;
            }
            if !self.line.is_beginning() {
                return at + 1;
            }
        }
        bytes.len()
    }

    /// Whether the line has come to its content, from `byte` on. Most lines begin with a letter: it begins no block.
    #[inline]
    pub(super) fn begins_plain(&mut self, byte: u8) -> bool {
        if matches!(self.line, Line::Start)
            && self.column == 0
            && (byte.is_ascii_alphabetic() || byte >= 0x80)
        {
            self.letter();
        }
        matches!(self.line, Line::Inline)
    }

    /// A letter without blanks before it begins the line: it is in no container.
    fn letter(&mut self) {
        if self.fence.is_some() && self.depth == 0 {
            self.line = Line::Inline;
        } else {
            self.fence = None;
            self.text();
        }
    }

    /// The run of fence characters that began the line is over; returns whether it was text.
    pub(super) fn end_mark(&mut self, mark: u8, len: usize) -> bool {
        if let Some(fence) = self.fence {
            let closes = Fence::new(mark, len).is_some_and(|run| fence.is_closed_by(run));
            self.line = if closes { Line::Closing } else { Line::Inline };
            return false;
        }
        if Fence::new(mark, len).is_some() {
            self.line = Line::Info { mark, len };
            return false;
        }
        self.text()
    }

    /// The line is text of a paragraph.
    pub(super) fn text(&mut self) -> bool {
        self.line = Line::Inline;
        if !self.paragraph {
            // A paragraph goes on without the marks of its containers.
            self.depth = self.matched;
        }
        self.paragraph = true;
        true
    }

    /// Ends the line, which is not in a run of fence characters.
    #[inline]
    pub(super) fn end_line(&mut self) {
        let empty = !matches!(self.line, Line::Inline) && self.end_start();
        self.empty = empty;
        self.line = Line::Start;
        (self.matched, self.column, self.indent, self.quoted) = (0, 0, 0, false);
        self.rule = Rule::default();
    }

    /// Ends a line that has come to no content. Returns whether it was the marker of an item alone.
    fn end_start(&mut self) -> bool {
        let setext = self.in_paragraph() && self.rule.mark == b'-';
        match self.line {
            Line::Marker | Line::Space | Line::Rule { .. } if self.rule.count >= 3 => {
                self.depth = self.rule.depth;
                self.paragraph = false;
            }
            Line::Marker | Line::Space | Line::Rule { .. } if setext => self.paragraph = false,
            Line::Marker | Line::Space if !self.in_paragraph() && self.matched < DEPTH => {
                self.begin(self.marker.width + 1);
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
                self.fence = Fence::new(mark, len);
            }
            Line::Closing => self.fence = None,
            Line::Mark { .. } | Line::Inline => {}
        }
        false
    }

    /// The first bytes of a line, and the first ones in a container that begins.
    fn start(&mut self, byte: u8) -> bool {
        if matches!(byte, b' ' | b'\t' | b'\r') {
            self.blank(byte);
            return false;
        }
        self.quoted = false;
        while self.matched < self.depth {
            let width = usize::from(self.open[self.matched]);
            if self.open[self.matched] == QUOTE {
                if byte != b'>' || self.indent >= INDENTED {
                    break;
                }
                self.matched += 1;
                self.quote();
                return false;
            }
            if self.indent < width {
                break;
            }
            self.indent -= width;
            self.matched += 1;
        }
        if let Some(fence) = self.fence {
            if self.matched == self.depth {
                let closes = byte == fence.mark && self.indent < INDENTED;
                self.line = if closes { Line::Mark { mark: byte, len: 1 } } else { Line::Inline };
                return !closes;
            }
            // It ends with what it stands in.
            self.fence = None;
        }
        self.begin_block(byte)
    }

    /// A byte that may begin a block, where no container goes on with it.
    fn begin_block(&mut self, byte: u8) -> bool {
        let ruled = self.rule.mark == byte;
        if ruled {
            self.rule.count += 1;
        } else {
            let mark = if matches!(byte, b'*' | b'-' | b'_') { byte } else { 0 };
            self.rule = Rule { mark, count: usize::from(mark != 0), depth: self.matched };
        }
        if self.indent >= INDENTED {
            if ruled {
                self.line = Line::Rule { indented: true };
                return false;
            }
            self.rule = Rule::default();
            return if self.paragraph { self.text() } else { self.no_paragraph() };
        }
        match byte {
            b'>' if self.matched < DEPTH => {
                self.begin(usize::from(QUOTE));
                self.quote();
            }
            b'`' | b'~' => self.line = Line::Mark { mark: byte, len: 1 },
            b'-' | b'+' | b'*' => {
                self.step();
                self.marker = Marker { width: self.indent + 1, interrupts: true };
                self.line = Line::Marker;
            }
            b'0'..=b'9' => {
                self.step();
                self.marker = Marker { width: self.indent + 1, interrupts: false };
                self.line = Line::Number { digits: 1, value: usize::from(byte - b'0') };
            }
            b'_' => self.line = Line::Rule { indented: false },
            b'#' => self.line = Line::Heading(1),
            b'=' if self.in_paragraph() => self.line = Line::Underline { ended: false },
            _ => return self.text(),
        }
        false
    }

    /// The line is neither text of a paragraph nor goes on with one.
    fn no_paragraph(&mut self) -> bool {
        self.line = Line::Inline;
        self.depth = self.matched;
        self.paragraph = false;
        true
    }

    /// The line was blank: it is in the list items, but not in quotations without `>`.
    fn end_blank(&mut self) {
        while self.matched < self.depth && self.open[self.matched] != QUOTE {
            // An item does not begin with two blank lines.
            if self.empty && self.matched + 1 == self.depth {
                break;
            }
            self.matched += 1;
        }
        if self.matched < self.depth {
            self.fence = None;
        }
        self.depth = self.matched;
        self.paragraph = false;
    }

    /// A container begins, where there is room for one.
    fn begin(&mut self, container: usize) {
        self.open[self.matched] = u8::try_from(container).expect("a marker has at most ten signs");
        self.matched += 1;
        self.depth = self.matched;
        self.paragraph = false;
        self.line = Line::Start;
    }

    /// `>` was read.
    fn quote(&mut self) {
        self.step();
        self.indent = 0;
        self.quoted = true;
    }

    fn step(&mut self) {
        self.column += 1;
    }

    fn blank(&mut self, byte: u8) {
        let width = match byte {
            b' ' => 1,
            b'\t' => 4 - self.column % 4,
            _ => return,
        };
        self.column += width;
        self.indent += width - usize::from(std::mem::take(&mut self.quoted));
    }

    /// Whether the line would go on with the paragraph of its own container.
    fn in_paragraph(&self) -> bool {
        self.paragraph && self.matched == self.depth
    }
}
