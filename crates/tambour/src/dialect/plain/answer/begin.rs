//! The beginning of the answer, as long as it may be the failure marker and nothing else.

use super::super::lead::{Ended, Lead};
use super::{Answer, is_unfinished};
use crate::dialect::Output;
use crate::dialect::marker::Form;
use crate::lex::markup::Token;
use crate::lex::space::is_blank;
use crate::span::Place;

impl Answer {
    /// Returns whether the current place begins a line of the answer, or directly follows removed text.
    pub(in crate::dialect::plain) fn begins_line(&self) -> bool {
        let blank = |text: &str| is_blank(text.rsplit('\n').next().unwrap_or_default());
        let lead = self.lead.as_ref().map_or("", Lead::text);
        let begins = self.begins && blank(lead) || lead.contains('\n') && blank(lead);
        self.hold.is_none() && self.tail.is_empty() && (begins || self.cut)
    }

    /// Returns whether the text so far ends with a line break.
    pub(in crate::dialect::plain) fn ends_line(&self) -> bool {
        self.last == b'\n'
    }

    /// Ends a possible failure marker before other text is held.
    pub(in crate::dialect::plain) fn settle(&mut self, out: &mut dyn Output) {
        if self.lead.as_ref().is_some_and(|lead| !lead.allows_mark()) {
            self.end_lead(out);
        }
    }

    /// Handles a token at the beginning of the answer; returns whether it is consumed as part of a possible
    /// failure marker.
    pub(super) fn leads(&mut self, token: &Token<'_>, mark: bool, at: Place, out: &mut dyn Output) -> bool {
        let Some(mut lead) = self.lead.take() else { return false };
        let raw = token.raw();
        if mark {
            if lead.allows_mark() {
                self.lead = Some(lead);
            } else {
                self.begin(lead.end_at_mark(), out);
            }
            return false;
        }
        let Some(kept) = lead.push(raw, at) else {
            self.lead = Some(lead);
            return true;
        };
        let rest = &raw[kept..];
        let mut begun = lead.end_before(rest);
        if !matches!(token, Token::Text(_)) {
            self.begin(begun, out);
            return false;
        }
        let rest_at = at.after(&raw[..kept]);
        let joined = begun.tail.is_empty() && !begun.text.is_empty() && !is_unfinished(rest) && !self.cut;
        if joined {
            begun.text.push_str(rest);
        }
        self.begin(begun, out);
        if !joined && !rest.is_empty() {
            let fate = self.token(&Token::Text(rest), None, rest_at, out);
            debug_assert!(fate.is_none(), "text decides nothing where nothing waits");
        }
        true
    }

    /// Begins the answer, since it is more than the failure marker.
    fn begin(&mut self, lead: Ended, out: &mut dyn Output) {
        let Ended { text, at, tail, tail_at } = lead;
        if !text.is_empty() {
            self.text(&text, || at, out);
        }
        (self.tail, self.tail_at) = (tail, tail_at);
    }

    pub(super) fn end_lead(&mut self, out: &mut dyn Output) {
        if let Some(lead) = self.lead.take() {
            self.begin(lead.end_before(""), out);
            self.end_tail(out);
        }
    }

    /// Returns the failure marker and its place, if it is the whole answer.
    pub(in crate::dialect::plain) fn marker(&self) -> Option<(Form, Place)> {
        self.lead.as_ref()?.marker()
    }
}
