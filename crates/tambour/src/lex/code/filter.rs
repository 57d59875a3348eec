//! Filter that holds tags back until it is known whether they are in code, then passes them on in order.
//! Entities are held back too if those in code are to be changed.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{CodeContext, CodeStop, CodeTracker};
use crate::lex::entity::{self, EntityMatch};

/// Passes text through at once, and tags as soon as it is decided whether they are in code. `T` is data that
/// the caller attaches to a tag and gets back with it.
#[derive(Clone, Debug)]
pub struct CodeFilter<T> {
    code: CodeTracker,
    entity_policy: CodeEntityPolicy,
    /// Pieces from the first undecided one on.
    queue: VecDeque<HeldPiece<T>>,
    /// Bytes of the pieces in the queue.
    held_bytes: usize,
    /// Beginning of a possible entity.
    entity_start: String,
    /// Maximum number of bytes that are held back.
    limit: usize,
}

/// Treatment of the five XML entities in code. Outside of code they stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeEntityPolicy {
    /// Passed on unchanged.
    #[default]
    Keep,
    /// Decoded, since Markdown shows code literally.
    Decode,
    /// Escaped, so that decoding restores them.
    Escape,
}

/// Piece that is held back.
#[derive(Clone, Debug)]
enum HeldPiece<T> {
    Text(String),
    Tag { raw: String, data: T, context: PieceContext },
    Entity { raw: &'static str, decoded: &'static str, context: PieceContext },
}

/// Context of a held tag or entity.
#[derive(Clone, Copy, Debug)]
struct PieceContext {
    /// Number of backtick runs before it that may still close; with 0 the context is decided.
    open_runs: usize,
    /// True if it is known to be in code.
    is_code: bool,
}

