//! Detector of phone numbers.

use std::ops::Range;

use super::Detector;
use super::digits::{Gap, Group, alone, decimal, groups, joined};
use super::text::{Text, alnum, digit};

/// Detects phone numbers with a country code, and national forms of mainland China, North America and (mobile
/// and with an area code) Britain. Seven or eight digits alone count only behind a word that announces a
/// phone number.
pub(super) struct Phone;

/// A window of consecutive groups in the text.
struct Window<'a> {
    text: &'a Text<'a>,
    groups: &'a [Group],
    /// Gap behind the last group.
    after: Gap,
}

impl Detector for Phone {
    fn kind(&self) -> &'static str {
        "phone"
    }

    fn find(&self, text: &Text<'_>, found: &mut dyn FnMut(Range<usize>)) {
        let groups = groups(text);
        let mut at = 0;
        while at < groups.len() {
            match phone(text, &groups[at..]) {
                Some((start, used)) => {
                    let mut end = groups[at + used - 1].end;
                    let mut next = at + used;
                    // Extension number.
                    if let Some(extension) = groups.get(next)
                        && extension.gap == Gap::Dash
                        && (2..=5).contains(&extension.len())
                        && !alnum(text.at(extension.end))
                    {
                        end = extension.end;
                        next += 1;
                    }
                    found(text.bytes(start..end));
                    at = next;
                }
                None => at += 1,
            }
        }
    }
}

/// Matches a phone number that starts with the first group; returns the index of its first character and the
/// number of groups.
fn phone(text: &Text<'_>, groups: &[Group]) -> Option<(usize, usize)> {
    let first = groups[0].start;
    if let Some(plus) = plus(text, first) {
        return international(text, groups, 0).map(|used| (plus, used));
    }
    if text.chars()[first..].starts_with(&['0', '0'])
        && let Some(used) = international(text, groups, 2)
        && alone(text, &groups[..used])
    {
        return Some((first, used));
    }
    let start = if text.before(first) == Some('(') { first - 1 } else { first };
    // `86 138 0013 8000`, `1-415-555-0123`: the code is part of the number.
    let code = joined(text, &groups[..1]);
    if groups.len() > 1 && groups[1].gap != Gap::Break {
        let rest = &groups[1..];
        let national = match code.as_str() {
            "86" | "086" => national(text, rest, mobile).or_else(|| national(text, rest, landline)),
            "1" => national(text, rest, american),
            _ => None,
        };
        if let Some(used) = national.filter(|_| alone(text, &groups[..1]) || groups[1].gap == Gap::Dot) {
            return Some((start, used + 1));
        }
    }
    national(text, groups, mobile)
        .or_else(|| national(text, groups, landline))
        .or_else(|| national(text, groups, british))
        .or_else(|| national(text, groups, american))
        .or_else(|| national(text, groups, announced))
        .map(|used| (start, used))
}

/// Index of the `+` before the digit at `first`, unless it is part of a word (`C++ 11`).
fn plus(text: &Text<'_>, first: usize) -> Option<usize> {
    let mut at = first;
    while at > 0 && first - at < 2 && text.before(at) == Some('(') {
        at -= 1;
    }
    if text.before(at) != Some('+') {
        return None;
    }
    at -= 1;
    (!alnum(text.before(at)) && text.before(at) != Some('+')).then_some(at)
}

/// Number of groups of an international number; its first `skip` digits are `00`.
fn international(text: &Text<'_>, groups: &[Group], skip: usize) -> Option<usize> {
    const LONGEST: usize = 15;
    const MOST: usize = 7;
    let mut best = None;
    for used in 1..=groups.len().min(MOST) {
        let group = &groups[used - 1];
        if used > 1 && group.gap == Gap::Break {
            break;
        }
        let digits = joined(text, &groups[..used]);
        let digits = digits.get(skip..).unwrap_or("");
        if digits.len() > LONGEST {
            break;
        }
        // Groups of one digit are the country code, the one behind it, and the `(0)` of a national prefix.
        if group.len() == 1 && used > 2 && group.gap != Gap::Paren {
            break;
        }
        let (fits, exact) = match digits.as_bytes() {
            [b'1', area, ..] => (digits.len() == 11 && *area > b'1', true),
            [b'7', ..] => (digits.len() == 11, true),
            [b'8', b'6', b'1', b'3'..=b'9', ..] => (digits.len() == 13, true),
            [b'8', b'6', ..] => ((10..=13).contains(&digits.len()), false),
            _ if !country(digits) => (false, false),
            _ => (if skip == 0 { digits.len() >= 8 } else { (10..=13).contains(&digits.len()) }, false),
        };
        // The dot may be the separator of the groups.
        let goes_on = decimal(text, group.end) && groups.get(used).is_none_or(|next| next.gap != Gap::Dot);
        if fits && !alnum(text.at(group.end)) && !goes_on {
            best = Some(used);
            if exact {
                break;
            }
        }
    }
    best
}

/// Returns whether the digits begin with a country code (two-digit codes, and two-digit zones of longer
/// ones).
fn country(digits: &str) -> bool {
    const ZONES: &[&str] = &[
        "20", "21", "22", "23", "24", "25", "26", "27", "29", "30", "31", "32", "33", "34", "35", "36", "37",
        "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53", "54",
        "55", "56", "57", "58", "59", "60", "61", "62", "63", "64", "65", "66", "67", "68", "69", "80", "81",
        "82", "84", "85", "87", "88", "90", "91", "92", "93", "94", "95", "96", "97", "98", "99",
    ];
    digits.get(..2).is_some_and(|zone| ZONES.contains(&zone))
}

