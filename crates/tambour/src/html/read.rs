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
    let (mut rest, mut ended) = (text, false);
    while !rest.is_empty() {
        let (read, stop) = code.read_to_stop(rest, false);
        trust.observe_text(&rest[..read]);
        apply_stop(code, trust, stop);
        ended |= stop == Some(CodeStop::LineEnd);
        rest = &rest[read..];
    }
    ended
}

fn apply_stop(code: &CodeTracker, trust: &mut CodeTrust, stop: Option<CodeStop>) {
    match (stop, code.context()) {
        (Some(CodeStop::Closed(_)), CodeContext::Text) => trust.close_ticks(),
        (Some(CodeStop::LineEnd), inside) => trust.observe_line_end(inside == CodeContext::Fence),
        _ => {}
    }
}

impl HtmlSanitizer {
    pub(super) fn read_text_chunk(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let read = match self.state {
                SanitizerState::Text => self.read_text(rest, out),
                SanitizerState::Tag { .. } => self.read_tag(rest, out),
                SanitizerState::Comment { .. } => self.read_comment(rest, out),
                SanitizerState::RawText { .. } => self.read_raw_text(rest, out),
                SanitizerState::PossibleCode(_) => self.read_possible_code(rest, out),
            };
            rest = &rest[read..];
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
                SanitizerState::PossibleCode(mut held) => {
                    let stop = held.code.end_line_start();
                    let closed = matches!(stop, Some(CodeStop::Closed(run)) if run < held.open_runs);
                    if closed && held.trust.trusts_closed_span() {
                        self.accept_code(*held, stop, out);
                    } else {
                        self.reject_code(*held, closed, out);
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
                let held = PossibleCode { text: "<".to_owned(), place: start, code, trust, open_runs };
                self.state = SanitizerState::PossibleCode(Box::new(held));
            }
            _ => self.state = SanitizerState::Tag { state: HtmlTagState::Lt, raw: "<".to_owned(), at: start },
        }
        at + 1
    }

    /// Reads a tag as far as it has arrived.
    fn read_tag(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let most = self.limits.0;
        let SanitizerState::Tag { state, raw, at } = &mut self.state else { return 0 };
        let at = *at;
        let mut found = None;
        for (read, byte) in text.bytes().enumerate() {
            if raw.len() + read >= most && text.is_char_boundary(read) {
                found = Some((read, HtmlTagStep::Escape));
                break;
            }
            match state.step(byte) {
                HtmlTagStep::Continue(next) => *state = next,
                step => {
                    found = Some((read, step));
                    break;
                }
            }
        }
        let Some((read, step)) = found else {
            raw.push_str(text);
            self.place.advance(text);
            return text.len();
        };
        let read = read + usize::from(matches!(step, HtmlTagStep::Tag | HtmlTagStep::Comment));
        raw.push_str(&text[..read]);
        self.place.advance(&text[..read]);
        let raw = std::mem::take(raw);
        self.state = SanitizerState::Text;
        match step {
            HtmlTagStep::Tag => self.handle_tag(&raw, at, out),
            // A `>` directly behind it ends it.
            HtmlTagStep::Comment => {
                self.state = SanitizerState::Comment { at, dashes: 2, bang: false, broken: false }
            }
            HtmlTagStep::Text => self.write_text(&raw, out),
            HtmlTagStep::Escape | HtmlTagStep::Continue(_) => self.escape_non_tag(&raw, at, out),
        }
        read
    }

    fn read_comment(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let SanitizerState::Comment { at, dashes, bang, broken } = &mut self.state else { return 0 };
        let (at, mut line_break, mut end) = (*at, false, None);
        for (read, byte) in text.bytes().enumerate() {
            line_break |= byte == b'\n';
            match byte {
                b'>' if *dashes == 2 => {
                    end = Some(read + 1);
                    break;
                }
                b'!' if *dashes == 2 && !*bang => *bang = true,
                b'-' => (*dashes, *bang) = (if *bang { 1 } else { (*dashes + 1).min(2) }, false),
                _ => (*dashes, *bang) = (0, false),
            }
        }
        let first = line_break && !std::mem::replace(broken, *broken || line_break);
        let read = end.unwrap_or(text.len());
        self.place.advance(&text[..read]);
        if first {
            self.write_text("\n", out);
        }
        if end.is_some() {
            self.state = SanitizerState::Text;
            self.remove_comment(at, true, out);
        }
        read
    }