/// Output of a [`CodeFilter`].
#[derive(Debug)]
pub enum FilteredPiece<'a, T> {
    /// Text, to be passed on unchanged.
    Text(&'a str),
    /// A tag, its data, and true if it is in code.
    Tag(&'a str, T, bool),
}

impl<T> CodeFilter<T> {
    /// Creates a filter at the start of a Markdown text. It holds back at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> CodeFilter<T> {
        CodeFilter {
            code: CodeTracker::default(),
            entity_policy: CodeEntityPolicy::Keep,
            queue: VecDeque::new(),
            held_bytes: 0,
            entity_start: String::new(),
            limit,
        }
    }

    /// Sets the treatment of entities in code from here on.
    pub fn set_entity_policy(&mut self, entity_policy: CodeEntityPolicy) {
        self.entity_policy = entity_policy;
    }

    /// Reads text.
    #[inline]
    pub fn push_text(&mut self, text: &str, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        let mut unread = text;
        if !self.entity_start.is_empty() {
            unread = self.resume_entity(unread, out);
        }
        let stops_at_ampersand = self.entity_policy != CodeEntityPolicy::Keep;
        while !unread.is_empty() {
            let (len, stop) = if self.queue.is_empty() {
                let (len, stop) = self.code.skim(unread, stops_at_ampersand);
                if len > 0 {
                    out(FilteredPiece::Text(&unread[..len]));
                }
                (len, stop)
            } else {
                // Cut at the limit itself, so that the result does not depend on chunk boundaries.
                let room = unread.floor_char_boundary(self.limit.saturating_sub(self.held_bytes));
                if room == 0 {
                    self.flush(out);
                    continue;
                }
                let (len, stop) = self.code.read_to_stop(&unread[..room], stops_at_ampersand);
                self.hold_text(&unread[..len]);
                (len, stop)
            };
            unread = &unread[len..];
            match stop {
                Some(CodeStop::Ampersand) => unread = self.read_ampersand(unread, out),
                stop => self.resolve_held(stop, out),
            }
        }
    }

    /// Reads an entity or a lone `&` at the start of `text`, in code or possible code; returns the text after
    /// it.
    fn read_ampersand<'a>(
        &mut self,
        text: &'a str,
        out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized),
    ) -> &'a str {
        match entity::match_entity(text) {
            EntityMatch::Entity(raw, decoded) => {
                self.push_entity(raw, decoded, out);
                &text[raw.len()..]
            }
            EntityMatch::Partial => {
                self.entity_start.push_str(text);
                ""
            }
            EntityMatch::Text => {
                self.push_literal("&", out);
                &text[1..]
            }
        }
    }

    /// Continues a possible entity; returns the text after it.
    fn resume_entity<'a>(
        &mut self,
        text: &'a str,
        out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized),
    ) -> &'a str {
        let mut unread = text;
        while let Some(next_char) = unread.chars().next() {
            self.entity_start.push(next_char);
            match entity::match_entity(&self.entity_start) {
                EntityMatch::Partial => unread = &unread[next_char.len_utf8()..],
                EntityMatch::Entity(raw, decoded) => {
                    self.entity_start.clear();
                    self.push_entity(raw, decoded, out);
                    return &unread[next_char.len_utf8()..];
                }
                EntityMatch::Text => {
                    // The new character is not part of the entity: the caller reads it again.
                    self.entity_start.truncate(self.entity_start.len() - next_char.len_utf8());
                    self.flush_entity_start(out);
                    return unread;
                }
            }
        }
        ""
    }

    /// Reads the beginning of a possible entity as text.
    fn flush_entity_start(&mut self, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        let text = std::mem::take(&mut self.entity_start);
        if !text.is_empty() {
            self.push_literal("&", out);
            self.push_text(&text[1..], out);
        }
    }

    /// Reads an `&` that is only text.
    fn push_literal(&mut self, text: &str, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        let stops_at_ampersand = false;
        self.code.read_to_stop(text, stops_at_ampersand);
        if self.held_bytes + text.len() > self.limit {
            self.flush(out);
        }
        if self.queue.is_empty() { out(FilteredPiece::Text(text)) } else { self.hold_text(text) }
    }

    /// Reads an entity in code or possible code.
    fn push_entity(
        &mut self,
        raw: &'static str,
        decoded: &'static str,
        out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized),
    ) {
        // Markdown sees the emitted form.
        let emitted_form = if self.entity_policy == CodeEntityPolicy::Decode { decoded } else { raw };
        let stops_at_ampersand = false;
        self.code.read_to_stop(emitted_form, stops_at_ampersand);
        let context = self.current_context();
        self.hold_piece(HeldPiece::Entity { raw, decoded, context }, raw.len(), context, out);
        self.enforce_limit(out);
    }

    /// Reads a tag, which is passed on as one piece.
    pub fn push_tag(&mut self, raw: &str, data: T, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        self.push_markup(raw, data, out);
        // A line break in the tag ends the line, but a backtick in it begins and ends no code.
        if raw.contains('\n') {
            let stops_at_ampersand = false;
            let (_, stop) = self.code.read_to_stop("\n", stops_at_ampersand);
            self.resolve_held(stop, out);
        }
    }

    /// Reads a tag that stays in the text, verbatim or escaped. Its first backtick or line break may end or
    /// begin code, so the tag is passed on as text from there on.
    pub fn push_text_tag(
        &mut self,
        raw: &str,
        data: T,
        out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized),
    ) {
        let (tag, text) = raw.split_at(raw.find(['`', '\n']).unwrap_or(raw.len()));
        self.push_markup(tag, data, out);
        self.code.skip_bytes(tag.as_bytes());
        self.push_text(text, out);
    }

    /// Reads a tag whose characters have no effect on the Markdown.
    fn push_markup(&mut self, raw: &str, data: T, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        self.flush_entity_start(out);
        let stop = self.code.end_line_start();
        self.resolve_held(stop, out);
        let context = self.current_context();
        self.hold_piece(HeldPiece::Tag { raw: raw.to_owned(), data, context }, raw.len(), context, out);
        self.enforce_limit(out);
    }

    /// Ends the Markdown text: undecided tags are not in code.
    pub fn finish(&mut self, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        self.flush_entity_start(out);
        let stop = self.code.end_line_start();
        self.resolve_held(stop, out);
        self.flush(out);
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes + self.entity_start.len()
    }

    /// Context of the current place.
    fn current_context(&self) -> PieceContext {
        match self.code.context() {
            CodeContext::Text => PieceContext { open_runs: 0, is_code: false },
            CodeContext::Fence => PieceContext { open_runs: 0, is_code: true },
            CodeContext::Undecided(open_runs) => PieceContext { open_runs, is_code: false },
        }
    }

    /// Text of a tag in code, as it is emitted.
    fn render_in_code<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        if self.entity_policy == CodeEntityPolicy::Decode && raw.contains('&') {
            entity::decode(raw).into()
        } else {
            raw.into()
        }
    }

    /// Holds a tag or entity of `len` bytes back until its context is decided.
    fn hold_piece(
        &mut self,
        piece: HeldPiece<T>,
        len: usize,
        context: PieceContext,
        out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized),
    ) {
        self.held_bytes += len;
        self.queue.push_back(piece);
        if self.queue.len() == 1 && context.is_decided() {
            self.emit_front(out);
        }
    }

    fn hold_text(&mut self, piece: &str) {
        self.held_bytes += piece.len();
        if let Some(HeldPiece::Text(text)) = self.queue.back_mut() {
            text.push_str(piece);
        } else if !piece.is_empty() {
            self.queue.push_back(HeldPiece::Text(piece.to_owned()));
        }
    }

    /// Applies a stop of the tracker to the held pieces, and emits those that it decides.
    fn resolve_held(
        &mut self,
        stop: Option<CodeStop>,
        out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized),
    ) {
        match stop {
            None | Some(CodeStop::Ampersand) => return,
            Some(CodeStop::LineEnd) => return self.flush(out),
            Some(CodeStop::Closed(run)) => {
                // Pieces after the run that was closed are in code.
                for piece in &mut self.queue {
                    if let HeldPiece::Tag { context, .. } | HeldPiece::Entity { context, .. } = piece {
                        context.is_code |= context.open_runs > run;
                    }
                }
            }
        }
        // Everything before the first undecided piece can be emitted.
        while self.queue.front().is_some_and(|piece| match piece {
            HeldPiece::Text(_) => true,
            HeldPiece::Tag { context, .. } | HeldPiece::Entity { context, .. } => context.is_decided(),
        }) {
            self.emit_front(out);
        }
    }

    /// Emits all held pieces if they exceed the limit: undecided ones count as outside of code.
    fn enforce_limit(&mut self, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        if self.held_bytes > self.limit {
            self.flush(out);
        }
    }

    /// Emits all held pieces.
    fn flush(&mut self, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        while !self.queue.is_empty() {
            self.emit_front(out);
        }
    }

    /// Emits the first held piece.
    fn emit_front(&mut self, out: &mut (impl FnMut(FilteredPiece<'_, T>) + ?Sized)) {
        match self.queue.pop_front() {
            Some(HeldPiece::Text(text)) => {
                self.held_bytes -= text.len();
                out(FilteredPiece::Text(&text));
            }
            Some(HeldPiece::Tag { raw, data, context }) => {
                self.held_bytes -= raw.len();
                let tag_text = if context.is_code { self.render_in_code(&raw) } else { Cow::Borrowed(&*raw) };
                out(FilteredPiece::Tag(&tag_text, data, context.is_code));
            }
            Some(HeldPiece::Entity { raw, decoded, context }) => {
                self.held_bytes -= raw.len();
                match self.entity_policy {
                    CodeEntityPolicy::Decode if context.is_code => out(FilteredPiece::Text(decoded)),
                    CodeEntityPolicy::Escape if context.is_code => {
                        out(FilteredPiece::Text("&amp;"));
                        out(FilteredPiece::Text(&raw[1..]));
                    }
                    _ => out(FilteredPiece::Text(raw)),
                }
            }
            None => {}
        }
    }
}

impl PieceContext {
    /// Returns whether nothing that follows can change the context.
    fn is_decided(self) -> bool {
        self.is_code || self.open_runs == 0
    }
}
