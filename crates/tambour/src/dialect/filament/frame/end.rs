//! The end of the reply: open elements are closed, and missing ones reported.

use super::super::block::{Came, notice};
use super::super::call::Waiting;
use super::super::rules;
use super::super::tags::Kind;
use super::super::{choice, parts, update};
use super::draft::DraftEnd;
use super::{Frame, Mode};
use crate::dialect::{Action, Intent, Output};
use crate::finding::Report;
use crate::span::{At, Place};

impl Frame {
    /// Leaves out an incomplete tag at the very end (F-204).
    pub(in super::super) fn half_tag(&mut self, half: &str, at: Place, out: &mut dyn Output) {
        let message = format!("the reply ends within a tag: `{half}`");
        let found = Report::new(rules::TAG_CUT, at, at.offset + half.len(), message);
        out.report(found.repaired("left out"));
    }

    /// Ends the reply at `end`; `cut` is set if it was truncated.
    pub(in super::super) fn finish(&mut self, end: Place, cut: bool, out: &mut dyn Output) {
        self.words_end(out);
        loop {
            while let Some((counts, kept)) = self.prose.end() {
                self.decided(counts, &kept, out);
            }
            self.fence_ends(out);
            match &self.draft {
                // A truncated reply may have ended within the comment.
                None if !cut && self.comment_closes() => self.end_at_close(out),
                None if !cut && self.comment.is_some() && self.is_outside() => self.no_comment(out),
                None => break,
                Some(_) if cut => self.keep_draft(DraftEnd::Cut, out),
                Some(_) => self.read_draft(out),
            }
        }
        if self.comment.is_some() {
            self.comment_ends(false, end.offset, out);
        }
        while !matches!(self.mode, Mode::Outside) {
            if cut && matches!(self.mode, Mode::Block(_)) {
                self.cut_block(end.offset, out);
            } else {
                self.leave(end.offset, out);
            }
        }
        self.missing(end, out);
        self.content.finish(out);
        if let Some(found) = self.content.tail().and_then(choice::of_text) {
            let found_at =
                Report::new(rules::CHOICES_FROM_TEXT, end, end.offset, "a list at the end of the text");
            out.report(found_at.repaired("offered as a choice"));
            out.act(Action::Show(found.into()));
        }
        for Waiting { call, place, end } in std::mem::take(&mut self.calls) {
            if cut {
                let message = format!("the reply was cut; `{}` is not called", call.name);
                out.report(Report::new(rules::TOOL_CALL_CUT, place, end, message));
                notice("tool_call_cut", Some(call.name), out);
            } else {
                out.act(Action::Call(call));
            }
        }
    }

    /// Handles a block that the end of the reply truncated: nothing of it runs (F-214).
    fn cut_block(&mut self, end: usize, out: &mut dyn Output) {
        let Mode::Block(mut block) = std::mem::replace(&mut self.mode, Mode::Outside) else { return };
        block.without_mark();
        if block.nested {
            self.resume();
        }
        let message = format!("the reply was cut within `<{}>`", block.name);
        let found = Report::new(rules::BLOCK_CUT, block.tag, end, message);
        let tags = matches!(block.known.kind, Kind::Status | Kind::Choice);
        let tags = if tags { ", its tags not used" } else { "" };
        out.report(found.repaired(format!("nothing of it runs; shown as text{tags}")));
        if block.over {
            return;
        }
        let came = match block.known.kind {
            Kind::Update => {
                notice(update::FAILED, None, out);
                Came::Raw(block.body.clone())
            }
            Kind::Call => {
                notice("tool_call_cut", block.attribute("name").map(str::to_owned), out);
                Came::Raw(block.body.clone())
            }
            // Folded text is text.
            Kind::Details => parts::details(&block, &self.cx, out),
            Kind::Status | Kind::Choice => Came::Text,
            _ => Came::Raw(block.body.clone()),
        };
        self.came(came, &block, out);
    }

    /// Reports missing mandatory elements.
    fn missing(&mut self, end: Place, out: &mut dyn Output) {
        self.seen.extend(self.assumed);
        for element in self.tags.missing(&self.seen) {
            let name = self.tags.element(element).name.clone();
            let message = format!("there is no `<{name}>`");
            let found = Report::new(rules::TAG_MISSING, end, end.offset, message);
            out.report(match self.tags.kind(element) {
                Kind::Content if self.content.filled() => {
                    found.repaired("text outside of tags is the content")
                }
                Kind::Content => found.repaired("something stands in for it"),
                _ => found,
            });
        }
        let mandatory = self.tags.first(Kind::Content).is_some_and(|at| self.tags.element(at).mandatory);
        if self.content.filled() || !mandatory {
            return;
        }
        let head = std::mem::take(&mut self.head);
        let found = Report::new(rules::CONTENT_MISSING, end, end.offset, "the reply has no content");
        if head.trim().is_empty() {
            return out.report(found.repaired("the fallback text"));
        }
        out.report(found.repaired("the text before all tags is the content"));
        if !std::mem::replace(&mut self.answering, true) {
            out.intent(Intent::ThinkingEnd);
        }
        self.content.part();
        self.content.text(head.trim_end(), At::from(end), out);
    }
}
