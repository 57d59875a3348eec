//! An acting block in an open thought, or a mark that may close only a nested thought. It is resolved when
//! the thought ends or the content begins.

use super::super::block::emit_notice;
use super::super::code_filter::MarkdownTracker;
use super::super::rules;
use super::super::tags::{ElementKind, KnownElement};
use super::super::tool_call::HeldToolCall;
use super::{FilamentFrame, Marks, OpenElementState};
use crate::dialect::{Intent, IntentSink, call_check};
use crate::finding::{FindingReport, clip};
use crate::lex::markup::{MarkupTag, TagKind};
use crate::lex::space::is_space;
use crate::span::{LazyPlace, Place};

/// Held text from the tag of an acting block on, or from a mark that may close only a nested thought.
pub(super) struct HeldDraft {
    /// Start of the held text.
    start: Place,
    /// The tag or mark, without attributes.
    mark: String,
    /// The possible end of the thought, if the text begins with one.
    doubtful_end: Option<DoubtfulEnd>,
    text: String,
    /// Thoughts that were opened in it.
    inner_thoughts: usize,
    /// Number of times the text was read before, after other drafts that turned out not to be drafts.
    read_count: usize,
}

/// A mark that may close only a nested thought, and the reader's state there, since later text may be read
/// again.
struct DoubtfulEnd {
    meaning: InnerEnd,
    prose: MarkdownTracker,
    marks: Marks,
    is_in_comment: bool,
}

/// Meaning of a mark that closes a nested thought.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InnerEnd {
    /// Its opening mark began a phase.
    Phase,
    /// Its opening mark is text of the thinking, and so is this one.
    Text,
}

/// Most times one text is read, so that the cost stays linear.
const MAX_READS: usize = 8;

