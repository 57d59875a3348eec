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
    level: TrustLevel,
    line: TrustLine,
    link: LinkState,
    address: AddressState,
    ticks: TickState,
    /// True if this paragraph has a `$`: text up to the next one may be a formula.
    has_dollar: bool,
    /// True if the line before left backticks open.
    has_unclosed_ticks: bool,
    /// True if the current line began inside a fence.
    is_in_fence: bool,
}

/// Trust in apparent code, from most to least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum TrustLevel {
    #[default]
    Full,
    /// Backticks up to the next blank line may belong to other syntax.
    FencesOnly,
    /// Text up to the next blank line may be an HTML block.
    HtmlBlock,
    /// An HTML block may have contained a fence; never reset.
    FenceLost,
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

/// Part of a URL at the end of the current word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AddressState {
    #[default]
    None,
    /// After `:`.
    Colon,
    /// After `:/`.
    Slash,
    /// After this many `w`, at most three.
    Www(u8),
    /// After `://` or `www.` in the word.
    Inside,
}

/// Backticks on the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TickState {
    /// None are open.
    #[default]
    Closed,
    /// Some may be open.
    Open,
    /// Some may be open, and the border of a cell or the end of a formula came since the first of them.
    Interrupted,
}

impl CodeTrust {
    /// Returns whether a fence can be trusted.
    pub(super) fn trusts_fences(&self) -> bool {
        self.level < TrustLevel::HtmlBlock
    }

    /// Returns whether backticks may begin code.
    pub(super) fn trusts_spans(&self) -> bool {
        self.level == TrustLevel::Full
    }

    /// Returns whether backticks that have just closed were code.
    pub(super) fn trusts_closed_span(&self) -> bool {
        self.trusts_spans() && self.ticks != TickState::Interrupted
    }

    /// Records that no backticks are open any more.
    pub(super) fn close_ticks(&mut self) {
        self.ticks = TickState::Closed;
    }

    fn lower_to(&mut self, level: TrustLevel) {
        self.level = self.level.max(level);
    }

    /// Ends a line; `fence` is whether a fence is open. Backticks left open outside of fences may close on
    /// the next line for other readers.
    pub(super) fn observe_line_end(&mut self, fence: bool) {
        if self.has_unclosed_ticks && !fence && !self.is_in_fence {
            self.lower_to(TrustLevel::FencesOnly);
        }
        if fence && self.level == TrustLevel::HtmlBlock {
            self.level = TrustLevel::FenceLost;
        }
        self.is_in_fence = fence;
    }

    /// Observes an emitted tag.
    pub(super) fn observe_tag(&mut self) {
        self.line = if matches!(self.line, TrustLine::Blank | TrustLine::Marks) {
            TrustLine::Tag
        } else {
            TrustLine::Text
        };
        (self.link, self.address) = (LinkState::None, AddressState::None);
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
            b'|' => self.interrupt_ticks(),
            b'$' => {
                if self.has_dollar {
                    self.interrupt_ticks();
                }
                self.has_dollar = true;
            }
            b'`' => {
                if self.ticks == TickState::Closed {
                    self.ticks = TickState::Open;
                }
                if self.address == AddressState::Inside {
                    self.lower_to(TrustLevel::FencesOnly);
                }
            }
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
                self.lower_to(TrustLevel::FencesOnly);
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
        self.address = match (self.address, byte) {
            (_, b' ' | b'\t' | b'<') => AddressState::None,
            (AddressState::Inside, _) | (AddressState::Slash, b'/') | (AddressState::Www(3), b'.') => {
                AddressState::Inside
            }
            (AddressState::Colon, b'/') => AddressState::Slash,
            (AddressState::Www(count @ 1..=2), b'w' | b'W') => AddressState::Www(count + 1),
            (_, b'w' | b'W') => AddressState::Www(1),
            (_, b':') => AddressState::Colon,
            _ => AddressState::None,
        };
    }

    /// Records a `|`, or a `$` that may end a formula.
    fn interrupt_ticks(&mut self) {
        if self.ticks == TickState::Open {
            self.ticks = TickState::Interrupted;
        }
    }

    fn end_line(&mut self) {
        if self.line == TrustLine::Blank {
            if self.level < TrustLevel::FenceLost {
                self.level = TrustLevel::Full;
            }
            self.has_dollar = false;
        }
        if self.line == TrustLine::Tag {
            self.lower_to(TrustLevel::HtmlBlock);
        }
        // The destination of a link may continue on the next line, which is not analysed.
        if self.line != TrustLine::Blank && matches!(self.link, LinkState::Inside(_) | LinkState::Wiki) {
            self.lower_to(TrustLevel::FencesOnly);
        }
        self.has_unclosed_ticks = self.ticks != TickState::Closed;
        (self.line, self.link) = (TrustLine::Blank, LinkState::None);
        (self.address, self.ticks) = (AddressState::None, TickState::Closed);
    }
}
