//! Matching of the keys of lorebook entries against text. A regular expression runs in linear time or is
//! refused.

use std::borrow::Cow;

use memchr::memmem;
use regex::{Regex, RegexBuilder};

use super::entry::{CharacterText, LoreEntry};
use super::pattern::{PatternError, translate_pattern};
use super::settings::ScanSettings;
use tambour::finding::clip;

/// Maximum length of a regular expression in bytes.
const MAX_PATTERN_BYTES: usize = 2 << 10;

/// Size limits of compiled expressions in bytes, ascending. An expression is charged for the first limit that
/// suffices.
const COMPILED_SIZES: &[usize] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Memory, in bytes, that every regular expression may use while it searches, however small it is.
const MIN_CACHE_BYTES: usize = 32 << 10;

/// Memory limit of all compiled expressions of one scan, in bytes.
const MAX_COMPILED_BYTES: usize = 128 << 20;

/// Maximum number of bytes charged for compilation during one scan, including failed attempts.
const MAX_ATTEMPTED_BYTES: usize = 192 << 20;

/// Bytes charged for each byte of a pattern that is compiled, in addition to the size limit of the attempt.
const COMPILE_BYTES_PER_BYTE: usize = 64;

/// Maximum product of text length and compiled size, both in bytes; the search time is proportional to it. Of
/// a text that is too long for this, only the beginning is searched.
const MAX_SEARCH_PRODUCT: u64 = 1 << 33;

/// Number of bytes that a key of plain text searches at the cost of one byte searched by the smallest regular
/// expression, which is the unit of cost.
const TEXT_BYTES_PER_UNIT: u64 = 16;

/// Bytes that regular expressions of one scan may search repeatedly, counted as bytes searched by the
/// smallest one. They search all texts at once whenever new text arrives; beyond this limit they search only
/// the new text.
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
    /// True after `charge` has refused bytes, which ends the scan early.
    pub(super) is_exhausted: bool,
    /// True after a regular expression has searched only the beginning of a long text.
    pub(super) has_truncated_text: bool,
    /// True after a regular expression has searched new texts one by one instead of all texts together.
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

    /// Charges for bytes; returns false if a limit is reached, now or before.
    pub(super) fn spend(&mut self, bytes: u64) -> bool {
        self.is_exhausted = self.is_exhausted || !(self.charge)(bytes);
        !self.is_exhausted
    }
}

/// Texts that are searched for an entry.
pub(super) struct EntryTexts<'t, 'a> {
    /// Messages, texts of user and character, additional texts, texts of entries. The first and the last list
    /// grow from pass to pass.
    pub(super) lists: [&'t [SearchText<'a>]; 4],
    /// Texts of user and character that the entry asks for.
    pub(super) sources: &'t [CharacterText],
    /// All texts joined, for regular expressions.
    pub(super) joined_text: &'t JoinedText,
}

impl EntryTexts<'_, '_> {
    /// Returns false for a text of user or character that the entry does not ask for, else true. `list` and
    /// `index` are the positions of the list and of the text in it.
    fn is_searched(&self, list: usize, index: usize) -> bool {
        list != CHARACTER_LIST || self.sources.iter().any(|source| *source as usize == index)
    }
}

/// Index of the list with texts of user and character, which is in the order of [`CharacterText`].
const CHARACTER_LIST: usize = 1;

/// Identity of a joined text: numbers of messages and of entry texts, and the included texts of user and
/// character.
type JoinedIdentity = (usize, usize, Vec<CharacterText>);

/// All texts that are searched for an entry, joined into one. Each begins with a mark, as in SillyTavern.
#[derive(Debug, Default)]
pub(super) struct JoinedText {
    /// Identity of the text; `None` before the first call of `join`.
    identity: Option<JoinedIdentity>,
    text: SearchText<'static>,
}

impl JoinedText {
    /// Mark before each text; before the first text, without the line break.
    const MARK: &'static str = "\n\u{1}";

