//! Smooth weighted round-robin among the members of an alias, which share its load.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Credits of the members by name, for each alias. At each request, each member earns its weight; the member
/// with the most credit comes first and pays the sum of all weights.
#[derive(Debug, Default)]
pub(crate) struct Rotation(Mutex<HashMap<String, HashMap<String, i64>>>);

impl Rotation {
    /// Returns the name of the member to try first for this request to `alias`; `None` if `members`, each a
    /// name and a weight, is empty. Each member comes first in proportion to its weight, interleaved with the
    /// others.
    pub(crate) fn pick_first<'a>(&self, alias: &str, members: &[(&'a str, u32)]) -> Option<&'a str> {
        let mut credits_by_alias = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let credits = credits_by_alias.entry(alias.to_owned()).or_default();
        // A member left out for a while gets no credit for that time.
        credits.retain(|name, _| members.iter().any(|(member, _)| member == name));
        let total_weight: i64 = members.iter().map(|(_, weight)| i64::from(*weight)).sum();
        let mut first: Option<(&str, i64)> = None;
        for (name, weight) in members {
            let credit = credits.entry((*name).to_owned()).or_default();
            *credit += i64::from(*weight);
            if first.is_none_or(|(_, max_credit)| *credit > max_credit) {
                first = Some((name, *credit));
            }
        }
        let (name, credit) = first?;
        credits.insert(name.to_owned(), credit - total_weight);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_spread_by_weight() {
        let rotation = Rotation::default();
        let picks = |members: &[(&'static str, u32)], count: usize| -> String {
            (0..count).map(|_| rotation.pick_first("x", members).unwrap_or("-")).collect()
        };
        assert_eq!(picks(&[("a", 5), ("b", 1), ("c", 1)], 14), "aabacaaaabacaa");
        assert_eq!(picks(&[("a", 1), ("b", 1)], 4).matches('a').count(), 2);
        // A member that was left out does not catch up.
        assert_eq!(picks(&[("b", 1)], 3), "bbb");
        assert_eq!(picks(&[("a", 1), ("b", 1)], 4).matches('a').count(), 2);
        assert_eq!(picks(&[], 2), "--");
    }
}
