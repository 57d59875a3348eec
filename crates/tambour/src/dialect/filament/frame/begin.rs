//! The beginning of an element: its kind, and faults of its position.

use super::super::block::{Block, Quotes};
use super::super::prose::Prose;
use super::super::rules;
use super::super::tags::{Form, Kind, Known, attributes, contradicts_itself};
use super::{Frame, Mode, Open, mark_of, report};
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::markup::{Tag, TagKind};
use crate::lex::quoting::Quoting;
use crate::span::Place;
use crate::structure::{Misfit, Written};

impl Frame {
    /// Begins an element of the structure.
    pub(super) fn begin(&mut self, tag: &Tag<'_>, known: Known, at: Place, out: &mut dyn Output) {
        self.begun = true;
        let adjacent =
            self.closed.take() == Some(known.at) && matches!(known.kind, Kind::Thought | Kind::Content);
        self.check_tag(tag, known, at, out);
        if self.tags.is_unasked(known.at) {
            let message = format!("`{}` is no tag of the structure", tag.name);
            let found = Report::new(rules::TAG_UNEXPECTED, at, at.offset + tag.raw.len(), message);
            out.report(found.row("F-234").repaired("read as thinking"));
        } else {
            self.named(tag, known, at, out);
        }
        let empty = tag.kind == TagKind::SelfClosing;
        if empty && known.kind != Kind::Media {
            let message = format!("`{}` closes itself", tag.raw);
            report(rules::SELF_CLOSING, at, tag.raw.len(), message, "read as an empty element", out);
        }
        if adjacent {
            let message = format!("`{}` goes on with what has just been closed", tag.raw);
            report(rules::TAG_REDUNDANT, at, tag.raw.len(), message, "read as one", out);
        } else {
            self.misfit(tag, known.at, at, out);
        }
        if !self.seen.contains(&known.at) {
            self.seen.push(known.at);
        }
        let after = at.after(tag.raw);
        match known.kind {
            Kind::Thought | Kind::Content => {
                self.unused(tag, known, at, &[], out);
                let tag = Some((tag.name.to_owned(), at, tag.raw.len()));
                let marks = mark_of(tag.as_ref().map_or("", |(name, ..)| name));
                let open = Open { at: known.at, tag, from: after, head: false, marks, begun: adjacent };
                self.open(known.kind, open, adjacent, out);
                if empty {
                    self.close_prose(out);
                }
            }
            _ => {
                let nested = matches!(self.mode, Mode::Content(_));
                if let Mode::Content(open) = std::mem::replace(&mut self.mode, Mode::Outside) {
                    let prose = std::mem::replace(&mut self.prose, Prose::new(self.cx.options.limits.line));
                    self.around = Some((open, prose));
                }
                let block = Block {
                    known,
                    name: tag.name.to_owned(),
                    attributes: attributes(tag),
                    two_names: contradicts_itself(tag, "name"),
                    tag: at,
                    at: after,
                    body: String::new(),
                    gaps: Vec::new(),
                    nested,
                    inner: Vec::new(),
                    quotes: Quotes::default(),
                    over: false,
                    unclosed: false,
                };
                let used: &[&str] = match known.kind {
                    Kind::Call => &["name"],
                    Kind::Component => &["view", "fallback"],
                    Kind::Media => &["type", "src", "alt"],
                    Kind::Update => &["path", "op", "value"],
                    Kind::Details => &["open"],
                    _ => &[],
                };
                if known.kind != Kind::Own && known.form != Form::Html {
                    self.unused(tag, known, at, used, out);
                }
                self.prose.restart();
                self.mode = Mode::Block(Box::new(block));
                if empty {
                    self.close_block(out);
                }
            }
        }
    }

    /// Begins or continues a thought or the content.
    pub(super) fn open(&mut self, kind: Kind, open: Open, joined: bool, out: &mut dyn Output) {
        self.prose.restart();
        self.remark = false;
        if kind == Kind::Content {
            if open.tag.is_some() {
                // The thought is over, whatever was opened in it (F-202).
                (self.inner, self.doubtful) = (0, false);
            }
            self.quoting = Quoting::default();
            if joined {
                self.content.join(self.between)
            } else {
                self.content.part()
            }
            if !std::mem::replace(&mut self.answering, true) {
                out.intent(Intent::ThinkingEnd);
            }
            self.mode = Mode::Content(open);
        } else {
            self.joint = joined && self.between;
            self.mode = Mode::Thought(open);
        }
    }

    /// Reports an alias of an element's name.
    pub(super) fn named(&self, tag: &Tag<'_>, known: Known, at: Place, out: &mut dyn Output) {
        if known.written != Written::Alias || known.form != Form::Newer {
            return;
        }
        let row = match known.kind {
            Kind::Content => "F-141",
            _ if ["think", "thought"].iter().any(|name| tag.name.eq_ignore_ascii_case(name)) => "F-140",
            _ => "R-69",
        };
        let name = &*self.tags.element(known.at).name;
        let message = format!("`{}` is another name of `{name}`", tag.name);
        let found = Report::new(rules::TAG_ALIAS, at, at.offset + tag.raw.len(), message).row(row);
        out.report(found.repaired(format!("read as `{name}`")));
    }

    /// Reports an element that comes too late, or again.
    pub(super) fn misfit(&self, tag: &Tag<'_>, element: usize, at: Place, out: &mut dyn Output) {
        match self.tags.misfit(element, &self.seen) {
            None => {}
            Some(Misfit::Late(other)) => {
                let message = format!("`{other}` must follow `{}`, and stands before it", tag.name);
                report(rules::TAG_ORDER, at, tag.raw.len(), message, "read where it stands", out);
            }
            Some(Misfit::Duplicate) => {
                let message = format!("`{}` is there again", tag.name);
                report(rules::TAG_REPEATED, at, tag.raw.len(), message, "read where it stands", out);
            }
        }
    }

    /// Reports attributes without meaning.
    pub(super) fn unused(&self, tag: &Tag<'_>, known: Known, at: Place, used: &[&str], out: &mut dyn Output) {
        let unused: Vec<&str> = tag
            .attributes()
            .map(|attribute| attribute.name)
            .filter(|name| !used.iter().any(|known| known.eq_ignore_ascii_case(name)))
            .take(8)
            .collect();
        if !unused.is_empty() {
            let name = &*self.tags.element(known.at).name;
            let message = format!("`{name}` has no attribute `{}`", unused.join("`, `"));
            report(rules::ATTRIBUTE_UNUSED, at, tag.raw.len(), message, "not used", out);
        }
    }

    /// Handles a closing tag that closes nothing.
    pub(super) fn unopened(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let message = format!("`{}` closes nothing", tag.raw);
        report(rules::TAG_UNOPENED, at, tag.raw.len(), message, "left out", out);
        if self.known(tag).is_some_and(|known| known.kind == Kind::Thought) {
            self.withdraw_calls(tag.raw, out);
        }
        self.content.gap();
        if let Mode::Block(block) = &mut self.mode {
            block.leave_out(tag.raw);
        }
    }
}
