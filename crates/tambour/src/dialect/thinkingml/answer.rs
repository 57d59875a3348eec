//! The content of `<final>`: Markdown whose tags are escaped outside code (T-020, T-029).

use super::block::{Ended, NO_QUERIES};
use super::context::{self, Context};
use super::escape::{Escape, Kind};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;

/// Effect of a token on the answer.
pub(super) enum Outcome {
    /// The answer continues.
    Open,
    /// The answer has ended.
    Over,
    /// The tag closes an element that the answer interrupted.
    Closes(Name),
    /// The tag begins a queries block; `opening` is the text before the tag that belongs to it.
    Block { opening: String, at: Place, line_start: bool },
}

/// State of `<final>`.
pub(super) struct Answer {
    at: Place,
    /// Set while an HTML comment is open; its content is text (T-027).
    in_comment: bool,
    /// Escapes the text of the answer.
    escape: Escape,
    /// `<!--` and the white space after it, held until it is known whether a queries block begins.
    comment: Option<Comment>,
    /// Set once there is text besides the queries block.
    filled: bool,
    /// Number of blocks, the extent of the block that should end `<final>`, and whether it does.
    blocks: u32,
    block_at: (Place, usize),
    block_last: bool,
    /// Extents of the last block and of the last one used, and the number of queries of the latter.
    last_block: Option<(Place, usize)>,
    used_block: Option<(Place, usize)>,
    queries: usize,
    /// End of a `<final>` without a block.
    no_block: Option<Place>,
    /// Set if the answer is text without `<final>`.
    implied: bool,
    /// Set if `<final>` was found inside a phase.
    moved: bool,
    /// Offset before which faults were reported already.
    reported: usize,
}

/// A held `<!--` and the white space after it.
struct Comment {
    raw: String,
    at: Place,
    line_start: bool,
}

impl Answer {
    pub(super) fn new(options: &Options) -> Answer {
        Answer {
            at: Place::START,
            in_comment: false,
            escape: Escape::new(options),
            comment: None,
            filled: false,
            blocks: 0,
            block_at: (Place::START, 0),
            block_last: true,
            last_block: None,
            used_block: None,
            queries: 0,
            no_block: None,
            implied: false,
            moved: false,
            reported: 0,
        }
    }

    /// Begins `<final>`.
    pub(super) fn begin(&mut self, at: Place) {
        self.at = at;
        self.escape.decode();
    }

    /// Makes text without `<final>` the answer.
    pub(super) fn imply(&mut self) {
        self.implied = true;
    }

    /// Announces text whose faults up to an offset were reported already.
    pub(super) fn begin_reported(&mut self, reported: usize) {
        self.reported = reported;
    }

    /// Records that `<final>` is inside a phase.
    pub(super) fn interrupt(&mut self) {
        self.moved = true;
    }

    /// Returns whether `<final>` is inside a phase.
    pub(super) fn interrupts(&self) -> bool {
        self.moved
    }

    /// Ends an open comment, because it began in text that was read a second time.
    pub(super) fn leave_comment(&mut self) {
        self.in_comment = false;
    }

    /// Returns whether the answer has no text.
    pub(super) fn is_empty(&self) -> bool {
        !self.filled
    }

    /// Returns whether `<!--` was read and only white space after it.
    pub(super) fn comment_begins(&self) -> bool {
        self.comment.is_some()
    }

    pub(super) fn held(&self) -> usize {
        let comment = self.comment.as_ref().map_or(0, |comment| comment.raw.len());
        self.escape.held() + comment
    }

    /// Returns whether text can be emitted unchanged, without its place.
    #[inline]
    pub(super) fn passes(&self, text: &str) -> bool {
        self.comment.is_none() && self.escape.passes(text)
    }

    /// Emits text for which [`passes`](Answer::passes) holds.
    #[inline]
    pub(super) fn flow(&mut self, text: &str, out: &mut dyn Output) {
        self.count(text);
        self.escape.flow(text, out);
    }

