//! Paths into the state tree (F-112, F-117): `纯田真奈.好感度`, `items[0].name`, `items[-1]`, `tags["quoted.key"]`.

use std::fmt;
use std::str::FromStr;

/// Target of an operation: keys and indexes from the root, at least one.
///
/// ```
/// use tambour::state::StatePath;
///
/// let path: StatePath = r#"bag["a.b"][-1].名"#.parse()?;
/// assert_eq!(path.to_string(), r#"bag["a.b"][-1].名"#);
/// assert_eq!(StatePath::from_pointer("/bag/a.b/c~1d")?.to_string(), r#"bag["a.b"].c/d"#);
/// assert_eq!("a..b".parse::<StatePath>().unwrap_err().offset, 2);
/// # Ok::<(), tambour::state::StatePathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatePath(Vec<StateStep>);

/// Step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateStep {
    /// A key of an object.
    Key(String),
    /// An element of a list, counted from 0, or from the end if negative.
    Index(i64),
    /// A token of a JSON Pointer: a key of an object, or an element of a list if the token is its index.
    Token(String),
}

/// Error for a text that is not a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatePathError {
    /// Byte offset in the text.
    pub offset: usize,
    /// Fault at the offset, and what was expected.
    pub message: String,
}

impl StatePath {
    /// Creates a path; returns `None` if `steps` is empty or has an empty key.
    #[must_use]
    pub fn new(steps: Vec<StateStep>) -> Option<StatePath> {
        let is_empty_key =
            |step: &StateStep| matches!(step, StateStep::Key(key) | StateStep::Token(key) if key.is_empty());
        (!steps.is_empty() && !steps.iter().any(is_empty_key)).then_some(StatePath(steps))
    }

    /// Parses a JSON Pointer (RFC 6901, F-141): `/items/0/a~1b`. Keys keep their dots.
    ///
    /// # Errors
    /// The text does not begin with `/`, a key is empty, or a `~` is not followed by 0 or 1.
    pub fn from_pointer(text: &str) -> Result<StatePath, StatePathError> {
        let Some(tokens) = text.strip_prefix('/') else {
            return Err(StatePathError::new(0, "a JSON Pointer must begin with `/`"));
        };
        let mut steps = Vec::new();
        let mut at = 1;
        for token in tokens.split('/') {
            if token.is_empty() {
                return Err(StatePathError::new(at, "expected a key"));
            }
            steps.push(StateStep::Token(unescape_token(token, at)?));
            at += token.len() + 1;
        }
        Ok(StatePath(steps))
    }

    /// Returns the steps from the root.
    #[must_use]
    pub fn steps(&self) -> &[StateStep] {
        &self.0
    }
}

/// Unescapes a token of a pointer; `at` is its offset in the pointer.
fn unescape_token(token: &str, at: usize) -> Result<String, StatePathError> {
    let mut key = String::with_capacity(token.len());
    let mut unread = token;
    while let Some(tilde) = unread.find('~') {
        key.push_str(&unread[..tilde]);
        key.push(match unread.as_bytes().get(tilde + 1) {
            Some(b'0') => '~',
            Some(b'1') => '/',
            _ => {
                let at = at + token.len() - unread.len() + tilde;
                return Err(StatePathError::new(at, "a `~` in a JSON Pointer must be followed by 0 or 1"));
            }
        });
        unread = &unread[tilde + 2..];
    }
    key.push_str(unread);
    Ok(key)
}

impl FromStr for StatePath {
    type Err = StatePathError;

    /// # Errors
    /// The text is empty, has an empty key or an unpaired bracket, has something other than a whole number or
    /// a JSON string in brackets, or continues with a key after brackets without a dot (F-117).
    fn from_str(text: &str) -> Result<StatePath, StatePathError> {
        let mut steps = Vec::new();
        let mut at = 0;
        if text.is_empty() {
            return Err(StatePathError::new(0, "the path is empty"));
        }
        if text.starts_with('[') {
            at = parse_bracket(text, 0, &mut steps)?;
        } else {
            at = parse_key(text, at, &mut steps)?;
        }
        while at < text.len() {
            at = match text.as_bytes()[at] {
                b'.' => parse_key(text, at + 1, &mut steps)?,
                b'[' => parse_bracket(text, at, &mut steps)?,
                _ => return Err(StatePathError::new(at, "`]` must be followed by `.`, `[` or nothing")),
            };
        }
        Ok(StatePath(steps))
    }
}

