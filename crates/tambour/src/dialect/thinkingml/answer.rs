//! The inside of `<final>`: Markdown whose tags are escaped outside code (T-020, T-029).

use super::block::Block;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::code::{CodeFilter, Piece};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;

/// What is known of `<final>`.
pub(super) struct Answer {
    pub(super) at: Place,
    filter: CodeFilter<Marked>,
    /// `<!--` and the white space after it, until it is known whether a queries block begins.
    comment: Option<Comment>,
    /// Whether there is text besides the queries block.
    filled: bool,
    /// Blocks so far, and the last one's place.
    pub(super) blocks: u32,
    pub(super) block_at: (Place, usize),
    pub(super) block_last: bool,
    /// Whether the answer is text without `<final>`.
    pub(super) implied: bool,
    /// Whether `<final>` was found inside a phase.
    pub(super) moved: bool,
    /// Whether faults have been reported before.
    pub(super) quiet: bool,
}

/// `<!--` and the white space after it.
struct Comment {
    raw: String,
    at: Place,
    line_start: bool,
    /// Whether it needs no report.
    quiet: bool,
}

/// What waits in the filter: something that is escaped or reported once it is known not to be code.
#[derive(Clone, Debug)]
struct Marked {
    at: Place,
    len: usize,
    rule: &'static Rule,
    message: String,
    escape: bool,
    /// Whether it has been reported before.
    quiet: bool,
}

impl Answer {
    pub(super) fn new(options: &Options) -> Answer {
        Answer {
            at: Place::START,
            filter: CodeFilter::new(options.limits.line),
            comment: None,
            filled: false,
            blocks: 0,
            block_at: (Place::START, 0),
            block_last: true,
            implied: false,
            moved: false,
            quiet: false,
        }
    }

    pub(super) fn begin(&mut self, at: Place) {
        self.at = at;
    }

    /// Whether `<!--` has come and nothing after it.
    pub(super) fn comment_begins(&self) -> bool {
        self.comment.is_some()
    }

    pub(super) fn held(&self) -> usize {
        self.filter.held() + self.comment.as_ref().map_or(0, |comment| comment.raw.len())
    }
}

