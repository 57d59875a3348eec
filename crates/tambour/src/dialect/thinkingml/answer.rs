//! The inside of `<final>`: Markdown whose tags are escaped outside code (T-020, T-029).

use std::borrow::Cow;

use super::block::Block;
use super::parse::{Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, MARKER, Output};
use crate::finding::{Report, Rule};
use crate::lex::code::{CodeEntities, CodeFilter, Piece};
use crate::lex::comment::Comment as OpenComment;
use crate::lex::markup::{TagKind, Token};
use crate::lex::seam::{Joined, Seam};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;

/// What is known of `<final>`.
pub(super) struct Answer {
    pub(super) at: Place,
    seam: Seam,
    filter: CodeFilter<Marked>,
    /// The comment that is open in what goes out.
    open_comment: OpenComment,
    /// `<!--` and the white space after it, until it is known whether a queries block begins.
    comment: Option<Comment>,
    /// Whether there is text besides the queries block.
    filled: bool,
    /// Blocks so far, the place of the one that should be the last of `<final>`, and whether it is.
    pub(super) blocks: u32,
    pub(super) block_at: (Place, usize),
    pub(super) block_last: bool,
    /// Place of the last block and of the last one that is used, and how many queries it has.
    pub(super) last_block: Option<(Place, usize)>,
    pub(super) used_block: Option<(Place, usize)>,
    pub(super) queries: usize,
    /// Where `<final>` ended without a block.
    pub(super) no_block: Option<Place>,
    /// Whether text is read again in which no block begins.
    pub(super) no_blocks: bool,
    /// Whether the answer is text without `<final>`.
    pub(super) implied: bool,
    /// Whether `<final>` was found inside a phase.
    pub(super) moved: bool,
    /// Offset up to which faults have been reported before.
    pub(super) reported: usize,
}

/// `<!--` and the white space after it.
struct Comment {
    raw: String,
    at: Place,
    line_start: bool,
}

/// What waits in the filter: something that is escaped or reported once it is known not to be code.
#[derive(Clone, Debug)]
struct Marked {
    at: Place,
    end: usize,
    kind: Kind,
    /// Whether it has been reported before.
    quiet: bool,
}

/// What it is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A tag, which is text in a comment.
    Tag(&'static Rule, String),
    /// The failure marker.
    Marker,
    /// An unfinished tag before a tag.
    Open,
    CommentOpen,
}

impl Answer {
    pub(super) fn new(options: &Options) -> Answer {
        Answer {
            at: Place::START,
            seam: Seam::new(MARKER, options.limits.tag),
            filter: CodeFilter::new(options.limits.line),
            open_comment: OpenComment::default(),
            comment: None,
            filled: false,
            blocks: 0,
            block_at: (Place::START, 0),
            block_last: true,
            last_block: None,
            used_block: None,
            queries: 0,
            no_block: None,
            no_blocks: false,
            implied: false,
            moved: false,
            reported: 0,
        }
    }

    /// `<final>` begins: a model that obeys escapes in code too.
    pub(super) fn begin(&mut self, at: Place) {
        self.at = at;
        self.filter.entities(CodeEntities::Decode);
    }

    /// Whether `<!--` has come and nothing after it.
    pub(super) fn comment_begins(&self) -> bool {
        self.comment.is_some()
    }

    pub(super) fn held(&self) -> usize {
        let comment = self.comment.as_ref().map_or(0, |comment| comment.raw.len());
        self.seam.held() + self.filter.held() + comment
    }

    /// Whether text goes out, wherever it stands.
    #[inline]
    pub(super) fn passes(&self, text: &str) -> bool {
        self.comment.is_none() && self.seam.passes(text)
    }

    /// Such text.
    #[inline]
    pub(super) fn flow(&mut self, text: &str, out: &mut dyn Output) {
        self.count(text);
        pass(Joined::Text(text), &mut self.filter, &mut self.open_comment, out);
    }

    fn count(&mut self, text: &str) {
        if !self.filled {
            self.filled = !text.trim().is_empty();
        }
        if self.block_last && self.blocks > 0 {
            self.block_last = is_blank(text);
        }
    }

