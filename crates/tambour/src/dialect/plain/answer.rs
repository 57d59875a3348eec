//! Writer of the answer: marks in code stay text, and reasoning marks elsewhere are removed.
//!
//! A mark after an open backtick is held until the code span ends, together with the text after it. If the
//! mark turns out not to be in code, it is removed, and the text after it is read again as if the mark had
//! not been there. The texts before and after removed text form no new markup, so that the answer, written
//! and read again, stays the same.

mod marker_prefix;

use super::late_structure::LateStructureWatch;
use super::parse::MarkCandidate;
use super::rules;
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::lex::code::{CodeContext, CodeStop, CodeTracker};
use crate::lex::comment::CommentTracker;
use crate::lex::fence;
use crate::lex::marks::{self, MarkKind, MarkMatch};
use crate::lex::markup::{MarkupLexer, MarkupToken};
use crate::lex::prose::{ProseLine, ProseTracker, QuotingElements};
use crate::lex::scan::SignMasks;
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;
use marker_prefix::MarkerPrefix;

/// Set if the code tracker stops at `&`. It does not, because character references such as `&lt;` have no
/// effect on what is code.
const STOPS_AT_AMPERSAND: bool = false;

/// Writer of the answer.
pub(super) struct AnswerWriter {
    /// Code structure of the text so far.
    code: CodeTracker,
    /// Open HTML comment in the text so far.
    comment: CommentTracker,
    late_watch: LateStructureWatch,
    /// Beginning of the answer, as long as it may be the failure marker.
    marker_prefix: Option<MarkerPrefix>,
    /// Held unfinished markup right before the current place.
    unfinished_text: String,
    /// Place of the unfinished markup.
    unfinished_at: Place,
    /// A mark that is held because it may be in code.
    held_mark: Option<HeldMark>,
    /// Set if marks after an open backtick are known not to be code.
    ignores_backticks: bool,
    /// Last emitted byte.
    last_byte: u8,
    /// Set if something was removed or skipped after the last emitted byte.
    follows_removal: bool,
    /// Set once non-blank text was emitted.
    has_text: bool,
    /// Set if only white space precedes the current place on its line.
    is_line_start: bool,
    /// Lines and code spans of the text so far, which show whether a skipped part is text; `None` unless
    /// [`AnswerWriter::track_prose`] was called.
    prose: Option<ProseTracker>,
    /// Set once a `<thinking>` was kept, because a structure begins with it: its closing tag is kept too.
    has_structure: bool,
    /// Set while the source text of a tool call is emitted as text: it is not Markdown.
    is_call_form: bool,
    /// Open HTML elements that quote: a mark in them is an example.
    quoting: QuotingElements,
    /// Maximum length of unfinished markup in bytes (`limits.tag`).
    tag_limit: usize,
    /// Maximum length in bytes of a mark held after an open backtick, with its text (`limits.line`).
    line_limit: usize,
}

/// A mark removed from the answer.
pub(super) struct RemovedMark {
    pub(super) candidate: MarkCandidate,
    pub(super) raw: String,
    pub(super) start: Place,
    /// Held text after the mark, which must be read again.
    pub(super) text_after: String,
    /// Set if marks after open backticks in that text are known not to be code.
    pub(super) ignores_backticks: bool,
}

impl AnswerWriter {
    /// Creates a writer; `is_detected` is set if `auto` took the reply for plain text.
    pub(super) fn new(options: &Options, is_detected: bool) -> AnswerWriter {
        AnswerWriter {
            code: CodeTracker::default(),
            comment: CommentTracker::default(),
            late_watch: LateStructureWatch::new(is_detected),
            marker_prefix: Some(MarkerPrefix::default()),
            unfinished_text: String::new(),
            unfinished_at: Place::START,
            held_mark: None,
            ignores_backticks: false,
            last_byte: b'\n',
            follows_removal: false,
            has_text: false,
            is_line_start: true,
            prose: None,
            has_structure: false,
            is_call_form: false,
            quoting: QuotingElements::default(),
            tag_limit: options.limits.tag,
            line_limit: options.limits.line,
        }
    }

