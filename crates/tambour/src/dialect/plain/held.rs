//! Reasoning that counts only once its end has arrived: a mark after the beginning of the answer, and
//! the text after the first end of reasoning that contains another one.

use super::answer::Answer;
use super::lexer;
use super::parse::{Candidate, Reader, in_answer};
use super::rules;
use crate::dialect::draft::{attributes, mismatched};
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::lex::about;
use crate::lex::marks::{Effect, Kind, Mark, Open};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;

/// Reasoning held until its end.
pub(super) struct Held {
    /// The opening mark and its place; `None` for leading reasoning, whose text up to its first end was
    /// emitted.
    begun: Option<(Candidate, String, Place)>,
    open: Open,
    /// Text after the mark, or from the first end on, and its start.
    text: String,
    at: Place,
    /// Openings of the same mark inside the reasoning.
    pub(super) nested: Nested,
    /// Index and length of the last end so far.
    last: Option<(usize, usize)>,
    /// Set once an end was read in a sentence about the mark.
    about: bool,
}

/// Reasoning nested in reasoning of the same mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nested {
    open: usize,
    /// Set once a nested opening was at the start of a line.
    proper: bool,
    /// Set if text precedes the current place on its line.
    within: bool,
}

impl Nested {
    /// Tracks text of the reasoning; `may_break` is `false` if it has no line break.
    #[inline]
    pub(super) fn text(&mut self, text: &str, may_break: bool) {
        if self.within && !may_break {
            return;
        }
        let line = memchr::memrchr(b'\n', text.as_bytes()).map(|at| at + 1);
        self.within = line.is_none() && self.within || !is_blank(&text[line.unwrap_or(0)..]);
    }

    /// Records another opening of the same mark.
    pub(super) fn begins(&mut self) {
        self.open += 1;
        self.proper |= !self.within;
    }

    /// Records the end of a nested opening; returns `false` if none is open.
    fn ends(&mut self) -> bool {
        let open = self.open > 0;
        self.open -= usize::from(open);
        open
    }

    /// Returns whether no nested opening is open.
    pub(super) fn is_none(self) -> bool {
        self.open == 0
    }
}

/// A reasoning mark that was read as text.
pub(super) struct Mention {
    pub(super) open: Open,
    /// Number of places watched before it, if places are watched.
    pub(super) watched: usize,
    /// Set if it is an element around others: marks in it are text too.
    pub(super) element: bool,
}

impl Mention {
    /// Creates the mention of a mark that was just read as text.
    pub(super) fn new(mark: Mark, element: bool, answer: &mut Answer) -> Mention {
        Mention { open: Open::new(mark), watched: answer.prose().map_or(0, |prose| prose.watched()), element }
    }
}

impl Held {
    /// Holds reasoning that a mark opens after the beginning of the answer.
    pub(super) fn new(found: Candidate, raw: &str, at: Place) -> Held {
        Held {
            begun: Some((found, raw.to_owned(), at)),
            open: Open::new(found.mark),
            text: String::new(),
            at: at.after(raw),
            nested: Nested::default(),
            last: None,
            about: false,
        }
    }

    /// Holds the text after the first end of leading reasoning that contains another one.
    pub(super) fn behind_end(open: Open, nested: Nested, raw: &str, at: Place) -> Held {
        let mut nested = nested;
        nested.ends();
        Held { begun: None, open, text: raw.to_owned(), at, nested, last: Some((0, raw.len())), about: false }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len() + self.begun.as_ref().map_or(0, |(_, raw, _)| raw.len())
    }

    /// Returns whether the mark is a word of a sentence that continues after the end; `None` if there is no
    /// such sentence, or it is not known yet.
    fn is_word(&self) -> Option<bool> {
        let (at, len) = self.last.filter(|_| self.about)?;
        about::ends(&self.text[..at], &self.text[at + len..], false)
    }

    /// Returns whether the text after the last end shows that the reasoning was over there: a line ends, and
    /// no nested mark began one.
    fn is_over(&self) -> bool {
        let behind = self.last.map(|(at, len)| self.text[at + len..].trim_start_matches([' ', '\t']));
        !self.nested.proper && behind.is_some_and(|behind| behind.starts_with(['\n', '\r']))
    }
}

impl Reader {
    /// Handles a token while reasoning is held; returns whether the token is consumed.
    pub(super) fn hold(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let found = self.candidate(token).filter(|found| !found.empty);
        let Some(held) = self.held.as_mut() else { return false };
        let raw = token.raw();
        if held.text.len() + raw.len() > self.most {
            // Cut at the limit itself: the first part of the text may decide on the mark.
            if let (Token::Text(text), true) = (token, held.about)
                && let fit = text.floor_char_boundary(self.most.saturating_sub(held.text.len()))
                && fit > 0
            {
                self.hold(&Token::Text(&text[..fit]), at, out);
                self.token(Token::Text(&text[fit..]), at.after(&text[..fit]), out);
                return true;
            }
            self.give_up(out);
            return false;
        }
        if held.begun.is_some() && is_child(token) && is_blank(&held.text) {
            self.is_element(token, out);
            return false;
        }
        let Some(found) = found else {
            held.text.push_str(raw);
            held.nested.text(raw, true);
            match held.is_word() {
                Some(true) => self.is_mention(out),
                Some(false) => self.give_up(out),
                None if held.is_over() => self.give_up(out),
                None => {}
            }
            return true;
        };
        let mark = found.mark;
        let own = mark.same(held.open.mark());
        if mark.kind == Kind::Open && own && !is_blank(&held.text) {
            held.nested.begins();
        }
        let effect = held.open.see(mark);
        if effect == Effect::Text || effect == Effect::Close && held.nested.ends() {
            if effect == Effect::Close {
                held.last = Some((held.text.len(), raw.len()));
            }
            held.text.push_str(raw);
            held.nested.text(raw, true);
            return true;
        }
        if held.begun.is_some() && about::speaks(&held.text, true) == Some(true) {
            // The text after it decides.
            (held.about, held.last) = (true, Some((held.text.len(), raw.len())));
            held.text.push_str(raw);
            return true;
        }
        self.end_held(raw, found, effect, at, out);
        true
    }

