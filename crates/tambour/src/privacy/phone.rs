//! Detector of phone numbers.

use std::ops::Range;

use super::Detector;
use super::digits::{DigitGroup, GroupGap, continues_number, digit_groups, is_separate, join_digits};
use super::folded_text::{FoldedText, is_alnum, is_digit};

/// Detects phone numbers with a country code, and national forms of mainland China, North America and (mobile
/// and with an area code) Britain. Seven or eight digits alone count only behind a word that announces a
/// phone number.
pub(super) struct PhoneDetector;

/// A window of consecutive groups in the text.
struct GroupWindow<'a> {
    text: &'a FoldedText<'a>,
    groups: &'a [DigitGroup],
    /// Gap behind the last group.
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
                    let mut next = at + group_count;
                    // Extension number.
                    if let Some(extension) = groups.get(next)
                        && extension.gap == GroupGap::Dash
                        && (2..=5).contains(&extension.len())
                        && !is_alnum(text.char_at(extension.end))
                    {
                        end = extension.end;
                        next += 1;
                    }
                    found(text.byte_range(start..end));
                    at = next;
                }
                None => at += 1,
            }
        }
    }
}

/// Matches a phone number that starts with the first group; returns the index of its first character and the
/// number of groups.
fn match_phone(text: &FoldedText<'_>, groups: &[DigitGroup]) -> Option<(usize, usize)> {
    let first = groups[0].start;
    if let Some(plus) = find_plus(text, first) {
        return match_international(text, groups, 0).map(|group_count| (plus, group_count));
    }
    if text.chars()[first..].starts_with(&['0', '0'])
        && let Some(group_count) = match_international(text, groups, 2)
        && is_separate(text, &groups[..group_count])
    {
        return Some((first, group_count));
    }
    let start = if text.char_before(first) == Some('(') { first - 1 } else { first };
    // `86 138 0013 8000`, `1-415-555-0123`: the code is part of the number.
    let code = join_digits(text, &groups[..1]);
    if groups.len() > 1 && groups[1].gap != GroupGap::Break {
        let rest = &groups[1..];
        let national = match code.as_str() {
            "86" | "086" => match_national(text, rest, is_chinese_mobile)
                .or_else(|| match_national(text, rest, is_chinese_landline)),
            "1" => match_national(text, rest, is_american),
            _ => None,
        };
        if let Some(group_count) =
            national.filter(|_| is_separate(text, &groups[..1]) || groups[1].gap == GroupGap::Dot)
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

/// Index of the `+` before the digit at `first`, unless it is part of a word (`C++ 11`).
fn find_plus(text: &FoldedText<'_>, first: usize) -> Option<usize> {
    let mut at = first;
    while at > 0 && first - at < 2 && text.char_before(at) == Some('(') {
        at -= 1;
    }
    if text.char_before(at) != Some('+') {
        return None;
    }
    at -= 1;
    (!is_alnum(text.char_before(at)) && text.char_before(at) != Some('+')).then_some(at)
}

/// Number of groups of an international number; its first `prefix_len` digits are `00`.
fn match_international(text: &FoldedText<'_>, groups: &[DigitGroup], prefix_len: usize) -> Option<usize> {
    const LONGEST: usize = 15;
    const MOST: usize = 7;
    let mut best = None;
    for group_count in 1..=groups.len().min(MOST) {
        let group = &groups[group_count - 1];
        if group_count > 1 && group.gap == GroupGap::Break {
            break;
        }
        let digits = join_digits(text, &groups[..group_count]);
        let digits = digits.get(prefix_len..).unwrap_or("");
        if digits.len() > LONGEST {
            break;
        }
        // Groups of one digit are the country code, the one behind it, and the `(0)` of a national prefix.
        if group.len() == 1 && group_count > 2 && group.gap != GroupGap::Paren {
            break;
        }
        let (is_fit, is_exact) = match digits.as_bytes() {
            [b'1', area, ..] => (digits.len() == 11 && *area > b'1', true),
            [b'7', ..] => (digits.len() == 11, true),
            [b'8', b'6', b'1', b'3'..=b'9', ..] => (digits.len() == 13, true),
            [b'8', b'6', ..] => ((10..=13).contains(&digits.len()), false),
            _ if !has_country_code(digits) => (false, false),
            _ => (if prefix_len == 0 { digits.len() >= 8 } else { (10..=13).contains(&digits.len()) }, false),
        };
        // The dot may be the separator of the groups.
        let is_continued = continues_number(text, group.end)
            && groups.get(group_count).is_none_or(|next| next.gap != GroupGap::Dot);
        if is_fit && !is_alnum(text.char_at(group.end)) && !is_continued {
            best = Some(group_count);
            if is_exact {
                break;
            }
        }
    }
    best
}

/// Returns whether the digits begin with a country code (two-digit codes, and two-digit zones of longer
/// ones).
fn has_country_code(digits: &str) -> bool {
    const ZONES: &[&str] = &[
        "20", "21", "22", "23", "24", "25", "26", "27", "29", "30", "31", "32", "33", "34", "35", "36", "37",
        "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53", "54",
        "55", "56", "57", "58", "59", "60", "61", "62", "63", "64", "65", "66", "67", "68", "69", "80", "81",
        "82", "84", "85", "87", "88", "90", "91", "92", "93", "94", "95", "96", "97", "98", "99",
    ];
    digits.get(..2).is_some_and(|zone| ZONES.contains(&zone))
}

/// Number of groups, up to four, that `has_form` accepts as a national number.
fn match_national(
    text: &FoldedText<'_>,
    groups: &[DigitGroup],
    has_form: fn(&GroupWindow<'_>) -> bool,
) -> Option<usize> {
    const MOST: usize = 4;
    (1..=groups.len().min(MOST))
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

    /// Gap between all groups, if they are the same.
    fn common_gap(&self) -> Option<GroupGap> {
        let gap = self.groups.get(1)?.gap;
        self.groups[1..].iter().all(|group| group.gap == gap).then_some(gap)
    }

    /// Returns whether the number continues before or behind the window with the same separator.
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
    let area = match digits.as_bytes() {
        [b'0', b'1', b'0', ..] | [b'0', b'2', ..] => 3,
        [b'0', b'3'..=b'9', ..] => 4,
        _ => return false,
    };
    let Some(local) = digits.get(area..) else { return false };
    if !(local.len() == 8 || (area == 4 && local.len() == 7)) || local.starts_with('0') {
        return false;
    }
    // In one group or with a blank it must be an assigned number; with a dash any number counts.
    let is_local_number = !local.starts_with('1');
    match window.lengths()[..] {
        [_] => area == 3 || is_local_number,
        [first, _] | [first, _, _] if first == area => match window.groups[1].gap {
            GroupGap::Dash | GroupGap::Paren => true,
            GroupGap::Space => is_local_number,
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
                Some(GroupGap::Dash | GroupGap::Dot) => !window.is_continued() || follows_one(window),
                Some(GroupGap::Space) => is_assigned && (!window.is_continued() || follows_one(window)),
                _ => is_assigned,
            }
        }
        _ => false,
    }
}

/// Returns whether the number continues only with a `1` before the window.
fn follows_one(window: &GroupWindow<'_>) -> bool {
    let start = window.groups[0].start;
    let sign = window.text.char_before(start);
    let gap = window.groups[1].gap;
    start >= 2 && matches!(sign, Some('-' | '.' | ' ')) && {
        let is_one = window.text.char_before(start - 1) == Some('1');
        is_one && !(start >= 3 && is_digit(window.text.char_before(start - 2))) && window.gap_after != gap
    }
}

/// Seven or eight digits behind a word for a phone.
fn is_announced(window: &GroupWindow<'_>) -> bool {
    if !matches!(window.lengths()[..], [7 | 8] | [3, 4] | [4, 4])
        || window.common_gap() == Some(GroupGap::Dot)
    {
        return false;
    }
    let start = window.groups[0].start;
    let from = start.saturating_sub(12);
    let before: String = window.text.chars()[from..start].iter().collect();
    let before = before.trim_end_matches([':', ' ', '.', '#', '是', '为', '(']);
    let chinese = ["电话", "座机", "传真", "手机号", "电话号码", "手机号码", "联系方式"];
    let english = ["tel", "telephone", "fax", "whatsapp", "phone number", "phone no"];
    let lowercase = before.to_ascii_lowercase();
    window.digits().as_bytes()[0] > b'1'
        && (chinese.iter().any(|word| before.ends_with(word))
            || english.iter().any(|word| {
                let rest = lowercase.strip_suffix(word);
                rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric()))
            }))
}
