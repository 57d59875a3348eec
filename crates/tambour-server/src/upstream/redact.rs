//! Redaction of services' error texts: removes keys, tokens and ids of organisations.

use std::ops::Range;
use std::sync::LazyLock;

use tambour::privacy::{Detector, DetectorSet, FoldedText};

/// Most characters of the text that are examined.
const MAX_EXAMINED_CHARS: usize = 4000;
/// Most characters that are kept.
const MAX_KEPT_CHARS: usize = 300;

/// Returns the text, shortened, with `[access_key]` in place of every possible secret.
pub(crate) fn redact(text: &str) -> String {
    static TOKENS: LazyLock<DetectorSet> =
        LazyLock::new(|| DetectorSet::empty().with_detector(SecretDetector));
    static KNOWN: LazyLock<DetectorSet> = LazyLock::new(DetectorSet::default);
    // Redacted before truncating: half a key is not recognized.
    let text: String = text.chars().take(MAX_EXAMINED_CHARS).collect();
    let text = TOKENS.generalise(&text);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    // Addresses and numbers are kept: the error may be about them.
    for found in KNOWN.scan(&text).into_iter().filter(|found| found.kind == SECRET_KIND) {
        out.push_str(&text[from..found.range.start]);
        out.push_str("[access_key]");
        from = found.range.end;
    }
    out.push_str(&text[from..]);
    out.chars().take(MAX_KEPT_CHARS).collect()
}

/// Kind under which the library reports keys.
const SECRET_KIND: &str = "access_key";

/// Detector that is stricter than the library's, since an error text can spare any token: it matches
/// random-looking text, and anything after an id prefix, even masked or short.
struct SecretDetector;

/// Prefixes of keys: whatever follows is redacted.
const KEY_PREFIXES: [&str; 3] = ["sk-", "sk_", "AIza"];
/// Prefixes of ids, which also begin ordinary words.
const ID_PREFIXES: [&str; 8] = ["org-", "org_", "proj-", "proj_", "acct_", "user-", "key-", "key_"];

impl Detector for SecretDetector {
    fn kind(&self) -> &'static str {
        SECRET_KIND
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let raw = text.raw();
        let part = |c: char| c.is_ascii_alphanumeric() || "-_+/=*.~".contains(c);
        let (mut from, mut bearer) = (0, false);
        while let Some(start) = raw[from..].find(part).map(|at| from + at) {
            let end = raw[start..].find(|c| !part(c)).map_or(raw.len(), |at| start + at);
            let run = &raw[start..end];
            // A full stop ends a sentence, and `=` separates a name from its value.
            let trimmed = run.trim_end_matches(['.', '=']);
            let prefix_length = trimmed.rfind('=').map_or(0, |at| at + 1);
            let token = &trimmed[prefix_length..];
            if is_secret(token) || (bearer && token.len() >= 4) {
                found(start + prefix_length..start + trimmed.len());
            }
            bearer = token.eq_ignore_ascii_case("bearer");
            from = end;
        }
    }
}

fn is_secret(token: &str) -> bool {
    let strip_prefix_of = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| token.strip_prefix(*prefix));
    let digits = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    if strip_prefix_of(&KEY_PREFIXES).is_some_and(|rest| rest.len() >= 3) {
        return true;
    }
    if strip_prefix_of(&ID_PREFIXES).is_some_and(|rest| {
        rest.len() >= 6 && (digits(rest) || rest.contains('*') || has_inner_capital(rest))
    }) {
        return true;
    }
    // A long alphanumeric run. Model names contain separators and few changes between letters and digits.
    let is_random_run = |is_random_run: &str| is_random_run.len() >= 20 && count_changes(is_random_run) >= 4;
    token.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random_run)
        || (token.len() >= 32 && has_inner_capital(token) && count_changes(token) >= 8)
        || is_hexadecimal(token)
}

/// Returns `true` if a lower-case letter is followed by a capital.
fn has_inner_capital(token: &str) -> bool {
    let bytes = token.as_bytes();
    bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Counts the changes between letters and digits.
fn count_changes(token: &str) -> usize {
    let classes: Vec<bool> =
        token.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.is_ascii_digit()).collect();
    classes.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Returns `true` for a long hexadecimal number, with or without hyphens.
fn is_hexadecimal(token: &str) -> bool {
    let digits = token.bytes().filter(u8::is_ascii_hexdigit).count();
    digits >= 24
        && token.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && count_changes(token) > 0
}
