//! HTML elements whose content is code or a quotation: markup in them is an example.

use super::markup::{Tag, TagKind};

const NAMES: &[&str] = &["pre", "code", "samp", "blockquote", "q"];

/// Counts open quoting elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quoting {
    open: usize,
}

impl Quoting {
    /// Observes a tag that is in neither Markdown code nor a comment.
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

    /// Returns whether the following text is quoted.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.open > 0
    }
}
