//! Writes events as ThinkingML that passes the strict check.

use crate::dialect::MARKER;
use crate::event::Event;
use crate::lex::code::{CodeEntities, CodeFilter, Piece};
use crate::lex::comment::Comment;
use crate::lex::entity::{encode, literal};
use crate::lex::markup::{Markup, TagKind, Token};
use crate::lex::seam::{Joined, Seam};
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::span::Place;

/// Writes the events of one reply as ThinkingML. Reading it gives the same events.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    write_with(events, true)
}

/// Like [`write`], but a reply without queries gets an empty block only if one is required (T-040).
pub(super) fn write_with(events: &[Event<'_>], block_required: bool) -> String {
    // Allocated at once: a growing string is briefly held twice.
    let size = |event: &Event<'_>| if let Event::FinalDelta { text } = event { text.len() } else { 0 };
    let answer = String::with_capacity(events.iter().map(size).sum());
    let mut parts = Parts { answer, ..Parts::default() };
    for event in events {
        parts.add(event);
    }
    parts.finish(block_required)
}

#[derive(Default)]
struct Parts {
    draft: String,
    summary: String,
    phases: Vec<(String, String)>,
    answer: String,
    queries: Option<Vec<String>>,
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
            Event::SerpQueries { queries } => self.queries = Some(queries.clone()),
            _ => {}
        }
    }

    fn finish(mut self, block_required: bool) -> String {
        let answer = escape_tags(&std::mem::take(&mut self.answer));
        let mut out = String::with_capacity(answer.len() + self.draft.len() + 256);
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
        out.push_str("</thinking>\n<final>\n");
        out.push_str(&answer);
        if let Some(queries) = self.queries.or_else(|| block_required.then(Vec::new)) {
            // A tag in a query must not end the block or the answer.
            let queries = serde_json::Value::from(queries).to_string().replace("</", "<\\/");
            out.push_str(&format!("\n<!-- <serp_queries>\n{queries}\n</serp_queries> -->"));
        }
        out.push_str("\n</final>\n");
        out
    }
}

/// Escapes everything that the parser would read as a tag or decode in code, and nothing else.
fn escape_tags(text: &str) -> String {
    let mut writer = Writer {
        seam: Seam::new(MARKER, text.len() + 1),
        filter: CodeFilter::new(Limits::default().line),
        comment: Comment::default(),
        in_comment: false,
        begun: false,
        out: String::with_capacity(text.len()),
    };
    writer.filter.entities(CodeEntities::Encode);
    let mut lexer = Markup::new(MARKER, text.len() + 1);
    lexer.push(text, &mut |token, at| writer.token(token, at.get()));
    lexer.finish(&mut |token, at| writer.token(token, at.get()));
    let Writer { seam, filter, comment, out, .. } = &mut writer;
    seam.finish(&mut |joined| pass(joined, filter, comment, out));
    filter.finish(&mut |piece| put(&piece, comment, out));
    writer.out
}

struct Writer {
    /// Keeps an unfinished tag before an escaped one from continuing after it.
    seam: Seam,
    filter: CodeFilter<Kind>,
    comment: Comment,
    /// Set while a comment is open in the input, and while it has no content yet.
    in_comment: bool,
    begun: bool,
    out: String,
}

/// Kind of markup in the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A tag, or an unfinished one before a tag; inside a comment it is text.
    Tag,
    /// Markup that counts inside a comment too: the closing tag of the answer, in any case (T-021), the
    /// queries block, and the marker.
    Always,
    CommentOpen,
}

impl Writer {
    fn token(&mut self, token: Token<'_>, at: Place) {
        let counts = matches!(token, Token::Mark(_)) || self.counts(&token);
        match token {
            Token::CommentOpen => (self.in_comment, self.begun) = (true, true),
            Token::CommentClose | Token::CommentEnd(_) => self.in_comment = false,
            _ => self.begun &= is_blank(token.raw()),
        }
        let Writer { seam, filter, comment, out, .. } = self;
        let mut go = |joined: Joined<'_>| pass(joined, filter, comment, out);
        let kind = match token {
            Token::Text(_) | Token::Reasoning(..) | Token::CommentClose | Token::CommentEnd(_) => {
                return seam.text(token.raw(), at, &mut go);
            }
            Token::CommentOpen => {
                seam.finish(&mut go);
                Kind::CommentOpen
            }
            Token::Tag(_) | Token::Mark(_) => {
                seam.tag(&mut go);
                if counts { Kind::Always } else { Kind::Tag }
            }
        };
        filter.text_tag(token.raw(), kind, &mut |piece| put(&piece, comment, out));
    }

    /// Returns whether a tag counts even in a comment: a queries block begins there only right at its start.
    fn counts(&self, token: &Token<'_>) -> bool {
        let Token::Tag(tag) = token else { return false };
        match tag.kind {
            TagKind::Close => tag.name.eq_ignore_ascii_case("final"),
            TagKind::Open => tag.name == "serp_queries" && (!self.in_comment || self.begun),
            TagKind::SelfClosing => false,
        }
    }
}

fn pass(joined: Joined<'_>, filter: &mut CodeFilter<Kind>, comment: &mut Comment, out: &mut String) {
    match joined {
        Joined::Text(text) => filter.text(text, &mut |piece| put(&piece, comment, out)),
        Joined::Open(raw, _) | Joined::Tag { raw, .. } => {
            filter.text_tag(raw, Kind::Tag, &mut |piece| put(&piece, comment, out));
        }
    }
}

fn put(piece: &Piece<'_, Kind>, comment: &mut Comment, out: &mut String) {
    let (raw, escape, in_code) = match piece {
        Piece::Text(text) => {
            comment.text(text);
            return out.push_str(text);
        }
        Piece::Tag(raw, Kind::CommentOpen, in_code) => {
            if !*in_code {
                comment.begin();
            }
            (*raw, false, *in_code)
        }
        Piece::Tag(raw, kind, in_code) => (*raw, *kind == Kind::Always || !comment.is_open(), *in_code),
    };
    let text = match (escape, in_code) {
        // Text that is decoded again is escaped as little as possible, because a held line has a limit.
        (true, true) => literal(raw).replace('<', "&lt;"),
        (false, true) => literal(raw),
        (true, false) => raw.replace('<', "&lt;").replace('>', "&gt;"),
        (false, false) => raw.to_owned(),
    };
    comment.text(&text);
    out.push_str(&text);
}
