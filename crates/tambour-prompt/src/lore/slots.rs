//! Places of a prompt that active entries go to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::entry::{EntryPosition, LoreEntry, MessageRole};

/// Indexes of active entries by place. Each list is sorted by `order`, then by position in the book; outlets
/// are sorted from the highest `order` down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoreSlots {
    /// Before the character.
    pub lore_before: Vec<usize>,
    /// After the character.
    pub lore_after: Vec<usize>,
    /// Above the author's note.
    pub note_top: Vec<usize>,
    /// Below the author's note.
    pub note_bottom: Vec<usize>,
    /// Before the example dialogues.
    pub examples_before: Vec<usize>,
    /// After the example dialogues.
    pub examples_after: Vec<usize>,
    /// After the personality.
    pub personality: Vec<usize>,
    /// After the scenario.
    pub scenario: Vec<usize>,
    /// Entries by the name of their outlet, case-sensitive.
    pub outlets: BTreeMap<String, Vec<usize>>,
    /// Entries among the messages, sorted by `from_start`, depth and role.
    pub depth: Vec<DepthSlot>,
}

/// Entries of one place among the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DepthSlot {
    /// Number of messages between the place and the end of the chat, or its beginning if `from_start` is set.
    pub depth: u32,
    /// Counts `depth` from the beginning of the chat.
    pub from_start: bool,
    /// Role of the message that the entries become.
    pub role: MessageRole,
    /// Indexes of the entries.
    pub entries: Vec<usize>,
}

impl LoreSlots {
    /// Sorts the active entries of a book into their places.
    pub(super) fn from_active(book: &[LoreEntry], entries: &[usize]) -> LoreSlots {
        let mut entries = entries.to_vec();
        entries.sort_by_key(|&at| (book[at].order, at));
        let mut slots = LoreSlots::default();
        for at in entries {
            let entry = &book[at];
            match entry.position {
                EntryPosition::BeforeChar => slots.lore_before.push(at),
                EntryPosition::AfterChar => slots.lore_after.push(at),
                EntryPosition::NoteTop => slots.note_top.push(at),
                EntryPosition::NoteBottom => slots.note_bottom.push(at),
                EntryPosition::ExamplesBefore => slots.examples_before.push(at),
                EntryPosition::ExamplesAfter => slots.examples_after.push(at),
                EntryPosition::Personality => slots.personality.push(at),
                EntryPosition::Scenario => slots.scenario.push(at),
                EntryPosition::Outlet => slots.outlets.entry(entry.outlet.clone()).or_default().push(at),
                EntryPosition::AtDepth => slots.push_at_depth(entry, at),
            }
        }
        for outlet in slots.outlets.values_mut() {
            outlet.sort_by_key(|&at| (std::cmp::Reverse(book[at].order), at));
        }
        slots.depth.sort_by_key(|place| (place.from_start, place.depth, place.role));
        slots
    }

    fn push_at_depth(&mut self, entry: &LoreEntry, at: usize) {
        let key = (entry.from_start, entry.depth, entry.role);
        match self.depth.iter_mut().find(|place| (place.from_start, place.depth, place.role) == key) {
            Some(place) => place.entries.push(at),
            None => {
                let (from_start, depth, role) = key;
                self.depth.push(DepthSlot { depth, from_start, role, entries: vec![at] });
            }
        }
    }
}
