//! Keys held against text. A regular expression takes time linear in the text, or is refused.

use std::borrow::Cow;

use memchr::memmem;
use regex::{Regex, RegexBuilder};

use super::entry::Entry;
use super::settings::ScanSettings;

/// Bytes of a regular expression.
const PATTERN: usize = 2 << 10;

/// Bytes that a compiled one may take.
const COMPILED: usize = 1 << 20;

/// A key that is looked for in texts that grow, each of which is read once.
#[derive(Debug)]
pub(super) struct Sought {
    key: Key,
    seen: bool,
    /// Texts read, of each of the lists of [`Texts`].
    read: [usize; 3],
}

/// What is read for an entry: messages, other texts, texts of entries.
pub(super) type Texts<'t, 'a> = [&'t [Read<'a>]; 3];

impl Sought {
    /// Whether it occurs in one of the texts. The lists are those of the last call, or longer.
    pub(super) fn occurs(&mut self, texts: &Texts<'_, '_>) -> bool {
        for (list, read) in texts.iter().zip(&mut self.read) {
            while !self.seen && *read < list.len() {
                self.seen = self.key.occurs(&list[*read]);
                *read += 1;
            }
        }
        self.seen
    }
}

/// A key that is ready to be looked for.
#[derive(Debug)]
enum Key {
    /// A text; in lower case if letter case does not count.
    Text { text: String, case: bool, whole: bool },
    /// A regular expression.
    Pattern(Box<Regex>),
}

/// A text with its form in lower case.
#[derive(Debug)]
pub(super) struct Read<'a> {
    text: Cow<'a, str>,
    lower: String,
}

impl<'a> Read<'a> {
    pub(super) fn new(text: impl Into<Cow<'a, str>>) -> Read<'a> {
        let text = text.into();
        Read { lower: text.to_lowercase(), text }
    }
}

/// The keys of `list` as `entry` and the settings want them read; one that cannot be read is told in `warnings`. Empty ones
/// match nothing and are left out.
pub(super) fn keys(
    entry: &Entry,
    list: &[String],
    settings: &ScanSettings,
    warnings: &mut Vec<String>,
) -> Vec<Sought> {
    let case = entry.case_sensitive.unwrap_or(settings.case_sensitive);
    let whole = entry.whole_words.unwrap_or(settings.whole_words);
    let mut keys = Vec::new();
    let sought = |key| Sought { key, seen: false, read: [0; 3] };
    for key in list.iter().map(|key| key.trim()).filter(|key| !key.is_empty()) {
        let pattern = match written(key) {
            Some((pattern, flags)) => Some((pattern, flags)),
            None if entry.regex => Some((key, if case { "" } else { "i" })),
            None => None,
        };
        match pattern {
            None => {
                let text = if case { key.to_owned() } else { key.to_lowercase() };
                // A key of several words is looked for as it is.
                let whole = whole && !key.contains(char::is_whitespace);
                keys.push(sought(Key::Text { text, case, whole }));
            }
            Some((pattern, flags)) => match compile(pattern, flags) {
                Ok(regex) => keys.push(sought(Key::Pattern(Box::new(regex)))),
                Err(why) => {
                    warnings.push(format!("entry `{}`: the key `{key}` is left out: {why}", entry.title));
                }
            },
        }
    }
    keys
}

/// Pattern and flags of `/pattern/flags`.
fn written(key: &str) -> Option<(&str, &str)> {
    let (pattern, flags) = key.strip_prefix('/')?.rsplit_once('/')?;
    let known = !pattern.is_empty() && flags.bytes().all(|flag| b"gimsuyv".contains(&flag));
    known.then_some((pattern, flags))
}

fn compile(pattern: &str, flags: &str) -> Result<Regex, String> {
    if pattern.len() > PATTERN {
        return Err(format!("a regular expression has at most {PATTERN} bytes"));
    }
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('s'))
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .nest_limit(64)
        .build();
    regex.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
        error => {
            let error = error.to_string();
            let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("it is no regular expression of linear time ({what})")
        }
    })
}

impl Key {
    fn occurs(&self, read: &Read<'_>) -> bool {
        match self {
            Key::Pattern(regex) => regex.is_match(&read.text),
            Key::Text { text, case, whole } => {
                let hay = if *case { &*read.text } else { &read.lower };
                if *whole {
                    memmem::find_iter(hay.as_bytes(), text).any(|at| is_word(hay, at, text))
                } else {
                    memmem::find(hay.as_bytes(), text.as_bytes()).is_some()
                }
            }
        }
    }
}

/// Whether the occurrence of `word` at `at` is a word of its own. Scripts without blanks between words have no boundaries.
fn is_word(hay: &str, at: usize, word: &str) -> bool {
    let joins = |inner: Option<char>, outer: Option<char>| {
        let (Some(inner), Some(outer)) = (inner, outer) else { return false };
        let letter = |c: char| (c.is_alphanumeric() || c == '_') && !unspaced(c);
        letter(inner) && letter(outer)
    };
    let (before, after) = (&hay[..at], &hay[at + word.len()..]);
    !joins(word.chars().next(), before.chars().next_back())
        && !joins(word.chars().next_back(), after.chars().next())
}

/// Letters of scripts that are written without blanks, or with endings that join: Thai to Khmer, Chinese, Japanese, Korean.
fn unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