    /// Text of the answer.
    pub(super) fn text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        self.count(text);
        let Answer { seam, filter, open_comment, .. } = self;
        seam.text(text, at, &mut |joined| pass(joined, filter, open_comment, out));
    }

    /// Something that is escaped unless it is code, or reported unless it is.
    fn mark(&mut self, raw: &str, marked: Marked, out: &mut dyn Output) {
        self.filled = true;
        self.block_last = self.blocks == 0;
        let Answer { seam, filter, open_comment, .. } = self;
        let mut go = |joined: Joined<'_>| pass(joined, filter, open_comment, out);
        if matches!(marked.kind, Kind::CommentOpen) {
            seam.end(&mut go);
        } else {
            seam.tag(&mut go);
        }
        filter.text_tag(raw, marked, &mut |piece| send(piece, open_comment, out));
    }

    /// Lets go what waits: nothing follows that could change it.
    fn flush(&mut self, out: &mut dyn Output) {
        let Answer { seam, filter, open_comment, .. } = self;
        seam.end(&mut |joined| pass(joined, filter, open_comment, out));
        filter.finish(&mut |piece| send(piece, open_comment, out));
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
            Token::Text(text) | Token::Reasoning(text, _) => self.answer.text(text, at, out),
            Token::CommentOpen => {
                self.in_comment = true;
                self.answer.comment =
                    Some(Comment { raw: token.raw().to_owned(), at, line_start: self.line_blank() });
            }
            Token::CommentClose => {
                self.in_comment = false;
                self.answer.text(token.raw(), at, out);
            }
            Token::Mark(raw) => self.mark(raw, at, Kind::Marker, out),
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
                let opens = tag.name == "serp_queries" && tag.kind == TagKind::Open;
                if opens && self.line_blank() && !self.in_comment && !self.answer.no_blocks {
                    self.begin_block("", tag.raw, at, true);
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
                self.mark(tag.raw, at, Kind::Tag(rule, message), out);
            }
        }
    }

    pub(super) fn mark(&mut self, raw: &str, at: Place, kind: Kind, out: &mut dyn Output) {
        let quiet = at.offset < self.answer.reported;
        let marked = Marked { at, end: at.offset + raw.trim_end().len(), kind, quiet };
        self.answer.mark(raw, marked, out);
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
            Token::Tag(tag)
                if tag.name == "serp_queries" && tag.kind == TagKind::Open && !self.answer.no_blocks =>
            {
                self.begin_block(&comment.raw, tag.raw, comment.at, comment.line_start);
                return true;
            }
            _ => {}
        }
        self.mark(&comment.raw, comment.at, Kind::CommentOpen, out);
        false
    }

    fn begin_block(&mut self, opening: &str, tag: &str, at: Place, line_start: bool) {
        self.in_comment = false;
        self.block = Some(Block::begin(opening, tag, at, line_start));
    }

    /// The end of the answer, at `</final>` or at the end of the input.
    pub(super) fn end_answer(&mut self, end: Place, out: &mut dyn Output) {
        self.leave_block(end, out);
        if let Some(Comment { raw, at, .. }) = self.answer.comment.take() {
            // Nothing followed `<!--`: it may have been the start of the queries block.
            let message = "a comment begins and the answer ends";
            self.report(rules::UNCLOSED_ELEMENT, at, raw.trim_end().len(), message, "left out", out);
        }
        self.answer.flush(out);
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
            self.answer.no_block = Some(end);
        } else if !self.answer.block_last {
            self.block_not_last(out);
        }
    }

    /// The reply is over: `<final>` had no block, and none that came behind it is used.
    pub(super) fn block_missing(&mut self, out: &mut dyn Output) {
        let Some(end) = self.answer.no_block.take().filter(|_| self.answer.used_block.is_none()) else {
            return;
        };
        let message = "the queries block is missing";
        if !self.own.block_optional {
            self.report(rules::SERP_BLOCK_MISSING, end, 0, message, "no `serp_queries` event", out);
        } else {
            // Nothing is repaired where it need not be there.
            out.report(Report::new(rules::SERP_BLOCK_OPTIONAL, end, end.offset, message));
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
        let kept = self.answer.queries > 0;
        out.report(report.repaired(if kept {
            "removed from the text, queries kept"
        } else {
            "removed from the text"
        }));
    }
}

/// A piece of the answer on its way to the code filter.
#[inline]
fn pass(
    joined: Joined<'_>,
    filter: &mut CodeFilter<Marked>,
    comment: &mut OpenComment,
    out: &mut dyn Output,
) {
    let (raw, at, end, kind) = match joined {
        Joined::Text(text) => return filter.text(text, &mut |piece| send(piece, comment, out)),
        Joined::Open(raw, at) => (raw, at, at.offset + raw.len(), Kind::Open),
        Joined::Tag { raw, at, end } => {
            let message = "without what is taken out of it this would be a tag".to_owned();
            (raw, at, end, Kind::Tag(rules::UNEXPECTED_TAG, message))
        }
    };
    let marked = Marked { at, end, kind, quiet: false };
    filter.text_tag(raw, marked, &mut |piece| send(piece, comment, out));
}

/// A piece of the answer that is known to be code or not.
#[inline]
fn send(piece: Piece<'_, Marked>, comment: &mut OpenComment, out: &mut dyn Output) {
    match piece {
        Piece::Text(text) => {
            comment.text(text);
            out.intent(Intent::FinalText(text));
        }
        Piece::Tag(raw, marked, in_code) => marked.send(raw, in_code, comment, out),
    }
}

impl Marked {
    fn send(self, raw: &str, in_code: bool, comment: &mut OpenComment, out: &mut dyn Output) {
        let Marked { at, end, kind, quiet } = self;
        let in_comment = comment.is_open();
        let (escape, found) = match kind {
            // In a comment a tag is text (T-027).
            Kind::Tag(..) | Kind::Open if in_comment => (false, None),
            Kind::Tag(rule, message) => (!in_code, Some((rule, message))),
            Kind::Open => {
                let message = "an unfinished tag would go on behind an escaped one";
                (!in_code, (!in_code).then(|| (rules::UNEXPECTED_TAG, message.to_owned())))
            }
            Kind::Marker => {
                let message = "the failure marker stands beside other content";
                (!in_code, Some((rules::PARSING_ERROR_EMBEDDED, message.to_owned())))
            }
            Kind::CommentOpen if in_code => (false, None),
            Kind::CommentOpen => {
                comment.begin();
                let message = "a comment that is not the queries block";
                (false, Some((rules::COMMENT_IN_FINAL, message.to_owned())))
            }
        };
        if let Some((rule, message)) = found.filter(|_| !quiet) {
            let report = Report::new(rule, at, end, message);
            let report = if in_code && rule.rows.contains(&"T-029") { report.row("T-029") } else { report };
            out.report(report.repaired(if escape { "escaped" } else { "kept as it is" }));
        }
        let text =
            if escape { raw.replace('<', "&lt;").replace('>', "&gt;").into() } else { Cow::Borrowed(raw) };
        comment.text(&text);
        out.intent(Intent::FinalText(&text));
    }
}
