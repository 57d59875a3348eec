//! Escaping of the answer: tags, marks and comments in its text (T-020, T-029).

use std::borrow::Cow;

use super::rules;
use crate::dialect::{Intent, MARKER, Output};
use crate::finding::{Report, Rule};
use crate::lex::code::{CodeEntities, CodeFilter, Piece};
use crate::lex::comment::Comment;
use crate::lex::seam::{Joined, Seam};
use crate::options::Options;
use crate::span::Place;

/// Text of the answer, held until it is known whether it is code.
pub(super) struct Escape {
    seam: Seam,
    filter: CodeFilter<Marked>,
    /// Open comment in the emitted text.
    comment: Comment,
}

/// Markup held in the filter: it is escaped or reported once it is known not to be code.
#[derive(Clone, Debug)]
struct Marked {
    at: Place,
    end: usize,
    kind: Kind,
    /// Set if it was reported before.
    quiet: bool,
}

/// Kind of held markup.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A tag; inside a comment it is text.
    Tag(&'static Rule, String),
    /// The closing tag of the answer in prose. It is escaped inside comments too, since it would end the
    /// answer there.
    End(&'static Rule, String),
    /// The failure marker.
    Marker,
    /// An unfinished tag before another tag.
    Open,
    CommentOpen,
}

impl Escape {
    pub(super) fn new(options: &Options) -> Escape {
        let limits = &options.limits;
        let (seam, filter) = (Seam::new(MARKER, limits.tag), CodeFilter::new(limits.line));
        Escape { seam, filter, comment: Comment::default() }
    }

    /// Decodes entities in code, for text of a model that follows the rules: it escapes in code too.
    pub(super) fn decode(&mut self) {
        self.filter.entities(CodeEntities::Decode);
    }

    pub(super) fn held(&self) -> usize {
        self.seam.held() + self.filter.held()
    }

    /// Returns whether text can be emitted unchanged, without its place.
    #[inline]
    pub(super) fn passes(&self, text: &str) -> bool {
        self.seam.passes(text)
    }

    /// Emits text for which [`passes`](Escape::passes) holds.
    #[inline]
    pub(super) fn flow(&mut self, text: &str, out: &mut dyn Output) {
        pass(Joined::Text(text), &mut self.filter, &mut self.comment, out);
    }

    /// Reads text.
    pub(super) fn text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        let Escape { seam, filter, comment } = self;
        seam.text(text, at, &mut |joined| pass(joined, filter, comment, out));
    }

    /// Reads markup that is escaped or reported unless it is in code; `quiet` if it was reported before.
    pub(super) fn mark(&mut self, raw: &str, at: Place, kind: Kind, quiet: bool, out: &mut dyn Output) {
        let marked = Marked { at, end: at.offset + raw.trim_end().len(), kind, quiet };
        let Escape { seam, filter, comment } = self;
        let mut go = |joined: Joined<'_>| pass(joined, filter, comment, out);
        if matches!(marked.kind, Kind::CommentOpen) {
            seam.finish(&mut go);
        } else {
            seam.tag(&mut go);
        }
        filter.text_tag(raw, marked, &mut |piece| send(piece, comment, out));
    }

    /// Emits all held text: nothing follows that could change it.
    pub(super) fn flush(&mut self, out: &mut dyn Output) {
        let Escape { seam, filter, comment } = self;
        seam.finish(&mut |joined| pass(joined, filter, comment, out));
        filter.finish(&mut |piece| send(piece, comment, out));
    }
}

/// Passes text of the answer to the code filter.
#[inline]
fn pass(joined: Joined<'_>, filter: &mut CodeFilter<Marked>, comment: &mut Comment, out: &mut dyn Output) {
    let (raw, at, end, kind) = match joined {
        Joined::Text(text) => return filter.text(text, &mut |piece| send(piece, comment, out)),
        Joined::Open(raw, at) => (raw, at, at.offset + raw.len(), Kind::Open),
        Joined::Tag { raw, at, end } => {
            let message = "without what is taken out of it this would be a tag".to_owned();
            (raw, at, end, Kind::Tag(rules::UNEXPECTED_TAG, message))
        }
    };
    let marked = Marked { at, end, kind, quiet: false };
    filter.text_tag(raw, marked, &mut |piece| send(piece, comment, out));
}

/// Emits text of the answer once it is known whether it is code.
#[inline]
fn send(piece: Piece<'_, Marked>, comment: &mut Comment, out: &mut dyn Output) {
    match piece {
        Piece::Text(text) => {
            comment.text(text);
            out.intent(Intent::FinalText(text));
        }
        Piece::Tag(raw, marked, in_code) => marked.send(raw, in_code, comment, out),
    }
}

impl Marked {
    fn send(self, raw: &str, in_code: bool, comment: &mut Comment, out: &mut dyn Output) {
        let Marked { at, end, kind, quiet } = self;
        let in_comment = comment.is_open();
        let (escape, found) = match kind {
            // In a comment a tag is text (T-027).
            Kind::Tag(..) | Kind::Open if in_comment => (false, None),
            Kind::Tag(rule, message) | Kind::End(rule, message) => (!in_code, Some((rule, message))),
            Kind::Open => {
                let message = "an unfinished tag would go on behind an escaped one";
                (!in_code, (!in_code).then(|| (rules::UNEXPECTED_TAG, message.to_owned())))
            }
            Kind::Marker => {
                let message = "the failure marker stands beside other content";
                (!in_code, Some((rules::PARSING_ERROR_EMBEDDED, message.to_owned())))
            }
            Kind::CommentOpen if in_code => (false, None),
            Kind::CommentOpen => {
                comment.begin();
                let message = "a comment that is not the queries block";
                (false, Some((rules::COMMENT_IN_FINAL, message.to_owned())))
            }
        };
        if let Some((rule, message)) = found.filter(|_| !quiet) {
            let report = Report::new(rule, at, end, message);
            let report = if in_code && rule.rows.contains(&"T-029") { report.row("T-029") } else { report };
            out.report(report.repaired(if escape { "escaped" } else { "kept as it is" }));
        }
        let text =
            if escape { raw.replace('<', "&lt;").replace('>', "&gt;").into() } else { Cow::Borrowed(raw) };
        comment.text(&text);
        out.intent(Intent::FinalText(&text));
    }
}
