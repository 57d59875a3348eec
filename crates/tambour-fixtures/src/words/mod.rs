//! Marker words: no text of a reply is lost without a finding, and none is duplicated.
//!
//! Unique words are put into every place of a reply that holds text, and the reply is damaged. Each word that
//! is whole in the input must then be delivered once, or lie inside the span of a finding. Events and
//! findings must not depend on the cuts either.
//!
//! A new dialect adds its replies to the table in `replies`; nothing else changes.

mod account;
pub(crate) mod damage;
mod held;
pub(crate) mod json;
mod minimise;
mod replies;
mod texts;
mod trial;

pub use account::{Account, Complaint, Fault, Kind, Received, account};
pub use held::{Lag, lag};
pub use minimise::minimise;
pub use replies::{Replies, kinds};
pub use texts::Words;
pub use trial::{Read, Trial, long_trial, trial};

/// Beginning and end of a marker word, with four digits between them.
const PREFIX: &[u8] = b"wqx";
const DIGITS: usize = 4;
const SUFFIX: u8 = b'z';

/// Bytes of a marker word.
pub const LEN: usize = PREFIX.len() + DIGITS + 1;

/// Number of a marker word.
pub type Word = u16;

/// Formats the word of that number, such as `wqx0017z`.
#[must_use]
pub fn marker(word: Word) -> String {
    format!("wqx{word:04}z")
}

/// Finds the whole marker words of `text`, with their offsets.
pub fn find(text: &[u8]) -> impl Iterator<Item = (usize, Word)> + '_ {
    starts(text).filter_map(|at| Some((at, whole(&text[at..])?)))
}

/// Finds the beginnings of marker words, whole or broken.
fn starts(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    (0..text.len().saturating_sub(PREFIX.len() - 1)).filter(|&at| text[at..].starts_with(PREFIX))
}

/// Parses the word at the beginning of `text`.
fn whole(text: &[u8]) -> Option<Word> {
    let word = text.get(..LEN)?;
    let digits = word.strip_prefix(PREFIX)?.strip_suffix(&[SUFFIX])?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Bytes searched for a mark within a word and the rest of that word.
const MARK: usize = 64;

/// Counts the broken words in `text` that can become `word` again when the text that broke them is removed.
pub(crate) fn mendable(text: &[u8], word: Word) -> usize {
    let marker = marker(word);
    // A beginning of this word, followed by something else.
    let mendable = |&at: &usize| {
        let left = marker.bytes().zip(&text[at..]).take_while(|(a, b)| a == *b).count();
        left < LEN && !text.get(at + left).is_some_and(u8::is_ascii_digit)
    };
    // A word broken in its first letters can only lose a mark.
    let marked = |at: &usize| {
        let left = marker.bytes().zip(&text[*at..]).take_while(|(a, b)| a == *b).count();
        let rest = &text[at + left..text.len().min(at + left + MARK)];
        (1..PREFIX.len()).contains(&left)
            && matches!(rest.first(), Some(b'<' | b'[' | 0xE2))
            && rest.windows(LEN - left).any(|rest| rest == &marker.as_bytes()[left..])
    };
    starts(text).filter(mendable).count() + (0..text.len()).filter(marked).count()
}
