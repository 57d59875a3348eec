//! State shared by all parts of the reader: the options and the current line. Also the findings that several
//! parts report.

use std::sync::Arc;

use super::structure::ThinkingMlElement;
use super::{ThinkingMlOptions, rules};
use crate::dialect::{FAILURE_MARKER, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::lex::markup::{MarkupTag, TagKind};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;

/// State that every part reads. Only the frame changes it.
pub(super) struct ReaderContext {
    pub(super) options: Arc<Options>,
    /// Section of ThinkingML in `options`.
    pub(super) dialect_options: ThinkingMlOptions,
    /// Content of the current line so far.
    pub(super) line: LineContent,
    /// Set while text is read a second time as text, so that no queries block begins in it.
    pub(super) forbids_blocks: bool,
}

/// Content of a line so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContent {
    /// Only white space.
    Blank,
    /// A tag after which text counts as at the start of a line, and then only white space.
    Tag,
    /// Other text.
    Text,
}

/// A `<final>` in the text of another element, which may turn out to be the answer.
pub(super) struct QuotedFinal {
    /// The tag and the text after it, as written.
    pub(super) raw: String,
    /// Length of the tag in bytes.
    pub(super) tag_len: usize,
    /// Place of the tag.
    pub(super) start: Place,
}

impl ReaderContext {
    pub(super) fn new(options: &Arc<Options>) -> ReaderContext {
        ReaderContext {
            options: Arc::clone(options),
            dialect_options: options.section(),
            line: LineContent::Blank,
            forbids_blocks: false,
        }
    }

    /// Returns whether the line has only white space so far.
    pub(super) fn is_line_blank(&self) -> bool {
        self.line == LineContent::Blank
    }

    /// Updates the line after text.
    #[inline]
    pub(super) fn track_text(&mut self, text: &str) {
        self.line = match text.as_bytes().last() {
            // Only text that ends in white space must be searched, and most chunks end in a word.
            Some(b' ' | b'\n' | b'\t' | b'\r') => match crate::lex::scan::rfind(b'\n', text.as_bytes()) {
                Some(last) if is_blank(&text[last + 1..]) => LineContent::Blank,
                None if is_blank(text) => self.line,
                _ => LineContent::Text,
            },
            _ => LineContent::Text,
        };
    }
}

/// Reports that a tag or other short token of `len` bytes breaks a rule; `repair` says in words what was
/// done.
pub(super) fn report_at(
    rule: &'static Rule,
    at: Place,
    len: usize,
    message: impl Into<String>,
    repair: &str,
    out: &mut dyn IntentSink,
) {
    out.report(FindingReport::new(rule, at, at.offset + len, message).with_repair(repair));
}

/// Reports the faults of a tag of this element: letter case, attributes, and a slash that closes it at once.
/// `is_exact` is set if the name is in lower case.
pub(super) fn check_tag(
    name: ThinkingMlElement,
    is_exact: bool,
    tag: &MarkupTag<'_>,
    at: Place,
    out: &mut dyn IntentSink,
) {
    let len = tag.raw.len();
    if !is_exact {
        let message = format!("`{}` must be written in lower case: `{}`", tag.name, name.as_str());
        report_at(rules::TAG_CASE, at, len, message, "read as the lower-case tag", out);
    }
    let is_bare = tag.attribute_text().trim().is_empty();
    if !is_bare && (name != ThinkingMlElement::Phase || tag.kind == TagKind::Close) {
        let message = format!("`{}` must not have attributes", name.as_str());
        report_at(rules::ATTR_UNEXPECTED, at, len, message, "attributes left out", out);
    }
    if tag.kind == TagKind::SelfClosing {
        let message = format!("`{}` must not close itself", name.as_str());
        report_at(rules::SELF_CLOSING, at, len, message, "read as an empty element", out);
    }
}

/// Reports an element that ends at `end` without its closing tag (T-016).
pub(super) fn report_unclosed(name: ThinkingMlElement, start: Place, end: usize, out: &mut dyn IntentSink) {
    let message = format!("`<{}>` is not closed", name.as_str());
    let report = FindingReport::new(rules::UNCLOSED_ELEMENT, start, end, message);
    out.report(report.with_repair("closed here"));
}

/// Reports a tag in the text of a draft (T-003) or a summary (T-006); `row` is that row of the specification.
pub(super) fn report_tag_in_text(
    row: &'static str,
    name: &str,
    at: Place,
    len: usize,
    repair: &str,
    out: &mut dyn IntentSink,
) {
    let message = format!("`{name}` is a tag in plain text");
    let report = FindingReport::new(rules::TAG_IN_PLAIN_TEXT, at, at.offset + len, message);
    out.report(report.with_row(row).with_repair(repair));
}

/// Reports a failure marker (`<<ParsingError>>`) that is not the whole reply.
pub(super) fn report_embedded_marker(at: Place, repair: &str, out: &mut dyn IntentSink) {
    let message = "the failure marker occurs beside other content";
    report_at(rules::PARSING_ERROR_EMBEDDED, at, FAILURE_MARKER.len(), message, repair, out);
}
