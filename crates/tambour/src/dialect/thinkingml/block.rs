//! The queries block at the end of `<final>` (T-040 to T-052).

use serde_json::Value;

use super::answer::Kind;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Output, Written};
use crate::finding::Report;
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::{is_blank, is_space};
use crate::span::Place;

/// A queries block under way: it ends only at its own end marker (T-052).
pub(super) struct Block {
    at: Place,
    /// What opened it before its tag: `<!-- `, or nothing.
    opening: String,
    /// Its tag.
    tag: String,
    line_start: bool,
    /// The text between its tags.
    body: String,
    body_at: Option<Place>,
    /// Its closing tag, and what followed until `-->` is complete.
    closing: Option<(String, String)>,
    scan: Scan,
}

/// How far the body has been looked at for the end of its JSON value, so that no byte is looked at twice.
#[derive(Default)]
struct Scan {
    read: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Where the first value ended that began with a bracket.
    end: Option<usize>,
    /// Whether a line has ended, and whether the last one holds text.
    lines: bool,
    text: bool,
    /// Whether brackets closed around something that is not JSON: more text cannot mend that.
    broken: bool,
}

impl Scan {
    /// Reads on; whether a bracket closed.
    fn read(&mut self, body: &str) -> bool {
        let mut closed = false;
        for (at, &byte) in body.as_bytes().iter().enumerate().skip(self.read) {
            self.text |= !byte.is_ascii_whitespace();
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                // No string holds a line break.
                b'\n' => (self.in_string, self.lines, self.text) = (false, true, false),
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    closed = true;
                    if self.depth == 0 {
                        self.end.get_or_insert(at + 1);
                    }
                }
                _ => {}
            }
        }
        self.read = body.len();
        closed
    }
}

impl Block {
    /// A block whose `<serp_queries>` has been read; `opening` is what stood before it.
    pub(super) fn begin(opening: &str, tag: &str, at: Place, line_start: bool) -> Block {
        Block {
            at,
            opening: opening.to_owned(),
            tag: tag.to_owned(),
            line_start,
            body: String::new(),
            body_at: None,
            closing: None,
            scan: Scan::default(),
        }
    }

    /// The reply ends in its closing tag.
    pub(super) fn closed_by(&mut self, half: &str) {
        self.closing = Some((half.to_owned(), String::new()));
    }

    /// Whether it is the three lines the specification asks for (T-041).
    fn is_exact(&self, ended: bool) -> bool {
        let body = self.body.replace("\r\n", "\n");
        let line = body.strip_prefix('\n').and_then(|body| body.strip_suffix('\n'));
        ended
            && self.line_start
            && self.opening == "<!-- "
            && self.tag == "<serp_queries>"
            && self.closing.as_ref().is_some_and(|(tag, tail)| tag == "</serp_queries>" && tail == " -->")
            && line.is_some_and(|line| !line.contains('\n') && line.trim() == line)
    }

    /// Whether the body is a whole array or object.
    fn is_complete(&mut self) -> bool {
        let closed = self.scan.read(&self.body);
        if !closed || self.scan.depth > 0 || self.scan.in_string || self.scan.broken {
            return false;
        }
        let complete = serde_json::from_str::<Value>(&self.body).is_ok();
        self.scan.broken = !complete;
        complete
    }

    /// What of the body opens another block that begins here, if one does; the block itself was left open then.
    fn next_opening(&mut self) -> Option<usize> {
        self.scan.read(&self.body);
        if self.scan.in_string {
            return None;
        }
        let comment = self.body.trim_end_matches(is_space).strip_suffix("<!--").map(str::len);
        comment.or_else(|| (self.scan.lines && !self.scan.text).then_some(self.body.len()))
    }

    /// Bytes at the start of a body without end that are the queries; the rest is text. They are a value in brackets, or
    /// the lines that look like parts of one.
    fn queries_len(&mut self) -> usize {
        self.scan.read(&self.body);
        let start = self.body.len() - self.body.trim_start().len();
        if !begins(&self.body[start..]) {
            return if is_blank(&self.body) { self.body.len() } else { 0 };
        }
        if let Some(end) = self.value_end() {
            let rest = self.body[end..].trim_start();
            return self.body.len() - rest.strip_prefix("-->").map_or(self.body.len() - end, str::len);
        }
        let mut len = start;
        for line in self.body[start..].split_inclusive('\n') {
            let inner = line.trim();
            let goes_on = inner.starts_with([']', '}', ',', '”', '，']) || inner.starts_with("-->");
            if !inner.is_empty() && !begins(inner) && !goes_on {
                break;
            }
            len += line.len();
        }
        len
    }