    fn count(&mut self, text: &str) {
        if !self.filled {
            self.filled = !text.trim().is_empty();
        }
        if self.block_last && self.blocks > 0 {
            self.block_last = is_blank(text);
        }
    }

    /// Reads text of the answer.
    pub(super) fn text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        self.count(text);
        self.escape.text(text, at, out);
    }

    /// Keeps the tag of a block that turned out to be only a tag.
    pub(super) fn unused_block(&mut self, tag: &str, at: Place, out: &mut dyn Output) {
        self.keep(tag, at, Kind::Tag(rules::SERP_BLOCK_FORMAT, NO_QUERIES.to_owned()), out);
    }

    /// Handles the end of a queries block, in the answer or after it.
    pub(super) fn block_ended(&mut self, block: &Ended, inside: bool, out: &mut dyn Output) {
        let Ended { at: this, used, exact } = *block;
        self.blocks += 1;
        let last = self.last_block.replace(this);
        let before = self.used_block;
        if used.is_some() {
            self.used_block = Some(this);
            self.queries = used.unwrap_or_default();
        }
        let report = |rule, (at, end): (Place, usize), message: &str, repair: &str, out: &mut dyn Output| {
            out.report(Report::new(rule, at, end, message).repaired(repair));
        };
        if let Some(last) = last {
            // The finding is placed at the block that is not used.
            let unused = if used.is_some() { before.unwrap_or(last) } else { this };
            let message = "one of several queries blocks";
            report(rules::SERP_BLOCK_DUPLICATE, unused, message, "all removed, the last valid one used", out);
        } else {
            self.block_at = this;
            self.block_last = true;
        }
        if !exact {
            let message = "the queries block is not its three lines";
            report(rules::SERP_BLOCK_FORMAT, this, message, "read as far as it goes, the rest not used", out);
        }
        if !inside {
            self.block_at = this;
            self.block_not_last(out);
        }
    }

    fn block_not_last(&self, out: &mut dyn Output) {
        let (at, end) = self.block_at;
        let message = "the queries block is not the last of `<final>`";
        let report = Report::new(rules::SERP_BLOCK_NOT_LAST, at, end, message);
        let kept = self.queries > 0;
        out.report(report.repaired(if kept {
            "removed from the text, queries kept"
        } else {
            "removed from the text"
        }));
    }

    /// Reports a missing block at the end of the reply, unless a block after `<final>` is used.
    pub(super) fn block_missing(&mut self, context: &Context, out: &mut dyn Output) {
        let Some(end) = self.no_block.take().filter(|_| self.used_block.is_none()) else { return };
        let message = "the queries block is missing";
        if !context.own.block_optional {
            context::report(rules::SERP_BLOCK_MISSING, end, 0, message, "no `serp_queries` event", out);
        } else {
            // An optional block needs no repair.
            out.report(Report::new(rules::SERP_BLOCK_OPTIONAL, end, end.offset, message));
        }
    }

    /// Handles the next token outside of a queries block.
    pub(super) fn token(
        &mut self,
        token: Token<'_>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome {
        if let Some(comment) = self.comment.take()
            && let Some(outcome) = self.comment_begun(comment, &token, context, out)
        {
            return outcome;
        }
        match token {
            Token::Text(text) | Token::Reasoning(text, _) => self.text(text, at, out),
            Token::CommentOpen => {
                self.in_comment = true;
                let line_start = context.line_blank();
                self.comment = Some(Comment { raw: token.raw().to_owned(), at, line_start });
            }
            Token::CommentClose | Token::CommentEnd(_) => {
                self.in_comment = false;
                self.text(token.raw(), at, out);
            }
            Token::Mark(raw) => self.keep(raw, at, Kind::Marker, out),
            Token::Tag(tag) => return self.tag(&tag, at, context, out),
        }
        Outcome::Open
    }

    fn tag(&mut self, tag: &Tag<'_>, at: Place, context: &Context, out: &mut dyn Output) -> Outcome {
        let found = structure::find(tag.name);
        let close = tag.kind == TagKind::Close;
        match found {
            Some((Name::Final, exact)) if close && !self.implied => {
                context::check_tag(Name::Final, exact, tag, at, out);
                self.end(at, out);
                return Outcome::Over;
            }
            // These tags close an element that the answer interrupted.
            Some((name @ (Name::Phase | Name::Thinking), _)) if close && self.moved => {
                return Outcome::Closes(name);
            }
            _ => {}
        }
        let opens = tag.name == "serp_queries" && tag.kind == TagKind::Open;
        if opens && context.line_blank() && !self.in_comment && !context.no_blocks {
            self.in_comment = false;
            return Outcome::Block { opening: String::new(), at, line_start: true };
        }
        let (rule, message) = match found {
            Some((Name::Final, true)) if !close => {
                (rules::FINAL_DUPLICATE, "a second `<final>` inside the first".to_owned())
            }
            Some((_, true)) => (rules::TAG_MISPLACED, format!("`{}` does not stand in `<final>`", tag.raw)),
            _ => (rules::UNEXPECTED_TAG, format!("`{}` is not a tag of ThinkingML", tag.name)),
        };
        let end = close && matches!(found, Some((Name::Final, _)));
        let kind = if end { Kind::End(rule, message) } else { Kind::Tag(rule, message) };
        self.keep(tag.raw, at, kind, out);
        Outcome::Open
    }

    /// Decides after `<!--` whether a queries block or an ordinary comment begins. Returns the outcome if the
    /// token is consumed.
    fn comment_begun(
        &mut self,
        mut comment: Comment,
        token: &Token<'_>,
        context: &Context,
        out: &mut dyn Output,
    ) -> Option<Outcome> {
        match token {
            Token::Text(text)
                if is_blank(text) && comment.raw.len() + text.len() <= context.options.limits.line =>
            {
                comment.raw.push_str(text);
                self.comment = Some(comment);
                Some(Outcome::Open)
            }
            Token::Tag(tag)
                if tag.name == "serp_queries" && tag.kind == TagKind::Open && !context.no_blocks =>
            {
                self.in_comment = false;
                let Comment { raw: opening, at, line_start } = comment;
                Some(Outcome::Block { opening, at, line_start })
            }
            _ => {
                self.keep(&comment.raw, comment.at, Kind::CommentOpen, out);
                None
            }
        }
    }

    /// Emits markup that is escaped or reported unless it is in code.
    fn keep(&mut self, raw: &str, at: Place, kind: Kind, out: &mut dyn Output) {
        // Inside a comment no fault was looked for before.
        let commented = self.in_comment && matches!(kind, Kind::End(..));
        let quiet = at.offset < self.reported && !commented;
        self.filled = true;
        self.block_last = self.blocks == 0;
        self.escape.mark(raw, at, kind, quiet, out);
    }

    /// Ends the answer, at `</final>` or at the end of the input; no queries block is open.
    fn end(&mut self, end: Place, out: &mut dyn Output) {
        if let Some(Comment { raw, at, .. }) = self.comment.take() {
            // Nothing followed `<!--`: it may have been the start of a queries block.
            let message = "a comment begins and the answer ends";
            context::report(rules::UNCLOSED_ELEMENT, at, raw.trim_end().len(), message, "left out", out);
        }
        self.escape.flush(out);
        self.in_comment = false;
        if self.implied {
            return;
        }
        let at = self.at;
        if !self.filled {
            let report = Report::new(rules::FINAL_EMPTY, at, end.offset, "`<final>` is empty");
            out.report(report.repaired("fallback text"));
        }
        if self.blocks == 0 {
            self.no_block = Some(end);
        } else if !self.block_last {
            self.block_not_last(out);
        }
    }

    /// Ends the answer together with the reply.
    pub(super) fn end_of_input(&mut self, end: Place, out: &mut dyn Output) {
        self.end(end, out);
        if !self.implied {
            context::unclosed(Name::Final, self.at, end.offset, out);
        }
    }
}
