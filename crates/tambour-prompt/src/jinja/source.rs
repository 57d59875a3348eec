//! Splits the source of a template into text, tags and tokens, as minijinja's own lexer does.

use std::ops::Range;

/// Part of a template: text or a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TemplatePart {
    pub(crate) kind: PartKind,
    /// The whole part, delimiters included.
    pub(crate) range: Range<usize>,
    /// The content between the delimiters.
    pub(crate) content: Range<usize>,
}

/// Kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Text,
    /// `{{ … }}`.
    Output,
    /// `{% … %}`.
    Statement,
    /// `{# … #}`.
    Comment,
    /// `{% raw %} … {% endraw %}`.
    Raw,
    /// An opening delimiter that is never closed, up to the end of the source.
    Unclosed,
}

/// A token of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpressionToken {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
    /// Number of open brackets around the token.
    pub(crate) depth: usize,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Name or keyword.
    Name,
    /// String literal with its quotes.
    String,
    Number,
    /// Operator, bracket or any other character.
    Punctuation,
}

/// Returns the part of `source` that begins at `at`. Text ends at the next opening delimiter; a raw block
/// with both of its tags is one part.
pub(crate) fn read_part(source: &str, at: usize) -> TemplatePart {
    let bytes = source.as_bytes();
    let kind = match &bytes[at..] {
        [b'{', b'{', ..] => PartKind::Output,
        [b'{', b'%', ..] => PartKind::Statement,
        [b'{', b'#', ..] => PartKind::Comment,
        _ => {
            let end = find_delimiter(source, at);
            return TemplatePart { kind: PartKind::Text, range: at..end, content: at..end };
        }
    };
    // A `-` or `+` next to a delimiter controls white space and is not part of the content.
    let is_sign = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'-' | b'+'));
    let content_start = at + 2 + usize::from(is_sign(bytes.get(at + 2)));
    let end = match kind {
        PartKind::Comment => memchr::memmem::find(&bytes[at + 2..], b"#}").map(|found| at + 2 + found),
        PartKind::Output => find_code_end(source, content_start, "}}"),
        _ => find_code_end(source, content_start, "%}"),
    };
    let Some(end) = end else {
        return TemplatePart {
            kind: PartKind::Unclosed,
            range: at..source.len(),
            content: content_start..source.len(),
        };
    };
    let last = end.saturating_sub(1);
    let content_end = if end > content_start && is_sign(bytes.get(last)) { last } else { end };
    let content = content_start.min(content_end)..content_end;
    if kind == PartKind::Statement && source[content.clone()].trim() == "raw" {
        return read_raw(source, at, end + 2);
    }
    TemplatePart { kind, range: at..end + 2, content }
}

/// Returns the raw block that begins at `start` and whose opening tag ends at `body_start`.
fn read_raw(source: &str, start: usize, body_start: usize) -> TemplatePart {
    let mut at = body_start;
    while let Some(found) = memchr::memmem::find(&source.as_bytes()[at..], b"{%") {
        let tag = at + found;
        let content = source[tag + 2..].trim_start_matches(['-', '+']).trim_start();
        if let Some(after_name) = content.strip_prefix("endraw") {
            let close = after_name.trim_start().trim_start_matches(['-', '+']);
            if let Some(after_tag) = close.strip_prefix("%}") {
                let end = source.len() - after_tag.len();
                return TemplatePart { kind: PartKind::Raw, range: start..end, content: body_start..tag };
            }
        }
        at = tag + 2;
    }
    TemplatePart { kind: PartKind::Unclosed, range: start..source.len(), content: body_start..source.len() }
}

/// Returns the offset of the next opening delimiter; the length of the source if there is none.
fn find_delimiter(source: &str, from: usize) -> usize {
    let bytes = source.as_bytes();
    let mut at = from;
    while let Some(found) = memchr::memchr(b'{', &bytes[at..]) {
        let brace = at + found;
        if matches!(bytes.get(brace + 1), Some(b'{' | b'%' | b'#')) {
            return brace;
        }
        at = brace + 1;
    }
    source.len()
}

/// Returns the offset of the delimiter `close` that ends the code beginning at `from`, outside of string
/// literals and brackets.
fn find_code_end(source: &str, from: usize, close: &str) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut depth = 0_usize;
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => at = find_string_end(bytes, at)?,
            _ if depth == 0 && bytes[at..].starts_with(close.as_bytes()) => return Some(at),
            b'(' | b'[' | b'{' => {
                depth += 1;
                at += 1;
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns the expression that begins at `at`, up to the end of its tag.
pub(crate) fn expression_at(source: &str, at: usize) -> &str {
    let end = find_code_end(source, at, "}}").unwrap_or(source.len());
    source[at..end].trim_end_matches(['-', '+']).trim_end()
}

/// Returns the offset after the string literal that begins at `at`; `None` if it does not end.
fn find_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let mut at = at + 1;
    loop {
        let found = at + memchr::memchr2(quote, b'\\', bytes.get(at..)?)?;
        if bytes[found] == quote {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Returns the tokens of the code in `range`.
pub(crate) fn tokenize(source: &str, range: Range<usize>) -> Vec<ExpressionToken> {
    let bytes = &source.as_bytes()[..range.end];
    let mut tokens = Vec::new();
    let mut depth = 0_usize;
    let mut at = range.start;
    while at < range.end {
        let unread = &source[at..range.end];
        let c = unread.chars().next().unwrap_or(' ');
        let (kind, length) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if c == '_' || unicode_ident::is_xid_start(c) {
            let is_name = |c: char| unicode_ident::is_xid_continue(c);
            (TokenKind::Name, unread.find(|c| !is_name(c)).unwrap_or(unread.len()))
        } else if c.is_ascii_digit() {
            (TokenKind::Number, number_len(unread))
        } else if matches!(c, '"' | '\'') {
            (TokenKind::String, find_string_end(bytes, at).map_or(unread.len(), |end| end - at))
        } else {
            let is_double =
                unread.get(..2).is_some_and(|pair| matches!(pair, "==" | "!=" | "<=" | ">=" | "//" | "**"));
            (TokenKind::Punctuation, if is_double { 2 } else { c.len_utf8() })
        };
        if matches!(c, ')' | ']' | '}') {
            depth = depth.saturating_sub(1);
        }
        tokens.push(ExpressionToken { kind, range: at..at + length, depth });
        if matches!(c, '(' | '[' | '{') {
            depth += 1;
        }
        at += length;
    }
    tokens
}

/// Returns the byte length of the number at the beginning of `text`. A decimal point is part of the number if
/// a digit follows, and a sign is part of it between the `e` of an exponent and a digit.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let next_byte = bytes.get(at + 1);
        let continues = byte.is_ascii_alphanumeric()
            || *byte == b'_'
            || *byte == b'.' && next_byte.is_some_and(u8::is_ascii_digit)
            || matches!(byte, b'+' | b'-')
                && matches!(bytes[at - 1], b'e' | b'E')
                && !text.starts_with("0x")
                && next_byte.is_some_and(u8::is_ascii_digit);
        if !continues {
            break;
        }
        at += 1;
    }
    at.max(1)
}