    /// Reads the mark as a word of the sentence after it.
    fn is_mention(&mut self, out: &mut dyn Output) {
        let Some(Held { begun: Some((_, mark, place)), text, .. }) = self.held.take() else { return };
        self.replay(&(mark + &text), place, true, out);
    }

    /// Ends held reasoning.
    fn end_held(&mut self, raw: &str, found: Candidate, effect: Effect, at: Place, out: &mut dyn Output) {
        let Some(Held { begun, text, .. }) = self.held.take() else { return };
        let leading = begun.is_none();
        if let Some((begun, mark, place)) = begun {
            self.take_out(begun, &mark, place, out);
        }
        if leading && !text.is_empty() {
            self.reason(&text, out);
        } else if !text.is_empty() {
            out.intent(Intent::Aside { kind: AsideKind::Thought, text: &text });
        }
        if effect == Effect::CloseForeign {
            out.report(mismatched(rules::THINK_MISMATCHED, raw, at));
        }
        attributes(rules::THINK_ATTRIBUTES, raw, at, out);
        if leading {
            self.end_reasoning(found.mark, out);
        }
    }

    /// Removes the opening mark from the answer; no other mark is held before it.
    fn take_out(&mut self, found: Candidate, raw: &str, at: Place, out: &mut dyn Output) {
        let before = self.answer.decided(true);
        let mark = Token::Reasoning(raw, found.mark);
        let fate = self.answer.token(&mark, Some(found), at, out);
        debug_assert!(fate.is_some(), "no code is open at the start of a line");
        self.answer.decided(before);
        in_answer(raw, at, out);
    }

    /// Gives up waiting for an end: the held text ended before, or is text.
    pub(super) fn give_up(&mut self, out: &mut dyn Output) {
        let Some(held) = self.held.as_mut() else { return };
        let Some((end, len)) = held.last else {
            let Some(Held { begun: Some((found, mark, place)), text, .. }) = self.held.take() else { return };
            return self.read_as_text(found, &(mark + &text), place, false, out);
        };
        let behind = held.text.split_off(end + len);
        let raw = held.text.split_off(end);
        let at = held.at.after(&held.text);
        let mark = held.open.mark().as_closing();
        self.end_held(&raw, Candidate { mark, empty: false }, Effect::Close, at, out);
        self.replay(&behind, at.after(&raw), true, out);
    }

    /// Reads the held reasoning as an XML element.
    fn is_element(&mut self, child: &Token<'_>, out: &mut dyn Output) {
        let Some(Held { begun: Some((found, mark, place)), text, .. }) = self.held.take() else { return };
        let phase = matches!(child, Token::Tag(tag) if tag.name.eq_ignore_ascii_case("phase"));
        if found.mark.is_thinking() && phase {
            self.answer.keep_thinking(&mark, place, out);
            return self.replay(&text, place.after(&mark), true, out);
        }
        self.read_as_text(found, &(mark + &text), place, true, out);
    }

    /// Reads a mark as text, with the text after it.
    fn read_as_text(&mut self, found: Candidate, text: &str, at: Place, element: bool, out: &mut dyn Output) {
        self.replay(text, at, true, out);
        self.mention = Some(Mention::new(found.mark, element, &mut self.answer));
    }

    /// Reads text again; with `plainly`, no mark in it opens reasoning.
    pub(super) fn replay(&mut self, text: &str, at: Place, plainly: bool, out: &mut dyn Output) {
        let before = std::mem::replace(&mut self.plainly, plainly);
        let mut lexer = lexer(at, self.limit, true);
        lexer.push(text, &mut |token, at| self.token(token, at, out));
        lexer.finish(&mut |token, at| self.token(token, at, out));
        self.plainly = before;
    }
}

/// Tags of calls, which are not an XML vocabulary: reasoning may begin with one.
const CALLS: &[&str] = &["tool_call", "tool_calls", "function_call", "function_calls", "invoke", "function"];

/// Returns whether a token opens an element that is not reasoning.
pub(super) fn is_child(token: &Token<'_>) -> bool {
    matches!(token, Token::Tag(tag) if tag.kind != TagKind::Close
        && crate::lex::marks::of_tag(tag.name, false).is_none()
        && !CALLS.iter().any(|call| call.eq_ignore_ascii_case(tag.name)))
}
