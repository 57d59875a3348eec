//! Detectors of numbers with a check digit: identity numbers and bank cards.

use std::ops::Range;

use super::Detector;
use super::digits::{DigitGroup, GroupGap, digit_groups, is_separate, join_digits};
use super::folded_text::{FoldedText, is_alnum};

/// Detects identity numbers of mainland China by their check digit.
pub(super) struct NationalIdDetector;

impl Detector for NationalIdDetector {
    fn kind(&self) -> &'static str {
        "national_id"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let groups = digit_groups(text);
        for at in 0..groups.len() {
            // In one group, or in three: place, birthday and serial number.
            for group_count in [1, 3] {
                let Some(window) = groups.get(at..at + group_count) else { continue };
                if window[1..].iter().any(|group| !matches!(group.gap, GroupGap::Space | GroupGap::Dash)) {
                    continue;
                }
                let mut digits = join_digits(text, window);
                let mut end = window[group_count - 1].end;
                if digits.len() == 17 && matches!(text.char_at(end), Some('x' | 'X')) {
                    digits.push('X');
                    end += 1;
                }
                let has_valid_shape = group_count == 1 || (window[0].len(), window[1].len()) == (6, 8);
                if has_valid_shape
                    && is_identity_number(&digits)
                    && !is_alnum(text.char_before(window[0].start))
                    && !is_alnum(text.char_at(end))
                {
                    found(text.byte_range(window[0].start..end));
                }
            }
        }
    }
}

/// Checks ISO 7064 MOD 11-2 over eighteen characters, and that the birthday is possible.
fn is_identity_number(digits: &str) -> bool {
    let bytes = digits.as_bytes();
    if bytes.len() != 18 {
        return false;
    }
    let mut sum = 0;
    for &byte in bytes {
        // The sum doubles before each character; the check digit makes the final sum 1.
        let value = if byte == b'X' { 10 } else { u32::from(byte - b'0') };
        sum = (sum * 2 + value) % 11;
    }
    let (century, month, day) = (&digits[6..8], &digits[10..12], &digits[12..14]);
    sum == 1
        && matches!(century, "18" | "19" | "20")
        && ("01"..="12").contains(&month)
        && ("01"..="31").contains(&day)
}

/// Detects bank cards by their check digit.
pub(super) struct BankCardDetector;

impl Detector for BankCardDetector {
    fn kind(&self) -> &'static str {
        "bank_card"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let groups = digit_groups(text);
        let mut at = 0;
        while at < groups.len() {
            let group_count = (1..=5.min(groups.len() - at))
                .rev()
                .find(|&group_count| is_bank_card(text, &groups[at..at + group_count]));
            if let Some(group_count) = group_count {
                found(text.byte_range(groups[at].start..groups[at + group_count - 1].end));
            }
            at += group_count.unwrap_or(1);
        }
    }
}

/// Returns whether all the groups together are a card number.
fn is_bank_card(text: &FoldedText<'_>, groups: &[DigitGroup]) -> bool {
    let has_valid_gaps =
        groups[1..].iter().all(|group| matches!(group.gap, GroupGap::Space | GroupGap::Dash));
    let lengths: Vec<usize> = groups.iter().map(DigitGroup::len).collect();
    // Unbroken, or grouped as it is printed on cards.
    let has_valid_shape =
        matches!(lengths[..], [13..=19] | [4, 4, 4, 4] | [4, 4, 4, 4, 1..=3] | [4, 6, 4 | 5] | [6, 13]);
    if !has_valid_gaps || !has_valid_shape || !is_separate(text, groups) {
        return false;
    }
    let digits = join_digits(text, groups);
    // First digits and lengths of the card networks.
    let has_issuer = matches!(
        (digits.as_bytes(), digits.len()),
        ([b'4', ..], 13 | 16 | 19)
            | ([b'5' | b'6' | b'2', ..], 16)
            | ([b'3', b'4' | b'7', ..], 15)
            | ([b'3', b'0' | b'6' | b'8', ..], 14)
            | ([b'3', b'5', ..], 16)
            | ([b'6', b'2', ..], 17..=19)
            | ([b'9', ..], 19)
    );
    has_issuer && passes_luhn(&digits)
}

/// Checks the last digit by the Luhn algorithm (ISO/IEC 7812).
fn passes_luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(index, byte)| {
            let value = u32::from(byte - b'0');
            // Every second digit counts as the sum of the digits of its double.
            if index % 2 == 0 { value } else { value * 2 / 10 + value * 2 % 10 }
        })
        .sum();
    sum > 0 && sum.is_multiple_of(10)
}
