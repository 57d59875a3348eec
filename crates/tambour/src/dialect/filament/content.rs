//! Emission of the text that users see: inline HTML is checked against the list (F-104).

use super::options::FilamentOptions;
use super::rules;
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::html::{Piece, Sanitizer};
use crate::lex::space::is_space;
use crate::limits::Limits;
use crate::span::{At, Place};

/// Content of a reply.
pub(super) struct Content {
    sanitizer: Sanitizer,
    /// Set if the next text does not directly follow the last one.
    gap: bool,
    /// Set once there was non-blank text.
    filled: bool,
    /// Set if the next text is a paragraph of its own.
    apart: bool,
    /// Set if a line break is due before the next text, unless it has one.
    line: bool,
    /// Set at the beginning of an element: a byte order mark there is no text.
    fresh: bool,
    /// Line breaks at the end of the text, at most two.
    breaks: usize,
    /// End of the text, kept if choices are looked for in it.
    tail: Option<String>,
    /// Set while text is emitted that was reported as a whole.
    told: bool,
}

/// Longest end of the text in which choices are looked for, in bytes.
const TAIL: usize = 4 << 10;

impl Content {
    pub(super) fn new(own: &FilamentOptions, limits: &Limits) -> Content {
        Content {
            sanitizer: Sanitizer::new(own.html, limits),
            gap: true,
            filled: false,
            apart: false,
            line: false,
            fresh: true,
            breaks: 2,
            tail: own.choices_from_text.then(String::new),
            told: false,
        }
    }

    /// Returns whether there was non-blank text.
    pub(super) fn filled(&self) -> bool {
        self.filled
    }

    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        self.sanitizer.held()
    }

    /// Records that the next text does not directly follow the last one.
    pub(super) fn gap(&mut self) {
        self.gap = true;
    }

    /// Makes the next text a paragraph of its own.
    pub(super) fn part(&mut self) {
        (self.gap, self.fresh) = (true, true);
        self.apart = self.filled;
        self.line = false;
    }

    /// Makes the next text continue the last one; with `line`, the line break between them is kept.
    pub(super) fn join(&mut self, line: bool) {
        (self.gap, self.fresh) = (true, true);
        self.apart = false;
        self.line = line && self.filled;
    }

    /// Emits text that directly follows the last one; returns whether it did.
    #[inline]
    pub(super) fn flow(&mut self, text: &str, out: &mut dyn Output) -> bool {
        if self.gap || self.apart || self.line {
            return false;
        }
        self.push(text, None, out);
        true
    }

    /// Emits text at a place.
    pub(super) fn text(&mut self, text: &str, at: At<'_>, out: &mut dyn Output) {
        if !text.is_empty()
            && std::mem::take(&mut self.fresh)
            && let Some(rest) = text.strip_prefix('\u{FEFF}')
        {
            //
            let at = at.get().after("\u{FEFF}");
            if !rest.is_empty() {
                self.text(rest, At::from(at), out);
            }
            return;
        }
        if self.apart {
            // White space at the border of a section is dropped.
            let blank = text.len() - text.trim_start_matches(is_space).len();
            if blank == text.len() {
                return;
            }
            self.apart = false;
            let at = at.get().after(&text[..blank]);
            let breaks = &"\n\n"[..2 - self.breaks];
            self.push(breaks, Some(at), out);
            return self.push(&text[blank..], Some(at), out);
        }
        if self.line && !text.is_empty() {
            self.line = false;
            if self.breaks == 0 && !text.starts_with('\n') {
                let at = at.get();
                self.push("\n", Some(at), out);
                return self.push(text, Some(at), out);
            }
        }
        let place = std::mem::take(&mut self.gap).then(|| at.get());
        self.push(text, place, out);
    }

    #[inline]
    fn push(&mut self, text: &str, place: Option<Place>, out: &mut dyn Output) {
        self.gap = false;
        if !self.filled {
            self.filled = !text.trim().is_empty();
        }
        if text.as_bytes().last() == Some(&b'\n') {
            self.breaks = if text.ends_with("\n\n") {
                2
            } else if text == "\n" {
                (self.breaks + 1).min(2)
            } else {
                1
            };
        } else if !text.is_empty() {
            self.breaks = 0;
        }
        let Content { sanitizer, tail, told, .. } = self;
        let mut put = |piece: Piece<'_>| send(piece, tail, *told, out);
        match place {
            Some(place) => sanitizer.push_at(text, place, &mut put),
            None => sanitizer.push(text, &mut put),
        }
    }

    /// Emits a paragraph from an unreadable block that was reported: its tags are not faults of the content.
    pub(super) fn paragraph(
        &mut self,
        pieces: &mut dyn Iterator<Item = (Place, &str)>,
        out: &mut dyn Output,
    ) {
        self.part();
        self.told = true;
        for (place, text) in pieces {
            self.gap();
            self.text(text, At::from(place), out);
        }
        self.told = false;
        self.part();
    }

    /// Ends the content.
    pub(super) fn finish(&mut self, out: &mut dyn Output) {
        let Content { sanitizer, tail, told, .. } = self;
        sanitizer.finish(&mut |piece| send(piece, tail, *told, out));
    }

    /// Returns the end of the text, if it is kept.
    pub(super) fn tail(&self) -> Option<&str> {
        let tail = self.tail.as_deref()?;
        let from = tail.ceil_char_boundary(tail.len().saturating_sub(TAIL));
        Some(&tail[from..])
    }
}

#[inline]
fn send(piece: Piece<'_>, tail: &mut Option<String>, told: bool, out: &mut dyn Output) {
    match piece {
        Piece::Text(text) => {
            if let Some(tail) = tail {
                tail.push_str(text);
                if tail.len() > 4 * TAIL {
                    let from = tail.ceil_char_boundary(tail.len() - TAIL);
                    tail.drain(..from);
                }
            }
            out.intent(Intent::FinalText(text));
        }
        // It was reported already that this is text; its tags are not faults of the content.
        Piece::Found(report) if told => {
            out.report(Report { rule: rules::RAW_TEXT, row: "F-210", ..report });
        }
        Piece::Found(report) => out.report(report),
    }
}
