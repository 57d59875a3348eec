//! Tags and reasoning marks at the beginning of a reply.

use super::evidence::{Candidate, Evidence};
use super::{Begin, Extent, HEAD, Seen, Verdict, When, document};
use crate::dialect::{DIALECTS, Entry, MARKER, plain};
use crate::lex::about;
use crate::lex::fence::Fence;
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;

/// Decides from the tags of a text.
pub(super) fn markup(text: &str, extent: Extent) -> Seen {
    let mut lexer = Markup::new(MARKER, 1 << 10).with_reasoning();
    let mut tags =
        Tags { all: text, whole: extent == Extent::All, led: true, alone: true, ..Tags::default() };
    lexer.push(text, &mut |token, at| tags.next(token, at.get().offset));
    if extent != Extent::Part {
        lexer.finish(&mut |token, at| tags.next(token, at.get().offset));
    }
    let mut waits = tags.waits;
    // Between prose it is a template in a text about it: the text after its end decides.
    let quoted = tags.introduced && tags.prose_behind;
    let doubtful = tags.introduced && extent != Extent::All;
    if tags.verdict.is_none() {
        for candidate in &tags.candidates {
            let own = structure() == Some(candidate.dialect);
            match candidate.evidence(text, extent) {
                Evidence::Structure if own && quoted => {}
                Evidence::Structure if own && doubtful => waits = true,
                Evidence::Structure => {
                    tags.verdict = Some(Verdict::Dialect(candidate.dialect));
                    break;
                }
                Evidence::Waits => waits = true,
                Evidence::Text => {}
            }
        }
    }
    waits |= doubtful && extent == Extent::Window;
    if extent != Extent::Part && tags.verdict.is_none() && !waits && !quoted {
        let answered = tags.began && tags.open.is_some() && tags.ended;
        if tags.began && !tags.example && tags.filled && !tags.led || answered {
            tags.verdict = structure().map(Verdict::Dialect);
        }
    }
    if tags.verdict.is_none() && !waits && tags.plain {
        tags.verdict = Some(Verdict::Plain);
    }
    let verdict = tags.verdict.unwrap_or(Verdict::Unknown);
    Seen { verdict, closed: tags.just_closed || waits, waits }
}

/// Finds the dialect that a tag identifies, and the position it needs. Names are all lower case or, from
/// models that shout, all upper case: `<Final>` is a component (R-91).
fn told_by(name: &str) -> Option<(&'static str, &'static Begin)> {
    let large = name.chars().any(char::is_uppercase);
    if large && name.chars().any(char::is_lowercase) {
        return None;
    }
    DIALECTS.iter().find_map(|entry| {
        let begin = entry.opening.tags.iter().find(|begin| begin.name.eq_ignore_ascii_case(name))?;
        Some((entry.name, begin))
    })
}

/// Returns the dialect whose structure begins with `<thinking>`.
fn structure() -> Option<&'static str> {
    let begins = |entry: &&Entry| entry.opening.tags.iter().any(|begin| begin.when == When::InThinking);
    DIALECTS.iter().find(begins).map(|entry| entry.name)
}

/// Elements that need no closing tag.
const VOID: &[&str] = &["br", "hr", "img", "input", "link", "meta", "p", "li", "wbr"];

/// Most tags that are kept as candidates; a structure shows in one of the first.
const CANDIDATES: usize = 64;

/// Columns of indentation that make a line code.
const INDENT: usize = 4;

/// Beginnings of an XML document, in lower case.
const XML: &[&str] = &["<?xml", "<!doctype"];

/// Evidence from the tags read so far.
#[derive(Default)]
struct Tags<'a> {
    /// The text under examination, and whether it is all of the reply.
    all: &'a str,
    whole: bool,
    verdict: Option<Verdict>,
    /// Set if text after reasoning makes the reply plain, unless a tag identifies a dialect.
    plain: bool,
    /// The first bytes of the text so far, at most [`HEAD`].
    before: String,
    /// Tags that may decide the dialect, and whether one of them needs more text.
    candidates: Vec<Candidate>,
    waits: bool,
    /// Set once prose was read: text that is neither reasoning, nor a role word, nor a fence line.
    prose: bool,
    /// Open reasoning.
    open: Option<Open>,
    /// Set once a `<thinking>` was read that stands alone on its line and may begin a structure.
    began: bool,
    /// Set if a `<thinking>` is in a fence with prose before it.
    example: bool,
    /// Set if prose precedes the `<thinking>`.
    introduced: bool,
    /// Set once an answer has ended, and once prose was read after its end.
    answered: bool,
    prose_behind: bool,
    /// Set once a `</thinking>` was read after the `<thinking>`.
    shut: bool,
    /// Set if only reasoning precedes the `<thinking>`.
    thinking: bool,
    /// Set once text was read after the `<thinking>`.
    filled: bool,
    /// Set if the last token is a `<thinking>` in a sentence of a draft; a phase after it ends the draft
    /// (T-016).
    nested: bool,
    /// Set once a `<final>` was read in a sentence of thinking, and once it has ended: it is the answer if no
    /// other one follows (R-06).
    mentioned: bool,
    ended: bool,
    /// Set as long as only reasoning was read.
    led: bool,
    /// Set once reasoning has closed, and while that is the last token.
    closed: bool,
    just_closed: bool,
    /// Set if a `</thinking>` in the middle of a line closed it: text on the same line makes that a mention
    /// (R-75).
    inline: bool,
    /// Set if no text precedes the current offset on its line: a tag in a sentence is a mention (R-74).
    alone: bool,
    /// Set if a code span opens right before the current offset: a quoted tag begins nothing.
    quoted: bool,
    /// The open fence.
    fence: Option<Fenced>,
    /// Open elements of another vocabulary (R-91).
    around: Vec<String>,
}

