//! Reading side of the sanitizer: text, possible tags, removed content, and possible code.

use super::code_trust::CodeTrust;
use super::rules::HTML_ESCAPED;
use super::tag::{HtmlTagState, HtmlTagStep};
use super::{BacktickState, HtmlSanitizer, PossibleCode, SanitizedPiece, SanitizerState};
use crate::finding::FindingReport;
use crate::lex::code::{CodeContext, CodeStop, CodeTracker};
use crate::lex::scan;

/// Feeds emitted text to both trackers of code; returns whether a line ended.
pub(super) fn feed_trackers(code: &mut CodeTracker, trust: &mut CodeTrust, text: &str) -> bool {
    let (mut rest, mut has_line_end) = (text, false);
    while !rest.is_empty() {
        let (len, stop) = code.read_to_stop(rest, false);
        trust.observe_text(&rest[..len]);
        apply_stop(code, trust, stop);
        has_line_end |= stop == Some(CodeStop::LineEnd);
        rest = &rest[len..];
    }
    has_line_end
}

fn apply_stop(code: &CodeTracker, trust: &mut CodeTrust, stop: Option<CodeStop>) {
    match (stop, code.context()) {
        (Some(CodeStop::Closed(_)), CodeContext::Text) => trust.close_ticks(),
        (Some(CodeStop::LineEnd), context) => trust.observe_line_end(context == CodeContext::Fence),
        _ => {}
    }
}

