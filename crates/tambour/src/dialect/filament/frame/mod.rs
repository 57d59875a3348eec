//! The top level of a reply: tracks the open element, interprets tags, and routes text.
//!
//! `outside` handles text between elements, `begin` opening tags, `inside` tokens in an element, `comment`
//! comments, `draft` blocks in a thought, `words` marks that are not tags, `close` the end of an element,
//! `end` the end of the reply.

mod begin;
mod close;
mod comment;
mod draft;
mod end;
mod inside;
mod outside;
mod words;

use std::sync::Arc;

use super::block::{Block, Context};
use super::call::Waiting;
use super::content::Content;
use super::prose::{Held, Kept, Prose};
use super::rules;
use super::tags::{Known, Meaning, Tags, faults};
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::fence::Fence;
use crate::lex::marks::{Kind as MarkKind, Mark, Open as Marks, of_tag};
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::quoting::Quoting;
use crate::options::Options;
use crate::span::{At, Place};
use crate::tool::CHECKS;
use comment::Comment;
use draft::Draft;
use words::Words;

/// Reader of a reply.
pub(super) struct Frame {
    cx: Context,
    tags: Tags,
    mode: Mode,
    prose: Prose,
    content: Content,
    /// The content to resume after a block in it, with its code state.
    around: Option<(Open, Prose)>,
    /// The current comment.
    comment: Option<Comment>,
    /// The line of a fence, possibly incomplete.
    fence_line: Option<FenceLine>,
    /// The fence that was removed.
    fence: Option<Fence>,
    /// Indexes of elements, in order of first appearance.
    seen: Vec<usize>,
    /// The element that closed last, as long as only white space follows it.
    closed: Option<usize>,
    /// The element assumed for the head of the reply (F-201).
    assumed: Option<usize>,
    /// Set once any element or text has begun.
    begun: bool,
    /// Set once thoughts are over.
    answering: bool,
    /// Thinking without a tag, kept for a reply without content (F-209).
    head: String,
    /// Calls held until the end of the reply.
    calls: Vec<Waiting>,
    /// Steps left for argument checks.
    checks: u64,
    /// Set once a comment has exceeded its limit.
    long_comment: bool,
    /// Set once `<!--` outside of tags is text.
    comments_over: bool,
    /// An acting block in the open thought, or its doubtful end, and the text after it.
    draft: Option<Draft>,
    /// Thoughts opened in the open thought and not closed.
    inner: usize,
    /// Set if a thought, or a comment outside of tags, may still be open: nothing acts.
    doubtful: bool,
    words: Words,
    /// Number of times the current text was held as a draft that turned out not to be one.
    reads: usize,
    /// Set if a line break was read since an element closed, and if one is due in a thought that continues
    ///
    between: bool,
    joint: bool,
    /// Set if the thinking so far ends with a line break.
    thought_line: bool,
    /// Set if a comment is open in the thought: blocks in it are examples.
    remark: bool,
    /// Open HTML elements in the content that quote: blocks in them are examples.
    quoting: Quoting,
}

/// The open element.
enum Mode {
    Outside,
    Thought(Open),
    Content(Open),
    Block(Box<Block>),
}

/// An open thought or content.
struct Open {
    at: usize,
    /// Name as written, place and length of the tag; `None` if no tag began it.
    tag: Option<(String, Place, usize)>,
    /// Start of the text.
    from: Place,
    /// Set if it is the head of the reply.
    head: bool,
    /// Reasoning marks of a thought.
    marks: Marks,
    /// Set once the phase of a thought has begun.
    begun: bool,
}

/// The line of a fence that may surround elements.
struct FenceLine {
    raw: String,
    at: Place,
    /// Set once the line has ended.
    whole: bool,
}

impl Frame {
    pub(super) fn new(options: &Arc<Options>) -> Frame {
        let cx = Context::new(options);
        Frame {
            tags: Tags::new(&cx.own),
            content: Content::new(&cx.own, &options.limits),
            prose: Prose::new(options.limits.line),
            mode: Mode::Outside,
            around: None,
            comment: None,
            fence_line: None,
            fence: None,
            seen: Vec::new(),
            closed: None,
            assumed: None,
            begun: false,
            answering: false,
            head: String::new(),
            calls: Vec::new(),
            checks: CHECKS,
            long_comment: false,
            comments_over: false,
            draft: None,
            inner: 0,
            doubtful: false,
            words: Words::default(),
            reads: 0,
            between: false,
            joint: false,
            thought_line: false,
            remark: false,
            quoting: Quoting::default(),
            cx,
        }
    }

    /// Returns the elements of the structure.
    pub(super) fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Returns the bytes held back, without values that are emitted whole.
    pub(super) fn held(&self) -> usize {
        let line = self.fence_line.as_ref().map_or(0, |line| line.raw.len());
        let comment = self.comment.as_ref().map_or(0, Comment::held);
        let draft = self.draft.as_ref().map_or(0, Draft::held);
        self.prose.held() + self.content.held() + line + comment + draft + self.words.held()
    }

