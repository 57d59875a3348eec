//! The answer: the content of `<final>`, or text without `<final>` that takes its place. It is Markdown whose
//! tags are escaped outside code (T-020, T-029). The queries block in it, a comment with search queries, is
//! read by `block`.

use super::block::{FinishedBlock, NO_QUERIES_MESSAGE};
use super::context::{self, ReaderContext};
use super::escape::{AnswerEscape, MarkupKind};
use super::rules;
use super::structure::{self, ThinkingMlElement};
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::{Extent, Place};

/// Effect of a token on the answer.
pub(super) enum FinalOutcome {
    /// The answer continues.
    Open,
    /// The answer has ended.
    Ended,
    /// The tag closes an element that the answer interrupted.
    ClosesInterrupted(ThinkingMlElement),
    /// The tag begins a queries block. `opening` is the text of the block before the tag, and `at` the place
    /// where the block begins; `is_line_start` is set if the block begins a line.
    Block { opening: String, at: Place, is_line_start: bool },
}

/// State of `<final>`.
pub(super) struct FinalReader {
    /// Place of the tag.
    start: Place,
    /// Set while an HTML comment is open; its content is text (T-027).
    is_in_comment: bool,
    /// Escapes the text of the answer.
    escape: AnswerEscape,
    /// `<!--` and the white space after it, held until it is known whether a queries block begins.
    comment: Option<HeldCommentOpen>,
    /// Set once there is text besides the queries block.
    has_text: bool,
    /// Number of queries blocks.
    block_count: u32,
    /// Extent of the first block, which should end `<final>`, or of a block after `<final>`.
    block_extent: Extent,
    /// Set if only white space follows the first block in `<final>`.
    is_block_last: bool,
    /// Extent of the last block.
    last_block: Option<Extent>,
    /// Extent of the last block whose queries are used.
    used_block: Option<Extent>,
    /// Number of queries in `used_block`.
    query_count: usize,
    /// End of a `<final>` without a block, until the missing block has been reported.
    blockless_end: Option<Place>,
    /// Set if the answer is text without `<final>`.
    is_implied: bool,
    /// Set if `<final>` was found inside a phase, or in an open `<thinking>`.
    is_interrupting: bool,
    /// Offset before which faults were reported already.
    reported_end: usize,
}

/// A held `<!--` and the white space after it.
struct HeldCommentOpen {
    /// The held text as written.
    raw: String,
    /// Place of the `<!--`.
    at: Place,
    /// Set if the `<!--` begins a line.
    is_line_start: bool,
}

impl FinalReader {
    pub(super) fn new(options: &Options) -> FinalReader {
        FinalReader {
            start: Place::START,
            is_in_comment: false,
            escape: AnswerEscape::new(options),
            comment: None,
            has_text: false,
            block_count: 0,
            block_extent: Extent::default(),
            is_block_last: true,
            last_block: None,
            used_block: None,
            query_count: 0,
            blockless_end: None,
            is_implied: false,
            is_interrupting: false,
            reported_end: 0,
        }
    }

    /// Begins `<final>`.
    pub(super) fn begin(&mut self, at: Place) {
        self.start = at;
        self.escape.decode_entities();
    }

    /// Makes text without `<final>` the answer.
    pub(super) fn imply(&mut self) {
        self.is_implied = true;
    }

    /// Announces text that is read a second time: faults before this offset were reported already.
    pub(super) fn set_reported_end(&mut self, reported_end: usize) {
        self.reported_end = reported_end;
    }

