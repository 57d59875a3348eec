//! A block that is buffered until it closes, and its outcome.

use std::ops::Range;
use std::sync::Arc;

use super::options::{self, FilamentOptions};
use super::rules;
use super::tags::Known;
use crate::dialect::{Action, Output};
use crate::finding::{Level, Report, Rule};
use crate::html::{Piece, Sanitizer};
use crate::options::Options;
use crate::span::Place;

/// State given to every block reader.
pub(super) struct Context {
    pub(super) options: Arc<Options>,
    pub(super) own: FilamentOptions,
}

impl Context {
    pub(super) fn new(options: &Arc<Options>) -> Context {
        Context { options: Arc::clone(options), own: options::of(options) }
    }

    /// Returns folded text with only the listed inline HTML; other markup there is not an error (F-235).
    pub(super) fn folded(&self, text: &str, at: Place, out: &mut dyn Output) -> String {
        let mut result = String::with_capacity(text.len());
        let mut sanitizer = Sanitizer::new(self.own.html, &self.options.limits);
        let mut put = |piece: Piece<'_>| match piece {
            Piece::Text(text) => result.push_str(text),
            Piece::Found(report) if report.rule.level == Level::Info => out.report(report),
            Piece::Found(report) => {
                out.report(Report { rule: rules::DETAILS_MARKUP, row: "F-235", ..report });
            }
        };
        sanitizer.push_at(text, at, &mut put);
        sanitizer.finish(&mut put);
        result
    }
}

/// An element that is buffered as a whole.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) known: Known,
    /// Name as written.
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Set if the tag gives two different names.
    pub(super) two_names: bool,
    /// Place of the tag, and start of the body.
    pub(super) tag: Place,
    pub(super) at: Place,
    pub(super) body: String,
    /// White space in the body that replaces removed tags.
    pub(super) gaps: Vec<Range<usize>>,
    /// Set if content continues after it.
    pub(super) nested: bool,
    /// Open nested elements with the name of a reply tag or of the block itself.
    pub(super) inner: Vec<String>,
    /// Set to the quote of a JSON string that is open on the current line.
    pub(super) quotes: Quotes,
    /// Set once the block exceeded its limit: later text is text of the content.
    pub(super) over: bool,
    /// Set if the block ends without a closing tag.
    pub(super) unclosed: bool,
}

impl Block {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        super::body::find(&self.attributes, name)
    }

    /// Removes a byte order mark at the beginning of the body.
    pub(super) fn without_mark(&mut self) {
        if self.body.starts_with('\u{FEFF}') {
            self.body.remove(0);
            let moved = |gap: &mut Range<usize>| {
                *gap = gap.start - '\u{FEFF}'.len_utf8()..gap.end - '\u{FEFF}'.len_utf8();
            };
            self.gaps.iter_mut().for_each(moved);
            self.at = self.at.after("\u{FEFF}");
        }
    }

    /// Appends white space in place of a removed tag, so that later text keeps its place.
    pub(super) fn leave_out(&mut self, tag: &str) {
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
    pub(super) fn with_other_gaps(&self) -> Option<Block> {
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
        self.at.offset + self.body.len()
    }

    /// Returns a finding about the whole block.
    pub(super) fn report(&self, rule: &'static Rule, message: impl Into<String>) -> Report {
        Report::new(rule, self.tag, self.end(), message)
    }

    /// Reports that the block is written in another form than the current one.
    pub(super) fn form(&self, rule: &'static Rule, read: &str, out: &mut dyn Output) {
        let message = format!("`<{}>` is not written as it is today", self.name);
        out.report(Report::new(rule, self.tag, self.end(), message).repaired(format!("read as {read}")));
    }

    /// Reports an unreadable body, which becomes text of the content (F-210).
    pub(super) fn raw(&self, out: &mut dyn Output) -> Came {
        if !self.body.trim().is_empty() {
            let report = self.report(rules::RAW_TEXT, format!("what `<{}>` holds cannot be read", self.name));
            out.report(report.repaired("shown as text of the content"));
        }
        Came::Raw(self.body.clone())
    }

    /// Like [`raw`](Block::raw), but without the tags of the body.
    pub(super) fn text(&self, out: &mut dyn Output) -> Came {
        let report = self.report(rules::RAW_TEXT, format!("what `<{}>` holds cannot be read", self.name));
        out.report(report.repaired("shown as text of the content, its tags not used"));
        Came::Text
    }
}

/// Outcome of a block.
pub(super) enum Came {
    /// The block was read.
    Done,
    /// Part of the block that is shown as content.
    Raw(String),
    /// The text between the tags of the block, shown as content.
    Text,
    /// Offset in the body from which on it is shown as content.
    Behind(usize),
}

/// Emits a notice.
pub(super) fn notice(code: &'static str, about: Option<String>, out: &mut dyn Output) {
    out.act(Action::Notice(code, about));
}

/// Quote character of the string that is open on the current line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quotes {
    pub(super) open: Option<u8>,
    escaped: bool,
}

impl Quotes {
    /// Reads text, in which each unescaped one of these quotes begins a string.
    pub(super) fn read(&mut self, text: &str, quotes: &[u8]) {
        for byte in text.bytes() {
            match (byte, self.open) {
                (b'\n', _) => *self = Quotes::default(),
                (b'\\', Some(_)) => self.escaped = !self.escaped,
                (_, Some(open)) if byte == open && !self.escaped => self.open = None,
                (_, None) if quotes.contains(&byte) => self.open = Some(byte),
                _ => self.escaped = false,
            }
        }
    }
}
