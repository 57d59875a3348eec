//! The summary, `<serp>`: text, from which tags are removed.

use super::context;
use super::rules;
use super::structure::{self, Name};
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::entity;
use crate::lex::markup::{TagKind, Token};
use crate::lex::seam::{Joined, Seam};
use crate::options::Options;
use crate::span::Place;

/// Effect of a token on a summary.
pub(super) enum Outcome {
    /// The summary continues.
    Open,
    /// The summary has ended.
    Over,
    /// The summary was left open where the tag of another element begins; the flag is set if its name is
    /// spelled exactly.
    Begins(Name, bool),
}

/// The current summary.
pub(super) struct Serp {
    at: Place,
    /// Set while an HTML comment is open; its content is text (T-027).
    in_comment: bool,
    text: String,
    /// Bytes of the text as written.
    written: usize,
    seam: Seam,
    /// Longest tag and longest summary, in bytes.
    tag: usize,
    limit: usize,
    /// Place where the limit was reached.
    full: Option<Place>,
}

impl Serp {
    pub(super) fn new(options: &Options) -> Serp {
        let (tag, limit) = (options.limits.tag, options.limits.hold);
        Serp::at(Place::START, tag, limit)
    }

    fn at(at: Place, tag: usize, limit: usize) -> Serp {
        let seam = Seam::new("", tag);
        Serp { at, in_comment: false, text: String::new(), written: 0, seam, tag, limit, full: None }
    }

    /// Begins `<serp>`.
    pub(super) fn begin(&mut self, at: Place) {
        *self = Serp::at(at, self.tag, self.limit);
    }

    /// Handles the next token.
    pub(super) fn token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) -> Outcome {
        match token {
            Token::Text(text) if self.in_comment => self.keep(text, at),
            Token::Text(text) => self.text(text, at),
            Token::Tag(tag) => match structure::find(tag.name) {
                Some((Name::Serp, exact)) if tag.kind == TagKind::Close => {
                    context::check_tag(Name::Serp, exact, &tag, at, out);
                    return Outcome::Over;
                }
                Some((name, exact)) if name.is_top() && name != Name::Serp && tag.kind == TagKind::Open => {
                    self.left_open(at.offset, out);
                    return Outcome::Begins(name, exact);
                }
                _ if self.in_comment => self.keep(tag.raw, at),
                _ => {
                    let len = tag.raw.len();
                    context::tag_in_plain_text("T-006", tag.name, at, len, "tag removed", out);
                }
            },
            other => {
                match other {
                    Token::CommentOpen => self.in_comment = true,
                    Token::CommentClose | Token::CommentEnd(_) => self.in_comment = false,
                    Token::Mark(_) => context::embedded_marker(at, "kept as text", out),
                    Token::Text(_) | Token::Tag(_) | Token::Reasoning(..) => {}
                }
                self.keep(other.raw(), at);
            }
        }
        Outcome::Open
    }

    /// Reports that the summary ends at `end` without its closing tag.
    pub(super) fn left_open(&self, end: usize, out: &mut dyn Output) {
        context::unclosed(Name::Serp, self.at, end, out);
    }

    /// Returns whether part of the summary did not fit.
    pub(super) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Takes the text and the place of the summary.
    pub(super) fn take(&mut self) -> (String, Place) {
        let Serp { text, seam, .. } = self;
        seam.finish(&mut |joined| add(text, joined));
        (std::mem::take(text), self.at)
    }

    /// Ends the summary at `end`.
    pub(super) fn end(&mut self, end: usize, out: &mut dyn Output) {
        let (text, _) = self.take();
        if let Some(full) = self.full {
            let message = "`<serp>` is longer than `limits.hold`";
            let report = Report::new(rules::LIMIT_EXCEEDED, full, end, message);
            out.report(report.repaired("the rest left out"));
        }
        send(&text, out);
    }

    /// Reads text. Neighbours of a removed tag must not join into a new one.
    fn text(&mut self, text: &str, at: Place) {
        let text = self.room_for(text, at);
        let Serp { text: kept, seam, .. } = self;
        seam.text(text, at, &mut |joined| add(kept, joined));
    }

    /// Keeps markup as text.
    fn keep(&mut self, raw: &str, at: Place) {
        let raw = self.room_for(raw, at);
        let Serp { text: kept, seam, .. } = self;
        seam.finish(&mut |joined| add(kept, joined));
        kept.push_str(raw);
    }

    /// Returns the part of `text` that fits.
    fn room_for<'a>(&mut self, text: &'a str, at: Place) -> &'a str {
        if self.full.is_some() {
            return "";
        }
        let room = self.limit - self.written;
        let kept = &text[..text.floor_char_boundary(room)];
        self.written += kept.len();
        if kept.len() < text.len() {
            self.full = Some(at.after(kept));
        }
        kept
    }
}

/// Emits a summary, given as written.
pub(super) fn send(text: &str, out: &mut dyn Output) {
    out.intent(Intent::Summary(entity::decode(text).into()));
}

/// Adds text to a summary. A tag formed by neighbouring text is broken with a space.
fn add(summary: &mut String, joined: Joined<'_>) {
    match joined {
        Joined::Text(text) => summary.push_str(text),
        Joined::Tag { raw, .. } => summary.push_str(&raw.replace('<', "< ")),
        // The next `<` ends the unfinished tag.
        Joined::Open(raw, _) => summary.push_str(raw),
    }
}
