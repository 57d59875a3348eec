//! Tags and reasoning marks at the beginning of a reply.

use super::evidence::{TagCandidate, TagEvidence};
use super::{Examination, HEAD_BYTES, OpeningTag, OpeningVerdict, PrefixExtent, TagPosition, is_document};
use crate::dialect::{DIALECTS, DialectEntry, FAILURE_MARKER, plain};
use crate::lex::fence::Fence;
use crate::lex::marks::{self, MarkEffect, MarkKind, OpenReasoning, ReasoningMark};
use crate::lex::markup::{MarkupLexer, MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::lex::tag_sentence;

/// Decides from the tags of a text.
pub(super) fn examine_tags(text: &str, extent: PrefixExtent) -> Examination {
    let mut lexer = MarkupLexer::new(FAILURE_MARKER, 1 << 10).with_reasoning();
    let mut tags = TagScan { text, is_whole_reply: extent == PrefixExtent::All, ..TagScan::default() };
    lexer.push(text, &mut |token, at| tags.push_token(token, at.resolve().offset));
    if extent != PrefixExtent::Part {
        lexer.finish(&mut |token, at| tags.push_token(token, at.resolve().offset));
    }
    let mut needs_more = tags.needs_more;
    // Between prose it is a template in a text about it: the text after its end decides.
    let is_below_prose = tags.thinking_lead >= ThinkingLead::Prose;
    let is_quoted = is_below_prose && tags.answer == AnswerEnd::BeforeProse;
    let is_doubtful = is_below_prose && extent != PrefixExtent::All;
    if tags.verdict.is_none() {
        for candidate in &tags.candidates {
            let is_thinking = thinking_dialect() == Some(candidate.dialect);
            match candidate.evidence(text, extent) {
                TagEvidence::Structure if is_thinking && is_quoted => {}
                TagEvidence::Structure if is_thinking && is_doubtful => needs_more = true,
                TagEvidence::Structure => {
                    tags.verdict = Some(OpeningVerdict::Dialect(candidate.dialect));
                    break;
                }
                TagEvidence::NeedsMore => needs_more = true,
                TagEvidence::Text => {}
            }
        }
    }
    needs_more |= is_doubtful && extent == PrefixExtent::Window;
    if extent != PrefixExtent::Part && tags.verdict.is_none() && !needs_more && !is_quoted {
        let has_answer = tags.open_reasoning.is_some() && tags.inline_final == InlineFinal::Closed;
        if tags.thinking_lead < ThinkingLead::FenceBelowProse
            && tags.has_thinking_text
            && tags.reasoning == ReasoningStage::Absent
            || has_answer
        {
            tags.verdict = thinking_dialect().map(OpeningVerdict::Dialect);
        }
    }
    if tags.verdict.is_none() && !needs_more && tags.is_plain {
        tags.verdict = Some(OpeningVerdict::Plain);
    }
    let verdict = tags.verdict.unwrap_or(OpeningVerdict::Unknown);
    let is_close_last = matches!(tags.reasoning, ReasoningStage::ClosedLast | ReasoningStage::ClosedInline);
    Examination { verdict, next_char_decides: is_close_last || needs_more, needs_more }
}

/// Finds the dialect that a tag identifies, and the position it needs. Names are all lower case or, from
/// models that shout, all upper case: `<Final>` is a component (R-91).
fn find_opening_tag(name: &str) -> Option<(&'static str, &'static OpeningTag)> {
    let has_uppercase = name.chars().any(char::is_uppercase);
    if has_uppercase && name.chars().any(char::is_lowercase) {
        return None;
    }
    DIALECTS.iter().find_map(|entry| {
        let opening_tag =
            entry.opening.tags.iter().find(|opening_tag| opening_tag.name.eq_ignore_ascii_case(name))?;
        Some((entry.name, opening_tag))
    })
}

/// Returns the dialect whose structure begins with `<thinking>`.
fn thinking_dialect() -> Option<&'static str> {
    let has_thinking_tag =
        |entry: &&DialectEntry| entry.opening.tags.iter().any(|tag| tag.position == TagPosition::InThinking);
    DIALECTS.iter().find(has_thinking_tag).map(|entry| entry.name)
}

