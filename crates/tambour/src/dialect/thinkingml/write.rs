//! Writes events as ThinkingML that passes the strict check.

use crate::dialect::FAILURE_MARKER;
use crate::event::Event;
use crate::lex::code::{CodeEntityPolicy, CodeFilter, FilteredPiece};
use crate::lex::comment::CommentTracker;
use crate::lex::entity::{encode, escape_entities};
use crate::lex::markup::{MarkupLexer, MarkupToken, TagKind};
use crate::lex::seam::{SeamPiece, SeamReader};
use crate::lex::space::is_blank;
use crate::limits::Limits;
use crate::span::Place;

/// Writes the events of one reply as ThinkingML, which gives the same events when it is read.
#[must_use]
pub(super) fn write(events: &[Event<'_>]) -> String {
    let is_block_required = true;
    write_with(events, is_block_required)
}

/// Like [`write`], but a reply without queries gets an empty block only if one is required (T-040).
pub(super) fn write_with(events: &[Event<'_>], is_block_required: bool) -> String {
    // Allocated at once, since a string that grows is briefly in memory twice.
    let answer_len = |event: &Event<'_>| if let Event::FinalDelta { text } = event { text.len() } else { 0 };
    let answer = String::with_capacity(events.iter().map(answer_len).sum());
    let mut parts = ReplyParts { answer, ..ReplyParts::default() };
    for event in events {
        parts.add(event);
    }
    parts.finish(is_block_required)
}

/// Texts of one reply, without markup, collected from its events.
#[derive(Default)]
struct ReplyParts {
    draft: String,
    summary: String,
    /// Title and text of each phase.
    phases: Vec<(String, String)>,
    answer: String,
    queries: Option<Vec<String>>,
}

impl ReplyParts {
    /// Adds the text of an event.
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

    /// Writes the reply.
    fn finish(mut self, is_block_required: bool) -> String {
        let answer = escape_tags(&std::mem::take(&mut self.answer));
        // The tags and short texts mostly fit into 256 bytes.
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
        if let Some(queries) = self.queries.or_else(|| is_block_required.then(Vec::new)) {
            // A tag in a query must not end the block or the answer.
            let queries = serde_json::Value::from(queries).to_string().replace("</", "<\\/");
            out.push_str(&format!("\n<!-- <serp_queries>\n{queries}\n</serp_queries> -->"));
        }
        out.push_str("\n</final>\n");
        out
    }
}

/// Escapes everything in an answer that the reader would take for a tag or decode in code, and nothing else.
fn escape_tags(text: &str) -> String {
    let mut writer = EscapingWriter {
        // Large enough for every tag, since the reader's limit is not known here.
        seam: SeamReader::new(FAILURE_MARKER, text.len() + 1),
        filter: CodeFilter::new(Limits::default().line),
        comment: CommentTracker::default(),
        is_in_comment: false,
        is_comment_empty: false,
        out: String::with_capacity(text.len()),
    };
    writer.filter.set_entity_policy(CodeEntityPolicy::Escape);
    let mut lexer = MarkupLexer::new(FAILURE_MARKER, text.len() + 1);
    lexer.push(text, &mut |token, at| writer.push_token(token, at.resolve()));
    lexer.finish(&mut |token, at| writer.push_token(token, at.resolve()));
    let EscapingWriter { seam, filter, comment, out, .. } = &mut writer;
    seam.finish(&mut |seam_piece| push_joined(seam_piece, filter, comment, out));
    filter.finish(&mut |piece| write_piece(&piece, comment, out));
    writer.out
}

/// Writer of the text of an answer.
struct EscapingWriter {
    /// Keeps an unfinished tag before an escaped one from continuing after it.
    seam: SeamReader,
    /// Decides what is code.
    filter: CodeFilter<EscapedMarkup>,
    /// Open comment in the output.
    comment: CommentTracker,
    /// Set while a comment is open in the input.
    is_in_comment: bool,
    /// Set while that comment has only white space.
    is_comment_empty: bool,
    out: String,
}

/// Kind of markup in the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapedMarkup {
    /// A tag, or an unfinished one before a tag; inside a comment it is text.
    Tag,
    /// Markup that counts inside a comment too: the closing tag of the answer, in any letter case (T-021),
    /// the queries block, and the failure marker.
    CountsInComment,
    /// `<!--`.
    CommentOpen,
}

impl EscapingWriter {
    /// Reads a token of the answer.
    fn push_token(&mut self, token: MarkupToken<'_>, at: Place) {
        let counts_in_comment = matches!(token, MarkupToken::Mark(_)) || self.counts_in_comment(&token);
        match token {
            MarkupToken::CommentOpen => (self.is_in_comment, self.is_comment_empty) = (true, true),
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => self.is_in_comment = false,
            _ => self.is_comment_empty &= is_blank(token.raw()),
        }
        let EscapingWriter { seam, filter, comment, out, .. } = self;
        let mut push = |seam_piece: SeamPiece<'_>| push_joined(seam_piece, filter, comment, out);
        let kind = match token {
            MarkupToken::Text(_)
            | MarkupToken::Reasoning(..)
            | MarkupToken::CommentClose
            | MarkupToken::HtmlCommentClose(_) => {
                return seam.push_text(token.raw(), at, &mut push);
            }
            MarkupToken::CommentOpen => {
                seam.finish(&mut push);
                EscapedMarkup::CommentOpen
            }
            MarkupToken::Tag(_) | MarkupToken::Mark(_) => {
                seam.prepare_for_tag(&mut push);
                if counts_in_comment { EscapedMarkup::CountsInComment } else { EscapedMarkup::Tag }
            }
        };
        filter.push_text_tag(token.raw(), kind, &mut |piece| write_piece(&piece, comment, out));
    }

    /// Returns whether a token is a tag that counts in a comment too: `</final>`, or the beginning of a
    /// queries block. The latter counts only at the start of the comment.
    fn counts_in_comment(&self, token: &MarkupToken<'_>) -> bool {
        let MarkupToken::Tag(tag) = token else { return false };
        match tag.kind {
            TagKind::Close => tag.name.eq_ignore_ascii_case("final"),
            TagKind::Open => tag.name == "serp_queries" && (!self.is_in_comment || self.is_comment_empty),
            TagKind::SelfClosing => false,
        }
    }
}

/// Passes text of the answer to the code filter.
fn push_joined(
    seam_piece: SeamPiece<'_>,
    filter: &mut CodeFilter<EscapedMarkup>,
    comment: &mut CommentTracker,
    out: &mut String,
) {
    match seam_piece {
        SeamPiece::Text(text) => filter.push_text(text, &mut |piece| write_piece(&piece, comment, out)),
        SeamPiece::UnfinishedTag(raw, _) | SeamPiece::Tag { raw, .. } => {
            filter.push_text_tag(raw, EscapedMarkup::Tag, &mut |piece| write_piece(&piece, comment, out));
        }
    }
}

/// Writes text of the answer once it is known whether it is code.
fn write_piece(piece: &FilteredPiece<'_, EscapedMarkup>, comment: &mut CommentTracker, out: &mut String) {
    let (raw, is_escaped, is_in_code) = match piece {
        FilteredPiece::Text(text) => {
            comment.push_text(text);
            return out.push_str(text);
        }
        FilteredPiece::Tag(raw, EscapedMarkup::CommentOpen, is_in_code) => {
            if !*is_in_code {
                comment.begin();
            }
            (*raw, false, *is_in_code)
        }
        FilteredPiece::Tag(raw, kind, is_in_code) => {
            (*raw, *kind == EscapedMarkup::CountsInComment || !comment.is_open(), *is_in_code)
        }
    };
    let text = match (is_escaped, is_in_code) {
        // The reader decodes entities in code. They are escaped as little as possible, because the reader
        // holds a line only up to a limit.
        (true, true) => escape_entities(raw).replace('<', "&lt;"),
        (false, true) => escape_entities(raw),
        (true, false) => raw.replace('<', "&lt;").replace('>', "&gt;"),
        (false, false) => raw.to_owned(),
    };
    comment.push_text(&text);
    out.push_str(&text);
}
