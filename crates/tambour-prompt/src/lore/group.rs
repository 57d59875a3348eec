//! Groups of entries, of which only one is active.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{Entry, Logic};
use super::timed::Timed;

/// Number of matching keys of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Score {
    pub(super) keys: usize,
    pub(super) secondary: usize,
}

impl Score {
    /// Returns the score as SillyTavern computes it.
    pub(super) fn of(self, entry: &Entry) -> usize {
        if entry.keys.is_empty() {
            return 0;
        }
        let counts = match entry.logic {
            Logic::AndAny => true,
            Logic::AndAll => self.secondary == entry.secondary_keys.len(),
            Logic::NotAll | Logic::NotAny => false,
        };
        self.keys + if counts { self.secondary } else { 0 }
    }
}

/// Decides which entry of each group is active.
pub(super) struct Chooser<'a> {
    pub(super) book: &'a [Entry],
    pub(super) timed: &'a Timed,
    /// Entries activated by earlier passes.
    pub(super) active: &'a [usize],
    pub(super) scoring: bool,
    /// Returns a number in 0..1 for a name.
    pub(super) chance: &'a dyn Fn(&str) -> f64,
}

impl Chooser<'_> {
    /// Returns the entries of `found` that lose in their groups.
    pub(super) fn losers(&self, found: &[(usize, Score)]) -> BTreeSet<usize> {
        let mut lost = BTreeSet::new();
        let taken: BTreeSet<&str> = self.active.iter().flat_map(|&at| names(&self.book[at])).collect();
        let mut groups: BTreeMap<&str, Vec<(usize, Score)>> = BTreeMap::new();
        for &(at, score) in found {
            for name in names(&self.book[at]) {
                groups.entry(name).or_default().push((at, score));
            }
        }
        for (name, members) in groups {
            let members: Vec<_> = members.into_iter().filter(|(at, _)| !lost.contains(at)).collect();
            let winner = if taken.contains(name) { None } else { self.winner(name, &members) };
            let stay = match winner {
                None => BTreeSet::new(),
                Some(Winner::One(at)) => BTreeSet::from([at]),
                Some(Winner::Sticky(all)) => all,
            };
            lost.extend(members.iter().map(|(at, _)| *at).filter(|at| !stay.contains(at)));
        }
        lost
    }

    fn winner(&self, name: &str, members: &[(usize, Score)]) -> Option<Winner> {
        let sticky: BTreeSet<usize> =
            members.iter().map(|(at, _)| *at).filter(|&at| self.timed.sticks(&self.book[at])).collect();
        if !sticky.is_empty() {
            return Some(Winner::Sticky(sticky));
        }
        let best = members.iter().map(|(at, score)| score.of(&self.book[*at])).max()?;
        let scored = |entry: &Entry| entry.group_scoring.unwrap_or(self.scoring);
        let left: Vec<usize> = members
            .iter()
            .filter(|(at, score)| !scored(&self.book[*at]) || score.of(&self.book[*at]) == best)
            .map(|(at, _)| *at)
            .collect();
        let first = left.iter().copied().filter(|&at| self.book[at].group_override);
        // Of entries with equal order, the first in the book wins.
        if let Some(first) = first.max_by_key(|&at| (self.book[at].order, usize::MAX - at)) {
            return Some(Winner::One(first));
        }
        let weight = |at: usize| self.book[at].group_weight.max(0.0);
        let total: f64 = left.iter().map(|&at| weight(at)).sum();
        let mut rest = (self.chance)(name) * total;
        let chosen = left.iter().copied().find(|&at| {
            rest -= weight(at);
            rest < 0.0
        });
        chosen.or(left.first().copied()).map(Winner::One)
    }
}

enum Winner {
    One(usize),
    /// All sticky entries of the group stay active.
    Sticky(BTreeSet<usize>),
}

/// Returns the group names of an entry.
fn names(entry: &Entry) -> impl Iterator<Item = &str> {
    entry.group.iter().map(|name| name.trim()).filter(|name| !name.is_empty())
}
