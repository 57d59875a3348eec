//! Filter that holds tags back until it is known whether they are in code, then passes them on in order.
//! Entities are held back too if those in code are to be changed.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{Code, Inside, Stop};
use crate::lex::entity::{self, Read};

/// Passes text through at once, and tags as soon as it is decided whether they are in code. `T` is data that
/// comes back with a tag.
#[derive(Clone, Debug)]
pub struct CodeFilter<T> {
    code: Code,
    entities: CodeEntities,
    queue: VecDeque<Held<T>>,
    held: usize,
    /// Beginning of a possible entity.
    ampersand: String,
    limit: usize,
}

/// Treatment of the five entities in code. Elsewhere they stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeEntities {
    /// Kept as they are.
    #[default]
    Keep,
    /// Decoded, since Markdown shows code literally.
    Decode,
    /// Escaped, so that decoding restores them.
    Encode,
}

#[derive(Clone, Debug)]
enum Held<T> {
    Text(String),
    Tag { raw: String, with: T, place: Place },
    Entity { raw: &'static str, decoded: &'static str, place: Place },
}

/// Context of a held tag or entity.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Number of backtick runs open before it.
    runs: usize,
    in_code: bool,
}

/// Output of a [`CodeFilter`].
#[derive(Debug)]
pub enum Piece<'a, T> {
    /// Text, to be passed on unchanged.
    Text(&'a str),
    /// A tag, its data, and whether it is in code.
    Tag(&'a str, T, bool),
}

impl<T> CodeFilter<T> {
    /// Creates a filter at the start of a Markdown text. It holds back at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> CodeFilter<T> {
        CodeFilter {
            code: Code::default(),
            entities: CodeEntities::Keep,
            queue: VecDeque::new(),
            held: 0,
            ampersand: String::new(),
            limit,
        }
    }

    /// Sets the treatment of entities in code from here on.
    pub fn entities(&mut self, entities: CodeEntities) {
        self.entities = entities;
    }

    /// Reads text.
    #[inline]
    pub fn text(&mut self, text: &str, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        let mut rest = text;
        if !self.ampersand.is_empty() {
            rest = self.resume(rest, out);
        }
        let ampersand = self.entities != CodeEntities::Keep;
        while !rest.is_empty() {
            let (read, stop) = if self.queue.is_empty() {
                let (read, stop) = self.code.skim(rest, ampersand);
                if read > 0 {
                    out(Piece::Text(&rest[..read]));
                }
                (read, stop)
            } else {
                // Cut at the limit itself, so that the result does not depend on chunk boundaries.
                let room = rest.floor_char_boundary(self.limit.saturating_sub(self.held));
                if room == 0 {
                    self.flush(out);
                    continue;
                }
                let (read, stop) = self.code.text(&rest[..room], ampersand);
                self.keep_text(&rest[..read]);
                (read, stop)
            };
            rest = &rest[read..];
            match stop {
                Some(Stop::Ampersand) => rest = self.ampersand(rest, out),
                stop => self.decide(stop, out),
            }
        }
    }

    /// Reads text that begins with `&`, in code or possible code; returns the text behind it.
    fn ampersand<'a>(&mut self, text: &'a str, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) -> &'a str {
        match entity::read(text) {
            Read::Entity(raw, decoded) => {
                self.entity(raw, decoded, out);
                &text[raw.len()..]
            }
            Read::Partial => {
                self.ampersand.push_str(text);
                ""
            }
            Read::Text => {
                self.literal("&", out);
                &text[1..]
            }
        }
    }

    /// Continues a possible entity; returns the text behind it.
    fn resume<'a>(&mut self, text: &'a str, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) -> &'a str {
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            self.ampersand.push(next);
            match entity::read(&self.ampersand) {
                Read::Partial => rest = &rest[next.len_utf8()..],
                Read::Entity(raw, decoded) => {
                    self.ampersand.clear();
                    self.entity(raw, decoded, out);
                    return &rest[next.len_utf8()..];
                }
                Read::Text => {
                    // The new character is read again, since it may begin something itself.
                    self.ampersand.truncate(self.ampersand.len() - next.len_utf8());
                    self.end_ampersand(out);
                    return rest;
                }
            }
        }
        ""
    }

    /// Reads a possible entity as text.
    fn end_ampersand(&mut self, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        let text = std::mem::take(&mut self.ampersand);
        if !text.is_empty() {
            self.literal("&", out);
            self.text(&text[1..], out);
        }
    }

    /// Reads an `&` that is only text.
    fn literal(&mut self, text: &str, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        self.code.text(text, false);
        if self.held + text.len() > self.limit {
            self.flush(out);
        }
        if self.queue.is_empty() { out(Piece::Text(text)) } else { self.keep_text(text) }
    }

    /// Reads an entity in code or possible code.
    fn entity(
        &mut self,
        raw: &'static str,
        decoded: &'static str,
        out: &mut (impl FnMut(Piece<'_, T>) + ?Sized),
    ) {
        // Markdown sees the emitted form.
        self.code.text(if self.entities == CodeEntities::Decode { decoded } else { raw }, false);
        let place = self.place();
        self.hold(Held::Entity { raw, decoded, place }, raw.len(), place, out);
        self.check_limit(out);
    }

    /// Reads a tag, which comes back as one piece.
    pub fn tag(&mut self, raw: &str, with: T, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        self.markup(raw, with, out);
        // Line breaks in the tag count as such, backticks do not.
        if raw.contains('\n') {
            let (_, stop) = self.code.text("\n", false);
            self.decide(stop, out);
        }
    }

    /// Reads a tag that stays in the text, verbatim or escaped. Its first backtick or line break may end or
    /// begin code, so the tag comes back as text from there on.
    pub fn text_tag(&mut self, raw: &str, with: T, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        let (tag, text) = raw.split_at(raw.find(['`', '\n']).unwrap_or(raw.len()));
        self.markup(tag, with, out);
        self.code.pass(tag.as_bytes());
        self.text(text, out);
    }

    fn markup(&mut self, raw: &str, with: T, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        self.end_ampersand(out);
        let stop = self.code.boundary();
        self.decide(stop, out);
        let place = self.place();
        self.hold(Held::Tag { raw: raw.to_owned(), with, place }, raw.len(), place, out);
        self.check_limit(out);
    }

    /// Ends the Markdown: undecided tags are not in code.
    pub fn finish(&mut self, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        self.end_ampersand(out);
        let stop = self.code.boundary();
        self.decide(stop, out);
        self.flush(out);
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held + self.ampersand.len()
    }

    /// Context of the current place.
    fn place(&self) -> Place {
        match self.code.inside() {
            Inside::Text => Place { runs: 0, in_code: false },
            Inside::Fence => Place { runs: 0, in_code: true },
            Inside::Undecided(runs) => Place { runs, in_code: false },
        }
    }

    /// Emitted form of a tag in code.
    fn in_code<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        if self.entities == CodeEntities::Decode && raw.contains('&') {
            entity::decode(raw).into()
        } else {
            raw.into()
        }
    }

    /// Holds a tag or entity back until its context is decided.
    fn hold(
        &mut self,
        held: Held<T>,
        len: usize,
        place: Place,
        out: &mut (impl FnMut(Piece<'_, T>) + ?Sized),
    ) {
        self.held += len;
        self.queue.push_back(held);
        if self.queue.len() == 1 && place.is_decided() {
            self.pop(out);
        }
    }

    fn keep_text(&mut self, piece: &str) {
        self.held += piece.len();
        if let Some(Held::Text(text)) = self.queue.back_mut() {
            text.push_str(piece);
        } else if !piece.is_empty() {
            self.queue.push_back(Held::Text(piece.to_owned()));
        }
    }

    fn decide(&mut self, stop: Option<Stop>, out: &mut (impl FnMut(Piece<'_, T>) + ?Sized)) {
        match stop {
            None | Some(Stop::Ampersand) => return,
            Some(Stop::LineEnd) => return self.flush(out),
            Some(Stop::Closed(run)) => {
                for held in &mut self.queue {
                    if let Held::Tag { place, .. } | Held::Entity { place, .. } = held {
                        place.in_code |= place.runs > run;
                    }
                }
            }
        }
        // Everything before the first undecided piece can be emitted.
        while self.queue.front().is_some_and(|held| match held {
            Held::Text(_) => true,
            Held::Tag { place, .. } | Held::Entity { place, .. } => place.is_decided(),
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
            Some(Held::Tag { raw, with, place }) => {
                self.held -= raw.len();
                let written = if place.in_code { self.in_code(&raw) } else { Cow::Borrowed(&*raw) };
                out(Piece::Tag(&written, with, place.in_code));
            }
            Some(Held::Entity { raw, decoded, place }) => {
                self.held -= raw.len();
                match self.entities {
                    CodeEntities::Decode if place.in_code => out(Piece::Text(decoded)),
                    CodeEntities::Encode if place.in_code => {
                        out(Piece::Text("&amp;"));
                        out(Piece::Text(&raw[1..]));
                    }
                    _ => out(Piece::Text(raw)),
                }
            }
            None => {}
        }
    }
}

impl Place {
    fn is_decided(self) -> bool {
        self.in_code || self.runs == 0
    }
}
