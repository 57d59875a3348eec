//! Tags and marks of reasoning at the beginning of a reply.

use super::evidence::{Candidate, Evidence};
use super::{Begin, Extent, HEAD, Seen, Verdict, When, document};
use crate::dialect::{DIALECTS, Entry, MARKER, plain};
use crate::lex::about;
use crate::lex::fence::Fence;
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;

/// What the tags tell.
pub(super) fn markup(text: &str, extent: Extent) -> Seen {
    let mut lexer = Markup::new(MARKER, 1 << 10).with_reasoning();
    let mut tags =
        Tags { all: text, whole: extent == Extent::All, led: true, alone: true, ..Tags::default() };
    lexer.push(text, &mut |token, at| tags.next(token, at.get().offset));
    if extent != Extent::Part {
        lexer.finish(&mut |token, at| tags.next(token, at.get().offset));
    }
    let mut waits = tags.waits;
    // Between prose it is a template in a text about it: what stands behind its end tells.
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

/// The dialect that a tag tells, and where. Names are written in small letters or, by models that shout, in large ones:
/// `<Final>` is a component (R-91).
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

/// The dialect whose structure begins with `<thinking>`.
fn structure() -> Option<&'static str> {
    let begins = |entry: &&Entry| entry.opening.tags.iter().any(|begin| begin.when == When::InThinking);
    DIALECTS.iter().find(begins).map(|entry| entry.name)
}

/// Elements that need no end.
const VOID: &[&str] = &["br", "hr", "img", "input", "link", "meta", "p", "li", "wbr"];

/// Tags that are looked at for what they tell: one of the first does.
const CANDIDATES: usize = 64;

/// Columns that make code of a line.
const INDENT: usize = 4;

/// What a document of XML begins with.
const XML: &[&str] = &["<?xml", "<!doctype"];

/// What the tags of a beginning tell so far.
#[derive(Default)]
struct Tags<'a> {
    /// The text that is looked at, and whether it is all of the reply.
    all: &'a str,
    whole: bool,
    verdict: Option<Verdict>,
    /// Whether text behind reasoning makes the reply plain, unless a tag tells a dialect.
    plain: bool,
    /// The first of the text so far.
    before: String,
    /// Tags that may tell the dialect, and whether more must come to know what one is.
    candidates: Vec<Candidate>,
    waits: bool,
    /// Whether prose has come: text that is neither reasoning nor the word of a role or the line of a fence.
    prose: bool,
    /// Reasoning that is open.
    open: Option<Open>,
    /// Whether `<thinking>` has come alone in its line, whether behind nothing but reasoning, and whether text follows it. In a fence
    /// with prose before it, it is an example.
    began: bool,
    example: bool,
    /// True where prose stands before it.
    introduced: bool,
    /// True once an answer has ended, and once prose has come behind its end.
    answered: bool,
    prose_behind: bool,
    /// Whether `</thinking>` has come behind it.
    shut: bool,
    thinking: bool,
    filled: bool,
    /// Whether a `<thinking>` in a sentence of a draft came last, which a phase makes the end of the draft (T-016).
    nested: bool,
    /// Whether a `<final>` in a sentence of thinking has come, and has ended: the answer, if no other one comes (R-06).
    mentioned: bool,
    ended: bool,
    /// Whether nothing but reasoning has come.
    led: bool,
    /// Whether reasoning has closed, and whether that came last.
    closed: bool,
    just_closed: bool,
    /// Whether `</thinking>` closed it in the middle of a line: with text behind it that is only a mention (R-75).
    inline: bool,
    /// Whether no text stands before this place on its line: a tag in a sentence is a mention (R-74).
    alone: bool,
    /// Whether a code span opens directly before this place: what it quotes begins nothing.
    quoted: bool,
    /// The fence that is open, and whether a structure may stand in it.
    fence: Option<Fenced>,
    /// Elements of another vocabulary that are open (R-91).
    around: Vec<String>,
}

/// A fence.
#[derive(Clone, Copy)]
struct Fenced {
    fence: Fence,
    /// Whether a structure may stand in it, and whether it is one for another vocabulary too.
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
            // One that is left open hides nothing.
            Token::CommentOpen | Token::CommentClose | Token::CommentEnd(_) => self.text(token.raw()),
        }
    }

    /// Whether a structure may stand here: not in code of another language, within other elements, or in a document.
    fn may_stand(&self) -> bool {
        self.fence.is_none_or(|fence| fence.may) && self.around.is_empty() && !document(&self.before)
    }

    /// Whether a tag at this place stands in code that is indented, behind prose, or in a document of XML.
    fn is_code(&self, at: usize) -> bool {
        let before = &self.all[..at];
        let line = before.rfind('\n').map_or(0, |line| line + 1);
        let indent = before[line..].bytes().map(|byte| if byte == b'\t' { INDENT } else { 1 }).sum::<usize>();
        let apart = before[..line].trim_end_matches([' ', '\t', '\n', '\r']).len() + 1 < line;
        let head = self.all[..before.floor_char_boundary(HEAD)].to_ascii_lowercase();
        self.prose && indent >= INDENT && apart || XML.iter().any(|start| head.contains(start))
    }

    /// A tag, and the offset behind it.
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
            // It ends a draft that is not closed, if a phase follows (T-016).
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

    /// `<thinking>` begins.
    fn begin(&mut self) {
        self.began |= self.may_stand();
        self.introduced |= self.prose;
        self.example |= self.fence.is_some() && self.prose;
    }

    /// Whether a tag that opens reasoning is a word of a sentence, or of a text about it that goes on in the next line.
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

    /// A tag that belongs to nothing known.
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

    /// A mark of reasoning.
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
        // Something other than a phase after a leading `<thinking>`: what follows its end will tell whether it is plain
        // reasoning or ThinkingML without phases.
        if self.thinking && self.led && self.open.is_none() && !self.closed {
            self.open = Some(Open::new(marks::THINKING));
        } else if self.closed && self.open.is_none() && !may_begin(text) {
            self.plain = true;
        } else if self.open.is_none() && !self.closed {
            self.led = false;
        }
    }

    /// Fences that open and close in a text, and whether prose stands in it.
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

/// Languages of fences that a structure of tags may stand in.
const LANGUAGES: &[&str] =
    &["", "xml", "html", "text", "txt", "plaintext", "markdown", "md", "thinkingml", "filament"];

/// Those of them for vocabularies that have the same tags: what stands alone in them is an example.
const FOREIGN: &[&str] = &["html"];

/// Whether text after the reasoning may begin a fence or JSON.
fn may_begin(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | '['))
}
