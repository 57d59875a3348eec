//! Markdown whose tags may be in code (F-105): a tag is held until that is known, at most to the end of its
//! line.

use crate::lex::code::{CodeContext, CodeStop, CodeTracker};
use crate::lex::marks::ReasoningMark;
use crate::lex::markup::{MarkupTag, MarkupToken, TagFaults, TagKind};
use crate::lex::scan;
use crate::lex::space::{is_blank, is_space};
use crate::span::Place;

/// Position of a tag, which decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagContext {
    /// In text: the tag counts.
    Text,
    /// In a code span.
    CodeSpan,
    /// In a fence.
    Fence,
    /// After an open backtick on its line.
    Undecided,
}

/// A held token.
#[derive(Clone, Debug)]
pub(super) struct HeldToken {
    raw: String,
    place: Place,
    kind: HeldTokenKind,
}

#[derive(Clone, Debug)]
enum HeldTokenKind {
    Text,
    Tag { name: (usize, usize), kind: TagKind, slips: TagFaults },
    CommentOpen,
    CommentClose,
    CommentEnd,
    Reasoning(ReasoningMark),
}

impl HeldToken {
    fn new(token: &MarkupToken<'_>, place: Place) -> HeldToken {
        let form = match token {
            MarkupToken::Tag(tag) => {
                let from = tag.name.as_ptr() as usize - tag.raw.as_ptr() as usize;
                HeldTokenKind::Tag { name: (from, from + tag.name.len()), kind: tag.kind, slips: tag.faults }
            }
            MarkupToken::CommentOpen => HeldTokenKind::CommentOpen,
            MarkupToken::CommentClose => HeldTokenKind::CommentClose,
            MarkupToken::HtmlCommentClose(_) => HeldTokenKind::CommentEnd,
            MarkupToken::Reasoning(_, mark) => HeldTokenKind::Reasoning(*mark),
            _ => HeldTokenKind::Text,
        };
        HeldToken { raw: token.raw().to_owned(), place, kind: form }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn token(&self) -> MarkupToken<'_> {
        match self.kind {
            HeldTokenKind::Text => MarkupToken::Text(&self.raw),
            HeldTokenKind::Tag { name: (from, to), kind, slips: faults } => {
                MarkupToken::Tag(MarkupTag { raw: &self.raw, name: &self.raw[from..to], kind, faults })
            }
            HeldTokenKind::CommentOpen => MarkupToken::CommentOpen,
            HeldTokenKind::CommentClose => MarkupToken::CommentClose,
            HeldTokenKind::CommentEnd => MarkupToken::HtmlCommentClose(&self.raw),
            HeldTokenKind::Reasoning(mark) => MarkupToken::Reasoning(&self.raw, mark),
        }
    }
}

/// Code state of a Markdown text, and its held tokens.
#[derive(Clone, Debug)]
pub(super) struct MarkdownTracker {
    code: CodeTracker,
    /// Set if only white space was read on the current line.
    is_line_blank: bool,
    /// Number of the first open backtick runs that do not close on this line.
    unclosed_runs: usize,
    /// Index of the run that closes on this line: text after it is code.
    closing_run: Option<usize>,
    held: Option<HeldTokens>,
    limit: usize,
}

#[derive(Clone, Debug)]
struct HeldTokens {
    tokens: Vec<HeldToken>,
    len: usize,
    condition: HoldCondition,
}

/// Condition that decides on a held tag.
#[derive(Clone, Debug)]
enum HoldCondition {
    /// One of this many open runs closes on the line: the tag is code.
    ClosingRun(Box<CodeTracker>, usize),
    /// The tag is alone on its line: it counts.
    AloneOnLine,
    /// A JSON string that is open on the line closes on it: the tag is text.
    ClosingQuote(u8),
}

/// Result of adding a token to the held ones.
pub(super) enum HoldResult {
    /// Nothing is decided.
    Undecided,
    /// The first of `kept` counts or not; `taken` bytes of the token belong to them.
    Decided { is_counted: bool, tokens: Vec<HeldToken>, taken_len: usize },
}

