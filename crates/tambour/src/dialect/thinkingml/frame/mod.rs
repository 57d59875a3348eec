//! The frame of a reply: passes each token to the current part, and continues as the part's outcome says.
//! The structure begins with the first mandatory element, `<thinking>` or `<final>`; before it, only
//! `<think>` and `<serp>` are allowed.

mod end;
mod mention;
mod order;
mod outcomes;
mod preserved_text;

use std::sync::Arc;

use super::answer::FinalReader;
use super::block::QueriesBlock;
use super::context::{LineContent, ReaderContext};
use super::draft::DraftReader;
use super::late_element::LateElement;
use super::serp::SummaryReader;
use super::structure::{self, SeenElements, ThinkingMlElement};
use super::thinking::ThinkingReader;
use super::top_level_text::{ReplyFence, TopLevelText};
use crate::dialect::IntentSink;
use crate::finding::FindingReport;
use crate::lex::markup::MarkupToken;
use crate::options::Options;
use crate::span::{LazyPlace, Place};
use mention::ThinkingMention;
use preserved_text::{HeldSummary, TextBeforeSummary};

/// Reader of the tokens of a reply, with separate methods for each part.
pub(super) struct ReplyFrame {
    /// Current part of the reply.
    part: FramePart,
    context: ReaderContext,
    /// Top-level elements that have begun.
    seen_elements: SeenElements,
    /// Text outside the elements, since `<thinking>` or `<final>` last began or since the start of the reply.
    surrounding: TopLevelText,
    /// The fence around the reply, if it has one.
    fence: Option<ReplyFence>,
    /// Set while an HTML comment is open; its content is text (T-027).
    is_in_comment: bool,
    draft: DraftReader,
    summary: SummaryReader,
    /// Text before the current summary, if the summary may be an example in that text.
    text_before_summary: Option<TextBeforeSummary>,
    /// Findings about the current summary, held because they do not apply to an example.
    held_reports: Vec<FindingReport>,
    /// The summary held until a structure begins.
    held_summary: Option<HeldSummary>,
    thinking: ThinkingReader,
    /// `</thinking>` that may be only text, and the text after it.
    mention: Option<ThinkingMention>,
    /// The current element that comes too late.
    late_element: Option<LateElement>,
    /// Set once a late element was read as a late thought.
    has_late_thought: bool,
    answer: FinalReader,
    /// The open queries block, in or after the answer.
    block: Option<QueriesBlock>,
    /// Place of a failure marker outside the elements.
    marker_place: Option<Place>,
    /// Text before `<final>`; it becomes the answer if `<final>` is empty.
    text_before_final: TopLevelText,
}

/// Current part of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramePart {
    /// Before, between or after the elements.
    Surrounding,
    Draft,
    Summary,
    /// Directly in `<thinking>`, or in one of its phases.
    Thinking,
    /// In a second `<thinking>`: text of the last phase, up to its end (T-008).
    SecondThinking,
    Final,
    /// In an element that comes too late, up to its end.
    Late,
}

impl ReplyFrame {
    pub(super) fn new(options: &Arc<Options>) -> ReplyFrame {
        ReplyFrame {
            part: FramePart::Surrounding,
            context: ReaderContext::new(options),
            seen_elements: SeenElements::default(),
            surrounding: TopLevelText::default(),
            fence: None,
            is_in_comment: false,
            draft: DraftReader::default(),
            summary: SummaryReader::new(options),
            text_before_summary: None,
            held_reports: Vec::new(),
            held_summary: None,
            thinking: ThinkingReader::default(),
            mention: None,
            late_element: None,
            has_late_thought: false,
            answer: FinalReader::new(options),
            block: None,
            marker_place: None,
            text_before_final: TopLevelText::default(),
        }
    }

    pub(super) fn context(&self) -> &ReaderContext {
        &self.context
    }

    /// Handles the next token.
    #[inline]
    pub(super) fn push_token<'a>(
        &mut self,
        token: MarkupToken<'_>,
        at: impl Into<LazyPlace<'a>>,
        out: &mut dyn IntentSink,
    ) {
        match token {
            MarkupToken::Text(text) if self.try_pass(text, out) => self.context.track_text(text),
            _ => self.push_placed_token(token, at.into().resolve(), out),
        }
    }

    /// Emits text that continues the answer or a phase and needs no place; returns whether it was emitted.
    #[inline]
    fn try_pass(&mut self, text: &str, out: &mut dyn IntentSink) -> bool {
        match self.part {
            FramePart::Final if self.block.is_none() && self.answer.can_pass(text) => {
                self.answer.pass(text, out)
            }
            FramePart::Thinking if self.mention.is_none() && self.thinking.can_pass() => {
                self.thinking.pass(text, out);
            }
            _ => return false,
        }
        true
    }

    /// Passes a token to the current part, and updates the content of the line.
    fn push_placed_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        let mut token = token;
        if let MarkupToken::Reasoning(raw, _) = token
            && !self.accepts_marks()
        {
            token = MarkupToken::Text(raw);
        }
        let is_consumed = self.mention.is_some() && self.push_after_mention(&token, out);
        if is_consumed || self.hold_mention(&token, at) {
            return;
        }
        let part_before = self.part;
        match part_before {
            FramePart::Final if self.block.is_some() => self.push_block_token(token, at, out),
            FramePart::Final => self.push_answer_token(token, at, out),
            FramePart::Thinking => self.push_thinking_token(token, at, out),
            FramePart::Surrounding => self.push_surrounding_token(token, at, out),
            FramePart::Draft => self.push_draft_token(token, at, out),
            FramePart::Summary => self.push_summary_token(token, at, out),
            FramePart::SecondThinking => self.push_second_thinking_token(token, at, out),
            FramePart::Late => self.push_late_token(token, at, out),
        }
        self.context.line = match token {
            MarkupToken::Text(text) => return self.context.track_text(text),
            // After these tags text counts as at the start of a line.
            MarkupToken::Tag(tag)
                if matches!(
                    structure::find_element(tag.name),
                    Some((
                        ThinkingMlElement::Thinking | ThinkingMlElement::Phase | ThinkingMlElement::Title,
                        _
                    ))
                ) =>
            {
                LineContent::Tag
            }
            // So does text after the end of an element, such as a draft.
            MarkupToken::Tag(_) if part_before != self.part && self.part == FramePart::Surrounding => {
                LineContent::Tag
            }
            _ => LineContent::Text,
        };
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.draft.held_bytes()
            + self.answer.held_bytes()
            + self.thinking.held_bytes()
            + self.mention.as_ref().map_or(0, ThinkingMention::len)
            + self.late_element.as_ref().map_or(0, LateElement::held_bytes)
            + self.held_summary.as_ref().map_or(0, HeldSummary::held_bytes)
            // After `<final>` text is held only as long as the answer is empty, since it may become the
            // answer.
            + match self.seen_elements.has(ThinkingMlElement::Final) {
                true if self.answer.is_empty() => self.surrounding.len() + self.text_before_final.len(),
                true => 0,
                false => self.surrounding.len(),
            }
    }

    /// Ends the current run of text.
    pub(super) fn flush(&mut self, out: &mut dyn IntentSink) {
        match (self.part, &mut self.late_element) {
            (FramePart::Thinking, _) => self.thinking.flush(out),
            (FramePart::Draft, _) => self.draft.flush(out),
            (FramePart::Late, Some(late_element)) => late_element.flush(out),
            _ => {}
        }
    }
}
