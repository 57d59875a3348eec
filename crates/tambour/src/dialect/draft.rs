//! Leading reasoning in front of a reply that is not markup: a draft.

use super::unclosed::Reasoning;
use super::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::marks::{self, Effect, Kind, Mark, Open, Seen};
use crate::limits::Limits;
use crate::span::Place;

/// What reasoning may break.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// It is not closed.
    pub(super) unclosed: &'static Rule,
    /// It is closed by a mark of another name.
    pub(super) mismatched: &'static Rule,
    /// A mark closes what has not begun.
    pub(super) unopened: &'static Rule,
    /// It stands behind the beginning of the structure.
    pub(super) late: &'static Rule,
    /// A mark has attributes.
    pub(super) attributes: &'static Rule,
    /// Fields of the structure that was asked for, one of which it has.
    pub(super) fields: &'static [&'static str],
}

/// Takes leading reasoning, such as `<think>...</think>`, off a reply.
#[derive(Clone, Debug)]
pub(super) struct LeadingThink {
    state: State,
    /// What may be the beginning of a mark.
    held: String,
    at: Place,
    /// Where the first draft begins, if there is one, and the last.
    opened: Option<Place>,
    last: Place,
    rules: Rules,
    limits: Limits,
    /// Whether the reply itself was found in a draft that is not closed: it must not act.
    found: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// Nothing but white space came, or drafts, the last of which this mark closed.
    Start(Option<Mark>),
    Inside(Open, Box<Reasoning>),
    Over,
}

impl LeadingThink {
    pub(super) fn new(rules: Rules, limits: &Limits) -> LeadingThink {
        LeadingThink {
            state: State::Start(None),
            held: String::new(),
            at: Place::START,
            opened: None,
            last: Place::START,
            rules,
            limits: limits.clone(),
            found: false,
        }
    }

    /// Whether everything from here on belongs to the reply itself.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The place after all text so far; once the draft is over, where the reply itself starts.
    pub(super) fn place(&self) -> Place {
        match &self.state {
            State::Inside(_, reasoning) => reasoning.place().after(&self.held),
            State::Start(_) | State::Over => self.at.after(&self.held),
        }
    }

    /// Whether the reply itself was found in a draft that is not closed: nothing of it may act.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Where the draft begins, if there is one.
    pub(super) fn opened(&self) -> Option<Place> {
        self.opened
    }

    pub(super) fn held(&self) -> usize {
        let inside = match &self.state {
            State::Inside(_, reasoning) => reasoning.held(),
            State::Start(_) | State::Over => 0,
        };
        self.held.len() + inside
    }

    /// Reads text; returns what belongs to the reply itself. What is held comes back with it.
    pub(super) fn push(&mut self, text: &str, out: &mut dyn Output) -> String {
        let held = std::mem::take(&mut self.held) + text;
        let mut text = held.as_str();
        while !text.is_empty() {
            text = match std::mem::replace(&mut self.state, State::Over) {
                State::Start(closed) => self.start(text, closed, out),
                State::Inside(open, reasoning) => self.inside(text, open, reasoning, out),
                State::Over => return text.to_owned(),
            };
        }
        String::new()
    }

