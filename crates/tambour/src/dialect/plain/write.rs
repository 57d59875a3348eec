//! Writer of events as plain text: the answer, after its reasoning.

use super::held_reasoning::is_child_element;
use super::new_lexer;
use crate::event::Event;
use crate::lex::marks::{self, MarkEffect, MarkKind, MarkPair, OpenReasoning};
use crate::lex::markup::{MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::span::Place;

/// Writes the events of one reply as plain text. With `starts_in_reasoning`, the reader takes the start of
/// the text for reasoning, so a closing mark is written even without reasoning.
#[must_use]
pub(super) fn write(events: &[Event<'_>], starts_in_reasoning: bool) -> String {
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for event in events {
        match event {
            Event::PhaseDelta { text, .. } => reasoning.push_str(text),
            Event::FinalDelta { text } => answer.push_str(text),
            _ => {}
        }
    }
    // The reader drops a byte order mark at the very start, so empty reasoning is written before it.
    if reasoning.is_empty() && !starts_in_reasoning && !answer.starts_with('\u{FEFF}') {
        return answer;
    }
    // The first pair of marks that can enclose the reasoning.
    let (pair, reasoning) = match marks::MARK_PAIRS.iter().find(|pair| can_enclose(pair, &reasoning)) {
        Some(pair) => (pair, reasoning),
        None => (&marks::MARK_PAIRS[0], reasoning.replace('<', "&lt;").replace(['[', '◁'], "(")),
    };
    [pair.open, &reasoning, pair.close, "\n", &answer].concat()
}

/// Returns whether reasoning between these marks ends only at the closing mark.
fn can_enclose(pair: &MarkPair, reasoning: &str) -> bool {
    let (mut open_reasoning, mut is_enclosable) = (OpenReasoning::new(pair.mark), true);
    let is_tag = pair.open.starts_with('<') && !pair.open.starts_with("<|");
    let mut is_first_token = true;
    let mut check_token = |token: MarkupToken<'_>| {
        let is_blank_text = matches!(token, MarkupToken::Text(text) if is_blank(text));
        // A tag right before another element is read as an element, not as a mark.
        is_enclosable &= !(is_tag && is_first_token && is_child_element(&token));
        is_first_token &= is_blank_text;
        let mark = match token {
            MarkupToken::Tag(tag) if tag.kind == TagKind::SelfClosing => None,
            MarkupToken::Tag(tag) => marks::parse_tag_mark(tag.name, tag.kind == TagKind::Close),
            MarkupToken::Reasoning(_, mark) => Some(mark),
            _ => None,
        };
        // A nested opening would need two closing marks.
        is_enclosable &= mark.is_none_or(|mark| {
            open_reasoning.apply(mark) == MarkEffect::Text
                && !(mark.kind == MarkKind::Open && mark.is_same_family(pair.mark))
        });
    };
    let reads_marks = true;
    let mut lexer = new_lexer(Place::START, Limits::default().tag, reads_marks);
    lexer.push(reasoning, &mut |token, _| check_token(token));
    lexer.finish(&mut |token, _| check_token(token));
    is_enclosable
}
