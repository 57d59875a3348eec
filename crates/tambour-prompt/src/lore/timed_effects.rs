//! Timed effects of lorebook entries across turns: sticky and cooldown. Time is counted in messages of the
//! chat.

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
    /// Period in which the entry stays active, if one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<EffectPeriod>,
    /// Period in which the entry cannot become active, if one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<EffectPeriod>,
}

/// Period of the chat, counted in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectPeriod {
    /// Number of messages that the chat had when the period began.
    pub since: u64,
    /// Number of messages of the chat at which the period ends; [`u64::MAX`] for one that never ends.
    pub until: u64,
    /// True for a cooldown that began because the sticky period ended. It stays when its turn is generated
    /// again; other periods that began in the turn are removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl EffectPeriod {
    /// Creates a period that begins when the chat has `now` messages, and lasts for `messages` more, or
    /// forever if it is permanent.
    fn starting_at(now: u64, messages: u32, is_permanent: bool) -> EffectPeriod {
        let until = if is_permanent { u64::MAX } else { now.saturating_add(u64::from(messages)) };
        EffectPeriod { since: now, until, kept: false }
    }
}

impl TimedEffects {
    /// Ends the periods that are over when the chat has `now` messages, and drops the effects of entries that
    /// the book no longer has. If a turn is generated again, the periods that began in it are removed.
    pub(super) fn advance(&mut self, book: &[LoreEntry], now: u64) {
        let entries: HashMap<&str, &LoreEntry> =
            book.iter().map(|entry| (entry.id.as_str(), entry)).collect();
        self.0.retain(|id, effects| {
            let Some(entry) = entries.get(id.as_str()) else { return false };
            // The chat has not grown since the period began, so its turn is generated again.
            let is_undone = |period: &EffectPeriod| now <= period.since && !period.kept;
            effects.sticky = effects.sticky.filter(|period| !is_undone(period));
            effects.cooldown = effects.cooldown.filter(|period| !is_undone(period));
            if effects.sticky.is_some_and(|period| now >= period.until) {
                effects.sticky = None;
                if entry.cooldown > 0 || entry.once {
                    effects.cooldown = Some(EffectPeriod {
                        kept: true,
                        ..EffectPeriod::starting_at(now, entry.cooldown, entry.once)
                    });
                }
            }
            effects.cooldown = effects.cooldown.filter(|period| now < period.until);
            effects.sticky.is_some() || effects.cooldown.is_some()
        });
    }

    /// Begins the periods of `entry`, which became active when the chat had `now` messages.
    pub(super) fn record_activation(&mut self, entry: &LoreEntry, now: u64) {
        let begins_sticky = entry.sticky > 0 || entry.keep_after_match;
        let begins_cooldown = entry.cooldown > 0 || entry.once;
        if !begins_sticky && !begins_cooldown {
            return;
        }
        let effects = self.0.entry(entry.id.clone()).or_default();
        if begins_sticky && effects.sticky.is_none() {
            effects.sticky = Some(EffectPeriod::starting_at(now, entry.sticky, entry.keep_after_match));
        }
        if begins_cooldown && effects.cooldown.is_none() {
            effects.cooldown = Some(EffectPeriod::starting_at(now, entry.cooldown, entry.once));
        }
    }

    /// Returns true if an entry stays active from an earlier turn.
    pub(super) fn is_sticky(&self, entry: &LoreEntry) -> bool {
        self.0.get(&entry.id).is_some_and(|effects| effects.sticky.is_some())
    }

    /// Returns true if an entry cannot become active.
    pub(super) fn is_on_cooldown(&self, entry: &LoreEntry) -> bool {
        !self.is_sticky(entry) && self.0.get(&entry.id).is_some_and(|effects| effects.cooldown.is_some())
    }
}