impl MarkdownTracker {
    /// Starts at the beginning of a text; at most `limit` bytes are held.
    pub(super) fn new(limit: usize) -> MarkdownTracker {
        MarkdownTracker {
            code: CodeTracker::default(),
            is_line_blank: true,
            unclosed_runs: 0,
            closing_run: None,
            held: None,
            limit,
        }
    }

    /// Starts over with the next text, independent of the last.
    pub(super) fn restart(&mut self) {
        *self = MarkdownTracker::new(self.limit);
    }

    pub(super) fn has_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |hold| hold.len)
    }

    /// Returns whether only white space was read on this line.
    pub(super) fn is_line_blank(&self) -> bool {
        self.is_line_blank
    }

    /// Returns whether the tag last passed to [`MarkdownTracker::tag_context`] is on a quoted line.
    pub(super) fn is_quoted(&self) -> bool {
        self.code.is_quoted()
    }

    /// Returns whether the place after all text so far is not code.
    pub(super) fn is_plain(&self) -> bool {
        self.code.context() == CodeContext::Text
    }

    /// Tracks text.
    #[inline]
    pub(super) fn push_text(&mut self, text: &str) {
        self.is_line_blank = match text.as_bytes().last() {
            Some(b' ' | b'\n' | b'\t' | b'\r') => match scan::rfind(b'\n', text.as_bytes()) {
                Some(last) => is_blank(&text[last + 1..]),
                None => self.is_line_blank && is_blank(text),
            },
            Some(_) => false,
            None => self.is_line_blank,
        };
        if self.unclosed_runs == 0 && self.closing_run.is_none() {
            self.code.skim(text, false);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (read, stop) = self.code.read_to_stop(rest, false);
            self.track_stop(stop);
            rest = &rest[read..];
        }
    }

    fn track_stop(&mut self, stop: Option<CodeStop>) {
        match stop {
            Some(CodeStop::LineEnd) => (self.unclosed_runs, self.closing_run) = (0, None),
            Some(CodeStop::Closed(run)) => {
                self.unclosed_runs = self.unclosed_runs.min(run);
                self.closing_run = self.closing_run.filter(|closing| *closing < run);
            }
            _ => {}
        }
    }

    /// Returns the position of a tag at the current place.
    pub(super) fn tag_context(&mut self) -> TagContext {
        let stop = self.code.end_line_start();
        self.track_stop(stop);
        match self.code.context() {
            CodeContext::Text => TagContext::Text,
            CodeContext::Fence => TagContext::Fence,
            CodeContext::Undecided(runs) if self.closing_run.is_some_and(|closing| closing < runs) => {
                TagContext::CodeSpan
            }
            CodeContext::Undecided(runs) if runs <= self.unclosed_runs => TagContext::Text,
            CodeContext::Undecided(_) => TagContext::Undecided,
        }
    }

    /// Holds a token after an open backtick.
    pub(super) fn hold_span(&mut self, token: &MarkupToken<'_>, place: Place) {
        let CodeContext::Undecided(runs) = self.code.context() else { return };
        let mut lookahead = self.code.clone();
        // The content of a tag decides nothing, except that it may end the line.
        lookahead.read_to_stop(&token.raw().replace('`', " "), false);
        self.hold_token(token, place, HoldCondition::ClosingRun(Box::new(lookahead), runs));
    }

    /// Holds a tag that counts if it is alone on its line.
    pub(super) fn hold_line(&mut self, token: &MarkupToken<'_>, place: Place) {
        self.hold_token(token, place, HoldCondition::AloneOnLine);
    }

    /// Holds a tag that is text if this quote follows on its line.
    pub(super) fn hold_quote(&mut self, token: &MarkupToken<'_>, place: Place, quote: u8) {
        self.hold_token(token, place, HoldCondition::ClosingQuote(quote));
    }

    fn hold_token(&mut self, token: &MarkupToken<'_>, place: Place, condition: HoldCondition) {
        self.held = Some(HeldTokens {
            tokens: vec![HeldToken::new(token, place)],
            len: token.raw().len(),
            condition,
        });
    }

    /// Adds a token to the held ones.
    pub(super) fn push_held(&mut self, token: &MarkupToken<'_>, place: Place) -> HoldResult {
        let limit = self.limit;
        let Some(hold) = &mut self.held else { return HoldResult::Undecided };
        let raw = token.raw();
        let text = matches!(token, MarkupToken::Text(_));
        let room = limit.saturating_sub(hold.len);
        // Cut at the limit itself, so that the result does not depend on the chunks.
        let max_len = if text { raw.floor_char_boundary(room) } else { raw.len() };
        let is_overlong = max_len < raw.len() || raw.len() > room;
        let (taken_len, is_counted) = hold.condition.push(&raw[..max_len], text);
        let decision = is_counted.or((is_overlong && taken_len == max_len)
            .then_some(!matches!(hold.condition, HoldCondition::AloneOnLine)));
        // A tag is taken whole, or handled again.
        let taken_len = if text || taken_len == raw.len() { taken_len } else { 0 };
        if taken_len > 0 {
            let held_token = if text { MarkupToken::Text(&raw[..taken_len]) } else { *token };
            match (hold.tokens.last_mut(), text) {
                (Some(HeldToken { raw: last, kind: HeldTokenKind::Text, .. }), true) => {
                    last.push_str(&raw[..taken_len])
                }
                _ => hold.tokens.push(HeldToken::new(&held_token, place)),
            }
            hold.len += taken_len;
        }
        match decision {
            None => HoldResult::Undecided,
            Some(is_counted) => self.decide(is_counted, taken_len),
        }
    }

    /// Ends the text: decides on the held tokens.
    pub(super) fn finish(&mut self) -> Option<(bool, Vec<HeldToken>)> {
        let hold = self.held.as_mut()?;
        let is_counted = match &mut hold.condition {
            HoldCondition::AloneOnLine | HoldCondition::ClosingQuote(_) => true,
            HoldCondition::ClosingRun(code, runs) => {
                !matches!(code.end_line_start(), Some(CodeStop::Closed(run)) if run < *runs)
            }
        };
        match self.decide(is_counted, 0) {
            HoldResult::Decided { is_counted, tokens, .. } => Some((is_counted, tokens)),
            HoldResult::Undecided => None,
        }
    }

    fn decide(&mut self, is_counted: bool, taken_len: usize) -> HoldResult {
        let Some(HeldTokens { tokens, condition, .. }) = self.held.take() else {
            return HoldResult::Undecided;
        };
        if let HoldCondition::ClosingRun(_, runs) = condition {
            if is_counted {
                self.unclosed_runs = runs;
            } else {
                self.closing_run = Some(runs.saturating_sub(1));
            }
        }
        HoldResult::Decided { is_counted, tokens, taken_len }
    }
}