    /// Returns whether non-blank text was emitted.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Returns whether a blank directly precedes the current place, with text before it.
    pub(super) fn follows_blank(&self) -> bool {
        self.last_byte == b' '
            && self.has_text
            && self.unfinished_text.is_empty()
            && self.marker_prefix.is_none()
    }

    /// Returns whether the current place begins a line of the answer, or directly follows removed text.
    pub(super) fn is_line_start(&self) -> bool {
        let has_blank_last_line = |text: &str| is_blank(text.rsplit('\n').next().unwrap_or_default());
        let prefix = self.marker_prefix.as_ref().map_or("", MarkerPrefix::text);
        let is_blank_line = (self.is_line_start || prefix.contains('\n')) && has_blank_last_line(prefix);
        self.held_mark.is_none() && self.unfinished_text.is_empty() && (is_blank_line || self.follows_removal)
    }

    /// Returns whether the text so far ends with a line break.
    pub(super) fn ends_with_newline(&self) -> bool {
        self.last_byte == b'\n'
    }

    /// Returns whether only white space was read.
    pub(super) fn is_blank(&self) -> bool {
        self.marker_prefix.as_ref().is_some_and(MarkerPrefix::is_blank)
    }

    pub(super) fn held_bytes(&self) -> usize {
        let prefix_bytes = self.marker_prefix.as_ref().map_or(0, MarkerPrefix::held_bytes);
        prefix_bytes + self.unfinished_text.len() + self.held_mark.as_ref().map_or(0, |held| held.text.len())
    }

    /// Returns whether a mark counts at the current place: it is not in code, a comment or a quotation, nor
    /// after a backtick that is open on its line.
    pub(super) fn admits_mark(&self) -> bool {
        if self.held_mark.is_some() || self.comment.is_open() || self.quoting.is_open() {
            return false;
        }
        let mut code = self.code.clone();
        if let Some(prefix) = &self.marker_prefix {
            code.skim(prefix.text(), STOPS_AT_AMPERSAND);
        }
        code.skim(&self.unfinished_text, STOPS_AT_AMPERSAND);
        code.end_line_start();
        code.context() == CodeContext::Text
    }

    /// Tracks the prose of the answer from here on.
    pub(super) fn track_prose(&mut self) {
        self.prose = Some(ProseTracker::default());
    }

    /// Returns the prose so far, if it is tracked.
    pub(super) fn prose(&mut self) -> Option<&mut ProseTracker> {
        self.prose.as_mut()
    }

    /// Returns the line at the current place.
    pub(super) fn current_line(&self) -> ProseLine {
        let mut line = self.prose.as_ref().map(ProseTracker::line).unwrap_or_default();
        if let Some(prefix) = &self.marker_prefix {
            line.push_text(prefix.text());
        }
        line.push_text(&self.unfinished_text);
        line
    }

    /// Flushes at a boundary that no markup may span.
    pub(super) fn interrupt(&mut self, out: &mut dyn IntentSink) {
        if !self.is_blank() {
            self.end_prefix(out);
        }
        self.emit_unfinished(out);
        self.code.end_line_start();
        self.follows_removal = self.has_text;
    }

    /// Sets whether marks after open backticks are not code; returns the previous value.
    pub(super) fn set_ignores_backticks(&mut self, ignores_backticks: bool) -> bool {
        std::mem::replace(&mut self.ignores_backticks, ignores_backticks)
    }

    /// Returns whether a text token can be emitted at once: it neither begins nor continues markup.
    #[inline]
    pub(super) fn can_pass(&self, text: &str) -> bool {
        // 0xE2 is the first byte of `◁`.
        !matches!(text.as_bytes().first(), Some(b'<' | b'[' | 0xE2)) && self.can_continue()
    }

    /// Returns whether text without any markup can be emitted at once.
    #[inline]
    pub(super) fn can_continue(&self) -> bool {
        !self.follows_removal
            && self.marker_prefix.is_none()
            && self.held_mark.is_none()
            && self.unfinished_text.is_empty()
    }

