//! Reading side of the sanitizer: text, possible tags, removed content, and possible code.

use super::code_trust::CodeTrust;
use super::rules::HTML_ESCAPED;
use super::tag::{HtmlTagState, HtmlTagStep};
use super::{BacktickState, HtmlSanitizer, PossibleCode, STOPS_AT_AMPERSAND, SanitizedPiece, SanitizerState};
use crate::finding::FindingReport;
use crate::lex::code::{CodeContext, CodeStop, CodeTracker};
use crate::lex::scan;

/// Feeds emitted text to both trackers of code; returns whether a line ended.
pub(super) fn feed_trackers(code: &mut CodeTracker, trust: &mut CodeTrust, text: &str) -> bool {
    let (mut unread, mut has_line_end) = (text, false);
    while !unread.is_empty() {
        let (len, stop) = code.read_to_stop(unread, STOPS_AT_AMPERSAND);
        trust.observe_text(&unread[..len]);
        apply_stop(code, trust, stop);
        has_line_end |= stop == Some(CodeStop::LineEnd);
        unread = &unread[len..];
    }
    has_line_end
}

/// Updates `trust` for the reason why `code` stopped.
fn apply_stop(code: &CodeTracker, trust: &mut CodeTrust, stop: Option<CodeStop>) {
    match (stop, code.context()) {
        (Some(CodeStop::Closed(_)), CodeContext::Text) => trust.close_ticks(),
        (Some(CodeStop::LineEnd), context) => trust.observe_line_end(context == CodeContext::Fence),
        _ => {}
    }
}

impl HtmlSanitizer {
    /// Reads a chunk, each part in the state that the part before it left.
    pub(super) fn read_text_chunk(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        let mut unread = text;
        while !unread.is_empty() {
            let len = match self.state {
                SanitizerState::Text => self.read_text(unread, out),
                SanitizerState::Tag { .. } => self.read_tag(unread, out),
                SanitizerState::Comment { .. } => self.read_comment(unread, out),
                SanitizerState::RawText { .. } => self.read_raw_text(unread, out),
                SanitizerState::PossibleCode(_) => self.read_possible_code(unread, out),
            };
            unread = &unread[len..];
        }
    }

    /// Ends the text: decides about everything held back, and closes open elements.
    pub(super) fn end_text(&mut self, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        // Rejected code is read again, which may leave another state behind.
        loop {
            match std::mem::replace(&mut self.state, SanitizerState::Text) {
                SanitizerState::Text => break,
                // The start of an address stays as it is, unless end tags of open elements follow it.
                SanitizerState::Tag { state: HtmlTagState::AddressStart(_), raw, .. }
                    if self.open_elements.is_empty() =>
                {
                    self.write_text(&raw, out)
                }
                SanitizerState::Tag { raw, place, .. } => self.escape_non_tag(&raw, place, out),
                // A comment, script or style is not closed: the text ends first.
                SanitizerState::Comment { place, .. } => self.remove_comment(place, false, out),
                SanitizerState::RawText { name, place, .. } => self.remove_raw_text(name, place, false, out),
                SanitizerState::PossibleCode(mut possible_code) => {
                    let stop = possible_code.code.end_line_start();
                    let is_closed =
                        matches!(stop, Some(CodeStop::Closed(run)) if run < possible_code.open_runs);
                    if is_closed && possible_code.trust.trusts_closed_span() {
                        self.accept_code(*possible_code, stop, out);
                    } else {
                        self.reject_code(*possible_code, is_closed, out);
                    }
                }
            }
        }
        self.close_all(out);
    }

