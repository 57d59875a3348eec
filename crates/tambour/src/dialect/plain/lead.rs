//! Beginning of an answer, as long as it may be the failure marker and nothing else.

use crate::dialect::marker::{Form, Watch};
use crate::lex::marks::{self, Seen};
use crate::span::Place;

/// Most bytes held of a possible failure marker, white space included.
const MOST: usize = 1023;

/// Held beginning of an answer.
#[derive(Default)]
pub(super) struct Lead {
    watch: Watch,
    text: String,
    at: Place,
}

/// A beginning that is not the marker: text to emit, and unfinished markup at its end.
pub(super) struct Ended {
    pub(super) text: String,
    pub(super) at: Place,
    pub(super) tail: String,
    pub(super) tail_at: Place,
}

impl Lead {
    /// Returns whether only white space was read.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the held text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// Returns the marker and its place, if it is the whole text so far.
    pub(super) fn marker(&self) -> Option<(Form, Place)> {
        Some((self.watch.form()?, self.at))
    }

    /// Returns whether a reasoning mark here leaves the marker intact: it is before or after the marker.
    pub(super) fn allows_mark(&self) -> bool {
        self.text.is_empty() || self.watch.form().is_some() && !self.watch.in_fence()
    }

    /// Reads more text. If this is not the marker, returns the number of bytes of `raw` that are held all the
    /// same.
    pub(super) fn push(&mut self, raw: &str, at: Place) -> Option<usize> {
        const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];
        let mut rest = raw;
        while !rest.is_empty() {
            let read = raw.len() - rest.len();
            let blank = rest.starts_with(BLANK);
            let end = rest.find(|c| BLANK.contains(&c) != blank).unwrap_or(rest.len());
            let piece = &rest[..end];
            // Any amount of white space may surround the marker; a possible beginning of it is short.
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

    /// Ends before a reasoning mark: a partial failure marker is unfinished markup.
    pub(super) fn end_at_mark(self) -> Ended {
        let start = self.text.find('<').unwrap_or(self.text.len());
        self.split(start)
    }

    /// Ends before `next`, if need be with an unfinished mark that `next` may continue.
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