/// Number of groups, up to four, that `form` accepts as a national number.
fn national(text: &Text<'_>, groups: &[Group], form: fn(&Window<'_>) -> bool) -> Option<usize> {
    const MOST: usize = 4;
    (1..=groups.len().min(MOST)).take_while(|&used| used == 1 || groups[used - 1].gap != Gap::Break).find(
        |&used| {
            let window = Window {
                text,
                groups: &groups[..used],
                after: groups.get(used).map_or(Gap::Break, |group| group.gap),
            };
            alone(text, window.groups) && form(&window)
        },
    )
}

impl Window<'_> {
    fn digits(&self) -> String {
        joined(self.text, self.groups)
    }

    fn lengths(&self) -> Vec<usize> {
        self.groups.iter().map(Group::len).collect()
    }

    /// Gap between all groups, if they are the same.
    fn gap(&self) -> Option<Gap> {
        let gap = self.groups.get(1)?.gap;
        self.groups[1..].iter().all(|group| group.gap == gap).then_some(gap)
    }

    /// Returns whether the number continues before or behind the window with the same separator.
    fn goes_on(&self) -> bool {
        let gap = self.groups.get(1).map_or(Gap::Break, |group| group.gap);
        gap != Gap::Break && (self.after == gap || self.groups[0].gap == gap)
    }
}

/// Mobile numbers of mainland China: 13800138000, 138 0013 8000.
fn mobile(window: &Window<'_>) -> bool {
    let digits = window.digits();
    let digits = match digits.len() {
        13 => digits.strip_prefix("86").unwrap_or(""),
        _ => &digits,
    };
    let [b'1', b'3'..=b'9', ..] = digits.as_bytes() else { return false };
    let shape = match window.lengths()[..] {
        [11 | 13] => true,
        [3, 4, 4] => window.gap().is_some() && !(window.gap() == Some(Gap::Dash) && window.goes_on()),
        [3, 8] => matches!(window.gap(), Some(Gap::Space | Gap::Dash)),
        [7, 4] => window.gap() == Some(Gap::Space),
        _ => false,
    };
    shape && digits.len() == 11
}

/// Numbers of mainland China with an area code: 010-88886666, (0755) 8888 6666.
fn landline(window: &Window<'_>) -> bool {
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
    let exists = !local.starts_with('1');
    match window.lengths()[..] {
        [_] => area == 3 || exists,
        [first, _] | [first, _, _] if first == area => match window.groups[1].gap {
            Gap::Dash | Gap::Paren => true,
            Gap::Space => exists,
            _ => false,
        },
        _ => false,
    }
}

/// British mobile numbers and five-digit area codes, and Japanese mobile numbers.
fn british(window: &Window<'_>) -> bool {
    let digits = window.digits();
    match window.lengths()[..] {
        [11] => digits.starts_with("07"),
        [5, 6] | [5, 3, 3] => {
            matches!(digits.as_bytes(), [b'0', b'1' | b'7', ..]) && window.gap() == Some(Gap::Space)
        }
        [3, 4, 4] => {
            matches!(digits.as_bytes(), [b'0', b'5' | b'7'..=b'9', b'0', ..])
                && window.gap() == Some(Gap::Dash)
        }
        _ => false,
    }
}

/// North American numbers: (415) 555-0123, 415-555-0123, 415.555.0123, 4155550123.
fn american(window: &Window<'_>) -> bool {
    let digits = window.digits();
    let bytes = digits.as_bytes();
    let assigned = bytes.len() == 10 && bytes[0] > b'1' && bytes[1] < b'9' && bytes[3] > b'1';
    match window.lengths()[..] {
        [10] => {
            // The limits of 32-bit integers have this form too, and so do old book numbers.
            const LIMITS: &[&str] = &["2147483647", "2147483648", "4294967295", "4294967296"];
            let isbn = window.text.word_before(window.groups[0].start) == "isbn";
            assigned && !LIMITS.contains(&digits.as_str()) && !isbn && !digits.ends_with("000000")
        }
        [3, 3, 4] => {
            let parenthesis = window.groups[1].gap == Gap::Paren;
            match window.gap() {
                _ if parenthesis => true,
                Some(Gap::Dash | Gap::Dot) => !window.goes_on() || after_one(window),
                Some(Gap::Space) => assigned && (!window.goes_on() || after_one(window)),
                _ => assigned,
            }
        }
        _ => false,
    }
}

/// Returns whether the number continues only with a `1` before the window.
fn after_one(window: &Window<'_>) -> bool {
    let start = window.groups[0].start;
    let sign = window.text.before(start);
    let gap = window.groups[1].gap;
    start >= 2 && matches!(sign, Some('-' | '.' | ' ')) && {
        let one = window.text.before(start - 1) == Some('1');
        one && !(start >= 3 && digit(window.text.before(start - 2))) && window.after != gap
    }
}

/// Seven or eight digits behind a word for a phone.
fn announced(window: &Window<'_>) -> bool {
    if !matches!(window.lengths()[..], [7 | 8] | [3, 4] | [4, 4]) || window.gap() == Some(Gap::Dot) {
        return false;
    }
    let start = window.groups[0].start;
    let from = start.saturating_sub(12);
    let before: String = window.text.chars()[from..start].iter().collect();
    let before = before.trim_end_matches([':', ' ', '.', '#', '是', '为', '(']);
    let chinese = ["电话", "座机", "传真", "手机号", "电话号码", "手机号码", "联系方式"];
    let english = ["tel", "telephone", "fax", "whatsapp", "phone number", "phone no"];
    let lower = before.to_ascii_lowercase();
    window.digits().as_bytes()[0] > b'1'
        && (chinese.iter().any(|word| before.ends_with(word))
            || english.iter().any(|word| {
                let rest = lower.strip_suffix(word);
                rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric()))
            }))
}
