//! Events to ThinkingML that passes the strict check.

use crate::dialect::MARKER;
use crate::event::Event;
use crate::lex::entity::encode;
use crate::lex::markup::{Markup, Token};

/// Writes the events of one reply as ThinkingML. Reading it gives the same events; a reply without
/// queries gets an empty block, since the contract wants one.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let mut parts = Parts::default();
    for event in events {
        parts.add(event);
    }
    parts.finish()
}

#[derive(Default)]
struct Parts {
    draft: String,
    summary: String,
    phases: Vec<(String, String)>,
    answer: String,
    queries: Vec<String>,
}

impl Parts {
    fn add(&mut self, event: &Event<'_>) {
        match event {
            Event::DraftDelta { text } => self.draft.push_str(text),
            Event::SerpSummary { text } => self.summary.push_str(text),
            Event::PhaseStart { title, .. } => self.phases.push((title.to_string(), String::new())),
            Event::PhaseDelta { text, .. } => {
                if let Some((_, phase)) = self.phases.last_mut() {
                    phase.push_str(text);
                }
            }
            Event::FinalDelta { text } => self.answer.push_str(text),
            Event::SerpQueries { queries } => self.queries.clone_from(queries),
            _ => {}
        }
    }

    fn finish(self) -> String {
        let mut out = String::new();
        for (name, text) in [("think", &self.draft), ("serp", &self.summary)] {
            if !text.is_empty() {
                out.push_str(&format!("<{name}>{}</{name}>\n", encode(text)));
            }
        }
        out.push_str("<thinking>\n");
        for (index, (title, text)) in self.phases.iter().enumerate() {
            let id = index + 1;
            out.push_str(&format!("<phase id=\"{id}\">\n<title>{}</title>\n", encode(title)));
            if !text.is_empty() {
                out.push_str(&encode(text));
                out.push('\n');
            }
            out.push_str("</phase>\n");
        }
        let queries = serde_json::Value::from(self.queries);
        out.push_str("</thinking>\n<final>\n");
        out.push_str(&escape_tags(&self.answer));
        out.push_str(&format!("\n<!-- <serp_queries>\n{queries}\n</serp_queries> -->\n</final>\n"));
        out
    }
}

/// Escapes what the parser would read as a tag, and nothing else.
fn escape_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut comment = false;
    // Where unfinished tags began, directly before this place: without the `<` that ended them they would be tags.
    let mut unfinished = None;
    let mut lexer = Markup::new(MARKER, text.len() + 1);
    let mut add = |token: Token<'_>| match token {
        Token::CommentOpen | Token::CommentClose => {
            comment = matches!(token, Token::CommentOpen);
            unfinished = None;
            out.push_str(token.raw());
        }
        Token::Text(text) | Token::Reasoning(text, _) => {
            unfinished = text.starts_with('<').then(|| unfinished.unwrap_or(out.len()));
            out.push_str(text);
        }
        // Even in a comment the answer's own end counts, in any case (T-021), and a queries block.
        Token::Tag(tag)
            if comment && !tag.name.eq_ignore_ascii_case("final") && tag.name != "serp_queries" =>
        {
            unfinished = None;
            out.push_str(tag.raw)
        }
        Token::Tag(_) | Token::Mark(_) => {
            if let Some(start) = unfinished.take() {
                let before = out.split_off(start);
                out.push_str(&before.replace('<', "&lt;"));
            }
            out.push_str(&token.raw().replace('<', "&lt;").replace('>', "&gt;"));
        }
    };
    lexer.push(text, &mut |token, _| add(token));
    lexer.finish(&mut |token, _| add(token));
    out
}
