//! The end of an element, and its outcome.

use super::super::block::{Block, Came, notice};
use super::super::rules;
use super::super::tags::{Kind, Known};
use super::super::{call, choice, parts, status, update};
use super::{Frame, Mode, Open};
use crate::dialect::{Output, called};
use crate::finding::Report;
use crate::span::Place;

impl Frame {
    /// Closes the open element before `end`, without a closing tag.
    pub(super) fn leave(&mut self, end: usize, out: &mut dyn Output) {
        match &mut self.mode {
            Mode::Outside => {}
            Mode::Thought(_) | Mode::Content(_) => self.close_prose_at(false, end, out),
            Mode::Block(block) => {
                block.unclosed = true;
                let (name, tag) = (block.name.clone(), block.tag);
                self.report_unclosed(&name, tag, end, out);
                self.close_block(out);
            }
        }
    }

    fn report_unclosed(&self, name: &str, at: Place, end: usize, out: &mut dyn Output) {
        // A mark that is not a tag is named as written.
        let tag = if name.starts_with(char::is_alphanumeric) { format!("<{name}>") } else { name.to_owned() };
        let found = Report::new(rules::TAG_UNCLOSED, at, end, format!("`{tag}` is not closed"));
        out.report(found.repaired("closed here"));
    }

    /// Closes an empty thought or content.
    pub(super) fn close_prose(&mut self, out: &mut dyn Output) {
        self.close_prose_at(true, 0, out);
    }

    /// Closes a thought or the content before `end`; `closed` is set if a tag closed it.
    pub(super) fn close_prose_at(&mut self, closed: bool, end: usize, out: &mut dyn Output) {
        let (Mode::Thought(open) | Mode::Content(open)) = std::mem::replace(&mut self.mode, Mode::Outside)
        else {
            return;
        };
        self.ended(&open, closed, end, out);
    }

    fn ended(&mut self, open: &Open, closed: bool, end: usize, out: &mut dyn Output) {
        self.closed = None;
        self.between = false;
        match &open.tag {
            Some((name, at, _)) if !closed => self.report_unclosed(name, *at, end, out),
            Some(_) => {}
            None => self.end_text(open, closed, end, out),
        }
    }

    /// Closes a block.
    pub(super) fn close_block(&mut self, out: &mut dyn Output) {
        let Mode::Block(mut block) = std::mem::replace(&mut self.mode, Mode::Outside) else { return };
        block.without_mark();
        let Known { at, kind, .. } = block.known;
        self.closed = Some(at);
        if block.nested {
            self.resume();
        }
        if block.over {
            self.content.part();
            return match kind {
                Kind::Update => notice(update::FAILED, None, out),
                Kind::Call => notice(called::REFUSED, None, out),
                _ => {}
            };
        }
        if self.doubtful && matches!(kind, Kind::Update | Kind::Call) {
            return self.refuse_doubtful(&block, out);
        }
        let cx = &self.cx;
        let came = match kind {
            Kind::Update => update::read(&block, cx, out),
            Kind::Call => call::read(&block, cx, &mut self.calls, &mut self.checks, out),
            Kind::Status => status::read(&block, cx, out),
            Kind::Details => parts::details(&block, cx, out),
            Kind::Choice => choice::read(&block, cx, out),
            Kind::Component => parts::component(&block, cx, out),
            Kind::Media => parts::media(&block, cx, out),
            Kind::Own => parts::own(&block, self.tags.element(at), cx, out),
            Kind::Thought | Kind::Content => Came::Done,
        };
        self.came(came, &block, out);
    }

    /// Refuses a block that may be inside a thought.
    fn refuse_doubtful(&mut self, block: &Block, out: &mut dyn Output) {
        let message =
            format!("`<{}>` stands behind a thought or a comment that may not have ended", block.name);
        let found = Report::new(rules::BLOCK_IN_THOUGHT, block.tag, block.end(), message);
        out.report(found.repaired("shown as text"));
        let came = match block.known.kind {
            Kind::Update => update::failed(block, out),
            _ => {
                notice(called::REFUSED, block.attribute("name").map(str::to_owned), out);
                block.raw(out)
            }
        };
        self.came(came, block, out);
    }

    /// Shows the unreadable part of a block as text of the content (F-210).
    pub(super) fn came(&mut self, came: Came, block: &Block, out: &mut dyn Output) {
        match came {
            Came::Done => {}
            Came::Raw(text) if text.trim().is_empty() => {}
            Came::Raw(text) => self.content.paragraph(&mut [(block.at, &*text)].into_iter(), out),
            Came::Behind(at) => {
                let lead = block.body[at..].len() - block.body[at..].trim_start().len();
                let place = block.at.after(&block.body[..at + lead]);
                let rest = &block.body[at + lead..];
                self.content.paragraph(&mut [(place, rest)].into_iter(), out);
            }
            Came::Text => {
                let (mut place, mut read) = (block.at, 0);
                let mut lines = Vec::new();
                for (at, text) in status::pieces(&block.body) {
                    place.advance(&block.body[read..at]);
                    read = at;
                    if !lines.is_empty() {
                        lines.push((place, "\n"));
                    }
                    lines.push((place, text));
                }
                self.content.paragraph(&mut lines.into_iter(), out);
            }
        }
    }

    /// Resumes the content after a block in it.
    pub(super) fn resume(&mut self) {
        self.content.gap();
        if let Some((open, prose)) = self.around.take() {
            (self.mode, self.prose) = (Mode::Content(open), prose);
        }
    }
}
