//! Possible tags from `<` to `>`, byte by byte as browsers read them, except that they contain no second `<`.

/// State of reading after a `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlTagState {
    /// Directly after the `<`.
    Lt,
    /// After this many characters that may begin an e-mail address in angle brackets.
    AddressStart(usize),
    /// After `</`.
    Slash,
    /// After `<!`.
    Bang,
    /// After `<!-`.
    BangDash,
    /// In a declaration or instruction, up to the next `>`.
    Declaration,
    /// In the name of the tag.
    Name,
    /// After a name or value, where an attribute may begin.
    Space,
    /// In the name of an attribute.
    Attribute,
    /// After the name of an attribute and blanks, where `=` may follow.
    AfterAttribute,
    /// After `=`.
    Equals,
    /// In a value in quotation marks of this kind.
    Quoted(u8),
    /// In a value without quotation marks.
    Unquoted,
}

/// Effect of a byte.
pub(super) enum HtmlTagStep {
    Continue(HtmlTagState),
    /// Ends the tag and belongs to it.
    Tag,
    /// Completes `<!--`.
    Comment,
    /// The `<` is text, whatever follows; this byte is read as text, too.
    Text,
    /// The text is not a tag, but a browser or Markdown might read it as one: the `<` is escaped, the rest is
    /// text.
    Escape,
}

/// Maximum length in bytes of an e-mail address before its `@`.
const MAX_ADDRESS_LEN: usize = 64;

impl HtmlTagState {
    /// Reads one byte after the `<`.
    pub(super) fn step(self, byte: u8) -> HtmlTagStep {
        use HtmlTagState::*;
        if byte == b'<' {
            return HtmlTagStep::Escape;
        }
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0C');
        let next_state = match (self, byte) {
            (Lt, b'/') => Slash,
            (Lt, b'!') => Bang,
            (Lt, b'?') => Declaration,
            (Lt | Slash, byte) if byte.is_ascii_alphabetic() => Name,
            (Lt, byte) if is_address_byte(byte) => AddressStart(1),
            (AddressStart(count), byte) if is_address_byte(byte) && count < MAX_ADDRESS_LEN => {
                AddressStart(count + 1)
            }
            // `<name@host>` is a link in Markdown; a longer name may be one for some readers.
            (AddressStart(_), b'@') => return HtmlTagStep::Escape,
            (AddressStart(_), byte) if is_address_byte(byte) => return HtmlTagStep::Escape,
            // A backtick may belong to an address; and a client that drops control characters would join the
            // text around them.
            (Lt | AddressStart(_), b'`' | b'\x0C' | 0x7F) => return HtmlTagStep::Escape,
            (Lt | AddressStart(_), byte) if byte < b' ' && !is_space => return HtmlTagStep::Escape,
            (Lt | AddressStart(_), _) => return HtmlTagStep::Text,
            (Slash, _) => return HtmlTagStep::Escape,
            (Bang, b'-') => BangDash,
            (BangDash, b'-') => return HtmlTagStep::Comment,
            (_, b'>') if !matches!(self, Quoted(_)) => return HtmlTagStep::Tag,
            (Bang | BangDash | Declaration, _) => Declaration,
            (Name | Space | Attribute | AfterAttribute, b'/') => Space,
            (Name | Space, _) if is_space => Space,
            (Name, _) => Name,
            (Attribute | AfterAttribute, _) if is_space => AfterAttribute,
            (Attribute | AfterAttribute, b'=') => Equals,
            (Space | Attribute | AfterAttribute, _) => Attribute,
            (Equals, _) if is_space => Equals,
            (Equals, b'"' | b'\'') => Quoted(byte),
            (Equals, _) => Unquoted,
            (Quoted(quote), byte) if byte == quote => Space,
            (Quoted(_), _) => self,
            (Unquoted, _) if is_space => Space,
            (Unquoted, _) => Unquoted,
        };
        HtmlTagStep::Continue(next_state)
    }
}

/// Returns whether a byte may occur in an e-mail address before its `@`, the backtick excluded.
fn is_address_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_{|}~-".contains(&byte)
}

/// A complete tag.
#[derive(Debug)]
pub(super) struct HtmlTag<'a> {
    /// Name in lower case; for a declaration, its first character.
    pub(super) name: String,
    pub(super) is_closing: bool,
    /// True if the tag ends with `/>`, and the slash is not part of a value.
    pub(super) is_self_closing: bool,
    /// Attributes in order: name in lower case, and value, empty if there is none.
    pub(super) attributes: Vec<(String, &'a str)>,
}

impl<'a> HtmlTag<'a> {
    /// Parses a tag that [`HtmlTagState`] has found to be complete.
    pub(super) fn parse(raw: &'a str) -> HtmlTag<'a> {
        let is_closing = raw.starts_with("</");
        let body = raw.strip_suffix('>').unwrap_or(raw);
        let start = 1 + usize::from(is_closing);
        if body[start..].starts_with(['!', '?']) {
            return HtmlTag {
                name: body[1..2].to_owned(),
                is_closing,
                is_self_closing: false,
                attributes: Vec::new(),
            };
        }
        let mut state = HtmlTagState::Lt;
        let (mut name, mut attributes): (&str, Vec<(&str, &str)>) = ("", Vec::new());
        let mut word_start = start;
        for (at, byte) in raw.bytes().enumerate().skip(start) {
            let next_state = match state.step(byte) {
                HtmlTagStep::Continue(next_state) => next_state,
                // The `>` that ends the tag.
                _ => HtmlTagState::Lt,
            };
            if next_state != state {
                let word = &raw[word_start.min(at)..at];
                match state {
                    HtmlTagState::Name => name = word,
                    HtmlTagState::Attribute => attributes.push((word, "")),
                    // Without the opening quotation mark.
                    HtmlTagState::Quoted(_) => {
                        set_last_value(&mut attributes, word.get(1..).unwrap_or_default())
                    }
                    HtmlTagState::Unquoted => set_last_value(&mut attributes, word),
                    _ => {}
                }
                word_start = at;
            }
            state = next_state;
        }
        let attributes = attributes.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
        // A slash at the end of an unquoted value is part of it.
        let is_self_closing = body.ends_with('/') && !ends_unquoted(body);
        HtmlTag {
            name: name.to_ascii_lowercase(),
            is_closing,
            is_self_closing,
            attributes: attributes.collect(),
        }
    }
}

fn set_last_value<'a>(attributes: &mut [(&'a str, &'a str)], value: &'a str) {
    if let Some((_, last)) = attributes.last_mut() {
        *last = value;
    }
}

/// Returns whether a tag without its `>` ends within an unquoted value.
fn ends_unquoted(body: &str) -> bool {
    let end = body.bytes().skip(1).try_fold(HtmlTagState::Lt, |state, byte| match state.step(byte) {
        HtmlTagStep::Continue(next_state) => Some(next_state),
        _ => None,
    });
    end == Some(HtmlTagState::Unquoted)
}