    /// Where the value in brackets ends that the body begins with.
    fn value_end(&mut self) -> Option<usize> {
        self.scan.read(&self.body);
        self.scan.end.filter(|_| self.body.trim_start().starts_with(['[', '{']))
    }
}

/// Whether a line may begin queries.
fn begins(line: &str) -> bool {
    line.starts_with(['[', '{', '"', '\'', '“', '‘']) || line.starts_with("```")
}

impl Reader {
    /// A token inside the block, or after its closing tag.
    pub(super) fn block_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(block) = &mut self.block else { return };
        block.body_at.get_or_insert(at);
        if let Some((tag, tail)) = &mut block.closing {
            let raw = token.raw();
            for (used, c) in raw.char_indices() {
                let dashes = tail.bytes().rev().take_while(|&b| b == b'-').count();
                if dashes == 2 && c == '>' {
                    tail.push(c);
                    let rest = &raw[used + 1..];
                    let rest_at = at.after(&raw[..=used]);
                    self.end_block(rest_at, true, out);
                    if !rest.is_empty() {
                        self.token(Token::Text(rest), rest_at, out);
                    }
                    return;
                }
                let fits = match c {
                    '-' => dashes < 2,
                    _ => dashes == 0 && c.is_whitespace() && tail.len() < self.options.limits.line,
                };
                if fits {
                    tail.push(c);
                    continue;
                }
                let text = std::mem::take(tag) + tail;
                let rest_at = at.after(&raw[..used]);
                let rest = match token {
                    Token::Text(_) => Token::Text(&raw[used..]),
                    token => token,
                };
                if block.opening.is_empty() || block.is_complete() {
                    // The end marker is missing: the block ends here, and this is text.
                    self.end_block(rest_at, false, out);
                    return self.token(rest, rest_at, out);
                }
                block.body.push_str(&text);
                block.closing = None;
                return self.block_token(rest, rest_at, out);
            }
            return;
        }
        match token {
            Token::Tag(tag) if tag.kind == TagKind::Close => {
                if tag.name == "serp_queries" {
                    block.closing = Some((tag.raw.to_owned(), String::new()));
                    return;
                }
                if matches!(structure::find(tag.name), Some((Name::Final, _))) && self.mode == Mode::Final {
                    self.leave_block(at, out);
                    return self.token(token, at, out);
                }
            }
            Token::Tag(tag) if tag.name == "serp_queries" && tag.kind == TagKind::Open => {
                if let Some(from) = block.next_opening() {
                    return self.next_block(from, tag.raw, at, out);
                }
            }
            Token::CommentClose if !block.opening.is_empty() && block.is_complete() => {
                self.end_block(at.after(token.raw()), false, out);
                return;
            }
            _ => {}
        }
        let raw = token.raw();
        let room = self.options.limits.hold.saturating_sub(block.body.len());
        if raw.len() > room {
            // Text is cut at the limit itself, so that the result does not depend on the chunks.
            let (kept, rest) = match token {
                Token::Text(text) => {
                    let (kept, rest) = text.split_at(text.floor_char_boundary(room));
                    (kept, Token::Text(rest))
                }
                token => ("", token),
            };
            block.body.push_str(kept);
            return self.overflow(rest, at.after(kept), out);
        }
        block.body.push_str(raw);
    }

    /// Another block begins at its tag, where the body has text up to `from`: the one under way was left open.
    fn next_block(&mut self, from: usize, tag: &str, at: Place, out: &mut dyn Output) {
        let Some(block) = &mut self.block else { return };
        let opening = block.body.split_off(from);
        let line_start = block.body.ends_with('\n');
        // Counted back from the tag where that is possible: something may have been taken out of the body.
        let start = at.before(&opening).unwrap_or_else(|| block.body_at.unwrap_or(at).after(&block.body));
        block.scan = Scan::default();
        self.leave_block(start, out);
        let next = Block::begin(&opening, tag, start, line_start);
        if self.block.is_none() {
            self.block = Some(next);
        }
    }

    /// The block is too long.
    fn overflow(&mut self, rest: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(block) = &mut self.block else { return };
        let message = "the queries block is longer than `limits.hold`";
        if block.value_end().is_some() {
            self.report(rules::LIMIT_EXCEEDED, at, 0, message, "it ends after its first value", out);
            self.leave_block(at, out);
        } else {
            let answer = self.mode == Mode::Final;
            let repair = if answer { "kept as text" } else { "left out" };
            self.report(rules::LIMIT_EXCEEDED, at, 0, message, repair, out);
            self.give_up_block(out);
        }
        self.token(rest, at, out);
    }

    /// The block is text.
    fn give_up_block(&mut self, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        let text = format!("{}{}{}", block.opening, block.tag, block.body);
        if self.mode == Mode::Final {
            self.answer.text(&text.replace('<', "&lt;"), block.at, out);
        } else if let Some((rest, at)) = self.outside.push(&text, block.at, false, self.options.limits.hold) {
            self.outside.overflow(rest, at);
        }
    }

    /// The block is over at `end` without its closing tag: what of it is no queries is text.
    pub(super) fn leave_block(&mut self, end: Place, out: &mut dyn Output) {
        let Some(block) = &mut self.block else { return };
        if block.closing.is_some() {
            return self.end_block(end, false, out);
        }
        let len = block.queries_len();
        let rest = block.body.split_off(len);
        let at = block.body_at.unwrap_or(end);
        let rest_at = at.after(&block.body);
        if len == 0 {
            self.no_block(out);
        } else if is_blank(&rest) {
            return self.end_block(end, false, out);
        } else {
            self.end_block(rest_at, false, out);
        }
        self.answer.no_blocks = true;
        self.replay(&rest, rest_at, out);
        self.answer.no_blocks = false;
        self.in_comment = false;
    }

    /// What began like a block holds no queries: it is only markup.
    fn no_block(&mut self, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        self.in_comment = false;
        let bytes = block.opening.len() + block.tag.len();
        let message = "`<serp_queries>` is not closed and holds no queries";
        if !block.opening.is_empty() {
            self.report(rules::SERP_BLOCK_FORMAT, block.at, bytes, message, "left out", out);
        } else if self.mode == Mode::Final {
            self.mark(&block.tag, block.at, Kind::Tag(rules::SERP_BLOCK_FORMAT, message.to_owned()), out);
        } else if let Some((rest, at)) =
            self.outside.push(&block.tag, block.at, true, self.options.limits.hold)
        {
            self.outside.overflow(rest, at);
        }
    }

    /// The block ends at `end`; `ended` says whether by its own end marker.
    pub(super) fn end_block(&mut self, end: Place, ended: bool, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        self.in_comment = false;
        let this = (block.at, end.offset);
        // What is found in the queries stands there, not in the opening line.
        let body = block.body.trim();
        let used = match block.body_at.filter(|_| !body.is_empty()) {
            Some(at) => {
                let at = at.after(&block.body[..block.body.len() - block.body.trim_start().len()]);
                out.queries(Written::Text(body), at, at.offset + body.len())
            }
            None => out.queries(Written::Text(body), block.at, end.offset),
        };
        let answer = &mut self.answer;
        answer.blocks += 1;
        let last = answer.last_block.replace(this);
        let before = answer.used_block;
        if used.is_some() {
            answer.used_block = Some(this);
            answer.queries = used.unwrap_or_default();
        }
        let report = |rule, (at, end): (Place, usize), message: &str, repair: &str, out: &mut dyn Output| {
            out.report(Report::new(rule, at, end, message).repaired(repair));
        };
        if let Some(last) = last {
            // The finding stands where nothing is used.
            let unused = if used.is_some() { before.unwrap_or(last) } else { this };
            let message = "one of several queries blocks";
            report(rules::SERP_BLOCK_DUPLICATE, unused, message, "all removed, the last valid one used", out);
        } else {
            self.answer.block_at = this;
            self.answer.block_last = true;
        }
        if !block.is_exact(ended) {
            let message = "the queries block is not its three lines";
            report(rules::SERP_BLOCK_FORMAT, this, message, "read as far as it goes, the rest not used", out);
        }
        if self.mode != Mode::Final {
            self.answer.block_at = this;
            self.block_not_last(out);
        }
    }
}
