//! What entries did in earlier turns: which stay, and which rest. A turn is counted in messages of the chat.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::entry::Entry;

/// What is remembered, by the `id` of an entry. It is part of a chat, kept by the caller between turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timed(pub BTreeMap<String, Times>);

/// What is remembered of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Times {
    /// It stays active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<Span>,
    /// It cannot be active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Span>,
}

/// Messages of the chat between which something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Messages there were when it began.
    pub since: u64,
    /// It holds while there are fewer.
    pub until: u64,
    /// Holds also when the chat is as long as when it began: it was not begun by an activation of that turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

impl Span {
    fn of(now: u64, messages: u32, for_ever: bool) -> Span {
        let until = if for_ever { u64::MAX } else { now.saturating_add(u64::from(messages)) };
        Span { since: now, until, kept: false }
    }
}

impl Timed {
    /// Ends what is over when the chat has `now` messages. A turn that is generated anew takes back what it had begun.
    pub(super) fn pass(&mut self, book: &[Entry], now: u64) {
        let entries: HashMap<&str, &Entry> = book.iter().map(|entry| (entry.id.as_str(), entry)).collect();
        self.0.retain(|id, times| {
            let Some(entry) = entries.get(id.as_str()) else { return false };
            let gone = |span: &Span| now <= span.since && !span.kept;
            times.sticky = times.sticky.filter(|span| !gone(span));
            times.cooldown = times.cooldown.filter(|span| !gone(span));
            if times.sticky.is_some_and(|span| now >= span.until) {
                times.sticky = None;
                if entry.cooldown > 0 || entry.once {
                    times.cooldown = Some(Span { kept: true, ..Span::of(now, entry.cooldown, entry.once) });
                }
            }
            times.cooldown = times.cooldown.filter(|span| now < span.until);
            times.sticky.is_some() || times.cooldown.is_some()
        });
    }

    /// Remembers that `entry` became active when the chat had `now` messages.
    pub(super) fn begin(&mut self, entry: &Entry, now: u64) {
        let sticky = entry.sticky > 0 || entry.keep_after_match;
        let cooldown = entry.cooldown > 0 || entry.once;
        if !sticky && !cooldown {
            return;
        }
        let times = self.0.entry(entry.id.clone()).or_default();
        if sticky && times.sticky.is_none() {
            times.sticky = Some(Span::of(now, entry.sticky, entry.keep_after_match));
        }
        if cooldown && times.cooldown.is_none() {
            times.cooldown = Some(Span::of(now, entry.cooldown, entry.once));
        }
    }

    /// Whether an entry stays active.
    pub(super) fn sticks(&self, entry: &Entry) -> bool {
        self.0.get(&entry.id).is_some_and(|times| times.sticky.is_some())
    }

    /// Whether an entry cannot be active.
    pub(super) fn rests(&self, entry: &Entry) -> bool {
        !self.sticks(entry) && self.0.get(&entry.id).is_some_and(|times| times.cooldown.is_some())
    }
}
