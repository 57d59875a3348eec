//! A leading `<think>` or `<thinking>` in front of a reply that is not markup: a draft.

use super::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::span::Place;

/// Takes a leading `<think>...</think>` (or `<thinking>`) off a reply.
#[derive(Clone, Debug)]
pub(super) struct LeadingThink {
    state: State,
    /// The unfinished tag.
    held: String,
    at: Place,
    /// Where the draft begins, if there is one.
    opened: Option<Place>,
    /// The tag that closes it.
    close: &'static str,
    /// What an unclosed draft breaks.
    rule: &'static Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Inside,
    Over,
}

/// The tags: what opens a draft, and what closes it.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

impl LeadingThink {
    pub(super) fn new(rule: &'static Rule) -> LeadingThink {
        LeadingThink {
            state: State::Start,
            held: String::new(),
            at: Place::START,
            opened: None,
            close: TAGS[0].1,
            rule,
        }
    }

    /// Whether everything from here on belongs to the reply itself.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// The place after all text so far; once the draft is over, where the reply itself starts.
    pub(super) fn place(&self) -> Place {
        self.at.after(&self.held)
    }

    /// Where the draft begins, if there is one.
    pub(super) fn opened(&self) -> Option<Place> {
        self.opened
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Reads text; returns what belongs to the reply itself. What is held comes back with it.
    pub(super) fn push(&mut self, text: &str, out: &mut dyn Output) -> String {
        let mut text = std::mem::take(&mut self.held) + text;
        if self.state == State::Start {
            // White space in front is not kept: there may be any amount of it.
            let body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
            let blank = text.len() - body.len();
            self.at.advance(&text[..blank]);
            text.drain(..blank);
            if TAGS.iter().any(|(open, _)| text.len() < open.len() && open.starts_with(&text)) {
                self.held = text;
                return String::new();
            }
            let Some((open, close)) = TAGS.iter().find(|(open, _)| text.starts_with(open)) else {
                self.state = State::Over;
                return text;
            };
            self.opened = Some(self.at);
            self.close = close;
            self.at.advance(open);
            text.drain(..open.len());
            self.state = State::Inside;
        }
        let close = self.close;
        match text.find(close) {
            Some(end) => {
                self.draft(&text[..end], out);
                self.at.advance(close);
                self.state = State::Over;
                text.split_off(end + close.len())
            }
            None => {
                let keep = (1..close.len()).rev().find(|&n| text.ends_with(&close[..n])).unwrap_or(0);
                let sent = text.len() - keep;
                self.draft(&text[..sent], out);
                self.held = text.split_off(sent);
                String::new()
            }
        }
    }

    fn draft(&mut self, text: &str, out: &mut dyn Output) {
        if !text.is_empty() {
            self.at.advance(text);
            out.intent(Intent::Draft(text));
        }
    }

    /// Ends the input; returns what was held and belongs to the reply itself.
    pub(super) fn finish(&mut self, out: &mut dyn Output) -> String {
        let held = std::mem::take(&mut self.held);
        let state = std::mem::replace(&mut self.state, State::Over);
        match state {
            State::Start => held,
            State::Inside => {
                // Half a closing tag at the very end is no draft.
                self.at.advance(&held);
                let opened = self.opened.unwrap_or_default();
                let report =
                    Report::new(self.rule, opened, self.at.offset, "the leading draft is not closed");
                out.report(report.repaired("closed at the end"));
                String::new()
            }
            State::Over => String::new(),
        }
    }
}