    /// Joins the texts of `lists`, unless they are already joined.
    pub(super) fn join(
        &mut self,
        lists: &[&[SearchText<'_>]; 4],
        sources: &[CharacterText],
        budget: &mut ScanBudget<'_>,
    ) {
        // Only the lists of messages and of entry texts grow.
        let identity = Some((lists[0].len(), lists[3].len(), sources.to_vec()));
        if self.identity == identity {
            return;
        }
        let texts =
            |list: usize| lists[list].iter().enumerate().map(move |(index, text)| (list, index, text));
        let mut joined = String::new();
        for (list, index, text) in (0..lists.len()).flat_map(texts) {
            let is_wanted = !text.text.is_empty() && sources.iter().any(|source| *source as usize == index);
            if list == CHARACTER_LIST && !is_wanted {
                continue;
            }
            joined.push_str(if joined.is_empty() { &Self::MARK[1..] } else { Self::MARK });
            joined.push_str(&text.text);
        }
        if joined.is_empty() {
            joined.push_str(&Self::MARK[1..]);
        }
        // If the limit is reached here, the next search fails.
        budget.spend(joined.len() as u64 / TEXT_BYTES_PER_UNIT);
        self.text = SearchText { text: joined.into(), lowercase: String::new() };
        self.identity = identity;
    }
}

/// A key that is searched for in growing lists of texts.
#[derive(Debug)]
pub(super) struct KeySearch {
    key: CompiledKey,
    /// True once a text contains the key.
    is_found: bool,
    /// Position of the list with the text that contains the key.
    found_list: Option<usize>,
    /// Number of texts searched in each list of [`EntryTexts`].
    searched_counts: [usize; 4],
    /// Identity of the joined text that a regular expression searched last.
    searched_joined: Option<JoinedIdentity>,
}

impl KeySearch {
    fn new(key: CompiledKey) -> KeySearch {
        KeySearch { key, is_found: false, found_list: None, searched_counts: [0; 4], searched_joined: None }
    }

    /// Searches the texts for the key, within the cost limits; returns true if the key occurs. The lists must
    /// be those of the last call, or longer. Each text is searched once; a regular expression searches the
    /// joined text, again when it has grown.
    pub(super) fn search(&mut self, texts: &EntryTexts<'_, '_>, budget: &mut ScanBudget<'_>) -> bool {
        match &self.key {
            CompiledKey::Always => return true,
            CompiledKey::Never => return false,
            CompiledKey::Pattern(..) => {
                if self.searched_joined.is_some() && self.searched_joined == texts.joined_text.identity {
                    return self.is_found;
                }
                let cost = self.key.cost(&texts.joined_text.text);
                let is_first_search = self.searched_joined.is_none();
                if is_first_search || cost <= budget.repeats_left {
                    budget.repeats_left -= if is_first_search { 0 } else { cost };
                    self.searched_joined.clone_from(&texts.joined_text.identity);
                    self.searched_counts = texts.lists.map(<[SearchText<'_>]>::len);
                    self.is_found = budget.spend(cost)
                        && self.key.occurs_in(&texts.joined_text.text, &mut budget.has_truncated_text);
                    return self.is_found;
                }
                // Searching everything again costs too much, so only the new texts are searched below.
                budget.has_split_search = true;
            }
            CompiledKey::Text { .. } => {}
        }
        for (list_index, list) in texts.lists.iter().enumerate() {
            while !self.is_found && self.searched_counts[list_index] < list.len() {
                let text_index = self.searched_counts[list_index];
                let text = &list[text_index];
                if !texts.is_searched(list_index, text_index) {
                    self.searched_counts[list_index] += 1;
                    continue;
                }
                if !budget.spend(self.key.cost(text)) {
                    break;
                }
                self.is_found = self.key.occurs_in(text, &mut budget.has_truncated_text);
                self.found_list = self.is_found.then_some(list_index);
                self.searched_counts[list_index] += 1;
            }
        }
        self.is_found
    }

    /// Returns the position in [`EntryTexts`] of the list that contains the key; `None` if the key was not
    /// found, or was found in the joined text.
    pub(super) fn found_list(&self) -> Option<usize> {
        self.found_list
    }

    /// Returns true if the key searches the joined text.
    pub(super) fn is_pattern(&self) -> bool {
        matches!(self.key, CompiledKey::Pattern(..))
    }
}

/// A compiled key.
#[derive(Debug)]
enum CompiledKey {
    /// A text, in lower case if letter case is ignored. If `is_whole`, it matches whole words only.
    Text { text: String, is_case_sensitive: bool, is_whole: bool },
    /// A regular expression with the size it is charged as.
    Pattern(Box<Regex>, usize),
    /// White space only: occurs in every text.
    Always,
    /// Empty or invalid: never occurs.
    Never,
}

/// A text with its lower-case form, which is empty for joined texts because regular expressions need none.
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

/// Compiles `keys`, a list of keys of `entry`, as the entry and the settings require, and adds problems to
/// `warnings`. An invalid regular expression is searched as plain text if the entry allows plain text. Any
/// other expression that cannot be compiled never occurs.
pub(super) fn compile_keys(
    entry: &LoreEntry,
    keys: &[String],
    settings: &ScanSettings,
    budget: &mut ScanBudget<'_>,
    warnings: &mut Vec<String>,
) -> Vec<KeySearch> {
    let is_case_sensitive = entry.case_sensitive.unwrap_or(settings.case_sensitive);
    let is_whole = entry.whole_words.unwrap_or(settings.whole_words);
    let mut warn = |key: &str, problem: &str| {
        warnings.push(format!("{}: the key `{}` {problem}", entry.label(), clip(key, 60)));
    };
    let mut compile = |key: &String| {
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
            let text = if is_case_sensitive { key.to_owned() } else { key.to_lowercase() };
            CompiledKey::Text { text, is_case_sensitive, is_whole }
        };
        let (pattern, flags) = match split_pattern(key) {
            Some(parts) => parts,
            None if entry.regex => (key, if is_case_sensitive { "" } else { "i" }),
            None => return text(),
        };
        match compile_pattern(pattern, flags, budget) {
            Ok(pattern) => pattern,
            Err(CompileError::Invalid(reason)) if !entry.regex => {
                warn(
                    key,
                    &format!("is not a valid regular expression and is searched as plain text: {reason}"),
                );
                text()
            }
            Err(CompileError::Invalid(reason)) => {
                warn(key, &format!("is left out: it is not a valid regular expression: {reason}"));
                CompiledKey::Never
            }
            Err(CompileError::Other(reason)) => {
                warn(key, &format!("is left out: {reason}"));
                CompiledKey::Never
            }
        }
    };
    keys.iter().map(|key| KeySearch::new(compile(key))).collect()
}

/// Returns warnings about the keys of enabled entries. `attempts_left` limits the bytes charged for
/// compilation attempts.
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

/// Splits `/pattern/flags`; `None` if a flag is unknown or repeated, or a slash in the pattern is not
/// escaped.
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

/// Compiles a regular expression with the smallest size limit that suffices, and charges the budget.
fn compile_pattern(
    pattern: &str,
    flags: &str,
    budget: &mut ScanBudget<'_>,
) -> Result<CompiledKey, CompileError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(CompileError::Other(format!(
            "a regular expression may have at most {MAX_PATTERN_BYTES} bytes"
        )));
    }
    let unsupported =
        |reason: &str| CompileError::Other(format!("it cannot be matched in linear time ({reason})"));
    let pattern = match translate_pattern(pattern, flags) {
        Ok(pattern) => pattern,
        Err(PatternError::Invalid(reason)) => return Err(CompileError::Invalid(reason)),
        Err(PatternError::Unsupported(reason)) => return Err(unsupported(reason)),
    };
    for &size in COMPILED_SIZES {
        // Counts the expression and its memory while it searches.
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
                // The last line of the message names the cause.
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
    /// Returns the cost of a search, in bytes searched by the smallest regular expression.
    fn cost(&self, searched: &SearchText<'_>) -> u64 {
        let bytes = searched.text.len() as u64;
        match self {
            CompiledKey::Text { .. } | CompiledKey::Always | CompiledKey::Never => {
                bytes / TEXT_BYTES_PER_UNIT
            }
            CompiledKey::Pattern(_, size) => bytes.saturating_mul((size / COMPILED_SIZES[0]) as u64),
        }
    }

    /// Returns true if the key occurs in a text. Sets `is_truncated` if only the beginning of the text was
    /// searched.
    fn occurs_in(&self, searched: &SearchText<'_>, is_truncated: &mut bool) -> bool {
        match self {
            CompiledKey::Pattern(regex, size) => {
                let max_len = usize::try_from(MAX_SEARCH_PRODUCT / *size as u64).unwrap_or(usize::MAX);
                let search_len = searched.text.floor_char_boundary(max_len);
                *is_truncated |= search_len < searched.text.len();
                regex.is_match(&searched.text[..search_len])
            }
            CompiledKey::Text { text, is_case_sensitive, is_whole } => {
                let haystack = if *is_case_sensitive { &*searched.text } else { &searched.lowercase };
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

/// Returns true if `word`, which occurs at byte `at`, is not adjacent to an ASCII letter, a digit or `_`:
/// SillyTavern's rule for whole words.
fn is_whole_word(haystack: &str, at: usize, word: &str) -> bool {
    let is_word_byte =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let (before, after) = (&haystack.as_bytes()[..at], &haystack.as_bytes()[at + word.len()..]);
    !is_word_byte(before.last()) && !is_word_byte(after.first())
}
