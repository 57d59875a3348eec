//! Reading side of the sanitizer: text, possible tags, removed content, and possible code.

use super::rules::HTML_ESCAPED;
use super::tag::{State, Step};
use super::trust::Trust;
use super::{Held, Line, Piece, Reading, Sanitizer};
use crate::finding::Report;
use crate::lex::code::{Code, Inside, Stop};
use crate::lex::scan;

/// Feeds emitted text to both trackers of code; returns whether a line ended.
pub(super) fn feed(code: &mut Code, trust: &mut Trust, text: &str) -> bool {
    let (mut rest, mut ended) = (text, false);
    while !rest.is_empty() {
        let (read, stop) = code.text(rest, false);
        trust.text(&rest[..read]);
        follow(code, trust, stop);
        ended |= stop == Some(Stop::LineEnd);
        rest = &rest[read..];
    }
    ended
}

fn follow(code: &Code, trust: &mut Trust, stop: Option<Stop>) {
    match (stop, code.inside()) {
        (Some(Stop::Closed(_)), Inside::Text) => trust.settle(),
        (Some(Stop::LineEnd), inside) => trust.line(inside == Inside::Fence),
        _ => {}
    }
}

impl Sanitizer {
    pub(super) fn read(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let read = match self.reading {
                Reading::Text => self.read_text(rest, out),
                Reading::Tag { .. } => self.read_tag(rest, out),
                Reading::Comment { .. } => self.read_comment(rest, out),
                Reading::Body { .. } => self.read_body(rest, out),
                Reading::Held(_) => self.read_held(rest, out),
            };
            rest = &rest[read..];
        }
    }

    pub(super) fn end(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        loop {
            match std::mem::replace(&mut self.reading, Reading::Text) {
                Reading::Text => break,
                // Plain text only if no end tags of open elements follow it.
                Reading::Tag { state: State::Sign(_), raw, .. } if self.open.is_empty() => {
                    self.text(&raw, out)
                }
                Reading::Tag { raw, at, .. } => self.no_tag(&raw, at, out),
                Reading::Comment { at, .. } => self.comment(at, false, out),
                Reading::Body { name, at, .. } => self.body(name, at, false, out),
                Reading::Held(mut held) => {
                    let stop = held.code.boundary();
                    let closed = matches!(stop, Some(Stop::Closed(run)) if run < held.runs);
                    if closed && held.trust.closed() {
                        self.code_held(*held, stop, out);
                    } else {
                        self.no_code(*held, closed, out);
                    }
                }
            }
        }
        self.close_all(out);
    }

    /// Reads text up to the next `<` that matters.
    fn read_text(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) -> usize {
        let Some(at) = scan::find(b'<', text.as_bytes()) else {
            self.here.advance(text);
            self.text(text, out);
            return text.len();
        };
        if at > 0 {
            self.here.advance(&text[..at]);
            self.text(&text[..at], out);
        }
        let start = self.here;
        self.here.advance("<");
        let mut code = self.code.clone();
        code.boundary();
        match code.inside() {
            Inside::Fence if self.trust.fences() => self.text("<", out),
            Inside::Undecided(runs) if runs > self.line.dead && self.trust.spans() => {
                let mut trust = self.trust.clone();
                feed(&mut code, &mut trust, "<");
                let held = Held { raw: "<".to_owned(), at: start, code, trust, runs };
                self.reading = Reading::Held(Box::new(held));
            }
            _ => self.reading = Reading::Tag { state: State::Lt, raw: "<".to_owned(), at: start },
        }
        at + 1
    }

    /// Reads a tag as far as it has arrived.
    fn read_tag(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) -> usize {
        let most = self.most.0;
        let Reading::Tag { state, raw, at } = &mut self.reading else { return 0 };
        let at = *at;
        let mut found = None;
        for (read, byte) in text.bytes().enumerate() {
            if raw.len() + read >= most && text.is_char_boundary(read) {
                found = Some((read, Step::Escape));
                break;
            }
            match state.step(byte) {
                Step::Go(next) => *state = next,
                step => {
                    found = Some((read, step));
                    break;
                }
            }
        }
        let Some((read, step)) = found else {
            raw.push_str(text);
            self.here.advance(text);
            return text.len();
        };
        let read = read + usize::from(matches!(step, Step::Tag | Step::Comment));
        raw.push_str(&text[..read]);
        self.here.advance(&text[..read]);
        let raw = std::mem::take(raw);
        self.reading = Reading::Text;
        match step {
            Step::Tag => self.tag(&raw, at, out),
            // A `>` directly behind it ends it.
            Step::Comment => self.reading = Reading::Comment { at, dashes: 2, bang: false, broken: false },
            Step::Text => self.text(&raw, out),
            Step::Escape | Step::Go(_) => self.no_tag(&raw, at, out),
        }
        read
    }

    fn read_comment(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) -> usize {
        let Reading::Comment { at, dashes, bang, broken } = &mut self.reading else { return 0 };
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
        self.here.advance(&text[..read]);
        if first {
            self.text("\n", out);
        }
        if end.is_some() {
            self.reading = Reading::Text;
            self.comment(at, true, out);
        }
        read
    }

    fn read_body(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) -> usize {
        let Reading::Body { name, at, matched, broken } = &mut self.reading else { return 0 };
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
        self.here.advance(&text[..read]);
        if first {
            self.text("\n", out);
        }
        if end.is_some() {
            self.reading = Reading::Text;
            self.body(name, at, true, out);
        }
        read
    }

    fn read_held(&mut self, text: &str, out: &mut impl FnMut(Piece<'_>)) -> usize {
        let most = self.most.1;
        let Reading::Held(held) = &mut self.reading else { return 0 };
        let room = text.floor_char_boundary(most.saturating_sub(held.raw.len()));
        let (mut read, mut stop) = (0, None);
        while read < room {
            let (more, found) = held.code.text(&text[read..room], false);
            let piece = &text[read..read + more];
            held.trust.text(piece);
            held.raw.push_str(piece);
            self.here.advance(piece);
            read += more;
            if matches!(found, Some(Stop::LineEnd))
                || matches!(found, Some(Stop::Closed(run)) if run < held.runs)
            {
                stop = found;
                break;
            }
        }
        if stop.is_none() && room > 0 {
            return read;
        }
        let reading = std::mem::replace(&mut self.reading, Reading::Text);
        let Reading::Held(held) = reading else { return read };
        match stop {
            Some(Stop::Closed(_)) if held.trust.closed() => self.code_held(*held, stop, out),
            Some(Stop::LineEnd) => self.no_code(*held, false, out),
            _ => self.no_code(*held, true, out),
        }
        read
    }

    /// Emits held text as code, unchanged.
    fn code_held(&mut self, held: Held, stop: Option<Stop>, out: &mut impl FnMut(Piece<'_>)) {
        let Held { raw, code, trust, .. } = held;
        (self.code, self.trust) = (code, trust);
        follow(&self.code, &mut self.trust, stop);
        self.last = raw.bytes().next_back().unwrap_or(self.last);
        out(Piece::Text(&raw));
    }

    /// Reads held text again as text, because it is not certainly code.
    fn no_code(&mut self, held: Held, uncertain: bool, out: &mut impl FnMut(Piece<'_>)) {
        let Held { raw, at, runs, .. } = held;
        let Line { dead, shut } = &mut self.line;
        (*dead, *shut) = ((*dead).max(runs), *shut || uncertain);
        if uncertain {
            let found =
                Report::new(HTML_ESCAPED, at, at.offset + 1, "it is not certain what is code on this line");
            out(Piece::Found(found.repaired("the backticks behind it are escaped")));
        }
        self.here = at;
        self.reading = Reading::Text;
        self.read(&raw, out);
    }
}
