//! Sanitizer of inline HTML in streamed Markdown text (F-104): markup on the whitelist passes, all other
//! markup is escaped or removed.
//!
//! On the list are `br`, `b`, `strong`, `i`, `em`, `u`, `s`, `ruby` with `rt` and `rp`, and `span` with a
//! `style` of `color`, `background-color`, `font-weight`, `font-style` and `text-decoration`, whose values
//! must follow their grammar. No other attribute is allowed. Scripts, styles and comments are removed with
//! their text. Elements open at the end are closed.
//!
//! Code spans and fences are left unchanged (F-105), unless a Markdown reader might interpret them otherwise
//! (links, tables, HTML blocks). `a < b`, `1<2` and `<3` stay. All other text that begins like markup is
//! escaped in both modes, autolinks (`<https://...>`) included, since a browser would read it as tags.
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
//! backticks that stay open on a line longer than `limits.line`). For that reason line breaks in removed text
//! stay, and text removed directly behind a backtick leaves a blank.

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

/// Treatment of markup that is not on the whitelist (`filament.html`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HtmlMode {
    /// Shown as text: its `<` becomes `&lt;`.
    #[default]
    Escape,
    /// Removed; text between tags stays.
    Strip,
}

/// Output of a [`HtmlSanitizer`].
#[derive(Debug)]
pub enum SanitizedPiece<'a> {
    /// Text to pass on.
    Text(&'a str),
    /// Report of a change, with its place (F-236).
    Report(FindingReport),
}

/// Sanitizes one text as it arrives. Linear; holds back at most one tag (`limits.tag`, 1 KiB) or, behind an
/// open backtick, the line from its first `<` on (`limits.line`, 1 KiB).
#[derive(Debug)]
pub struct HtmlSanitizer {
    mode: HtmlMode,
    /// Most bytes of a tag, and most bytes held back of a line.
    limits: (usize, usize),
    /// Code context of the emitted text.
    code: CodeTracker,
    trust: CodeTrust,
    /// Place after all text read.
    place: Place,
    state: SanitizerState,
    /// Open elements, outermost first.
    open_elements: Vec<OpenElement>,
    backticks: BacktickState,
    last_byte: u8,
}

/// State of the current line.
#[derive(Debug, Default)]
struct BacktickState {
    /// Number of open backtick runs, from the first, that do not close on it.
    unclosable_runs: usize,
    /// No backtick passes, since it could not be decided whether one would close code.
    escapes_backticks: bool,
}

#[derive(Debug)]
struct OpenElement {
    name: String,
    place: Place,
    end: usize,
}

/// State of the sanitizer.
#[derive(Debug)]
enum SanitizerState {
    Text,
    /// A possible tag.
    Tag {
        state: tag::HtmlTagState,
        raw: String,
        at: Place,
    },
    /// After `<!--`; `dashes` and `bang` describe the bytes just read.
    Comment {
        at: Place,
        dashes: u8,
        bang: bool,
        has_line_break: bool,
    },
    /// In a script or style; `matched` bytes of its end tag have been read.
    RawText {
        name: &'static str,
        at: Place,
        matched_len: usize,
        has_line_break: bool,
    },
    /// After open backticks.
    PossibleCode(Box<PossibleCode>),
}

/// Possible code: text from a `<` behind open backticks on.
#[derive(Debug)]
struct PossibleCode {
    text: String,
    place: Place,
    /// Trackers in their state after it, if it is code.
    code: CodeTracker,
    trust: CodeTrust,
    /// Number of backtick runs open before it.
    open_runs: usize,
}

impl HtmlSanitizer {
    /// Creates a sanitizer at the start of a text.
    #[must_use]
    pub fn new(mode: HtmlMode, limits: &Limits) -> HtmlSanitizer {
        HtmlSanitizer {
            mode,
            limits: (limits.tag, limits.line),
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

    /// Reads the next chunk, which is at `place` of the reply, for text with gaps there. Findings get places
    /// from it.
    pub fn push_at(&mut self, text: &str, place: Place, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        self.place = place;
        self.read_text_chunk(text, out);
    }

    /// Ends the text. Open elements are closed, unless it ends within a fence.
    pub fn finish(&mut self, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        self.end_text(out);
    }

    /// Number of bytes held back.
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
