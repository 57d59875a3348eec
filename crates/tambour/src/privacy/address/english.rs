//! English addresses, such as `221 Baker Street`.
//!
//! Queries are often written in lower case, and then `5 road bikes` looks like an address. The lists below
//! distinguish them: words that only follow a count, and words that make a street name an adjective.

use std::ops::Range;

use super::super::folded_text::{FoldedText, is_digit};
use super::is_han;

/// A word of ASCII letters, digits and apostrophes.
struct LatinWord {
    /// Index of its first character.
    start: usize,
    /// Index after its last character.
    end: usize,
    /// Word in lower case.
    text: String,
    is_capitalized: bool,
    /// True if only blanks (and the dot of an abbreviation) separate it from the word before it.
    is_joined: bool,
}

fn split_words(text: &FoldedText<'_>) -> Vec<LatinWord> {
    let chars = text.chars();
    let mut words: Vec<LatinWord> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if !chars[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        while at < chars.len() && (chars[at].is_ascii_alphanumeric() || chars[at] == '\'') {
            at += 1;
        }
        let is_joined = words.last().is_some_and(|last| {
            let gap = &chars[last.end..start];
            let is_short_word = last.end - last.start <= 4;
            let spaces = gap.strip_prefix(&['.']).filter(|_| is_short_word).unwrap_or(gap);
            !spaces.is_empty() && spaces.len() <= 3 && spaces.iter().all(|&c| c == ' ')
        });
        let text = chars[start..at].iter().collect::<String>().to_ascii_lowercase();
        words.push(LatinWord {
            start,
            end: at,
            text,
            is_capitalized: chars[start].is_ascii_uppercase(),
            is_joined,
        });
    }
    words
}

/// Kinds of streets, in capital or small letters.
const STREETS: &str = "street st road rd avenue ave boulevard blvd lane ln";
/// Kinds of streets that count only if the whole name is capitalized.
const NAMED_STREETS: &str = "drive dr court ct place pl square sq terrace way close crescent parkway pkwy circle row mews \
    gardens highway hwy walk alley trail";

/// Words that make the number after them something other than a house number.
const NUMBERED_THINGS: &str = "route highway hwy interstate top chapter episode season level part vol volume version page \
    lesson stage game best";

/// Words that are in no street name: a number before them counts something, as in `5 best roads`.
const COUNTED_THINGS: &str = "best top good great easy simple hard new old big small long short famous popular cheap free \
    minute minutes min mins hour hours day days week weeks month months year years mile miles km m \
    meter meters metre metres foot feet ft kg lb lbs gb tb set sets rep reps ways way lane lanes \
    wheel wheels door tips ideas types kinds of the a an on and or in for to from with per percent \
    people person players more most first off all common other different ultimate amazing things \
    rules is are was at by bike bicycle level point points star speed piece flash mph kmh inch \
    inches bedroom room workout workouts exercises major must unique";

/// Words after a street that make it an adjective: `road bikes`.
const STREET_THINGS: &str = "bike bikes bicycle bicycles trip trips workout workouts food foods race races racing runner \
    runners running run runs cycling cyclist cyclists fighter art style styles wear photography \
    photographer photographers test tests map maps sign signs rage safety legal market markets \
    parade dance dancing dancer dancers party fashion car cars performance hockey movie movies film \
    films song songs album remaster journal closures works construction lights lighting cleaning \
    smart wise level team gang cred tacos vendor vendors tires tyres shoes surface network design \
    width markings rules bets crash tips strategy traders banks basketball soccer football skating \
    skateboarding magic games game ideas departure";

/// Finds street addresses and post boxes.
pub(super) fn find(text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
    const MAX_NAME_WORDS: usize = 4;
    let words = split_words(text);
    let mut at = 0;
    while at < words.len() {
        let first = &words[at];
        if let Some(further_words) = match_post_box(&words[at..]) {
            found(text.byte_range(first.start..words[at + further_words].end));
            at += further_words + 1;
            continue;
        }
        at += 1;
        if !is_house_number(&first.text) || is_part_of_number(text, first.start) {
            continue;
        }
        if first.is_joined && at >= 2 && contains_word(NUMBERED_THINGS, words[at - 2].text.as_str()) {
            continue;
        }
        // `at` is now the first word of the name; the kind of street is one of the words after it.
        for index in at..words.len().min(at + MAX_NAME_WORDS + 1) {
            let word = &words[index];
            if !word.is_joined {
                break;
            }
            let name = &words[at..index];
            let kind = word.text.as_str();
            let is_capitalized_name = word.is_capitalized
                && name.iter().all(|word| word.is_capitalized || is_digit(word.text.chars().next()));
            let is_street =
                contains_word(STREETS, kind) || (is_capitalized_name && contains_word(NAMED_STREETS, kind));
            // A letter that is not ASCII continues the word, such as the `é` of `Dré`; a Chinese one does
            // not.
            let is_part_of_word =
                text.char_at(word.end).is_some_and(|c| c.is_alphabetic() && !is_han(Some(c)));
            if is_street && !is_part_of_word && !name.is_empty() {
                let next_word = words.get(index + 1).filter(|next| next.is_joined);
                if !next_word.is_some_and(|next| contains_word(STREET_THINGS, next.text.as_str())) {
                    found(text.byte_range(first.start..word.end));
                }
                break;
            }
            if contains_word(COUNTED_THINGS, kind) || !is_name_word(&word.text) {
                break;
            }
        }
    }
}

/// Returns whether `word` is in `list`, whose words are separated by blanks.
fn contains_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

/// Returns whether the number at `start` is a price, has a `#` or `_` before it, or is part of a time, a date
/// or a decimal number.
fn is_part_of_number(text: &FoldedText<'_>, start: usize) -> bool {
    match text.char_before(start) {
        Some('$' | '£' | '€' | '#' | '_') => true,
        Some('.' | ':' | '/') => is_digit(text.char_before(start - 1)),
        _ => false,
    }
}

/// Returns whether a word is a house number: `221`, `221b`.
fn is_house_number(word: &str) -> bool {
    let digits = word.strip_suffix(|c: char| c.is_ascii_alphabetic()).unwrap_or(word);
    (1..=5).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

/// Returns whether a word begins with a letter, or is an ordinal such as `5th`.
fn is_name_word(word: &str) -> bool {
    let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
    letters.len() == word.len() || matches!(letters, "st" | "nd" | "rd" | "th")
}

/// Number of words after the first if the words begin with a post box: `PO Box 12`, `P.O. Box 12`.
fn match_post_box(words: &[LatinWord]) -> Option<usize> {
    let texts: Vec<&str> = words.iter().take(4).map(|word| word.text.as_str()).collect();
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    match texts[..] {
        ["po", "box", number_word, ..] if is_number(&number_word) => Some(2),
        ["p", "o", "box", number_word] if is_number(&number_word) => Some(3),
        _ => None,
    }
}