impl HoldCondition {
    /// Reads more text. Returns the bytes read, and whether the tag counts once that is decided.
    fn push(&mut self, raw: &str, is_text: bool) -> (usize, Option<bool>) {
        match self {
            HoldCondition::AloneOnLine if !is_text => (0, Some(false)),
            HoldCondition::AloneOnLine => match raw.char_indices().find(|(_, c)| !is_space(*c) || *c == '\n')
            {
                Some((at, '\n')) => (at, Some(true)),
                Some((at, _)) => (at, Some(false)),
                None => (raw.len(), None),
            },
            HoldCondition::ClosingQuote(quote) => match raw.find([char::from(*quote), '\n']) {
                Some(at) => (at, Some(raw.as_bytes()[at] == b'\n')),
                None => (raw.len(), None),
            },
            HoldCondition::ClosingRun(code, runs) => {
                let mut at = 0;
                while at < raw.len() {
                    let (read, stop) = code.read_to_stop(&raw[at..], false);
                    at += read;
                    match stop {
                        Some(CodeStop::LineEnd) => return (at, Some(true)),
                        Some(CodeStop::Closed(run)) if run < *runs => {
                            // Runs after the closing one are text inside the span.
                            *runs = run + 1;
                            return (at, Some(false));
                        }
                        _ => {}
                    }
                }
                (at, None)
            }
        }
    }
}
