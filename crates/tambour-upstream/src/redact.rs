//! Redaction of error texts of services: keys, access tokens and ids of organisations are removed. "Library"
//! means the crate `tambour` with its detectors of private data; a `token` of a text is a run of characters
//! without blanks.

use std::ops::Range;
use std::sync::LazyLock;

use tambour::privacy::{Detector, DetectorSet, FoldedText};

/// Maximum number of characters of a text that are examined.
const MAX_EXAMINED_CHARS: usize = 4000;
/// Maximum number of characters of the redacted text.
const MAX_KEPT_CHARS: usize = 300;

/// Returns the text, shortened, with `[access_key]` in place of every possible secret.
pub fn redact(text: &str) -> String {
    static STRICT_DETECTORS: LazyLock<DetectorSet> =
        LazyLock::new(|| DetectorSet::empty().with_detector(SecretDetector));
    static LIBRARY_DETECTORS: LazyLock<DetectorSet> = LazyLock::new(DetectorSet::default);
    // The text is redacted before it is cut to its final length, since half a key would not be recognised.
    let text: String = text.chars().take(MAX_EXAMINED_CHARS).collect();
    let text = STRICT_DETECTORS.generalise(&text);
    let mut out = String::with_capacity(text.len());
    let mut kept_from = 0;
    // Only keys are removed, not addresses and numbers: the error may be about them.
    for secret in LIBRARY_DETECTORS.scan(&text).into_iter().filter(|found| found.kind == SECRET_KIND) {
        out.push_str(&text[kept_from..secret.range.start]);
        out.push_str("[access_key]");
        kept_from = secret.range.end;
    }
    out.push_str(&text[kept_from..]);
    out.chars().take(MAX_KEPT_CHARS).collect()
}

/// Kind under which the detectors of the library report keys.
const SECRET_KIND: &str = "access_key";

/// Detector that is stricter than the detectors of the library, since an error text loses little without a
/// token. It matches random-looking text, and text after a prefix of keys or ids, even if it is masked or
/// short.
struct SecretDetector;

/// Prefixes of keys: a token with three or more characters after one of these is redacted.
const KEY_PREFIXES: [&str; 3] = ["sk-", "sk_", "AIza"];
/// Prefixes of ids. They also begin ordinary words, so what follows must look like an id.
const ID_PREFIXES: [&str; 8] = ["org-", "org_", "proj-", "proj_", "acct_", "user-", "key-", "key_"];

impl Detector for SecretDetector {
    fn kind(&self) -> &'static str {
        SECRET_KIND
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let raw = text.raw();
        let is_token_char = |c: char| c.is_ascii_alphanumeric() || "-_+/=*.~".contains(c);
        let (mut from, mut follows_bearer) = (0, false);
        while let Some(start) = raw[from..].find(is_token_char).map(|offset| from + offset) {
            let end = raw[start..].find(|c| !is_token_char(c)).map_or(raw.len(), |offset| start + offset);
            let run = &raw[start..end];
            // A full stop ends a sentence, and `=` separates a name from its value.
            let trimmed = run.trim_end_matches(['.', '=']);
            let value_start = trimmed.rfind('=').map_or(0, |offset| offset + 1);
            let token = &trimmed[value_start..];
            if is_secret(token) || (follows_bearer && token.len() >= 4) {
                found(start + value_start..start + trimmed.len());
            }
            follows_bearer = token.eq_ignore_ascii_case("bearer");
            from = end;
        }
    }
}

/// Returns `true` if a token may be a key, another secret or an id. The lengths and numbers are chosen so
/// that words, names of models and URLs do not match.
fn is_secret(token: &str) -> bool {
    let after_prefix = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| token.strip_prefix(*prefix));
    let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    if after_prefix(&KEY_PREFIXES).is_some_and(|key| key.len() >= 3) {
        return true;
    }
    if after_prefix(&ID_PREFIXES)
        .is_some_and(|id| id.len() >= 6 && (has_digit(id) || id.contains('*') || has_inner_capital(id)))
    {
        return true;
    }
    // A long alphanumeric run. Model names contain separators and few changes between letters and digits.
    let is_random_run = |run: &str| run.len() >= 20 && count_changes(run) >= 4;
    token.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random_run)
        || (token.len() >= 32 && has_inner_capital(token) && count_changes(token) >= 8)
        || is_hexadecimal(token)
}

/// Returns `true` if a lower-case letter is followed by a capital.
fn has_inner_capital(token: &str) -> bool {
    let bytes = token.as_bytes();
    bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Counts the changes between letters and digits; other characters are left out.
fn count_changes(token: &str) -> usize {
    let is_digit: Vec<bool> =
        token.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.is_ascii_digit()).collect();
    is_digit.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Returns `true` for a long hexadecimal number of letters and digits, with or without hyphens.
fn is_hexadecimal(token: &str) -> bool {
    let digits = token.bytes().filter(u8::is_ascii_hexdigit).count();
    digits >= 24
        && token.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && count_changes(token) > 0
}
