//! HTML elements whose content is code or a quotation: markup in them is an example.

use super::markup::{MarkupTag, TagKind};

const QUOTING_TAGS: &[&str] = &["pre", "code", "samp", "blockquote", "q"];

/// Counts open quoting elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuotingElements {
    open_count: usize,
}

impl QuotingElements {
    /// Observes a tag that is in neither Markdown code nor a comment.
    pub fn observe_tag(&mut self, tag: &MarkupTag<'_>) {
        if !QUOTING_TAGS.iter().any(|name| name.eq_ignore_ascii_case(tag.name)) {
            return;
        }
        self.open_count = match tag.kind {
            TagKind::Open => self.open_count + 1,
            TagKind::Close => self.open_count.saturating_sub(1),
            TagKind::SelfClosing => self.open_count,
        };
    }

    /// Returns whether the following text is quoted.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.open_count > 0
    }
}
