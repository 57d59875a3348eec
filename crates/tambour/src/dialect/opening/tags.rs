//! Tags and marks of reasoning at the beginning of a reply.

use super::{Seen, Verdict, When};
use crate::dialect::{DIALECTS, Entry, MARKER};
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;

/// What the tags tell.
pub(super) fn markup(text: &str, full: bool) -> Seen {
    let mut lexer = Markup::new(MARKER, 1 << 10).with_reasoning();
    let mut tags = Tags { led: true, alone: true, ..Tags::default() };
    lexer.push(text, &mut |token, _| tags.see(token));
    if full {
        lexer.finish(&mut |token, _| tags.see(token));
        let answered = tags.thinking && tags.open.is_some() && tags.ended;
        if tags.verdict.is_none() && (tags.began && !tags.led || answered) {
            tags.verdict = structure().map(Verdict::Dialect);
        }
    }
    Seen { verdict: tags.verdict.unwrap_or(Verdict::Unknown), closed: tags.just_closed }
}

/// The dialect that a tag tells, and where.
fn told_by(name: &str) -> Option<(&'static str, When)> {
    DIALECTS.iter().find_map(|entry| {
        let (_, when) = entry.opening.tags.iter().find(|(tag, _)| *tag == name)?;
        Some((entry.name, *when))
    })
}

/// The dialect whose structure begins with `<thinking>`.
fn structure() -> Option<&'static str> {
    let begins = |entry: &&Entry| entry.opening.tags.iter().any(|(_, when)| *when == When::InThinking);
    DIALECTS.iter().find(begins).map(|entry| entry.name)
}

/// What the tags of a beginning tell so far.
#[derive(Default)]
struct Tags {
    verdict: Option<Verdict>,
    /// Reasoning that is open.
    open: Option<Open>,
    /// Whether `<thinking>` has come, and whether it stood alone.
    thinking: bool,
    began: bool,
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
    /// Whether no text stands before this place on its line: a tag in a sentence is a mention (R-74).
    alone: bool,
    /// Whether a code span opens directly before this place: what it quotes begins nothing.
    quoted: bool,
}

impl Tags {
    fn see(&mut self, token: Token<'_>) {
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
            Token::CommentOpen | Token::CommentClose => self.text(token.raw()),
        }
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        let name = tag.name.to_ascii_lowercase();
        let opening = tag.kind == TagKind::Open;
        let in_draft = self.open.is_some_and(|open| !open.mark().is_thinking());
        let told = told_by(&name);
        if let Some((dialect, when)) = told
            && opening
            && match when {
                When::InThinking => self.thinking || self.nested,
                When::Alone => self.open.is_none() && self.alone,
                When::EndsThinking => !in_draft && self.alone,
            }
        {
            self.verdict = Some(Verdict::Dialect(dialect));
            return;
        }
        match (name.as_str(), opening) {
            _ if matches!(told, Some((_, When::EndsThinking))) && !in_draft => {
                self.ended |= self.mentioned && !opening;
                self.mentioned |= self.thinking && opening;
            }
            ("thinking", true) if self.open.is_none() => {
                self.thinking = true;
                self.began |= self.alone;
            }
            // It ends a draft that is not closed, if a phase follows (T-016).
            ("thinking", true) if in_draft && self.alone => {
                self.thinking = true;
                self.mark(marks::THINKING);
            }
            _ => {
                self.nested = name == "thinking" && opening && in_draft;
                if let Some(mark) = marks::of_tag(tag.name, !opening) {
                    self.mark(mark);
                }
            }
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
            self.open = None;
            (self.closed, self.just_closed, self.alone) = (true, true, true);
        }
    }

    fn text(&mut self, text: &str) {
        self.alone = text.rfind('\n').is_some_and(|at| is_blank(&text[at..]));
        (self.just_closed, self.nested) = (false, false);
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
}

/// Whether text after the reasoning may begin a fence or JSON.
fn may_begin(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), Some('`' | '~' | '{' | '｛' | 'e'))
}