/// Elements that need no closing tag.
const VOID_ELEMENTS: &[&str] = &["br", "hr", "img", "input", "link", "meta", "p", "li", "wbr"];

/// Most tags that are kept as candidates; a structure shows in one of the first.
const MAX_CANDIDATES: usize = 64;

/// Columns of indentation that make a line code.
const CODE_INDENT: usize = 4;

/// Beginnings of an XML document, in lower case.
const XML_STARTS: &[&str] = &["<?xml", "<!doctype"];

/// Evidence from the tags read so far.
#[derive(Default)]
struct TagScan<'a> {
    /// The text under examination, and whether it is all of the reply.
    text: &'a str,
    is_whole_reply: bool,
    verdict: Option<OpeningVerdict>,
    /// Set if text after reasoning makes the reply plain, unless a tag identifies a dialect.
    is_plain: bool,
    /// The first bytes of the text so far, at most [`HEAD_BYTES`].
    head: String,
    /// Tags that may decide the dialect, and whether one of them needs more text.
    candidates: Vec<TagCandidate>,
    needs_more: bool,
    /// Set once prose was read: text that is neither reasoning, nor a role word, nor a fence line.
    has_prose: bool,
    /// Open reasoning.
    open_reasoning: Option<OpenReasoning>,
    reasoning: ReasoningStage,
    thinking: ThinkingTag,
    thinking_lead: ThinkingLead,
    /// Set if only reasoning precedes the `<thinking>`.
    is_thinking_leading: bool,
    /// Set once text was read after the `<thinking>`.
    has_thinking_text: bool,
    /// Set if the last token is a `<thinking>` in a sentence of a draft; a phase after it ends the draft
    /// (T-016).
    is_nested_thinking: bool,
    inline_final: InlineFinal,
    answer: AnswerEnd,
    position: LinePosition,
    /// The open fence.
    fence: Option<OpenFence>,
    /// Open elements of another vocabulary (R-91).
    foreign_elements: Vec<String>,
}

/// Reasoning so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReasoningStage {
    /// Only reasoning was read, and none has closed.
    #[default]
    Unclosed,
    /// Text came before any reasoning: from here on, marks open none.
    Absent,
    /// Closed, with text after it.
    Closed,
    /// Closed, without text after it so far.
    ClosedLast,
    /// Closed by a `</thinking>` in the middle of a line, without text after it so far: text on the same line
    /// makes that a mention (R-75).
    ClosedInline,
}

/// `<thinking>` that stands alone on its line and may begin a structure.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ThinkingTag {
    #[default]
    Absent,
    Open,
    Closed,
}

/// Text before `<thinking>`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ThinkingLead {
    #[default]
    NoProse,
    Prose,
    /// Prose, and a fence around the tag.
    FenceBelowProse,
}

/// `<final>` in a sentence of thinking: it is the answer if no other one follows (R-06).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum InlineFinal {
    #[default]
    Absent,
    Open,
    Closed,
}

/// End of an answer.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum AnswerEnd {
    /// None was read, or an element has begun after it.
    #[default]
    Absent,
    Read,
    /// Prose was read after it.
    BeforeProse,
}

/// Position of the current offset on its line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LinePosition {
    /// No text precedes it.
    #[default]
    Start,
    /// Text precedes it: a tag in a sentence is a mention (R-74).
    Text,
    /// A code span opens right before it: a quoted tag begins nothing.
    CodeSpan,
}

/// A code fence.
#[derive(Clone, Copy)]
struct OpenFence {
    fence: Fence,
    /// Set if a structure may be in the fence, and if the fence is also used for another vocabulary.
    allows_structure: bool,
    is_foreign: bool,
}

