//! Whether what looks like code is code for every reader of Markdown. Where that is in doubt, tags in it are treated as if it
//! were text: that costs a reader an entity, the other mistake a script.
//!
//! [`Code`](crate::lex::code::Code) knows fences and backticks. What it does not know can take a backtick or a fence away from
//! code, and is looked for here, in what goes out:
//!
//! - backticks that do not close on their line may do so on a later one;
//! - the destination and title of a link, `[a](...)` or `[[...]]`, and an address, `https://...`, may hold a backtick;
//! - a `|` between backticks may be the border of a table's cell, a `$` the end of a formula;
//! - a tag that stands alone on its line may begin an HTML block, in which there is no code up to the next blank line.

/// What speaks against code at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    line: Line,
    link: Link,
    /// How much of `://` (1, 2) or `www.` (3 to 5) the present word ends with, and whether it holds one.
    address: u8,
    in_address: bool,
    /// Whether backticks may be open, and a `|` came since the first of them.
    ticked: bool,
    pipe: bool,
    /// Whether a `$` came in this paragraph: up to the next one it may be a formula.
    dollar: bool,
    /// Whether the line before left backticks open, and whether this one began within a fence.
    unsettled: bool,
    in_fence: bool,
    /// Up to the next blank line: backticks may belong to something else.
    doubt: bool,
    /// Up to the next blank line: it may all be an HTML block.
    block: bool,
    /// For good: an HTML block may have held a fence.
    lost: bool,
}

/// What the present line holds so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// Blanks.
    #[default]
    Blank,
    /// Marks of quotations and list items.
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
    /// In a destination, with so many open brackets.
    Inside(u32),
    /// Behind `[`, and behind `[[`.
    Open,
    Wiki,
}

impl Trust {
    /// Whether a fence is one.
    pub(super) fn fences(&self) -> bool {
        !self.block && !self.lost
    }

    /// Whether backticks may begin code.
    pub(super) fn spans(&self) -> bool {
        self.fences() && !self.doubt
    }

    /// Whether backticks that have closed were code.
    pub(super) fn closed(&self) -> bool {
        self.spans() && !self.pipe
    }

    /// No backticks are open any more.
    pub(super) fn settle(&mut self) {
        self.ticked = false;
    }

    /// A line has ended; `fence` says whether one is open. Backticks that are not one and have not closed may close in the next
    /// line, for others.
    pub(super) fn line(&mut self, fence: bool) {
        self.doubt |= self.unsettled && !fence && !self.in_fence;
        self.lost |= fence && self.block;
        self.in_fence = fence;
    }

    /// A tag goes out.
    pub(super) fn tag(&mut self) {
        self.line = if matches!(self.line, Line::Blank | Line::Marks) { Line::Tag } else { Line::Text };
        (self.link, self.address, self.in_address) = (Link::None, 0, false);
    }

    /// Text goes out.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            self.byte(match c {
                _ if c.is_ascii() => c as u8,
                // Blank for some, and not for others.
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
        // The destination of a link may go on in the next line: what comes then is not looked at so closely.
        self.doubt |= self.line != Line::Blank && matches!(self.link, Link::Inside(_) | Link::Wiki);
        (self.line, self.link) = (Line::Blank, Link::None);
        self.unsettled = self.ticked;
        (self.address, self.in_address, self.ticked, self.pipe) = (0, false, false, false);
    }
}