    /// Reads text up to and including the next `<`; returns the number of bytes read.
    fn read_text(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let Some(at) = scan::find(b'<', text.as_bytes()) else {
            self.place.advance(text);
            self.write_text(text, out);
            return text.len();
        };
        if at > 0 {
            self.place.advance(&text[..at]);
            self.write_text(&text[..at], out);
        }
        let start = self.place;
        self.place.advance("<");
        // Context of the `<`, decided on a copy, since the `<` may not be emitted.
        let mut code = self.code.clone();
        code.end_line_start();
        match code.context() {
            CodeContext::Fence if self.trust.trusts_fences() => self.write_text("<", out),
            CodeContext::Undecided(open_runs)
                if open_runs > self.backticks.unclosable_runs && self.trust.trusts_spans() =>
            {
                let mut trust = self.trust.clone();
                feed_trackers(&mut code, &mut trust, "<");
                let possible_code =
                    PossibleCode { text: "<".to_owned(), place: start, code, trust, open_runs };
                self.state = SanitizerState::PossibleCode(Box::new(possible_code));
            }
            _ => {
                self.state =
                    SanitizerState::Tag { state: HtmlTagState::Lt, raw: "<".to_owned(), place: start }
            }
        }
        at + 1
    }

    /// Reads a possible tag as far as it has arrived.
    fn read_tag(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let limit = self.max_tag_bytes;
        let SanitizerState::Tag { state, raw, place } = &mut self.state else { return 0 };
        let place = *place;
        let mut end = None;
        for (len, byte) in text.bytes().enumerate() {
            if raw.len() + len >= limit && text.is_char_boundary(len) {
                end = Some((len, HtmlTagStep::Escape));
                break;
            }
            match state.step(byte) {
                HtmlTagStep::Continue(next_state) => *state = next_state,
                step => {
                    end = Some((len, step));
                    break;
                }
            }
        }
        let Some((len, step)) = end else {
            raw.push_str(text);
            self.place.advance(text);
            return text.len();
        };
        // The byte that completes a tag or `<!--` belongs to it; any other is read again as text.
        let len = len + usize::from(matches!(step, HtmlTagStep::Tag | HtmlTagStep::Comment));
        raw.push_str(&text[..len]);
        self.place.advance(&text[..len]);
        let raw = std::mem::take(raw);
        self.state = SanitizerState::Text;
        match step {
            HtmlTagStep::Tag => self.handle_tag(&raw, place, out),
            // The dashes of `<!--` count, so that a `>` directly after them ends the comment.
            HtmlTagStep::Comment => {
                self.state =
                    SanitizerState::Comment { place, dashes: 2, has_bang: false, has_line_break: false }
            }
            HtmlTagStep::Text => self.write_text(&raw, out),
            HtmlTagStep::Escape | HtmlTagStep::Continue(_) => self.escape_non_tag(&raw, place, out),
        }
        len
    }

    /// Reads a comment up to `-->` or `--!>`; emits the first line break in it.
    fn read_comment(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let SanitizerState::Comment { place, dashes, has_bang, has_line_break } = &mut self.state else {
            return 0;
        };
        let (place, mut chunk_has_line_break, mut end) = (*place, false, None);
        for (len, byte) in text.bytes().enumerate() {
            chunk_has_line_break |= byte == b'\n';
            match byte {
                b'>' if *dashes == 2 => {
                    end = Some(len + 1);
                    break;
                }
                b'!' if *dashes == 2 && !*has_bang => *has_bang = true,
                b'-' => {
                    // After `--!` a dash begins another end mark.
                    *dashes = if *has_bang { 1 } else { (*dashes + 1).min(2) };
                    *has_bang = false;
                }
                _ => (*dashes, *has_bang) = (0, false),
            }
        }
        let is_first_line_break = chunk_has_line_break && !*has_line_break;
        *has_line_break |= chunk_has_line_break;
        let len = end.unwrap_or(text.len());
        self.place.advance(&text[..len]);
        if is_first_line_break {
            self.write_text("\n", out);
        }
        let is_closed = end.is_some();
        if is_closed {
            self.state = SanitizerState::Text;
            self.remove_comment(place, is_closed, out);
        }
        len
    }

