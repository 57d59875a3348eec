//! White space as defined by R-22: space character, tab, CR and LF. The ideographic space is text, since it
//! indents Chinese paragraphs.

/// Returns whether `c` is white space.
#[must_use]
#[inline]
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Returns whether text is empty or only white space.
#[must_use]
#[inline]
pub fn is_blank(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

/// Text without surrounding white space.
#[must_use]
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}
