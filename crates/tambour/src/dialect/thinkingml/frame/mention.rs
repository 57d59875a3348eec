//! `</thinking>` in the middle of a line, followed by text: thinking may only mention it.

use super::super::structure::{self, Name};
use super::{Frame, Mode};
use crate::dialect::Output;
use crate::dialect::thinkingml::context::Line;
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;

/// A possible mention of the tag, and the text after it. It is text if thinking ends once more or continues.
/// It ends thinking if `<final>` begins a line before that, or if neither happens up to the end or
/// `limits.hold`.
pub(super) struct Mention {
    tag: String,
    at: Place,
    text: String,
    /// Set if text follows on its line.
    within: bool,
}

impl Mention {
    pub(super) fn len(&self) -> usize {
        self.tag.len() + self.text.len()
    }

    /// Returns whether the next token is at the start of a line.
    fn begins_line(&self) -> bool {
        self.text.rsplit_once('\n').is_some_and(|(_, line)| is_blank(line))
    }
}

impl Frame {
    /// Holds a token that is `</thinking>` in the middle of a line; returns whether it was held.
    pub(super) fn may_mention(&mut self, token: &Token<'_>, at: Place) -> bool {
        let Token::Tag(tag) = token else { return false };
        let waits = self.mode == Mode::Thinking
            && self.context.line == Line::Text
            && is(tag, Name::Thinking, TagKind::Close)
            && self.thinking.may_mention();
        if waits {
            let tag = tag.raw.to_owned();
            self.mention = Some(Mention { tag, at, text: String::new(), within: false });
        }
        waits
    }

    /// Handles a token after the held tag; returns whether the token is consumed.
    pub(super) fn behind_mention(&mut self, token: &Token<'_>, out: &mut dyn Output) -> bool {
        let Some(mention) = self.mention.as_mut() else { return false };
        let raw = token.raw();
        let fits = mention.text.len() + raw.len() <= self.context.options.limits.hold;
        match token {
            _ if !fits => self.mention_closes(out),
            Token::Text(text) if !mention.within => {
                mention.text.push_str(text);
                let behind = mention.text.trim_start_matches([' ', '\t', '\r']);
                mention.within = !behind.is_empty();
                if behind.starts_with('\n') {
                    self.mention_closes(out);
                }
                return true;
            }
            Token::Tag(_) if !mention.within => self.mention_closes(out),
            Token::Tag(tag) if is(tag, Name::Thinking, TagKind::Close) => self.mention_is_text(out),
            Token::Tag(tag) if is(tag, Name::Phase, TagKind::Open) && mention.begins_line() => {
                self.mention_is_text(out);
            }
            Token::Tag(tag) if is(tag, Name::Final, TagKind::Open) && mention.begins_line() => {
                self.mention_closes(out);
            }
            _ => {
                mention.text.push_str(raw);
                return true;
            }
        }
        false
    }

    /// Ends thinking at the held tag.
    pub(super) fn mention_closes(&mut self, out: &mut dyn Output) {
        let Some(Mention { tag, at, text, .. }) = self.mention.take() else { return };
        self.thinking.reads_mentions(Some(false));
        self.replay(&tag, at, out);
        self.thinking.reads_mentions(None);
        self.replay(&text, at.after(&tag), out);
    }

    /// Reads the held tag as text of thinking, and tags of the answer after it too.
    fn mention_is_text(&mut self, out: &mut dyn Output) {
        let Some(Mention { tag, at, text, .. }) = self.mention.take() else { return };
        self.thinking.reads_mentions(Some(true));
        self.replay(&(tag + &text), at, out);
        self.thinking.reads_mentions(None);
    }
}

fn is(tag: &Tag<'_>, name: Name, kind: TagKind) -> bool {
    tag.kind == kind && structure::find(tag.name).is_some_and(|(found, _)| found == name)
}
