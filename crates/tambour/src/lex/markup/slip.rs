//! What is wrong with a tag that is understood all the same.

/// One fault in how a tag is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slip {
    /// Blanks behind the bracket, around the slash: `< / name>`. Those before the closing bracket are none.
    Blanks,
    /// Its name in other letter case.
    Case,
    /// A full-width bracket or slash: `＜`, `／`, `＞`.
    FullWidth,
    /// No closing bracket.
    MissingBracket,
}

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slips(u8);

impl Slips {
    /// No fault.
    pub const NONE: Slips = Slips(0);

    const ALL: [Slip; 4] = [Slip::Blanks, Slip::Case, Slip::FullWidth, Slip::MissingBracket];

    /// Those, and `slip`.
    #[must_use]
    pub fn with(self, slip: Slip) -> Slips {
        Slips(self.0 | 1 << slip as u8)
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Slips) -> Slips {
        Slips(self.0 | other.0)
    }

    /// Whether `slip` is among them.
    #[must_use]
    pub fn has(self, slip: Slip) -> bool {
        self.0 & 1 << slip as u8 != 0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Slips::NONE
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Slip> {
        Slips::ALL.into_iter().filter(move |slip| self.has(*slip))
    }
}
