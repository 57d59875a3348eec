//! Elements of HTML whose text is code, or what somebody else said: what stands in them is an example.

use super::markup::{Tag, TagKind};

const NAMES: &[&str] = &["pre", "code", "samp", "blockquote", "q"];

/// Counts the quoting elements that are open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quoting {
    open: usize,
}

impl Quoting {
    /// A tag comes that is no code of Markdown and stands in no comment.
    pub fn see(&mut self, tag: &Tag<'_>) {
        if !NAMES.iter().any(|name| name.eq_ignore_ascii_case(tag.name)) {
            return;
        }
        self.open = match tag.kind {
            TagKind::Open => self.open + 1,
            TagKind::Close => self.open.saturating_sub(1),
            TagKind::SelfClosing => self.open,
        };
    }

    /// Whether text that comes is quoted.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.open > 0
    }
}
