//! Writes events as plain text: the answer, after its reasoning.

use super::held::is_child;
use super::lexer;
use crate::event::Event;
use crate::lex::marks::{self, Effect, Kind, Open, Pair};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::span::Place;

/// Writes the events of one reply as plain text; with `open`, replies start inside reasoning, which must then
/// be closed.
#[must_use]
pub(super) fn write(events: &[Event<'_>], open: bool) -> String {
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for event in events {
        match event {
            Event::PhaseDelta { text, .. } => reasoning.push_str(text),
            Event::FinalDelta { text } => answer.push_str(text),
            _ => {}
        }
    }
    // A byte order mark at the very start is no text.
    if reasoning.is_empty() && !open && !answer.starts_with('\u{FEFF}') {
        return answer;
    }
    // The first mark that the reasoning does not close itself.
    let (pair, reasoning) = match marks::PAIRS.iter().find(|pair| holds(pair, &reasoning)) {
        Some(pair) => (pair, reasoning),
        None => (&marks::PAIRS[0], reasoning.replace('<', "&lt;").replace(['[', '◁'], "(")),
    };
    [pair.open, &reasoning, pair.close, "\n", &answer].concat()
}

/// Returns whether reasoning between these marks ends only at the closing one.
fn holds(pair: &Pair, reasoning: &str) -> bool {
    let (mut open, mut holds) = (Open::new(pair.mark), true);
    let (mut first, tag) = (true, pair.open.starts_with('<') && !pair.open.starts_with("<|"));
    let mut token = |token: Token<'_>| {
        let blank = matches!(token, Token::Text(text) if is_blank(text));
        // Around another element the mark would be an element itself.
        holds &= !(tag && first && is_child(&token));
        first &= blank;
        let mark = match token {
            Token::Tag(tag) if tag.kind == TagKind::SelfClosing => None,
            Token::Tag(tag) => marks::of_tag(tag.name, tag.kind == TagKind::Close),
            Token::Reasoning(_, mark) => Some(mark),
            _ => None,
        };
        // A nested opening would need two closing marks.
        holds &= mark.is_none_or(|mark| {
            open.see(mark) == Effect::Text && !(mark.kind == Kind::Open && mark.same(pair.mark))
        });
    };
    let mut lexer = lexer(Place::START, Limits::default().tag, true);
    lexer.push(reasoning, &mut |found, _| token(found));
    lexer.finish(&mut |found, _| token(found));
    holds
}
