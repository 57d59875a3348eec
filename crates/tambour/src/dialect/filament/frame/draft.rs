//! An acting block in an open thought, or a mark that may close only a nested thought. It is resolved when
//! the thought ends or the content begins.

use super::super::block::notice;
use super::super::call::Waiting;
use super::super::prose::Prose;
use super::super::rules;
use super::super::tags::{Kind, Known};
use super::{Frame, Marks, Mode};
use crate::dialect::{Intent, Output, called};
use crate::finding::{Report, clip};
use crate::lex::markup::{Tag, TagKind};
use crate::lex::space::is_space;
use crate::span::{At, Place};

/// Held text from the tag of an acting block on, or from a mark that may close only a nested thought.
pub(super) struct Draft {
    /// Start of the held text.
    at: Place,
    /// The tag or mark, without attributes.
    mark: String,
    /// The possible end of the thought, if the text begins with one.
    closes: Option<DoubtfulEnd>,
    text: String,
    /// Thoughts that were opened in it.
    inner: usize,
    /// Number of times the text was read before, after other drafts that turned out not to be drafts.
    reads: usize,
}

/// A mark that may close only a nested thought, and the reader's state there, since later text may be read
/// again.
struct DoubtfulEnd {
    is: InnerEnd,
    prose: Prose,
    marks: Marks,
    remark: bool,
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
const READS: usize = 8;

/// Event that makes a held draft part of the thinking.
#[derive(Clone, Copy)]
pub(super) enum DraftEnd {
    /// The closing mark of the thought.
    Mark,
    /// The end of a truncated reply.
    Cut,
    /// The hold limit.
    Limit,
}

impl Draft {
    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        self.text.len()
    }
}

impl Frame {
    /// Handles a tag in a thought that is not code. Returns whether it is text of the thinking, or of a draft
    /// held there.
    pub(super) fn is_drafted(&mut self, tag: &Tag<'_>, known: Option<Known>, at: Place) -> bool {
        if !matches!(self.mode, Mode::Thought(_)) {
            return false;
        }
        let kind = known.map(|known| known.kind);
        let opens = tag.kind != TagKind::Close;
        match (kind, opens) {
            (Some(Kind::Thought), false) | (Some(Kind::Content), true) => false,
            (Some(Kind::Thought), true) => {
                self.opens_inside(tag.kind == TagKind::Open);
                self.draft.is_some()
            }
            // Not an acting block: a closing tag in the draft, or an envelope.
            _ if self.draft.is_some() => true,
            (Some(Kind::Content) | None, _) => false,
            // An example, which is text whatever follows.
            (Some(_), _) if self.prose.is_quoted() || self.remark => true,
            (Some(_), false) => false,
            (Some(_), true) => {
                self.hold(format!("<{}>", tag.name), None, at);
                true
            }
        }
    }

    /// Holds the following text of the thought.
    fn hold(&mut self, mark: String, closes: Option<DoubtfulEnd>, at: Place) {
        self.draft = Some(Draft { at, mark, closes, text: String::new(), inner: 0, reads: self.reads });
    }

    /// Counts a thought that begins in the open one.
    pub(super) fn opens_inside(&mut self, opens: bool) {
        if opens && matches!(&self.mode, Mode::Thought(open) if open.tag.is_some()) {
            *self.inner_thoughts() += 1;
        }
    }

    /// Counts the end of a nested thought; returns whether there was one.
    pub(super) fn closes_inside(&mut self) -> bool {
        let inner = self.inner_thoughts();
        let some = *inner > 0;
        *inner -= usize::from(some);
        some
    }

    fn inner_thoughts(&mut self) -> &mut usize {
        match &mut self.draft {
            Some(draft) => &mut draft.inner,
            None => &mut self.inner,
        }
    }

    /// Handles a mark that closes a thought. Returns whether the open one ends; otherwise the mark is, or may
    /// be, text of the thinking.
    pub(super) fn ends_thought(
        &mut self,
        raw: &str,
        inner: InnerEnd,
        at: Place,
        out: &mut dyn Output,
    ) -> bool {
        let within = self.draft.is_some() && self.closes_inside();
        if within || self.inner > 0 && self.reads < READS {
            if !within {
                self.keep_draft(DraftEnd::Mark, out);
                self.inner -= 1;
                let closes = self.doubtful_end(inner);
                self.hold(raw.to_owned(), closes, at);
            }
            self.plain(raw, At::from(at), out);
            return false;
        }
        self.doubtful |= self.inner > 0;
        self.inner = 0;
        self.keep_draft(DraftEnd::Mark, out);
        true
    }

