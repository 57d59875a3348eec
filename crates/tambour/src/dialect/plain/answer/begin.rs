//! The beginning of the answer, as long as it may be the failure marker and nothing else.

use super::super::marker_prefix::{MarkerPrefix, RejectedPrefix};
use super::{AnswerWriter, is_unfinished_markup};
use crate::dialect::IntentSink;
use crate::dialect::marker::MarkerForm;
use crate::lex::markup::MarkupToken;
use crate::lex::space::is_blank;
use crate::span::Place;

impl AnswerWriter {
    /// Returns whether the current place begins a line of the answer, or directly follows removed text.
    pub(in crate::dialect::plain) fn is_line_start(&self) -> bool {
        let has_blank_end = |text: &str| is_blank(text.rsplit('\n').next().unwrap_or_default());
        let prefix = self.marker_prefix.as_ref().map_or("", MarkerPrefix::text);
        let is_blank_line =
            self.is_line_start && has_blank_end(prefix) || prefix.contains('\n') && has_blank_end(prefix);
        self.held_mark.is_none() && self.unfinished_text.is_empty() && (is_blank_line || self.has_cut)
    }

    /// Returns whether the text so far ends with a line break.
    pub(in crate::dialect::plain) fn ends_with_newline(&self) -> bool {
        self.last_byte == b'\n'
    }

    /// Ends a possible failure marker before other text is held.
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
        let Some(kept_len) = prefix.push(raw, at) else {
            self.marker_prefix = Some(prefix);
            return true;
        };
        let rest = &raw[kept_len..];
        let mut rejected = prefix.end_before(rest);
        if !matches!(token, MarkupToken::Text(_)) {
            self.begin_text(rejected, out);
            return false;
        }
        let rest_at = at.end_of(&raw[..kept_len]);
        let is_joined = rejected.unfinished_text.is_empty()
            && !rejected.text.is_empty()
            && !is_unfinished_markup(rest)
            && !self.has_cut;
        if is_joined {
            rejected.text.push_str(rest);
        }
        self.begin_text(rejected, out);
        if !is_joined && !rest.is_empty() {
            let removed_mark = self.push_token(&MarkupToken::Text(rest), None, rest_at, out);
            debug_assert!(removed_mark.is_none(), "text decides nothing where nothing waits");
        }
        true
    }

    /// Begins the answer, since it is more than the failure marker.
    fn begin_text(&mut self, prefix: RejectedPrefix, out: &mut dyn IntentSink) {
        let RejectedPrefix { text, at, unfinished_text, unfinished_at } = prefix;
        if !text.is_empty() {
            self.push_text(&text, || at, out);
        }
        (self.unfinished_text, self.unfinished_at) = (unfinished_text, unfinished_at);
    }

    pub(super) fn end_prefix(&mut self, out: &mut dyn IntentSink) {
        if let Some(prefix) = self.marker_prefix.take() {
            self.begin_text(prefix.end_before(""), out);
            self.emit_unfinished(out);
        }
    }

    /// Returns the failure marker and its place, if it is the whole answer.
    pub(in crate::dialect::plain) fn failure_marker(&self) -> Option<(MarkerForm, Place)> {
        self.marker_prefix.as_ref()?.marker()
    }
}
