//! Matching of keys against text. A regular expression runs in linear time or is refused.

use std::borrow::Cow;

use memchr::memmem;
use regex::{Regex, RegexBuilder};

use super::entry::{Entry, Source};
use super::pattern::{Fault, translate};
use super::settings::ScanSettings;
use tambour::finding::clip;

/// Longest regular expression, in bytes.
const PATTERN: usize = 2 << 10;

/// Size limits of compiled expressions, ascending; the first limit that suffices is the size it is charged
/// as.
const SIZES: &[usize] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Smallest cache of a regular expression while it searches, in bytes.
const CACHE: usize = 32 << 10;

/// Memory limit of all compiled expressions of one scan, in bytes.
const COMPILED: usize = 128 << 20;

/// Limit on the bytes compiled during one scan, including failed attempts.
const TRIED: usize = 192 << 20;

/// Bytes charged for compiling one byte of a pattern.
const READING: usize = 64;

/// Largest product of text bytes and compiled size; the search time is proportional to it.
const PRODUCT: usize = 1 << 33;

/// Bytes of plain text search that cost as much as one byte of the smallest regular expression.
const FAST: u64 = 16;

/// Bytes that regular expressions of one scan may search repeatedly, in units of the smallest size. They
/// search all texts at once whenever new text arrives; beyond this limit they search only the new text.
const AGAIN: u64 = 128 << 20;

/// Remaining cost limits for the keys of one scan.
pub(super) struct Work<'a> {
    /// Charges for bytes that are searched; returns false if the limit is reached.
    read: &'a dyn Fn(u64) -> bool,
    /// Remaining bytes for compiled expressions.
    compiled: usize,
    /// Remaining bytes for compilation attempts.
    tried: usize,
    /// Remaining bytes for repeated searches.
    again: u64,
    /// Set when the scan was ended early.
    pub(super) over: bool,
    /// Set when a regular expression searched only the beginning of a long text.
    pub(super) shortened: bool,
    /// Set when regular expressions searched new text separately instead of all texts together.
    pub(super) apart: bool,
}

impl<'a> Work<'a> {
    pub(super) fn new(read: &'a dyn Fn(u64) -> bool) -> Work<'a> {
        Work {
            read,
            compiled: COMPILED,
            tried: TRIED,
            again: AGAIN,
            over: false,
            shortened: false,
            apart: false,
        }
    }

    pub(super) fn reads(&mut self, bytes: u64) -> bool {
        self.over = self.over || !(self.read)(bytes);
        !self.over
    }
}

/// Texts that are searched for an entry.
pub(super) struct Texts<'t, 'a> {
    /// Messages, texts of user and character, additional texts, texts of entries.
    pub(super) lists: [&'t [Read<'a>]; 4],
    /// Texts of user and character that the entry asks for.
    pub(super) sources: &'t [Source],
    /// All texts joined, for regular expressions.
    pub(super) whole: &'t Whole,
}

impl Texts<'_, '_> {
    fn is_read(&self, list: usize, at: usize) -> bool {
        list != SOURCES || self.sources.iter().any(|source| *source as usize == at)
    }
}

/// Index of the list with texts of user and character, which is in the order of [`Source`].
const SOURCES: usize = 1;

/// All texts of an entry joined into one. Each begins with a mark, as in SillyTavern.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Numbers of messages and of entry texts, and the included character texts; identifies the joined text.
    made_of: Option<(usize, usize, Vec<Source>)>,
    text: Read<'static>,
}

impl Whole {
    /// Separates the texts; without its first character, it begins the first one.
    const MARK: &'static str = "\n\u{1}";