    fn doubtful_end(&self, is: InnerEnd) -> Option<DoubtfulEnd> {
        let Mode::Thought(open) = &self.mode else { return None };
        Some(DoubtfulEnd { is, prose: self.prose.clone(), marks: open.marks, remark: self.remark })
    }

    /// Returns whether a possible draft is held.
    pub(super) fn has_draft(&self) -> bool {
        self.draft.is_some()
    }

    /// Refuses the calls before a mark that closes reasoning without an opening mark: that text may have been
    /// thinking.
    pub(super) fn withdraw_calls(&mut self, mark: &str, out: &mut dyn Output) {
        for Waiting { call, place, end } in std::mem::take(&mut self.calls) {
            let message =
                format!("`{}` is called before `{mark}`, which ends thinking", clip(&call.name, 60));
            let found = Report::new(rules::BLOCK_IN_THOUGHT, place, end, message);
            out.report(found.row("R-93").repaired("not called, its arguments are not used"));
            notice(called::REFUSED, Some(clip(&call.name, 60).into_owned()), out);
        }
    }

    /// Emits text of a thought, or holds it as part of a draft.
    pub(super) fn thought_text(&mut self, text: &str, out: &mut dyn Output) {
        let Some(draft) = &mut self.draft else { return self.thinking(text, out) };
        draft.text.push_str(text);
        if draft.reads >= READS || draft.text.len() > self.cx.options.limits.hold {
            self.keep_draft(DraftEnd::Limit, out);
        }
    }

    /// Resolves held text as a draft: thinking, in which nothing acts.
    pub(super) fn keep_draft(&mut self, end: DraftEnd, out: &mut dyn Output) {
        let is_block = |draft: &Draft| draft.closes.is_none();
        if !self.draft.as_ref().is_none_or(is_block) && !matches!(end, DraftEnd::Mark) {
            // The answer is not lost, but nothing in it acts.
            self.doubtful = true;
            return self.read_draft(out);
        }
        let Some(Draft { at, mark, text, closes, .. }) = self.draft.take() else { return };
        match closes.map(|closes| closes.is) {
            Some(InnerEnd::Phase) => return self.thinking(&text[mark.len()..], out),
            Some(InnerEnd::Text) => return self.thinking(&text, out),
            None => {}
        }
        let (message, repair) = match end {
            DraftEnd::Mark => (format!("`{mark}` stands in a thought"), "read as thinking"),
            DraftEnd::Cut => {
                (format!("the reply was cut in a thought, behind `{mark}` in it"), "read as thinking")
            }
            DraftEnd::Limit => {
                (format!("`{mark}` stands in a thought that does not end soon enough"), "read as thinking")
            }
        };
        // Text beyond the limit is left out of the span: its length depends on the chunks.
        let most = text.floor_char_boundary(self.cx.options.limits.hold);
        out.report(Report::new(rules::BLOCK_IN_THOUGHT, at, at.offset + most, message).repaired(repair));
        self.thinking(&text, out);
    }

    /// Resolves held text as not a draft: the thought ended before it (F-202).
    pub(super) fn read_draft(&mut self, out: &mut dyn Output) {
        let Some(Draft { at, text, reads, closes, .. }) = self.draft.take() else { return };
        self.inner = 0;
        match (closes, &mut self.mode) {
            (Some(DoubtfulEnd { prose, marks, remark, .. }), Mode::Thought(open)) => {
                (self.prose, open.marks, self.remark) = (prose, marks, remark);
            }
            _ => self.leave(at.offset, out),
        }
        let before = std::mem::replace(&mut self.reads, reads + 1);
        self.read_again(&text, at, out);
        self.reads = before;
    }

    /// Emits text of the thinking.
    fn thinking(&mut self, text: &str, out: &mut dyn Output) {
        let limit = self.cx.options.limits.value;
        let Mode::Thought(open) = &mut self.mode else { return };
        // A leading byte order mark is no text.
        let text =
            if open.begun { text } else { text.trim_start_matches(|c| is_space(c) || c == '\u{FEFF}') };
        if text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut open.begun, true) {
            out.intent(Intent::Phase("".into(), open.from));
        }
        if open.tag.is_none() && self.head.len() < limit {
            let room = text.floor_char_boundary(limit - self.head.len());
            self.head.push_str(&text[..room]);
        }
        if std::mem::take(&mut self.joint) && !self.thought_line && !text.starts_with('\n') {
            out.intent(Intent::PhaseText("\n"));
        }
        self.thought_line = text.ends_with('\n');
        out.intent(Intent::PhaseText(text));
    }
}
