//! Decides whether apparent code is code for every Markdown reader. In doubt, tags in it are treated as if it
//! were text: that costs the reader an entity, while the opposite mistake lets a script through.
//!
//! [`CodeTracker`](crate::lex::code::CodeTracker) knows fences and backticks. Other syntax that can take a backtick or a
//! fence away from code is tracked here, in the emitted text:
//!
//! - backticks that do not close on their line may close on a later one;
//! - the destination and title of a link, `[a](...)` or `[[...]]`, and a URL, `https://...`, may contain a
//!   backtick;
//! - a `|` between backticks may be the border of a table cell, a `$` the end of a formula;
//! - a tag alone on its line may begin an HTML block, which contains no code up to the next blank line.

/// Evidence against code at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeTrust {
    line: TrustLine,
    link: LinkState,
    /// Progress within `://` (1, 2) or `www.` (3 to 5) at the end of the current word, and whether the word
    /// contains a URL.
    address_progress: u8,
    is_in_address: bool,
    /// Flags: backticks may be open; a `|` came since the first of them.
    has_open_ticks: bool,
    has_pipe: bool,
    /// True if this paragraph has a `$`: text up to the next one may be a formula.
    has_dollar: bool,
    /// Flags: the line before left backticks open; this one began inside a fence.
    has_unclosed_ticks: bool,
    is_in_fence: bool,
    /// Backticks up to the next blank line may belong to other syntax.
    is_doubtful: bool,
    /// Text up to the next blank line may be an HTML block.
    is_html_block: bool,
    /// An HTML block may have contained a fence; never reset.
    has_lost_fences: bool,
}

/// Content of the current line so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TrustLine {
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
enum LinkState {
    #[default]
    None,
    /// After `]`.
    Bracket,
    /// In a destination, with this many open brackets.
    Inside(u32),
    /// After `[`, and behind `[[`.
    Open,
    Wiki,
}

impl CodeTrust {
    /// Returns whether a fence can be trusted.
    pub(super) fn trusts_fences(&self) -> bool {
        !self.is_html_block && !self.has_lost_fences
    }

    /// Returns whether backticks may begin code.
    pub(super) fn trusts_spans(&self) -> bool {
        self.trusts_fences() && !self.is_doubtful
    }

    /// Returns whether backticks that have just closed were code.
    pub(super) fn trusts_closed_span(&self) -> bool {
        self.trusts_spans() && !self.has_pipe
    }

    /// Records that no backticks are open any more.
    pub(super) fn close_ticks(&mut self) {
        self.has_open_ticks = false;
    }

    /// Ends a line; `fence` is whether a fence is open. Backticks left open outside of fences may close on
    /// the next line for other readers.
    pub(super) fn observe_line_end(&mut self, fence: bool) {
        self.is_doubtful |= self.has_unclosed_ticks && !fence && !self.is_in_fence;
        self.has_lost_fences |= fence && self.is_html_block;
        self.is_in_fence = fence;
    }

    /// Observes an emitted tag.
    pub(super) fn observe_tag(&mut self) {
        self.line = if matches!(self.line, TrustLine::Blank | TrustLine::Marks) {
            TrustLine::Tag
        } else {
            TrustLine::Text
        };
        (self.link, self.address_progress, self.is_in_address) = (LinkState::None, 0, false);
    }

    /// Observes emitted text.
    pub(super) fn observe_text(&mut self, text: &str) {
        for c in text.chars() {
            self.observe_byte(match c {
                _ if c.is_ascii() => c as u8,
                // White space for some readers, but not for others.
                _ if c.is_whitespace() || c == '\u{FEFF}' => 0,
                _ => 0x80,
            });
        }
    }

    fn observe_byte(&mut self, byte: u8) {
        match byte {
            b'\n' => return self.end_line(),
            b'|' => self.has_pipe = true,
            b'$' => {
                self.has_pipe |= self.has_open_ticks && self.has_dollar;
                self.has_dollar = true;
            }
            b'`' => {
                self.has_pipe &= self.has_open_ticks;
                self.has_open_ticks = true;
                self.is_doubtful |= self.is_in_address;
            }
            b' ' | b'\t' | b'<' => self.is_in_address = false,
            _ => {}
        }
        self.line = match (self.line, byte) {
            (line, b' ' | b'\t' | b'\r') => line,
            (TrustLine::Tag, 0..b' ') => TrustLine::Tag,
            (
                TrustLine::Blank | TrustLine::Marks,
                b'>' | b'*' | b'+' | b'-' | b'.' | b')' | b'0'..=b'9' | 0..b' ',
            ) => TrustLine::Marks,
            _ => TrustLine::Text,
        };
        self.link = match (self.link, byte) {
            (LinkState::Wiki, b'`') | (LinkState::Inside(_), b'"' | b'\'' | b'<' | b'&' | b'\\' | b'`') => {
                self.is_doubtful = true;
                LinkState::None
            }
            (LinkState::Inside(depth), b'(') => LinkState::Inside(depth.saturating_add(1)),
            (LinkState::Inside(0), b')') => LinkState::None,
            (LinkState::Inside(depth), b')') => LinkState::Inside(depth - 1),
            (LinkState::Inside(depth), _) => LinkState::Inside(depth),
            (_, b']') => LinkState::Bracket,
            (LinkState::Open | LinkState::Wiki, b'[') => LinkState::Wiki,
            (LinkState::Wiki, _) => LinkState::Wiki,
            (_, b'[') => LinkState::Open,
            (LinkState::Bracket, b'(') => LinkState::Inside(0),
            _ => LinkState::None,
        };
        self.address_progress = match (self.address_progress, byte) {
            (1, b'/') => 2,
            (2, b'/') | (5, b'.') => self.begin_address(),
            (3 | 4, b'w' | b'W') => self.address_progress + 1,
            (_, b'w' | b'W') => 3,
            (_, b':') => 1,
            _ => 0,
        };
    }

    fn begin_address(&mut self) -> u8 {
        self.is_in_address = true;
        0
    }

    fn end_line(&mut self) {
        if self.line == TrustLine::Blank {
            (self.is_doubtful, self.is_html_block, self.has_dollar) = (false, false, false);
        }
        self.is_html_block |= self.line == TrustLine::Tag;
        // The destination of a link may continue on the next line, which is not analysed.
        self.is_doubtful |=
            self.line != TrustLine::Blank && matches!(self.link, LinkState::Inside(_) | LinkState::Wiki);
        (self.line, self.link) = (TrustLine::Blank, LinkState::None);
        self.has_unclosed_ticks = self.has_open_ticks;
        (self.address_progress, self.is_in_address, self.has_open_ticks, self.has_pipe) =
            (0, false, false, false);
    }
}
