//! Possible drafts in an open thought: text held from the tag of an acting block on, or from a mark
//! that may close only a nested thought. If the thought ends after the text, the text is a draft: thinking,
//! in which nothing acts. If the content begins first, the thought ended before the text, and the text is
//! read again.

use super::super::block::emit_notice;
use super::super::code_filter::MarkdownTracker;
use super::super::rules;
use super::super::tags::{ElementKind, KnownElement};
use super::super::tool_call::HeldToolCall;
use super::{FilamentFrame, OpenElementState, OpenReasoning};
use crate::dialect::{Intent, IntentSink, MAX_EXCERPT_CHARS, call_check};
use crate::finding::{FindingReport, clip};
use crate::lex::markup::{MarkupTag, TagKind};
use crate::lex::space::is_space;
use crate::span::{LazyPlace, Place};

/// Held text of a thought, from the tag of an acting block on, or from a doubtful end.
pub(super) struct HeldDraft {
    /// Start of the held text.
    start: Place,
    /// The tag or mark that the text begins with, without attributes.
    mark: String,
    /// The possible end of the thought, if the text begins with one.
    doubtful_end: Option<DoubtfulEnd>,
    text: String,
    /// Number of nested thoughts that are open in the text.
    inner_thought_count: usize,
    /// Number of times the text has been read before, because it turned out not to be a draft.
    read_count: usize,
}

/// A mark that may close only a nested thought, and the state of the reader after it, which is restored if
/// the text is read again.
struct DoubtfulEnd {
    /// Meaning of the mark if it closes only a nested thought.
    meaning: InnerEnd,
    markdown: MarkdownTracker,
    open_reasoning: OpenReasoning,
    is_in_comment: bool,
}

/// Meaning of a mark if it closes only a nested thought.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InnerEnd {
    /// The mark is dropped, because its opening tag began a new phase.
    Phase,
    /// The mark is text of the thinking, as its opening mark is.
    Text,
}

/// Maximum number of times that a text is read, so that the cost stays linear.
const MAX_READS: usize = 8;

/// Reason why a held draft is part of the thinking.
#[derive(Clone, Copy)]
pub(super) enum DraftEnd {
    /// The closing mark of the thought.
    Mark,
    /// The end of a truncated reply.
    Truncated,
    /// The hold limit.
    Limit,
}

impl HeldDraft {
    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.len()
    }
}

impl FilamentFrame {
    /// Handles a tag in a thought, not in code. Returns whether the tag is text of the thinking or of a
    /// draft. An acting block begins a draft.
    pub(super) fn handle_thought_tag(
        &mut self,
        tag: &MarkupTag<'_>,
        element: Option<KnownElement>,
        at: Place,
    ) -> bool {
        if !matches!(self.open_element, OpenElementState::Thought(_)) {
            return false;
        }
        let kind = element.map(|element| element.kind);
        let is_opening = tag.kind != TagKind::Close;
        match (kind, is_opening) {
            (Some(ElementKind::Thought), false) | (Some(ElementKind::Content), true) => false,
            (Some(ElementKind::Thought), true) => {
                self.open_inner_thought(tag.kind == TagKind::Open);
                self.draft.is_some()
            }
            // All other tags in a draft are its text.
            _ if self.draft.is_some() => true,
            (Some(ElementKind::Content) | None, _) => false,
            // An example in a quotation or comment: text whatever follows.
            (Some(_), _) if self.markdown.is_quoted() || self.is_in_comment => true,
            (Some(_), false) => false,
            (Some(_), true) => {
                self.hold_draft(format!("<{}>", tag.name), None, at);
                true
            }
        }
    }

    /// Holds the text of the open thought from `start` on, where `mark` is.
    fn hold_draft(&mut self, mark: String, doubtful_end: Option<DoubtfulEnd>, start: Place) {
        self.draft = Some(HeldDraft {
            start,
            mark,
            doubtful_end,
            text: String::new(),
            inner_thought_count: 0,
            read_count: self.read_count,
        });
    }

    /// Counts a nested thought that opens in the open thought, if a tag began the open thought. `stays_open`
    /// is false if the nested thought is only a self-closing tag, which does not count.
    pub(super) fn open_inner_thought(&mut self, stays_open: bool) {
        if stays_open && matches!(&self.open_element, OpenElementState::Thought(part) if part.tag.is_some()) {
            *self.inner_thought_count_mut() += 1;
        }
    }

    /// Counts the end of a nested thought; returns whether there was one.
    pub(super) fn close_inner_thought(&mut self) -> bool {
        let count = self.inner_thought_count_mut();
        let has_inner = *count > 0;
        *count -= usize::from(has_inner);
        has_inner
    }

    /// Returns the number of open nested thoughts, in the draft if there is one.
    fn inner_thought_count_mut(&mut self) -> &mut usize {
        match &mut self.draft {
            Some(draft) => &mut draft.inner_thought_count,
            None => &mut self.inner_thought_count,
        }
    }

    /// Handles a mark that closes a thought. Returns whether the open thought ends. Otherwise the mark closes
    /// a nested thought, and is text or begins a draft; `inner_end` is the meaning of such a mark.
    pub(super) fn try_end_thought(
        &mut self,
        raw: &str,
        inner_end: InnerEnd,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let closes_inner_of_draft = self.draft.is_some() && self.close_inner_thought();
        if closes_inner_of_draft || self.inner_thought_count > 0 && self.read_count < MAX_READS {
            if !closes_inner_of_draft {
                self.keep_draft(DraftEnd::Mark, out);
                self.inner_thought_count -= 1;
                let doubtful_end = self.new_doubtful_end(inner_end);
                self.hold_draft(raw.to_owned(), doubtful_end, at);
            }
            self.push_text(raw, LazyPlace::from(at), out);
            return false;
        }
        self.is_doubtful |= self.inner_thought_count > 0;
        self.inner_thought_count = 0;
        self.keep_draft(DraftEnd::Mark, out);
        true
    }

