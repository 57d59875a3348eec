//! Tags and reasoning marks at the beginning of a reply.

use super::evidence::{TagCandidate, TagEvidence};
use super::{Examination, HEAD_BYTES, OpeningTag, OpeningVerdict, PrefixExtent, TagPosition, is_document};
use crate::dialect::{DIALECTS, DialectEntry, FAILURE_MARKER, plain};
use crate::lex::fence::Fence;
use crate::lex::marks::{self, MarkEffect, MarkKind, OpenReasoning, ReasoningMark};
use crate::lex::markup::{MarkupLexer, MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::lex::tag_sentence;

/// Decides the dialect from the tags and reasoning marks of a text.
pub(super) fn examine_tags(text: &str, extent: PrefixExtent) -> Examination {
    // The maximum length of a tag, 1 KiB, is the default of `limits.tag`.
    let mut lexer = MarkupLexer::new(FAILURE_MARKER, 1 << 10).with_reasoning();
    let mut scan = TagScan { text, is_whole_reply: extent == PrefixExtent::All, ..TagScan::default() };
    lexer.push(text, &mut |token, at| scan.push_token(token, at.resolve().offset));
    if extent != PrefixExtent::Part {
        lexer.finish(&mut |token, at| scan.push_token(token, at.resolve().offset));
    }
    let mut needs_more = scan.needs_more;
    // A `<thinking>` structure with prose before and after it is an example in a text about the format. With
    // prose before it, only the text after its end decides.
    let is_below_prose = scan.thinking_lead >= ThinkingLead::Prose;
    let is_quoted = is_below_prose && scan.answer == AnswerEnd::BeforeProse;
    let is_doubtful = is_below_prose && extent != PrefixExtent::All;
    let mut verdict = None;
    for candidate in &scan.candidates {
        let is_thinking = thinking_dialect() == Some(candidate.dialect);
        match candidate.evidence(text, extent) {
            TagEvidence::Structure if is_thinking && is_quoted => {}
            TagEvidence::Structure if is_thinking && is_doubtful => needs_more = true,
            TagEvidence::Structure => {
                verdict = Some(OpeningVerdict::Dialect(candidate.dialect));
                break;
            }
            TagEvidence::NeedsMore => needs_more = true,
            TagEvidence::Text => {}
        }
    }
    needs_more |= is_doubtful && extent == PrefixExtent::Window;
    if extent != PrefixExtent::Part && verdict.is_none() && !needs_more && !is_quoted {
        // The thinking is not closed, but a `<final>` within it is (R-06).
        let has_answer = scan.open_reasoning.is_some() && scan.inline_final == InlineFinal::Closed;
        let is_open_structure = scan.thinking_lead < ThinkingLead::FenceBelowProse
            && scan.has_thinking_text
            && scan.reasoning == ReasoningStage::Absent;
        if is_open_structure || has_answer {
            verdict = thinking_dialect().map(OpeningVerdict::Dialect);
        }
    }
    if verdict.is_none() && !needs_more && scan.is_plain {
        verdict = Some(OpeningVerdict::Plain);
    }
    let verdict = verdict.unwrap_or(OpeningVerdict::Unknown);
    let is_reasoning_closed_last =
        matches!(scan.reasoning, ReasoningStage::ClosedLast | ReasoningStage::ClosedInline);
    Examination { verdict, next_char_decides: is_reasoning_closed_last || needs_more, needs_more }
}

/// Finds the dialect that a tag of this name may identify, and the entry of the tag in its table. Names are
/// all lower case or, as some models write them, all upper case; in mixed case, `<Final>` is a component of
/// another vocabulary (R-91).
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

/// Maximum number of tags kept as candidates; one of the first begins the structure, if there is one.
const MAX_CANDIDATES: usize = 64;

/// Columns of indentation that make a line code in Markdown; a tab counts as this many.
const CODE_INDENT: usize = 4;

/// Beginnings of an XML document, in lower case.
const XML_STARTS: &[&str] = &["<?xml", "<!doctype"];

/// Evidence from the tags read so far.
#[derive(Default)]
struct TagScan<'a> {
    /// The text under examination.
    text: &'a str,
    /// Set if `text` is all text that will be examined.
    is_whole_reply: bool,
    /// Set if text after reasoning makes the reply plain, unless a tag identifies a dialect.
    is_plain: bool,
    /// The first bytes of the text so far, at most [`HEAD_BYTES`].
    head: String,
    /// Tags that may decide the dialect.
    candidates: Vec<TagCandidate>,
    /// Set if only more text can show whether a tag is a word of a sentence.
    needs_more: bool,
    /// Set once prose was read: text that is neither reasoning, nor a role word, nor a fence line.
    has_prose: bool,
    /// Open reasoning.
    open_reasoning: Option<OpenReasoning>,
    /// Stage of the reasoning that comes first, if any does.
    reasoning: ReasoningStage,
    /// The first `<thinking>` that may begin a structure.
    thinking: ThinkingTag,
    /// Text before a `<thinking>`; of several tags, the text that makes a structure least likely.
    thinking_lead: ThinkingLead,
    /// Set once a `<thinking>` has begun the reply, or followed reasoning that begins it.
    is_thinking_leading: bool,
    /// Set once text was read after the tag recorded in `thinking`.
    has_thinking_text: bool,
    /// Set if the last token is a `<thinking>` in a sentence of a draft; a phase after it ends the draft
    /// (T-016).
    is_nested_thinking: bool,
    /// State of the first `<final>` after a `<thinking>`.
    inline_final: InlineFinal,
    /// State of the end of the answer.
    answer: AnswerEnd,
    /// Position on the line after the tokens so far.
    position: LinePosition,
    /// The open fence.
    fence: Option<OpenFence>,
    /// Names of open elements of other vocabularies (R-91).
    foreign_elements: Vec<String>,
}

