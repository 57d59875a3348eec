//! Top level of a reply: tracks the open element, interprets tags, and routes text.
//!
//! `surrounding_text` handles text between elements, `begin` opening tags, `element_tokens` tokens in an
//! element, `comment` comments, `draft` acting blocks in a thought, `reasoning_marks` marks that are not
//! tags, `close` the end of an element, `end` the end of the reply.

mod begin;
mod close;
mod comment;
mod draft;
mod element_tokens;
mod end;
mod reasoning_marks;
mod surrounding_text;

use std::sync::Arc;

use super::block::{BlockContext, FilamentBlock};
use super::code_filter::{HeldToken, HoldResult, MarkdownTracker};
use super::content::ContentWriter;
use super::rules;
use super::tags::{KnownElement, TagMeaning, TagTable, describe_faults};
use super::tool_call::HeldToolCall;
use crate::dialect::{Intent, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::lex::fence::Fence;
use crate::lex::marks::{MarkKind, OpenReasoning, ReasoningMark, parse_tag_mark};
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::lex::prose::QuotingElements;
use crate::options::Options;
use crate::span::{LazyPlace, Place};
use crate::tool::MAX_REPLY_CHECK_STEPS;
use comment::HeldComment;
use draft::HeldDraft;
use reasoning_marks::MarkCarry;

/// Reader of the tokens of one reply.
pub(super) struct FilamentFrame {
    context: BlockContext,
    tags: TagTable,
    /// The element at the current place.
    open_element: OpenElementState,
    /// Code structure of the open element's text, and tags held because of it.
    markdown: MarkdownTracker,
    content: ContentWriter,
    /// The content to resume after a block in it, with its code structure.
    suspended_content: Option<(OpenPart, MarkdownTracker)>,
    /// The comment that is open in the content or outside of tags.
    comment: Option<HeldComment>,
    /// A held line that may be a fence around elements.
    fence_line: Option<PendingFenceLine>,
    /// The opening fence that was removed, until its closing line.
    fence: Option<Fence>,
    /// Indexes of elements, in order of first appearance.
    seen_elements: Vec<usize>,
    /// Index of the element that closed last, as long as only white space follows it.
    last_closed: Option<usize>,
    /// Index of the element that the text before all tags was read as (F-201).
    assumed_head: Option<usize>,
    /// Set once any element or text has begun.
    has_begun: bool,
    /// Set once thoughts are over.
    is_answering: bool,
    /// Thinking without a tag, which becomes the content of a reply without other content (F-209).
    head_text: String,
    /// Calls held until the end of the reply.
    held_calls: Vec<HeldToolCall>,
    /// Steps left for argument checks ([`MAX_REPLY_CHECK_STEPS`]).
    check_steps: u64,
    /// Set once a comment has exceeded its limit.
    has_overlong_comment: bool,
    /// Set once `<!--` outside of tags is text, because no comment is closed there.
    ignores_comments: bool,
    /// Held text of the open thought, from an acting block or a doubtful closing mark on.
    draft: Option<HeldDraft>,
    /// Number of nested thoughts that are open in the open thought.
    inner_thought_count: usize,
    /// Set if a thought, or a comment outside of tags, may still be open: nothing acts.
    is_doubtful: bool,
    /// Possible beginning of a reasoning mark that is not a tag.
    mark_carry: MarkCarry,
    /// Number of times the current text was held as a draft that turned out not to be one.
    read_count: usize,
    /// Set if a line break was read since an element closed.
    has_line_break: bool,
    /// Set if a line break is due before the next text of a thought that continues.
    is_line_break_due: bool,
    /// Set if the thinking so far ends with a line break.
    ends_with_newline: bool,
    /// Set if a comment is open in the open thought: blocks in it are examples.
    is_in_comment: bool,
    /// Open HTML elements in the content that quote: blocks in them are examples.
    quoting: QuotingElements,
}

/// The open element.
enum OpenElementState {
    /// Between elements.
    Outside,
    Thought(OpenPart),
    Content(OpenPart),
    Block(Box<FilamentBlock>),
}

/// An open thought or content, called a part: its text is emitted as it arrives, unlike that of a block.
struct OpenPart {
    /// Index of the element in the structure.
    index: usize,
    /// Name as written, place and length of the tag; `None` if no tag began it.
    tag: Option<(String, Place, usize)>,
    /// Start of the text.
    text_start: Place,
    /// Set if it began with the text before all tags.
    is_head: bool,
    /// Tracks the reasoning marks in a thought.
    open_reasoning: OpenReasoning,
    /// Set once the phase of a thought has begun.
    has_phase: bool,
}

/// A line that may be a fence around elements.
struct PendingFenceLine {
    /// Source text of the line so far, and of white space after it.
    raw: String,
    start: Place,
    /// Set once the line has ended.
    is_complete: bool,
}

impl FilamentFrame {
    pub(super) fn new(options: &Arc<Options>) -> FilamentFrame {
        let context = BlockContext::new(options);
        FilamentFrame {
            tags: TagTable::new(&context.dialect_options),
            content: ContentWriter::new(&context.dialect_options, &options.limits),
            markdown: MarkdownTracker::new(options.limits.line),
            open_element: OpenElementState::Outside,
            suspended_content: None,
            comment: None,
            fence_line: None,
            fence: None,
            seen_elements: Vec::new(),
            last_closed: None,
            assumed_head: None,
            has_begun: false,
            is_answering: false,
            head_text: String::new(),
            held_calls: Vec::new(),
            check_steps: MAX_REPLY_CHECK_STEPS,
            has_overlong_comment: false,
            ignores_comments: false,
            draft: None,
            inner_thought_count: 0,
            is_doubtful: false,
            mark_carry: MarkCarry::default(),
            read_count: 0,
            has_line_break: false,
            is_line_break_due: false,
            ends_with_newline: false,
            is_in_comment: false,
            quoting: QuotingElements::default(),
            context,
        }
    }

    /// Returns the elements of the structure.
    pub(super) fn tags(&self) -> &TagTable {
        &self.tags
    }

    /// Returns the bytes held back, without those of blocks, which are emitted whole.
    pub(super) fn held_bytes(&self) -> usize {
        let fence_line = self.fence_line.as_ref().map_or(0, |line| line.raw.len());
        let comment = self.comment.as_ref().map_or(0, HeldComment::held_bytes);
        let draft = self.draft.as_ref().map_or(0, HeldDraft::held_bytes);
        self.markdown.held_bytes()
            + self.content.held_bytes()
            + fence_line
            + comment
            + draft
            + self.mark_carry.held_bytes()
    }

    /// Emits text without tags if it continues a thought or the content and its place is not needed. Returns
    /// whether it was emitted.
    #[inline]
    pub(super) fn try_pass(&mut self, text: &str, out: &mut dyn IntentSink) -> bool {
        if self.markdown.has_held() || self.comment.is_some() || self.draft.is_some() {
            return false;
        }
        match &self.open_element {
            OpenElementState::Content(OpenPart { tag: Some(_), .. }) => {
                if !self.content.try_pass(text, out) {
                    return false;
                }
            }
            OpenElementState::Thought(OpenPart { has_phase: true, tag: Some(_), .. }) => {
                if self.may_contain_mark(text) {
                    return false;
                }
                if self.is_line_break_due {
                    return false;
                }
                self.ends_with_newline = text.ends_with('\n');
                out.emit_intent(Intent::PhaseText(text));
            }
            _ => return false,
        }
        self.markdown.push_text(text);
        true
    }

    /// Handles the next token.
    pub(super) fn push_token(&mut self, token: MarkupToken<'_>, at: LazyPlace<'_>, out: &mut dyn IntentSink) {
        let token = correct_tag_kind(token);
        if self.markdown.has_held() {
            return self.push_held_token(&token, at.resolve(), out);
        }
        match &self.open_element {
            OpenElementState::Outside => self.push_surrounding_token(token, at.resolve(), out),
            OpenElementState::Thought(_) | OpenElementState::Content(_) => {
                self.push_inside_token(token, at, out)
            }
            OpenElementState::Block(_) => self.push_block_token(token, at.resolve(), out),
        }
    }

    /// Handles a token while others are held.
    fn push_held_token(&mut self, token: &MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        let HoldResult::Decided { is_counted, tokens, taken_len } = self.markdown.push_held(token, at) else {
            return;
        };
        self.handle_decided(is_counted, &tokens, out);
        match token {
            MarkupToken::Text(text) if taken_len < text.len() => {
                let rest = MarkupToken::Text(&text[taken_len..]);
                self.push_token(rest, LazyPlace::from(at.end_of(&text[..taken_len])), out);
            }
            MarkupToken::Text(_) => {}
            other if taken_len == 0 => self.push_token(*other, LazyPlace::from(at), out),
            _ => {}
        }
    }

    /// Handles held tokens once it is decided whether the first counts; the others are handled again.
    fn handle_decided(&mut self, is_counted: bool, tokens: &[HeldToken], out: &mut dyn IntentSink) {
        let Some((first, rest)) = tokens.split_first() else { return };
        if is_counted {
            self.handle_markup(first.token(), first.place(), out);
        } else {
            self.push_text(first.token().raw(), LazyPlace::from(first.place()), out);
        }
        for held_token in rest {
            self.push_token(held_token.token(), LazyPlace::from(held_token.place()), out);
        }
    }

    /// Returns the element that a tag means.
    fn known_element(&self, tag: &MarkupTag<'_>) -> Option<KnownElement> {
        match self.tags.meaning(tag) {
            TagMeaning::Known(element) | TagMeaning::Reasoning(element) => Some(element),
            _ => None,
        }
    }

    /// Reports faults in how a tag is written.
    fn check_tag(&self, tag: &MarkupTag<'_>, element: KnownElement, at: Place, out: &mut dyn IntentSink) {
        let faults = describe_faults(tag, element.spelling);
        let name = &*self.tags.element(element.index).name;
        if !faults.is_empty() {
            let message = format!("`{}` is not written correctly: {}", tag.raw, faults.join(", "));
            report_at(rules::TAG_SPELLING, at, tag.raw.len(), message, &format!("read as `{name}`"), out);
        }
    }

    /// Routes text to the thought, the content, a comment or a block.
    fn push_text(&mut self, text: &str, at: LazyPlace<'_>, out: &mut dyn IntentSink) {
        if let Some(comment) = &mut self.comment {
            comment.push(text);
            return self.emit_overlong_comment(out);
        }
        if text.is_empty() {
            return;
        }
        self.markdown.push_text(text);
        match &self.open_element {
            OpenElementState::Outside => {}
            OpenElementState::Content(_) => self.content.push_text(text, at, out),
            OpenElementState::Thought(_) => self.push_thought_text(text, out),
            OpenElementState::Block(_) => self.push_block_text(text, at, out),
        }
    }
}

/// Turns a tag without a slash that closes by its name, such as `<end_of_thought>`, into a closing tag.
fn correct_tag_kind(token: MarkupToken<'_>) -> MarkupToken<'_> {
    match token {
        MarkupToken::Tag(tag)
            if tag.kind == TagKind::Open
                && parse_tag_mark(tag.name, false).is_some_and(|mark| mark.kind == MarkKind::Close) =>
        {
            MarkupToken::Tag(MarkupTag { kind: TagKind::Close, ..tag })
        }
        other => other,
    }
}

/// Returns the tracker of reasoning marks for a thought whose tag is called `name`.
fn thought_reasoning(name: &str) -> OpenReasoning {
    let is_closing = false;
    let mark: ReasoningMark = parse_tag_mark(name, is_closing).unwrap_or(crate::lex::marks::THINK_MARK);
    OpenReasoning::new(mark)
}

/// Reports a broken rule at a tag or other short token of `len` bytes.
fn report_at(
    rule: &'static Rule,
    at: Place,
    len: usize,
    message: impl Into<String>,
    repair: &str,
    out: &mut dyn IntentSink,
) {
    out.report(FindingReport::new(rule, at, at.offset + len, message).with_repair(repair));
}