    /// Captures the state of the reader at a doubtful end; `None` outside of thoughts.
    fn new_doubtful_end(&self, meaning: InnerEnd) -> Option<DoubtfulEnd> {
        let OpenElementState::Thought(part) = &self.open_element else { return None };
        Some(DoubtfulEnd {
            meaning,
            markdown: self.markdown.clone(),
            open_reasoning: part.open_reasoning,
            is_in_comment: self.is_in_comment,
        })
    }

    /// Returns whether text is held that may be a draft.
    pub(super) fn has_draft(&self) -> bool {
        self.draft.is_some()
    }

    /// Refuses all calls before `mark`, which closes reasoning without an opening mark: the text before it
    /// may have been thinking.
    pub(super) fn refuse_held_calls(&mut self, mark: &str, out: &mut dyn IntentSink) {
        for HeldToolCall { call, start, end } in std::mem::take(&mut self.held_calls) {
            let name = clip(&call.name, MAX_EXCERPT_CHARS).into_owned();
            let message = format!("`{name}` is called before `{mark}`, which ends thinking");
            let report = FindingReport::new(rules::BLOCK_IN_THOUGHT, start, end, message);
            out.report(report.with_row("R-93").with_repair("not called, its arguments are not used"));
            emit_notice(call_check::REFUSED_CODE, Some(name), out);
        }
    }

    /// Emits text of a thought, or holds it as part of a draft.
    pub(super) fn push_thought_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        let Some(draft) = &mut self.draft else { return self.emit_thinking(text, out) };
        draft.text.push_str(text);
        if draft.read_count >= MAX_READS || draft.text.len() > self.context.options.limits.hold {
            self.keep_draft(DraftEnd::Limit, out);
        }
    }

    /// Resolves held text as a draft: thinking, in which nothing acts. `end` is the reason.
    pub(super) fn keep_draft(&mut self, end: DraftEnd, out: &mut dyn IntentSink) {
        let has_doubtful_end = self.draft.as_ref().is_some_and(|draft| draft.doubtful_end.is_some());
        if has_doubtful_end && !matches!(end, DraftEnd::Mark) {
            // The thought may have ended at the mark, so the text after it is read again, but nothing in it
            // acts.
            self.is_doubtful = true;
            return self.replay_draft(out);
        }
        let Some(HeldDraft { start, mark, text, doubtful_end, .. }) = self.draft.take() else { return };
        match doubtful_end.map(|doubtful_end| doubtful_end.meaning) {
            Some(InnerEnd::Phase) => return self.emit_thinking(&text[mark.len()..], out),
            Some(InnerEnd::Text) => return self.emit_thinking(&text, out),
            None => {}
        }
        let (message, repair) = match end {
            DraftEnd::Mark => (format!("`{mark}` is inside a thought"), "read as thinking"),
            DraftEnd::Truncated => {
                (format!("the reply was cut off in a thought, after `{mark}` in it"), "read as thinking")
            }
            DraftEnd::Limit => {
                (format!("`{mark}` is inside a thought that does not end soon enough"), "read as thinking")
            }
        };
        // The span ends at the limit, since the length of the text beyond it depends on the chunks.
        let excerpt_len = text.floor_char_boundary(self.context.options.limits.hold);
        out.report(
            FindingReport::new(rules::BLOCK_IN_THOUGHT, start, start.offset + excerpt_len, message)
                .with_repair(repair),
        );
        self.emit_thinking(&text, out);
    }

    /// Reads held text again because it is not a draft: the thought ended before it (F-202).
    pub(super) fn replay_draft(&mut self, out: &mut dyn IntentSink) {
        let Some(HeldDraft { start, text, read_count, doubtful_end, .. }) = self.draft.take() else { return };
        self.inner_thought_count = 0;
        match (doubtful_end, &mut self.open_element) {
            (Some(doubtful_end), OpenElementState::Thought(part)) => {
                part.open_reasoning = doubtful_end.open_reasoning;
                self.markdown = doubtful_end.markdown;
                self.is_in_comment = doubtful_end.is_in_comment;
            }
            _ => self.close_unclosed(start.offset, out),
        }
        let previous_count = std::mem::replace(&mut self.read_count, read_count + 1);
        self.replay(&text, start, out);
        self.read_count = previous_count;
    }

    /// Emits text of the thinking.
    fn emit_thinking(&mut self, text: &str, out: &mut dyn IntentSink) {
        let limit = self.context.options.limits.value;
        let OpenElementState::Thought(part) = &mut self.open_element else { return };
        // A leading byte order mark does not count as text.
        let text =
            if part.has_phase { text } else { text.trim_start_matches(|c| is_space(c) || c == '\u{FEFF}') };
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut part.has_phase, true) {
            out.emit_intent(Intent::Phase("".into(), part.text_start));
        }
        if part.tag.is_none() && self.head_text.len() < limit {
            let fitting_len = text.floor_char_boundary(limit - self.head_text.len());
            self.head_text.push_str(&text[..fitting_len]);
        }
        if std::mem::take(&mut self.is_line_break_due) && !self.ends_with_newline && !text.starts_with('\n') {
            out.emit_intent(Intent::PhaseText("\n"));
        }
        self.ends_with_newline = text.ends_with('\n');
        out.emit_intent(Intent::PhaseText(text));
    }
}
