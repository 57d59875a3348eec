//! Filter for tags in the code of a Markdown text (F-105). A tag in code is text; any other tag counts, that
//! is, it is read as a tag. A tag is held until that is known, at most to the end of its line.

use crate::lex::code::{CodeContext, CodeStop, CodeTracker};
use crate::lex::marks::ReasoningMark;
use crate::lex::markup::{MarkupTag, MarkupToken, TagFaults, TagKind};
use crate::lex::scan;
use crate::lex::space::{is_blank, is_space};
use crate::span::Place;

/// Set if the code tracker stops at `&`. It does not, because character references such as `&lt;` have no
/// effect on what is code.
pub(super) const STOPS_AT_AMPERSAND: bool = false;

/// Position of a tag, which decides whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagContext {
    /// In text: the tag counts.
    Text,
    /// In a code span.
    CodeSpan,
    /// In a fence.
    Fence,
    /// After an open backtick on its line, which may begin a code span.
    Undecided,
}

/// A held token.
#[derive(Clone, Debug)]
pub(super) struct HeldToken {
    raw: String,
    place: Place,
    kind: HeldTokenKind,
}

/// Kind of a held token, with the details that its source text does not show.
#[derive(Clone, Debug)]
enum HeldTokenKind {
    Text,
    Tag {
        /// Start and end of the name in the source text.
        name: (usize, usize),
        kind: TagKind,
        faults: TagFaults,
    },
    CommentOpen,
    CommentClose,
    /// An end of an HTML comment other than `-->`, such as `--!>`.
    HtmlCommentClose,
    Reasoning(ReasoningMark),
}

impl HeldToken {
    fn new(token: &MarkupToken<'_>, place: Place) -> HeldToken {
        let kind = match token {
            MarkupToken::Tag(tag) => {
                // The name is a slice of the source text.
                let start = tag.name.as_ptr() as usize - tag.raw.as_ptr() as usize;
                HeldTokenKind::Tag {
                    name: (start, start + tag.name.len()),
                    kind: tag.kind,
                    faults: tag.faults,
                }
            }
            MarkupToken::CommentOpen => HeldTokenKind::CommentOpen,
            MarkupToken::CommentClose => HeldTokenKind::CommentClose,
            MarkupToken::HtmlCommentClose(_) => HeldTokenKind::HtmlCommentClose,
            MarkupToken::Reasoning(_, mark) => HeldTokenKind::Reasoning(*mark),
            _ => HeldTokenKind::Text,
        };
        HeldToken { raw: token.raw().to_owned(), place, kind }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Returns the token as it was passed in.
    pub(super) fn token(&self) -> MarkupToken<'_> {
        match self.kind {
            HeldTokenKind::Text => MarkupToken::Text(&self.raw),
            HeldTokenKind::Tag { name: (start, end), kind, faults } => {
                MarkupToken::Tag(MarkupTag { raw: &self.raw, name: &self.raw[start..end], kind, faults })
            }
            HeldTokenKind::CommentOpen => MarkupToken::CommentOpen,
            HeldTokenKind::CommentClose => MarkupToken::CommentClose,
            HeldTokenKind::HtmlCommentClose => MarkupToken::HtmlCommentClose(&self.raw),
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
    /// Number of open backtick runs, counted from the first, that are known not to close on this line.
    unclosed_runs: usize,
    /// Index of the open backtick run that is known to close on this line: the text inside is code.
    closing_run: Option<usize>,
    held: Option<HeldTokens>,
    /// Maximum length of the held tokens in bytes.
    limit: usize,
}

/// A held tag, and the tokens after it.
#[derive(Clone, Debug)]
struct HeldTokens {
    tokens: Vec<HeldToken>,
    /// Length of all tokens in bytes.
    len: usize,
    condition: HoldCondition,
}

/// Condition that decides on a held tag.
#[derive(Clone, Debug)]
enum HoldCondition {
    /// The tag is in code if one of the open backtick runs closes on the line. The fields are the code
    /// structure of the text read so far, and the number of open runs.
    ClosingRun(Box<CodeTracker>, usize),
    /// The tag counts if it is alone on its line.
    AloneOnLine,
    /// The tag is text if this quote, which ends an open string, follows on the line.
    ClosingQuote(u8),
}

/// Result of adding a token to the held tokens.
pub(super) enum HoldResult {
    /// Nothing is decided.
    Undecided,
    /// The held tag is decided.
    Decided {
        /// Set if the tag counts.
        is_counted: bool,
        /// The tag, and the held tokens after it.
        tokens: Vec<HeldToken>,
        /// Bytes of the added token that are in `tokens`; the rest must be handled again.
        taken_len: usize,
    },
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

    /// Starts over for a new text.
    pub(super) fn restart(&mut self) {
        *self = MarkdownTracker::new(self.limit);
    }

    /// Returns whether tokens are held.
    pub(super) fn has_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.len)
    }

    /// Returns whether only white space was read on this line.
    pub(super) fn is_line_blank(&self) -> bool {
        self.is_line_blank
    }

    /// Returns whether the place last examined by [`MarkdownTracker::tag_context`] is on a quoted line (`>`).
    pub(super) fn is_quoted(&self) -> bool {
        self.code.is_quoted()
    }

