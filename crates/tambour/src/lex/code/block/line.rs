//! What is known of the line under way, up to its content.

/// What is known of the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::lex::code) enum Line {
    /// Only blanks and marks of containers so far.
    #[default]
    Start,
    /// Digits of what may be the marker of a list item.
    Number { digits: u8, value: u8 },
    /// The marker of a list item, if a blank follows.
    Marker,
    /// Blanks behind it.
    Space,
    /// `*`, `-` or `_`, which may make a thematic break. `indented`: text if they do not, but no paragraph.
    Rule { indented: bool },
    /// So many `#`.
    Heading(u8),
    /// `=` below a paragraph, and blanks behind them.
    Underline { ended: bool },
    /// A run of fence characters began the line.
    Mark { mark: u8, len: u32 },
    /// The run is over; what follows may be an info string.
    Info { mark: u8, len: u32 },
    /// Inside a fence: only blanks since a run that could close it.
    Closing,
    /// Anything else.
    Inline,
}

impl Line {
    /// Whether marks of containers and the like may come, and no content yet.
    #[inline]
    pub(in crate::lex::code) fn is_beginning(self) -> bool {
        !matches!(self, Line::Mark { .. } | Line::Info { .. } | Line::Closing | Line::Inline)
    }
}

/// The marks of containers in a line, and its blanks. Small, since each line starts it anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub(super) column: u32,
    /// Columns of blanks that belong to no container.
    pub(super) indent: u32,
    /// How many of the open containers the line is in.
    pub(super) matched: u8,
    /// Whether a blank would belong to the `>` before it.
    pub(super) quoted: bool,
    pub(super) marker: Marker,
    pub(super) rule: Rule,
}

/// What may be the marker of a list item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marker {
    /// Columns up to its end.
    pub(super) width: u8,
    /// Whether it may come right behind a paragraph.
    pub(super) interrupts: bool,
}

/// What may be a thematic break. List items that its signs began are none then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rule {
    pub(super) mark: u8,
    pub(super) count: u8,
    pub(super) depth: u8,
}

/// Whether a byte is of a letter, with which no block begins.
#[inline]
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

/// Whether no block begins here, but a letter, or a strong one.
#[inline]
pub(super) fn is_text(content: &[u8]) -> bool {
    matches!(content, [first, ..] if is_letter(*first))
        || matches!(content, [b'*', b'*', first, ..] if is_letter(*first))
}
