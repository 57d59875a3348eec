//! Matching of keys against text. A regular expression runs in linear time or is refused.

use std::borrow::Cow;

use memchr::memmem;
use regex::{Regex, RegexBuilder};

use super::entry::{CharacterText, LoreEntry};
use super::pattern::{PatternError, translate_pattern};
use super::settings::ScanSettings;
use tambour::finding::clip;

/// Longest regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 2 << 10;

/// Size limits of compiled expressions, ascending; the first limit that suffices is the size it is charged
/// as.
const COMPILED_SIZES: &[usize] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Smallest cache of a regular expression while it searches, in bytes.
const MIN_CACHE_BYTES: usize = 32 << 10;

/// Memory limit of all compiled expressions of one scan, in bytes.
const MAX_COMPILED_BYTES: usize = 128 << 20;

/// Limit on the bytes compiled during one scan, including failed attempts.
const MAX_ATTEMPTED_BYTES: usize = 192 << 20;

/// Bytes charged for compiling one byte of a pattern.
const COMPILE_BYTES_PER_BYTE: usize = 64;

/// Largest product of text bytes and compiled size; the search time is proportional to it.
const MAX_SEARCH_PRODUCT: u64 = 1 << 33;

/// Bytes of plain text search that cost as much as one byte of the smallest regular expression.
const TEXT_BYTES_PER_UNIT: u64 = 16;

/// Bytes that regular expressions of one scan may search repeatedly, in units of the smallest size. They
/// search all texts at once whenever new text arrives; beyond this limit they search only the new text.
const MAX_REPEATED_BYTES: u64 = 128 << 20;

/// Remaining cost limits for the keys of one scan.
pub(super) struct ScanBudget<'a> {
    /// Charges for bytes that are searched; returns false if the limit is reached.
    charge: &'a dyn Fn(u64) -> bool,
    /// Remaining bytes for compiled expressions.
    compiled_left: usize,
    /// Remaining bytes for compilation attempts.
    attempts_left: usize,
    /// Remaining bytes for repeated searches.
    repeats_left: u64,
    /// Set when the scan was ended early.
    pub(super) is_exhausted: bool,
    /// Set when a regular expression searched only the beginning of a long text.
    pub(super) has_truncated_text: bool,
    /// Set when regular expressions searched new text separately instead of all texts together.
    pub(super) has_split_search: bool,
}

impl<'a> ScanBudget<'a> {
    pub(super) fn new(charge: &'a dyn Fn(u64) -> bool) -> ScanBudget<'a> {
        ScanBudget {
            charge,
            compiled_left: MAX_COMPILED_BYTES,
            attempts_left: MAX_ATTEMPTED_BYTES,
            repeats_left: MAX_REPEATED_BYTES,
            is_exhausted: false,
            has_truncated_text: false,
            has_split_search: false,
        }
    }

    pub(super) fn spend(&mut self, bytes: u64) -> bool {
        self.is_exhausted = self.is_exhausted || !(self.charge)(bytes);
        !self.is_exhausted
    }
}

/// Texts that are searched for an entry.
pub(super) struct EntryTexts<'t, 'a> {
    /// Messages, texts of user and character, additional texts, texts of entries.
    pub(super) lists: [&'t [SearchText<'a>]; 4],
    /// Texts of user and character that the entry asks for.
    pub(super) sources: &'t [CharacterText],
    /// All texts joined, for regular expressions.
    pub(super) joined: &'t JoinedText,
}

impl EntryTexts<'_, '_> {
    fn is_searched(&self, list: usize, at: usize) -> bool {
        list != CHARACTER_LIST || self.sources.iter().any(|source| *source as usize == at)
    }
}

/// Index of the list with texts of user and character, which is in the order of [`CharacterText`].
const CHARACTER_LIST: usize = 1;

/// All texts of an entry joined into one. Each begins with a mark, as in SillyTavern.
#[derive(Debug, Default)]
pub(super) struct JoinedText {
    /// Numbers of messages and of entry texts, and the included character texts; identifies the joined text.
    identity: Option<(usize, usize, Vec<CharacterText>)>,
    text: SearchText<'static>,
}

