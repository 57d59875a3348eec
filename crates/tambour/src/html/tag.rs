//! Possible tags from `<` to `>`, byte by byte as browsers read them, except that they contain no second `<`.

/// Position behind a `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Directly behind it.
    Lt,
    /// Behind this many characters that may begin an e-mail address in angle brackets.
    Sign(usize),
    Slash,
    Bang,
    BangDash,
    /// In a declaration or instruction, up to the next `>`.
    Declaration,
    Name,
    Space,
    Attribute,
    AfterAttribute,
    Equals,
    Quoted(u8),
    Unquoted,
}

/// Effect of a byte.
pub(super) enum Step {
    Go(State),
    /// Ends the tag and belongs to it.
    Tag,
    /// Completes `<!--`.
    Comment,
    /// The `<` is text whatever follows, and so is this byte.
    Text,
    /// No tag, but a browser or Markdown might read it as one: the `<` is escaped, the rest is read as text.
    Escape,
}

/// Most characters of an address before its `@`.
const ADDRESS: usize = 64;

impl State {
    /// Reads one byte behind the `<`.
    pub(super) fn step(self, byte: u8) -> Step {
        use State::*;
        if byte == b'<' {
            return Step::Escape;
        }
        let space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0C');
        let next = match (self, byte) {
            (Lt, b'/') => Slash,
            (Lt, b'!') => Bang,
            (Lt, b'?') => Declaration,
            (Lt | Slash, byte) if byte.is_ascii_alphabetic() => Name,
            (Lt, byte) if is_address(byte) => Sign(1),
            (Sign(count), byte) if is_address(byte) && count < ADDRESS => Sign(count + 1),
            (Sign(_), b'@') => return Step::Escape,
            (Sign(_), byte) if is_address(byte) => return Step::Escape,
            // A backtick may belong to an address; and a client that drops control characters would join the
            // text around them.
            (Lt | Sign(_), b'`' | b'\x0C' | 0x7F) => return Step::Escape,
            (Lt | Sign(_), byte) if byte < b' ' && !space => return Step::Escape,
            (Lt | Sign(_), _) => return Step::Text,
            (Slash, _) => return Step::Escape,
            (Bang, b'-') => BangDash,
            (BangDash, b'-') => return Step::Comment,
            (_, b'>') if !matches!(self, Quoted(_)) => return Step::Tag,
            (Bang | BangDash | Declaration, _) => Declaration,
            (Name | Space | Attribute | AfterAttribute, b'/') => Space,
            (Name | Space, _) if space => Space,
            (Name, _) => Name,
            (Attribute | AfterAttribute, _) if space => AfterAttribute,
            (Attribute | AfterAttribute, b'=') => Equals,
            (Space | Attribute | AfterAttribute, _) => Attribute,
            (Equals, _) if space => Equals,
            (Equals, b'"' | b'\'') => Quoted(byte),
            (Equals, _) => Unquoted,
            (Quoted(quote), byte) if byte == quote => Space,
            (Quoted(_), _) => self,
            (Unquoted, _) if space => Space,
            (Unquoted, _) => Unquoted,
        };
        Step::Go(next)
    }
}

/// Returns whether a byte may occur in an e-mail address before its `@`, the backtick excluded.
fn is_address(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_{|}~-".contains(&byte)
}

/// A complete tag.
#[derive(Debug)]
pub(super) struct Tag<'a> {
    /// Name in lower case; of a declaration its first character.
    pub(super) name: String,
    pub(super) closing: bool,
    /// True if a slash precedes its end.
    pub(super) empty: bool,
    /// Names in lower case, and values.
    pub(super) attributes: Vec<(String, &'a str)>,
}

impl<'a> Tag<'a> {
    /// Parses a tag that [`State`] has found to be complete.
    pub(super) fn of(raw: &'a str) -> Tag<'a> {
        let closing = raw.starts_with("</");
        let inside = raw.strip_suffix('>').unwrap_or(raw);
        let start = 1 + usize::from(closing);
        if inside[start..].starts_with(['!', '?']) {
            return Tag { name: inside[1..2].to_owned(), closing, empty: false, attributes: Vec::new() };
        }
        let mut state = State::Lt;
        let (mut name, mut attributes): (&str, Vec<(&str, &str)>) = ("", Vec::new());
        let mut from = start;
        for (at, byte) in raw.bytes().enumerate().skip(start) {
            let next = match state.step(byte) {
                Step::Go(next) => next,
                _ => State::Lt,
            };
            if next != state {
                let word = &raw[from.min(at)..at];
                match state {
                    State::Name => name = word,
                    State::Attribute => attributes.push((word, "")),
                    State::Quoted(_) => set(&mut attributes, word.get(1..).unwrap_or_default()),
                    State::Unquoted => set(&mut attributes, word),
                    _ => {}
                }
                from = at;
            }
            state = next;
        }
        let attributes = attributes.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        // A slash at the end of an unquoted value is part of it.
        let empty = inside.ends_with('/') && !unquoted_end(inside);
        Tag { name: name.to_ascii_lowercase(), closing, empty, attributes: attributes.collect() }
    }
}

fn set<'a>(attributes: &mut [(&'a str, &'a str)], value: &'a str) {
    if let Some((_, last)) = attributes.last_mut() {
        *last = value;
    }
}

/// Returns whether an unfinished tag ends within an unquoted value.
fn unquoted_end(inside: &str) -> bool {
    let end = inside.bytes().skip(1).try_fold(State::Lt, |state, byte| match state.step(byte) {
        Step::Go(next) => Some(next),
        _ => None,
    });
    end == Some(State::Unquoted)
}