impl Reader {
    #[inline]
    pub(super) fn answer_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.block.is_some() {
            return self.block_token(token, at, out);
        }
        if self.answer.comment.is_some() && self.comment_begun(&token, out) {
            return;
        }
        match token {
            Token::Text(text) | Token::Reasoning(text, _) => self.answer_text(text, out),
            Token::CommentOpen => {
                self.in_comment = true;
                self.answer.comment = Some(Comment {
                    raw: token.raw().to_owned(),
                    at,
                    line_start: self.line_blank,
                    quiet: self.answer.quiet,
                });
            }
            Token::CommentClose => {
                self.in_comment = false;
                self.answer_text(token.raw(), out);
            }
            Token::Mark(raw) => {
                let message = "the failure marker stands beside other content".to_owned();
                self.mark(raw, at, rules::PARSING_ERROR_EMBEDDED, message, true, out);
            }
            Token::Tag(tag) => {
                let found = structure::find(tag.name);
                let close = tag.kind == TagKind::Close;
                if let Some((Name::Final, exact)) = found
                    && close
                    && !self.answer.implied
                {
                    self.check_tag(Name::Final, exact, &tag, at, out);
                    self.end_answer(at, out);
                    self.mode = Mode::Outside;
                    return;
                }
                if self.answer.moved && close && matches!(found, Some((Name::Phase | Name::Thinking, _))) {
                    // These close what the answer interrupted.
                    self.thinking.closed_late(if tag.name.eq_ignore_ascii_case("phase") {
                        Name::Phase
                    } else {
                        Name::Thinking
                    });
                    return;
                }
                if self.in_comment {
                    return self.answer_text(tag.raw, out);
                }
                if tag.name == "serp_queries" && tag.kind == TagKind::Open && self.line_blank {
                    self.begin_block("", at, self.line_blank, out);
                    return;
                }
                let (rule, message) = match found {
                    Some((Name::Final, true)) if !close => {
                        (rules::FINAL_DUPLICATE, "a second `<final>` inside the first".to_owned())
                    }
                    Some((_, true)) => {
                        (rules::TAG_MISPLACED, format!("`{}` does not stand in `<final>`", tag.raw))
                    }
                    _ => (rules::UNEXPECTED_TAG, format!("`{}` is not a tag of ThinkingML", tag.name)),
                };
                self.mark(tag.raw, at, rule, message, true, out);
            }
        }
    }

    #[inline]
    pub(super) fn answer_text(&mut self, text: &str, out: &mut dyn Output) {
        let Answer { filter, filled, block_last, blocks, .. } = &mut self.answer;
        if !*filled {
            *filled = !text.trim().is_empty();
        }
        if *block_last && *blocks > 0 {
            *block_last = is_blank(text);
        }
        filter.text(text, &mut |piece| send(piece, out));
    }

    /// Something that is escaped unless it is code.
    fn mark(
        &mut self,
        raw: &str,
        at: Place,
        rule: &'static Rule,
        message: String,
        escape: bool,
        out: &mut dyn Output,
    ) {
        self.answer.filled = true;
        self.answer.block_last = self.answer.blocks == 0;
        let marked =
            Marked { at, len: raw.trim_end().len(), rule, message, escape, quiet: self.answer.quiet };
        self.answer.filter.tag(raw, marked, &mut |piece| send(piece, out));
    }

    /// After `<!--`: a queries block, or an ordinary comment. Whether the token is used up.
    fn comment_begun(&mut self, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let Some(mut comment) = self.answer.comment.take() else { return false };
        match token {
            Token::Text(text)
                if is_blank(text) && comment.raw.len() + text.len() <= self.options.limits.line =>
            {
                comment.raw.push_str(text);
                self.answer.comment = Some(comment);
                return true;
            }
            Token::Tag(tag) if tag.name == "serp_queries" && tag.kind == TagKind::Open => {
                self.begin_block(&comment.raw, comment.at, comment.line_start, out);
                return true;
            }
            _ => {}
        }
        let message = "a comment that is not the queries block".to_owned();
        let quiet = std::mem::replace(&mut self.answer.quiet, comment.quiet);
        self.mark(&comment.raw, comment.at, rules::COMMENT_IN_FINAL, message, false, out);
        self.answer.quiet = quiet;
        false
    }

    fn begin_block(&mut self, opening: &str, at: Place, line_start: bool, out: &mut dyn Output) {
        self.answer.filter.finish(&mut |piece| send(piece, out));
        self.in_comment = false;
        self.block = Some(Block::begin(opening, at, line_start));
    }

    /// The end of the answer, at `</final>` or at the end of the input.
    pub(super) fn end_answer(&mut self, end: Place, out: &mut dyn Output) {
        if self.block.is_some() {
            self.end_block(end, false, out);
        }
        if let Some(Comment { raw, at, .. }) = self.answer.comment.take() {
            // Nothing followed `<!--`: it may have been the start of the queries block.
            let message = "a comment begins and the answer ends";
            self.report(rules::UNCLOSED_ELEMENT, at, raw.trim_end().len(), message, "left out", out);
        }
        self.answer.filter.finish(&mut |piece| send(piece, out));
        self.in_comment = false;
        if self.answer.implied {
            return;
        }
        let at = self.answer.at;
        if !self.answer.filled {
            let report = Report::new(rules::FINAL_EMPTY, at, end.offset, "`<final>` is empty");
            out.report(report.repaired("fallback text"));
        }
        if self.answer.blocks == 0 {
            let rule = if self.options.serp_block_required {
                rules::SERP_BLOCK_MISSING
            } else {
                rules::SERP_BLOCK_OPTIONAL
            };
            let report = Report::new(rule, end, end.offset, "the queries block is missing");
            out.report(report.repaired("no `serp_queries` event"));
        } else if !self.answer.block_last {
            self.block_not_last(out);
        }
    }

    pub(super) fn block_not_last(&self, out: &mut dyn Output) {
        let (at, end) = self.answer.block_at;
        let report = Report::new(
            rules::SERP_BLOCK_NOT_LAST,
            at,
            end,
            "the queries block is not the last of `<final>`",
        );
        out.report(report.repaired("removed from the text, queries kept"));
    }
}

fn send(piece: Piece<'_, Marked>, out: &mut dyn Output) {
    match piece {
        Piece::Text(text) => out.intent(Intent::FinalText(text)),
        Piece::Tag(raw, marked, in_code) => {
            let escape = marked.escape && !in_code;
            let comment_in_code = !marked.escape && in_code;
            if !marked.quiet && !comment_in_code {
                let repair = if escape { "escaped" } else { "kept as it is" };
                let report =
                    Report::new(marked.rule, marked.at, marked.at.offset + marked.len, marked.message);
                let in_code = in_code && marked.rule.rows.contains(&"T-029");
                let report = if in_code { report.row("T-029") } else { report };
                out.report(report.repaired(repair));
            }
            if escape {
                out.intent(Intent::FinalText(&raw.replace('<', "&lt;").replace('>', "&gt;")));
            } else {
                out.intent(Intent::FinalText(raw));
            }
        }
    }
}
