//! Groups of digits in written numbers: `138 0013 8000`, `(010) 8888-6666`, `+1-415-555-0123`.

use super::text::{Text, alnum, digit};

/// A run of digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Index of the first digit.
    pub(super) start: usize,
    /// Index after the last digit.
    pub(super) end: usize,
    /// Separator between this group and the one before it.
    pub(super) gap: Gap,
}

impl Group {
    /// Number of digits.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Separator between two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Other text, or no group before: the groups are unrelated.
    Break,
    Space,
    Dash,
    Dot,
    /// A parenthesis, with or without blanks.
    Paren,
}

/// All groups of digits in the text.
pub(super) fn groups(text: &Text<'_>) -> Vec<Group> {
    let chars = text.chars();
    let mut groups: Vec<Group> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < chars.len() && chars[at].is_ascii_digit() {
            at += 1;
        }
        let gap = groups.last().map_or(Gap::Break, |last| gap(&chars[last.end..start]));
        groups.push(Group { start, end: at, gap });
    }
    groups
}

fn gap(between: &[char]) -> Gap {
    const LONGEST: usize = 3;
    if between.len() > LONGEST || !between.iter().all(|c| matches!(c, ' ' | '-' | '.' | '(' | ')')) {
        return Gap::Break;
    }
    let count = |sign: char| between.iter().filter(|&&c| c == sign).count();
    match (count('.'), count('-'), count('(') + count(')')) {
        (0, 0, 0) => Gap::Space,
        (0, 1, 0) => Gap::Dash,
        (1, 0, 0) if between.len() == 1 => Gap::Dot,
        (0, 0 | 1, 1..) => Gap::Paren,
        _ => Gap::Break,
    }
}

/// Digits of `groups` as one string.
pub(super) fn joined(text: &Text<'_>, groups: &[Group]) -> String {
    groups.iter().flat_map(|group| &text.chars()[group.start..group.end]).collect()
}

/// Returns whether the groups are separate: not part of a word, a decimal number, a number with thousands
/// separators, or a price.
pub(super) fn alone(text: &Text<'_>, groups: &[Group]) -> bool {
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return false };
    let (start, end) = (first.start, last.end);
    let before = text.before(start);
    let inside_word =
        (alnum(before) && !WORDS.contains(&text.word_before(start).as_str())) || before == Some('_');
    let part_before = before == Some('.') || (before == Some(',') && first.len() == 3);
    let decimal_before = part_before && start >= 2 && digit(text.before(start - 1));
    let price = matches!(before, Some('$' | '¥' | '€' | '£' | '￥'));
    let unit =
        text.chars()[end..].iter().find(|c| **c != ' ').is_some_and(|c| matches!(c, '%' | '元' | '円' | '‰'));
    !inside_word && !decimal_before && !price && !decimal(text, end) && !alnum(text.at(end)) && !unit
}

/// Returns whether a decimal part or another group of three digits follows at `end`. A comma may also
/// separate two numbers.
pub(super) fn decimal(text: &Text<'_>, end: usize) -> bool {
    match text.at(end) {
        Some('.') => digit(text.at(end + 1)),
        Some(',') => (1..=3).all(|at| digit(text.at(end + at))) && !digit(text.at(end + 4)),
        _ => false,
    }
}

/// Words that may directly precede a number they introduce.
const WORDS: &[&str] = &["tel", "phone", "mobile", "call", "fax", "wx", "vx", "whatsapp", "id", "card"];
