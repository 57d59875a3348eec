//! A block that is buffered until it closes, and its outcome.

use std::ops::Range;
use std::sync::Arc;

use super::options::{self, FilamentOptions};
use super::rules;
use super::tags::{ElementKind, KnownElement};
use crate::dialect::{IntentSink, ReplyAction};
use crate::finding::{FindingReport, Rule, RuleLevel};
use crate::html::{HtmlSanitizer, SanitizedPiece};
use crate::lex::markup::{MarkupTag, TagKind};
use crate::options::Options;
use crate::span::Place;

/// Options that every block reader needs.
pub(super) struct BlockContext {
    pub(super) options: Arc<Options>,
    pub(super) dialect_options: FilamentOptions,
}

impl BlockContext {
    pub(super) fn new(options: &Arc<Options>) -> BlockContext {
        BlockContext { options: Arc::clone(options), dialect_options: options::filament_options(options) }
    }

    /// Returns the text of a `details` element, which clients show folded, with only the allowed inline HTML.
    /// The text begins at `at`. Other markup in it is reported, but is not an error (F-235).
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
    /// Attributes of the tag, with names in lower case and decoded values; only the first of each name.
    pub(super) attributes: Vec<(String, String)>,
    /// Set if the tag has two different `name` attributes.
    pub(super) has_two_names: bool,
    /// Place of the tag.
    pub(super) tag_start: Place,
    /// Place of the body.
    pub(super) body_start: Place,
    pub(super) body: String,
    /// Ranges of the body in which white space replaces removed tags.
    pub(super) gaps: Vec<Range<usize>>,
    /// Set if the block is inside the content, which continues after it.
    pub(super) is_nested: bool,
    /// Names of the open nested elements whose closing tags could be taken for that of the block. In an HTML
    /// status bar the names are empty, since only their number matters.
    pub(super) open_nested_names: Vec<String>,
    /// Tracks the string, in JSON or in a command, that is open on the current line.
    pub(super) string_tracker: StringTracker,
    /// Set in an `<analysis>` that is not part of a string.
    pub(super) is_in_analysis: bool,
    /// Set once the block has exceeded its limit: its body was shown as content, and later text is too.
    pub(super) is_overlong: bool,
    /// Set if the block ends without a closing tag.
    pub(super) is_unclosed: bool,
}

impl FilamentBlock {
    /// Returns the value of an attribute of the tag.
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

    /// Appends white space in place of a removed tag, so that later text keeps its offset. Each character
    /// becomes a blank of as many bytes; a character of four bytes becomes four spaces, since no blank is
    /// that long.
    pub(super) fn append_gap(&mut self, tag: &str) {
        let start = self.body.len();
        self.body.extend(tag.chars().map(|c| match (c, c.len_utf8()) {
            ('\n', _) => "\n",
            (_, 2) => "\u{a0}",
            (_, 3) => "\u{3000}",
            (_, 4) => "    ",
            _ => " ",
        }));
        self.gaps.push(start..self.body.len());
    }

    /// Returns the block with letters instead of white space in place of removed tags; `None` if no tag was
    /// removed. A value that reads differently with the letters may have contained the tag as text.
    pub(super) fn with_gap_text(&self) -> Option<FilamentBlock> {
        let gap_letters = |gap: &Range<usize>| {
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
        let mut copied_end = 0;
        for gap in &self.gaps {
            block.body.push_str(&self.body[copied_end..gap.start]);
            block.body.extend(gap_letters(gap));
            copied_end = gap.end;
        }
        block.body.push_str(&self.body[copied_end..]);
        Some(block)
    }

    /// Returns the offset in the reply after the body.
    pub(super) fn end(&self) -> usize {
        self.body_start.offset + self.body.len()
    }

    /// Returns a finding about the whole block, without a repair.
    pub(super) fn report(&self, rule: &'static Rule, message: impl Into<String>) -> FindingReport {
        FindingReport::new(rule, self.tag_start, self.end(), message)
    }

    /// Reports that the block is not written in the current form; `form` says how it is read, and completes
    /// the repair `read as …`.
    pub(super) fn report_form(&self, rule: &'static Rule, form: &str, out: &mut dyn IntentSink) {
        let message = format!("`<{}>` is not written in the current form", self.name);
        out.report(
            FindingReport::new(rule, self.tag_start, self.end(), message)
                .with_repair(format!("read as {form}")),
        );
    }

    /// Follows an inner tag of a block that holds JSON. A quote in the text of an `<analysis>` begins no string of the
    /// JSON after it (F-110).
    pub(super) fn follow_inner_tag(&mut self, tag: &MarkupTag<'_>) {
        if self.element.kind != ElementKind::Update || !tag.name.eq_ignore_ascii_case("analysis") {
            return;
        }
        match tag.kind {
            TagKind::Open => self.is_in_analysis |= self.string_tracker.open_quote.is_none(),
            TagKind::Close if self.is_in_analysis => {
                (self.is_in_analysis, self.string_tracker) = (false, StringTracker::default());
            }
            _ => {}
        }
    }

    /// Reports a body that cannot be read; the body becomes text of the content, unchanged (F-210).
    pub(super) fn raw_outcome(&self, out: &mut dyn IntentSink) -> BlockOutcome {
        if !self.body.trim().is_empty() {
            let report =
                self.report(rules::RAW_TEXT, format!("the contents of `<{}>` cannot be read", self.name));
            out.report(report.with_repair("shown as text of the content"));
        }
        BlockOutcome::Raw(self.body.clone())
    }

    /// Like [`Self::raw_outcome`], but only the text between the tags of the body becomes text of the
    /// content.
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
    /// The block was not read, and this text is shown as content.
    Raw(String),
    /// The block was not read, and the text between its tags is shown as content.
    Text,
    /// The block was not read, and its body after this offset is shown as content.
    RestFrom(usize),
}

/// Emits the notice `code` about `reference`.
pub(super) fn emit_notice(code: &'static str, reference: Option<String>, out: &mut dyn IntentSink) {
    out.emit_action(ReplyAction::Notice(code, reference));
}

/// Tracks the string that is open on the current line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StringTracker {
    /// Quote that began the string; `None` outside of strings.
    pub(super) open_quote: Option<u8>,
    /// Set after a backslash in the string.
    is_escaped: bool,
}

impl StringTracker {
    /// Reads text, in which each of `quotes` begins a string. The same unescaped quote ends it, and so does a
    /// line break.
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
