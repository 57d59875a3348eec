//! The queries block at the end of `<final>` (T-040 to T-052).

use serde_json::Value;

use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Output, Written};
use crate::finding::Report;
use crate::lex::markup::{TagKind, Token};
use crate::span::Place;

/// A queries block under way: it ends only at its own end marker (T-052).
pub(super) struct Block {
    at: Place,
    /// What opened it before its tag: `<!-- `, or nothing.
    opening: String,
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
    /// Whether brackets closed around something that is not JSON: more text cannot mend that.
    broken: bool,
}

impl Block {
    /// A block whose `<serp_queries>` has been read; `opening` is what stood before it.
    pub(super) fn begin(opening: &str, at: Place, line_start: bool) -> Block {
        Block {
            at,
            opening: opening.to_owned(),
            line_start,
            body: String::new(),
            body_at: None,
            closing: None,
            scan: Scan::default(),
        }
    }

    /// Whether it is the three lines the specification asks for (T-041).
    fn is_exact(&self, ended: bool) -> bool {
        let body = self.body.replace("\r\n", "\n");
        let line = body.strip_prefix('\n').and_then(|body| body.strip_suffix('\n'));
        ended
            && self.line_start
            && self.opening == "<!-- "
            && self.closing.as_ref().is_some_and(|(tag, tail)| tag == "</serp_queries>" && tail == " -->")
            && line.is_some_and(|line| !line.contains('\n') && line.trim() == line)
    }

    /// Whether the body is a whole array or object.
    fn is_complete(&mut self) -> bool {
        let scan = &mut self.scan;
        let mut closed = false;
        for &byte in &self.body.as_bytes()[scan.read..] {
            match byte {
                _ if scan.escaped => scan.escaped = false,
                b'\\' if scan.in_string => scan.escaped = true,
                b'"' => scan.in_string = !scan.in_string,
                _ if scan.in_string => {}
                b'[' | b'{' => scan.depth += 1,
                b']' | b'}' => {
                    scan.depth = scan.depth.saturating_sub(1);
                    closed = true;
                }
                _ => {}
            }
        }
        scan.read = self.body.len();
        if !closed || scan.depth > 0 || scan.in_string || scan.broken {
            return false;
        }
        let complete = serde_json::from_str::<Value>(&self.body).is_ok();
        scan.broken = !complete;
        complete
    }
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
                    self.end_block(at, false, out);
                    return self.token(token, at, out);
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
            return self.give_up_block(rest, at.after(kept), out);
        }
        block.body.push_str(raw);
    }

    /// The block is too long: it is text, like `rest` that stands at `at`.
    fn give_up_block(&mut self, rest: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        let answer = self.mode == Mode::Final;
        let repair = if answer { "kept as text" } else { "left out" };
        self.report(
            rules::LIMIT_EXCEEDED,
            at,
            0,
            "the queries block is longer than `limits.hold`",
            repair,
            out,
        );
        let text = format!("{}<serp_queries>{}", block.opening, block.body);
        if answer {
            self.answer_text(&text.replace('<', "&lt;"), out);
        } else if let Some((rest, at)) = self.outside.push(&text, block.at, false, self.options.limits.hold) {
            self.outside.overflow(rest, at);
        }
        self.token(rest, at, out);
    }

    /// The block ends at `end`; `ended` says whether by its own end marker.
    pub(super) fn end_block(&mut self, end: Place, ended: bool, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        self.in_comment = false;
        let (at, end) = (block.at, end.offset);
        let report = |rule, message: &str, repair: &str, out: &mut dyn Output| {
            out.report(Report::new(rule, at, end, message).repaired(repair));
        };
        self.answer.blocks += 1;
        if self.answer.blocks > 1 {
            let message = "a second queries block";
            report(rules::SERP_BLOCK_DUPLICATE, message, "all removed, the last valid one used", out);
        } else {
            self.answer.block_at = (at, end);
            self.answer.block_last = true;
        }
        if !block.is_exact(ended) {
            let message = "the queries block is not its three lines";
            report(rules::SERP_BLOCK_FORMAT, message, "read as far as it goes", out);
        }
        if self.mode != Mode::Final {
            self.answer.block_at = (at, end);
            self.block_not_last(out);
        }
        let place = block.body_at.unwrap_or(at);
        out.queries(Written::Text(&block.body), place, end);
    }
}
