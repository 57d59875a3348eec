//! Detector of e-mail addresses.

use std::ops::Range;

use super::Detector;
use super::text::{Text, alnum};

/// Detects `name@host.domain`, but not names of packages and users (`lodash@4.17.21`, `@name`) or
/// `git@host:path`.
pub(super) struct Email;

impl Detector for Email {
    fn kind(&self) -> &'static str {
        "email"
    }

    fn find(&self, text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let chars = text.chars();
        for at in (0..chars.len()).filter(|&at| chars[at] == '@') {
            // Both scans end at the next `@`, so they are linear in total.
            let mut start = at;
            while start > 0 && local(chars[start - 1]) {
                start -= 1;
            }
            while start < at && !chars[start].is_ascii_alphanumeric() {
                start += 1;
            }
            if start == at || chars[at - 1] == '.' {
                continue;
            }
            let Some(end) = domain(text, at + 1) else { continue };
            let git = chars[start..at].iter().collect::<String>() == "git" && text.at(end) == Some(':');
            if !git {
                found(text.bytes(start..end));
            }
        }
    }
}

fn local(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-')
}

/// End of the domain that starts at `from`: labels separated by dots, the last one of letters.
fn domain(text: &Text<'_>, from: usize) -> Option<usize> {
    let chars = text.chars();
    let mut at = from;
    let mut end = None;
    loop {
        let start = at;
        while at < chars.len() && (chars[at].is_ascii_alphanumeric() || chars[at] == '-') {
            at += 1;
        }
        let label = &chars[start..at];
        if label.is_empty() {
            return end;
        }
        if start > from && label.len() >= 2 && label.iter().all(char::is_ascii_alphabetic) {
            end = Some(at);
        }
        if text.at(at) != Some('.') || !alnum(text.at(at + 1)) {
            return end;
        }
        at += 1;
    }
}
