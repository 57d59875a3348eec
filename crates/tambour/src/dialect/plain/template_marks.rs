//! Template marks that end a message, or begin a message that is not reasoning. Between messages and at the
//! end of the reply they are not text of the answer. Harmony is the chat template of OpenAI's open
//! models.

use super::parse::{MarkCandidate, PlainParser, PlainPart};
use super::rules;
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::marks::{HARMONY_MARK, MarkKind, ReasoningMark};
use crate::lex::markup::MarkupToken;
use crate::lex::space::is_blank;
use crate::span::Place;

/// Maximum length in bytes of held marks that end a message, with the white space after them.
const MAX_END_MARKS_BYTES: usize = 1023;

/// Held marks that end a message, unless text follows them.
pub(super) struct EndMarks {
    /// Source text of the marks and of the white space after each.
    raw: String,
    start: Place,
    /// Length of `raw` up to the end of the last mark.
    marks_len: usize,
}

impl EndMarks {
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }
}

impl PlainParser {
    /// Handles a template mark in the answer; returns whether it is consumed.
    pub(super) fn handle_template_mark(
        &mut self,
        candidate: MarkCandidate,
        raw: &str,
        start: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        // The mark that ends any message of Harmony ends the last one too.
        let is_stop =
            candidate.mark.kind == MarkKind::Stop || candidate.mark == HARMONY_MARK.as_own_closing();
        let is_header = is_header_mark(candidate.mark);
        if !(is_stop || is_header)
            || !self.answer.admits_mark()
            || self.mention.as_ref().is_some_and(|mention| mention.is_element)
        {
            return false;
        }
        if is_header {
            let is_line_start = self.answer.is_line_start();
            if is_line_start {
                report_template_mark(raw, start, out);
                self.begin_message(start, out);
            }
            return is_line_start;
        }
        self.end_marks = Some(EndMarks { raw: raw.to_owned(), start, marks_len: raw.len() });
        true
    }

    /// Handles a token after marks that end a message; returns whether the token is consumed.
    pub(super) fn push_after_end_marks(
        &mut self,
        token: &MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let Some(mut end_marks) = self.end_marks.take() else { return false };
        let raw = token.raw();
        let mark = self.find_candidate(token).map(|candidate| candidate.mark);
        let is_within_limit = end_marks.raw.len() + raw.len() <= MAX_END_MARKS_BYTES;
        match mark {
            Some(mark)
                if is_within_limit
                    && (mark.kind == MarkKind::Stop || mark == HARMONY_MARK.as_own_closing()) =>
            {
                end_marks.raw.push_str(raw);
                end_marks.marks_len = end_marks.raw.len();
                self.end_marks = Some(end_marks);
            }
            Some(mark) if is_header_mark(mark) => {
                report_template_mark(&(end_marks.raw + raw), end_marks.start, out);
                self.begin_message(at, out);
            }
            // Reasoning follows in a separate message: the token is handled as its opening mark.
            Some(mark) if mark.kind == MarkKind::Open && mark.is_same_family(HARMONY_MARK) => {
                report_template_mark(&end_marks.raw[..end_marks.marks_len], end_marks.start, out);
                self.answer.interrupt(out);
                return false;
            }
            None if is_within_limit && matches!(token, MarkupToken::Text(text) if is_blank(text)) => {
                end_marks.raw.push_str(raw);
                self.end_marks = Some(end_marks);
            }
            // Text follows, or too much white space: the marks are text too.
            _ => {
                self.push_answer_text(&end_marks.raw, end_marks.start, out);
                return false;
            }
        }
        true
    }

    /// Begins the next message of the answer at `at`, in a new paragraph.
    pub(super) fn begin_message(&mut self, at: Place, out: &mut dyn IntentSink) {
        self.answer.interrupt(out);
        if self.current_part == PlainPart::Answer
            && self.answer.has_text()
            && !self.answer.ends_with_newline()
        {
            self.push_token(MarkupToken::Text("\n\n"), at, out);
        }
    }

    /// Drops held marks at the end of the reply.
    pub(super) fn finish_end_marks(&mut self, out: &mut dyn IntentSink) {
        if let Some(end_marks) = self.end_marks.take() {
            report_template_mark(&end_marks.raw[..end_marks.marks_len], end_marks.start, out);
        }
    }
}

/// Returns whether a mark begins a message that is not reasoning.
fn is_header_mark(mark: ReasoningMark) -> bool {
    mark.kind == MarkKind::Header || mark == HARMONY_MARK.as_closing()
}

/// Reports template marks that are left out.
pub(super) fn report_template_mark(raw: &str, at: Place, out: &mut dyn IntentSink) {
    let message = format!("`{}` belongs to the template of the model", raw.trim_end());
    out.report(
        FindingReport::new(rules::CONTROL_MARK, at, at.offset + raw.len(), message).with_repair("left out"),
    );
}
