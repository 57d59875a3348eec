//! Holds tags back until it is known whether they stand in code, then hands them on in order.

use std::collections::VecDeque;

use super::{Code, Decision, Inside};

/// Passes text through at once and tags as soon as it is decided whether they are in code. `T` is what the
/// caller wants to get back with a tag.
#[derive(Clone, Debug)]
pub struct CodeFilter<T> {
    code: Code,
    queue: VecDeque<Held<T>>,
    held: usize,
    limit: usize,
}

#[derive(Clone, Debug)]
enum Held<T> {
    Text(String),
    Tag { raw: String, with: T, runs: usize, in_code: bool },
}

/// What comes out of a [`CodeFilter`].
#[derive(Debug)]
pub enum Piece<'a, T> {
    /// Text, to be kept as it is.
    Text(&'a str),
    /// A tag, and whether it stands in code.
    Tag(&'a str, T, bool),
}

impl<T> CodeFilter<T> {
    /// A filter at the start of a Markdown text that holds back at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> CodeFilter<T> {
        CodeFilter { code: Code::default(), queue: VecDeque::new(), held: 0, limit }
    }

    /// Text of the Markdown.
    #[inline]
    pub fn text(&mut self, text: &str, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.queue.is_empty() {
                let (read, _) = self.code.text(rest);
                let (piece, after) = rest.split_at(read);
                rest = after;
                if !piece.is_empty() {
                    out(Piece::Text(piece));
                }
                continue;
            }
            // Cut at the limit itself, so that the result does not depend on the chunks.
            let room = rest.floor_char_boundary(self.limit.saturating_sub(self.held));
            if room == 0 {
                self.flush(out);
                continue;
            }
            let (read, decision) = self.code.text(&rest[..room]);
            let (piece, after) = rest.split_at(read);
            rest = after;
            self.keep_text(piece);
            self.decide(decision, out);
        }
    }

    /// A tag of the Markdown.
    pub fn tag(&mut self, raw: &str, with: T, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        let decision = self.code.boundary();
        self.decide(decision, out);
        let inside = self.code.inside();
        match inside {
            Inside::Text | Inside::Fence if self.queue.is_empty() => {
                out(Piece::Tag(raw, with, inside == Inside::Fence));
            }
            _ => {
                let runs = match inside {
                    Inside::Undecided(runs) => runs,
                    Inside::Text | Inside::Fence => 0,
                };
                let in_code = inside == Inside::Fence;
                self.held += raw.len();
                self.queue.push_back(Held::Tag { raw: raw.to_owned(), with, runs, in_code });
            }
        }
        // The tag's own line breaks count, its backticks do not.
        if raw.contains('\n') {
            let (_, decision) = self.code.text("\n");
            self.decide(decision, out);
        }
        self.check_limit(out);
    }

    /// Ends the Markdown: what is undecided is not code.
    pub fn finish(&mut self, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        let decision = self.code.boundary();
        self.decide(decision, out);
        self.flush(out);
    }

    /// Bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    fn keep_text(&mut self, piece: &str) {
        self.held += piece.len();
        if let Some(Held::Text(text)) = self.queue.back_mut() {
            text.push_str(piece);
        } else if !piece.is_empty() {
            self.queue.push_back(Held::Text(piece.to_owned()));
        }
    }

    fn decide(&mut self, decision: Option<Decision>, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        match decision {
            None => return,
            Some(Decision::LineEnd) => return self.flush(out),
            Some(Decision::Closed(run)) => {
                for held in &mut self.queue {
                    if let Held::Tag { runs, in_code, .. } = held
                        && *runs > run
                    {
                        *in_code = true;
                    }
                }
            }
        }
        // Everything up to the first tag that is still open can go.
        while self.queue.front().is_some_and(|held| match held {
            Held::Text(_) => true,
            Held::Tag { runs, in_code, .. } => *in_code || *runs == 0,
        }) {
            self.pop(out);
        }
    }

    fn check_limit(&mut self, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        if self.held > self.limit {
            self.flush(out);
        }
    }

    fn flush(&mut self, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        while !self.queue.is_empty() {
            self.pop(out);
        }
    }

    fn pop(&mut self, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        match self.queue.pop_front() {
            Some(Held::Text(text)) => {
                self.held -= text.len();
                out(Piece::Text(&text));
            }
            Some(Held::Tag { raw, with, in_code, .. }) => {
                self.held -= raw.len();
                out(Piece::Tag(&raw, with, in_code));
            }
            None => {}
        }
    }
}