    /// Emits text of the answer.
    #[inline]
    pub(super) fn push_text(&mut self, text: &str, at: impl FnOnce() -> Place, out: &mut dyn IntentSink) {
        self.push_with_signs(text, None, at, out);
    }

    /// Like [`Self::push_text`]; `masks` mark the signs in the text that matter to Markdown, if they were
    /// computed.
    #[inline]
    pub(super) fn push_with_signs(
        &mut self,
        text: &str,
        masks: Option<SignMasks>,
        at: impl FnOnce() -> Place,
        out: &mut dyn IntentSink,
    ) {
        let markdown = self.markdown_part(text);
        match masks {
            // The masks cover the whole text, not only its Markdown.
            _ if markdown.len() < text.len() => {
                self.code.end_line_start();
                self.code.skim(markdown, STOPS_AT_AMPERSAND);
            }
            Some(masks) => self.code.skim_signs(text, masks),
            None => _ = self.code.skim(text, STOPS_AT_AMPERSAND),
        }
        self.emit_with_signs(text, markdown, masks, at, out);
    }

    /// Returns the suffix of `text` that is Markdown: all of it, or the text after the end of an open
    /// comment, or nothing in the source text of a tool call.
    #[inline]
    fn markdown_part<'t>(&mut self, text: &'t str) -> &'t str {
        if self.is_call_form {
            return "";
        }
        match self.comment.is_open() {
            true => &text[self.comment.push_text(text).unwrap_or(text.len())..],
            false => text,
        }
    }

    /// Emits text; `markdown` is the suffix of it that is Markdown.
    fn emit(&mut self, text: &str, markdown: &str, at: impl FnOnce() -> Place, out: &mut dyn IntentSink) {
        self.emit_with_signs(text, markdown, None, at, out);
    }

    /// Like [`Self::emit`]; `masks` are the masks of [`Self::push_with_signs`].
    #[inline]
    fn emit_with_signs(
        &mut self,
        text: &str,
        markdown: &str,
        masks: Option<SignMasks>,
        at: impl FnOnce() -> Place,
        out: &mut dyn IntentSink,
    ) {
        if let Some(prose) = &mut self.prose {
            if markdown.len() < text.len() {
                prose.skip_value();
            }
            prose.push_text(markdown);
        }
        self.late_watch.push_text(text, at, out);
        let last_line = match masks {
            Some(SignMasks { line_feeds: 0, .. }) => None,
            _ => memchr::memrchr(b'\n', text.as_bytes()).map(|line_feed| line_feed + 1),
        };
        if self.is_line_start || last_line.is_some() {
            self.is_line_start = is_blank(&text[last_line.unwrap_or(0)..]);
        }
        self.last_byte = text.as_bytes().last().copied().unwrap_or(self.last_byte);
        self.has_text = self.has_text || !text.trim().is_empty();
        out.emit_intent(Intent::FinalText(text));
    }

    /// Sets whether the following text is the source text of a tool call, which is not Markdown.
    pub(super) fn set_call_form(&mut self, is_call_form: bool, out: &mut dyn IntentSink) {
        if is_call_form {
            self.end_prefix(out);
        }
        self.emit_unfinished(out);
        self.code.end_line_start();
        self.is_call_form = is_call_form;
    }

    /// Handles the next token of the answer; `candidate` is set if the token is a mark. Returns the mark that
    /// is removed, if any.
    pub(super) fn push_token(
        &mut self,
        token: &MarkupToken<'_>,
        candidate: Option<MarkCandidate>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<RemovedMark> {
        let candidate = candidate.filter(|candidate| self.is_countable(*candidate));
        if self.marker_prefix.is_some() && self.push_prefix(token, candidate.is_some(), at, out) {
            return None;
        }
        // Runs of fence characters before and after removed text must not join.
        if std::mem::take(&mut self.follows_removal)
            && fence::is_mark(self.last_byte)
            && token.raw().as_bytes().first() == Some(&self.last_byte)
        {
            self.push_text(" ", || at, out);
        }
        if self.held_mark.is_some() {
            return self.push_held(token, candidate, at, out);
        }
        match (token, candidate) {
            (_, Some(candidate)) => self.push_mark(candidate, token.raw(), at, out),
            (MarkupToken::Text(text), None) if is_unfinished_markup(text) || self.continues_mark(text) => {
                if self.unfinished_text.len() + text.len() > self.tag_limit {
                    self.emit_unfinished(out);
                    if !is_unfinished_markup(text) {
                        self.push_text(text, || at, out);
                        return None;
                    }
                }
                if self.unfinished_text.is_empty() {
                    self.unfinished_at = at;
                }
                self.unfinished_text.push_str(text);
                None
            }
            (MarkupToken::Text(text), None) => {
                self.emit_unfinished(out);
                self.push_text(text, || at, out);
                None
            }
            (other, None) => {
                self.emit_unfinished(out);
                self.push_markup(other, at, out);
                None
            }
        }
    }

    /// Returns whether text continues a mark that has begun right before it.
    fn continues_mark(&self, text: &str) -> bool {
        let is_short = !self.unfinished_text.is_empty()
            && self.unfinished_text.len() + text.len() <= marks::MAX_MARK_LEN;
        is_short && marks::match_mark([&self.unfinished_text, text].concat().as_bytes()) == MarkMatch::Prefix
    }

    /// Returns whether a mark counts if it is not in code.
    fn is_countable(&self, candidate: MarkCandidate) -> bool {
        let MarkCandidate { mark, .. } = candidate;
        let closes_structure = self.has_structure && mark.is_thinking() && mark.kind == MarkKind::Close;
        !self.comment.is_open() && mark.kind != MarkKind::CloseOwn && !closes_structure
    }

    /// Emits markup unchanged.
    fn push_markup(&mut self, token: &MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        if self.code.context() == CodeContext::Fence
            && matches!(token, MarkupToken::Tag(_) | MarkupToken::CommentOpen)
        {
            // The start of the line is over now, so the line may turn out to be outside the fence.
            self.code.end_line_start();
        }
        let is_outside_code = self.code.context() == CodeContext::Text;
        if let MarkupToken::Tag(tag) = token
            && is_outside_code
            && !self.comment.is_open()
        {
            self.late_watch.push_tag(tag.name, tag.raw, at, out);
            self.quoting.observe_tag(tag);
        }
        let is_comment_open =
            *token == MarkupToken::CommentOpen && is_outside_code && !self.comment.is_open();
        self.push_text(token.raw(), || at, out);
        if is_comment_open {
            self.comment.begin();
        }
    }

    /// Emits, as text, a `<thinking>` that begins the structure of ThinkingML.
    pub(super) fn keep_thinking(&mut self, raw: &str, at: Place, out: &mut dyn IntentSink) {
        self.has_structure = true;
        self.follows_removal = false;
        self.end_prefix(out);
        self.emit_unfinished(out);
        self.late_watch.push_tag("thinking", raw, at, out);
        self.push_text(raw, || at, out);
    }

    /// Handles a mark while no other mark is held.
    fn push_mark(
        &mut self,
        candidate: MarkCandidate,
        raw: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<RemovedMark> {
        if self.unfinished_text.contains(['`', '\n']) {
            // Only quoted attributes contain a backtick or a line break. This case is too rare to handle, so
            // the mark stays text.
            self.emit_unfinished(out);
            self.emit_mark(raw, at, out);
            return None;
        }
        let code_before = self.code.clone();
        if !self.unfinished_text.is_empty() {
            self.code.read_to_stop(&self.unfinished_text, STOPS_AT_AMPERSAND);
        }
        self.code.end_line_start();
        match self.code.context() {
            CodeContext::Fence => {
                self.code = code_before;
                self.emit_unfinished(out);
                self.emit_mark(raw, at, out);
                None
            }
            CodeContext::Undecided(open_runs) if open_runs > 0 && !self.ignores_backticks => {
                let text = std::mem::take(&mut self.unfinished_text);
                let mark_start = text.len();
                let mark_end = mark_start + raw.len();
                let start = if mark_start > 0 { self.unfinished_at } else { at };
                self.track_line_break(raw);
                self.held_mark = Some(HeldMark {
                    candidate,
                    start,
                    text: text + raw,
                    mark_start,
                    mark_end,
                    open_runs,
                    code_before,
                });
                None
            }
            CodeContext::Text | CodeContext::Undecided(_) => {
                self.code = code_before;
                Some(self.remove_mark(candidate, raw, at, String::new(), out))
            }
        }
    }

    /// Emits a mark that stays text.
    fn emit_mark(&mut self, raw: &str, at: Place, out: &mut dyn IntentSink) {
        self.code.end_line_start();
        self.track_line_break(raw);
        self.emit(raw, raw, || at, out);
    }

    /// Tracks the line breaks of a mark; its backticks do not count.
    fn track_line_break(&mut self, raw: &str) {
        if raw.contains('\n') {
            self.code.read_to_stop("\n", STOPS_AT_AMPERSAND);
        }
    }

    /// Removes a mark from the answer. Unfinished markup before it is escaped, so that it cannot continue
    /// after the removed text.
    fn remove_mark(
        &mut self,
        candidate: MarkCandidate,
        raw: &str,
        start: Place,
        text_after: String,
        out: &mut dyn IntentSink,
    ) -> RemovedMark {
        if !self.unfinished_text.is_empty() {
            let (text, at) = (std::mem::take(&mut self.unfinished_text), self.unfinished_at);
            let message = "reasoning is inside unfinished markup";
            let end = at.offset + text.len();
            let report = FindingReport::new(rules::THINK_IN_MARKUP, at, end, message);
            out.report(report.with_repair("escaped"));
            let escaped = text.replace('<', "&lt;").replace('[', "&#91;").replace('◁', "&#9665;");
            self.push_text(&escaped, || at, out);
        }
        self.follows_removal = true;
        RemovedMark {
            candidate,
            raw: raw.to_owned(),
            start,
            text_after,
            ignores_backticks: self.ignores_backticks,
        }
    }

    /// Ends the reply and decides on held text. If a mark is removed, returns it: the caller must read its
    /// `text_after` again and then call this method once more.
    pub(super) fn finish(&mut self, out: &mut dyn IntentSink) -> Option<RemovedMark> {
        if let Some(held_mark) = &self.held_mark {
            let open_runs = held_mark.open_runs;
            match self.code.end_line_start() {
                Some(CodeStop::Closed(run)) if run < open_runs => self.emit_as_code(out),
                _ => {
                    let ignores_backticks = true;
                    return Some(self.remove_held_mark(ignores_backticks, "", out));
                }
            }
        }
        if self.failure_marker().is_none() {
            self.end_prefix(out);
        }
        self.emit_unfinished(out);
        None
    }

    /// Emits unfinished markup as text.
    fn emit_unfinished(&mut self, out: &mut dyn IntentSink) {
        if !self.unfinished_text.is_empty() {
            let (text, at) = (std::mem::take(&mut self.unfinished_text), self.unfinished_at);
            self.push_text(&text, || at, out);
        }
    }
}

/// A mark after an open backtick, and the text after it.
struct HeldMark {
    candidate: MarkCandidate,
    /// Place of the text.
    start: Place,
    /// Unfinished markup before the mark, the mark, and all text after it.
    text: String,
    /// Offset of the mark in the text.
    mark_start: usize,
    /// Offset after the mark in the text.
    mark_end: usize,
    /// Number of backtick runs that were open before the mark: if one of them closes, the mark is code.
    open_runs: usize,
    /// Code structure before the held text.
    code_before: CodeTracker,
}

impl AnswerWriter {
    /// Handles a token while a mark is held. Returns a mark that is removed.
    fn push_held(
        &mut self,
        token: &MarkupToken<'_>,
        candidate: Option<MarkCandidate>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<RemovedMark> {
        let raw = token.raw();
        let held_mark = self.held_mark.as_mut()?;
        if let Some(candidate) = candidate {
            if held_mark.text.len() + raw.len() > self.line_limit {
                let ignores_backticks = true;
                return Some(self.remove_held_mark(ignores_backticks, raw, out));
            }
            if let Some(removed_mark) = self.push_second_mark(candidate, raw, at, out) {
                return removed_mark;
            }
            return None;
        }
        let mut rest = raw;
        while let Some(held_mark) = self.held_mark.as_mut().filter(|_| !rest.is_empty()) {
            // Cut at the limit itself, so that the result does not depend on the chunks.
            let fitting_len = rest.floor_char_boundary(self.line_limit.saturating_sub(held_mark.text.len()));
            if fitting_len == 0 {
                let ignores_backticks = true;
                return Some(self.remove_held_mark(ignores_backticks, rest, out));
            }
            let (read_len, stop) = self.code.read_to_stop(&rest[..fitting_len], STOPS_AT_AMPERSAND);
            held_mark.text.push_str(&rest[..read_len]);
            rest = &rest[read_len..];
            match stop {
                Some(CodeStop::Closed(run)) if run < held_mark.open_runs => self.emit_as_code(out),
                Some(CodeStop::LineEnd) => {
                    let ignores_backticks = false;
                    return Some(self.remove_held_mark(ignores_backticks, rest, out));
                }
                _ => {}
            }
        }
        if !rest.is_empty() {
            let at = at.end_of(&raw[..raw.len() - rest.len()]);
            return self.push_token(&MarkupToken::Text(rest), None, at, out);
        }
        None
    }

    /// Handles another mark while one is held. Returns `None` if the new mark is held too, otherwise the mark
    /// that is removed, if any.
    fn push_second_mark(
        &mut self,
        candidate: MarkCandidate,
        raw: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> Option<Option<RemovedMark>> {
        let code_before = self.code.clone();
        let stop = self.code.end_line_start();
        let held_mark = self.held_mark.as_mut()?;
        if matches!(stop, Some(CodeStop::Closed(run)) if run < held_mark.open_runs) {
            self.code = code_before;
            self.emit_as_code(out);
            return Some(self.push_mark(candidate, raw, at, out));
        }
        held_mark.text.push_str(raw);
        self.track_line_break(raw);
        if raw.contains('\n') {
            let ignores_backticks = false;
            return Some(Some(self.remove_held_mark(ignores_backticks, "", out)));
        }
        None
    }

    /// Emits the held mark as code, with all text after it.
    fn emit_as_code(&mut self, out: &mut dyn IntentSink) {
        if let Some(HeldMark { text, start, .. }) = self.held_mark.take() {
            self.emit(&text, &text, || start, out);
        }
    }

    /// Removes the held mark, which is not code; `rest` follows the held text. With `ignores_backticks`,
    /// later marks in the held text are not code either.
    fn remove_held_mark(
        &mut self,
        ignores_backticks: bool,
        rest: &str,
        out: &mut dyn IntentSink,
    ) -> RemovedMark {
        let held_mark = self.held_mark.take().expect("a mark is held");
        let HeldMark { candidate, start, text, mark_start, mark_end, code_before, .. } = held_mark;
        self.code = code_before;
        text[..mark_start].clone_into(&mut self.unfinished_text);
        self.unfinished_at = start;
        let text_after = [&text[mark_end..], rest].concat();
        let mut removed_mark = self.remove_mark(
            candidate,
            &text[mark_start..mark_end],
            start.end_of(&text[..mark_start]),
            text_after,
            out,
        );
        removed_mark.ignores_backticks |= ignores_backticks;
        removed_mark
    }
}

/// Returns whether a text token is unfinished markup that could continue after removed text.
fn is_unfinished_markup(text: &str) -> bool {
    // Before any other character `<` is plain text.
    let begins_markup = |byte: &u8| matches!(byte, b'/' | b'!' | b'<' | b'|') || byte.is_ascii_alphabetic();
    // The token may also contain text after a failed tag: then it is not unfinished to its end.
    let is_unfinished_to_end = || {
        let mut lexer = MarkupLexer::new("", usize::MAX);
        lexer.push(text, &mut |_, _| {});
        lexer.carry().len() == text.len()
    };
    text.starts_with('<')
        && text.as_bytes().get(1).is_none_or(begins_markup)
        && (text.len() < 2 || is_unfinished_to_end())
        || text.starts_with(['[', '◁']) && marks::match_mark(text.as_bytes()) == MarkMatch::Prefix
}