impl TagScan<'_> {
    fn push_token(&mut self, token: MarkupToken<'_>, at: usize) {
        if self.verdict.is_none() {
            let raw = token.raw();
            self.handle_token(token, at);
            let room = raw.floor_char_boundary(HEAD_BYTES.saturating_sub(self.head.len()));
            self.head.push_str(&raw[..room]);
        }
    }

    fn handle_token(&mut self, token: MarkupToken<'_>, at: usize) {
        let is_in_code = self.position == LinePosition::CodeSpan;
        if is_in_code {
            self.position = LinePosition::Text;
        }
        match token {
            MarkupToken::Tag(tag) if is_in_code || tag.kind == TagKind::SelfClosing => {}
            MarkupToken::Tag(tag) => self.handle_tag(&tag, at + token.raw().len()),
            MarkupToken::Reasoning(_, mark) => self.handle_mark(mark),
            MarkupToken::Text(text) if is_blank(text) => {
                if text.contains('\n') {
                    self.position = LinePosition::Start;
                }
            }
            MarkupToken::Mark(_) => {}
            MarkupToken::Text(text) => self.handle_text(text),
            // An unclosed comment hides nothing.
            MarkupToken::CommentOpen | MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => {
                self.handle_text(token.raw())
            }
        }
    }

    fn is_line_start(&self) -> bool {
        self.position == LinePosition::Start
    }

    /// Returns whether a structure may begin here: not in code of another language, within other elements, or
    /// in a document.
    fn may_begin_structure(&self) -> bool {
        self.fence.is_none_or(|fence| fence.allows_structure)
            && self.foreign_elements.is_empty()
            && !is_document(&self.head)
    }

    /// Returns whether a tag at this offset is in indented code after prose, or in an XML document.
    fn is_code(&self, at: usize) -> bool {
        let before = &self.text[..at];
        let line = before.rfind('\n').map_or(0, |line| line + 1);
        let indent =
            before[line..].bytes().map(|byte| if byte == b'\t' { CODE_INDENT } else { 1 }).sum::<usize>();
        let is_after_blank_line = before[..line].trim_end_matches([' ', '\t', '\n', '\r']).len() + 1 < line;
        let head = self.text[..before.floor_char_boundary(HEAD_BYTES)].to_ascii_lowercase();
        self.has_prose && indent >= CODE_INDENT && is_after_blank_line
            || XML_STARTS.iter().any(|start| head.contains(start))
    }

    /// Handles a tag that ends at offset `behind`.
    fn handle_tag(&mut self, tag: &MarkupTag<'_>, end: usize) {
        let name = tag.name.to_ascii_lowercase();
        let opening = tag.kind == TagKind::Open;
        let is_in_draft = self.open_reasoning.is_some_and(|open| !open.mark().is_thinking());
        let has_thinking_tag = self.thinking != ThinkingTag::Absent;
        let opening_tag = find_opening_tag(tag.name);
        if let Some((_, begin_tag)) = opening_tag {
            if opening {
                self.answer = AnswerEnd::Absent;
            } else if begin_tag.position == TagPosition::EndsThinking && self.answer == AnswerEnd::Absent {
                self.answer = AnswerEnd::Read;
            }
        }
        if let Some((dialect, begin_tag)) = opening_tag
            && opening
            && tag.attributes().all(|attribute| begin_tag.attributes.contains(&attribute.name))
            && self.may_begin_structure()
        {
            let is_evidence = match begin_tag.position {
                TagPosition::InThinking => has_thinking_tag || self.is_nested_thinking,
                TagPosition::Alone | TagPosition::Before | TagPosition::First => {
                    self.open_reasoning.is_none() && self.is_line_start()
                }
                TagPosition::EndsThinking => !is_in_draft && self.is_line_start(),
            };
            if is_evidence
                && self.candidates.len() < MAX_CANDIDATES
                && (has_thinking_tag || !self.is_code(end - tag.raw.len()))
            {
                self.candidates.push(TagCandidate {
                    dialect,
                    name: begin_tag.name,
                    end,
                    is_leading: matches!(
                        begin_tag.position,
                        TagPosition::Before | TagPosition::First | TagPosition::EndsThinking
                    ),
                    is_block: matches!(begin_tag.position, TagPosition::Alone | TagPosition::Before),
                    has_prose_before: self.has_prose,
                    follows_structure: begin_tag.position == TagPosition::InThinking
                        || self.thinking == ThinkingTag::Closed
                        || has_thinking_tag && !self.has_prose,
                    fence: self.fence.map(|open_fence| (open_fence.fence, open_fence.is_foreign)),
                });
            }
        }
        if has_thinking_tag && !opening && name == "thinking" {
            self.thinking = ThinkingTag::Closed;
        }
        let is_bare = tag.attributes().next().is_none();
        match (name.as_str(), opening) {
            _ if opening_tag
                .is_some_and(|(_, begin_tag)| begin_tag.position == TagPosition::EndsThinking)
                && !is_in_draft =>
            {
                self.inline_final = match self.inline_final {
                    InlineFinal::Absent if opening && has_thinking_tag => InlineFinal::Open,
                    InlineFinal::Open if !opening => InlineFinal::Closed,
                    inline_final => inline_final,
                };
            }
            _ if opening && self.is_word(&name, end) => {}
            ("thinking", true) if self.open_reasoning.is_none() && self.is_line_start() && is_bare => {
                if self.has_prose && self.is_code(end - tag.raw.len()) {
                    return;
                }
                self.record_thinking();
                self.is_thinking_leading |= self.reasoning != ReasoningStage::Absent;
            }
            // It ends an unclosed draft, if a phase follows (T-016).
            ("thinking", true) if is_in_draft && self.is_line_start() && is_bare => {
                self.record_thinking();
                self.is_thinking_leading = true;
                self.handle_mark(marks::THINKING_MARK);
            }
            _ => {
                self.is_nested_thinking = name == "thinking" && opening && is_in_draft;
                match marks::parse_tag_mark(tag.name, !opening) {
                    Some(mark) => self.handle_mark(mark),
                    None => self.handle_other_tag(name, opening),
                }
            }
        }
    }

    /// Records a `<thinking>`.
    fn record_thinking(&mut self) {
        if self.thinking == ThinkingTag::Absent && self.may_begin_structure() {
            self.thinking = ThinkingTag::Open;
        }
        let lead = match self.fence {
            _ if !self.has_prose => ThinkingLead::NoProse,
            None => ThinkingLead::Prose,
            Some(_) => ThinkingLead::FenceBelowProse,
        };
        self.thinking_lead = self.thinking_lead.max(lead);
    }

    /// Returns whether a tag that opens reasoning is a word of a sentence, or of a text about it that
    /// continues on the next line.
    fn is_word(&mut self, name: &str, text_start: usize) -> bool {
        if self.open_reasoning.is_some() || marks::parse_tag_mark(name, false).is_none() {
            return false;
        }
        let text = &self.text[text_start..];
        let is_sentence = tag_sentence::continues_sentence(text, self.is_whole_reply);
        self.needs_more |= is_sentence.is_none() && !self.is_whole_reply;
        let is_below_prose = self.has_prose && text.trim_start().starts_with(char::is_lowercase);
        let word = is_sentence == Some(true) || is_below_prose;
        if word {
            self.position = LinePosition::Text;
        }
        word
    }

    /// Handles a tag of no known vocabulary.
    fn handle_other_tag(&mut self, name: String, opening: bool) {
        if !opening {
            if let Some(at) = self.foreign_elements.iter().rposition(|open| *open == name) {
                self.foreign_elements.truncate(at);
            }
        } else if self.is_line_start()
            && self.open_reasoning.is_none()
            && !VOID_ELEMENTS.contains(&name.as_str())
            && find_opening_tag(&name).is_none()
        {
            self.foreign_elements.push(name);
        }
    }

    /// Handles a reasoning mark.
    fn handle_mark(&mut self, mark: ReasoningMark) {
        let Some(open) = &mut self.open_reasoning else {
            if mark.kind == MarkKind::Open
                && self.reasoning != ReasoningStage::Absent
                && !self.is_thinking_leading
            {
                self.open_reasoning = Some(OpenReasoning::new(mark));
            }
            return;
        };
        if open.apply(mark) != MarkEffect::Text {
            let is_inline = mark.is_thinking() && !self.is_line_start();
            self.reasoning =
                if is_inline { ReasoningStage::ClosedInline } else { ReasoningStage::ClosedLast };
            (self.open_reasoning, self.position) = (None, LinePosition::Start);
        }
    }

    fn handle_text(&mut self, text: &str) {
        let is_in_reasoning = self.open_reasoning.is_some()
            || self.is_thinking_leading && self.reasoning == ReasoningStage::Unclosed;
        self.track_fences(text, is_in_reasoning);
        let continues_line = !text.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        match self.reasoning {
            ReasoningStage::ClosedInline
                if self.is_thinking_leading && self.open_reasoning.is_none() && continues_line =>
            {
                self.open_reasoning = Some(OpenReasoning::new(marks::THINKING_MARK));
                self.reasoning = ReasoningStage::Unclosed;
            }
            ReasoningStage::ClosedLast | ReasoningStage::ClosedInline => {
                self.reasoning = ReasoningStage::Closed;
            }
            ReasoningStage::Unclosed | ReasoningStage::Absent | ReasoningStage::Closed => {}
        }
        self.position = if text.rfind('\n').is_some_and(|at| is_blank(&text[at..])) {
            LinePosition::Start
        } else if text.ends_with('`') && !text.ends_with("```") {
            LinePosition::CodeSpan
        } else {
            LinePosition::Text
        };
        self.is_nested_thinking = false;
        self.has_thinking_text |= self.thinking != ThinkingTag::Absent;
        match self.reasoning {
            _ if self.open_reasoning.is_some() => {}
            // Something other than a phase after a leading `<thinking>`: the text after its end decides
            // whether it is plain reasoning or ThinkingML without phases.
            ReasoningStage::Unclosed if self.is_thinking_leading => {
                self.open_reasoning = Some(OpenReasoning::new(marks::THINKING_MARK));
            }
            ReasoningStage::Unclosed => self.reasoning = ReasoningStage::Absent,
            ReasoningStage::Absent => {}
            ReasoningStage::Closed | ReasoningStage::ClosedLast | ReasoningStage::ClosedInline => {
                self.is_plain |= !may_begin_value(text);
            }
        }
    }

    /// Tracks fences that open and close in a text, and whether it contains prose.
    fn track_fences(&mut self, text: &str, is_in_reasoning: bool) {
        let start = usize::from(!self.is_line_start());
        for (at, line) in text.split('\n').enumerate() {
            let line = line.trim();
            if at >= start {
                match self.fence {
                    Some(OpenFence { fence, .. }) if fence.is_closed_by_line(line) => {
                        self.fence = None;
                        continue;
                    }
                    Some(_) => {}
                    None => {
                        if let Some((fence, info)) = Fence::parse(line) {
                            let language = info.split_whitespace().next().unwrap_or_default();
                            let is_language_in =
                                |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(language));
                            self.fence = Some(OpenFence {
                                fence,
                                allows_structure: is_language_in(STRUCTURE_LANGUAGES),
                                is_foreign: is_language_in(FOREIGN_LANGUAGES),
                            });
                            continue;
                        }
                    }
                }
            }
            let prose = !line.is_empty() && !plain::is_role_word(line);
            self.has_prose |= !is_in_reasoning && prose;
            if prose && self.answer == AnswerEnd::Read {
                self.answer = AnswerEnd::BeforeProse;
            }
        }
    }
}

/// Fence languages in which a structure of tags may appear.
const STRUCTURE_LANGUAGES: &[&str] =
    &["", "xml", "html", "text", "txt", "plaintext", "markdown", "md", "thinkingml", "filament"];

/// Those of them for vocabularies with the same tags: a structure alone in such a fence is an example.
const FOREIGN_LANGUAGES: &[&str] = &["html"];

/// Returns whether text after the reasoning may begin a fence or JSON.
fn may_begin_value(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | '['))
}
