//! A leading `<think>` in front of a reply that is not markup: a draft.

use super::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::span::Place;

/// Takes a leading `<think>...</think>` off a reply.
#[derive(Clone, Debug)]
pub(super) struct LeadingThink {
    state: State,
    /// White space at the start and the unfinished tag.
    held: String,
    /// Bytes of that white space, so that none is looked at twice.
    blank: usize,
    /// Most bytes of it: after that, no draft begins.
    limit: usize,
    at: Place,
    opened: Place,
    /// What an unclosed draft breaks.
    rule: &'static Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Inside,
    Over,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl LeadingThink {
    pub(super) fn new(rule: &'static Rule, limit: usize) -> LeadingThink {
        LeadingThink {
            state: State::Start,
            held: String::new(),
            blank: 0,
            limit,
            at: Place::START,
            opened: Place::START,
            rule,
        }
    }

    /// Whether everything from here on belongs to the reply itself.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Where the reply itself starts, once the draft is over.
    pub(super) fn place(&self) -> Place {
        self.at
    }

    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Reads text; returns what belongs to the reply itself. What is held comes back with it.
    pub(super) fn push(&mut self, text: &str, out: &mut dyn Output) -> String {
        let mut text = std::mem::take(&mut self.held) + text;
        if self.state == State::Start {
            let body = text[self.blank..].trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
            self.blank = text.len() - body.len();
            let few = self.blank < self.limit;
            if few && body.len() < OPEN.len() && OPEN.starts_with(body) {
                self.held = text;
                return String::new();
            }
            if !few || !body.starts_with(OPEN) {
                self.state = State::Over;
                return text;
            }
            self.at.advance(&text[..self.blank]);
            self.opened = self.at;
            self.at.advance(OPEN);
            text.drain(..self.blank + OPEN.len());
            self.state = State::Inside;
        }
        match text.find(CLOSE) {
            Some(end) => {
                self.draft(&text[..end], out);
                self.at.advance(CLOSE);
                self.state = State::Over;
                text.split_off(end + CLOSE.len())
            }
            None => {
                let keep = (1..CLOSE.len()).rev().find(|&n| text.ends_with(&CLOSE[..n])).unwrap_or(0);
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
                let report = Report::new(self.rule, self.opened, self.at.offset, "`<think>` is not closed");
                out.report(report.repaired("closed at the end"));
                String::new()
            }
            State::Over => String::new(),
        }
    }
}