impl HtmlSanitizer {
    pub(super) fn read_text_chunk(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let len = match self.state {
                SanitizerState::Text => self.read_text(rest, out),
                SanitizerState::Tag { .. } => self.read_tag(rest, out),
                SanitizerState::Comment { .. } => self.read_comment(rest, out),
                SanitizerState::RawText { .. } => self.read_raw_text(rest, out),
                SanitizerState::PossibleCode(_) => self.read_possible_code(rest, out),
            };
            rest = &rest[len..];
        }
    }

    pub(super) fn end_text(&mut self, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        loop {
            match std::mem::replace(&mut self.state, SanitizerState::Text) {
                SanitizerState::Text => break,
                // Plain text only if no end tags of open elements follow it.
                SanitizerState::Tag { state: HtmlTagState::AddressStart(_), raw, .. }
                    if self.open_elements.is_empty() =>
                {
                    self.write_text(&raw, out)
                }
                SanitizerState::Tag { raw, at, .. } => self.escape_non_tag(&raw, at, out),
                SanitizerState::Comment { at, .. } => self.remove_comment(at, false, out),
                SanitizerState::RawText { name, at, .. } => self.remove_raw_text(name, at, false, out),
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

    /// Reads text up to the next `<` that matters.
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
            _ => self.state = SanitizerState::Tag { state: HtmlTagState::Lt, raw: "<".to_owned(), at: start },
        }
        at + 1
    }

    /// Reads a tag as far as it has arrived.
    fn read_tag(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let limit = self.limits.0;
        let SanitizerState::Tag { state, raw, at } = &mut self.state else { return 0 };
        let at = *at;
        let mut found = None;
        for (len, byte) in text.bytes().enumerate() {
            if raw.len() + len >= limit && text.is_char_boundary(len) {
                found = Some((len, HtmlTagStep::Escape));
                break;
            }
            match state.step(byte) {
                HtmlTagStep::Continue(next) => *state = next,
                step => {
                    found = Some((len, step));
                    break;
                }
            }
        }
        let Some((len, step)) = found else {
            raw.push_str(text);
            self.place.advance(text);
            return text.len();
        };
        let len = len + usize::from(matches!(step, HtmlTagStep::Tag | HtmlTagStep::Comment));
        raw.push_str(&text[..len]);
        self.place.advance(&text[..len]);
        let raw = std::mem::take(raw);
        self.state = SanitizerState::Text;
        match step {
            HtmlTagStep::Tag => self.handle_tag(&raw, at, out),
            // A `>` directly behind it ends it.
            HtmlTagStep::Comment => {
                self.state = SanitizerState::Comment { at, dashes: 2, bang: false, has_line_break: false }
            }
            HtmlTagStep::Text => self.write_text(&raw, out),
            HtmlTagStep::Escape | HtmlTagStep::Continue(_) => self.escape_non_tag(&raw, at, out),
        }
        len
    }

    fn read_comment(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let SanitizerState::Comment { at, dashes, bang, has_line_break } = &mut self.state else { return 0 };
        let (at, mut line_break, mut end) = (*at, false, None);
        for (len, byte) in text.bytes().enumerate() {
            line_break |= byte == b'\n';
            match byte {
                b'>' if *dashes == 2 => {
                    end = Some(len + 1);
                    break;
                }
                b'!' if *dashes == 2 && !*bang => *bang = true,
                b'-' => (*dashes, *bang) = (if *bang { 1 } else { (*dashes + 1).min(2) }, false),
                _ => (*dashes, *bang) = (0, false),
            }
        }
        let first = line_break && !std::mem::replace(has_line_break, *has_line_break || line_break);
        let len = end.unwrap_or(text.len());
        self.place.advance(&text[..len]);
        if first {
            self.write_text("\n", out);
        }
        if end.is_some() {
            self.state = SanitizerState::Text;
            self.remove_comment(at, true, out);
        }
        len
    }

    fn read_raw_text(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let SanitizerState::RawText { name, at, matched_len, has_line_break } = &mut self.state else {
            return 0;
        };
        let (name, at, mut line_break, mut end) = (*name, *at, false, None);
        // `</` and the name, then a byte that ends the name, then everything up to `>`.
        let name_end = name.len() + 2;
        for (len, byte) in text.bytes().enumerate() {
            line_break |= byte == b'\n';
            *matched_len = match *matched_len {
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
        let first = line_break && !std::mem::replace(has_line_break, *has_line_break || line_break);
        let len = end.unwrap_or(text.len());
        self.place.advance(&text[..len]);
        if first {
            self.write_text("\n", out);
        }
        if end.is_some() {
            self.state = SanitizerState::Text;
            self.remove_raw_text(name, at, true, out);
        }
        len
    }

    fn read_possible_code(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let limit = self.limits.1;
        let SanitizerState::PossibleCode(possible_code) = &mut self.state else { return 0 };
        let room = text.floor_char_boundary(limit.saturating_sub(possible_code.text.len()));
        let (mut len, mut stop) = (0, None);
        while len < room {
            let (piece_len, found) = possible_code.code.read_to_stop(&text[len..room], false);
            let piece = &text[len..len + piece_len];
            possible_code.trust.observe_text(piece);
            possible_code.text.push_str(piece);
            self.place.advance(piece);
            len += piece_len;
            if matches!(found, Some(CodeStop::LineEnd))
                || matches!(found, Some(CodeStop::Closed(run)) if run < possible_code.open_runs)
            {
                stop = found;
                break;
            }
        }
        if stop.is_none() && room > 0 {
            return len;
        }
        let state = std::mem::replace(&mut self.state, SanitizerState::Text);
        let SanitizerState::PossibleCode(possible_code) = state else { return len };
        match stop {
            Some(CodeStop::Closed(_)) if possible_code.trust.trusts_closed_span() => {
                self.accept_code(*possible_code, stop, out)
            }
            Some(CodeStop::LineEnd) => self.reject_code(*possible_code, false, out),
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

    /// Reads held text again as text, because it is not certainly code.
    fn reject_code(
        &mut self,
        possible_code: PossibleCode,
        is_uncertain: bool,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let PossibleCode { text, place, open_runs, .. } = possible_code;
        let BacktickState { unclosable_runs, escapes_backticks } = &mut self.backticks;
        (*unclosable_runs, *escapes_backticks) =
            ((*unclosable_runs).max(open_runs), *escapes_backticks || is_uncertain);
        if is_uncertain {
            let found = FindingReport::new(
                HTML_ESCAPED,
                place,
                place.offset + 1,
                "it is not certain which part of this line is code",
            );
            out(SanitizedPiece::Report(found.with_repair("the backticks after it are escaped")));
        }
        self.place = place;
        self.state = SanitizerState::Text;
        self.read_text_chunk(&text, out);
    }
}