    /// Reads a script or style up to its end tag; emits the first line break in it.
    fn read_raw_text(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let SanitizerState::RawText { name, place, matched_len, has_line_break } = &mut self.state else {
            return 0;
        };
        let (name, place, mut chunk_has_line_break, mut end) = (*name, *place, false, None);
        // The end tag is `</` and the name, a byte that ends the name, then everything up to `>`.
        let name_end = "</".len() + name.len();
        for (len, byte) in text.bytes().enumerate() {
            chunk_has_line_break |= byte == b'\n';
            *matched_len = match *matched_len {
                // Read up to the byte after the name; only `>` is awaited.
                count if count > name_end => count,
                count if count == name_end => match byte {
                    b' ' | b'\t' | b'\n' | b'\r' | b'\x0C' | b'/' | b'>' => count + 1,
                    byte => usize::from(byte == b'<'),
                },
                0 => usize::from(byte == b'<'),
                1 if byte == b'/' => 2,
                count if count > 1 && byte.to_ascii_lowercase() == name.as_bytes()[count - 2] => count + 1,
                _ => usize::from(byte == b'<'),
            };
            if *matched_len > name_end && byte == b'>' {
                end = Some(len + 1);
                break;
            }
        }
        let is_first_line_break = chunk_has_line_break && !*has_line_break;
        *has_line_break |= chunk_has_line_break;
        let len = end.unwrap_or(text.len());
        self.place.advance(&text[..len]);
        if is_first_line_break {
            self.write_text("\n", out);
        }
        let is_closed = end.is_some();
        if is_closed {
            self.state = SanitizerState::Text;
            self.remove_raw_text(name, place, is_closed, out);
        }
        len
    }

    /// Reads possible code until backticks opened before it close, the line ends, or the limit is reached.
    fn read_possible_code(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let limit = self.max_line_bytes;
        let SanitizerState::PossibleCode(possible_code) = &mut self.state else { return 0 };
        let room = text.floor_char_boundary(limit.saturating_sub(possible_code.text.len()));
        let (mut len, mut stop) = (0, None);
        while len < room {
            let (piece_len, piece_stop) =
                possible_code.code.read_to_stop(&text[len..room], STOPS_AT_AMPERSAND);
            let piece = &text[len..len + piece_len];
            possible_code.trust.observe_text(piece);
            possible_code.text.push_str(piece);
            self.place.advance(piece);
            len += piece_len;
            // Runs opened within the possible code do not count.
            if matches!(piece_stop, Some(CodeStop::LineEnd))
                || matches!(piece_stop, Some(CodeStop::Closed(run)) if run < possible_code.open_runs)
            {
                stop = piece_stop;
                break;
            }
        }
        // Without room the limit is reached, and the text counts as uncertain.
        if stop.is_none() && room > 0 {
            return len;
        }
        let state = std::mem::replace(&mut self.state, SanitizerState::Text);
        let SanitizerState::PossibleCode(possible_code) = state else { return len };
        match stop {
            Some(CodeStop::Closed(_)) if possible_code.trust.trusts_closed_span() => {
                self.accept_code(*possible_code, stop, out)
            }
            // The backticks did not close on their line, so the text is certainly not code.
            Some(CodeStop::LineEnd) => self.reject_code(*possible_code, false, out),
            // The backticks closed, but not for every reader; or the limit was reached first.
            _ => self.reject_code(*possible_code, true, out),
        }
        len
    }

    /// Emits held text as code, unchanged.
    fn accept_code(
        &mut self,
        possible_code: PossibleCode,
        stop: Option<CodeStop>,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let PossibleCode { text, code, trust, .. } = possible_code;
        (self.code, self.trust) = (code, trust);
        apply_stop(&self.code, &mut self.trust, stop);
        self.last_byte = text.bytes().next_back().unwrap_or(self.last_byte);
        out(SanitizedPiece::Text(&text));
    }

    /// Reads held text again as text. `is_uncertain` is true if some readers may take it for code: backticks
    /// in the rest of the line are then escaped.
    fn reject_code(
        &mut self,
        possible_code: PossibleCode,
        is_uncertain: bool,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let PossibleCode { text, place, open_runs, .. } = possible_code;
        let BacktickState { unclosable_runs, escapes_backticks } = &mut self.backticks;
        *unclosable_runs = (*unclosable_runs).max(open_runs);
        *escapes_backticks |= is_uncertain;
        if is_uncertain {
            let report = FindingReport::new(
                HTML_ESCAPED,
                place,
                place.offset + 1,
                "it is not certain which part of this line is code",
            );
            out(SanitizedPiece::Report(report.with_repair("the backticks after it are escaped")));
        }
        self.place = place;
        self.state = SanitizerState::Text;
        self.read_text_chunk(&text, out);
    }
}
