//! Decoder of the five XML entities across chunks, without decoding twice (T-067).

/// Decodes `&lt; &gt; &amp; &quot; &apos;`; all other text is passed through.
#[derive(Clone, Debug, Default)]
pub struct EntityDecoder {
    /// Beginning of a possible entity at the end of the last text.
    carry: String,
}

/// Entities and the characters they stand for.
const ENTITY_TABLE: [(&str, &str); 5] =
    [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'")];

impl EntityDecoder {
    /// Decodes `text` and passes the pieces to `out` in order. At most five bytes are held back.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        let mut unread = text;
        if !self.carry.is_empty() {
            unread = self.resume(unread, out);
        }
        while let Some(at) = super::scan::find(b'&', unread.as_bytes()) {
            if at > 0 {
                out(&unread[..at]);
            }
            unread = &unread[at..];
            match match_entity(unread) {
                EntityMatch::Entity(raw, decoded) => {
                    out(decoded);
                    unread = &unread[raw.len()..];
                }
                EntityMatch::Partial => {
                    self.carry.push_str(unread);
                    return;
                }
                EntityMatch::Text => {
                    out(&unread[..1]);
                    unread = &unread[1..];
                }
            }
        }
        if !unread.is_empty() {
            out(unread);
        }
    }

    /// Continues a held `&...` and returns the text after it.
    fn resume<'a>(&mut self, text: &'a str, out: &mut impl FnMut(&str)) -> &'a str {
        let mut unread = text;
        while let Some(next_char) = unread.chars().next() {
            self.carry.push(next_char);
            match match_entity(&self.carry) {
                EntityMatch::Partial => unread = &unread[next_char.len_utf8()..],
                EntityMatch::Entity(_, decoded) => {
                    out(decoded);
                    self.carry.clear();
                    return &unread[next_char.len_utf8()..];
                }
                EntityMatch::Text => {
                    // The new character may begin another entity, so it is read again.
                    self.carry.truncate(self.carry.len() - next_char.len_utf8());
                    out(&self.carry);
                    self.carry.clear();
                    return unread;
                }
            }
        }
        ""
    }

    /// Ends a run of text: emits held bytes as text.
    pub fn flush(&mut self, out: &mut impl FnMut(&str)) {
        if !self.carry.is_empty() {
            out(&self.carry);
            self.carry.clear();
        }
    }

    /// Number of bytes held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.carry.len()
    }
}

/// Match of an entity at the beginning of a text that begins with `&`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntityMatch {
    /// An entity: its spelling, and the character it stands for.
    Entity(&'static str, &'static str),
    /// The text is a prefix of an entity.
    Partial,
    /// No entity.
    Text,
}

/// Matches `text`, which begins with `&`.
pub(super) fn match_entity(text: &str) -> EntityMatch {
    for (entity, decoded) in ENTITY_TABLE {
        if text.starts_with(entity) {
            return EntityMatch::Entity(entity, decoded);
        }
        if entity.starts_with(text) {
            return EntityMatch::Partial;
        }
    }
    EntityMatch::Text
}

/// Decodes the entities of a complete text.
#[must_use]
pub fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut entities = EntityDecoder::default();
    entities.push(text, &mut |piece| out.push_str(piece));
    entities.flush(&mut |piece| out.push_str(piece));
    out
}

/// Escapes the `&` of literal entities; [`decode`] restores the text.
#[must_use]
pub fn escape_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut unread = text;
    while let Some(at) = super::scan::find(b'&', unread.as_bytes()) {
        out.push_str(&unread[..at]);
        unread = &unread[at..];
        out.push_str(if matches!(match_entity(unread), EntityMatch::Entity(..)) { "&amp;" } else { "&" });
        unread = &unread[1..];
    }
    out + unread
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