/// A code fence.
#[derive(Clone, Copy)]
struct Fenced {
    fence: Fence,
    /// Set if a structure may be in the fence, and if the fence is also used for another vocabulary.
    may: bool,
    foreign: bool,
}

impl Tags<'_> {
    fn next(&mut self, token: Token<'_>, at: usize) {
        if self.verdict.is_none() {
            let raw = token.raw();
            self.see(token, at);
            let room = raw.floor_char_boundary(HEAD.saturating_sub(self.before.len()));
            self.before.push_str(&raw[..room]);
        }
    }

    fn see(&mut self, token: Token<'_>, at: usize) {
        let quotes = matches!(token, Token::Text(text) if text.ends_with('`') && !text.ends_with("```"));
        let in_code = std::mem::replace(&mut self.quoted, quotes);
        match token {
            Token::Tag(tag) if in_code || tag.kind == TagKind::SelfClosing => {}
            Token::Tag(tag) => self.tag(&tag, at + token.raw().len()),
            Token::Reasoning(_, mark) => self.mark(mark),
            Token::Text(text) if is_blank(text) => self.alone |= text.contains('\n'),
            Token::Mark(_) => {}
            Token::Text(text) => self.text(text),
            // An unclosed comment hides nothing.
            Token::CommentOpen | Token::CommentClose | Token::CommentEnd(_) => self.text(token.raw()),
        }
    }

    /// Returns whether a structure may begin here: not in code of another language, within other elements, or
    /// in a document.
    fn may_stand(&self) -> bool {
        self.fence.is_none_or(|fence| fence.may) && self.around.is_empty() && !document(&self.before)
    }

    /// Returns whether a tag at this offset is in indented code after prose, or in an XML document.
    fn is_code(&self, at: usize) -> bool {
        let before = &self.all[..at];
        let line = before.rfind('\n').map_or(0, |line| line + 1);
        let indent = before[line..].bytes().map(|byte| if byte == b'\t' { INDENT } else { 1 }).sum::<usize>();
        let apart = before[..line].trim_end_matches([' ', '\t', '\n', '\r']).len() + 1 < line;
        let head = self.all[..before.floor_char_boundary(HEAD)].to_ascii_lowercase();
        self.prose && indent >= INDENT && apart || XML.iter().any(|start| head.contains(start))
    }

    /// Handles a tag that ends at offset `behind`.
    fn tag(&mut self, tag: &Tag<'_>, behind: usize) {
        let name = tag.name.to_ascii_lowercase();
        let opening = tag.kind == TagKind::Open;
        let in_draft = self.open.is_some_and(|open| !open.mark().is_thinking());
        let told = told_by(tag.name);
        if let Some((_, begin)) = told {
            self.answered = !opening && (begin.when == When::EndsThinking || self.answered);
            self.prose_behind &= self.answered;
        }
        if let Some((dialect, begin)) = told
            && opening
            && tag.attributes().all(|attribute| begin.attributes.contains(&attribute.name))
            && self.may_stand()
        {
            let tells = match begin.when {
                When::InThinking => self.began || self.nested,
                When::Alone | When::Before | When::First => self.open.is_none() && self.alone,
                When::EndsThinking => !in_draft && self.alone,
            };
            if tells
                && self.candidates.len() < CANDIDATES
                && (self.began || !self.is_code(behind - tag.raw.len()))
            {
                self.candidates.push(Candidate {
                    dialect,
                    name: begin.name,
                    behind,
                    first: matches!(begin.when, When::Before | When::First | When::EndsThinking),
                    whole: matches!(begin.when, When::Alone | When::Before),
                    prose: self.prose,
                    follows: begin.when == When::InThinking || self.began && (self.shut || !self.prose),
                    fence: self.fence.map(|fenced| (fenced.fence, fenced.foreign)),
                });
            }
        }
        self.shut |= self.began && !opening && name == "thinking";
        let bare = tag.attributes().next().is_none();
        match (name.as_str(), opening) {
            _ if told.is_some_and(|(_, begin)| begin.when == When::EndsThinking) && !in_draft => {
                self.ended |= self.mentioned && !opening;
                self.mentioned |= self.began && opening;
            }
            _ if opening && self.is_word(&name, behind) => {}
            ("thinking", true) if self.open.is_none() && self.alone && bare => {
                if self.prose && self.is_code(behind - tag.raw.len()) {
                    return;
                }
                self.begin();
                self.thinking |= self.led;
            }
            // It ends an unclosed draft, if a phase follows (T-016).
            ("thinking", true) if in_draft && self.alone && bare => {
                self.begin();
                self.thinking = true;
                self.mark(marks::THINKING);
            }
            _ => {
                self.nested = name == "thinking" && opening && in_draft;
                match marks::of_tag(tag.name, !opening) {
                    Some(mark) => self.mark(mark),
                    None => self.other(name, opening),
                }
            }
        }
    }

    /// Records a `<thinking>`.
    fn begin(&mut self) {
        self.began |= self.may_stand();
        self.introduced |= self.prose;
        self.example |= self.fence.is_some() && self.prose;
    }

    /// Returns whether a tag that opens reasoning is a word of a sentence, or of a text about it that
    /// continues on the next line.
    fn is_word(&mut self, name: &str, behind: usize) -> bool {
        if self.open.is_some() || marks::of_tag(name, false).is_none() {
            return false;
        }
        let text = &self.all[behind..];
        let speaks = about::speaks(text, self.whole);
        self.waits |= speaks.is_none() && !self.whole;
        let below = self.prose && text.trim_start().starts_with(char::is_lowercase);
        let word = speaks == Some(true) || below;
        self.alone &= !word;
        word
    }

    /// Handles a tag of no known vocabulary.
    fn other(&mut self, name: String, opening: bool) {
        if !opening {
            if let Some(at) = self.around.iter().rposition(|open| *open == name) {
                self.around.truncate(at);
            }
        } else if self.alone
            && self.open.is_none()
            && !VOID.contains(&name.as_str())
            && told_by(&name).is_none()
        {
            self.around.push(name);
        }
    }

    /// Handles a reasoning mark.
    fn mark(&mut self, mark: Mark) {
        let Some(open) = &mut self.open else {
            if mark.kind == Kind::Open && self.led && !self.thinking {
                self.open = Some(Open::new(mark));
            }
            return;
        };
        if open.see(mark) != Effect::Text {
            self.inline = mark.is_thinking() && !self.alone;
            self.open = None;
            (self.closed, self.just_closed, self.alone) = (true, true, true);
        }
    }

    fn text(&mut self, text: &str) {
        let within = self.open.is_some() || self.thinking && self.led && !self.closed;
        self.fences(text, within);
        let goes_on = !text.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        if std::mem::take(&mut self.inline) && self.thinking && self.open.is_none() && goes_on {
            (self.open, self.closed) = (Some(Open::new(marks::THINKING)), false);
        }
        self.alone = text.rfind('\n').is_some_and(|at| is_blank(&text[at..]));
        (self.just_closed, self.nested) = (false, false);
        self.filled |= self.began;
        // Something other than a phase after a leading `<thinking>`: the text after its end decides whether
        // it is plain reasoning or ThinkingML without phases.
        if self.thinking && self.led && self.open.is_none() && !self.closed {
            self.open = Some(Open::new(marks::THINKING));
        } else if self.closed && self.open.is_none() && !may_begin(text) {
            self.plain = true;
        } else if self.open.is_none() && !self.closed {
            self.led = false;
        }
    }

    /// Tracks fences that open and close in a text, and whether it contains prose.
    fn fences(&mut self, text: &str, within: bool) {
        let start = usize::from(!self.alone);
        for (at, line) in text.split('\n').enumerate() {
            let line = line.trim();
            if at >= start {
                match self.fence {
                    Some(Fenced { fence, .. }) if fence.is_closed_by_line(line) => {
                        self.fence = None;
                        continue;
                    }
                    Some(_) => {}
                    None => {
                        if let Some((fence, info)) = Fence::of(line) {
                            let language = info.split_whitespace().next().unwrap_or_default();
                            let among =
                                |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(language));
                            self.fence =
                                Some(Fenced { fence, may: among(LANGUAGES), foreign: among(FOREIGN) });
                            continue;
                        }
                    }
                }
            }
            let prose = !line.is_empty() && !plain::is_role(line);
            self.prose |= !within && prose;
            self.prose_behind |= self.answered && prose;
        }
    }
}

/// Fence languages in which a structure of tags may appear.
const LANGUAGES: &[&str] =
    &["", "xml", "html", "text", "txt", "plaintext", "markdown", "md", "thinkingml", "filament"];

/// Those of them for vocabularies with the same tags: a structure alone in such a fence is an example.
const FOREIGN: &[&str] = &["html"];

/// Returns whether text after the reasoning may begin a fence or JSON.
fn may_begin(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | '['))
}
