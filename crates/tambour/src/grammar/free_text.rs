//! Free text up to a delimiter, and the automaton of what may stand before it.

use std::collections::BTreeMap;

use super::chars::{CharClass, next_char, previous_char};

/// Free text, and the delimiter that ends it. Neither the delimiter nor a forbidden sequence begins in the
/// text and ends in it or in the delimiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeText {
    /// Delimiter, which belongs to the node; if it is empty, the text can end anywhere.
    pub end: String,
    /// Sequences of characters that the text must not contain.
    pub forbidden: Vec<Vec<CharClass>>,
    /// True if the text must have a character that is not white space.
    pub is_filled: bool,
    /// Maximum length in characters, without the delimiter, for grammars with bounds (`grammar.text`).
    pub max: Option<u32>,
}

/// State of a [`TextAutomaton`]: transitions by set of characters, and whether the delimiter may follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextState {
    /// Sets of characters with the state that follows each.
    pub transitions: Vec<(CharClass, usize)>,
    /// True if the delimiter may follow.
    pub may_end: bool,
}

/// Automaton of the text before the delimiter. State 0 is the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextAutomaton {
    /// All states.
    pub states: Vec<TextState>,
}

/// Sequence of the characters of a text.
#[must_use]
pub fn sequence_of(text: &str) -> Vec<CharClass> {
    text.chars().map(|c| CharClass::new([(c, c)])).collect()
}

/// Progress of a text: how far each sequence has matched, as sorted pairs of its index and length, and
/// whether a character other than white space came.
type Progress = (Vec<(usize, usize)>, bool);

impl FreeText {
    /// Creates text up to `end` without forbidden sequences.
    #[must_use]
    pub fn new(end: impl Into<String>) -> FreeText {
        FreeText { end: end.into(), forbidden: Vec::new(), is_filled: false, max: None }
    }

    /// Forbids sequences.
    #[must_use]
    pub fn without(mut self, sequences: impl IntoIterator<Item = Vec<CharClass>>) -> FreeText {
        self.forbidden.extend(sequences);
        self
    }

    /// Requires a character that is not white space.
    #[must_use]
    pub fn filled(mut self) -> FreeText {
        self.is_filled = true;
        self
    }

    /// Limits the length in characters.
    #[must_use]
    pub fn at_most(mut self, max: Option<u32>) -> FreeText {
        self.max = max;
        self
    }

    /// Sequences that the text must not contain: the forbidden ones and the delimiter.
    #[must_use]
    pub fn sequences(&self) -> Vec<Vec<CharClass>> {
        let end = Some(sequence_of(&self.end)).filter(|end| !end.is_empty());
        self.forbidden.iter().cloned().chain(end).collect()
    }

    /// Sequences that the text must not end with, because the delimiter would complete them.
    #[must_use]
    pub fn unfinished_sequences(&self) -> Vec<Vec<CharClass>> {
        let mut unfinished = Vec::new();
        for sequence in self.sequences() {
            unfinished.extend(
                (1..sequence.len())
                    .filter(|&len| self.completes(&sequence[len..]))
                    .map(|len| sequence[..len].to_vec()),
            );
        }
        unfinished
    }

    /// Returns whether the delimiter begins with `rest`.
    fn completes(&self, rest: &[CharClass]) -> bool {
        let mut chars = self.end.chars();
        rest.iter().all(|class| chars.next().is_some_and(|c| class.contains(c)))
    }

    /// Builds the automaton. It has at most twice as many states as the sequences have characters together.
    #[must_use]
    pub fn automaton(&self) -> TextAutomaton {
        let sequences = self.sequences();
        let blank = CharClass::blank();
        let alphabet = partition(sequences.iter().flatten().chain(self.is_filled.then_some(&blank)));
        let mut states: Vec<TextState> = Vec::new();
        let mut indexes: BTreeMap<Progress, usize> = BTreeMap::new();
        let mut pending: Vec<Progress> = vec![(Vec::new(), !self.is_filled)];
        indexes.insert(pending[0].clone(), 0);
        states.push(TextState { transitions: Vec::new(), may_end: !self.is_filled });
        while let Some(progress) = pending.pop() {
            let index = indexes[&progress];
            let mut targets: BTreeMap<usize, Vec<(char, char)>> = BTreeMap::new();
            for &(start, end) in &alphabet {
                let Some(next) = advance(&sequences, &progress, start, &blank) else { continue };
                let next_index = *indexes.entry(next.clone()).or_insert_with(|| {
                    let is_unfinished =
                        next.0.iter().any(|&(index, len)| self.completes(&sequences[index][len..]));
                    states.push(TextState { transitions: Vec::new(), may_end: next.1 && !is_unfinished });
                    pending.push(next);
                    states.len() - 1
                });
                targets.entry(next_index).or_default().push((start, end));
            }
            states[index].transitions =
                targets.into_iter().map(|(target, ranges)| (CharClass::new(ranges), target)).collect();
        }
        TextAutomaton { states }
    }
}

impl TextAutomaton {
    /// Returns whether the delimiter may follow `text`.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        let mut state = 0;
        for c in text.chars() {
            let transitions = &self.states[state].transitions;
            match transitions.iter().find(|(class, _)| class.contains(c)) {
                Some((_, next)) => state = *next,
                None => return false,
            }
        }
        self.states[state].may_end
    }
}

/// Progress after one more character; `None` if a sequence is complete.
fn advance(
    sequences: &[Vec<CharClass>],
    progress: &Progress,
    c: char,
    blank: &CharClass,
) -> Option<Progress> {
    let (matches, is_filled) = progress;
    let begun = (0..sequences.len()).map(|index| (index, 0));
    let mut next = Vec::new();
    for (index, len) in matches.iter().copied().chain(begun) {
        let sequence = &sequences[index];
        if sequence.get(len).is_some_and(|class| class.contains(c)) {
            if len + 1 == sequence.len() {
                return None;
            }
            next.push((index, len + 1));
        }
    }
    next.sort_unstable();
    next.dedup();
    Some((next, *is_filled || !blank.contains(c)))
}

/// Splits all characters into ranges that no class divides.
fn partition<'a>(classes: impl Iterator<Item = &'a CharClass>) -> Vec<(char, char)> {
    let mut starts: Vec<char> = vec!['\0'];
    for (start, end) in classes.flat_map(CharClass::ranges) {
        starts.push(*start);
        starts.extend(next_char(*end));
    }
    starts.sort_unstable();
    starts.dedup();
    let last = [char::MAX];
    let ends: Vec<char> = starts[1..].iter().filter_map(|next| previous_char(*next)).chain(last).collect();
    starts.into_iter().zip(ends).collect()
}
