//! Leading reasoning before a reply that is not markup: it becomes a draft.

use super::unclosed::Reasoning;
use super::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::marks::{self, Effect, Kind, Mark, Open, Seen};
use crate::limits::Limits;
use crate::span::Place;

/// Rules that reasoning may break, and the fields of the structure it may hide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Reasoning is never closed.
    pub(super) unclosed: &'static Rule,
    /// Reasoning is closed by a mark of another name.
    pub(super) mismatched: &'static Rule,
    /// A closing mark has no opening one.
    pub(super) unopened: &'static Rule,
    /// Reasoning begins after the structure.
    pub(super) late: &'static Rule,
    /// A reasoning mark has attributes.
    pub(super) attributes: &'static Rule,
    /// Fields of the requested structure; a structure inside reasoning has at least one of them.
    pub(super) fields: &'static [&'static str],
}

/// Strips leading reasoning, such as `<think>...</think>`, from a reply.
#[derive(Clone, Debug)]
pub(super) struct LeadingThink {
    state: State,
    /// Possible beginning of a mark.
    held: String,
    at: Place,
    /// Start of the first draft, if any, and of the last.
    opened: Option<Place>,
    last: Place,
    rules: Rules,
    limits: Limits,
    /// Set if the reply itself was found in an unclosed draft: it must not act.
    found: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// Only white space and drafts so far; the mark is the one that closed the last draft.
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

    /// Returns whether all further text belongs to the reply itself.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Returns the place after all text so far; once the draft is over, the start of the reply itself.
    pub(super) fn place(&self) -> Place {
        match &self.state {
            State::Inside(_, reasoning) => reasoning.place().after(&self.held),
            State::Start(_) | State::Over => self.at.after(&self.held),
        }
    }

    /// Returns whether the reply itself was found in an unclosed draft: nothing of it may act.
    pub(super) fn found(&self) -> bool {
        self.found
    }

    /// Returns the start of the first draft, if any.
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

    /// Reads text and returns the part that belongs to the reply itself, held text included.
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

    /// Reads white space, and decides whether a draft or the reply itself follows. Returns the unread rest.
    fn start<'a>(&mut self, text: &'a str, closed: Option<Mark>, out: &mut dyn Output) -> &'a str {
        // Leading white space is dropped, since its length is unbounded.
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
                attributes(self.rules.attributes, &body[..len], self.at, out);
                self.at.advance(&body[..len]);
                let reasoning = Box::new(Reasoning::new(self.at, self.rules.fields, &self.limits));
                (State::Inside(Open::new(mark), reasoning), &body[len..])
            }
            // Some reasoning ends with two closing marks.
            Seen::Mark(mark, len) if closed.is_some_and(|closed| closed.same(mark)) => {
                attributes(self.rules.attributes, &body[..len], self.at, out);
                self.at.advance(&body[..len]);
                (State::Start(None), &body[len..])
            }
            Seen::No | Seen::Mark(..) => (State::Over, body),
        };
        rest
    }

    /// Reads text of a draft. Returns the text after the draft.
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
        attributes(self.rules.attributes, raw, self.at, out);
        self.at.advance(raw);
        self.state = State::Start(Some(mark));
        rest
    }

    /// Ends the input and returns the held text that belongs to the reply itself.
    pub(super) fn finish(&mut self, out: &mut dyn Output) -> String {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start(_) | State::Over => held,
            State::Inside(_, reasoning) => {
                let (place, reply) = reasoning.finish(&mut |text| out.intent(Intent::Draft(text)));
                self.at = place;
                self.found = reply.is_some();
                // An incomplete mark at the very end is not draft text.
                if !self.found {
                    self.at.advance(&held);
                }
                out.report(unclosed(self.rules, self.last, self.at.offset, self.found));
                reply.unwrap_or_default()
            }
        }
    }
}

/// Returns the report on unclosed reasoning; `found` says whether the reply itself was found at its end.
pub(super) fn unclosed(rules: Rules, at: Place, end: usize, found: bool) -> Report {
    let repair = if found { "closed where the reply begins" } else { "closed at the end" };
    Report::new(rules.unclosed, at, end, "the reasoning is not closed").repaired(repair)
}

/// Returns the report on reasoning closed by a mark of another name.
pub(super) fn mismatched(rule: &'static Rule, raw: &str, at: Place) -> Report {
    let message = format!("`{raw}` closes reasoning that began with another mark");
    Report::new(rule, at, at.offset + raw.len(), message).repaired("read as its end")
}

/// Reports the attributes of a mark; they appear in no event.
pub(super) fn attributes(rule: &'static Rule, raw: &str, at: Place, out: &mut dyn Output) {
    if marks::has_attributes(raw) {
        let report = Report::new(rule, at, at.offset + raw.len(), "a mark of reasoning with attributes");
        out.report(report.repaired("left them out"));
    }
}