impl JoinedText {
    /// Separates the texts; without its first character, it begins the first one.
    const MARK: &'static str = "\n\u{1}";

    /// Joins the texts of `lists`, unless they are already joined.
    pub(super) fn join(
        &mut self,
        lists: &[&[SearchText<'_>]; 4],
        sources: &[CharacterText],
        budget: &mut ScanBudget<'_>,
    ) {
        let identity = Some((lists[0].len(), lists[3].len(), sources.to_vec()));
        if self.identity == identity {
            return;
        }
        let texts = |list: usize| lists[list].iter().enumerate().map(move |(at, read)| (list, at, read));
        let mut all = String::new();
        for (list, at, read) in (0..lists.len()).flat_map(texts) {
            let source = list == CHARACTER_LIST;
            if source && (read.text.is_empty() || !sources.iter().any(|source| *source as usize == at)) {
                continue;
            }
            all.push_str(if all.is_empty() { &Self::MARK[1..] } else { Self::MARK });
            all.push_str(&read.text);
        }
        if all.is_empty() {
            all.push_str(&Self::MARK[1..]);
        }
        budget.spend(all.len() as u64 / TEXT_BYTES_PER_UNIT);
        self.text = SearchText { text: all.into(), lowercase: String::new() };
        self.identity = identity;
    }
}

/// A key that is searched for in growing lists of texts.
#[derive(Debug)]
pub(super) struct KeySearch {
    key: CompiledKey,
    is_found: bool,
    /// List with the text that contains the key.
    list: Option<usize>,
    /// Number of texts searched in each list of [`EntryTexts`].
    searched: [usize; 4],
    /// Identity of the joined text that a regular expression has searched.
    searched_joined: Option<(usize, usize, Vec<CharacterText>)>,
}

impl KeySearch {
    fn new(key: CompiledKey) -> KeySearch {
        KeySearch { key, is_found: false, list: None, searched: [0; 4], searched_joined: None }
    }

    /// Searches the texts for the key, within the cost limits. The lists must be those of the last call, or
    /// longer. Each text is searched once; a regular expression searches the joined text, again when it has
    /// grown.
    pub(super) fn occurs(&mut self, texts: &EntryTexts<'_, '_>, budget: &mut ScanBudget<'_>) -> bool {
        match &self.key {
            CompiledKey::Always => return true,
            CompiledKey::Never => return false,
            CompiledKey::Pattern(..) => {
                if self.searched_joined.is_some() && self.searched_joined == texts.joined.identity {
                    return self.is_found;
                }
                let cost = self.key.cost(&texts.joined.text);
                let first = self.searched_joined.is_none();
                if first || cost <= budget.repeats_left {
                    budget.repeats_left -= if first { 0 } else { cost };
                    self.searched_joined.clone_from(&texts.joined.identity);
                    self.searched = texts.lists.map(<[SearchText<'_>]>::len);
                    self.is_found = budget.spend(cost)
                        && self.key.occurs(&texts.joined.text, &mut budget.has_truncated_text);
                    return self.is_found;
                }
                budget.has_split_search = true;
            }
            CompiledKey::Text { .. } => {}
        }
        for (number, list) in texts.lists.iter().enumerate() {
            while !self.is_found && self.searched[number] < list.len() {
                let (at, read) = (self.searched[number], &list[self.searched[number]]);
                if !texts.is_searched(number, at) {
                    self.searched[number] += 1;
                    continue;
                }
                if !budget.spend(self.key.cost(read)) {
                    break;
                }
                self.is_found = self.key.occurs(read, &mut budget.has_truncated_text);
                self.list = self.is_found.then_some(number);
                self.searched[number] += 1;
            }
        }
        self.is_found
    }

    /// Returns the list of [`EntryTexts`] that contains the key; `None` for a search in the joined text.
    pub(super) fn list(&self) -> Option<usize> {
        self.list
    }

    /// Returns true if the key searches the joined text.
    pub(super) fn is_pattern(&self) -> bool {
        matches!(self.key, CompiledKey::Pattern(..))
    }
}

/// A compiled key.
#[derive(Debug)]
enum CompiledKey {
    /// A text, in lower case if letter case is ignored.
    Text { text: String, case: bool, is_whole: bool },
    /// A regular expression with the size it is charged as.
    Pattern(Box<Regex>, usize),
    /// White space only: occurs in every text.
    Always,
    /// Empty or invalid: never occurs.
    Never,
}

/// A text with its lower-case form.
#[derive(Debug, Default)]
pub(super) struct SearchText<'a> {
    text: Cow<'a, str>,
    lowercase: String,
}

impl<'a> SearchText<'a> {
    pub(super) fn new(text: impl Into<Cow<'a, str>>) -> SearchText<'a> {
        let text = text.into();
        SearchText { lowercase: text.to_lowercase(), text }
    }
}

/// Compiles the keys in `list` as `entry` and the settings require and adds problems to `warnings`. An
/// invalid key never occurs.
pub(super) fn compile_keys(
    entry: &LoreEntry,
    list: &[String],
    settings: &ScanSettings,
    budget: &mut ScanBudget<'_>,
    warnings: &mut Vec<String>,
) -> Vec<KeySearch> {
    let case = entry.case_sensitive.unwrap_or(settings.case_sensitive);
    let is_whole = entry.whole_words.unwrap_or(settings.whole_words);
    let mut warn = |key: &str, problem: &str| {
        warnings.push(format!("{}: the key `{}` {problem}", entry.label(), clip(key, 60)));
    };
    let mut read = |key: &String| {
        if key.is_empty() {
            return CompiledKey::Never;
        }
        let key = key.trim();
        if key.is_empty() {
            warn(key, "is blank, so it matches every text");
            return CompiledKey::Always;
        }
        let text = || {
            // A key of several words is searched without word boundaries.
            let is_whole = is_whole && !key.contains(char::is_whitespace);
            CompiledKey::Text { text: if case { key.to_owned() } else { key.to_lowercase() }, case, is_whole }
        };
        let (pattern, flags) = match split_pattern(key) {
            Some(parts) => parts,
            None if entry.regex => (key, if case { "" } else { "i" }),
            None => return text(),
        };
        match compile_pattern(pattern, flags, budget) {
            Ok(pattern) => pattern,
            Err(CompileError::Invalid(why)) if !entry.regex => {
                warn(key, &format!("is not a valid regular expression and is searched as plain text: {why}"));
                text()
            }
            Err(CompileError::Invalid(why)) => {
                warn(key, &format!("is left out: it is not a valid regular expression: {why}"));
                CompiledKey::Never
            }
            Err(CompileError::Other(why)) => {
                warn(key, &format!("is left out: {why}"));
                CompiledKey::Never
            }
        }
    };
    list.iter().map(|key| KeySearch::new(read(key))).collect()
}

/// Returns warnings about the keys of entries. `tried` limits the bytes that compilation attempts may use.
pub(crate) fn key_warnings(entries: &[LoreEntry], attempts_left: usize) -> Vec<String> {
    let settings = ScanSettings::default();
    let (mut warnings, mut budget) = (Vec::new(), ScanBudget { attempts_left, ..ScanBudget::new(&|_| true) });
    for entry in entries.iter().filter(|entry| entry.enabled) {
        for list in [&entry.keys, &entry.secondary_keys, &entry.additional_keys, &entry.exclude_keys] {
            compile_keys(entry, list, &settings, &mut budget, &mut warnings);
        }
    }
    warnings
}

/// Splits `/pattern/flags`; a slash in the pattern must be escaped.
fn split_pattern(key: &str) -> Option<(&str, &str)> {
    let (pattern, flags) = key.strip_prefix('/')?.rsplit_once('/')?;
    let is_known_flag = |(at, flag): (usize, char)| "gimsuy".contains(flag) && !flags[..at].contains(flag);
    let has_bare_slash = pattern.starts_with('/')
        || pattern.as_bytes().windows(2).any(|pair| pair[1] == b'/' && pair[0] != b'\\');
    (!pattern.is_empty() && flags.char_indices().all(is_known_flag) && !has_bare_slash)
        .then_some((pattern, flags))
}

/// Reason why a regular expression cannot be compiled.
enum CompileError {
    /// The pattern is not a valid regular expression.
    Invalid(&'static str),
    /// Any other reason.
    Other(String),
}

fn compile_pattern(
    pattern: &str,
    flags: &str,
    budget: &mut ScanBudget<'_>,
) -> Result<CompiledKey, CompileError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(CompileError::Other(format!(
            "a regular expression has at most {MAX_PATTERN_BYTES} bytes"
        )));
    }
    let unsupported =
        |reason: &str| CompileError::Other(format!("it cannot be matched in linear time ({reason})"));
    let pattern = match translate_pattern(pattern, flags) {
        Ok(pattern) => pattern,
        Err(PatternError::Invalid(why)) => return Err(CompileError::Invalid(why)),
        Err(PatternError::Unsupported(reason)) => return Err(unsupported(reason)),
    };
    for &size in COMPILED_SIZES {
        let compiled_size = size.max(MIN_CACHE_BYTES) * 2;
        if compiled_size > budget.compiled_left {
            return Err(CompileError::Other(
                "the regular expressions of the book are too large together".to_owned(),
            ));
        }
        let Some(attempts_left) =
            budget.attempts_left.checked_sub(size + COMPILE_BYTES_PER_BYTE * pattern.len())
        else {
            budget.attempts_left = 0;
            return Err(CompileError::Other(
                "the regular expressions before it have used up the time for those of a book".to_owned(),
            ));
        };
        budget.attempts_left = attempts_left;
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(flags.contains('i'))
            .multi_line(flags.contains('m'))
            .size_limit(size)
            .dfa_size_limit(size.max(MIN_CACHE_BYTES))
            .nest_limit(64)
            .build();
        match regex {
            Ok(regex) => {
                budget.compiled_left -= compiled_size;
                return Ok(CompiledKey::Pattern(Box::new(regex), size));
            }
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => {
                let error = error.to_string();
                return Err(unsupported(
                    error.lines().last().unwrap_or_default().trim_start_matches("error: "),
                ));
            }
        }
    }
    Err(CompileError::Other("the regular expression is too large".to_owned()))
}

impl CompiledKey {
    /// Returns the cost of a search, in bytes.
    fn cost(&self, read: &SearchText<'_>) -> u64 {
        let bytes = read.text.len() as u64;
        match self {
            CompiledKey::Text { .. } | CompiledKey::Always | CompiledKey::Never => {
                bytes / TEXT_BYTES_PER_UNIT
            }
            CompiledKey::Pattern(_, size) => bytes.saturating_mul((size / COMPILED_SIZES[0]) as u64),
        }
    }

    fn occurs(&self, read: &SearchText<'_>, is_shortened: &mut bool) -> bool {
        match self {
            CompiledKey::Pattern(regex, size) => {
                let longest = usize::try_from(MAX_SEARCH_PRODUCT / *size as u64).unwrap_or(usize::MAX);
                let search_len = read.text.floor_char_boundary(longest);
                *is_shortened |= search_len < read.text.len();
                regex.is_match(&read.text[..search_len])
            }
            CompiledKey::Text { text, case, is_whole } => {
                let haystack = if *case { &*read.text } else { &read.lowercase };
                if *is_whole {
                    memmem::find_iter(haystack.as_bytes(), text).any(|at| is_whole_word(haystack, at, text))
                } else {
                    memmem::find(haystack.as_bytes(), text.as_bytes()).is_some()
                }
            }
            CompiledKey::Always => true,
            CompiledKey::Never => false,
        }
    }
}

/// Returns true if `word` at `at` is not adjacent to an ASCII letter, a digit or `_`, SillyTavern's rule for
/// whole words.
fn is_whole_word(haystack: &str, at: usize, word: &str) -> bool {
    let inner = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (before, after) = (&haystack.as_bytes()[..at], &haystack.as_bytes()[at + word.len()..]);
    !inner(before.last()) && !inner(after.first())
}
