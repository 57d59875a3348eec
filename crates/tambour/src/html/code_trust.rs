//! Decides whether apparent code is code for every Markdown reader. In doubt, a tag in it is treated as a tag
//! in text: then a reader sees at worst an entity such as `&lt;`, while the opposite mistake lets a script
//! through.
//!
//! [`CodeTracker`](crate::lex::code::CodeTracker) knows fences and backticks. Other syntax that a backtick or
//! a fence may belong to is tracked here, in the emitted text:
//!
//! - backticks that do not close on their line may close on a later one;
//! - the destination and title of a link, `[a](...)` or `[[...]]`, and a URL, `https://...`, may contain a
//!   backtick;
//! - a `|` between backticks may be the border of a table cell, a `$` the end of a formula;
//! - a tag alone on its line may begin an HTML block, which contains no code up to the next blank line.

/// Trust in apparent code at the end of the text emitted so far.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeTrust {
    level: TrustLevel,
    line: LineContent,
    link: LinkState,
    url: UrlState,
    ticks: TickState,
    /// True if this paragraph has a `$`: text up to the next `$` may be a formula.
    has_dollar: bool,
    /// True if backticks on the previous line did not close on that line.
    has_unclosed_ticks: bool,
    /// True if the current line began inside a fence.
    is_in_fence: bool,
}

/// Trust in apparent code, from most to least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum TrustLevel {
    /// Apparent fences and code spans are code.
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
enum LineContent {
    /// Blanks only.
    #[default]
    Blank,
    /// Markers of quotations and list items.
    Markers,
    /// One tag, and blanks after it.
    Tag,
    /// Anything else.
    Text,
}

/// Part of a link at the end of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LinkState {
    #[default]
    None,
    /// After `]`.
    ClosingBracket,
    /// In a destination, with this many further `(` open.
    Inside(u32),
    /// After `[`.
    OpeningBracket,
    /// After `[[`, in the target of a wiki link.
    Wiki,
}

/// Part of a URL at the end of the current word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UrlState {
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
    /// No backticks are open.
    #[default]
    Closed,
    /// Backticks may be open.
    Open,
    /// Backticks may be open, and the border of a cell or the end of a formula followed the first of them.
    Interrupted,
}

impl CodeTrust {
    /// Returns whether a fence can be trusted.
    pub(super) fn trusts_fences(&self) -> bool {
        self.level < TrustLevel::HtmlBlock
    }

    /// Returns whether code spans can be trusted.
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

    /// Lowers the trust to `level`, unless it is lower already.
    fn lower_to(&mut self, level: TrustLevel) {
        // Levels are ordered from most trust to least.
        self.level = self.level.max(level);
    }

    /// Ends a line once the tracker of code has read its line feed too; the text of the line must have been
    /// observed before. Backticks left open outside of fences may close on the next line for other readers.
    pub(super) fn observe_line_end(&mut self, is_fence_open: bool) {
        if self.has_unclosed_ticks && !is_fence_open && !self.is_in_fence {
            self.lower_to(TrustLevel::FencesOnly);
        }
        if is_fence_open && self.level == TrustLevel::HtmlBlock {
            self.level = TrustLevel::FenceLost;
        }
        self.is_in_fence = is_fence_open;
    }

    /// Observes an emitted tag.
    pub(super) fn observe_tag(&mut self) {
        self.line = if matches!(self.line, LineContent::Blank | LineContent::Markers) {
            LineContent::Tag
        } else {
            LineContent::Text
        };
        (self.link, self.url) = (LinkState::None, UrlState::None);
    }

    /// Observes emitted text.
    pub(super) fn observe_text(&mut self, text: &str) {
        for c in text.chars() {
            self.observe_byte(match c {
                _ if c.is_ascii() => c as u8,
                // White space for some readers, but not for others: treated as a control character.
                _ if c.is_whitespace() || c == '\u{FEFF}' => 0,
                // Any other character has no meaning here.
                _ => 0x80,
            });
        }
    }

    /// Observes one character, as a byte: ASCII, 0 for an uncertain blank, or 0x80 for any other.
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
                if self.url == UrlState::Inside {
                    self.lower_to(TrustLevel::FencesOnly);
                }
            }
            _ => {}
        }
        self.line = match (self.line, byte) {
            (line, b' ' | b'\t' | b'\r') => line,
            (LineContent::Tag, 0..b' ') => LineContent::Tag,
            (
                LineContent::Blank | LineContent::Markers,
                b'>' | b'*' | b'+' | b'-' | b'.' | b')' | b'0'..=b'9' | 0..b' ',
            ) => LineContent::Markers,
            _ => LineContent::Text,
        };
        self.link = match (self.link, byte) {
            // A backtick in a link, or a character that may begin a title, an entity or an escape in it.
            (LinkState::Wiki, b'`') | (LinkState::Inside(_), b'"' | b'\'' | b'<' | b'&' | b'\\' | b'`') => {
                self.lower_to(TrustLevel::FencesOnly);
                LinkState::None
            }
            (LinkState::Inside(depth), b'(') => LinkState::Inside(depth.saturating_add(1)),
            (LinkState::Inside(0), b')') => LinkState::None,
            (LinkState::Inside(depth), b')') => LinkState::Inside(depth - 1),
            (LinkState::Inside(depth), _) => LinkState::Inside(depth),
            (_, b']') => LinkState::ClosingBracket,
            (LinkState::OpeningBracket | LinkState::Wiki, b'[') => LinkState::Wiki,
            (LinkState::Wiki, _) => LinkState::Wiki,
            (_, b'[') => LinkState::OpeningBracket,
            (LinkState::ClosingBracket, b'(') => LinkState::Inside(0),
            _ => LinkState::None,
        };
        self.url = match (self.url, byte) {
            (_, b' ' | b'\t' | b'<') => UrlState::None,
            (UrlState::Inside, _) | (UrlState::Slash, b'/') | (UrlState::Www(3), b'.') => UrlState::Inside,
            (UrlState::Colon, b'/') => UrlState::Slash,
            (UrlState::Www(count @ 1..=2), b'w' | b'W') => UrlState::Www(count + 1),
            (_, b'w' | b'W') => UrlState::Www(1),
            (_, b':') => UrlState::Colon,
            _ => UrlState::None,
        };
    }

    /// Records a `|`, or a `$` that may end a formula: backticks on both sides of it may enclose no code.
    fn interrupt_ticks(&mut self) {
        if self.ticks == TickState::Open {
            self.ticks = TickState::Interrupted;
        }
    }

    /// Ends a line at its line feed; [`CodeTrust::observe_line_end`] follows.
    fn end_line(&mut self) {
        if self.line == LineContent::Blank {
            if self.level < TrustLevel::FenceLost {
                self.level = TrustLevel::Full;
            }
            self.has_dollar = false;
        }
        if self.line == LineContent::Tag {
            self.lower_to(TrustLevel::HtmlBlock);
        }
        // The destination of a link may continue on the next line, which is not analysed.
        if self.line != LineContent::Blank && matches!(self.link, LinkState::Inside(_) | LinkState::Wiki) {
            self.lower_to(TrustLevel::FencesOnly);
        }
        self.has_unclosed_ticks = self.ticks != TickState::Closed;
        (self.line, self.link) = (LineContent::Blank, LinkState::None);
        (self.url, self.ticks) = (UrlState::None, TickState::Closed);
    }
}
