//! Detector of e-mail addresses.

use std::ops::Range;

use super::Detector;
use super::folded_text::{FoldedText, is_alnum};

/// Detects `name@host.domain`, but not names of packages and users (`lodash@4.17.21`, `@name`) or
/// `git@host:path`.
pub(super) struct EmailDetector;

impl Detector for EmailDetector {
    fn kind(&self) -> &'static str {
        "email"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let chars = text.chars();
        for at in (0..chars.len()).filter(|&at| chars[at] == '@') {
            // Both scans end at the next `@`, so they are linear in total.
            let mut start = at;
            while start > 0 && is_local_char(chars[start - 1]) {
                start -= 1;
            }
            while start < at && !chars[start].is_ascii_alphanumeric() {
                start += 1;
            }
            if start == at || chars[at - 1] == '.' {
                continue;
            }
            let Some(end) = domain_end(text, at + 1) else { continue };
            let is_git_remote =
                chars[start..at].iter().collect::<String>() == "git" && text.char_at(end) == Some(':');
            if !is_git_remote {
                found(text.byte_range(start..end));
            }
        }
    }
}

fn is_local_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-')
}

/// Index after the domain that starts at `from`: labels separated by dots, the last one of letters only.
/// `None` if there is no domain.
fn domain_end(text: &FoldedText<'_>, from: usize) -> Option<usize> {
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
        if text.char_at(at) != Some('.') || !is_alnum(text.char_at(at + 1)) {
            return end;
        }
        at += 1;
    }
}