/// Reasoning so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReasoningStage {
    /// Nothing but reasoning was read, and none of it has closed.
    #[default]
    Unclosed,
    /// Text came before any reasoning: from here on, marks open no reasoning.
    Absent,
    /// Closed, with text after it.
    Closed,
    /// Closed, without text after it so far.
    ClosedLast,
    /// Closed by a `</thinking>` in the middle of a line, without text after it so far: text on the same line
    /// would make the tag a mention (R-75).
    ClosedInline,
}

/// State of a `<thinking>` at the start of a line, which may begin a structure.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ThinkingTag {
    #[default]
    Absent,
    Open,
    Closed,
}

/// Text before a `<thinking>`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ThinkingLead {
    #[default]
    NoProse,
    Prose,
    /// Prose, and a fence around the tag.
    FenceBelowProse,
}

/// State of the first `<final>` after a `<thinking>`. Once closed, it is the answer even if the thinking is
/// never closed (R-06).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum InlineFinal {
    #[default]
    Absent,
    Open,
    Closed,
}

/// State of the end of an answer.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum AnswerEnd {
    /// No end of an answer was read, or an element of a dialect has begun after it.
    #[default]
    Absent,
    /// The closing tag of an answer was read.
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
    /// Set if a structure may be in the fence.
    allows_structure: bool,
    /// Set if the language of the fence has the same tags with another meaning.
    is_foreign: bool,
}

