//! Handling of tokens between elements: text outside of tags, code fences around elements, and comments.

use super::super::rules;
use super::super::tags::{ElementKind, TagMeaning};
use super::comment::HeldComment;
use super::{FilamentFrame, OpenElementState, OpenPart, PendingFenceLine, report_at, thought_reasoning};
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::fence::{Fence, is_mark};
use crate::lex::markup::{MarkupToken, TagKind};
use crate::lex::space::{is_blank, is_space};
use crate::span::{LazyPlace, Place};

/// Maximum length in bytes of a fence line with the white space after it.
const MAX_FENCE_LINE_BYTES: usize = 256;

impl FilamentFrame {
    /// Handles a token between elements.
    pub(super) fn push_surrounding_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        if self.comment.is_some() {
            return self.push_comment_token(token, at, out);
        }
        if self.fence_line.is_some() {
            return self.push_fence_token(token, at, out);
        }
        match token {
            MarkupToken::Text(text) => self.push_free_text(text, at, out),
            MarkupToken::CommentOpen if self.ignores_comments => self.read_comment_open(at, out),
            MarkupToken::CommentOpen => {
                let is_outside = true;
                self.comment = Some(HeldComment::new(at, is_outside));
            }
            MarkupToken::Tag(tag) => match self.tags.meaning(&tag) {
                TagMeaning::Known(element) | TagMeaning::Reasoning(element) if tag.kind != TagKind::Close => {
                    self.begin_element(&tag, element, at, out);
                }
                TagMeaning::Known(_) | TagMeaning::Reasoning(_) => self.handle_unopened(&tag, at, out),
                TagMeaning::Envelope => {
                    let message = format!("`{}` encloses the reply", tag.raw);
                    report_at(rules::ENVELOPE, at, tag.raw.len(), message, "left out", out);
                }
                TagMeaning::Inactive | TagMeaning::Unknown => {
                    if tag.kind != TagKind::Close
                        && let Some(element) = self.tags.html_status_bar(&tag)
                    {
                        return self.begin_element(&tag, element, at, out);
                    }
                    let is_text = false;
                    self.begin_untagged_part(at, is_text, out);
                    self.push_token(token, LazyPlace::from(at), out);
                }
            },
            MarkupToken::Reasoning(raw, mark) => self.handle_mark(raw, mark, at, out),
            _ => self.push_free_text(token.raw(), at, out),
        }
    }

    /// Reads text outside of tags: it may begin a thought or the content, and fence lines in it may surround
    /// elements.
    pub(super) fn push_free_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        let (mut rest, mut place) = (text, at);
        while !rest.is_empty() {
            let taken_len = if self.fence_line.is_some() {
                self.push_fence_text(rest, place, out)
            } else {
                match &self.open_element {
                    OpenElementState::Outside => self.push_first_text(rest, place, out),
                    _ => self.push_untagged_text(rest, place, out),
                }
            };
            place.advance(&rest[..taken_len]);
            rest = &rest[taken_len..];
        }
    }

    /// Reads the white space between elements, and begins a fence line or untagged text after it. Returns the
    /// number of bytes of white space.
    fn push_first_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) -> usize {
        let blank_len = text.len() - text.trim_start_matches(is_space).len();
        self.has_line_break |= text[..blank_len].contains('\n');
        if blank_len == text.len() {
            return blank_len;
        }
        let (visible_text, start) = (&text[blank_len..], at.end_of(&text[..blank_len]));
        if visible_text.starts_with(['`', '~']) {
            self.fence_line = Some(PendingFenceLine { raw: String::new(), start, is_complete: false });
        } else {
            let is_text = !visible_text.starts_with('<');
            self.begin_untagged_part(start, is_text, out);
        }
        blank_len
    }

    /// Reads text of a thought or content without a tag, up to a possible fence line; returns the bytes read.
    fn push_untagged_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) -> usize {
        let mut line_start = 0;
        // The first line may continue a line of earlier text.
        let mut is_first_line = true;
        loop {
            let line = &text[line_start..];
            let blank_len = line.len() - line.trim_start_matches([' ', '\t']).len();
            let text_start = line_start + blank_len;
            if text[text_start..].starts_with(['`', '~']) && (!is_first_line || self.markdown.is_line_blank())
            {
                self.push_text(&text[..text_start], LazyPlace::from(at), out);
                if self.markdown.is_line_blank() && self.markdown.is_plain() {
                    let place = at.end_of(&text[..text_start]);
                    self.fence_line =
                        Some(PendingFenceLine { raw: String::new(), start: place, is_complete: false });
                    return text_start;
                }
                // The rest of the line is text.
                let end = text[text_start..].find('\n').map_or(text.len(), |end| text_start + end + 1);
                self.push_text(&text[text_start..end], LazyPlace::from(at.end_of(&text[..text_start])), out);
                return end;
            }
            is_first_line = false;
            match text[line_start..].find('\n') {
                Some(end) => line_start += end + 1,
                None => break,
            }
        }
        self.push_text(text, LazyPlace::from(at), out);
        text.len()
    }

    /// Continues a possible fence line; returns the bytes read.
    fn push_fence_text(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) -> usize {
        let Some(line) = &mut self.fence_line else { return 0 };
        let (mut taken_len, mut is_closed) = (0, false);
        for c in text.chars() {
            if !line.accepts(c) {
                break;
            }
            line.raw.push(c);
            line.is_complete |= c == '\n';
            taken_len += c.len_utf8();
            is_closed =
                line.is_complete && self.fence.is_some_and(|fence| fence.is_closed_by_line(&line.raw));
            if is_closed {
                // The text after a closing fence is ordinary text.
                break;
            }
        }
        if is_closed {
            self.close_fence();
        } else if taken_len < text.len() {
            let is_complete = line.is_complete;
            self.turn_fence_into_text(out);
            if !is_complete {
                // The rest of the line is text too.
                let end = text[taken_len..].find('\n').map_or(text.len(), |end| taken_len + end + 1);
                self.push_text(&text[taken_len..end], LazyPlace::from(at.end_of(&text[..taken_len])), out);
                return end;
            }
        }
        taken_len
    }

    /// Begins a part without a tag: at the head of a reply a thought, if one is expected there (F-201),
    /// otherwise the content (F-206). `is_text` is set if the part begins with text, not with an unknown tag.
    pub(super) fn begin_untagged_part(&mut self, at: Place, is_text: bool, out: &mut dyn IntentSink) {
        let is_head = !std::mem::replace(&mut self.has_begun, true);
        let is_thinking = is_head
            && is_text
            && self.tags.has_thinking_head(self.context.dialect_options.is_head_mandatory_only);
        let kind = if is_thinking { ElementKind::Thought } else { ElementKind::Content };
        self.last_closed = None;
        let index = self.tags.first_of_kind(kind).unwrap_or_default();
        if is_head && is_text {
            let repair = if is_thinking { "a thinking head is inserted" } else { "read as content" };
            report_at(rules::HEAD_MISSING, at, 0, "the reply does not begin with a tag", repair, out);
            self.assumed_head = self.tags.first_of_kind(kind);
        }
        let part = OpenPart {
            index,
            tag: None,
            text_start: at,
            is_head: is_head && is_text,
            open_reasoning: thought_reasoning("thought"),
            has_phase: false,
        };
        let is_joined = false;
        self.open_part(kind, part, is_joined, out);
    }

    /// Reports text outside of tags that ends before the offset `end`; `is_closed` is set if a tag closed it.
    /// Text at the head that a tag closes is not reported again.
    pub(super) fn report_untagged_text(
        &mut self,
        part: &OpenPart,
        is_closed: bool,
        end: usize,
        out: &mut dyn IntentSink,
    ) {
        if part.is_head && is_closed || part.tag.is_some() {
            return;
        }
        let is_thought = matches!(self.tags.kind(part.index), ElementKind::Thought);
        let repair = if is_thought { "read as a thought" } else { "read as text of the content" };
        let report = FindingReport::new(
            rules::TEXT_OUTSIDE_TAGS,
            part.text_start,
            end,
            "there is text outside of tags",
        );
        out.report(report.with_repair(repair));
    }

    /// Handles a token in or after a possible fence line. Before a tag of the structure the line is removed.
    pub(super) fn push_fence_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        match token {
            MarkupToken::Text(text) => self.push_free_text(text, at, out),
            MarkupToken::Tag(tag)
                if self.fence_line.as_ref().is_some_and(|line| line.is_complete)
                    && tag.kind != TagKind::Close
                    && self.known_element(&tag).is_some_and(|element| {
                        // After text, an acting block in a fence is an example.
                        matches!(self.open_element, OpenElementState::Outside)
                            || matches!(element.kind, ElementKind::Thought | ElementKind::Content)
                    }) =>
            {
                let Some(PendingFenceLine { raw, start, .. }) = self.fence_line.take() else { return };
                let fence_text = raw.trim_end();
                let message = "the reply, or a part of it, is in a code fence";
                let repair = "the fence is left out";
                report_at(rules::FENCED_REPLY, start, fence_text.len(), message, repair, out);
                self.fence = Fence::parse(fence_text).map(|(fence, _)| fence);
                self.content.mark_gap();
                self.push_token(token, LazyPlace::from(at), out);
            }
            _ => {
                self.turn_fence_into_text(out);
                self.push_token(token, LazyPlace::from(at), out);
            }
        }
    }

    /// Ends the removed fence.
    fn close_fence(&mut self) {
        self.fence = None;
        self.fence_line = None;
        self.content.mark_gap();
    }

    /// Turns the fence line into ordinary text.
    fn turn_fence_into_text(&mut self, out: &mut dyn IntentSink) {
        let Some(PendingFenceLine { raw, start, .. }) = self.fence_line.take() else { return };
        if matches!(self.open_element, OpenElementState::Outside) {
            let is_text = true;
            self.begin_untagged_part(start, is_text, out);
        }
        self.push_text(&raw, LazyPlace::from(start), out);
    }

    /// Decides at the end of the reply whether a possible fence line closes the removed fence or is text.
    pub(super) fn finish_fence(&mut self, out: &mut dyn IntentSink) {
        let Some(PendingFenceLine { raw, .. }) = &self.fence_line else { return };
        match self.fence.is_some_and(|fence| fence.is_closed_by_line(raw)) {
            true => self.close_fence(),
            false => self.turn_fence_into_text(out),
        }
    }
}

impl PendingFenceLine {
    /// Returns whether the line is still a fence line with this character: a run of fence marks, then at most
    /// one word, and after the line break only white space.
    fn accepts(&self, c: char) -> bool {
        if self.raw.len() >= MAX_FENCE_LINE_BYTES {
            return false;
        }
        if self.is_complete {
            return is_space(c);
        }
        let mark = self.raw.chars().next();
        let run_len = self.raw.chars().take_while(|candidate| Some(*candidate) == mark).count();
        match mark {
            None => u8::try_from(c).is_ok_and(is_mark),
            Some(mark) if run_len == self.raw.len() && c == mark => true,
            // A fence has at least three marks, and no backtick after them.
            Some(_) if run_len < 3 || c == '`' => false,
            Some(_) => {
                let info = &self.raw[run_len..];
                let has_word = !is_blank(info);
                let is_after_word = has_word && info.ends_with([' ', '\t']);
                is_space(c) || !is_after_word
            }
        }
    }
}
