//! Detector of phone numbers.

use std::ops::Range;

use super::Detector;
use super::digits::{DigitGroup, GroupGap, continues_number, digit_groups, is_separate, join_digits};
use super::folded_text::{FoldedText, is_alnum, is_digit};

/// Detects phone numbers with a country code, and these national forms: numbers of mainland China and North
/// America, British mobile numbers and those with a five-digit area code, and Japanese mobile numbers. Seven
/// or eight digits alone count only after a word that announces a phone number.
pub(super) struct PhoneDetector;

/// Consecutive groups of digits in the text, tried as one number.
struct GroupWindow<'a> {
    text: &'a FoldedText<'a>,
    groups: &'a [DigitGroup],
    /// Gap between the last group and the next one in the text.
    gap_after: GroupGap,
}

impl Detector for PhoneDetector {
    fn kind(&self) -> &'static str {
        "phone"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let groups = digit_groups(text);
        let mut at = 0;
        while at < groups.len() {
            match match_phone(text, &groups[at..]) {
                Some((start, group_count)) => {
                    let mut end = groups[at + group_count - 1].end;
                    let mut next_group = at + group_count;
                    // Extension number.
                    if let Some(extension) = groups.get(next_group)
                        && extension.gap == GroupGap::Dash
                        && (2..=5).contains(&extension.len())
                        && !is_alnum(text.char_at(extension.end))
                    {
                        end = extension.end;
                        next_group += 1;
                    }
                    found(text.byte_range(start..end));
                    at = next_group;
                }
                None => at += 1,
            }
        }
    }
}

/// Matches a phone number that starts with the first of `groups`; returns the index of its first character
/// and its number of groups.
fn match_phone(text: &FoldedText<'_>, groups: &[DigitGroup]) -> Option<(usize, usize)> {
    let first_digit = groups[0].start;
    if let Some(plus) = find_plus(text, first_digit) {
        return match_international(text, groups, 0).map(|group_count| (plus, group_count));
    }
    if text.chars()[first_digit..].starts_with(&['0', '0'])
        && let Some(group_count) = match_international(text, groups, 2)
        && is_separate(text, &groups[..group_count])
    {
        return Some((first_digit, group_count));
    }
    let start = if text.char_before(first_digit) == Some('(') { first_digit - 1 } else { first_digit };
    // `86 138 0013 8000`, `1-415-555-0123`: the country code is part of the number.
    let country_code = join_digits(text, &groups[..1]);
    if groups.len() > 1 && groups[1].gap != GroupGap::Break {
        let national_groups = &groups[1..];
        let national_count = match country_code.as_str() {
            "86" | "086" => match_national(text, national_groups, is_chinese_mobile)
                .or_else(|| match_national(text, national_groups, is_chinese_landline)),
            "1" => match_national(text, national_groups, is_american),
            _ => None,
        };
        // A dot after the country code separates it and is no decimal point.
        if let Some(group_count) =
            national_count.filter(|_| is_separate(text, &groups[..1]) || groups[1].gap == GroupGap::Dot)
        {
            return Some((start, group_count + 1));
        }
    }
    match_national(text, groups, is_chinese_mobile)
        .or_else(|| match_national(text, groups, is_chinese_landline))
        .or_else(|| match_national(text, groups, is_british_or_japanese))
        .or_else(|| match_national(text, groups, is_american))
        .or_else(|| match_national(text, groups, is_announced))
        .map(|group_count| (start, group_count))
}

/// Index of the `+` before the digit at `first_digit`, unless it is part of a word (`C++ 11`). At most two
/// `(` may be between them.
fn find_plus(text: &FoldedText<'_>, first_digit: usize) -> Option<usize> {
    let mut at = first_digit;
    while at > 0 && first_digit - at < 2 && text.char_before(at) == Some('(') {
        at -= 1;
    }
    if text.char_before(at) != Some('+') {
        return None;
    }
    at -= 1;
    (!is_alnum(text.char_before(at)) && text.char_before(at) != Some('+')).then_some(at)
}

