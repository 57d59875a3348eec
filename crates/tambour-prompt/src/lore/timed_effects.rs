//! Timed effects of entries across turns: sticky and cooldown. Time is counted in messages of the chat.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::entry::LoreEntry;

/// Timed effects by the `id` of an entry. Part of a chat; the caller stores it between turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimedEffects(pub BTreeMap<String, EntryEffects>);

/// Timed effects of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EntryEffects {
    /// Period in which the entry stays active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<EffectPeriod>,
    /// Period in which the entry cannot be active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<EffectPeriod>,
}

/// Period of the chat, counted in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectPeriod {
    /// Number of messages when the period began.
    pub since: u64,
    /// Number of messages at which the period ends.
    pub until: u64,
    /// True for a period that began when another ended. Such a period is not taken back when its turn is
    /// generated again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl EffectPeriod {
    fn starting_at(now: u64, messages: u32, is_permanent: bool) -> EffectPeriod {
        let until = if is_permanent { u64::MAX } else { now.saturating_add(u64::from(messages)) };
        EffectPeriod { since: now, until, kept: false }
    }
}

impl TimedEffects {
    /// Ends periods that are over when the chat has `now` messages. When a turn is generated again, the
    /// periods that it began are taken back.
    pub(super) fn advance(&mut self, book: &[LoreEntry], now: u64) {
        let entries: HashMap<&str, &LoreEntry> =
            book.iter().map(|entry| (entry.id.as_str(), entry)).collect();
        self.0.retain(|id, times| {
            let Some(entry) = entries.get(id.as_str()) else { return false };
            let is_undone = |span: &EffectPeriod| now <= span.since && !span.kept;
            times.sticky = times.sticky.filter(|span| !is_undone(span));
            times.cooldown = times.cooldown.filter(|span| !is_undone(span));
            if times.sticky.is_some_and(|span| now >= span.until) {
                times.sticky = None;
                if entry.cooldown > 0 || entry.once {
                    times.cooldown = Some(EffectPeriod {
                        kept: true,
                        ..EffectPeriod::starting_at(now, entry.cooldown, entry.once)
                    });
                }
            }
            times.cooldown = times.cooldown.filter(|span| now < span.until);
            times.sticky.is_some() || times.cooldown.is_some()
        });
    }

    /// Begins the periods of `entry`, which became active when the chat had `now` messages.
    pub(super) fn record_activation(&mut self, entry: &LoreEntry, now: u64) {
        let sticky = entry.sticky > 0 || entry.keep_after_match;
        let cooldown = entry.cooldown > 0 || entry.once;
        if !sticky && !cooldown {
            return;
        }
        let times = self.0.entry(entry.id.clone()).or_default();
        if sticky && times.sticky.is_none() {
            times.sticky = Some(EffectPeriod::starting_at(now, entry.sticky, entry.keep_after_match));
        }
        if cooldown && times.cooldown.is_none() {
            times.cooldown = Some(EffectPeriod::starting_at(now, entry.cooldown, entry.once));
        }
    }

    /// Returns true if an entry stays active.
    pub(super) fn is_sticky(&self, entry: &LoreEntry) -> bool {
        self.0.get(&entry.id).is_some_and(|times| times.sticky.is_some())
    }

    /// Returns true if an entry cannot be active.
    pub(super) fn is_on_cooldown(&self, entry: &LoreEntry) -> bool {
        !self.is_sticky(entry) && self.0.get(&entry.id).is_some_and(|times| times.cooldown.is_some())
    }
}