impl TagScan<'_> {
    /// Reads the token at this offset.
    fn push_token(&mut self, token: MarkupToken<'_>, at: usize) {
        let raw = token.raw();
        self.handle_token(token, at);
        let fitting_len = raw.floor_char_boundary(HEAD_BYTES.saturating_sub(self.head.len()));
        self.head.push_str(&raw[..fitting_len]);
    }

    /// Updates the evidence for a token.
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
            // The marks of a comment count as text, because an unclosed comment hides nothing.
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
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let indentation = before[line_start..].bytes();
        let indent = indentation.map(|byte| if byte == b'\t' { CODE_INDENT } else { 1 }).sum::<usize>();
        // After a blank line, more than one line break precedes this line.
        let is_after_blank_line =
            before[..line_start].trim_end_matches([' ', '\t', '\n', '\r']).len() + 1 < line_start;
        let head = self.text[..before.floor_char_boundary(HEAD_BYTES)].to_ascii_lowercase();
        self.has_prose && indent >= CODE_INDENT && is_after_blank_line
            || XML_STARTS.iter().any(|start| head.contains(start))
    }

    /// Handles a tag that ends before the offset `end`.
    fn handle_tag(&mut self, tag: &MarkupTag<'_>, end: usize) {
        let name = tag.name.to_ascii_lowercase();
        let is_opening = tag.kind == TagKind::Open;
        let is_in_draft = self.open_reasoning.is_some_and(|open| !open.mark().is_thinking());
        let has_thinking_tag = self.thinking != ThinkingTag::Absent;
        let dialect_tag = find_opening_tag(tag.name);
        if let Some((_, opening_tag)) = dialect_tag {
            if is_opening {
                self.answer = AnswerEnd::Absent;
            } else if opening_tag.position == TagPosition::EndsThinking && self.answer == AnswerEnd::Absent {
                self.answer = AnswerEnd::Read;
            }
        }
        if let Some((dialect, opening_tag)) = dialect_tag
            && is_opening
            && tag.attributes().all(|attribute| opening_tag.attributes.contains(&attribute.name))
            && self.may_begin_structure()
        {
            let is_evidence = match opening_tag.position {
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
                    name: opening_tag.name,
                    end,
                    is_leading: matches!(
                        opening_tag.position,
                        TagPosition::Before | TagPosition::First | TagPosition::EndsThinking
                    ),
                    is_block: matches!(opening_tag.position, TagPosition::Alone | TagPosition::Before),
                    has_prose_before: self.has_prose,
                    follows_structure: opening_tag.position == TagPosition::InThinking
                        || self.thinking == ThinkingTag::Closed
                        || has_thinking_tag && !self.has_prose,
                    fence: self.fence.map(|open_fence| (open_fence.fence, open_fence.is_foreign)),
                });
            }
        }
        if has_thinking_tag && !is_opening && name == "thinking" {
            self.thinking = ThinkingTag::Closed;
        }
        let is_bare = tag.attributes().next().is_none();
        // Name, and whether the tag opens an element.
        match (name.as_str(), is_opening) {
            _ if dialect_tag
                .is_some_and(|(_, opening_tag)| opening_tag.position == TagPosition::EndsThinking)
                && !is_in_draft =>
            {
                self.inline_final = match self.inline_final {
                    InlineFinal::Absent if is_opening && has_thinking_tag => InlineFinal::Open,
                    InlineFinal::Open if !is_opening => InlineFinal::Closed,
                    inline_final => inline_final,
                };
            }
            // A word of a sentence is no tag.
            _ if is_opening && self.detect_word(&name, end) => {}
            ("thinking", true) if self.open_reasoning.is_none() && self.is_line_start() && is_bare => {
                if self.has_prose && self.is_code(end - tag.raw.len()) {
                    return;
                }
                self.record_thinking();
                self.is_thinking_leading |= self.reasoning != ReasoningStage::Absent;
            }
            // This `<thinking>` ends an unclosed draft, if a phase follows (T-016).
            ("thinking", true) if is_in_draft && self.is_line_start() && is_bare => {
                self.record_thinking();
                self.is_thinking_leading = true;
                self.handle_mark(marks::THINKING_MARK);
            }
            _ => {
                self.is_nested_thinking = name == "thinking" && is_opening && is_in_draft;
                match marks::parse_tag_mark(tag.name, !is_opening) {
                    Some(mark) => self.handle_mark(mark),
                    None => self.handle_other_tag(name, is_opening),
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

    /// Returns whether a tag of this name, which would otherwise open reasoning, is only a word: of a
    /// sentence, or of a text about the tag that continues on the next line. For a word, also records that
    /// the line has text; if only more text can decide, sets `needs_more`. `text_start` is the offset after
    /// the tag.
    fn detect_word(&mut self, name: &str, text_start: usize) -> bool {
        let is_closing = false;
        if self.open_reasoning.is_some() || marks::parse_tag_mark(name, is_closing).is_none() {
            return false;
        }
        let text = &self.text[text_start..];
        let is_sentence = tag_sentence::continues_sentence(text, self.is_whole_reply);
        self.needs_more |= is_sentence.is_none() && !self.is_whole_reply;
        // After prose, text in lower case after the tag continues a text about it.
        let is_below_prose = self.has_prose && text.trim_start().starts_with(char::is_lowercase);
        let is_word = is_sentence == Some(true) || is_below_prose;
        if is_word {
            self.position = LinePosition::Text;
        }
        is_word
    }

    /// Handles a tag that is neither of a dialect nor of reasoning.
    fn handle_other_tag(&mut self, name: String, is_opening: bool) {
        if !is_opening {
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

    /// Handles text that is not blank.
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
        // A text that continues a line opens and closes no fence on that line.
        let first_whole_line = usize::from(!self.is_line_start());
        for (index, line) in text.split('\n').enumerate() {
            let line = line.trim();
            if index >= first_whole_line {
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
            let is_prose = !line.is_empty() && !plain::is_role_word(line);
            self.has_prose |= !is_in_reasoning && is_prose;
            if is_prose && self.answer == AnswerEnd::Read {
                self.answer = AnswerEnd::BeforeProse;
            }
        }
    }
}

/// Fence languages in which a structure of tags may appear.
const STRUCTURE_LANGUAGES: &[&str] =
    &["", "xml", "html", "text", "txt", "plaintext", "markdown", "md", "thinkingml", "filament"];

/// Languages among [`STRUCTURE_LANGUAGES`] in which the same tags have another meaning: a structure in a
/// fence of these languages is an example.
const FOREIGN_LANGUAGES: &[&str] = &["html"];

/// Returns whether text after the reasoning may begin a fence or JSON.
fn may_begin_value(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | '['))
}
