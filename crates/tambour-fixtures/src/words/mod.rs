//! Oracle of marker words: no text of a reply is lost without a finding, and none is duplicated (invariant
//! 5).
//!
//! Unique marker words are put into every place of a reply that holds text, and the reply is damaged. Each
//! word that is whole in the damaged reply must then be delivered once, or be inside the span of a finding.
//! Events and findings must not depend on the cuts either.
//!
//! A new dialect adds its replies to the table in `replies`; nothing else changes.

mod account;
pub(crate) mod damage;
pub(crate) mod json;
mod lag;
mod minimise;
mod replies;
mod texts;
mod trial;

pub use account::{ReceivedReply, WordAccount, WordComplaint, WordFault, WordKind, account_words};
pub use lag::{DeliveryLag, measure_lag};
pub use minimise::minimise_trial;
pub use replies::{ReplyPool, word_kinds};
pub use texts::WordSource;
pub use trial::{TrialReading, WordTrial, make_long_trial, make_trial};

/// Beginning of a marker word.
const MARKER_PREFIX: &[u8] = b"wqx";
/// Number of digits after the beginning.
const MARKER_DIGITS: usize = 4;
/// End of a marker word.
const MARKER_SUFFIX: u8 = b'z';

/// Length of a marker word in bytes.
pub const MARKER_LEN: usize = MARKER_PREFIX.len() + MARKER_DIGITS + 1;

/// Number of a marker word.
pub type WordNumber = u16;

/// Formats the word of that number, such as `wqx0017z`.
#[must_use]
pub fn marker(word: WordNumber) -> String {
    format!("wqx{word:04}z")
}

/// Finds the whole marker words of `text`, with their offsets.
pub fn find_words(text: &[u8]) -> impl Iterator<Item = (usize, WordNumber)> + '_ {
    word_starts(text).filter_map(|at| Some((at, parse_word(&text[at..])?)))
}

/// Finds the beginnings of marker words, whole or broken.
fn word_starts(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    (0..text.len().saturating_sub(MARKER_PREFIX.len() - 1))
        .filter(|&at| text[at..].starts_with(MARKER_PREFIX))
}

/// Parses the whole word at the beginning of `text`.
fn parse_word(text: &[u8]) -> Option<WordNumber> {
    let word = text.get(..MARKER_LEN)?;
    let digits = word.strip_prefix(MARKER_PREFIX)?.strip_suffix(&[MARKER_SUFFIX])?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Number of bytes after the beginning of a broken word that are searched for a mark of reasoning and the end
/// of the word.
const MAX_MARK_BYTES: usize = 64;

/// Counts the broken words in `text` that can become `word` again when the text that broke them is removed.
pub(crate) fn count_restorable(text: &[u8], word: WordNumber) -> usize {
    let marker = marker(word);
    // A beginning of this word, up to its digits or further, followed by other text.
    let is_restorable = |&at: &usize| {
        let matched_len = marker.bytes().zip(&text[at..]).take_while(|(a, b)| a == *b).count();
        matched_len < MARKER_LEN && !text.get(at + matched_len).is_some_and(u8::is_ascii_digit)
    };
    // One or two letters of the prefix alone mean little: a mark of reasoning, such as `<think>`, and then
    // the end of the word must follow.
    let is_split_by_mark = |at: &usize| {
        let matched_len = marker.bytes().zip(&text[*at..]).take_while(|(a, b)| a == *b).count();
        let following = &text[at + matched_len..text.len().min(at + matched_len + MAX_MARK_BYTES)];
        (1..MARKER_PREFIX.len()).contains(&matched_len)
            // 0xE2 begins `◁` in UTF-8.
            && matches!(following.first(), Some(b'<' | b'[' | 0xE2))
            && following
                .windows(MARKER_LEN - matched_len)
                .any(|window| window == &marker.as_bytes()[matched_len..])
    };
    word_starts(text).filter(is_restorable).count() + (0..text.len()).filter(is_split_by_mark).count()
}
