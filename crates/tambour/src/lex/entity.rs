//! Decoder of the five XML entities across chunks, without decoding twice (T-067).

/// Decodes `&lt; &gt; &amp; &quot; &apos;`; all other text is passed through.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    held: String,
}

const TABLE: [(&str, &str); 5] =
    [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'")];

impl Entities {
    /// Decodes `text` and passes the pieces to `out` in order. At most five bytes are held back.
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

    /// Continues a held `&...` and returns the text behind it.
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
                    // The new character may begin another entity, so it is read again.
                    self.held.truncate(self.held.len() - next.len_utf8());
                    out(&self.held);
                    self.held.clear();
                    return rest;
                }
            }
        }
        ""
    }

    /// Ends a run of text: emits held bytes as text.
    pub fn flush(&mut self, out: &mut impl FnMut(&str)) {
        if !self.held.is_empty() {
            out(&self.held);
            self.held.clear();
        }
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

/// Match of an entity at the beginning of a text that begins with `&`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// An entity: its spelling, and the character it stands for.
    Entity(&'static str, &'static str),
    /// The text is a prefix of one.
    Partial,
    /// No entity.
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

/// Escapes the `&` of literal entities; [`decode`] restores the text.
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

/// Escapes markup: the result contains no tag, and [`decode`] restores the text.
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