/// Event that makes a held draft part of the thinking.
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
    /// Handles a tag in a thought that is not code. Returns whether it is text of the thinking, or of a draft
    /// held there.
    pub(super) fn is_draft_text(
        &mut self,
        tag: &MarkupTag<'_>,
        element: Option<KnownElement>,
        at: Place,
    ) -> bool {
        if !matches!(self.mode, OpenElementState::Thought(_)) {
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
            // Not an acting block: a closing tag in the draft, or an envelope.
            _ if self.draft.is_some() => true,
            (Some(ElementKind::Content) | None, _) => false,
            // An example, which is text whatever follows.
            (Some(_), _) if self.prose.is_quoted() || self.in_comment => true,
            (Some(_), false) => false,
            (Some(_), true) => {
                self.hold_draft(format!("<{}>", tag.name), None, at);
                true
            }
        }
    }

    /// Holds the following text of the thought.
    fn hold_draft(&mut self, mark: String, doubtful_end: Option<DoubtfulEnd>, start: Place) {
        self.draft = Some(HeldDraft {
            start,
            mark,
            doubtful_end,
            text: String::new(),
            inner_thoughts: 0,
            read_count: self.read_count,
        });
    }

    /// Counts a thought that begins in the open one.
    pub(super) fn open_inner_thought(&mut self, is_opening: bool) {
        if is_opening && matches!(&self.mode, OpenElementState::Thought(open) if open.tag.is_some()) {
            *self.inner_thought_count() += 1;
        }
    }

    /// Counts the end of a nested thought; returns whether there was one.
    pub(super) fn close_inner_thought(&mut self) -> bool {
        let inner = self.inner_thought_count();
        let has_inner = *inner > 0;
        *inner -= usize::from(has_inner);
        has_inner
    }

    fn inner_thought_count(&mut self) -> &mut usize {
        match &mut self.draft {
            Some(draft) => &mut draft.inner_thoughts,
            None => &mut self.inner_thoughts,
        }
    }

    /// Handles a mark that closes a thought. Returns whether the open one ends; otherwise the mark is, or may
    /// be, text of the thinking.
    pub(super) fn try_end_thought(
        &mut self,
        raw: &str,
        inner: InnerEnd,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let is_inner = self.draft.is_some() && self.close_inner_thought();
        if is_inner || self.inner_thoughts > 0 && self.read_count < MAX_READS {
            if !is_inner {
                self.keep_draft(DraftEnd::Mark, out);
                self.inner_thoughts -= 1;
                let doubtful_end = self.new_doubtful_end(inner);
                self.hold_draft(raw.to_owned(), doubtful_end, at);
            }
            self.push_text(raw, LazyPlace::from(at), out);
            return false;
        }
        self.is_doubtful |= self.inner_thoughts > 0;
        self.inner_thoughts = 0;
        self.keep_draft(DraftEnd::Mark, out);
        true
    }

    fn new_doubtful_end(&self, meaning: InnerEnd) -> Option<DoubtfulEnd> {
        let OpenElementState::Thought(open) = &self.mode else { return None };
        Some(DoubtfulEnd {
            meaning,
            prose: self.prose.clone(),
            marks: open.marks,
            is_in_comment: self.in_comment,
        })
    }

    /// Returns whether a possible draft is held.
    pub(super) fn has_draft(&self) -> bool {
        self.draft.is_some()
    }

    /// Refuses the calls before a mark that closes reasoning without an opening mark: that text may have been
    /// thinking.
    pub(super) fn refuse_held_calls(&mut self, mark: &str, out: &mut dyn IntentSink) {
        for HeldToolCall { call, start, end } in std::mem::take(&mut self.held_calls) {
            let message =
                format!("`{}` is called before `{mark}`, which ends thinking", clip(&call.name, 60));
            let found = FindingReport::new(rules::BLOCK_IN_THOUGHT, start, end, message);
            out.report(found.with_row("R-93").with_repair("not called, its arguments are not used"));
            emit_notice(call_check::REFUSED_CODE, Some(clip(&call.name, 60).into_owned()), out);
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

    /// Resolves held text as a draft: thinking, in which nothing acts.
    pub(super) fn keep_draft(&mut self, end: DraftEnd, out: &mut dyn IntentSink) {
        let is_block = |draft: &HeldDraft| draft.doubtful_end.is_none();
        if !self.draft.as_ref().is_none_or(is_block) && !matches!(end, DraftEnd::Mark) {
            // The answer is not lost, but nothing in it acts.
            self.is_doubtful = true;
            return self.replay_draft(out);
        }
        let Some(HeldDraft { start, mark, text, doubtful_end, .. }) = self.draft.take() else { return };
        match doubtful_end.map(|end_mark| end_mark.meaning) {
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
        // Text beyond the limit is left out of the span: its length depends on the chunks.
        let excerpt_len = text.floor_char_boundary(self.context.options.limits.hold);
        out.report(
            FindingReport::new(rules::BLOCK_IN_THOUGHT, start, start.offset + excerpt_len, message)
                .with_repair(repair),
        );
        self.emit_thinking(&text, out);
    }

    /// Resolves held text as not a draft: the thought ended before it (F-202).
    pub(super) fn replay_draft(&mut self, out: &mut dyn IntentSink) {
        let Some(HeldDraft { start, text, read_count, doubtful_end, .. }) = self.draft.take() else { return };
        self.inner_thoughts = 0;
        match (doubtful_end, &mut self.mode) {
            (Some(DoubtfulEnd { prose, marks, is_in_comment, .. }), OpenElementState::Thought(open)) => {
                (self.prose, open.marks, self.in_comment) = (prose, marks, is_in_comment);
            }
            _ => self.close_unclosed(start.offset, out),
        }
        let before = std::mem::replace(&mut self.read_count, read_count + 1);
        self.replay(&text, start, out);
        self.read_count = before;
    }

    /// Emits text of the thinking.
    fn emit_thinking(&mut self, text: &str, out: &mut dyn IntentSink) {
        let limit = self.context.options.limits.value;
        let OpenElementState::Thought(open) = &mut self.mode else { return };
        // A leading byte order mark is no text.
        let text =
            if open.has_phase { text } else { text.trim_start_matches(|c| is_space(c) || c == '\u{FEFF}') };
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut open.has_phase, true) {
            out.emit_intent(Intent::Phase("".into(), open.text_start));
        }
        if open.tag.is_none() && self.head_text.len() < limit {
            let room = text.floor_char_boundary(limit - self.head_text.len());
            self.head_text.push_str(&text[..room]);
        }
        if std::mem::take(&mut self.is_line_break_due) && !self.ends_with_newline && !text.starts_with('\n') {
            out.emit_intent(Intent::PhaseText("\n"));
        }
        self.ends_with_newline = text.ends_with('\n');
        out.emit_intent(Intent::PhaseText(text));
    }
}
