//! The top level of a reply: which element is open, what tags do there, and where text goes.
//!
//! `outside` knows text between elements, `begin` what becomes of a tag that opens, `inside` what stands in an element, `comment` a comment, `draft` a block in a thought, `words` marks that are no tags, `close` what becomes of an element, `end` the end of the reply.

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

/// The reader of a reply.
pub(super) struct Frame {
    cx: Context,
    tags: Tags,
    mode: Mode,
    prose: Prose,
    content: Content,
    /// The content that goes on behind a block in it, with its code.
    around: Option<(Open, Prose)>,
    /// The comment under way.
    comment: Option<Comment>,
    /// The line of a fence, as far as it is there.
    fence_line: Option<FenceLine>,
    /// The fence that was taken off.
    fence: Option<Fence>,
    /// Elements in the order in which they first came.
    seen: Vec<usize>,
    /// The element that closed last, if nothing but white space has come since.
    closed: Option<usize>,
    /// The element that the head of the reply was taken for (F-201).
    assumed: Option<usize>,
    /// Whether anything has come.
    begun: bool,
    /// Whether thoughts are over.
    answering: bool,
    /// Thinking that no tag began, for a reply without content (F-209).
    head: String,
    /// Calls for the end of the reply.
    calls: Vec<Waiting>,
    /// Steps that are left for checks of arguments.
    checks: u64,
    /// Whether a comment was longer than it may be.
    long_comment: bool,
    /// Whether `<!--` outside of tags is text from now on.
    comments_over: bool,
    /// An acting block in the open thought, or its doubtful end, and what follows.
    draft: Option<Draft>,
    /// Thoughts that were opened in the open thought, and for which no closing mark has come.
    inner: usize,
    /// Whether a thought, or a comment outside of tags, may still be open: nothing acts.
    doubtful: bool,
    words: Words,
    /// How often the text under way was held as a draft that was none.
    reads: usize,
    /// Whether a line break came since an element closed, and whether one is due in a thought that goes on.
    between: bool,
    joint: bool,
    /// Whether the thinking so far ends with a line break.
    thought_line: bool,
    /// Whether a comment is open in the thought: blocks in it are examples.
    remark: bool,
    /// Elements of HTML open in the content whose text is quoted: blocks in them are examples.
    quoting: Quoting,
}

/// What is open.
enum Mode {
    Outside,
    Thought(Open),
    Content(Open),
    Block(Box<Block>),
}

/// An open thought or content.
struct Open {
    at: usize,
    /// Its name as it was written, and where its tag stands; `None`: no tag began it.
    tag: Option<(String, Place, usize)>,
    /// Where text begins that no tag began.
    from: Place,
    /// Whether that is the head of the reply.
    head: bool,
    /// Marks of reasoning in a thought.
    marks: Marks,
    /// Whether the phase of a thought has begun.
    begun: bool,
}

/// The line of a fence that may stand around elements.
struct FenceLine {
    raw: String,
    at: Place,
    /// Whether its end has come.
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

    /// The elements of the structure.
    pub(super) fn tags(&self) -> &Tags {
        &self.tags
    }

    /// Bytes held back, without what is delivered whole.
    pub(super) fn held(&self) -> usize {
        let line = self.fence_line.as_ref().map_or(0, |line| line.raw.len());
        let comment = self.comment.as_ref().map_or(0, Comment::held);
        let draft = self.draft.as_ref().map_or(0, Draft::held);
        self.prose.held() + self.content.held() + line + comment + draft + self.words.held()
    }

    /// Text in which no tag begins: whether it goes on with a thought or the content, whatever its place is.
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

    /// The next token.
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

    /// A token while something is held.
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

    /// What was held is decided: whether its first token counts. The others come again.
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

    /// The element that a tag means.
    fn known(&self, tag: &Tag<'_>) -> Option<Known> {
        match self.tags.meaning(tag) {
            Meaning::Known(known) | Meaning::Reasoning(known) => Some(known),
            _ => None,
        }
    }

    /// Reports what is wrong with how a tag is written.
    fn check_tag(&self, tag: &Tag<'_>, known: Known, at: Place, out: &mut dyn Output) {
        let faults = faults(tag, known.written);
        let name = &*self.tags.element(known.at).name;
        if !faults.is_empty() {
            let message = format!("`{}` is not written as it is: {}", tag.raw, faults.join(", "));
            report(rules::TAG_SPELLING, at, tag.raw.len(), message, &format!("read as `{name}`"), out);
        }
    }

    /// Text where it stands: of the thought, the content, a comment or a block.
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

/// A tag without a slash that closes by its name, such as `<end_of_thought>`, as a closing one.
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

/// The mark of reasoning that a thought begins with.
fn mark_of(name: &str) -> Marks {
    let mark: Mark = of_tag(name, false).unwrap_or(crate::lex::marks::THINK);
    Marks::new(mark)
}

/// Reports a rule over a tag or other short token.
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
