//! What an answer begins with, as long as it may be the failure marker and nothing else.

use crate::dialect::marker::{Form, Watch};
use crate::lex::marks::{self, Seen};
use crate::span::Place;

/// Bytes that are kept of what may be the failure marker, blanks included.
const MOST: usize = 1023;

#[derive(Default)]
pub(super) struct Lead {
    watch: Watch,
    text: String,
    at: Place,
}

/// A beginning that is not the marker: text that goes out, and unfinished markup at its end that may go on.
pub(super) struct Ended {
    pub(super) text: String,
    pub(super) at: Place,
    pub(super) tail: String,
    pub(super) tail_at: Place,
}

impl Lead {
    /// Whether nothing but white space has come.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// What is kept.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// The marker, if it is all that has come, and where it stands.
    pub(super) fn marker(&self) -> Option<(Form, Place)> {
        Some((self.watch.form()?, self.at))
    }

    /// Whether a mark of reasoning changes nothing here: it stands before the marker or behind it.
    pub(super) fn allows_mark(&self) -> bool {
        self.text.is_empty() || self.watch.form().is_some() && !self.watch.in_fence()
    }

    /// Takes what comes next. `Some` when this is not the marker: how many bytes of `raw` are kept all the same.
    pub(super) fn push(&mut self, raw: &str, at: Place) -> Option<usize> {
        const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];
        let mut rest = raw;
        while !rest.is_empty() {
            let read = raw.len() - rest.len();
            let blank = rest.starts_with(BLANK);
            let end = rest.find(|c| BLANK.contains(&c) != blank).unwrap_or(rest.len());
            let piece = &rest[..end];
            // Any amount of white space may stand around the marker; what may still be the beginning of it is short.
            let room = MOST.saturating_sub(self.text.len());
            let fits = blank && (self.text.is_empty() || self.watch.form().is_some()) || end <= room;
            if !fits || self.watch.push(piece) < end {
                return Some(read);
            }
            if self.text.is_empty() {
                self.at = at.after(&raw[..read]);
            }
            if !(blank && self.text.is_empty()) {
                self.text.push_str(&piece[..end.min(room)]);
            }
            rest = &rest[end..];
        }
        None
    }

    /// It ends before a mark: what of the marker has come is unfinished markup.
    pub(super) fn end_at_mark(self) -> Ended {
        let start = self.text.find('<').unwrap_or(self.text.len());
        self.split(start)
    }

    /// It ends before `next`, with which the end of it may be the beginning of another mark.
    pub(super) fn end_before(self, next: &str) -> Ended {
        let start = self.text.rfind('<').unwrap_or(self.text.len());
        let goes_on = || marks::at([&self.text[start..], next].concat().as_bytes()) == Seen::Part;
        let start = if start < self.text.len() && goes_on() { start } else { self.text.len() };
        self.split(start)
    }

    fn split(self, start: usize) -> Ended {
        let Lead { mut text, at, .. } = self;
        let tail = text.split_off(start);
        Ended { tail_at: at.after(&text), text, at, tail }
    }
}