    /// Records that `<final>` is inside a phase or an open `<thinking>`.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupting = true;
    }

    /// Returns whether `<final>` is inside a phase or an open `<thinking>`.
    pub(super) fn is_interrupting(&self) -> bool {
        self.is_interrupting
    }

    /// Ends an open comment. It began in text that was read a second time, and must not continue after that
    /// text.
    pub(super) fn leave_comment(&mut self) {
        self.is_in_comment = false;
    }

    /// Returns whether the answer has no text.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_text
    }

    /// Returns whether `<!--` was read and only white space after it.
    pub(super) fn has_held_comment(&self) -> bool {
        self.comment.is_some()
    }

    pub(super) fn held_bytes(&self) -> usize {
        let comment = self.comment.as_ref().map_or(0, |comment| comment.raw.len());
        self.escape.held_bytes() + comment
    }

    /// Returns whether text can be emitted unchanged, without its place.
    #[inline]
    pub(super) fn can_pass(&self, text: &str) -> bool {
        self.comment.is_none() && self.escape.can_pass(text)
    }

    /// Emits text for which [`can_pass`](FinalReader::can_pass) holds.
    #[inline]
    pub(super) fn pass(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.track_text(text);
        self.escape.pass(text, out);
    }

    /// Records that text follows what was read so far.
    fn track_text(&mut self, text: &str) {
        if !self.has_text {
            self.has_text = !text.trim().is_empty();
        }
        if self.is_block_last && self.block_count > 0 {
            self.is_block_last = is_blank(text);
        }
    }

    /// Reads text of the answer.
    pub(super) fn push_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        self.track_text(text);
        self.escape.push_text(text, at, out);
    }

    /// Keeps, as text, the tag of a block that turned out to be only a tag.
    pub(super) fn keep_block_tag(&mut self, tag: &str, at: Place, out: &mut dyn IntentSink) {
        self.keep_markup(
            tag,
            at,
            MarkupKind::Tag(rules::SERP_BLOCK_FORMAT, NO_QUERIES_MESSAGE.to_owned()),
            out,
        );
    }

    /// Handles the end of a queries block, in the answer or after it.
    pub(super) fn finish_block(
        &mut self,
        block: &FinishedBlock,
        is_inside_final: bool,
        out: &mut dyn IntentSink,
    ) {
        let FinishedBlock { extent, query_count, is_exact } = *block;
        self.block_count += 1;
        let previous_block = self.last_block.replace(extent);
        let previous_used_block = self.used_block;
        if query_count.is_some() {
            self.used_block = Some(extent);
            self.query_count = query_count.unwrap_or_default();
        }
        let report = |rule, extent: Extent, message: &str, repair: &str, out: &mut dyn IntentSink| {
            out.report(FindingReport::new(rule, extent.place, extent.end, message).with_repair(repair));
        };
        if let Some(previous_block) = previous_block {
            // The finding is placed at the block that is not used.
            let unused_extent =
                if query_count.is_some() { previous_used_block.unwrap_or(previous_block) } else { extent };
            let message = "one of several queries blocks";
            report(
                rules::SERP_BLOCK_DUPLICATE,
                unused_extent,
                message,
                "all removed, the last valid one used",
                out,
            );
        } else {
            self.block_extent = extent;
            self.is_block_last = true;
        }
        if !is_exact {
            let message = "the queries block is not written as three lines";
            report(
                rules::SERP_BLOCK_FORMAT,
                extent,
                message,
                "read as far as it goes, the rest not used",
                out,
            );
        }
        if !is_inside_final {
            self.block_extent = extent;
            self.report_block_not_last(out);
        }
    }

    /// Reports that something follows the queries block.
    fn report_block_not_last(&self, out: &mut dyn IntentSink) {
        let Extent { place: at, end } = self.block_extent;
        let message = "the queries block is not at the end of `<final>`";
        let report = FindingReport::new(rules::SERP_BLOCK_NOT_LAST, at, end, message);
        let has_queries = self.query_count > 0;
        out.report(report.with_repair(if has_queries {
            "removed from the text, queries kept"
        } else {
            "removed from the text"
        }));
    }

    /// Reports a missing block at the end of the reply, unless a block after `<final>` is used.
    pub(super) fn report_missing_block(&mut self, context: &ReaderContext, out: &mut dyn IntentSink) {
        let Some(end) = self.blockless_end.take().filter(|_| self.used_block.is_none()) else { return };
        let message = "the queries block is missing";
        if !context.dialect_options.is_block_optional {
            context::report_at(rules::SERP_BLOCK_MISSING, end, 0, message, "no `serp_queries` event", out);
        } else {
            // An optional block needs no repair.
            out.report(FindingReport::new(rules::SERP_BLOCK_OPTIONAL, end, end.offset, message));
        }
    }

    /// Handles the next token outside of a queries block.
    pub(super) fn push_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> FinalOutcome {
        if let Some(comment) = self.comment.take()
            && let Some(outcome) = self.resolve_comment(comment, &token, context, out)
        {
            return outcome;
        }
        match token {
            MarkupToken::Text(text) | MarkupToken::Reasoning(text, _) => self.push_text(text, at, out),
            MarkupToken::CommentOpen => {
                self.is_in_comment = true;
                let is_line_start = context.is_line_blank();
                self.comment = Some(HeldCommentOpen { raw: token.raw().to_owned(), at, is_line_start });
            }
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => {
                self.is_in_comment = false;
                self.push_text(token.raw(), at, out);
            }
            MarkupToken::Mark(raw) => self.keep_markup(raw, at, MarkupKind::Marker, out),
            MarkupToken::Tag(tag) => return self.handle_tag(&tag, at, context, out),
        }
        FinalOutcome::Open
    }

    /// Handles a tag, which ends the answer, begins a queries block, or is text of the answer.
    fn handle_tag(
        &mut self,
        tag: &MarkupTag<'_>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> FinalOutcome {
        let element = structure::find_element(tag.name);
        let is_closing = tag.kind == TagKind::Close;
        match element {
            Some((ThinkingMlElement::Final, is_exact)) if is_closing && !self.is_implied => {
                context::check_tag(ThinkingMlElement::Final, is_exact, tag, at, out);
                self.finish(at, out);
                return FinalOutcome::Ended;
            }
            // These tags close an element that the answer interrupted.
            Some((name @ (ThinkingMlElement::Phase | ThinkingMlElement::Thinking), _))
                if is_closing && self.is_interrupting =>
            {
                return FinalOutcome::ClosesInterrupted(name);
            }
            _ => {}
        }
        let is_queries_open = tag.name == "serp_queries" && tag.kind == TagKind::Open;
        if is_queries_open && context.is_line_blank() && !self.is_in_comment && !context.forbids_blocks {
            self.is_in_comment = false;
            return FinalOutcome::Block { opening: String::new(), at, is_line_start: true };
        }
        let (rule, message) = match element {
            Some((ThinkingMlElement::Final, true)) if !is_closing => {
                (rules::FINAL_DUPLICATE, "a second `<final>` inside the first".to_owned())
            }
            Some((_, true)) => (rules::TAG_MISPLACED, format!("`{}` is not allowed in `<final>`", tag.raw)),
            _ => (rules::UNEXPECTED_TAG, format!("`{}` is not a tag of ThinkingML", tag.name)),
        };
        let is_final_close = is_closing && matches!(element, Some((ThinkingMlElement::Final, _)));
        let kind = if is_final_close {
            MarkupKind::FinalClose(rule, message)
        } else {
            MarkupKind::Tag(rule, message)
        };
        self.keep_markup(tag.raw, at, kind, out);
        FinalOutcome::Open
    }

    /// Decides after `<!--` whether a queries block or an ordinary comment begins. Returns the outcome if the
    /// token is consumed.
    fn resolve_comment(
        &mut self,
        mut comment: HeldCommentOpen,
        token: &MarkupToken<'_>,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> Option<FinalOutcome> {
        match token {
            MarkupToken::Text(text)
                if is_blank(text) && comment.raw.len() + text.len() <= context.options.limits.line =>
            {
                comment.raw.push_str(text);
                self.comment = Some(comment);
                Some(FinalOutcome::Open)
            }
            MarkupToken::Tag(tag)
                if tag.name == "serp_queries" && tag.kind == TagKind::Open && !context.forbids_blocks =>
            {
                self.is_in_comment = false;
                let HeldCommentOpen { raw: opening, at, is_line_start } = comment;
                Some(FinalOutcome::Block { opening, at, is_line_start })
            }
            _ => {
                self.keep_markup(&comment.raw, comment.at, MarkupKind::CommentOpen, out);
                None
            }
        }
    }

    /// Keeps markup in the answer: it is escaped, and reported, once it is known whether it is in code.
    fn keep_markup(&mut self, raw: &str, at: Place, kind: MarkupKind, out: &mut dyn IntentSink) {
        // When text is read a second time, the first reading has reported no faults inside comments.
        let is_commented = self.is_in_comment && matches!(kind, MarkupKind::FinalClose(..));
        let is_reported = at.offset < self.reported_end && !is_commented;
        self.has_text = true;
        self.is_block_last = self.block_count == 0;
        self.escape.push_markup(raw, at, kind, is_reported, out);
    }

    /// Ends the answer, at `</final>` or at the end of the input; no queries block is open.
    fn finish(&mut self, end: Place, out: &mut dyn IntentSink) {
        if let Some(HeldCommentOpen { raw, at, .. }) = self.comment.take() {
            // Nothing followed `<!--`: it may have been the start of a queries block.
            let message = "the answer ends where a comment begins";
            context::report_at(rules::UNCLOSED_ELEMENT, at, raw.trim_end().len(), message, "left out", out);
        }
        self.escape.flush(out);
        self.is_in_comment = false;
        if self.is_implied {
            return;
        }
        let at = self.start;
        if !self.has_text {
            let report = FindingReport::new(rules::FINAL_EMPTY, at, end.offset, "`<final>` is empty");
            out.report(report.with_repair("fallback text"));
        }
        if self.block_count == 0 {
            self.blockless_end = Some(end);
        } else if !self.is_block_last {
            self.report_block_not_last(out);
        }
    }

    /// Ends the answer together with the reply.
    pub(super) fn finish_unclosed(&mut self, end: Place, out: &mut dyn IntentSink) {
        self.finish(end, out);
        if !self.is_implied {
            context::report_unclosed(ThinkingMlElement::Final, self.start, end.offset, out);
        }
    }
}
