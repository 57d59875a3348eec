//! Finds the end of a call by following its arguments while they arrive; each byte is read once.
//!
//! A mark inside a string or a value does not end a call. If nothing else ends it, for example because a
//! quote is missing, the first such mark did; from then on marks inside strings end calls at once, so that
//! nothing is read more than twice.

use std::ops::Range;

use super::formats::{Body, Form};
use crate::lex::scan;
use crate::lex::space::is_space;

/// Most bytes of white space and superfluous brackets before the end mark of a call.
const BETWEEN: usize = 64;

/// Result of following a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// More text is needed.
    More,
    /// The call ends before this byte, in this way.
    End(usize, Ended),
}

/// Way in which a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Properly.
    Well,
    /// Without its end mark, with complete arguments.
    Unmarked,
    /// With incomplete arguments.
    Early,
}

/// Follows one call.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    form: &'static Form,
    /// Offset up to which the text has been read.
    at: usize,
    depth: usize,
    /// Quote character of the open string, and the number of them that ends it.
    quote: Option<(u8, usize)>,
    /// Set while a value between tags is open.
    value: bool,
    /// Number of functions that have begun in the open value.
    nested: usize,
    /// Start of the current value, and the complete values.
    from: usize,
    pub(super) values: Vec<Range<usize>>,
    /// Set once the arguments are complete and the end mark is next.
    behind: bool,
    /// Offset at which a mark inside a string would end the call, and the offset after the mark.
    early: Option<(usize, usize)>,
    /// Set if such a mark ends the call at once.
    pub(super) hasty: bool,
}

/// Meaning of a mark inside a value.
enum Within {
    No,
    /// More text is needed.
    More,
    /// This many bytes of the value.
    Pass(usize),
    /// The call ended here.
    End(usize),
}

/// Result of comparing a text with a word.
enum Sees {
    No,
    Half,
    /// A match of this many bytes.
    All(usize),
}

fn sees(text: &str, at: usize, word: &str) -> Sees {
    let rest = &text.as_bytes()[at..];
    if rest.starts_with(word.as_bytes()) {
        Sees::All(word.len())
    } else if word.as_bytes().starts_with(rest) {
        Sees::Half
    } else {
        Sees::No
    }
}

impl Scan {
    pub(super) fn new(form: &'static Form, body: usize, hasty: bool) -> Scan {
        Scan {
            form,
            at: body,
            depth: 0,
            quote: None,
            value: false,
            nested: 0,
            from: body,
            values: Vec::new(),
            behind: false,
            early: None,
            hasty,
        }
    }

    /// Continues in `raw`, to which more text has been added.
    #[inline]
    pub(super) fn go_on(&mut self, raw: &str) -> Found {
        loop {
            if self.behind {
                return self.behind(raw);
            }
            let found = match self.form.body {
                Body::Calls | Body::Args => self.json(raw),
                Body::Python => self.python(raw),
                Body::Parameters => self.values(raw, "<parameter=", "</parameter>"),
                Body::Pairs => self.values(raw, "<arg_value>", "</arg_value>"),
                Body::Elements(marks) => self.values(raw, marks.values.open, marks.values.close),
                Body::Nothing | Body::Reasoning => Some(Found::End(self.at, Ended::Well)),
            };
            match found {
                Some(found) => return found,
                None => self.behind = true,
            }
        }
    }

    /// Ends the reply and returns the end of the call, if it has one.
    pub(super) fn finish(&self, raw: &str) -> Option<(usize, Ended)> {
        if self.behind {
            let end = self.values.last().map_or(raw.len(), |value| value.end);
            return Some((end, if self.form.open_ended { Ended::Well } else { Ended::Unmarked }));
        }
        self.give_up()
    }

    /// Returns the end to assume if nothing else ends the call.
    pub(super) fn give_up(&self) -> Option<(usize, Ended)> {
        self.early.map(|(end, _)| (end, Ended::Early))
    }

    /// Returns the offset after the mark that ended the call early.
    pub(super) fn behind_mark(&self, end: usize) -> usize {
        self.early.filter(|(at, _)| *at == end).map_or(end, |(_, behind)| behind)
    }

