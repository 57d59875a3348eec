//! Sets of characters.

/// Set of characters, as sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CharClass(Vec<(char, char)>);

/// White space of Unicode, which the rules about blank texts use.
const BLANKS: [(char, char); 10] = [
    ('\t', '\r'),
    (' ', ' '),
    ('\u{85}', '\u{85}'),
    ('\u{A0}', '\u{A0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200A}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202F}', '\u{202F}'),
    ('\u{205F}', '\u{205F}'),
    ('\u{3000}', '\u{3000}'),
];

impl CharClass {
    /// Creates a set from ranges in any order; both ends belong to a range.
    #[must_use]
    pub fn new(ranges: impl IntoIterator<Item = (char, char)>) -> CharClass {
        let mut sorted: Vec<(char, char)> = ranges.into_iter().filter(|(start, end)| start <= end).collect();
        sorted.sort_unstable();
        let mut joined: Vec<(char, char)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match joined.last_mut() {
                Some(last) if next_char(last.1).is_none_or(|next| start <= next) => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        CharClass(joined)
    }

    /// Set of all characters.
    #[must_use]
    pub fn any() -> CharClass {
        CharClass(vec![('\0', char::MAX)])
    }

    /// Set of white space.
    #[must_use]
    pub fn blank() -> CharClass {
        CharClass::new(BLANKS)
    }

    /// Set of the characters in `text`.
    #[must_use]
    pub fn of(text: &str) -> CharClass {
        CharClass::new(text.chars().map(|c| (c, c)))
    }

    /// Set of the characters in either set.
    #[must_use]
    pub fn union(&self, other: &CharClass) -> CharClass {
        CharClass::new(self.0.iter().chain(&other.0).copied())
    }

    /// Set of all other characters.
    #[must_use]
    pub fn negate(&self) -> CharClass {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut gap_start = Some('\0');
        for &(start, end) in &self.0 {
            if let (Some(first), Some(last)) = (gap_start, previous_char(start))
                && first <= last
            {
                gaps.push((first, last));
            }
            gap_start = next_char(end);
        }
        gaps.extend(gap_start.map(|first| (first, char::MAX)));
        CharClass(gaps)
    }

    /// Set of the characters that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &CharClass) -> CharClass {
        self.negate().union(other).negate()
    }

    /// Returns whether `c` is in the set.
    #[must_use]
    pub fn contains(&self, c: char) -> bool {
        self.0.iter().any(|(start, end)| (*start..=*end).contains(&c))
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ranges of the set, in order.
    #[must_use]
    pub fn ranges(&self) -> &[(char, char)] {
        &self.0
    }

    /// Writes the set in brackets, with `escape` for each character. A set without an upper end is written by
    /// what it lacks.
    pub(super) fn write(&self, escape: fn(char) -> String) -> String {
        let is_open = self.contains(char::MAX);
        let complement = self.negate();
        let ranges = if is_open { &complement.0 } else { &self.0 };
        let parts: String = ranges
            .iter()
            .map(|&(start, end)| match start == end {
                true => escape(start),
                false => format!("{}-{}", escape(start), escape(end)),
            })
            .collect();
        format!("[{}{parts}]", if is_open { "^" } else { "" })
    }
}

/// Character after `c`.
pub(super) fn next_char(c: char) -> Option<char> {
    match c {
        '\u{D7FF}' => Some('\u{E000}'),
        c => char::from_u32(u32::from(c) + 1),
    }
}

/// Character before `c`.
pub(super) fn previous_char(c: char) -> Option<char> {
    match c {
        '\u{E000}' => Some('\u{D7FF}'),
        c => u32::from(c).checked_sub(1).and_then(char::from_u32),
    }
}