/// Number of groups of an international number, which begins with `+`, or with `00` if `prefix_len` is 2.
fn match_international(text: &FoldedText<'_>, groups: &[DigitGroup], prefix_len: usize) -> Option<usize> {
    /// Maximum number of digits, country code included, by ITU-T E.164.
    const MAX_DIGITS: usize = 15;
    /// Maximum number of groups tried.
    const MAX_GROUPS: usize = 7;
    let mut best = None;
    for group_count in 1..=groups.len().min(MAX_GROUPS) {
        let group = &groups[group_count - 1];
        if group_count > 1 && group.gap == GroupGap::Break {
            break;
        }
        let digits = join_digits(text, &groups[..group_count]);
        let digits = digits.get(prefix_len..).unwrap_or("");
        if digits.len() > MAX_DIGITS {
            break;
        }
        // A group of one digit is possible as the country code, directly after it, and as the `(0)` of a
        // national prefix.
        if group.len() == 1 && group_count > 2 && group.gap != GroupGap::Paren {
            break;
        }
        // `has_fixed_len`: numbers of this country have one length, so a longer one need not be tried.
        // The first arms are North America, Russia with Kazakhstan, and mobile numbers of mainland China.
        let (is_fit, has_fixed_len) = match digits.as_bytes() {
            [b'1', area, ..] => (digits.len() == 11 && *area > b'1', true),
            [b'7', ..] => (digits.len() == 11, true),
            [b'8', b'6', b'1', b'3'..=b'9', ..] => (digits.len() == 13, true),
            [b'8', b'6', ..] => ((10..=13).contains(&digits.len()), false),
            _ if !has_country_code(digits) => (false, false),
            _ => (if prefix_len == 0 { digits.len() >= 8 } else { (10..=13).contains(&digits.len()) }, false),
        };
        // A dot after the group may be the separator of the next one.
        let is_continued = continues_number(text, group.end)
            && groups.get(group_count).is_none_or(|next| next.gap != GroupGap::Dot);
        if is_fit && !is_alnum(text.char_at(group.end)) && !is_continued {
            best = Some(group_count);
            if has_fixed_len {
                break;
            }
        }
    }
    best
}

/// Returns whether the digits begin with a country code, judged by its first two digits.
fn has_country_code(digits: &str) -> bool {
    const FIRST_TWO_DIGITS: &[&str] = &[
        "20", "21", "22", "23", "24", "25", "26", "27", "29", "30", "31", "32", "33", "34", "35", "36", "37",
        "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53", "54",
        "55", "56", "57", "58", "59", "60", "61", "62", "63", "64", "65", "66", "67", "68", "69", "80", "81",
        "82", "84", "85", "87", "88", "90", "91", "92", "93", "94", "95", "96", "97", "98", "99",
    ];
    digits.get(..2).is_some_and(|start| FIRST_TWO_DIGITS.contains(&start))
}

/// Smallest number of groups, at most four, that `has_form` accepts as a national number.
fn match_national(
    text: &FoldedText<'_>,
    groups: &[DigitGroup],
    has_form: fn(&GroupWindow<'_>) -> bool,
) -> Option<usize> {
    const MAX_GROUPS: usize = 4;
    (1..=groups.len().min(MAX_GROUPS))
        .take_while(|&group_count| group_count == 1 || groups[group_count - 1].gap != GroupGap::Break)
        .find(|&group_count| {
            let window = GroupWindow {
                text,
                groups: &groups[..group_count],
                gap_after: groups.get(group_count).map_or(GroupGap::Break, |group| group.gap),
            };
            is_separate(text, window.groups) && has_form(&window)
        })
}

impl GroupWindow<'_> {
    fn digits(&self) -> String {
        join_digits(self.text, self.groups)
    }

    fn lengths(&self) -> Vec<usize> {
        self.groups.iter().map(DigitGroup::len).collect()
    }

    /// Gap between all groups; `None` if the gaps differ or there is only one group.
    fn common_gap(&self) -> Option<GroupGap> {
        let gap = self.groups.get(1)?.gap;
        self.groups[1..].iter().all(|group| group.gap == gap).then_some(gap)
    }

    /// Returns whether the number continues before or after the window with the same separator.
    fn is_continued(&self) -> bool {
        let gap = self.groups.get(1).map_or(GroupGap::Break, |group| group.gap);
        gap != GroupGap::Break && (self.gap_after == gap || self.groups[0].gap == gap)
    }
}

/// Mobile numbers of mainland China: 13800138000, 138 0013 8000.
fn is_chinese_mobile(window: &GroupWindow<'_>) -> bool {
    let digits = window.digits();
    let digits = match digits.len() {
        13 => digits.strip_prefix("86").unwrap_or(""),
        _ => &digits,
    };
    let [b'1', b'3'..=b'9', ..] = digits.as_bytes() else { return false };
    let has_shape = match window.lengths()[..] {
        [11 | 13] => true,
        [3, 4, 4] => {
            window.common_gap().is_some()
                && !(window.common_gap() == Some(GroupGap::Dash) && window.is_continued())
        }
        [3, 8] => matches!(window.common_gap(), Some(GroupGap::Space | GroupGap::Dash)),
        [7, 4] => window.common_gap() == Some(GroupGap::Space),
        _ => false,
    };
    has_shape && digits.len() == 11
}

