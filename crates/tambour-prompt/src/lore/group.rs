//! Groups of lorebook entries: of each group, only one entry is active.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{LoreEntry, SecondaryLogic};
use super::timed_effects::TimedEffects;

/// Numbers of matching keys of an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyScore {
    /// Number of matching primary keys.
    pub(super) key_count: usize,
    /// Number of matching secondary keys.
    pub(super) secondary_key_count: usize,
}

impl KeyScore {
    /// Returns the score as SillyTavern computes it.
    pub(super) fn total(self, entry: &LoreEntry) -> usize {
        if entry.keys.is_empty() {
            return 0;
        }
        let counts_secondary = match entry.logic {
            SecondaryLogic::AndAny => true,
            SecondaryLogic::AndAll => self.secondary_key_count == entry.secondary_keys.len(),
            SecondaryLogic::NotAll | SecondaryLogic::NotAny => false,
        };
        self.key_count + if counts_secondary { self.secondary_key_count } else { 0 }
    }
}

/// Decides which entry of each group is active.
pub(super) struct GroupChooser<'a> {
    pub(super) book: &'a [LoreEntry],
    pub(super) timed_effects: &'a TimedEffects,
    /// Indexes of the entries that earlier passes activated.
    pub(super) active_indexes: &'a [usize],
    /// Value of `group_scoring` for entries that do not set it.
    pub(super) scores_groups: bool,
    /// Returns a random number in 0..1 for the name of a group.
    pub(super) chance: &'a dyn Fn(&str) -> f64,
}

impl GroupChooser<'_> {
    /// Returns the indexes of the entries of `matches` that lose in one of their groups.
    pub(super) fn find_losers(&self, matches: &[(usize, KeyScore)]) -> BTreeSet<usize> {
        let mut losers = BTreeSet::new();
        let active_groups: BTreeSet<&str> =
            self.active_indexes.iter().flat_map(|&index| group_names(&self.book[index])).collect();
        let mut groups: BTreeMap<&str, Vec<(usize, KeyScore)>> = BTreeMap::new();
        for &(index, score) in matches {
            for name in group_names(&self.book[index]) {
                groups.entry(name).or_default().push((index, score));
            }
        }
        for (name, members) in groups {
            let members: Vec<_> = members.into_iter().filter(|(index, _)| !losers.contains(index)).collect();
            // A group with an active entry from an earlier pass gets no second one.
            let winner = if active_groups.contains(name) { None } else { self.find_winner(name, &members) };
            let survivors = match winner {
                None => BTreeSet::new(),
                Some(GroupWinner::One(index)) => BTreeSet::from([index]),
                Some(GroupWinner::Sticky(entries)) => entries,
            };
            losers.extend(members.iter().map(|(index, _)| *index).filter(|index| !survivors.contains(index)));
        }
        losers
    }

    /// Returns the winner of a group; `None` if it has no members.
    fn find_winner(&self, name: &str, members: &[(usize, KeyScore)]) -> Option<GroupWinner> {
        let sticky_entries: BTreeSet<usize> = members
            .iter()
            .map(|(index, _)| *index)
            .filter(|&index| self.timed_effects.is_sticky(&self.book[index]))
            .collect();
        if !sticky_entries.is_empty() {
            return Some(GroupWinner::Sticky(sticky_entries));
        }
        let best_score = members.iter().map(|(index, score)| score.total(&self.book[*index])).max()?;
        let is_scored = |entry: &LoreEntry| entry.group_scoring.unwrap_or(self.scores_groups);
        let candidates: Vec<usize> = members
            .iter()
            .filter(|(index, score)| {
                !is_scored(&self.book[*index]) || score.total(&self.book[*index]) == best_score
            })
            .map(|(index, _)| *index)
            .collect();
        let overriding = candidates.iter().copied().filter(|&index| self.book[index].group_override);
        // Of entries with equal order, the first in the book wins.
        if let Some(first) = overriding.max_by_key(|&index| (self.book[index].order, usize::MAX - index)) {
            return Some(GroupWinner::One(first));
        }
        let weight = |index: usize| self.book[index].group_weight.max(0.0);
        let total: f64 = candidates.iter().map(|&index| weight(index)).sum();
        // Draws an entry at random by weight.
        let mut remaining_weight = (self.chance)(name) * total;
        let drawn = candidates.iter().copied().find(|&index| {
            remaining_weight -= weight(index);
            remaining_weight < 0.0
        });
        // If all weights are 0, nothing is drawn and the first candidate wins.
        drawn.or(candidates.first().copied()).map(GroupWinner::One)
    }
}

/// Entries of a group that may be active, by index.
enum GroupWinner {
    /// A single entry.
    One(usize),
    /// All sticky entries of the group stay active.
    Sticky(BTreeSet<usize>),
}

/// Returns the group names of an entry.
fn group_names(entry: &LoreEntry) -> impl Iterator<Item = &str> {
    entry.group.iter().map(|name| name.trim()).filter(|name| !name.is_empty())
}