    fn read_raw_text(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let SanitizerState::RawText { name, at, matched, broken } = &mut self.state else { return 0 };
        let (name, at, mut line_break, mut end) = (*name, *at, false, None);
        // `</` and the name, then a byte that ends the name, then everything up to `>`.
        let full = name.len() + 2;
        for (read, byte) in text.bytes().enumerate() {
            line_break |= byte == b'\n';
            *matched = match *matched {
                count if count > full => count,
                count if count == full => match byte {
                    b' ' | b'\t' | b'\n' | b'\r' | b'\x0C' | b'/' | b'>' => count + 1,
                    byte => usize::from(byte == b'<'),
                },
                0 => usize::from(byte == b'<'),
                1 if byte == b'/' => 2,
                count if count > 1 && byte.to_ascii_lowercase() == name.as_bytes()[count - 2] => count + 1,
                _ => usize::from(byte == b'<'),
            };
            if *matched > full && byte == b'>' {
                end = Some(read + 1);
                break;
            }
        }
        let first = line_break && !std::mem::replace(broken, *broken || line_break);
        let read = end.unwrap_or(text.len());
        self.place.advance(&text[..read]);
        if first {
            self.write_text("\n", out);
        }
        if end.is_some() {
            self.state = SanitizerState::Text;
            self.remove_raw_text(name, at, true, out);
        }
        read
    }

    fn read_possible_code(&mut self, text: &str, out: &mut impl FnMut(SanitizedPiece<'_>)) -> usize {
        let most = self.limits.1;
        let SanitizerState::PossibleCode(held) = &mut self.state else { return 0 };
        let room = text.floor_char_boundary(most.saturating_sub(held.text.len()));
        let (mut read, mut stop) = (0, None);
        while read < room {
            let (more, found) = held.code.read_to_stop(&text[read..room], false);
            let piece = &text[read..read + more];
            held.trust.observe_text(piece);
            held.text.push_str(piece);
            self.place.advance(piece);
            read += more;
            if matches!(found, Some(CodeStop::LineEnd))
                || matches!(found, Some(CodeStop::Closed(run)) if run < held.open_runs)
            {
                stop = found;
                break;
            }
        }
        if stop.is_none() && room > 0 {
            return read;
        }
        let reading = std::mem::replace(&mut self.state, SanitizerState::Text);
        let SanitizerState::PossibleCode(held) = reading else { return read };
        match stop {
            Some(CodeStop::Closed(_)) if held.trust.trusts_closed_span() => {
                self.accept_code(*held, stop, out)
            }
            Some(CodeStop::LineEnd) => self.reject_code(*held, false, out),
            _ => self.reject_code(*held, true, out),
        }
        read
    }

    /// Emits held text as code, unchanged.
    fn accept_code(
        &mut self,
        held: PossibleCode,
        stop: Option<CodeStop>,
        out: &mut impl FnMut(SanitizedPiece<'_>),
    ) {
        let PossibleCode { text, code, trust, .. } = held;
        (self.code, self.trust) = (code, trust);
        apply_stop(&self.code, &mut self.trust, stop);
        self.last_byte = text.bytes().next_back().unwrap_or(self.last_byte);
        out(SanitizedPiece::Text(&text));
    }

    /// Reads held text again as text, because it is not certainly code.
    fn reject_code(&mut self, held: PossibleCode, uncertain: bool, out: &mut impl FnMut(SanitizedPiece<'_>)) {
        let PossibleCode { text, place, open_runs, .. } = held;
        let BacktickState { unclosable_runs, escapes_backticks } = &mut self.backticks;
        (*unclosable_runs, *escapes_backticks) =
            ((*unclosable_runs).max(open_runs), *escapes_backticks || uncertain);
        if uncertain {
            let found = FindingReport::new(
                HTML_ESCAPED,
                place,
                place.offset + 1,
                "it is not certain what is code on this line",
            );
            out(SanitizedPiece::Report(found.with_repair("the backticks behind it are escaped")));
        }
        self.place = place;
        self.state = SanitizerState::Text;
        self.read_text_chunk(&text, out);
    }
}
