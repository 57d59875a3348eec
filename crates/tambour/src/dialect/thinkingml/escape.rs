//! Escaping of tags and failure markers in the text of the answer, where comments are only reported (T-020,
//! T-027, T-029), and of `<final>` and `</final>` in the thinking of a raw reply (T-014, R-90).

use std::borrow::Cow;

use super::rules;
use crate::dialect::{FAILURE_MARKER, Intent, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::lex::code::{CodeEntityPolicy, CodeFilter, FilteredPiece};
use crate::lex::comment::CommentTracker;
use crate::lex::seam::{SeamPiece, SeamReader};
use crate::options::Options;
use crate::span::Place;

/// Escapes markup in the text of the answer. Markup is held until it is known whether it is code.
pub(super) struct AnswerEscape {
    /// Finds tags that arise where markup is removed.
    seam: SeamReader,
    /// Decides what is code.
    filter: CodeFilter<HeldMarkup>,
    /// Open comment in the emitted text.
    comment: CommentTracker,
}

/// Markup held in the filter until it is known whether it is in code; in code it is not escaped.
#[derive(Clone, Debug)]
struct HeldMarkup {
    start: Place,
    /// Offset of its end in the reply.
    end: usize,
    kind: MarkupKind,
    /// Set if it was reported before.
    is_reported: bool,
}

/// Kind of held markup, with the rule that it breaks and the message of its finding.
#[derive(Clone, Debug)]
pub(super) enum MarkupKind {
    /// A tag; inside a comment it is text.
    Tag(&'static Rule, String),
    /// The closing tag of the answer in prose. It is escaped inside comments too, since it would end the
    /// answer there.
    FinalClose(&'static Rule, String),
    /// The failure marker.
    Marker,
    /// An unfinished tag before another tag.
    UnfinishedTag,
    /// `<!--`.
    CommentOpen,
}

impl AnswerEscape {
    pub(super) fn new(options: &Options) -> AnswerEscape {
        let limits = &options.limits;
        let (seam, filter) = (SeamReader::new(FAILURE_MARKER, limits.tag), CodeFilter::new(limits.line));
        AnswerEscape { seam, filter, comment: CommentTracker::default() }
    }

    /// Decodes entities in code from here on: a model that follows the rules escapes in code too.
    pub(super) fn decode_entities(&mut self) {
        self.filter.set_entity_policy(CodeEntityPolicy::Decode);
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.seam.held_bytes() + self.filter.held_bytes()
    }

    /// Returns whether text can be emitted unchanged, without its place.
    #[inline]
    pub(super) fn can_pass(&self, text: &str) -> bool {
        self.seam.passes_unchanged(text)
    }

    /// Emits text for which [`can_pass`](AnswerEscape::can_pass) holds.
    #[inline]
    pub(super) fn pass(&mut self, text: &str, out: &mut dyn IntentSink) {
        push_joined(SeamPiece::Text(text), &mut self.filter, &mut self.comment, out);
    }

    /// Reads text.
    pub(super) fn push_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        let AnswerEscape { seam, filter, comment } = self;
        seam.push_text(text, at, &mut |seam_piece| push_joined(seam_piece, filter, comment, out));
    }

    /// Reads markup that is escaped, and reported, once it is known whether it is in code. `is_reported` is
    /// set if it was reported before, so that it is only escaped.
    pub(super) fn push_markup(
        &mut self,
        raw: &str,
        start: Place,
        kind: MarkupKind,
        is_reported: bool,
        out: &mut dyn IntentSink,
    ) {
        let markup = HeldMarkup { start, end: start.offset + raw.trim_end().len(), kind, is_reported };
        let AnswerEscape { seam, filter, comment } = self;
        let mut push = |seam_piece: SeamPiece<'_>| push_joined(seam_piece, filter, comment, out);
        if matches!(markup.kind, MarkupKind::CommentOpen) {
            seam.finish(&mut push);
        } else {
            seam.prepare_for_tag(&mut push);
        }
        filter.push_text_tag(raw, markup, &mut |piece| emit_piece(piece, comment, out));
    }

    /// Emits all held text: nothing follows that could change it.
    pub(super) fn flush(&mut self, out: &mut dyn IntentSink) {
        let AnswerEscape { seam, filter, comment } = self;
        seam.finish(&mut |seam_piece| push_joined(seam_piece, filter, comment, out));
        filter.finish(&mut |piece| emit_piece(piece, comment, out));
    }
}

/// Passes text of the answer to the code filter.
#[inline]
fn push_joined(
    seam_piece: SeamPiece<'_>,
    filter: &mut CodeFilter<HeldMarkup>,
    comment: &mut CommentTracker,
    out: &mut dyn IntentSink,
) {
    let (raw, start, end, kind) = match seam_piece {
        SeamPiece::Text(text) => return filter.push_text(text, &mut |piece| emit_piece(piece, comment, out)),
        SeamPiece::UnfinishedTag(raw, at) => (raw, at, at.offset + raw.len(), MarkupKind::UnfinishedTag),
        SeamPiece::Tag { raw, at, end } => {
            let message = "this text would become a tag once the parts inside it are taken out".to_owned();
            (raw, at, end, MarkupKind::Tag(rules::UNEXPECTED_TAG, message))
        }
    };
    let markup = HeldMarkup { start, end, kind, is_reported: false };
    filter.push_text_tag(raw, markup, &mut |piece| emit_piece(piece, comment, out));
}

/// Emits text of the answer once it is known whether it is code.
#[inline]
fn emit_piece(piece: FilteredPiece<'_, HeldMarkup>, comment: &mut CommentTracker, out: &mut dyn IntentSink) {
    match piece {
        FilteredPiece::Text(text) => {
            comment.push_text(text);
            out.emit_intent(Intent::FinalText(text));
        }
        FilteredPiece::Tag(raw, markup, is_in_code) => markup.emit(raw, is_in_code, comment, out),
    }
}

impl HeldMarkup {
    /// Emits the markup, escaped if necessary, and reports it.
    fn emit(self, raw: &str, is_in_code: bool, comment: &mut CommentTracker, out: &mut dyn IntentSink) {
        let HeldMarkup { start, end, kind, is_reported } = self;
        let is_in_comment = comment.is_open();
        let (is_escaped, fault) = match kind {
            // In a comment a tag is text (T-027).
            MarkupKind::Tag(..) | MarkupKind::UnfinishedTag if is_in_comment => (false, None),
            MarkupKind::Tag(rule, message) | MarkupKind::FinalClose(rule, message) => {
                (!is_in_code, Some((rule, message)))
            }
            MarkupKind::UnfinishedTag => {
                let message = "an unfinished tag would continue after an escaped one";
                (!is_in_code, (!is_in_code).then(|| (rules::UNEXPECTED_TAG, message.to_owned())))
            }
            MarkupKind::Marker => {
                let message = "the failure marker occurs beside other content";
                (!is_in_code, Some((rules::PARSING_ERROR_EMBEDDED, message.to_owned())))
            }
            MarkupKind::CommentOpen if is_in_code => (false, None),
            MarkupKind::CommentOpen => {
                comment.begin();
                let message = "a comment that is not the queries block";
                (false, Some((rules::COMMENT_IN_FINAL, message.to_owned())))
            }
        };
        if let Some((rule, message)) = fault.filter(|_| !is_reported) {
            let report = FindingReport::new(rule, start, end, message);
            let report =
                if is_in_code && rule.rows.contains(&"T-029") { report.with_row("T-029") } else { report };
            out.report(report.with_repair(if is_escaped { "escaped" } else { "kept as it is" }));
        }
        let text = if is_escaped {
            raw.replace('<', "&lt;").replace('>', "&gt;").into()
        } else {
            Cow::Borrowed(raw)
        };
        comment.push_text(&text);
        out.emit_intent(Intent::FinalText(&text));
    }
}

/// Opening and closing tag of the thinking.
const THINKING_TAGS: (&str, &str) = ("<thinking>", "</thinking>");

/// Escapes `<final>` and `</final>` in the thinking of a raw reply, so that the reply passes the structure
/// check. Nothing else changes; a reply whose answer begins inside `<thinking>` is returned unchanged.
#[must_use]
pub(crate) fn escape_literals(reply: &str) -> Cow<'_, str> {
    let Some(start) = reply.find(THINKING_TAGS.0).map(|at| at + THINKING_TAGS.0.len()) else {
        return reply.into();
    };
    let end_offsets = || reply[start..].match_indices(THINKING_TAGS.1).map(|(at, _)| start + at);
    // A closing tag followed by the answer is the real one; thinking may mention others.
    let end_before_answer =
        end_offsets().find(|end| reply[end + THINKING_TAGS.1.len()..].trim_start().starts_with("<final>"));
    let Some(end) = end_before_answer.or_else(|| end_offsets().next()) else { return reply.into() };
    let (thinking, rest) = reply[start..].split_at(end - start);
    if !thinking.contains("<final>") && !thinking.contains("</final>") || !rest.contains("<final>") {
        return reply.into();
    }
    let thinking = thinking.replace("<final>", "&lt;final&gt;").replace("</final>", "&lt;/final&gt;");
    [&reply[..start], &thinking, rest].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_literals_in_thinking_are_escaped() {
        // R-90, T-014
        for (reply, escaped) in [
            (
                "<thinking>a <final> b</thinking>\n<final>c</final>",
                "<thinking>a &lt;final&gt; b</thinking>\n<final>c</final>",
            ),
            (
                "<think><final></think><thinking>x</final> <b></thinking><final><final></final>",
                "<think><final></think><thinking>x&lt;/final&gt; <b></thinking><final><final></final>",
            ),
            (
                "<thinking>of </thinking> and <final>\n</thinking>\n<final>c</final>",
                "<thinking>of </thinking> and &lt;final&gt;\n</thinking>\n<final>c</final>",
            ),
            ("<thinking>a<final>c</final>", "<thinking>a<final>c</final>"),
            ("<thinking>a<final>c</final></thinking>", "<thinking>a<final>c</final></thinking>"),
            ("<thinking>a</thinking><final>c</final>", "<thinking>a</thinking><final>c</final>"),
            ("a <final> b", "a <final> b"),
        ] {
            assert_eq!(escape_literals(reply), escaped, "{reply}");
        }
    }
}