    /// Joins the texts of `lists`, unless they are already joined.
    pub(super) fn join(&mut self, lists: &[&[Read<'_>]; 4], sources: &[Source], work: &mut Work<'_>) {
        let made_of = Some((lists[0].len(), lists[3].len(), sources.to_vec()));
        if self.made_of == made_of {
            return;
        }
        let texts = |list: usize| lists[list].iter().enumerate().map(move |(at, read)| (list, at, read));
        let mut all = String::new();
        for (list, at, read) in (0..lists.len()).flat_map(texts) {
            let source = list == SOURCES;
            if source && (read.text.is_empty() || !sources.iter().any(|source| *source as usize == at)) {
                continue;
            }
            all.push_str(if all.is_empty() { &Self::MARK[1..] } else { Self::MARK });
            all.push_str(&read.text);
        }
        if all.is_empty() {
            all.push_str(&Self::MARK[1..]);
        }
        work.reads(all.len() as u64 / FAST);
        self.text = Read { text: all.into(), lower: String::new() };
        self.made_of = made_of;
    }
}

/// A key that is searched for in growing lists of texts.
#[derive(Debug)]
pub(super) struct Sought {
    key: Key,
    seen: bool,
    /// List with the text that contains the key.
    list: Option<usize>,
    /// Number of texts searched in each list of [`Texts`].
    read: [usize; 4],
    /// Identity of the joined text that a regular expression has searched.
    whole: Option<(usize, usize, Vec<Source>)>,
}

impl Sought {
    fn new(key: Key) -> Sought {
        Sought { key, seen: false, list: None, read: [0; 4], whole: None }
    }

    /// Searches the texts for the key, within the cost limits. The lists must be those of the last call, or
    /// longer. Each text is searched once; a regular expression searches the joined text, again when it has
    /// grown.
    pub(super) fn occurs(&mut self, texts: &Texts<'_, '_>, work: &mut Work<'_>) -> bool {
        match &self.key {
            Key::Always => return true,
            Key::Never => return false,
            Key::Pattern(..) => {
                if self.whole.is_some() && self.whole == texts.whole.made_of {
                    return self.seen;
                }
                let cost = self.key.cost(&texts.whole.text);
                let first = self.whole.is_none();
                if first || cost <= work.again {
                    work.again -= if first { 0 } else { cost };
                    self.whole.clone_from(&texts.whole.made_of);
                    self.read = texts.lists.map(<[Read<'_>]>::len);
                    self.seen = work.reads(cost) && self.key.occurs(&texts.whole.text, &mut work.shortened);
                    return self.seen;
                }
                work.apart = true;
            }
            Key::Text { .. } => {}
        }
        for (number, list) in texts.lists.iter().enumerate() {
            while !self.seen && self.read[number] < list.len() {
                let (at, read) = (self.read[number], &list[self.read[number]]);
                if !texts.is_read(number, at) {
                    self.read[number] += 1;
                    continue;
                }
                if !work.reads(self.key.cost(read)) {
                    break;
                }
                self.seen = self.key.occurs(read, &mut work.shortened);
                self.list = self.seen.then_some(number);
                self.read[number] += 1;
            }
        }
        self.seen
    }

    /// Returns the list of [`Texts`] that contains the key; `None` for a search in the joined text.
    pub(super) fn list(&self) -> Option<usize> {
        self.list
    }

    /// Returns true if the key searches the joined text.
    pub(super) fn is_pattern(&self) -> bool {
        matches!(self.key, Key::Pattern(..))
    }
}

/// A compiled key.
#[derive(Debug)]
enum Key {
    /// A text, in lower case if letter case is ignored.
    Text { text: String, case: bool, whole: bool },
    /// A regular expression with the size it is charged as.
    Pattern(Box<Regex>, usize),
    /// White space only: occurs in every text.
    Always,
    /// Empty or invalid: never occurs.
    Never,
}

/// A text with its lower-case form.
#[derive(Debug, Default)]
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

/// Compiles the keys in `list` as `entry` and the settings require and adds problems to `warnings`. An
/// invalid key never occurs.
pub(super) fn keys(
    entry: &Entry,
    list: &[String],
    settings: &ScanSettings,
    work: &mut Work<'_>,
    warnings: &mut Vec<String>,
) -> Vec<Sought> {
    let case = entry.case_sensitive.unwrap_or(settings.case_sensitive);
    let whole = entry.whole_words.unwrap_or(settings.whole_words);
    let mut warn = |key: &str, what: &str| {
        warnings.push(format!("{}: the key `{}` {what}", entry.label(), clip(key, 60)));
    };
    let mut read = |key: &String| {
        if key.is_empty() {
            return Key::Never;
        }
        let key = key.trim();
        if key.is_empty() {
            warn(key, "is blank, and found in every text");
            return Key::Always;
        }
        let text = || {
            // A key of several words is searched without word boundaries.
            let whole = whole && !key.contains(char::is_whitespace);
            Key::Text { text: if case { key.to_owned() } else { key.to_lowercase() }, case, whole }
        };
        let (pattern, flags) = match written(key) {
            Some(written) => written,
            None if entry.regex => (key, if case { "" } else { "i" }),
            None => return text(),
        };
        match compile(pattern, flags, work) {
            Ok(pattern) => pattern,
            Err(Failure::Invalid(why)) if !entry.regex => {
                warn(key, &format!("is no regular expression and is looked for as it is written: {why}"));
                text()
            }
            Err(Failure::Invalid(why)) => {
                warn(key, &format!("is left out: it is no regular expression: {why}"));
                Key::Never
            }
            Err(Failure::Other(why)) => {
                warn(key, &format!("is left out: {why}"));
                Key::Never
            }
        }
    };
    list.iter().map(|key| Sought::new(read(key))).collect()
}

/// Returns warnings about the keys of entries. `tried` limits the bytes that compilation attempts may use.
pub(crate) fn odd_keys(entries: &[Entry], tried: usize) -> Vec<String> {
    let settings = ScanSettings::default();
    let (mut warnings, mut work) = (Vec::new(), Work { tried, ..Work::new(&|_| true) });
    for entry in entries.iter().filter(|entry| entry.enabled) {
        for list in [&entry.keys, &entry.secondary_keys, &entry.additional_keys, &entry.exclude_keys] {
            keys(entry, list, &settings, &mut work, &mut warnings);
        }
    }
    warnings
}

/// Splits `/pattern/flags`; a slash in the pattern must be escaped.
fn written(key: &str) -> Option<(&str, &str)> {
    let (pattern, flags) = key.strip_prefix('/')?.rsplit_once('/')?;
    let known = |(at, flag): (usize, char)| "gimsuy".contains(flag) && !flags[..at].contains(flag);
    let bare = pattern.starts_with('/')
        || pattern.as_bytes().windows(2).any(|pair| pair[1] == b'/' && pair[0] != b'\\');
    (!pattern.is_empty() && flags.char_indices().all(known) && !bare).then_some((pattern, flags))
}

/// Reason why a regular expression cannot be compiled.
enum Failure {
    /// The pattern is not a valid regular expression.
    Invalid(&'static str),
    /// Any other reason.
    Other(String),
}

fn compile(pattern: &str, flags: &str, work: &mut Work<'_>) -> Result<Key, Failure> {
    if pattern.len() > PATTERN {
        return Err(Failure::Other(format!("a regular expression has at most {PATTERN} bytes")));
    }
    let beyond = |what: &str| Failure::Other(format!("it is no regular expression of linear time ({what})"));
    let pattern = match translate(pattern, flags) {
        Ok(pattern) => pattern,
        Err(Fault::Invalid(why)) => return Err(Failure::Invalid(why)),
        Err(Fault::Beyond(what)) => return Err(beyond(what)),
    };
    for &size in SIZES {
        let takes = size.max(CACHE) * 2;
        if takes > work.compiled {
            return Err(Failure::Other(
                "the regular expressions of the book are too large together".to_owned(),
            ));
        }
        let Some(left) = work.tried.checked_sub(size + READING * pattern.len()) else {
            work.tried = 0;
            return Err(Failure::Other(
                "the regular expressions before it have taken the time that those of a book may take"
                    .to_owned(),
            ));
        };
        work.tried = left;
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(flags.contains('i'))
            .multi_line(flags.contains('m'))
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
                return Err(beyond(error.lines().last().unwrap_or_default().trim_start_matches("error: ")));
            }
        }
    }
    Err(Failure::Other("the regular expression is too large".to_owned()))
}

impl Key {
    /// Returns the cost of a search, in bytes.
    fn cost(&self, read: &Read<'_>) -> u64 {
        let bytes = read.text.len() as u64;
        match self {
            Key::Text { .. } | Key::Always | Key::Never => bytes / FAST,
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
            Key::Always => true,
            Key::Never => false,
        }
    }
}

/// Returns true if `word` at `at` is not adjacent to an ASCII letter, a digit or `_`, SillyTavern's rule for
/// whole words.
fn is_word(hay: &str, at: usize, word: &str) -> bool {
    let inner = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (before, after) = (&hay.as_bytes()[..at], &hay.as_bytes()[at + word.len()..]);
    !inner(before.last()) && !inner(after.first())
}
