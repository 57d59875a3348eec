//! The five XML entities, decoded once across chunks (T-067).

/// Decodes `&lt; &gt; &amp; &quot; &apos;`; everything else stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    held: String,
}

const TABLE: [(&str, &str); 5] =
    [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'")];

impl Entities {
    /// Decodes `text`; `out` gets the pieces in order. At most five bytes are held back.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        let mut rest = text;
        if !self.held.is_empty() {
            rest = self.resume(rest, out);
        }
        while let Some(at) = super::scan::find(b'&', rest.as_bytes()) {
            if at > 0 {
                out(&rest[..at]);
            }
            rest = &rest[at..];
            match read(rest) {
                Read::Entity(written, decoded) => {
                    out(decoded);
                    rest = &rest[written.len()..];
                }
                Read::Partial => {
                    self.held.push_str(rest);
                    return;
                }
                Read::Text => {
                    out(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        if !rest.is_empty() {
            out(rest);
        }
    }

    /// Goes on with a held `&...` and returns what follows it.
    fn resume<'a>(&mut self, text: &'a str, out: &mut impl FnMut(&str)) -> &'a str {
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            self.held.push(next);
            match read(&self.held) {
                Read::Partial => rest = &rest[next.len_utf8()..],
                Read::Entity(_, decoded) => {
                    out(decoded);
                    self.held.clear();
                    return &rest[next.len_utf8()..];
                }
                Read::Text => {
                    // The new character may begin an entity of its own: it is read again.
                    self.held.truncate(self.held.len() - next.len_utf8());
                    out(&self.held);
                    self.held.clear();
                    return rest;
                }
            }
        }
        ""
    }

    /// Ends a run of text: what was held is text.
    pub fn flush(&mut self, out: &mut impl FnMut(&str)) {
        if !self.held.is_empty() {
            out(&self.held);
            self.held.clear();
        }
    }

    /// Bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

/// What a text that begins with `&` begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// An entity: as it is written, and the character it stands for.
    Entity(&'static str, &'static str),
    /// It may become one.
    Partial,
    /// None.
    Text,
}

pub(super) fn read(text: &str) -> Read {
    for (entity, decoded) in TABLE {
        if text.starts_with(entity) {
            return Read::Entity(entity, decoded);
        }
        if entity.starts_with(text) {
            return Read::Partial;
        }
    }
    Read::Text
}

/// Decodes a complete text.
#[must_use]
pub fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut entities = Entities::default();
    entities.push(text, &mut |piece| out.push_str(piece));
    entities.flush(&mut |piece| out.push_str(piece));
    out
}

/// Writes text in which entities are literal: [`decode`] gives it back.
#[must_use]
pub fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = super::scan::find(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        out.push_str(if matches!(read(rest), Read::Entity(..)) { "&amp;" } else { "&" });
        rest = &rest[1..];
    }
    out + rest
}

/// Writes text so that [`decode`] gives it back and nothing in it reads as a tag.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ => out.push(c),
        }
    }
    out
}
