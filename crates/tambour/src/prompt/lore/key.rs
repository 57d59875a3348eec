//! Keys held against text. A regular expression takes time linear in the text, or is refused.

use std::borrow::Cow;

use memchr::memmem;
use regex::{Regex, RegexBuilder};

use super::entry::Entry;
use super::settings::ScanSettings;

/// Bytes of a regular expression.
const PATTERN: usize = 2 << 10;

/// Bytes that a compiled one may take, the smallest first: the first that is enough is what it counts as.
const SIZES: &[usize] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Bytes that one takes at least while it reads.
const CACHE: usize = 32 << 10;

/// Bytes that those of one scan may take together.
const COMPILED: usize = 128 << 20;

/// Bytes of a text times those of a regular expression that reads it: its time goes up to that product.
const PRODUCT: usize = 1 << 33;

/// Bytes that a text is looked for in at the cost of one byte that a regular expression of the smallest size reads.
const FAST: u64 = 16;

/// Costs that the keys of one scan may still have.
pub(super) struct Work<'a> {
    /// Takes bytes that are read away; false if there are no more.
    read: &'a dyn Fn(u64) -> bool,
    /// Bytes left for regular expressions.
    compiled: usize,
    /// Set when the scan was cut.
    pub(super) over: bool,
    /// Set when a text was too long for a regular expression, which read its beginning alone.
    pub(super) shortened: bool,
}

impl<'a> Work<'a> {
    pub(super) fn new(read: &'a dyn Fn(u64) -> bool) -> Work<'a> {
        Work { read, compiled: COMPILED, over: false, shortened: false }
    }

    fn reads(&mut self, bytes: u64) -> bool {
        self.over = self.over || !(self.read)(bytes);
        !self.over
    }
}

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
    /// Looks for it in the texts, as far as they may still be read. The lists are those of the last call, or longer.
    pub(super) fn occurs(&mut self, texts: &Texts<'_, '_>, work: &mut Work<'_>) -> bool {
        for (list, read) in texts.iter().zip(&mut self.read) {
            while !self.seen && *read < list.len() && work.reads(self.key.cost(&list[*read])) {
                self.seen = self.key.occurs(&list[*read], &mut work.shortened);
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
    /// A regular expression, and the size that it counts as.
    Pattern(Box<Regex>, usize),
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
    work: &mut Work<'_>,
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
            Some((pattern, flags)) => match compile(pattern, flags, work) {
                Ok(pattern) => keys.push(sought(pattern)),
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

fn compile(pattern: &str, flags: &str, work: &mut Work<'_>) -> Result<Key, String> {
    if pattern.len() > PATTERN {
        return Err(format!("a regular expression has at most {PATTERN} bytes"));
    }
    for &size in SIZES {
        let takes = size.max(CACHE) * 2;
        if takes > work.compiled {
            return Err("the regular expressions of the book are too large together".to_owned());
        }
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(flags.contains('i'))
            .multi_line(flags.contains('m'))
            .dot_matches_new_line(flags.contains('s'))
            .size_limit(size)
            .dfa_size_limit(size.max(CACHE))
            .nest_limit(64)
            .build();
        match regex {
            Ok(regex) => {
                work.compiled -= takes;
                return Ok(Key::Pattern(Box::new(regex), size));
            }
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => {
                let error = error.to_string();
                let what = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                return Err(format!("it is no regular expression of linear time ({what})"));
            }
        }
    }
    Err("the regular expression is too large".to_owned())
}

impl Key {
    /// Bytes that looking for it counts as.
    fn cost(&self, read: &Read<'_>) -> u64 {
        let bytes = read.text.len() as u64;
        match self {
            Key::Text { .. } => bytes / FAST,
            Key::Pattern(_, size) => bytes.saturating_mul((size / SIZES[0]) as u64),
        }
    }

    fn occurs(&self, read: &Read<'_>, shortened: &mut bool) -> bool {
        match self {
            Key::Pattern(regex, size) => {
                let most = read.text.floor_char_boundary(PRODUCT / size);
                *shortened |= most < read.text.len();
                regex.is_match(&read.text[..most])
            }
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
