//! Text that comes before the structure of a reply: held until the structure begins or `limits.hold` is reached.

/// The text so far, and what became of it.
#[derive(Clone, Debug)]
pub(super) struct Preface {
    /// `None` once the structure has begun, or the text was given away.
    held: Option<String>,
    plain: bool,
    limit: usize,
}

/// No structure came in time: what was held, the part of it that came last, and the text behind the limit.
pub(super) struct Overflow<'a> {
    pub(super) held: String,
    pub(super) last: &'a str,
    pub(super) rest: &'a str,
}

impl Preface {
    pub(super) fn new(limit: usize) -> Preface {
        Preface { held: Some(String::new()), plain: false, limit }
    }

    /// Whether the reply is given as it stands, since no structure came in time.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.held.as_ref().map_or(0, String::len)
    }

    /// What is held, at the end of the reply.
    pub(super) fn take(&mut self) -> Option<String> {
        self.held.take()
    }

    /// Hands text to `read`, which says whether the structure has begun.
    #[inline]
    pub(super) fn push<'a>(
        &mut self,
        text: &'a str,
        mut read: impl FnMut(&str) -> bool,
    ) -> Option<Overflow<'a>> {
        let Some(held) = &mut self.held else {
            read(text);
            return None;
        };
        // Cut at the limit itself, so that the result does not depend on the chunks.
        let (last, rest) = text.split_at(text.floor_char_boundary(self.limit - held.len()));
        held.push_str(last);
        if read(last) {
            self.held = None;
        }
        if rest.is_empty() {
            return None;
        }
        match self.held.take() {
            None => {
                read(rest);
                None
            }
            Some(held) => {
                self.plain = true;
                Some(Overflow { held, last, rest })
            }
        }
    }
}
