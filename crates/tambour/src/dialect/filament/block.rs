//! A block that is buffered until it closes, and its outcome.

use std::ops::Range;
use std::sync::Arc;

use super::options::{self, FilamentOptions};
use super::rules;
use super::tags::KnownElement;
use crate::dialect::{IntentSink, ReplyAction};
use crate::finding::{FindingReport, Rule, RuleLevel};
use crate::html::{HtmlSanitizer, SanitizedPiece};
use crate::options::Options;
use crate::span::Place;

/// State given to every block reader.
pub(super) struct BlockContext {
    pub(super) options: Arc<Options>,
    pub(super) dialect_options: FilamentOptions,
}

impl BlockContext {
    pub(super) fn new(options: &Arc<Options>) -> BlockContext {
        BlockContext { options: Arc::clone(options), dialect_options: options::filament_options(options) }
    }

    /// Returns folded text with only the listed inline HTML; other markup there is not an error (F-235).
    pub(super) fn sanitize_folded(&self, text: &str, at: Place, out: &mut dyn IntentSink) -> String {
        let mut result = String::with_capacity(text.len());
        let mut sanitizer = HtmlSanitizer::new(self.dialect_options.html_mode, &self.options.limits);
        let mut append = |piece: SanitizedPiece<'_>| match piece {
            SanitizedPiece::Text(text) => result.push_str(text),
            SanitizedPiece::Report(report) if report.rule.level == RuleLevel::Info => out.report(report),
            SanitizedPiece::Report(report) => {
                out.report(FindingReport { rule: rules::DETAILS_MARKUP, row: "F-235", ..report });
            }
        };
        sanitizer.push_at(text, at, &mut append);
        sanitizer.finish(&mut append);
        result
    }
}

/// An element that is buffered as a whole.
#[derive(Clone, Debug)]
pub(super) struct FilamentBlock {
    pub(super) element: KnownElement,
    /// Name as written.
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Set if the tag gives two different names.
    pub(super) has_two_names: bool,
    /// Place of the tag, and start of the body.
    pub(super) tag_start: Place,
    pub(super) body_start: Place,
    pub(super) body: String,
    /// White space in the body that replaces removed tags.
    pub(super) gaps: Vec<Range<usize>>,
    /// Set if content continues after it.
    pub(super) is_nested: bool,
    /// Open nested elements with the name of a reply tag or of the block itself.
    pub(super) open_inner: Vec<String>,
    /// Set to the quote of a JSON string that is open on the current line.
    pub(super) quotes: StringTracker,
    /// Set once the block exceeded its limit: later text is text of the content.
    pub(super) is_overlong: bool,
    /// Set if the block ends without a closing tag.
    pub(super) is_unclosed: bool,
}

impl FilamentBlock {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        super::body::find_attribute(&self.attributes, name)
    }

    /// Removes a byte order mark at the beginning of the body.
    pub(super) fn strip_byte_order_mark(&mut self) {
        if self.body.starts_with('\u{FEFF}') {
            self.body.remove(0);
            let shift_gap = |gap: &mut Range<usize>| {
                *gap = gap.start - '\u{FEFF}'.len_utf8()..gap.end - '\u{FEFF}'.len_utf8();
            };
            self.gaps.iter_mut().for_each(shift_gap);
            self.body_start = self.body_start.end_of("\u{FEFF}");
        }
    }

    /// Appends white space in place of a removed tag, so that later text keeps its place.
    pub(super) fn append_gap(&mut self, tag: &str) {
        let start = self.body.len();
        self.body.extend(tag.chars().map(|c| match (c, c.len_utf8()) {
            ('\n', _) => '\n',
            (_, 2) => '\u{a0}',
            (_, 3) => '\u{3000}',
            _ => ' ',
        }));
        self.gaps.push(start..self.body.len());
    }

    /// Returns the block with other text in place of removed tags, if there are any: a value that differs in
    /// it may hold a tag as text.
    pub(super) fn with_gap_text(&self) -> Option<FilamentBlock> {
        let other = |gap: &Range<usize>| {
            self.body[gap.clone()].chars().map(|c| match c.len_utf8() {
                2 => 'ä',
                3 => '口',
                _ if c == '\n' => c,
                _ => 'x',
            })
        };
        if self.gaps.is_empty() {
            return None;
        }
        let mut block = self.clone();
        block.body.clear();
        let mut at = 0;
        for gap in &self.gaps {
            block.body.push_str(&self.body[at..gap.start]);
            block.body.extend(other(gap));
            at = gap.end;
        }
        block.body.push_str(&self.body[at..]);
        Some(block)
    }

    /// Returns the offset after the body.
    pub(super) fn end(&self) -> usize {
        self.body_start.offset + self.body.len()
    }

    /// Returns a finding about the whole block.
    pub(super) fn report(&self, rule: &'static Rule, message: impl Into<String>) -> FindingReport {
        FindingReport::new(rule, self.tag_start, self.end(), message)
    }

    /// Reports that the block is written in a form other than the current one.
    pub(super) fn report_form(&self, rule: &'static Rule, read: &str, out: &mut dyn IntentSink) {
        let message = format!("`<{}>` is not written in the current form", self.name);
        out.report(
            FindingReport::new(rule, self.tag_start, self.end(), message)
                .with_repair(format!("read as {read}")),
        );
    }

    /// Reports an unreadable body, which becomes text of the content (F-210).
    pub(super) fn raw_outcome(&self, out: &mut dyn IntentSink) -> BlockOutcome {
        if !self.body.trim().is_empty() {
            let report =
                self.report(rules::RAW_TEXT, format!("the contents of `<{}>` cannot be read", self.name));
            out.report(report.with_repair("shown as text of the content"));
        }
        BlockOutcome::Raw(self.body.clone())
    }

    /// Like [`raw_outcome`](FilamentBlock::raw_outcome), but without the tags of the body.
    pub(super) fn text_outcome(&self, out: &mut dyn IntentSink) -> BlockOutcome {
        let report =
            self.report(rules::RAW_TEXT, format!("the contents of `<{}>` cannot be read", self.name));
        out.report(report.with_repair("shown as text of the content, its tags not used"));
        BlockOutcome::Text
    }
}

/// Outcome of a block.
pub(super) enum BlockOutcome {
    /// The block was read.
    Read,
    /// Part of the block that is shown as content.
    Raw(String),
    /// The text between the tags of the block, shown as content.
    Text,
    /// Offset in the body from which on it is shown as content.
    RestFrom(usize),
}

/// Emits a notice.
pub(super) fn emit_notice(code: &'static str, detail: Option<String>, out: &mut dyn IntentSink) {
    out.emit_action(ReplyAction::Notice(code, detail));
}

/// Quote character of the string that is open on the current line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StringTracker {
    pub(super) open_quote: Option<u8>,
    is_escaped: bool,
}

impl StringTracker {
    /// Reads text, in which each unescaped one of these quotes begins a string.
    pub(super) fn push_text(&mut self, text: &str, quotes: &[u8]) {
        for byte in text.bytes() {
            match (byte, self.open_quote) {
                (b'\n', _) => *self = StringTracker::default(),
                (b'\\', Some(_)) => self.is_escaped = !self.is_escaped,
                (_, Some(open)) if byte == open && !self.is_escaped => self.open_quote = None,
                (_, None) if quotes.contains(&byte) => self.open_quote = Some(byte),
                _ => self.is_escaped = false,
            }
        }
    }
}