    /// White space, and what follows it: a draft or the reply itself. Returns what is still to be read.
    fn start<'a>(&mut self, text: &'a str, closed: Option<Mark>, out: &mut dyn Output) -> &'a str {
        // White space in front is not kept: there may be any amount of it.
        let body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
        self.at.advance(&text[..text.len() - body.len()]);
        let rest;
        (self.state, rest) = match marks::at(body.as_bytes()) {
            _ if body.is_empty() => (State::Start(closed), body),
            Seen::Part => {
                body.clone_into(&mut self.held);
                (State::Start(closed), "")
            }
            Seen::Mark(mark, len) if mark.kind == Kind::Open => {
                self.last = self.at;
                self.opened.get_or_insert(self.at);
                attributes(self.rules, &body[..len], self.at, out);
                self.at.advance(&body[..len]);
                let reasoning = Box::new(Reasoning::new(self.at, self.rules.fields, &self.limits));
                (State::Inside(Open::new(mark), reasoning), &body[len..])
            }
            // Some reasoning ends in two marks.
            Seen::Mark(mark, len) if closed.is_some_and(|closed| closed.same(mark)) => {
                attributes(self.rules, &body[..len], self.at, out);
                self.at.advance(&body[..len]);
                (State::Start(None), &body[len..])
            }
            Seen::No | Seen::Mark(..) => (State::Over, body),
        };
        rest
    }

    /// Text of a draft. Returns what comes after it.
    fn inside<'a>(
        &mut self,
        text: &'a str,
        mut open: Open,
        mut reasoning: Box<Reasoning>,
        out: &mut dyn Output,
    ) -> &'a str {
        let mut draft = |text: &str| out.intent(Intent::Draft(text));
        let (mut at, mut end) = (0, None);
        while let Some(found) = marks::find(&text.as_bytes()[at..]) {
            at += found;
            match marks::at(&text.as_bytes()[at..]) {
                Seen::No => at += 1,
                Seen::Part => {
                    reasoning.push(&text[..at], &mut draft);
                    text[at..].clone_into(&mut self.held);
                    self.state = State::Inside(open, reasoning);
                    return "";
                }
                Seen::Mark(mark, len) => match open.see(mark) {
                    Effect::Text => at += len,
                    effect => {
                        end = Some((mark, len, effect));
                        break;
                    }
                },
            }
        }
        let Some((mark, len, effect)) = end else {
            reasoning.push(text, &mut draft);
            self.state = State::Inside(open, reasoning);
            return "";
        };
        reasoning.push(&text[..at], &mut draft);
        reasoning.close(&mut draft);
        self.at = reasoning.place();
        let (raw, rest) = text[at..].split_at(len);
        if effect == Effect::CloseForeign {
            out.report(mismatched(self.rules.mismatched, raw, self.at));
        }
        attributes(self.rules, raw, self.at, out);
        self.at.advance(raw);
        self.state = State::Start(Some(mark));
        rest
    }

    /// Ends the input; returns what was held and belongs to the reply itself.
    pub(super) fn finish(&mut self, out: &mut dyn Output) -> String {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start(_) | State::Over => held,
            State::Inside(_, reasoning) => {
                let (place, reply) = reasoning.finish(&mut |text| out.intent(Intent::Draft(text)));
                self.at = place;
                self.found = reply.is_some();
                // The beginning of a mark at the very end is no draft.
                if !self.found {
                    self.at.advance(&held);
                }
                out.report(unclosed(self.rules, self.last, self.at.offset, self.found));
                reply.unwrap_or_default()
            }
        }
    }
}

/// The report on reasoning that nothing closes; whether the reply itself was `found` at its end.
pub(super) fn unclosed(rules: Rules, at: Place, end: usize, found: bool) -> Report {
    let repair = if found { "closed where the reply begins" } else { "closed at the end" };
    Report::new(rules.unclosed, at, end, "the reasoning is not closed").repaired(repair)
}

/// Reports the attributes of a mark at `at`, if it has any.
pub(super) fn attributes(rules: Rules, raw: &str, at: Place, out: &mut dyn Output) {
    if marks::has_attributes(raw) {
        let report =
            Report::new(rules.attributes, at, at.offset + raw.len(), "a mark of reasoning has attributes");
        out.report(report.repaired("left out"));
    }
}

/// The report on reasoning that a mark of another name closes.
pub(super) fn mismatched(rule: &'static Rule, raw: &str, at: Place) -> Report {
    let message = format!("`{raw}` closes reasoning that began with another mark");
    Report::new(rule, at, at.offset + raw.len(), message).repaired("read as its end")
}
