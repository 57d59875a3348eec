//! Events to plain text: the answer, and reasoning in front of it.

use super::held::is_child;
use super::lexer;
use crate::event::Event;
use crate::lex::marks::{self, Effect, Kind, Open, Pair};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::span::Place;

/// Writes the events of one reply as plain text; `open` says that replies start inside of reasoning, which must end then.
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
    // In front of everything a byte order mark is no text.
    if reasoning.is_empty() && !open && !answer.starts_with('\u{FEFF}') {
        return answer;
    }
    // The first mark that is not closed by what the reasoning says.
    let (pair, reasoning) = match marks::PAIRS.iter().find(|pair| holds(pair, &reasoning)) {
        Some(pair) => (pair, reasoning),
        None => (&marks::PAIRS[0], reasoning.replace('<', "&lt;").replace(['[', '◁'], "(")),
    };
    [pair.open, &reasoning, pair.close, "\n", &answer].concat()
}

/// Whether reasoning between these marks ends with the closing one.
fn holds(pair: &Pair, reasoning: &str) -> bool {
    let (mut open, mut holds) = (Open::new(pair.mark), true);
    let (mut first, tag) = (true, pair.open.starts_with('<') && !pair.open.starts_with("<|"));
    let mut token = |token: Token<'_>| {
        let blank = matches!(token, Token::Text(text) if is_blank(text));
        // Around another element it would be one itself.
        holds &= !(tag && first && is_child(&token));
        first &= blank;
        let mark = match token {
            Token::Tag(tag) if tag.kind == TagKind::SelfClosing => None,
            Token::Tag(tag) => marks::of_tag(tag.name, tag.kind == TagKind::Close),
            Token::Reasoning(_, mark) => Some(mark),
            _ => None,
        };
        // What opens once more wants two ends.
        holds &= mark.is_none_or(|mark| {
            open.see(mark) == Effect::Text && !(mark.kind == Kind::Open && mark.same(pair.mark))
        });
    };
    let mut lexer = lexer(Place::START, Limits::default().tag, true);
    lexer.push(reasoning, &mut |found, _| token(found));
    lexer.finish(&mut |found, _| token(found));
    holds
}