/// Parses the key without quotes at `at`; returns the offset after it.
fn parse_key(text: &str, at: usize, steps: &mut Vec<StateStep>) -> Result<usize, StatePathError> {
    let unread = &text[at..];
    let len = unread.find(['.', '[', ']']).unwrap_or(unread.len());
    let key = &unread[..len];
    if unread[len..].starts_with(']') {
        return Err(StatePathError::new(at + len, "a `]` without `[`"));
    }
    if key.trim().is_empty() {
        return Err(StatePathError::new(at, "expected a key"));
    }
    steps.push(StateStep::Key(key.to_owned()));
    Ok(at + len)
}

/// Parses an index or a quoted key in the brackets at `bracket_at`; returns the offset after them.
fn parse_bracket(text: &str, bracket_at: usize, steps: &mut Vec<StateStep>) -> Result<usize, StatePathError> {
    let at = bracket_at + 1;
    let unread = &text[at..];
    let is_quoted = unread.starts_with('"');
    let (step, len) =
        if is_quoted { parse_quoted_key(unread, at)? } else { parse_index(unread, at, bracket_at)? };
    steps.push(step);
    match unread.as_bytes().get(len) {
        Some(b']') => Ok(at + len + 1),
        Some(_) => Err(StatePathError::new(at + len, "the quotes must be followed by `]`")),
        None => Err(StatePathError::new(bracket_at, "the bracket is not closed")),
    }
}

/// Parses the quoted key at the start of `unread`, a JSON string; returns it with its length. `at` is the
/// offset of `unread` in the path.
fn parse_quoted_key(unread: &str, at: usize) -> Result<(StateStep, usize), StatePathError> {
    let mut is_escaped = false;
    let end = unread.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    let Some(end) = end else { return Err(StatePathError::new(at, "the quotes are not closed")) };
    // Both quotation marks count.
    let len = end + 2;
    match serde_json::from_str::<String>(&unread[..len]) {
        Ok(key) if key.is_empty() => Err(StatePathError::new(at, "expected a key")),
        Ok(key) => Ok((StateStep::Key(key), len)),
        Err(error) => {
            let error_at = unread.floor_char_boundary(error.column().saturating_sub(1).min(len));
            Err(StatePathError::new(at + error_at, "the quoted key is not a JSON string"))
        }
    }
}

/// Parses the index at the start of `unread`; returns it with its length. `at` is the offset of `unread` in
/// the path.
fn parse_index(unread: &str, at: usize, bracket_at: usize) -> Result<(StateStep, usize), StatePathError> {
    let Some(len) = unread.find(']') else {
        return Err(StatePathError::new(bracket_at, "the bracket is not closed"));
    };
    let digits = unread[..len].strip_prefix('-').unwrap_or(&unread[..len]);
    let has_leading_zero = digits.starts_with('0') && &unread[..len] != "0";
    if digits.is_empty() || has_leading_zero || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(StatePathError::new(
            at,
            "expected a whole number, or a key in double quotes, between the brackets",
        ));
    }
    match unread[..len].parse() {
        Ok(index) => Ok((StateStep::Index(index), len)),
        Err(_) => Err(StatePathError::new(at, "the index is too large for any list")),
    }
}

/// Parses a token of a JSON Pointer as an index; `None` if it is no index of RFC 6901.
pub(super) fn parse_token_index(token: &str) -> Option<usize> {
    let is_index =
        token.bytes().all(|byte| byte.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    if is_index { token.parse().ok() } else { None }
}

/// Writes a key in path notation: in brackets if it needs quotes, otherwise after a dot, except for the first
/// step.
pub(super) fn write_key(key: &str, is_first: bool, out: &mut impl fmt::Write) -> fmt::Result {
    if key.trim().is_empty() || key.contains(['.', '[', ']']) {
        return write!(out, "[{}]", serde_json::Value::from(key));
    }
    out.write_str(if is_first { "" } else { "." })?;
    out.write_str(key)
}

impl fmt::Display for StatePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_steps(&self.0, f)
    }
}

/// Writes steps as a path.
pub(super) fn write_steps(steps: &[StateStep], out: &mut impl fmt::Write) -> fmt::Result {
    for (at, step) in steps.iter().enumerate() {
        match step {
            StateStep::Index(index) => write!(out, "[{index}]")?,
            StateStep::Token(token) if parse_token_index(token).is_some() => write!(out, "[{token}]")?,
            StateStep::Key(key) | StateStep::Token(key) => write_key(key, at == 0, out)?,
        }
    }
    Ok(())
}

impl StatePathError {
    fn new(offset: usize, message: &str) -> StatePathError {
        StatePathError { offset, message: message.to_owned() }
    }
}

impl fmt::Display for StatePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.message, self.offset)
    }
}

impl std::error::Error for StatePathError {}
