//! Faults in the spelling of a tag that is recognised all the same.

/// One fault in the spelling of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagFault {
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
pub struct TagFaults(u8);

impl TagFaults {
    /// No fault.
    pub const NONE: TagFaults = TagFaults(0);

    const ALL: [TagFault; 4] =
        [TagFault::Blanks, TagFault::Case, TagFault::FullWidth, TagFault::MissingBracket];

    /// Set with `slip` added.
    #[must_use]
    pub fn with_fault(self, fault: TagFault) -> TagFaults {
        TagFaults(self.0 | 1 << fault as u8)
    }

    /// Union of both sets.
    #[must_use]
    pub fn union(self, other: TagFaults) -> TagFaults {
        TagFaults(self.0 | other.0)
    }

    /// Returns whether the set contains `slip`.
    #[must_use]
    pub fn contains(self, fault: TagFault) -> bool {
        self.0 & 1 << fault as u8 != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == TagFaults::NONE
    }

    /// Faults of the set.
    pub fn iter(self) -> impl Iterator<Item = TagFault> {
        TagFaults::ALL.into_iter().filter(move |fault| self.contains(*fault))
    }
}
