//! Groups of entries, of which only one is active.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{LoreEntry, SecondaryLogic};
use super::timed_effects::TimedEffects;

/// Number of matching keys of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyScore {
    pub(super) keys: usize,
    pub(super) secondary: usize,
}

impl KeyScore {
    /// Returns the score as SillyTavern computes it.
    pub(super) fn total(self, entry: &LoreEntry) -> usize {
        if entry.keys.is_empty() {
            return 0;
        }
        let counts = match entry.logic {
            SecondaryLogic::AndAny => true,
            SecondaryLogic::AndAll => self.secondary == entry.secondary_keys.len(),
            SecondaryLogic::NotAll | SecondaryLogic::NotAny => false,
        };
        self.keys + if counts { self.secondary } else { 0 }
    }
}

/// Decides which entry of each group is active.
pub(super) struct GroupChooser<'a> {
    pub(super) book: &'a [LoreEntry],
    pub(super) timed_effects: &'a TimedEffects,
    /// Entries activated by earlier passes.
    pub(super) active: &'a [usize],
    pub(super) scores_groups: bool,
    /// Returns a number in 0..1 for a name.
    pub(super) chance: &'a dyn Fn(&str) -> f64,
}

impl GroupChooser<'_> {
    /// Returns the entries of `found` that lose in their groups.
    pub(super) fn find_losers(&self, found: &[(usize, KeyScore)]) -> BTreeSet<usize> {
        let mut losers = BTreeSet::new();
        let active_groups: BTreeSet<&str> =
            self.active.iter().flat_map(|&at| group_names(&self.book[at])).collect();
        let mut groups: BTreeMap<&str, Vec<(usize, KeyScore)>> = BTreeMap::new();
        for &(at, score) in found {
            for name in group_names(&self.book[at]) {
                groups.entry(name).or_default().push((at, score));
            }
        }
        for (name, members) in groups {
            let members: Vec<_> = members.into_iter().filter(|(at, _)| !losers.contains(at)).collect();
            let winner = if active_groups.contains(name) { None } else { self.find_winner(name, &members) };
            let survivors = match winner {
                None => BTreeSet::new(),
                Some(GroupWinner::One(at)) => BTreeSet::from([at]),
                Some(GroupWinner::Sticky(all)) => all,
            };
            losers.extend(members.iter().map(|(at, _)| *at).filter(|at| !survivors.contains(at)));
        }
        losers
    }

    fn find_winner(&self, name: &str, members: &[(usize, KeyScore)]) -> Option<GroupWinner> {
        let sticky: BTreeSet<usize> = members
            .iter()
            .map(|(at, _)| *at)
            .filter(|&at| self.timed_effects.is_sticky(&self.book[at]))
            .collect();
        if !sticky.is_empty() {
            return Some(GroupWinner::Sticky(sticky));
        }
        let best = members.iter().map(|(at, score)| score.total(&self.book[*at])).max()?;
        let is_scored = |entry: &LoreEntry| entry.group_scoring.unwrap_or(self.scores_groups);
        let candidates: Vec<usize> = members
            .iter()
            .filter(|(at, score)| !is_scored(&self.book[*at]) || score.total(&self.book[*at]) == best)
            .map(|(at, _)| *at)
            .collect();
        let first = candidates.iter().copied().filter(|&at| self.book[at].group_override);
        // Of entries with equal order, the first in the book wins.
        if let Some(first) = first.max_by_key(|&at| (self.book[at].order, usize::MAX - at)) {
            return Some(GroupWinner::One(first));
        }
        let weight = |at: usize| self.book[at].group_weight.max(0.0);
        let total: f64 = candidates.iter().map(|&at| weight(at)).sum();
        let mut rest = (self.chance)(name) * total;
        let drawn = candidates.iter().copied().find(|&at| {
            rest -= weight(at);
            rest < 0.0
        });
        drawn.or(candidates.first().copied()).map(GroupWinner::One)
    }
}

enum GroupWinner {
    One(usize),
    /// All sticky entries of the group stay active.
    Sticky(BTreeSet<usize>),
}

/// Returns the group names of an entry.
fn group_names(entry: &LoreEntry) -> impl Iterator<Item = &str> {
    entry.group.iter().map(|name| name.trim()).filter(|name| !name.is_empty())
}
