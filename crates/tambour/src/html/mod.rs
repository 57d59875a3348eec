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
//! use tambour::html::{Mode, sanitized};
//!
//! let (text, findings) = sanitized("<b onclick=\"x()\">1 < 2</b> <img src=x> `<img>`", Mode::Escape);
//! assert_eq!(text, "<b>1 < 2</b> &lt;img src=x> `<img>`");
//! assert_eq!(findings.len(), 2);
//! ```
//!
//! The result does not depend on chunk boundaries, and sanitizing it again changes nothing (except for
//! backticks that stay open on a line longer than `limits.line`). For that reason line breaks in removed text
//! stay, and text removed directly behind a backtick leaves a blank.

mod colour;
mod read;
pub(crate) mod rules;
mod style;
mod tag;
mod trust;
mod write;

use crate::finding::Report;
use crate::lex::code::Code;
use crate::limits::Limits;
use crate::span::Place;
use trust::Trust;

/// Treatment of markup that is not on the whitelist (`filament.html`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Shown as text: its `<` becomes `&lt;`.
    #[default]
    Escape,
    /// Removed; text between tags stays.
    Strip,
}

/// Output of a [`Sanitizer`].
#[derive(Debug)]
pub enum Piece<'a> {
    /// Text to pass on.
    Text(&'a str),
    /// Report of a change, with its place (F-236).
    Found(Report),
}

/// Sanitizes one text as it arrives. Linear; holds back at most one tag (`limits.tag`, 1 KiB) or, behind an
/// open backtick, the line from its first `<` on (`limits.line`, 1 KiB).
#[derive(Debug)]
pub struct Sanitizer {
    mode: Mode,
    /// Most bytes of a tag, and most bytes held back of a line.
    most: (usize, usize),
    /// Code context of the emitted text.
    code: Code,
    trust: Trust,
    /// Place after all text read.
    here: Place,
    reading: Reading,
    /// Open elements, outermost first.
    open: Vec<Open>,
    line: Line,
    last: u8,
}

/// State of the current line.
#[derive(Debug, Default)]
struct Line {
    /// Number of open backtick runs, from the first, that do not close on it.
    dead: usize,
    /// No backtick passes, since it could not be decided whether one would close code.
    shut: bool,
}

#[derive(Debug)]
struct Open {
    name: String,
    at: Place,
    end: usize,
}

/// State of the sanitizer.
#[derive(Debug)]
enum Reading {
    Text,
    /// A possible tag.
    Tag {
        state: tag::State,
        raw: String,
        at: Place,
    },
    /// Behind `<!--`; `dashes` and `bang` describe the bytes just read.
    Comment {
        at: Place,
        dashes: u8,
        bang: bool,
        broken: bool,
    },
    /// In a script or style; `matched` bytes of its end tag have been read.
    Body {
        name: &'static str,
        at: Place,
        matched: usize,
        broken: bool,
    },
    /// Behind open backticks.
    Held(Box<Held>),
}

/// Possible code: text from a `<` behind open backticks on.
#[derive(Debug)]
struct Held {
    raw: String,
    at: Place,
    /// Trackers in their state after it, if it is code.
    code: Code,
    trust: Trust,
    /// Number of backtick runs open before it.
    runs: usize,
}

impl Sanitizer {
    /// Creates a sanitizer at the start of a text.
    #[must_use]
    pub fn new(mode: Mode, limits: &Limits) -> Sanitizer {
        Sanitizer {
            mode,
            most: (limits.tag, limits.line),
            code: Code::default(),
            trust: Trust::default(),
            here: Place::START,
            reading: Reading::Text,
            open: Vec::new(),
            line: Line::default(),
            last: b'\n',
        }
    }

    /// Reads the next chunk.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) {
        self.read(text, out);
    }

    /// Reads the next chunk, which is at `place` of the reply, for text with gaps there. Findings get places
    /// from it.
    pub fn push_at(&mut self, text: &str, place: Place, out: &mut impl FnMut(Piece<'_>)) {
        self.here = place;
        self.read(text, out);
    }

    /// Ends the text. Open elements are closed, unless it ends within a fence.
    pub fn finish(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        self.end(out);
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        match &self.reading {
            Reading::Tag { raw, .. } => raw.len(),
            Reading::Held(held) => held.raw.len(),
            _ => 0,
        }
    }
}

/// Sanitizes a whole text; returns it with reports of the changes.
#[must_use]
pub fn sanitized(text: &str, mode: Mode) -> (String, Vec<Report>) {
    let (mut result, mut reports) = (String::with_capacity(text.len()), Vec::new());
    let mut out = |piece: Piece<'_>| match piece {
        Piece::Text(text) => result.push_str(text),
        Piece::Found(report) => reports.push(report),
    };
    let mut sanitizer = Sanitizer::new(mode, &Limits::default());
    sanitizer.push(text, &mut out);
    sanitizer.finish(&mut out);
    (result, reports)
}
