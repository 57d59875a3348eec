//! Writer of the content, the text that users see. Only the allowed inline HTML stays markup (F-104).

use super::options::FilamentOptions;
use super::rules;
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::html::{HtmlSanitizer, SanitizedPiece};
use crate::lex::space::is_space;
use crate::limits::Limits;
use crate::span::{LazyPlace, Place};

/// Writer of the content of a reply.
pub(super) struct ContentWriter {
    sanitizer: HtmlSanitizer,
    /// Set if the next text does not directly follow the last one in the reply, so that its place is needed.
    has_gap: bool,
    /// Set once there was non-blank text.
    has_text: bool,
    /// Set if the next text begins a new paragraph.
    is_paragraph_due: bool,
    /// Set if a line break is due before the next text, unless it has one.
    is_line_break_due: bool,
    /// Set at the beginning of an element, where a byte order mark does not count as text.
    is_element_start: bool,
    /// Line breaks at the end of the text so far, at most two; two at the start, where none are needed.
    trailing_breaks: usize,
    /// End of the text, if it is to be searched for choices (F-142).
    tail: Option<String>,
    /// Set while the text of an unreadable block is emitted: the block was reported as a whole.
    is_reported: bool,
}

/// Maximum length in bytes of the end of the text that is searched for choices.
const MAX_TAIL_BYTES: usize = 4 << 10;

impl ContentWriter {
    pub(super) fn new(options: &FilamentOptions, limits: &Limits) -> ContentWriter {
        ContentWriter {
            sanitizer: HtmlSanitizer::new(options.html_mode, limits),
            has_gap: true,
            has_text: false,
            is_paragraph_due: false,
            is_line_break_due: false,
            is_element_start: true,
            trailing_breaks: 2,
            tail: options.finds_choices_in_text.then(String::new),
            is_reported: false,
        }
    }

    /// Returns whether there was non-blank text.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.sanitizer.held_bytes()
    }

    /// Records that the next text does not directly follow the last one.
    pub(super) fn mark_gap(&mut self) {
        self.has_gap = true;
    }

    /// Makes the next text begin a new paragraph.
    pub(super) fn begin_paragraph(&mut self) {
        (self.has_gap, self.is_element_start) = (true, true);
        self.is_paragraph_due = self.has_text;
        self.is_line_break_due = false;
    }

    /// Makes the next text continue the last one; with `keeps_line_break`, the line break between them is
    /// kept.
    pub(super) fn continue_text(&mut self, keeps_line_break: bool) {
        (self.has_gap, self.is_element_start) = (true, true);
        self.is_paragraph_due = false;
        self.is_line_break_due = keeps_line_break && self.has_text;
    }

    /// Emits text if it directly follows the last text; returns whether it was emitted.
    #[inline]
    pub(super) fn try_pass(&mut self, text: &str, out: &mut dyn IntentSink) -> bool {
        if self.has_gap || self.is_paragraph_due || self.is_line_break_due {
            return false;
        }
        self.push(text, None, out);
        true
    }

    /// Emits text at `at`, with the white space that is due before it.
    pub(super) fn push_text(&mut self, text: &str, at: LazyPlace<'_>, out: &mut dyn IntentSink) {
        if !text.is_empty()
            && std::mem::take(&mut self.is_element_start)
            && let Some(rest) = text.strip_prefix('\u{FEFF}')
        {
            // A byte order mark does not count as text.
            let at = at.resolve().end_of("\u{FEFF}");
            if !rest.is_empty() {
                self.push_text(rest, LazyPlace::from(at), out);
            }
            return;
        }
        if self.is_paragraph_due {
            // White space at the border of a section is dropped.
            let blank_len = text.len() - text.trim_start_matches(is_space).len();
            if blank_len == text.len() {
                return;
            }
            self.is_paragraph_due = false;
            let at = at.resolve().end_of(&text[..blank_len]);
            let line_breaks = &"\n\n"[..2 - self.trailing_breaks];
            self.push(line_breaks, Some(at), out);
            return self.push(&text[blank_len..], Some(at), out);
        }
        if self.is_line_break_due && !text.is_empty() {
            self.is_line_break_due = false;
            if self.trailing_breaks == 0 && !text.starts_with('\n') {
                let at = at.resolve();
                self.push("\n", Some(at), out);
                return self.push(text, Some(at), out);
            }
        }
        let place = std::mem::take(&mut self.has_gap).then(|| at.resolve());
        self.push(text, place, out);
    }

    /// Emits text through the sanitizer, without adding white space; `place` is `None` if the text directly
    /// follows the last one.
    #[inline]
    fn push(&mut self, text: &str, place: Option<Place>, out: &mut dyn IntentSink) {
        self.has_gap = false;
        if !self.has_text {
            self.has_text = !text.trim().is_empty();
        }
        if text.as_bytes().last() == Some(&b'\n') {
            self.trailing_breaks = if text.ends_with("\n\n") {
                2
            } else if text == "\n" {
                (self.trailing_breaks + 1).min(2)
            } else {
                1
            };
        } else if !text.is_empty() {
            self.trailing_breaks = 0;
        }
        let ContentWriter { sanitizer, tail, is_reported, .. } = self;
        let mut emit = |piece: SanitizedPiece<'_>| emit_piece(piece, tail, *is_reported, out);
        match place {
            Some(place) => sanitizer.push_at(text, place, &mut emit),
            None => sanitizer.push(text, &mut emit),
        }
    }

    /// Emits the text of an unreadable block, in pieces with their places, as a paragraph. The block was
    /// reported as a whole, so its tags are not faults of the content.
    pub(super) fn push_paragraph(
        &mut self,
        pieces: &mut dyn Iterator<Item = (Place, &str)>,
        out: &mut dyn IntentSink,
    ) {
        self.begin_paragraph();
        self.is_reported = true;
        for (place, text) in pieces {
            self.mark_gap();
            self.push_text(text, LazyPlace::from(place), out);
        }
        self.is_reported = false;
        self.begin_paragraph();
    }

    /// Ends the content.
    pub(super) fn finish(&mut self, out: &mut dyn IntentSink) {
        let ContentWriter { sanitizer, tail, is_reported, .. } = self;
        sanitizer.finish(&mut |piece| emit_piece(piece, tail, *is_reported, out));
    }

    /// Returns the end of the text, if it is kept.
    pub(super) fn tail(&self) -> Option<&str> {
        let tail = self.tail.as_deref()?;
        let start = tail.ceil_char_boundary(tail.len().saturating_sub(MAX_TAIL_BYTES));
        Some(&tail[start..])
    }
}

/// Emits a sanitized piece, and appends its text to `tail` if there is one.
#[inline]
fn emit_piece(
    piece: SanitizedPiece<'_>,
    tail: &mut Option<String>,
    is_reported: bool,
    out: &mut dyn IntentSink,
) {
    match piece {
        SanitizedPiece::Text(text) => {
            if let Some(tail) = tail {
                tail.push_str(text);
                // Shortened rarely, so that the cost stays linear.
                if tail.len() > 4 * MAX_TAIL_BYTES {
                    let start = tail.ceil_char_boundary(tail.len() - MAX_TAIL_BYTES);
                    tail.drain(..start);
                }
            }
            out.emit_intent(Intent::FinalText(text));
        }
        // Tags of an unreadable block are reported as part of it, not as faults of the content.
        SanitizedPiece::Report(report) if is_reported => {
            out.report(FindingReport { rule: rules::RAW_TEXT, row: "F-210", ..report });
        }
        SanitizedPiece::Report(report) => out.report(report),
    }
}
