//! Tags and marks of reasoning at the beginning of a reply.

use super::{Begin, HEAD, Seen, Verdict, When, document};
use crate::dialect::{DIALECTS, Entry, MARKER};
use crate::lex::fence::Fence;
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;

/// What the tags tell; `full` when no more will be looked at.
pub(super) fn markup(text: &str, full: bool) -> Seen {
    let mut lexer = Markup::new(MARKER, 1 << 10).with_reasoning();
    let mut tags = Tags { led: true, alone: true, ..Tags::default() };
    lexer.push(text, &mut |token, _| tags.next(token));
    if full {
        lexer.finish(&mut |token, _| tags.next(token));
        let answered = tags.began && tags.open.is_some() && tags.ended;
        if tags.verdict.is_none() && (tags.began && tags.filled && !tags.led || answered) {
            tags.verdict = structure().map(Verdict::Dialect);
        }
    }
    let verdict = tags.verdict.unwrap_or(Verdict::Unknown);
    Seen { verdict, closed: tags.just_closed || tags.candidate.is_some() }
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

/// What the tags of a beginning tell so far.
#[derive(Default)]
struct Tags {
    verdict: Option<Verdict>,
    /// The first of the text so far.
    before: String,
    /// A tag that tells the dialect unless it is empty, and its name.
    candidate: Option<(&'static str, &'static str)>,
    /// Reasoning that is open.
    open: Option<Open>,
    /// Whether `<thinking>` has come alone in its line, whether behind nothing but reasoning, and whether text follows it.
    began: bool,
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
    fence: Option<(Fence, bool)>,
    /// Elements of another vocabulary that are open (R-91).
    around: Vec<String>,
}

impl Tags {
    fn next(&mut self, token: Token<'_>) {
        if self.verdict.is_none() {
            let raw = token.raw();
            self.see(token);
            let room = raw.floor_char_boundary(HEAD.saturating_sub(self.before.len()));
            self.before.push_str(&raw[..room]);
        }
    }

    fn see(&mut self, token: Token<'_>) {
        self.candidate(&token);
        if self.verdict.is_some() {
            return;
        }
        let quotes = matches!(token, Token::Text(text) if text.ends_with('`') && !text.ends_with("```"));
        let in_code = std::mem::replace(&mut self.quoted, quotes);
        match token {
            Token::Tag(tag) if in_code || tag.kind == TagKind::SelfClosing => {}
            Token::Tag(tag) => self.tag(&tag),
            Token::Reasoning(_, mark) => self.mark(mark),
            Token::Text(text) if is_blank(text) => self.alone |= text.contains('\n'),
            Token::Mark(_) => {}
            Token::Text(text) => self.text(text),
            // One that is left open hides nothing.
            Token::CommentOpen | Token::CommentClose | Token::CommentEnd(_) => self.text(token.raw()),
        }
    }

    /// What follows a tag that may tell the dialect.
    fn candidate(&mut self, token: &Token<'_>) {
        let Some((dialect, name)) = self.candidate else { return };
        match token {
            Token::Text(text) if is_blank(text) => {}
            // It is empty.
            Token::Tag(tag) if tag.kind == TagKind::Close && tag.name.eq_ignore_ascii_case(name) => {
                self.candidate = None;
            }
            _ => self.verdict = Some(Verdict::Dialect(dialect)),
        }
    }

    /// Whether a structure may stand here: not in code of another language, within other elements, or in a document.
    fn may_stand(&self) -> bool {
        self.fence.is_none_or(|(_, may)| may) && self.around.is_empty() && !document(&self.before)
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        let name = tag.name.to_ascii_lowercase();
        let opening = tag.kind == TagKind::Open;
        let in_draft = self.open.is_some_and(|open| !open.mark().is_thinking());
        let told = told_by(tag.name);
        if let Some((dialect, begin)) = told
            && opening
            && tag.attributes().all(|attribute| begin.attributes.contains(&attribute.name))
            && self.may_stand()
        {
            let tells = match begin.when {
                When::InThinking => self.began || self.nested,
                When::Alone => self.open.is_none() && self.alone,
                When::EndsThinking => !in_draft && self.alone,
            };
            if tells && begin.when == When::InThinking {
                self.verdict = Some(Verdict::Dialect(dialect));
                return;
            }
            if tells {
                self.candidate = Some((dialect, begin.name));
            }
        }
        let bare = tag.attributes().next().is_none();
        match (name.as_str(), opening) {
            _ if told.is_some_and(|(_, begin)| begin.when == When::EndsThinking) && !in_draft => {
                self.ended |= self.mentioned && !opening;
                self.mentioned |= self.began && opening;
            }
            ("thinking", true) if self.open.is_none() && self.alone && bare => {
                self.began |= self.may_stand();
                self.thinking |= self.led;
            }
            // It ends a draft that is not closed, if a phase follows (T-016).
            ("thinking", true) if in_draft && self.alone && bare => {
                self.began |= self.may_stand();
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
        self.fences(text);
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
            self.verdict = Some(Verdict::Plain);
        } else if self.open.is_none() && !self.closed {
            self.led = false;
        }
    }

    /// Fences that open and close in a text.
    fn fences(&mut self, text: &str) {
        let start = usize::from(!self.alone);
        for line in text.split('\n').skip(start) {
            let line = line.trim_start();
            match self.fence {
                Some((fence, _)) => {
                    if fence.is_closed_by_line(line) {
                        self.fence = None;
                    }
                }
                None => {
                    self.fence = Fence::of(line).map(|(fence, info)| {
                        let language = info.split_whitespace().next().unwrap_or_default();
                        (fence, LANGUAGES.iter().any(|known| known.eq_ignore_ascii_case(language)))
                    });
                }
            }
        }
    }
}

/// Languages of fences that a structure of tags may stand in.
const LANGUAGES: &[&str] =
    &["", "xml", "html", "text", "txt", "plaintext", "markdown", "md", "thinkingml", "filament"];

/// Whether text after the reasoning may begin a fence or JSON.
fn may_begin(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | '['))
}
