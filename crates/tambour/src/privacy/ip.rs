//! Detector of IP addresses.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::Detector;
use super::folded_text::{FoldedText, is_alnum, is_digit};

/// Detects IPv4 addresses, with parts up to 255, and IPv6 addresses, but not versions of three or five parts,
/// ratios and times. A version of four parts counts as an address, unless `v` or a word such as `version`
/// precedes it.
pub(super) struct IpDetector;

impl Detector for IpDetector {
    fn kind(&self) -> &'static str {
        "ip"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let chars = text.chars();
        let is_address_char = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':');
        let mut at = 0;
        while at < chars.len() {
            if !is_address_char(chars[at]) {
                at += 1;
                continue;
            }
            let start = at;
            while at < chars.len() && is_address_char(chars[at]) {
                at += 1;
            }
            let run = &chars[start..at];
            if run.iter().filter(|&&c| c == ':').count() >= 2
                && let Some(range) = find_ipv6(text, start, at)
            {
                found(text.byte_range(range));
            } else if run.contains(&'.') {
                find_ipv4(text, start, at, found);
            }
        }
    }
}

/// IPv6 address in the run `start..end`, without sentence punctuation around it.
fn find_ipv6(text: &FoldedText<'_>, mut start: usize, mut end: usize) -> Option<Range<usize>> {
    /// Length of the longest form, an IPv6 address that ends in an IPv4 address.
    const MAX_LEN: usize = 45;
    let chars = text.chars();
    let ends_with_punctuation =
        |run: &[char]| run.ends_with(&['.']) || (run.ends_with(&[':']) && !run.ends_with(&[':', ':']));
    while ends_with_punctuation(&chars[start..end]) {
        end -= 1;
    }
    // The colon in `address:2001:db8::1` is not part of the address, but both in `::1` are.
    if text.char_at(start) == Some(':') && text.char_at(start + 1) != Some(':') {
        start += 1;
    }
    if start >= end
        || end - start > MAX_LEN
        || is_alnum(text.char_before(start))
        || is_alnum(text.char_at(end))
    {
        return None;
    }
    let run: String = chars[start..end].iter().collect();
    run.parse::<Ipv6Addr>().ok()?;
    // `a::b` is a path in a program, and `12::30` a typing error.
    let groups = run.split([':', '.']);
    let has_long_group =
        groups.clone().any(|group| group.len() >= 3 && group.contains(|c: char| c.is_ascii_digit()));
    let is_loopback = run == "::1";
    let has_four_groups = groups.filter(|group| !group.is_empty()).count() >= 4;
    let is_mixed =
        run.contains(|c: char| c.is_ascii_digit()) && run.contains(|c: char| c.is_ascii_alphabetic());
    (has_long_group || is_loopback || has_four_groups || is_mixed).then_some(start..end)
}

/// Finds IPv4 addresses in the run `start..end`.
fn find_ipv4(text: &FoldedText<'_>, start: usize, end: usize, found: &mut dyn FnMut(Range<usize>)) {
    let chars = text.chars();
    let mut at = start;
    while at < end {
        // A token of digits and dots.
        let token_start = at;
        while at < end && (chars[at].is_ascii_digit() || chars[at] == '.') {
            at += 1;
        }
        if token_start == at {
            at += 1;
            continue;
        }
        let mut trimmed_end = at;
        while trimmed_end > token_start && chars[trimmed_end - 1] == '.' {
            trimmed_end -= 1;
        }
        let mut octet_count = 0;
        let is_valid = trimmed_end > token_start
            && chars[token_start..trimmed_end].split(|&c| c == '.').all(|part| {
                octet_count += 1;
                is_octet(part)
            });
        let touches_word = is_alnum(text.char_before(token_start))
            || text.char_before(token_start) == Some('_')
            || is_alnum(text.char_at(trimmed_end));
        if is_valid
            && octet_count == 4
            && !touches_word
            && !is_digit(text.char_at(trimmed_end))
            && !is_version(text, token_start)
        {
            found(text.byte_range(token_start..trimmed_end));
        }
    }
}

/// Returns whether the word before `start` marks the numbers as a version or a section.
fn is_version(text: &FoldedText<'_>, start: usize) -> bool {
    let word = text.word_before(start);
    let chars = text.chars();
    let has_chinese_word = start >= 2 && chars[start - 2..start] == ['版', '本'];
    has_chinese_word || matches!(word.as_str(), "version" | "ver" | "section" | "release" | "oid")
}

/// Returns whether a part is a number from 0 to 255 without leading zeros.
fn is_octet(digits: &[char]) -> bool {
    // Only four digits are read, since more might overflow. The length is checked below.
    let value = digits.iter().take(4).fold(0, |value, c| value * 10 + c.to_digit(10).unwrap_or(0));
    matches!(digits.len(), 1..=3) && value <= 255 && (digits.len() == 1 || digits[0] != '0')
}
