//! State of a Markdown line up to its content.

/// State of the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::lex::code) enum LineState {
    /// Only blanks and container markers so far.
    #[default]
    Start,
    /// Digits of a possible list item marker.
    Number { digits: u8, value: u8 },
    /// A list item marker, if a blank follows.
    Marker,
    /// Blanks behind the marker.
    Space,
    /// `*`, `-` or `_`, which may form a thematic break. `indented`: otherwise text, but no paragraph.
    ThematicBreak { indented: bool },
    /// This many `#`.
    Heading(u8),
    /// `=` below a paragraph; `ended` once blanks follow.
    Underline { ended: bool },
    /// A run of fence characters at the start of the line.
    FenceRun { mark: u8, len: u32 },
    /// The run is over; an info string may follow.
    Info { mark: u8, len: u32 },
    /// Inside a fence: only blanks behind a run that could close it.
    ClosingFence,
    /// The content of the line.
    Inline,
}

impl LineState {
    /// Returns whether the line has no content yet, so that container markers may follow.
    #[inline]
    pub(in crate::lex::code) fn is_prefix(self) -> bool {
        !matches!(
            self,
            LineState::FenceRun { .. } | LineState::Info { .. } | LineState::ClosingFence | LineState::Inline
        )
    }
}

/// Container markers and blanks of a line. Small, since it is reset for each line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinePrefix {
    pub(super) column: u32,
    /// Columns of blanks that belong to no container.
    pub(super) indent: u32,
    /// Number of open containers that the line continues.
    pub(super) matched_containers: u8,
    /// True if a blank would belong to the `>` before it.
    pub(super) is_after_quote: bool,
    pub(super) marker: ItemMarker,
    pub(super) rule: ThematicBreak,
}

/// A possible list item marker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemMarker {
    /// Columns up to its end.
    pub(super) width: u8,
    /// True if it may directly follow a paragraph.
    pub(super) can_interrupt: bool,
}

/// A possible thematic break. If it is one, its characters begin no list items.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThematicBreak {
    pub(super) mark: u8,
    pub(super) count: u8,
    pub(super) depth: u8,
}

/// Returns whether a byte belongs to a letter, which begins no block.
#[inline]
pub(super) fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

/// Returns whether the content begins with a letter, possibly in strong emphasis, so that no block begins.
#[inline]
pub(super) fn begins_text(content: &[u8]) -> bool {
    matches!(content, [first, ..] if is_letter(*first))
        || matches!(content, [b'*', b'*', first, ..] if is_letter(*first))
}
