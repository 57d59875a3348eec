//! The summary, `<serp>`: text, from which tags are removed.

use super::context;
use super::rules;
use super::structure::{self, ThinkingMlElement};
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::lex::entity;
use crate::lex::markup::{MarkupToken, TagKind};
use crate::lex::seam::{SeamPiece, SeamReader};
use crate::options::Options;
use crate::span::Place;

/// Effect of a token on a summary.
pub(super) enum SummaryOutcome {
    /// The summary continues.
    Open,
    /// The summary has ended.
    Ended,
    /// The summary was left open where the tag of another element begins. The flag is set if the name in that
    /// tag is spelled exactly.
    OtherBegins(ThinkingMlElement, bool),
}

/// The current summary.
pub(super) struct SummaryReader {
    /// Place of its tag.
    start: Place,
    /// Set while an HTML comment is open; its content is text (T-027).
    is_in_comment: bool,
    /// Text so far, without tags; its entities are not decoded.
    text: String,
    /// Length in bytes of that text in the reply.
    written_len: usize,
    /// Finds tags that arise where markup is removed.
    seam: SeamReader,
    /// Maximum length of a tag in bytes.
    tag_limit: usize,
    /// Maximum length of a summary in bytes.
    text_limit: usize,
    /// Place where `text_limit` was reached; the rest is left out.
    full_at: Option<Place>,
}

impl SummaryReader {
    pub(super) fn new(options: &Options) -> SummaryReader {
        let (tag_limit, text_limit) = (options.limits.tag, options.limits.hold);
        SummaryReader::new_at(Place::START, tag_limit, text_limit)
    }

    /// Creates the reader of a summary whose tag is at `start`.
    fn new_at(start: Place, tag_limit: usize, text_limit: usize) -> SummaryReader {
        let seam = SeamReader::new("", tag_limit);
        SummaryReader {
            start,
            is_in_comment: false,
            text: String::new(),
            written_len: 0,
            seam,
            tag_limit,
            text_limit,
            full_at: None,
        }
    }

    /// Begins `<serp>`.
    pub(super) fn begin(&mut self, at: Place) {
        *self = SummaryReader::new_at(at, self.tag_limit, self.text_limit);
    }

    /// Handles the next token.
    pub(super) fn push_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> SummaryOutcome {
        match token {
            MarkupToken::Text(text) if self.is_in_comment => self.keep_markup(text, at),
            MarkupToken::Text(text) => self.push_text(text, at),
            MarkupToken::Tag(tag) => match structure::find_element(tag.name) {
                Some((ThinkingMlElement::Serp, is_exact)) if tag.kind == TagKind::Close => {
                    context::check_tag(ThinkingMlElement::Serp, is_exact, &tag, at, out);
                    return SummaryOutcome::Ended;
                }
                Some((name, is_exact))
                    if name.is_top() && name != ThinkingMlElement::Serp && tag.kind == TagKind::Open =>
                {
                    // The outcome carries the element, since the token is not read again.
                    self.report_unclosed(at.offset, out);
                    return SummaryOutcome::OtherBegins(name, is_exact);
                }
                _ if self.is_in_comment => self.keep_markup(tag.raw, at),
                _ => {
                    let len = tag.raw.len();
                    context::report_tag_in_text("T-006", tag.name, at, len, "tag removed", out);
                }
            },
            other => {
                match other {
                    MarkupToken::CommentOpen => self.is_in_comment = true,
                    MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => {
                        self.is_in_comment = false;
                    }
                    MarkupToken::Mark(_) => context::report_embedded_marker(at, "kept as text", out),
                    MarkupToken::Text(_) | MarkupToken::Tag(_) | MarkupToken::Reasoning(..) => {}
                }
                self.keep_markup(other.raw(), at);
            }
        }
        SummaryOutcome::Open
    }

    /// Reports that the summary ends at `end` without its closing tag.
    pub(super) fn report_unclosed(&self, end: usize, out: &mut dyn IntentSink) {
        context::report_unclosed(ThinkingMlElement::Serp, self.start, end, out);
    }

    /// Returns whether part of the summary did not fit.
    pub(super) fn is_full(&self) -> bool {
        self.full_at.is_some()
    }

    /// Takes the text of the summary, its entities not decoded, and the place of its tag.
    pub(super) fn take(&mut self) -> (String, Place) {
        let SummaryReader { text, seam, .. } = self;
        seam.finish(&mut |seam_piece| append_joined(text, seam_piece));
        (std::mem::take(text), self.start)
    }

    /// Ends the summary at `end` and emits it.
    pub(super) fn finish(&mut self, end: usize, out: &mut dyn IntentSink) {
        let (text, _) = self.take();
        if let Some(full_place) = self.full_at {
            let message = "`<serp>` is longer than `limits.hold`";
            let report = FindingReport::new(rules::LIMIT_EXCEEDED, full_place, end, message);
            out.report(report.with_repair("the rest left out"));
        }
        emit_summary(&text, out);
    }

    /// Reads text. Neighbours of a removed tag must not join into a new one.
    fn push_text(&mut self, text: &str, at: Place) {
        let text = self.take_fitting_part(text, at);
        let SummaryReader { text: summary, seam, .. } = self;
        seam.push_text(text, at, &mut |seam_piece| append_joined(summary, seam_piece));
    }

    /// Keeps markup as text.
    fn keep_markup(&mut self, raw: &str, at: Place) {
        let raw = self.take_fitting_part(raw, at);
        let SummaryReader { text: summary, seam, .. } = self;
        seam.finish(&mut |seam_piece| append_joined(summary, seam_piece));
        summary.push_str(raw);
    }

    /// Counts `text` and returns the part of it that fits the limit.
    fn take_fitting_part<'a>(&mut self, text: &'a str, at: Place) -> &'a str {
        if self.full_at.is_some() {
            return "";
        }
        let room = self.text_limit - self.written_len;
        let fitting_text = &text[..text.floor_char_boundary(room)];
        self.written_len += fitting_text.len();
        if fitting_text.len() < text.len() {
            self.full_at = Some(at.end_of(fitting_text));
        }
        fitting_text
    }
}

/// Emits a summary; the entities in `text` are decoded here.
pub(super) fn emit_summary(text: &str, out: &mut dyn IntentSink) {
    out.emit_intent(Intent::Summary(entity::decode(text).into()));
}

/// Adds text to a summary. A tag formed by neighbouring text is broken with a space.
fn append_joined(summary: &mut String, seam_piece: SeamPiece<'_>) {
    match seam_piece {
        SeamPiece::Text(text) => summary.push_str(text),
        SeamPiece::Tag { raw, .. } => summary.push_str(&raw.replace('<', "< ")),
        // The `<` of the tag that follows ends the unfinished one.
        SeamPiece::UnfinishedTag(raw, _) => summary.push_str(raw),
    }
}
