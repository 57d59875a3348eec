//! The queries block at the end of `<final>` (T-040 to T-052).

use serde_json::Value;

use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output, Written};
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

    fn is_complete(&self) -> bool {
        serde_json::from_str::<Value>(&self.body).is_ok()
    }
}

impl Reader {
    /// A token inside the block, or after its closing tag.
    pub(super) fn block_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(block) = &mut self.block else { return };
        block.body_at.get_or_insert(at);
        if let Some((tag, tail)) = &mut block.closing {
            let raw = token.raw();
            let mut used = 0;
            for c in raw.chars() {
                tail.push(c);
                let after = tail.trim_start();
                if after == "-->" {
                    let rest = &raw[used + c.len_utf8()..];
                    let rest_at = at.after(&raw[..used + c.len_utf8()]);
                    self.end_block(rest_at, true, out);
                    if !rest.is_empty() {
                        self.token(Token::Text(rest), rest_at, out);
                    }
                    return;
                }
                if !"-->".starts_with(after) {
                    tail.pop();
                    let text = std::mem::take(tag) + tail;
                    if block.opening.is_empty() || block.is_complete() {
                        // The end marker is missing: the block ends here, and this is text.
                        let text_at = at.after(&raw[..used]);
                        self.end_block(text_at, false, out);
                        let rest = match token {
                            Token::Text(_) => Token::Text(&raw[used..]),
                            token => token,
                        };
                        return self.token(rest, text_at, out);
                    }
                    block.body.push_str(&text);
                    block.closing = None;
                    let rest = &raw[used..];
                    return match token {
                        Token::Text(_) => self.block_token(Token::Text(rest), at.after(&raw[..used]), out),
                        token => self.block_token(token, at, out),
                    };
                }
                used += c.len_utf8();
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
        if block.body.len() + token.raw().len() > self.options.limits.hold {
            let message = "the queries block is longer than `limits.hold`";
            self.report(rules::LIMIT_EXCEEDED, at, 0, message, "kept as text", out);
            let Some(block) = self.block.take() else { return };
            let text = format!("{}<serp_queries>{}{}", block.opening, block.body, token.raw());
            out.intent(Intent::FinalText(&text.replace('<', "&lt;")));
            return;
        }
        block.body.push_str(token.raw());
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
