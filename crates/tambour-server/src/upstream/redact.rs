//! Redaction of services' error texts: removes keys, tokens and ids of organisations.

use std::ops::Range;
use std::sync::LazyLock;

use tambour::privacy::{Detector, Privacy, Text};

/// Most characters of the text that are examined.
const LOOKED_AT: usize = 4000;
/// Most characters that are kept.
const KEPT: usize = 300;

/// Returns the text, shortened, with `[access_key]` in place of every possible secret.
pub(crate) fn redacted(text: &str) -> String {
    static TOKENS: LazyLock<Privacy> = LazyLock::new(|| Privacy::none().with(Tokens));
    static KNOWN: LazyLock<Privacy> = LazyLock::new(Privacy::default);
    // Redacted before truncating: half a key is not recognized.
    let text: String = text.chars().take(LOOKED_AT).collect();
    let text = TOKENS.generalise(&text);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    // Addresses and numbers are kept: the error may be about them.
    for found in KNOWN.scan(&text).into_iter().filter(|found| found.kind == KIND) {
        out.push_str(&text[from..found.range.start]);
        out.push_str("[access_key]");
        from = found.range.end;
    }
    out.push_str(&text[from..]);
    out.chars().take(KEPT).collect()
}

/// Kind under which the library reports keys.
const KIND: &str = "access_key";

/// Detector that is stricter than the library's, since an error text can spare any token: it matches
/// random-looking text, and anything after an id prefix, even masked or short.
struct Tokens;

/// Prefixes of keys: whatever follows is redacted.
const KEYS: [&str; 3] = ["sk-", "sk_", "AIza"];
/// Prefixes of ids, which also begin ordinary words.
const IDS: [&str; 8] = ["org-", "org_", "proj-", "proj_", "acct_", "user-", "key-", "key_"];

impl Detector for Tokens {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn find(&self, text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let raw = text.raw();
        let part = |c: char| c.is_ascii_alphanumeric() || "-_+/=*.~".contains(c);
        let (mut from, mut bearer) = (0, false);
        while let Some(start) = raw[from..].find(part).map(|at| from + at) {
            let end = raw[start..].find(|c| !part(c)).map_or(raw.len(), |at| start + at);
            let run = &raw[start..end];
            // A full stop ends a sentence, and `=` separates a name from its value.
            let kept = run.trim_end_matches(['.', '=']);
            let skipped = kept.rfind('=').map_or(0, |at| at + 1);
            let token = &kept[skipped..];
            if secret(token) || (bearer && token.len() >= 4) {
                found(start + skipped..start + kept.len());
            }
            bearer = token.eq_ignore_ascii_case("bearer");
            from = end;
        }
    }
}

fn secret(token: &str) -> bool {
    let behind = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| token.strip_prefix(*prefix));
    let digits = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    if behind(&KEYS).is_some_and(|rest| rest.len() >= 3) {
        return true;
    }
    if behind(&IDS).is_some_and(|rest| rest.len() >= 6 && (digits(rest) || rest.contains('*') || mixed(rest)))
    {
        return true;
    }
    // A long alphanumeric run. Model names contain separators and few changes between letters and digits.
    let run = |run: &str| run.len() >= 20 && turns(run) >= 4;
    token.split(|c: char| !c.is_ascii_alphanumeric()).any(run)
        || (token.len() >= 32 && mixed(token) && turns(token) >= 8)
        || hexadecimal(token)
}

/// Returns `true` if a lower-case letter is followed by a capital.
fn mixed(token: &str) -> bool {
    let bytes = token.as_bytes();
    bytes.windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase())
}

/// Counts the changes between letters and digits.
fn turns(token: &str) -> usize {
    let signs: Vec<bool> =
        token.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.is_ascii_digit()).collect();
    signs.windows(2).filter(|two| two[0] != two[1]).count()
}

/// Returns `true` for a long hexadecimal number, with or without hyphens.
fn hexadecimal(token: &str) -> bool {
    let digits = token.bytes().filter(u8::is_ascii_hexdigit).count();
    digits >= 24 && token.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') && turns(token) > 0
}
