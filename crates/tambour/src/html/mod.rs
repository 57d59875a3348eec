//! Inline HTML in Markdown text (F-104): what is on the list passes, everything else is escaped or taken out, while the text
//! streams.
//!
//! On the list are `br`, `b`, `strong`, `i`, `em`, `u`, `s`, `ruby` with `rt` and `rp`, and `span` with a `style` of `color`,
//! `background-color`, `font-weight`, `font-style` and `text-decoration`, whose values follow their grammar. There is no other
//! attribute. Scripts and styles go with their text, comments too. What is open at the end is closed.
//!
//! Code spans and fences are left as they are (F-105), unless a reader of Markdown might take them for something else
//! (links, tables, HTML blocks). `a < b`, `1<2` and `<3` stay. Everything else that begins like markup is escaped, autolinks (`<https://...>`)
//! among it, in both modes: a browser would take them for tags.
//!
//! ```
//! use tambour::html::{Mode, sanitized};
//!
//! let (text, findings) = sanitized("<b onclick=\"x()\">1 < 2</b> <img src=x> `<img>`", Mode::Escape);
//! assert_eq!(text, "<b>1 < 2</b> &lt;img src=x> `<img>`");
//! assert_eq!(findings.len(), 2);
//! ```
//!
//! The result does not depend on how the text is cut, and sanitising it again changes nothing (but for backticks that stay open
//! on a line longer than `limits.line`). To that end lines stay lines, a
//! line break in what is taken out stays; and what is taken out directly behind a backtick leaves a blank.

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

/// What happens to markup that is not on the list (`filament.html`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It is shown as text: its `<` becomes `&lt;`.
    #[default]
    Escape,
    /// It is taken out; text between tags stays.
    Strip,
}

/// What comes out.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Text that goes on.
    Text(&'a str),
    /// What was changed, with its place (F-236).
    Found(Report),
}

/// Sanitises one text as it arrives. Linear; holds back at most one tag (`limits.tag`, 1 KiB) or, behind an open backtick, the
/// line from its first `<` on (`limits.line`, 1 KiB).
#[derive(Debug)]
pub struct Sanitizer {
    mode: Mode,
    /// Bytes of a tag, and of what is held of a line.
    most: (usize, usize),
    /// Code in what went out.
    code: Code,
    trust: Trust,
    /// Behind all that was read.
    here: Place,
    reading: Reading,
    /// Elements that are open, from the outermost on.
    open: Vec<Open>,
    line: Line,
    last: u8,
}

/// What is known of the present line.
#[derive(Debug, Default)]
struct Line {
    /// So many of the first open runs of backticks do not close on it.
    dead: usize,
    /// No backtick passes: whether what one would close is code could not be found out.
    shut: bool,
}

#[derive(Debug)]
struct Open {
    name: String,
    at: Place,
    end: usize,
}

/// What is under way.
#[derive(Debug)]
enum Reading {
    Text,
    /// What begins with `<`.
    Tag {
        state: tag::State,
        raw: String,
        at: Place,
    },
    /// Behind `<!--`; with the dashes and the `!` before the present byte.
    Comment {
        at: Place,
        dashes: u8,
        bang: bool,
        broken: bool,
    },
    /// In a script or style; with how much of its end tag is there.
    Body {
        name: &'static str,
        at: Place,
        matched: usize,
        broken: bool,
    },
    /// Behind open backticks.
    Held(Box<Held>),
}

/// Text from a `<` behind open backticks on, which may be code.
#[derive(Debug)]
struct Held {
    raw: String,
    at: Place,
    /// The readers behind it, if it is code.
    code: Code,
    trust: Trust,
    /// Runs of backticks that are open before it.
    runs: usize,
}

impl Sanitizer {
    /// At the start of a text.
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

    /// The next piece of the text.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) {
        self.read(text, out);
    }

    /// The next piece, which stands at `place` of the reply: for text that has gaps there. The places of findings follow.
    pub fn push_at(&mut self, text: &str, place: Place, out: &mut impl FnMut(Piece<'_>)) {
        self.here = place;
        self.read(text, out);
    }

    /// Ends the text: elements that are open are closed, unless it ends within a fence.
    pub fn finish(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        self.end(out);
    }

    /// Bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        match &self.reading {
            Reading::Tag { raw, .. } => raw.len(),
            Reading::Held(held) => held.raw.len(),
            _ => 0,
        }
    }
}

/// A whole text, and what was changed.
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
