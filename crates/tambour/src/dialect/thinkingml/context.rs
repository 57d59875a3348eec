//! State shared by all parts of the reader: the options and the current line. Also the findings that several
//! parts report.

use std::sync::Arc;

use super::options::ThinkingMlOptions;
use super::rules;
use super::structure::Name;
use crate::dialect::{MARKER, Output};
use crate::finding::{Report, Rule};
use crate::lex::markup::{Tag, TagKind};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;

/// State given to every part. Only the frame changes it.
pub(super) struct Context {
    pub(super) options: Arc<Options>,
    pub(super) own: ThinkingMlOptions,
    /// Content of the current line so far.
    pub(super) line: Line,
    /// Set while text is read a second time in which no queries block begins.
    pub(super) no_blocks: bool,
}

/// Content of a line so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Only white space.
    Blank,
    /// A tag of the structure, and white space.
    Tag,
    /// Other text.
    Text,
}

/// A `<final>` in text that is not the answer so far, with the text after it, both as written.
pub(super) struct Quote {
    pub(super) raw: String,
    pub(super) tag_len: usize,
    pub(super) at: Place,
}

impl Context {
    pub(super) fn new(options: &Arc<Options>) -> Context {
        Context { options: Arc::clone(options), own: options.of(), line: Line::Blank, no_blocks: false }
    }

    /// Returns whether the line has only white space so far.
    pub(super) fn line_blank(&self) -> bool {
        self.line == Line::Blank
    }

    /// Updates the line after text.
    #[inline]
    pub(super) fn text_came(&mut self, text: &str) {
        self.line = match text.as_bytes().last() {
            // Most chunks end in a word.
            Some(b' ' | b'\n' | b'\t' | b'\r') => match crate::lex::scan::rfind(b'\n', text.as_bytes()) {
                Some(last) if is_blank(&text[last + 1..]) => Line::Blank,
                None if is_blank(text) => self.line,
                _ => Line::Text,
            },
            _ => Line::Text,
        };
    }
}

/// Reports a rule at a tag or other short token of `len` bytes.
pub(super) fn report(
    rule: &'static Rule,
    at: Place,
    len: usize,
    message: impl Into<String>,
    repair: &str,
    out: &mut dyn Output,
) {
    out.report(Report::new(rule, at, at.offset + len, message).repaired(repair));
}

/// Reports attributes and case of a tag.
pub(super) fn check_tag(name: Name, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
    let len = tag.raw.len();
    if !exact {
        let message = format!("`{}` is written in lower case: `{}`", tag.name, name.text());
        report(rules::TAG_CASE, at, len, message, "read as the lower-case tag", out);
    }
    let bare = tag.rest().trim().is_empty();
    if !bare && (name != Name::Phase || tag.kind == TagKind::Close) {
        let message = format!("`{}` carries no attributes", name.text());
        report(rules::ATTR_UNEXPECTED, at, len, message, "attributes left out", out);
    }
    if tag.kind == TagKind::SelfClosing {
        let message = format!("`{}` does not close itself", name.text());
        report(rules::SELF_CLOSING, at, len, message, "read as an empty element", out);
    }
}

/// Reports an element that ends at `end` without its closing tag (T-016).
pub(super) fn unclosed(name: Name, start: Place, end: usize, out: &mut dyn Output) {
    let message = format!("`<{}>` is not closed", name.text());
    let report = Report::new(rules::UNCLOSED_ELEMENT, start, end, message);
    out.report(report.repaired("closed here"));
}

/// Reports a tag in the text of a draft (T-003) or a summary (T-006).
pub(super) fn tag_in_plain_text(
    row: &'static str,
    name: &str,
    at: Place,
    len: usize,
    repair: &str,
    out: &mut dyn Output,
) {
    let message = format!("`{name}` is a tag in plain text");
    let report = Report::new(rules::TAG_IN_PLAIN_TEXT, at, at.offset + len, message);
    out.report(report.row(row).repaired(repair));
}

/// Reports a failure marker that is not the whole reply.
pub(super) fn embedded_marker(at: Place, repair: &str, out: &mut dyn Output) {
    let message = "the failure marker stands beside other content";
    report(rules::PARSING_ERROR_EMBEDDED, at, MARKER.len(), message, repair, out);
}
