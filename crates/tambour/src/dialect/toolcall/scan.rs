//! Where a call ends: follows its arguments while they come, each byte once.
//!
//! A mark within a string, or a value, does not end a call. Where nothing else ends it, as when a quote is missing, the first such
//! mark did; from then on marks within strings count at once, so that nothing is read more than twice.

use std::ops::Range;

use super::formats::{Body, Form};
use crate::lex::scan;
use crate::lex::space::is_space;

/// White space before what ends a call, and brackets that are too many.
const BETWEEN: usize = 64;

/// What is known of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// More is to come.
    More,
    /// It ends before this byte, and whether as it should.
    End(usize, Ended),
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// As it should.
    Well,
    /// What ends it is missing, its arguments are complete.
    Unmarked,
    /// Its arguments are not complete.
    Early,
}

/// Follows one call.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    form: &'static Form,
    /// Up to where it was read.
    at: usize,
    depth: usize,
    /// The quote of the string that is open, and how many of them end it.
    quote: Option<(u8, usize)>,
    /// Whether a value of XML is open, and functions that have begun in it.
    value: bool,
    nested: usize,
    /// Where the value under way begins, and those that are complete.
    from: usize,
    pub(super) values: Vec<Range<usize>>,
    /// Whether the arguments are complete, and what may end the call is next.
    behind: bool,
    /// Where a mark within a string would end it, and behind which byte.
    early: Option<(usize, usize)>,
    /// Whether such a mark ends it at once.
    pub(super) hasty: bool,
}

/// What a mark within a value is.
enum Within {
    No,
    /// More is to come.
    More,
    /// So many bytes of the value.
    Pass(usize),
    /// The call ended here.
    End(usize),
}

/// What a text has at a place.
enum Sees {
    No,
    Half,
    /// So many bytes.
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

    /// Goes on in `raw`, to which more was added.
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

    /// The end of the reply: how the call has ended, if it has.
    pub(super) fn finish(&self, raw: &str) -> Option<(usize, Ended)> {
        if self.behind {
            let end = self.values.last().map_or(raw.len(), |value| value.end);
            return Some((end, if self.form.open_ended { Ended::Well } else { Ended::Unmarked }));
        }
        self.give_up()
    }

    /// Where it has ended if nothing else ends it.
    pub(super) fn give_up(&self) -> Option<(usize, Ended)> {
        self.early.map(|(end, _)| (end, Ended::Early))
    }

    /// Where a mark that ended it early ends.
    pub(super) fn behind_mark(&self, end: usize) -> usize {
        self.early.filter(|(at, _)| *at == end).map_or(end, |(_, behind)| behind)
    }

    /// A mark at `at`, within a string or not: whether it ends the call, is half there, or means nothing.
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
                    // One that begins the next call belongs to that.
                    let behind = if begins { at } else { at + len };
                    let values = form.body.has_values();
                    if let Some((early, closed)) = self.early
                        && values
                        && begins
                        && closed > early
                    {
                        // It was closed, and now the next one begins.
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

    /// `None`: the arguments are complete.
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
                        // What is escaped may be longer than a byte.
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
                // Half of a mark is read again.
                self.depth -= usize::from(bytes[self.at] == b'[' && found == Found::More);
                return Some(found);
            }
            self.at += 1;
        }
        Some(Found::More)
    }

    /// A value is complete before `end`.
    fn complete(&mut self, end: usize) -> Option<Found> {
        self.values.push(self.from..end);
        self.at = end;
        None
    }

    /// `None`: the call, or the list of calls, is complete.
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
                        // It may become three.
                        return Some(Found::More);
                    }
                    // Two are an empty string.
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

    /// Values between tags, which end when the call does. It is never `None`.
    fn values(&mut self, raw: &str, open: &str, close: &str) -> Option<Found> {
        let end = self.form.close.last().copied().unwrap_or_default();
        while let Some(next) = scan::find(b'<', &raw.as_bytes()[self.at..]) {
            self.at += next;
            // A value may hold the mark that ends the call.
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

    /// A mark of functions in a value that is open, with `end` as what ends the call.
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

    /// Behind complete arguments: what ends the call, or joins another one to it.
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
            // Brackets that are too many do not hide the end.
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
