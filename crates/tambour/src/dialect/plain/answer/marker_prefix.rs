//! Held beginning of an answer, which may be the failure marker, `<<ParsingError>>`, and nothing else (T-025,
//!

use super::{AnswerWriter, is_unfinished_markup};
use crate::dialect::IntentSink;
use crate::dialect::marker::{MarkerForm, MarkerWatch};
use crate::lex::marks::{self, MarkMatch};
use crate::lex::markup::MarkupToken;
use crate::span::Place;

/// Maximum length in bytes of the held text of a possible failure marker, white space included.
const MAX_PREFIX_BYTES: usize = 1023;

/// Held beginning of an answer.
#[derive(Default)]
pub(super) struct MarkerPrefix {
    watch: MarkerWatch,
    /// Held text, without leading white space.
    text: String,
    /// Place of the text.
    start: Place,
}

/// A beginning that is not the marker.
struct RejectedPrefix {
    /// Text to emit, and its place.
    text: String,
    at: Place,
    /// Unfinished markup after the text, and its place.
    unfinished_text: String,
    unfinished_at: Place,
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

    /// Returns whether the answer may still be the failure marker if a reasoning mark is removed here, that
    /// is, before or after the failure marker.
    pub(super) fn allows_mark(&self) -> bool {
        self.text.is_empty() || self.watch.form().is_some() && !self.watch.is_in_fence()
    }

    /// Reads more text. Returns `None` while the answer may be the marker; otherwise the number of bytes of
    /// `raw` that have been read into the held text.
    pub(super) fn push(&mut self, raw: &str, at: Place) -> Option<usize> {
        const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];
        let mut rest = raw;
        while !rest.is_empty() {
            let read = raw.len() - rest.len();
            let is_blank_run = rest.starts_with(BLANK);
            let end = rest.find(|c| BLANK.contains(&c) != is_blank_run).unwrap_or(rest.len());
            let piece = &rest[..end];
            // The white space around the marker may have any length, but only a bounded part of it is held.
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

    /// Rejects the prefix at a reasoning mark: a partial failure marker is unfinished markup.
    fn end_at_mark(self) -> RejectedPrefix {
        let start = self.text.find('<').unwrap_or(self.text.len());
        self.split(start)
    }

    /// Rejects the prefix before `next`. A reasoning mark at its end that `next` may continue is unfinished
    /// markup.
    fn end_before(self, next: &str) -> RejectedPrefix {
        let start = self.text.rfind('<').unwrap_or(self.text.len());
        let may_be_mark =
            || marks::match_mark([&self.text[start..], next].concat().as_bytes()) == MarkMatch::Prefix;
        let start = if start < self.text.len() && may_be_mark() { start } else { self.text.len() };
        self.split(start)
    }

    /// Splits the held text at the offset where its unfinished markup starts.
    fn split(self, unfinished_start: usize) -> RejectedPrefix {
        let MarkerPrefix { mut text, start: at, .. } = self;
        let unfinished_text = text.split_off(unfinished_start);
        RejectedPrefix { unfinished_at: at.end_of(&text), text, at, unfinished_text }
    }
}

impl AnswerWriter {
    /// Ends the prefix if a reasoning mark at the current place shows that it is not the marker.
    pub(in crate::dialect::plain) fn resolve_prefix(&mut self, out: &mut dyn IntentSink) {
        if self.marker_prefix.as_ref().is_some_and(|prefix| !prefix.allows_mark()) {
            self.end_prefix(out);
        }
    }

    /// Handles a token at the beginning of the answer; returns whether it is consumed as part of a possible
    /// failure marker.
    pub(super) fn push_prefix(
        &mut self,
        token: &MarkupToken<'_>,
        is_mark: bool,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let Some(mut prefix) = self.marker_prefix.take() else { return false };
        let raw = token.raw();
        if is_mark {
            if prefix.allows_mark() {
                self.marker_prefix = Some(prefix);
            } else {
                self.begin_text(prefix.end_at_mark(), out);
            }
            return false;
        }
        let Some(read_len) = prefix.push(raw, at) else {
            self.marker_prefix = Some(prefix);
            return true;
        };
        let rest = &raw[read_len..];
        let mut rejected = prefix.end_before(rest);
        if !matches!(token, MarkupToken::Text(_)) {
            self.begin_text(rejected, out);
            return false;
        }
        let rest_at = at.end_of(&raw[..read_len]);
        // Text without markup is emitted together with the prefix.
        let is_joined = rejected.unfinished_text.is_empty()
            && !rejected.text.is_empty()
            && !is_unfinished_markup(rest)
            && !self.follows_removal;
        if is_joined {
            rejected.text.push_str(rest);
        }
        self.begin_text(rejected, out);
        if !is_joined && !rest.is_empty() {
            let removed_mark = self.push_token(&MarkupToken::Text(rest), None, rest_at, out);
            debug_assert!(removed_mark.is_none(), "text removes no mark while none is held");
        }
        true
    }

    /// Begins the answer with a rejected prefix.
    fn begin_text(&mut self, prefix: RejectedPrefix, out: &mut dyn IntentSink) {
        let RejectedPrefix { text, at, unfinished_text, unfinished_at } = prefix;
        if !text.is_empty() {
            self.push_text(&text, || at, out);
        }
        (self.unfinished_text, self.unfinished_at) = (unfinished_text, unfinished_at);
    }

    /// Emits the prefix, because the answer is not the failure marker alone.
    pub(super) fn end_prefix(&mut self, out: &mut dyn IntentSink) {
        if let Some(prefix) = self.marker_prefix.take() {
            let next = "";
            self.begin_text(prefix.end_before(next), out);
            self.emit_unfinished(out);
        }
    }

    /// Returns the failure marker and its place, if it is the whole answer.
    pub(in crate::dialect::plain) fn failure_marker(&self) -> Option<(MarkerForm, Place)> {
        self.marker_prefix.as_ref()?.marker()
    }
}