    /// Emits text without tags that continues a thought or the content, whatever its place is; returns
    /// whether it did.
    #[inline]
    pub(super) fn flow(&mut self, text: &str, out: &mut dyn Output) -> bool {
        if self.prose.holds() || self.comment.is_some() || self.draft.is_some() {
            return false;
        }
        match &self.mode {
            Mode::Content(Open { tag: Some(_), .. }) => {
                if !self.content.flow(text, out) {
                    return false;
                }
            }
            Mode::Thought(Open { begun: true, tag: Some(_), .. }) => {
                if !self.passes_words(text) {
                    return false;
                }
                if self.joint {
                    return false;
                }
                self.thought_line = text.ends_with('\n');
                out.intent(Intent::PhaseText(text));
            }
            _ => return false,
        }
        self.prose.text(text);
        true
    }

    /// Handles the next token.
    pub(super) fn token(&mut self, token: Token<'_>, at: At<'_>, out: &mut dyn Output) {
        let token = with_meant_kind(token);
        if self.prose.holds() {
            return self.held_token(&token, at.get(), out);
        }
        match &self.mode {
            Mode::Outside => self.outside(token, at.get(), out),
            Mode::Thought(_) | Mode::Content(_) => self.inside(token, at, out),
            Mode::Block(_) => self.block(token, at.get(), out),
        }
    }

    /// Handles a token while others are held.
    fn held_token(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) {
        let Held::Decided { counts, kept, taken } = self.prose.add(token, at) else { return };
        self.decided(counts, &kept, out);
        match token {
            Token::Text(text) if taken < text.len() => {
                let rest = Token::Text(&text[taken..]);
                self.token(rest, At::from(at.after(&text[..taken])), out);
            }
            Token::Text(_) => {}
            other if taken == 0 => self.token(*other, At::from(at), out),
            _ => {}
        }
    }

    /// Handles held tokens once it is decided whether the first counts; the others are handled again.
    fn decided(&mut self, counts: bool, kept: &[Kept], out: &mut dyn Output) {
        let Some((first, rest)) = kept.split_first() else { return };
        if counts {
            self.markup(first.token(), first.place(), out);
        } else {
            self.plain(first.token().raw(), At::from(first.place()), out);
        }
        for kept in rest {
            self.token(kept.token(), At::from(kept.place()), out);
        }
    }

    /// Returns the element that a tag means.
    fn known(&self, tag: &Tag<'_>) -> Option<Known> {
        match self.tags.meaning(tag) {
            Meaning::Known(known) | Meaning::Reasoning(known) => Some(known),
            _ => None,
        }
    }

    /// Reports faults in how a tag is written.
    fn check_tag(&self, tag: &Tag<'_>, known: Known, at: Place, out: &mut dyn Output) {
        let faults = faults(tag, known.written);
        let name = &*self.tags.element(known.at).name;
        if !faults.is_empty() {
            let message = format!("`{}` is not written as it is: {}", tag.raw, faults.join(", "));
            report(rules::TAG_SPELLING, at, tag.raw.len(), message, &format!("read as `{name}`"), out);
        }
    }

    /// Routes text to the thought, the content, a comment or a block.
    fn plain(&mut self, text: &str, at: At<'_>, out: &mut dyn Output) {
        if let Some(comment) = &mut self.comment {
            comment.push(text);
            return self.long_comment(out);
        }
        if text.is_empty() {
            return;
        }
        self.prose.text(text);
        match &self.mode {
            Mode::Outside => {}
            Mode::Content(_) => self.content.text(text, at, out),
            Mode::Thought(_) => self.thought_text(text, out),
            Mode::Block(_) => self.block_text(text, at, out),
        }
    }
}

/// Turns a tag without a slash that closes by its name, such as `<end_of_thought>`, into a closing tag.
fn with_meant_kind(token: Token<'_>) -> Token<'_> {
    match token {
        Token::Tag(tag)
            if tag.kind == TagKind::Open
                && of_tag(tag.name, false).is_some_and(|mark| mark.kind == MarkKind::Close) =>
        {
            Token::Tag(Tag { kind: TagKind::Close, ..tag })
        }
        other => other,
    }
}

/// Returns the reasoning mark that a thought begins with.
fn mark_of(name: &str) -> Marks {
    let mark: Mark = of_tag(name, false).unwrap_or(crate::lex::marks::THINK);
    Marks::new(mark)
}

/// Reports a rule at a tag or other short token of `len` bytes.
fn report(
    rule: &'static Rule,
    at: Place,
    len: usize,
    message: impl Into<String>,
    repair: &str,
    out: &mut dyn Output,
) {
    out.report(Report::new(rule, at, at.offset + len, message).repaired(repair));
}
