//! Faults in the spelling of a tag that is recognised all the same.

/// One fault in the spelling of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slip {
    /// Blanks behind the bracket or around the slash: `< / name>`. Blanks before the closing bracket are no
    /// fault.
    Blanks,
    /// Name in another letter case.
    Case,
    /// A full-width bracket or slash: `＜`, `／`, `＞`.
    FullWidth,
    /// Missing closing bracket.
    MissingBracket,
}

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slips(u8);

impl Slips {
    /// No fault.
    pub const NONE: Slips = Slips(0);

    const ALL: [Slip; 4] = [Slip::Blanks, Slip::Case, Slip::FullWidth, Slip::MissingBracket];

    /// Set with `slip` added.
    #[must_use]
    pub fn with(self, slip: Slip) -> Slips {
        Slips(self.0 | 1 << slip as u8)
    }

    /// Union of both sets.
    #[must_use]
    pub fn and(self, other: Slips) -> Slips {
        Slips(self.0 | other.0)
    }

    /// Returns whether the set contains `slip`.
    #[must_use]
    pub fn has(self, slip: Slip) -> bool {
        self.0 & 1 << slip as u8 != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Slips::NONE
    }

    /// Faults of the set.
    pub fn iter(self) -> impl Iterator<Item = Slip> {
        Slips::ALL.into_iter().filter(move |slip| self.has(*slip))
    }
}
