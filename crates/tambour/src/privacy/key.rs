//! Detector of access keys.

use std::ops::Range;

use super::Detector;
use super::folded_text::{FoldedText, is_alnum};

/// Detects keys with the prefixes of well-known services, bearer tokens, and private keys.
pub(super) struct AccessKeyDetector;

/// Prefixes of keys, each with the minimum number of characters after it.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 12),
    ("sk_test_", 12),
    ("pk_live_", 12),
    ("rk_live_", 12),
    ("AKIA", 16),
    ("ASIA", 16),
    ("LTAI", 12),
    ("AKID", 16),
    ("AIza", 30),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxr-", 16),
    ("xoxs-", 16),
    ("hf_", 20),
    ("npm_", 30),
    ("eyJ", 30),
];

/// Minimum number of characters of a key, its prefix included.
const MIN_KEY_LEN: usize = 16;

/// Last words in names of secrets, as in `api_key=`.
const SECRET_NAMES: &[&str] = &["apikey", "key", "token", "secret", "password"];

impl Detector for AccessKeyDetector {
    fn kind(&self) -> &'static str {
        "access_key"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let chars = text.chars();
        let is_token_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/');
        let mut at = 0;
        while at < chars.len() {
            if !is_token_char(chars[at]) {
                at += 1;
                continue;
            }
            let mut start = at;
            while at < chars.len() && is_token_char(chars[at]) {
                at += 1;
            }
            let mut end = at;
            while end > start && matches!(chars[end - 1], '.' | '/' | '+') {
                end -= 1;
            }
            if end - start < MIN_KEY_LEN {
                continue;
            }
            // A path before the key is not part of it.
            if let Some(slash) = chars[start..end].iter().rposition(|&c| c == '/')
                && has_key_prefix(&chars[start + slash + 1..end])
            {
                start += slash + 1;
            }
            if has_key_prefix(&chars[start..end]) || is_named_secret(text, start, end) {
                found(text.byte_range(start..end));
            }
        }
        find_private_keys(text, found);
    }
}

fn has_key_prefix(token: &[char]) -> bool {
    PREFIXES.iter().any(|(prefix, min_len)| {
        let prefix_len = prefix.len();
        token.len() >= prefix_len + min_len
            && prefix.chars().eq(token[..prefix_len].iter().copied())
            && token.iter().any(char::is_ascii_digit)
            && token[prefix_len..].iter().filter(|c| c.is_ascii_alphanumeric()).count() >= *min_len
            // A prefix without `-` or `_` may also begin other tokens; a `+` or `/` shows that it does.
            && (prefix.contains(['-', '_']) || token.iter().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)))
    })
}

/// Returns whether the token `start..end` has letters and digits and follows the name of a secret: `Bearer
/// TOKEN`, `api_key=TOKEN`.
fn is_named_secret(text: &FoldedText<'_>, start: usize, end: usize) -> bool {
    let token = &text.chars()[start..end];
    let is_mixed = token.iter().any(char::is_ascii_digit) && token.iter().any(char::is_ascii_alphabetic);
    if !is_mixed || start == 0 || is_alnum(text.char_before(start)) {
        return false;
    }
    let name = text.word_before(start);
    let is_assignment = |c: Option<char>| matches!(c, Some('=' | ':'));
    let is_assigned = is_assignment(text.char_before(start))
        || (text.char_before(start) == Some(' ') && is_assignment(text.char_before(start - 1)));
    name == "bearer" || (is_assigned && SECRET_NAMES.contains(&name.as_str()) && looks_random(token))
}

/// Returns whether letters and digits alternate often, as in a random token and unlike in words with a year.
fn looks_random(token: &[char]) -> bool {
    /// Minimum number of changes between letters and digits.
    const MIN_TURNS: usize = 4;
    let mut digit_flags = token.iter().filter(|c| c.is_ascii_alphanumeric()).map(char::is_ascii_digit);
    let Some(mut was_digit) = digit_flags.next() else { return false };
    digit_flags.filter(|&is_digit| std::mem::replace(&mut was_digit, is_digit) != is_digit).count()
        >= MIN_TURNS
}

/// Finds the first lines of private keys in PEM form, such as `-----BEGIN RSA PRIVATE KEY-----`.
fn find_private_keys(text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
    const START: &str = "-----BEGIN ";
    const END: &[u8] = b"PRIVATE KEY-----";
    /// Maximum length of such a line in bytes; known kinds of keys have shorter ones.
    const MAX_LINE_LEN: usize = 48;
    let bytes = text.raw().as_bytes();
    for (start, _) in text.raw().match_indices(START) {
        let window = &bytes[start..bytes.len().min(start + MAX_LINE_LEN)];
        if let Some(at) = window.windows(END.len()).position(|piece| piece == END) {
            found(start..start + at + END.len());
        }
    }
}
