//! Sanitizer of inline HTML in streamed Markdown text (F-104): markup on the whitelist passes, all other
//! markup is escaped or removed.
//!
//! The whitelist has `br`, `b`, `strong`, `i`, `em`, `u`, `s`, `ruby` with `rt` and `rp`, and `span` with a
//! `style` of `color`, `background-color`, `font-weight`, `font-style` and `text-decoration`, whose values
//! must follow their grammar. No other attribute is allowed. Scripts, styles and comments are removed with
//! their text. Elements open at the end are closed.
//!
//! Code spans and fences are left unchanged (F-105), unless some Markdown reader might not take them for code
//! (in links, tables and HTML blocks). `a < b`, `1<2` and `<3` stay. All other text that begins like markup
//! is escaped in both modes of [`HtmlMode`], autolinks (`<https://...>`) included, since a browser would read
//! it as tags.
//!
//! ```
//! use tambour::html::{HtmlMode, sanitize};
//!
//! let (text, findings) = sanitize("<b onclick=\"x()\">1 < 2</b> <img src=x> `<img>`", HtmlMode::Escape);
//! assert_eq!(text, "<b>1 < 2</b> &lt;img src=x> `<img>`");
//! assert_eq!(findings.len(), 2);
//! ```
//!
//! The result does not depend on chunk boundaries, and sanitizing it again changes nothing (except for
//! backticks that stay open on a line longer than `limits.line`). To make this so, removed text that
//! contains line breaks leaves one, and text removed directly after a backtick leaves a blank.

mod code_trust;
mod read;
pub(crate) mod rules;
mod style;
mod tag;
mod write;

use crate::finding::FindingReport;
use crate::lex::code::CodeTracker;
use crate::limits::Limits;
use crate::span::Place;
use code_trust::CodeTrust;

/// Treatment of markup that is not on the whitelist (option `filament.html`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HtmlMode {
    /// Shows the markup as text: its `<` becomes `&lt;`.
    #[default]
    Escape,
    /// Removes the markup; text between tags stays.
    Strip,
}

/// Second argument of [`CodeTracker::read_to_stop`]: entities need no attention here.
const STOPS_AT_AMPERSAND: bool = false;

/// Output of a [`HtmlSanitizer`].
#[derive(Debug)]
pub enum SanitizedPiece<'a> {
    /// Text to pass on.
    Text(&'a str),
    /// Report of a change, with its place (F-236).
    Report(FindingReport),
}

/// Sanitizes one text as it arrives. Linear; holds back at most one tag (`limits.tag`, 1 KiB) or, after an
/// open backtick, the line from its first `<` on (`limits.line`, 1 KiB).
#[derive(Debug)]
pub struct HtmlSanitizer {
    mode: HtmlMode,
    /// Maximum length of a tag in bytes.
    max_tag_bytes: usize,
    /// Maximum length in bytes of a line held back as possible code.
    max_line_bytes: usize,
    /// Code context of the emitted text.
    code: CodeTracker,
    /// Trust in that context.
    trust: CodeTrust,
    /// Place after all text read.
    place: Place,
    state: SanitizerState,
    /// Open elements, outermost first.
    open_elements: Vec<OpenElement>,
    backticks: BacktickState,
    /// Last byte emitted; a line feed at the start.
    last_byte: u8,
}

/// Backticks of the current line.
#[derive(Debug, Default)]
struct BacktickState {
    /// Number of open backtick runs, counted from the first, that are known not to close on this line.
    unclosable_runs: usize,
    /// True if backticks are escaped, since it could not be decided whether one would close code.
    escapes_backticks: bool,
}

/// An element that is not closed yet.
#[derive(Debug)]
struct OpenElement {
    name: String,
    /// Place of its start tag.
    place: Place,
    /// Byte offset after its start tag.
    end: usize,
}

/// State of the sanitizer.
#[derive(Debug)]
enum SanitizerState {
    Text,
    /// In a possible tag, which starts at `place`; `raw` is its text so far.
    Tag {
        state: tag::HtmlTagState,
        raw: String,
        place: Place,
    },
    /// In a comment, which starts at `place`. The text so far ends with this many `dashes`, at most two, and
    /// then a `!` if `has_bang`. `has_line_break` is true once a line break was read (and one emitted).
    Comment {
        place: Place,
        dashes: u8,
        has_bang: bool,
        has_line_break: bool,
    },
    /// In a script or style, which starts at `place`; `matched_len` bytes of its end tag have been read, and
    /// `has_line_break` is as in `Comment`.
    RawText {
        name: &'static str,
        place: Place,
        matched_len: usize,
        has_line_break: bool,
    },
    /// In text after open backticks, which may be code.
    PossibleCode(Box<PossibleCode>),
}

/// Possible code: the text held back from the first `<` after open backticks.
#[derive(Debug)]
struct PossibleCode {
    text: String,
    /// Place of the start of `text`.
    place: Place,
    /// Tracker after `text`, if the text is code.
    code: CodeTracker,
    /// Trust after `text`, if the text is code.
    trust: CodeTrust,
    /// Number of backtick runs open before `text`.
    open_runs: usize,
}

impl HtmlSanitizer {
    /// Creates a sanitizer at the start of a text.
    #[must_use]
    pub fn new(mode: HtmlMode, limits: &Limits) -> HtmlSanitizer {
        HtmlSanitizer {
            mode,
            max_tag_bytes: limits.tag,
            max_line_bytes: limits.line,
            code: CodeTracker::default(),
            trust: CodeTrust::default(),
            place: Place::START,
            state: SanitizerState::Text,
            open_elements: Vec::new(),
            backticks: BacktickState::default(),
            last_byte: b'\n',
        }
    }

    /// Reads the next chunk.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        self.read_text_chunk(text, out);
    }

    /// Reads the next chunk, which starts at `place` of the reply, so that findings have the right place even
    /// if the chunks are not adjacent in the reply.
    pub(crate) fn push_at(&mut self, text: &str, place: Place, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        self.place = place;
        self.read_text_chunk(text, out);
    }

    /// Ends the text. Open elements are closed, unless the text ends within a fence.
    pub fn finish(&mut self, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        self.end_text(out);
    }

    /// Number of bytes of text held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.state {
            SanitizerState::Tag { raw, .. } => raw.len(),
            SanitizerState::PossibleCode(possible_code) => possible_code.text.len(),
            _ => 0,
        }
    }
}

/// Sanitizes a whole text; returns it with reports of the changes.
#[must_use]
pub fn sanitize(text: &str, mode: HtmlMode) -> (String, Vec<FindingReport>) {
    let (mut result, mut reports) = (String::with_capacity(text.len()), Vec::new());
    let mut out = |piece: SanitizedPiece<'_>| match piece {
        SanitizedPiece::Text(text) => result.push_str(text),
        SanitizedPiece::Report(report) => reports.push(report),
    };
    let mut sanitizer = HtmlSanitizer::new(mode, &Limits::default());
    sanitizer.push(text, &mut out);
    sanitizer.finish(&mut out);
    (result, reports)
}
