//! A `</thinking>` in the middle of a line, followed by text: thinking may only mention the tag.

use super::super::structure::{self, ThinkingMlElement};
use super::super::thinking::ThinkingReplay;
use super::{FramePart, ReplyFrame};
use crate::dialect::IntentSink;
use crate::dialect::thinkingml::context::LineContent;
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::span::Place;

/// A `</thinking>` that may be a mention, and the text after it. The tag is text if another `</thinking>`, or
/// a `<phase>` at the start of a line, follows. It ends thinking if `<final>` begins a line before that, or
/// if none of these follows before the end of the reply or within `limits.hold`. It also ends thinking if no
/// text follows it on its line.
pub(super) struct ThinkingMention {
    /// The tag as written.
    tag: String,
    /// Place of the tag.
    start: Place,
    /// Everything after the tag, as written.
    text: String,
    /// Set if text follows on the line of the tag.
    has_line_text: bool,
}

impl ThinkingMention {
    /// Returns the number of bytes held.
    pub(super) fn len(&self) -> usize {
        self.tag.len() + self.text.len()
    }

    /// Returns whether the next token is at the start of a line.
    fn is_line_start(&self) -> bool {
        self.text.rsplit_once('\n').is_some_and(|(_, line)| is_blank(line))
    }
}

impl ReplyFrame {
    /// Holds a token that is `</thinking>` in the middle of a line; returns whether it was held.
    pub(super) fn hold_mention(&mut self, token: &MarkupToken<'_>, start: Place) -> bool {
        let MarkupToken::Tag(tag) = token else { return false };
        let is_held = self.part == FramePart::Thinking
            && self.context.line == LineContent::Text
            && is_tag(tag, ThinkingMlElement::Thinking, TagKind::Close)
            && self.thinking.can_be_mentioned();
        if is_held {
            let tag = tag.raw.to_owned();
            self.mention = Some(ThinkingMention { tag, start, text: String::new(), has_line_text: false });
        }
        is_held
    }

    /// Handles a token after the held tag; returns whether the token is consumed. An unconsumed token has
    /// decided what the tag is, and the tag is no longer held.
    pub(super) fn push_after_mention(&mut self, token: &MarkupToken<'_>, out: &mut dyn IntentSink) -> bool {
        let Some(mention) = self.mention.as_mut() else { return false };
        let raw = token.raw();
        let is_within_limit = mention.text.len() + raw.len() <= self.context.options.limits.hold;
        match token {
            _ if !is_within_limit => self.end_at_mention(out),
            MarkupToken::Text(text) if !mention.has_line_text => {
                mention.text.push_str(text);
                let text_after = mention.text.trim_start_matches([' ', '\t', '\r']);
                mention.has_line_text = !text_after.is_empty();
                if text_after.starts_with('\n') {
                    self.end_at_mention(out);
                }
                return true;
            }
            MarkupToken::Tag(_) if !mention.has_line_text => self.end_at_mention(out),
            MarkupToken::Tag(tag) if is_tag(tag, ThinkingMlElement::Thinking, TagKind::Close) => {
                self.read_mention_as_text(out)
            }
            MarkupToken::Tag(tag)
                if is_tag(tag, ThinkingMlElement::Phase, TagKind::Open) && mention.is_line_start() =>
            {
                self.read_mention_as_text(out);
            }
            MarkupToken::Tag(tag)
                if is_tag(tag, ThinkingMlElement::Final, TagKind::Open) && mention.is_line_start() =>
            {
                self.end_at_mention(out);
            }
            _ => {
                mention.text.push_str(raw);
                return true;
            }
        }
        false
    }

    /// Ends thinking at the held tag, if there is one.
    pub(super) fn end_at_mention(&mut self, out: &mut dyn IntentSink) {
        let Some(ThinkingMention { tag, start, text, .. }) = self.mention.take() else { return };
        self.thinking.set_replay(ThinkingReplay::MentionAsEnd);
        self.replay(&tag, start, out);
        self.thinking.set_replay(ThinkingReplay::None);
        self.replay(&text, start.end_of(&tag), out);
    }

    /// Reads the held tag as text of thinking, and every `<final>` after it too.
    fn read_mention_as_text(&mut self, out: &mut dyn IntentSink) {
        let Some(ThinkingMention { tag, start, text, .. }) = self.mention.take() else { return };
        self.thinking.set_replay(ThinkingReplay::MentionAsText);
        self.replay(&(tag + &text), start, out);
        self.thinking.set_replay(ThinkingReplay::None);
    }
}

/// Returns whether `tag` is a tag of this element and kind.
fn is_tag(tag: &MarkupTag<'_>, name: ThinkingMlElement, kind: TagKind) -> bool {
    tag.kind == kind && structure::find_element(tag.name).is_some_and(|(element, _)| element == name)
}
