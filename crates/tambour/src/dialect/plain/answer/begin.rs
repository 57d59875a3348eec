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
        let blank = |text: &str| is_blank(text.rsplit('\n').next().unwrap_or_default());
        let lead = self.marker_prefix.as_ref().map_or("", MarkerPrefix::text);
        let begins = self.is_line_start && blank(lead) || lead.contains('\n') && blank(lead);
        self.held_mark.is_none() && self.unfinished.is_empty() && (begins || self.has_cut)
    }

    /// Returns whether the text so far ends with a line break.
    pub(in crate::dialect::plain) fn ends_with_newline(&self) -> bool {
        self.last_byte == b'\n'
    }

    /// Ends a possible failure marker before other text is held.
    pub(in crate::dialect::plain) fn resolve_prefix(&mut self, out: &mut dyn IntentSink) {
        if self.marker_prefix.as_ref().is_some_and(|lead| !lead.allows_mark()) {
            self.end_prefix(out);
        }
    }

    /// Handles a token at the beginning of the answer; returns whether it is consumed as part of a possible
    /// failure marker.
    pub(super) fn push_prefix(
        &mut self,
        token: &MarkupToken<'_>,
        mark: bool,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let Some(mut lead) = self.marker_prefix.take() else { return false };
        let raw = token.raw();
        if mark {
            if lead.allows_mark() {
                self.marker_prefix = Some(lead);
            } else {
                self.begin_text(lead.end_at_mark(), out);
            }
            return false;
        }
        let Some(kept) = lead.push(raw, at) else {
            self.marker_prefix = Some(lead);
            return true;
        };
        let rest = &raw[kept..];
        let mut begun = lead.end_before(rest);
        if !matches!(token, MarkupToken::Text(_)) {
            self.begin_text(begun, out);
            return false;
        }
        let rest_at = at.end_of(&raw[..kept]);
        let joined = begun.unfinished.is_empty()
            && !begun.text.is_empty()
            && !is_unfinished_markup(rest)
            && !self.has_cut;
        if joined {
            begun.text.push_str(rest);
        }
        self.begin_text(begun, out);
        if !joined && !rest.is_empty() {
            let fate = self.push_token(&MarkupToken::Text(rest), None, rest_at, out);
            debug_assert!(fate.is_none(), "text decides nothing where nothing waits");
        }
        true
    }

    /// Begins the answer, since it is more than the failure marker.
    fn begin_text(&mut self, lead: RejectedPrefix, out: &mut dyn IntentSink) {
        let RejectedPrefix { text, at, unfinished, unfinished_at } = lead;
        if !text.is_empty() {
            self.push_text(&text, || at, out);
        }
        (self.unfinished, self.unfinished_at) = (unfinished, unfinished_at);
    }

    pub(super) fn end_prefix(&mut self, out: &mut dyn IntentSink) {
        if let Some(lead) = self.marker_prefix.take() {
            self.begin_text(lead.end_before(""), out);
            self.emit_unfinished(out);
        }
    }

    /// Returns the failure marker and its place, if it is the whole answer.
    pub(in crate::dialect::plain) fn failure_marker(&self) -> Option<(MarkerForm, Place)> {
        self.marker_prefix.as_ref()?.marker()
    }
}