    /// Returns whether the place after all text so far is certainly not code: neither a fence nor a backtick
    /// is open.
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
            self.code.skim(text, STOPS_AT_AMPERSAND);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (read_len, stop) = self.code.read_to_stop(rest, STOPS_AT_AMPERSAND);
            self.track_stop(stop);
            rest = &rest[read_len..];
        }
    }

    /// Updates the knowledge about open runs.
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

    /// Holds a token after an open backtick, until it is known whether it is in a code span.
    pub(super) fn hold_span(&mut self, token: &MarkupToken<'_>, place: Place) {
        let CodeContext::Undecided(open_runs) = self.code.context() else { return };
        let mut lookahead = self.code.clone();
        // The content of a tag decides nothing, except that it may end the line.
        lookahead.read_to_stop(&token.raw().replace('`', " "), STOPS_AT_AMPERSAND);
        self.hold_token(token, place, HoldCondition::ClosingRun(Box::new(lookahead), open_runs));
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

    /// Adds a token to the held tokens, and decides on the held tag if possible.
    pub(super) fn push_held(&mut self, token: &MarkupToken<'_>, place: Place) -> HoldResult {
        let limit = self.limit;
        let Some(held) = &mut self.held else { return HoldResult::Undecided };
        let raw = token.raw();
        let is_text = matches!(token, MarkupToken::Text(_));
        let room = limit.saturating_sub(held.len);
        // Cut at the limit itself, so that the result does not depend on the chunks.
        let max_len = if is_text { raw.floor_char_boundary(room) } else { raw.len() };
        let is_overlong = max_len < raw.len() || raw.len() > room;
        let (taken_len, is_counted) = held.condition.push(&raw[..max_len], is_text);
        // At the limit the tag counts, unless it had to be alone on its line.
        let decision = is_counted.or((is_overlong && taken_len == max_len)
            .then_some(!matches!(held.condition, HoldCondition::AloneOnLine)));
        // A tag is taken whole, or handled again.
        let taken_len = if is_text || taken_len == raw.len() { taken_len } else { 0 };
        if taken_len > 0 {
            let held_token = if is_text { MarkupToken::Text(&raw[..taken_len]) } else { *token };
            match (held.tokens.last_mut(), is_text) {
                (Some(HeldToken { raw: last_text, kind: HeldTokenKind::Text, .. }), true) => {
                    last_text.push_str(&raw[..taken_len])
                }
                _ => held.tokens.push(HeldToken::new(&held_token, place)),
            }
            held.len += taken_len;
        }
        match decision {
            None => HoldResult::Undecided,
            Some(is_counted) => self.decide(is_counted, taken_len),
        }
    }

    /// Ends the text. Returns the held tokens, if there are any, and whether the first counts.
    pub(super) fn finish(&mut self) -> Option<(bool, Vec<HeldToken>)> {
        let held = self.held.as_mut()?;
        let is_counted = match &mut held.condition {
            HoldCondition::AloneOnLine | HoldCondition::ClosingQuote(_) => true,
            HoldCondition::ClosingRun(code, open_runs) => {
                !matches!(code.end_line_start(), Some(CodeStop::Closed(run)) if run < *open_runs)
            }
        };
        match self.decide(is_counted, 0) {
            HoldResult::Decided { is_counted, tokens, .. } => Some((is_counted, tokens)),
            HoldResult::Undecided => None,
        }
    }

    /// Releases the held tokens, and keeps the knowledge about open runs for the rest of the line.
    fn decide(&mut self, is_counted: bool, taken_len: usize) -> HoldResult {
        let Some(HeldTokens { tokens, condition, .. }) = self.held.take() else {
            return HoldResult::Undecided;
        };
        if let HoldCondition::ClosingRun(_, open_runs) = condition {
            if is_counted {
                self.unclosed_runs = open_runs;
            } else {
                // Unless the text has ended, `HoldCondition::push` has dropped the runs after the closing
                // run, which is then the last.
                self.closing_run = Some(open_runs.saturating_sub(1));
            }
        }
        HoldResult::Decided { is_counted, tokens, taken_len }
    }
}

impl HoldCondition {
    /// Reads more text. Returns the number of bytes read, and whether the tag counts; `None` while that is
    /// undecided.
    fn push(&mut self, raw: &str, is_text: bool) -> (usize, Option<bool>) {
        match self {
            HoldCondition::AloneOnLine if !is_text => (0, Some(false)),
            HoldCondition::AloneOnLine => match raw.char_indices().find(|(_, c)| !is_space(*c) || *c == '\n')
            {
                Some((index, '\n')) => (index, Some(true)),
                Some((index, _)) => (index, Some(false)),
                None => (raw.len(), None),
            },
            HoldCondition::ClosingQuote(quote) => match raw.find([char::from(*quote), '\n']) {
                Some(index) => (index, Some(raw.as_bytes()[index] == b'\n')),
                None => (raw.len(), None),
            },
            HoldCondition::ClosingRun(code, open_runs) => {
                let mut read_len = 0;
                while read_len < raw.len() {
                    let (len, stop) = code.read_to_stop(&raw[read_len..], STOPS_AT_AMPERSAND);
                    read_len += len;
                    match stop {
                        Some(CodeStop::LineEnd) => return (read_len, Some(true)),
                        Some(CodeStop::Closed(run)) if run < *open_runs => {
                            // Runs after the closing run are text inside the span.
                            *open_runs = run + 1;
                            return (read_len, Some(false));
                        }
                        _ => {}
                    }
                }
                (read_len, None)
            }
        }
    }
}