/// Numbers of mainland China with an area code: 010-88886666, (0755) 8888 6666.
fn is_chinese_landline(window: &GroupWindow<'_>) -> bool {
    let digits = window.digits();
    let area_len = match digits.as_bytes() {
        [b'0', b'1', b'0', ..] | [b'0', b'2', ..] => 3,
        [b'0', b'3'..=b'9', ..] => 4,
        _ => return false,
    };
    let Some(local) = digits.get(area_len..) else { return false };
    if !(local.len() == 8 || (area_len == 4 && local.len() == 7)) || local.starts_with('0') {
        return false;
    }
    // Local numbers do not begin with 1. This is checked only where the form alone is not distinctive enough:
    // after a space, and after a four-digit area code without a gap.
    let is_assigned = !local.starts_with('1');
    match window.lengths()[..] {
        [_] => area_len == 3 || is_assigned,
        [first, _] | [first, _, _] if first == area_len => match window.groups[1].gap {
            GroupGap::Dash | GroupGap::Paren => true,
            GroupGap::Space => is_assigned,
            _ => false,
        },
        _ => false,
    }
}

/// British mobile numbers and five-digit area codes, and Japanese mobile numbers.
fn is_british_or_japanese(window: &GroupWindow<'_>) -> bool {
    let digits = window.digits();
    match window.lengths()[..] {
        [11] => digits.starts_with("07"),
        [5, 6] | [5, 3, 3] => {
            matches!(digits.as_bytes(), [b'0', b'1' | b'7', ..])
                && window.common_gap() == Some(GroupGap::Space)
        }
        [3, 4, 4] => {
            matches!(digits.as_bytes(), [b'0', b'5' | b'7'..=b'9', b'0', ..])
                && window.common_gap() == Some(GroupGap::Dash)
        }
        _ => false,
    }
}

/// North American numbers: (415) 555-0123, 415-555-0123, 415.555.0123, 4155550123.
fn is_american(window: &GroupWindow<'_>) -> bool {
    let digits = window.digits();
    let bytes = digits.as_bytes();
    // Area codes begin with 2 to 9, and their second digit is not 9; exchange codes begin with 2 to 9.
    let is_assigned = bytes.len() == 10 && bytes[0] > b'1' && bytes[1] < b'9' && bytes[3] > b'1';
    match window.lengths()[..] {
        [10] => {
            // The limits of 32-bit integers have this form too, and so do old book numbers.
            const LIMITS: &[&str] = &["2147483647", "2147483648", "4294967295", "4294967296"];
            let is_isbn = window.text.word_before(window.groups[0].start) == "isbn";
            is_assigned && !LIMITS.contains(&digits.as_str()) && !is_isbn && !digits.ends_with("000000")
        }
        [3, 3, 4] => {
            let has_parenthesis = window.groups[1].gap == GroupGap::Paren;
            match window.common_gap() {
                _ if has_parenthesis => true,
                Some(GroupGap::Dash | GroupGap::Dot) => !window.is_continued() || follows_code_one(window),
                Some(GroupGap::Space) => is_assigned && (!window.is_continued() || follows_code_one(window)),
                _ => is_assigned,
            }
        }
        _ => false,
    }
}

/// Returns whether the number continues only before the window, with the country code `1`.
fn follows_code_one(window: &GroupWindow<'_>) -> bool {
    let start = window.groups[0].start;
    let separator = window.text.char_before(start);
    let gap = window.groups[1].gap;
    start >= 2 && matches!(separator, Some('-' | '.' | ' ')) && {
        let follows_one = window.text.char_before(start - 1) == Some('1');
        let is_longer_code = start >= 3 && is_digit(window.text.char_before(start - 2));
        follows_one && !is_longer_code && window.gap_after != gap
    }
}

/// Seven or eight digits after a word that announces a phone number.
fn is_announced(window: &GroupWindow<'_>) -> bool {
    if !matches!(window.lengths()[..], [7 | 8] | [3, 4] | [4, 4])
        || window.common_gap() == Some(GroupGap::Dot)
    {
        return false;
    }
    let start = window.groups[0].start;
    const MAX_REACH: usize = 12;
    let from = start.saturating_sub(MAX_REACH);
    let before: String = window.text.chars()[from..start].iter().collect();
    let before = before.trim_end_matches([':', ' ', '.', '#', '是', '为', '(']);
    let chinese = ["电话", "座机", "传真", "手机号", "电话号码", "手机号码", "联系方式"];
    let english = ["tel", "telephone", "fax", "whatsapp", "phone number", "phone no"];
    let lowercase = before.to_ascii_lowercase();
    window.digits().as_bytes()[0] > b'1'
        && (chinese.iter().any(|word| before.ends_with(word))
            || english.iter().any(|word| {
                let text_before = lowercase.strip_suffix(word);
                text_before.is_some_and(|text| !text.ends_with(|c: char| c.is_ascii_alphanumeric()))
            }))
}