    /// Handles a mark at `at`: it ends the call, is incomplete, or has no meaning. `inside` is set inside a
    /// string.
    fn mark(&mut self, raw: &str, at: usize, inside: bool) -> Option<Found> {
        let form = self.form;
        let close = form.close.last().copied().unwrap_or_default();
        for (word, begins) in [(close, false), (form.open, true)] {
            if word.is_empty() || raw.as_bytes()[at] != word.as_bytes()[0] {
                continue;
            }
            match sees(raw, at, word) {
                Sees::No => {}
                Sees::Half => {
                    self.at = at;
                    return Some(Found::More);
                }
                Sees::All(len) => {
                    // An opening mark belongs to the next call.
                    let behind = if begins { at } else { at + len };
                    let values = form.body.has_values();
                    if let Some((early, closed)) = self.early
                        && values
                        && begins
                        && closed > early
                    {
                        // The value was closed, and now the next call begins.
                        return Some(Found::End(early, Ended::Early));
                    }
                    if inside && !self.hasty {
                        self.early.get_or_insert((at, behind));
                        return None;
                    }
                    self.early = Some((at, behind));
                    return Some(Found::End(at, Ended::Early));
                }
            }
        }
        None
    }

    /// Follows JSON; `None` means that the arguments are complete.
    fn json(&mut self, raw: &str) -> Option<Found> {
        let bytes = raw.as_bytes();
        while self.at < bytes.len() {
            if self.quote.is_some() {
                let Some(next) = scan::find3(b'"', b'\\', b'<', &bytes[self.at..]) else {
                    self.at = bytes.len();
                    break;
                };
                self.at += next;
                match bytes[self.at] {
                    b'"' => self.quote = None,
                    b'\\' if self.at + 1 == bytes.len() => return Some(Found::More),
                    b'\\' => {
                        // The escaped character may be longer than a byte.
                        self.at = raw.ceil_char_boundary(self.at + 2);
                        continue;
                    }
                    _ => {
                        if let Some(found) = self.mark(raw, self.at, true) {
                            return Some(found);
                        }
                    }
                }
                self.at += 1;
                continue;
            }
            match bytes[self.at] {
                b'"' => self.quote = Some((b'"', 1)),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return self.complete(self.at + 1);
                    }
                }
                _ => {}
            }
            if matches!(bytes[self.at], b'<' | b'[')
                && let Some(found) = self.mark(raw, self.at, false)
            {
                // A partial mark is read again.
                self.depth -= usize::from(bytes[self.at] == b'[' && found == Found::More);
                return Some(found);
            }
            self.at += 1;
        }
        Some(Found::More)
    }

    /// Ends a value before `end`.
    fn complete(&mut self, end: usize) -> Option<Found> {
        self.values.push(self.from..end);
        self.at = end;
        None
    }

    /// Follows Python syntax; `None` means that the call or list is complete.
    fn python(&mut self, raw: &str) -> Option<Found> {
        let bytes = raw.as_bytes();
        while self.at < bytes.len() {
            let byte = bytes[self.at];
            if let Some((quote, count)) = self.quote {
                match byte {
                    b'\\' if self.at + 1 == bytes.len() => return Some(Found::More),
                    b'\\' => {
                        self.at = raw.ceil_char_boundary(self.at + 2);
                        continue;
                    }
                    _ if byte != quote => {}
                    _ if count == 1 => self.quote = None,
                    _ if bytes[self.at..].starts_with(&[quote; 3]) => {
                        self.quote = None;
                        self.at += 2;
                    }
                    _ if bytes.len() - self.at < 3 => return Some(Found::More),
                    _ => {}
                }
                self.at += 1;
                continue;
            }
            match byte {
                b'"' | b'\'' => {
                    let run = bytes[self.at..].iter().take(3).take_while(|next| **next == byte).count();
                    if self.at + run == bytes.len() && run < 3 {
                        // Two quotes may become three.
                        return Some(Found::More);
                    }
                    // Two quotes are an empty string.
                    if run != 2 {
                        self.quote = Some((byte, run));
                    }
                    self.at += run;
                    continue;
                }
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' | b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return self.complete(self.at + 1);
                    }
                }
                b'<' => {
                    if let Some(found) = self.mark(raw, self.at, false) {
                        return Some(found);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        Some(Found::More)
    }

    /// Follows values between tags, which end with the call. Never returns `None`.
    fn values(&mut self, raw: &str, open: &str, close: &str) -> Option<Found> {
        let end = self.form.close.last().copied().unwrap_or_default();
        while let Some(next) = scan::find(b'<', &raw.as_bytes()[self.at..]) {
            self.at += next;
            // A value may contain the end mark of the call.
            if !self.value || self.hasty {
                match sees(raw, self.at, end) {
                    Sees::All(len) => {
                        self.values.push(self.from..self.at);
                        return Some(Found::End(self.at + len, Ended::Well));
                    }
                    Sees::Half => return Some(Found::More),
                    Sees::No => {}
                }
            }
            match sees(raw, self.at, if self.value { close } else { open }) {
                Sees::Half => return Some(Found::More),
                Sees::All(len) => {
                    self.value = !self.value;
                    self.at += len;
                    continue;
                }
                Sees::No => {}
            }
            if self.value && self.form.body == Body::Parameters {
                match self.function(raw, end) {
                    Within::More => return Some(Found::More),
                    Within::End(at) => return Some(Found::End(at, Ended::Early)),
                    Within::Pass(len) => {
                        self.at += len;
                        continue;
                    }
                    Within::No => {}
                }
            }
            if let Some(found) = self.mark(raw, self.at, self.value) {
                return Some(found);
            }
            self.at += 1;
        }
        self.at = raw.len();
        Some(Found::More)
    }

    /// Handles a function mark inside an open value; `end` is the end mark of the call.
    fn function(&mut self, raw: &str, end: &str) -> Within {
        let at = self.at;
        match sees(raw, at, "</function>") {
            Sees::Half => return Within::More,
            Sees::All(len) if self.nested > 0 => {
                self.nested -= 1;
                return Within::Pass(len);
            }
            Sees::All(len) if end == "</function>" => {
                self.early.get_or_insert((at, at + len));
                return Within::Pass(len);
            }
            Sees::All(len) => {
                let space = raw[at + len..].len() - raw[at + len..].trim_start().len();
                match sees(raw, at + len + space, end) {
                    Sees::Half if space <= BETWEEN => return Within::More,
                    // The last argument is not closed.
                    Sees::All(_) if space <= BETWEEN => self.value = false,
                    _ => {}
                }
                return Within::Pass(len);
            }
            Sees::No => {}
        }
        match sees(raw, at, "<function=") {
            Sees::Half => Within::More,
            Sees::All(len) => match self.early {
                Some((early, _)) => Within::End(early),
                None => {
                    self.nested += 1;
                    Within::Pass(len)
                }
            },
            Sees::No => Within::No,
        }
    }

    /// Reads the text after complete arguments: the end mark, or a separator before another call.
    fn behind(&mut self, raw: &str) -> Found {
        let form = self.form;
        let end = self.at;
        let unmarked = Found::End(end, if form.open_ended { Ended::Well } else { Ended::Unmarked });
        let space = |from: usize| from + raw[from..].find(|c| !is_space(c)).unwrap_or(raw.len() - from);
        let mut at = space(end);
        if at - end > BETWEEN {
            return unmarked;
        }
        if form.joined {
            return match raw.as_bytes().get(at) {
                None => Found::More,
                Some(b';') => {
                    let next = space(at + 1);
                    match raw.as_bytes().get(next) {
                        None if next - end <= BETWEEN => Found::More,
                        Some(b'{') if next - end <= BETWEEN => {
                            (self.at, self.from, self.behind) = (next, next, false);
                            self.go_on(raw)
                        }
                        _ => unmarked,
                    }
                }
                Some(_) => unmarked,
            };
        }
        if form.close.is_empty() {
            return unmarked;
        }
        if !form.open_ended {
            // Superfluous brackets do not hide the end mark.
            at = end
                + raw[end..]
                    .find(|c| !is_space(c) && !matches!(c, '}' | ']' | ')'))
                    .unwrap_or(raw.len() - end);
            if at - end > BETWEEN {
                return unmarked;
            }
        }
        for (i, word) in form.close.iter().enumerate() {
            let last = i + 1 == form.close.len();
            match sees(raw, at, word) {
                Sees::Half => return Found::More,
                Sees::All(len) if last => return Found::End(at + len, Ended::Well),
                Sees::All(len) => at = space(at + len),
                Sees::No if last => return unmarked,
                Sees::No => {}
            }
        }
        unmarked
    }
}
