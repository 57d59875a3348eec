//! Whose turn it is among the aliases that share the work of one: smooth weighted round-robin.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How far the turns of each alias have come.
#[derive(Debug, Default)]
pub(crate) struct Rotation(Mutex<HashMap<String, HashMap<String, i64>>>);

impl Rotation {
    /// Who of `members`, by name and weight, is first this time for those that ask for `alias`. Over the turns of all weights
    /// together each one is first as often as its weight, and the turns of one are spread among those of the others.
    pub(crate) fn first<'a>(&self, alias: &str, members: &[(&'a str, u32)]) -> Option<&'a str> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let credits = all.entry(alias.to_owned()).or_default();
        // Who is left out for a while gets nothing for it.
        credits.retain(|name, _| members.iter().any(|(member, _)| member == name));
        let total: i64 = members.iter().map(|(_, weight)| i64::from(*weight)).sum();
        let mut first: Option<(&str, i64)> = None;
        for (name, weight) in members {
            let credit = credits.entry((*name).to_owned()).or_default();
            *credit += i64::from(*weight);
            if first.is_none_or(|(_, most)| *credit > most) {
                first = Some((name, *credit));
            }
        }
        let (name, credit) = first?;
        credits.insert(name.to_owned(), credit - total);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spread_by_weight() {
        let rotation = Rotation::default();
        let turns = |members: &[(&'static str, u32)], count: usize| -> String {
            (0..count).map(|_| rotation.first("x", members).unwrap_or("-")).collect()
        };
        assert_eq!(turns(&[("a", 5), ("b", 1), ("c", 1)], 14), "aabacaaaabacaa");
        assert_eq!(turns(&[("a", 1), ("b", 1)], 4).matches('a').count(), 2);
        // One that was left out does not make up for it.
        assert_eq!(turns(&[("b", 1)], 3), "bbb");
        assert_eq!(turns(&[("a", 1), ("b", 1)], 4).matches('a').count(), 2);
        assert_eq!(turns(&[], 2), "--");
    }
}
