//! Beginning of an answer, as long as it may be the failure marker and nothing else.

use crate::dialect::marker::{MarkerForm, MarkerWatch};
use crate::lex::marks::{self, MarkMatch};
use crate::span::Place;

/// Most bytes held of a possible failure marker, white space included.
const MAX_PREFIX_BYTES: usize = 1023;

/// Held beginning of an answer.
#[derive(Default)]
pub(super) struct MarkerPrefix {
    watch: MarkerWatch,
    text: String,
    start: Place,
}

/// A beginning that is not the marker: text to emit, and unfinished markup at its end.
pub(super) struct RejectedPrefix {
    pub(super) text: String,
    pub(super) at: Place,
    pub(super) unfinished_text: String,
    pub(super) unfinished_at: Place,
}

impl MarkerPrefix {
    /// Returns whether only white space was read.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the held text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the marker and its place, if it is the whole text so far.
    pub(super) fn marker(&self) -> Option<(MarkerForm, Place)> {
        Some((self.watch.form()?, self.start))
    }

    /// Returns whether a reasoning mark here leaves the marker intact: it is before or after the marker.
    pub(super) fn allows_mark(&self) -> bool {
        self.text.is_empty() || self.watch.form().is_some() && !self.watch.is_in_fence()
    }

    /// Reads more text. If this is not the marker, returns the number of bytes of `raw` that are held all the
    /// same.
    pub(super) fn push(&mut self, raw: &str, at: Place) -> Option<usize> {
        const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];
        let mut rest = raw;
        while !rest.is_empty() {
            let read = raw.len() - rest.len();
            let is_blank_run = rest.starts_with(BLANK);
            let end = rest.find(|c| BLANK.contains(&c) != is_blank_run).unwrap_or(rest.len());
            let piece = &rest[..end];
            // Any amount of white space may surround the marker; a possible beginning of it is short.
            let room = MAX_PREFIX_BYTES.saturating_sub(self.text.len());
            let is_within_limit =
                is_blank_run && (self.text.is_empty() || self.watch.form().is_some()) || end <= room;
            if !is_within_limit || self.watch.push(piece) < end {
                return Some(read);
            }
            if self.text.is_empty() {
                self.start = at.end_of(&raw[..read]);
            }
            if !(is_blank_run && self.text.is_empty()) {
                self.text.push_str(&piece[..end.min(room)]);
            }
            rest = &rest[end..];
        }
        None
    }

    /// Ends before a reasoning mark: a partial failure marker is unfinished markup.
    pub(super) fn end_at_mark(self) -> RejectedPrefix {
        let start = self.text.find('<').unwrap_or(self.text.len());
        self.split(start)
    }

    /// Ends before `next`, if need be with an unfinished mark that `next` may continue.
    pub(super) fn end_before(self, next: &str) -> RejectedPrefix {
        let start = self.text.rfind('<').unwrap_or(self.text.len());
        let continues_line =
            || marks::match_mark([&self.text[start..], next].concat().as_bytes()) == MarkMatch::Prefix;
        let start = if start < self.text.len() && continues_line() { start } else { self.text.len() };
        self.split(start)
    }

    fn split(self, start: usize) -> RejectedPrefix {
        let MarkerPrefix { mut text, start: at, .. } = self;
        let unfinished_text = text.split_off(start);
        RejectedPrefix { unfinished_at: at.end_of(&text), text, at, unfinished_text }
    }
}
