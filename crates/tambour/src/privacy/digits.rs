//! Groups of digits in written numbers: `138 0013 8000`, `(010) 8888-6666`, `+1-415-555-0123`.

use super::folded_text::{FoldedText, is_alnum, is_digit};

/// A run of digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct DigitGroup {
    /// Index of the first digit.
    pub(super) start: usize,
    /// Index after the last digit.
    pub(super) end: usize,
    /// Separator between this group and the one before it.
    pub(super) gap: GroupGap,
}

impl DigitGroup {
    /// Number of digits.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Separator between two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupGap {
    /// Other text, or no group before: the groups are unrelated.
    Break,
    Space,
    Dash,
    Dot,
    /// Parentheses, with or without blanks and a dash.
    Paren,
}

/// All groups of digits in the text.
pub(super) fn digit_groups(text: &FoldedText<'_>) -> Vec<DigitGroup> {
    let chars = text.chars();
    let mut groups: Vec<DigitGroup> = Vec::new();
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
        let gap = groups.last().map_or(GroupGap::Break, |last| classify_gap(&chars[last.end..start]));
        groups.push(DigitGroup { start, end: at, gap });
    }
    groups
}

fn classify_gap(gap: &[char]) -> GroupGap {
    const MAX_GAP_LEN: usize = 3;
    if gap.len() > MAX_GAP_LEN || !gap.iter().all(|c| matches!(c, ' ' | '-' | '.' | '(' | ')')) {
        return GroupGap::Break;
    }
    let count = |sign: char| gap.iter().filter(|&&c| c == sign).count();
    match (count('.'), count('-'), count('(') + count(')')) {
        (0, 0, 0) => GroupGap::Space,
        (0, 1, 0) => GroupGap::Dash,
        (1, 0, 0) if gap.len() == 1 => GroupGap::Dot,
        (0, 0 | 1, 1..) => GroupGap::Paren,
        _ => GroupGap::Break,
    }
}

/// Digits of `groups` as one string.
pub(super) fn join_digits(text: &FoldedText<'_>, groups: &[DigitGroup]) -> String {
    groups.iter().flat_map(|group| &text.chars()[group.start..group.end]).collect()
}

/// Returns whether the groups stand alone: not part of a word, a decimal number or a number with thousands
/// separators, and no price, percentage or amount.
pub(super) fn is_separate(text: &FoldedText<'_>, groups: &[DigitGroup]) -> bool {
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return false };
    let (start, end) = (first.start, last.end);
    let before = text.char_before(start);
    let is_in_word = (is_alnum(before) && !INTRODUCING_WORDS.contains(&text.word_before(start).as_str()))
        || before == Some('_');
    let has_separator_before = before == Some('.') || (before == Some(',') && first.len() == 3);
    let continues_digits = has_separator_before && start >= 2 && is_digit(text.char_before(start - 1));
    let is_price = matches!(before, Some('$' | '¥' | '€' | '£' | '￥'));
    let has_unit =
        text.chars()[end..].iter().find(|c| **c != ' ').is_some_and(|c| matches!(c, '%' | '元' | '円' | '‰'));
    !is_in_word
        && !continues_digits
        && !is_price
        && !continues_number(text, end)
        && !is_alnum(text.char_at(end))
        && !has_unit
}

/// Returns whether the number that ends at `end` continues there, with a decimal part or with a comma and
/// exactly three digits. After any other comma a new number begins.
pub(super) fn continues_number(text: &FoldedText<'_>, end: usize) -> bool {
    match text.char_at(end) {
        Some('.') => is_digit(text.char_at(end + 1)),
        Some(',') => (1..=3).all(|at| is_digit(text.char_at(end + at))) && !is_digit(text.char_at(end + 4)),
        _ => false,
    }
}

/// Words that may directly precede a number they introduce.
const INTRODUCING_WORDS: &[&str] =
    &["tel", "phone", "mobile", "call", "fax", "wx", "vx", "whatsapp", "id", "card"];
