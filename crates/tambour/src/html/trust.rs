//! Decides whether apparent code is code for every Markdown reader. In doubt, tags in it are treated as if it
//! were text: that costs the reader an entity, while the opposite mistake lets a script through.
//!
//! [`Code`](crate::lex::code::Code) knows fences and backticks. Other syntax that can take a backtick or a
//! fence away from code is tracked here, in the emitted text:
//!
//! - backticks that do not close on their line may close on a later one;
//! - the destination and title of a link, `[a](...)` or `[[...]]`, and a URL, `https://...`, may contain a
//!   backtick;
//! - a `|` between backticks may be the border of a table cell, a `$` the end of a formula;
//! - a tag alone on its line may begin an HTML block, which contains no code up to the next blank line.

/// Evidence against code at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    line: Line,
    link: Link,
    /// Progress within `://` (1, 2) or `www.` (3 to 5) at the end of the current word, and whether the word
    /// contains a URL.
    address: u8,
    in_address: bool,
    /// Flags: backticks may be open; a `|` came since the first of them.
    ticked: bool,
    pipe: bool,
    /// True if this paragraph has a `$`: text up to the next one may be a formula.
    dollar: bool,
    /// Flags: the line before left backticks open; this one began inside a fence.
    unsettled: bool,
    in_fence: bool,
    /// Backticks up to the next blank line may belong to other syntax.
    doubt: bool,
    /// Text up to the next blank line may be an HTML block.
    block: bool,
    /// An HTML block may have contained a fence; never reset.
    lost: bool,
}

/// Content of the current line so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// Blanks only.
    #[default]
    Blank,
    /// Quotation and list item markers.
    Marks,
    /// One tag, and blanks behind it.
    Tag,
    Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    None,
    /// Behind `]`.
    Bracket,
    /// In a destination, with this many open brackets.
    Inside(u32),
    /// Behind `[`, and behind `[[`.
    Open,
    Wiki,
}

impl Trust {
    /// Returns whether a fence can be trusted.
    pub(super) fn fences(&self) -> bool {
        !self.block && !self.lost
    }

    /// Returns whether backticks may begin code.
    pub(super) fn spans(&self) -> bool {
        self.fences() && !self.doubt
    }

    /// Returns whether backticks that have just closed were code.
    pub(super) fn closed(&self) -> bool {
        self.spans() && !self.pipe
    }

    /// Records that no backticks are open any more.
    pub(super) fn settle(&mut self) {
        self.ticked = false;
    }

    /// Ends a line; `fence` is whether a fence is open. Backticks left open outside of fences may close on
    /// the next line for other readers.
    pub(super) fn line(&mut self, fence: bool) {
        self.doubt |= self.unsettled && !fence && !self.in_fence;
        self.lost |= fence && self.block;
        self.in_fence = fence;
    }

    /// Observes an emitted tag.
    pub(super) fn tag(&mut self) {
        self.line = if matches!(self.line, Line::Blank | Line::Marks) { Line::Tag } else { Line::Text };
        (self.link, self.address, self.in_address) = (Link::None, 0, false);
    }

    /// Observes emitted text.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            self.byte(match c {
                _ if c.is_ascii() => c as u8,
                // White space for some readers, but not for others.
                _ if c.is_whitespace() || c == '\u{FEFF}' => 0,
                _ => 0x80,
            });
        }
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'\n' => return self.end_line(),
            b'|' => self.pipe = true,
            b'$' => {
                self.pipe |= self.ticked && self.dollar;
                self.dollar = true;
            }
            b'`' => {
                self.pipe &= self.ticked;
                self.ticked = true;
                self.doubt |= self.in_address;
            }
            b' ' | b'\t' | b'<' => self.in_address = false,
            _ => {}
        }
        self.line = match (self.line, byte) {
            (line, b' ' | b'\t' | b'\r') => line,
            (Line::Tag, 0..b' ') => Line::Tag,
            (Line::Blank | Line::Marks, b'>' | b'*' | b'+' | b'-' | b'.' | b')' | b'0'..=b'9' | 0..b' ') => {
                Line::Marks
            }
            _ => Line::Text,
        };
        self.link = match (self.link, byte) {
            (Link::Wiki, b'`') | (Link::Inside(_), b'"' | b'\'' | b'<' | b'&' | b'\\' | b'`') => {
                self.doubt = true;
                Link::None
            }
            (Link::Inside(depth), b'(') => Link::Inside(depth.saturating_add(1)),
            (Link::Inside(0), b')') => Link::None,
            (Link::Inside(depth), b')') => Link::Inside(depth - 1),
            (Link::Inside(depth), _) => Link::Inside(depth),
            (_, b']') => Link::Bracket,
            (Link::Open | Link::Wiki, b'[') => Link::Wiki,
            (Link::Wiki, _) => Link::Wiki,
            (_, b'[') => Link::Open,
            (Link::Bracket, b'(') => Link::Inside(0),
            _ => Link::None,
        };
        self.address = match (self.address, byte) {
            (1, b'/') => 2,
            (2, b'/') | (5, b'.') => self.begin_address(),
            (3 | 4, b'w' | b'W') => self.address + 1,
            (_, b'w' | b'W') => 3,
            (_, b':') => 1,
            _ => 0,
        };
    }

    fn begin_address(&mut self) -> u8 {
        self.in_address = true;
        0
    }

    fn end_line(&mut self) {
        if self.line == Line::Blank {
            (self.doubt, self.block, self.dollar) = (false, false, false);
        }
        self.block |= self.line == Line::Tag;
        // The destination of a link may continue on the next line, which is not analysed.
        self.doubt |= self.line != Line::Blank && matches!(self.link, Link::Inside(_) | Link::Wiki);
        (self.line, self.link) = (Line::Blank, Link::None);
        self.unsettled = self.ticked;
        (self.address, self.in_address, self.ticked, self.pipe) = (0, false, false, false);
    }
}
