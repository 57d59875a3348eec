//! The queries block at the end of `<final>` (T-040 to T-052): a JSON list of search queries in
//! `<!-- <serp_queries>` … `</serp_queries> -->`.

use serde_json::Value;

use super::context::{self, ReaderContext};
use super::rules;
use super::structure::{self, ThinkingMlElement};
use crate::dialect::{IntentSink, RawQueries};
use crate::lex::markup::{MarkupToken, TagKind};
use crate::lex::space::{is_blank, is_space};
use crate::span::{Extent, Place};

/// Effect of a token on a block.
pub(super) enum QueriesBlockOutcome<'a> {
    /// The block continues.
    Open,
    /// The block ended at `end`, with or without its end marker. `rest` is unread.
    Ended { end: Place, has_end_marker: bool, rest: Option<(MarkupToken<'a>, Place)> },
    /// The block was left open at `end`. `rest` is the token that shows this; it is unread.
    LeftOpen { end: Place, rest: (MarkupToken<'a>, Place) },
    /// The block was left open where another one begins.
    Next { end: Place, next: QueriesBlock },
    /// The block is too long and becomes text; `rest` is unread.
    Text { rest: (MarkupToken<'a>, Place) },
}

/// A finished block.
pub(super) struct FinishedBlock {
    /// Extent of the block.
    pub(super) extent: Extent,
    /// Number of queries used; `None` if the block holds no list.
    pub(super) query_count: Option<usize>,
    /// Set if the block has exactly the three lines of the specification (T-041).
    pub(super) is_exact: bool,
}

/// Message for a block that is only markup.
pub(super) const NO_QUERIES_MESSAGE: &str = "`<serp_queries>` is not closed and holds no queries";

/// An open queries block. It ends at its end marker `</serp_queries> -->`, or at a token that shows that the
/// marker is missing, but never at a `-->` or `<` inside a query (T-052).
pub(super) struct QueriesBlock {
    /// Place of the opening, or of the tag if there is no opening.
    start: Place,
    /// Text before the tag that belongs to the block: `<!-- `, or nothing.
    opening: String,
    /// Opening tag.
    tag: String,
    /// Set if the block begins a line.
    is_line_start: bool,
    /// Text between the tags.
    body: String,
    /// Place of the first token after the opening tag.
    body_start: Option<Place>,
    /// Closing tag, and the text after it until `-->` is complete.
    closing: Option<(String, String)>,
    scan: QueriesScan,
}

/// Progress of the search for the end of the JSON value in the body. Each byte is read once.
#[derive(Default)]
struct QueriesScan {
    /// Bytes of the body read so far.
    read_len: usize,
    /// Number of open brackets.
    depth: usize,
    is_in_string: bool,
    /// Set after a backslash in a string.
    is_escaped: bool,
    /// End of the first value that began with a bracket.
    value_end: Option<usize>,
    /// Set once a line has ended.
    has_line_end: bool,
    /// Set if the last line holds text.
    has_line_text: bool,
    /// Set if brackets closed around text that is not JSON: more text cannot repair that.
    is_broken: bool,
}

impl QueriesScan {
    /// Reads the new part of the body; returns whether a bracket closed.
    fn read(&mut self, body: &str) -> bool {
        let mut is_closed = false;
        for (at, &byte) in body.as_bytes().iter().enumerate().skip(self.read_len) {
            self.has_line_text |= !byte.is_ascii_whitespace();
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                // No string contains a line break.
                b'\n' => (self.is_in_string, self.has_line_end, self.has_line_text) = (false, true, false),
                b'"' => self.is_in_string = !self.is_in_string,
                _ if self.is_in_string => {}
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    is_closed = true;
                    if self.depth == 0 {
                        self.value_end.get_or_insert(at + 1);
                    }
                }
                _ => {}
            }
        }
        self.read_len = body.len();
        is_closed
    }
}

impl QueriesBlock {
    /// Creates a block after its `<serp_queries>`; `opening` is the text of the block before the tag, and
    /// `start` the place where the block begins.
    pub(super) fn begin(opening: &str, tag: &str, start: Place, is_line_start: bool) -> QueriesBlock {
        QueriesBlock {
            start,
            opening: opening.to_owned(),
            tag: tag.to_owned(),
            is_line_start,
            body: String::new(),
            body_start: None,
            closing: None,
            scan: QueriesScan::default(),
        }
    }

    /// Records a closing tag that the end of the reply truncated.
    pub(super) fn set_closing(&mut self, partial_tag: &str) {
        self.closing = Some((partial_tag.to_owned(), String::new()));
    }

    /// Returns whether the block has exactly the three lines of the specification (T-041).
    fn is_exact(&self, has_end_marker: bool) -> bool {
        let body = self.body.replace("\r\n", "\n");
        let body_line = body.strip_prefix('\n').and_then(|body| body.strip_suffix('\n'));
        has_end_marker
            && self.is_line_start
            && self.opening == "<!-- "
            && self.tag == "<serp_queries>"
            && self.closing.as_ref().is_some_and(|(tag, tail)| tag == "</serp_queries>" && tail == " -->")
            && body_line.is_some_and(|line| !line.contains('\n') && line.trim() == line)
    }

    /// Returns whether the body is a complete array or object. Parses it only if a bracket has closed since
    /// the last scan, and returns false otherwise.
    fn is_complete(&mut self) -> bool {
        let is_closed = self.scan.read(&self.body);
        if !is_closed || self.scan.depth > 0 || self.scan.is_in_string || self.scan.is_broken {
            return false;
        }
        let is_json = serde_json::from_str::<Value>(&self.body).is_ok();
        self.scan.is_broken = !is_json;
        is_json
    }

    /// Returns the index in the body where the opening of another block starts, or `None` if no other block
    /// begins here. Another block shows that this one was left open.
    fn find_next_opening(&mut self) -> Option<usize> {
        self.scan.read(&self.body);
        if self.scan.is_in_string {
            return None;
        }
        let comment_start = self.body.trim_end_matches(is_space).strip_suffix("<!--").map(str::len);
        // Without a comment the tag must begin a line.
        let is_at_line_start = self.scan.has_line_end && !self.scan.has_line_text;
        comment_start.or_else(|| is_at_line_start.then_some(self.body.len()))
    }

    /// Returns the length of the queries at the start of an unclosed body; the rest is text. Queries are a
    /// value in brackets, or the lines that look like parts of one.
    fn queries_len(&mut self) -> usize {
        self.scan.read(&self.body);
        let start = self.body.len() - self.body.trim_start().len();
        if !may_begin_queries(&self.body[start..]) {
            return if is_blank(&self.body) { self.body.len() } else { 0 };
        }
        if let Some(end) = self.value_end() {
            // A `-->` after the value belongs to the block.
            let after_value = self.body[end..].trim_start();
            let text_len = after_value.strip_prefix("-->").map_or(self.body.len() - end, str::len);
            return self.body.len() - text_len;
        }
        let mut len = start;
        for line in self.body[start..].split_inclusive('\n') {
            let inner = line.trim();
            let continues_list = inner.starts_with([']', '}', ',', '”', '，']) || inner.starts_with("-->");
            if !inner.is_empty() && !may_begin_queries(inner) && !continues_list {
                break;
            }
            len += line.len();
        }
        len
    }

    /// Returns the end of the bracketed value at the start of the body.
    fn value_end(&mut self) -> Option<usize> {
        self.scan.read(&self.body);
        self.scan.value_end.filter(|_| self.body.trim_start().starts_with(['[', '{']))
    }

    /// Handles a token inside the block, or after its closing tag. `is_in_answer` is set if the
    /// block is in `<final>`.
    pub(super) fn push_token<'a>(
        &mut self,
        token: MarkupToken<'a>,
        at: Place,
        is_in_answer: bool,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> QueriesBlockOutcome<'a> {
        self.body_start.get_or_insert(at);
        if self.closing.is_some() {
            return self.push_closing_token(token, at, is_in_answer, context, out);
        }
        match token {
            MarkupToken::Tag(tag) if tag.kind == TagKind::Close => {
                if tag.name == "serp_queries" {
                    self.closing = Some((tag.raw.to_owned(), String::new()));
                    return QueriesBlockOutcome::Open;
                }
                if is_in_answer
                    && matches!(structure::find_element(tag.name), Some((ThinkingMlElement::Final, _)))
                {
                    return QueriesBlockOutcome::LeftOpen { end: at, rest: (token, at) };
                }
            }
            MarkupToken::Tag(tag) if tag.name == "serp_queries" && tag.kind == TagKind::Open => {
                if let Some(from) = self.find_next_opening() {
                    return self.begin_next(from, tag.raw, at);
                }
            }
            MarkupToken::CommentClose if !self.opening.is_empty() && self.is_complete() => {
                return QueriesBlockOutcome::Ended {
                    end: at.end_of(token.raw()),
                    has_end_marker: false,
                    rest: None,
                };
            }
            _ => {}
        }
        let raw = token.raw();
        let room = context.options.limits.hold.saturating_sub(self.body.len());
        if raw.len() > room {
            // Text is cut at the limit itself, so that the result does not depend on the chunks.
            let (fitting_text, rest) = match token {
                MarkupToken::Text(text) => {
                    let (fitting_text, rest) = text.split_at(text.floor_char_boundary(room));
                    (fitting_text, MarkupToken::Text(rest))
                }
                token => ("", token),
            };
            self.body.push_str(fitting_text);
            return self.overflow((rest, at.end_of(fitting_text)), is_in_answer, out);
        }
        self.body.push_str(raw);
        QueriesBlockOutcome::Open
    }

    /// Handles a token after the closing tag.
    fn push_closing_token<'a>(
        &mut self,
        token: MarkupToken<'a>,
        at: Place,
        is_in_answer: bool,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> QueriesBlockOutcome<'a> {
        let Some((tag, tail)) = &mut self.closing else { return QueriesBlockOutcome::Open };
        let raw = token.raw();
        for (index, c) in raw.char_indices() {
            // The tail is white space, then up to two dashes, then `>`.
            let dashes = tail.bytes().rev().take_while(|&b| b == b'-').count();
            if dashes == 2 && c == '>' {
                tail.push(c);
                let rest = &raw[index + 1..];
                let end = at.end_of(&raw[..=index]);
                let rest = (!rest.is_empty()).then_some((MarkupToken::Text(rest), end));
                return QueriesBlockOutcome::Ended { end, has_end_marker: true, rest };
            }
            let is_accepted = match c {
                '-' => dashes < 2,
                _ => dashes == 0 && c.is_whitespace() && tail.len() < context.options.limits.line,
            };
            if is_accepted {
                tail.push(c);
                continue;
            }
            let closing_text = std::mem::take(tag) + tail;
            let end = at.end_of(&raw[..index]);
            let rest = match token {
                MarkupToken::Text(_) => MarkupToken::Text(&raw[index..]),
                token => token,
            };
            if self.opening.is_empty() || self.is_complete() {
                // The end marker is missing: the block ends here, and the token is text.
                return QueriesBlockOutcome::Ended { end, has_end_marker: false, rest: Some((rest, end)) };
            }
            // The body is not complete: the closing tag belongs to it.
            self.body.push_str(&closing_text);
            self.closing = None;
            return self.push_token(rest, end, is_in_answer, context, out);
        }
        QueriesBlockOutcome::Open
    }

    /// Ends this unclosed block where the tag of another one begins. `from` is the index in the body where
    /// the opening of the other block starts.
    fn begin_next<'a>(&mut self, from: usize, tag: &str, at: Place) -> QueriesBlockOutcome<'a> {
        let opening = self.body.split_off(from);
        let is_line_start = self.body.ends_with('\n');
        // Counted back from the tag if possible, since the body may lack text of the reply.
        let end = at.start_of(&opening).unwrap_or_else(|| self.body_start.unwrap_or(at).end_of(&self.body));
        self.scan = QueriesScan::default();
        QueriesBlockOutcome::Next { end, next: QueriesBlock::begin(&opening, tag, end, is_line_start) }
    }

    /// Handles a block that exceeds the limit.
    fn overflow<'a>(
        &mut self,
        rest: (MarkupToken<'a>, Place),
        is_in_answer: bool,
        out: &mut dyn IntentSink,
    ) -> QueriesBlockOutcome<'a> {
        let end = rest.1;
        let message = "the queries block is longer than `limits.hold`";
        let has_value = self.value_end().is_some();
        let repair = match has_value {
            true => "it ends after its first value",
            false if is_in_answer => "kept as text",
            false => "left out",
        };
        context::report_at(rules::LIMIT_EXCEEDED, end, 0, message, repair, out);
        if has_value {
            QueriesBlockOutcome::LeftOpen { end, rest }
        } else {
            QueriesBlockOutcome::Text { rest }
        }
    }

    /// Converts the block to text, with its place.
    pub(super) fn into_text(self) -> (String, Place) {
        (format!("{}{}{}", self.opening, self.tag, self.body), self.start)
    }

    /// Removes the part that is not queries from a block left open at `end`, and returns the part with its
    /// place: it is text, and the block ends before it. Returns `None` if the whole body is queries, or if
    /// the block has its closing tag.
    pub(super) fn split_off_text(&mut self, end: Place) -> Option<(String, Place)> {
        if self.closing.is_some() {
            return None;
        }
        let len = self.queries_len();
        let text = self.body.split_off(len);
        let at = self.body_start.unwrap_or(end).end_of(&self.body);
        (len == 0 || !is_blank(&text)).then_some((text, at))
    }

    /// Returns whether the block has only markup, without queries.
    pub(super) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Discards a block without queries. If it has no `<!--`, its tag is text and is returned with its place;
    /// otherwise the block is reported.
    pub(super) fn discard(self, out: &mut dyn IntentSink) -> Option<(String, Place)> {
        if self.opening.is_empty() {
            return Some((self.tag, self.start));
        }
        let bytes = self.opening.len() + self.tag.len();
        context::report_at(rules::SERP_BLOCK_FORMAT, self.start, bytes, NO_QUERIES_MESSAGE, "left out", out);
        None
    }

    /// Ends the block at `end`, with or without its end marker, and emits its queries.
    pub(super) fn finish(self, end: Place, has_end_marker: bool, out: &mut dyn IntentSink) -> FinishedBlock {
        // Findings about the queries are placed at the queries, not at the opening line.
        let body = self.body.trim();
        let query_count = match self.body_start.filter(|_| !body.is_empty()) {
            Some(at) => {
                let at = at.end_of(&self.body[..self.body.len() - self.body.trim_start().len()]);
                out.emit_queries(RawQueries::Text(body), at, at.offset + body.len())
            }
            None => out.emit_queries(RawQueries::Text(body), self.start, end.offset),
        };
        let is_exact = self.is_exact(has_end_marker);
        let extent = Extent { place: self.start, end: end.offset };
        FinishedBlock { extent, query_count, is_exact }
    }
}

/// Returns whether a line may begin queries.
fn may_begin_queries(line: &str) -> bool {
    line.starts_with(['[', '{', '"', '\'', '“', '‘']) || line.starts_with("```")
}
