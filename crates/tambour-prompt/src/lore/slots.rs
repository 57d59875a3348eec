//! Places of a prompt where active lorebook entries go.

use std::collections::BTreeMap;

use serde::Serialize;

use super::entry::{EntryPosition, LoreEntry, MessageRole};

/// Active entries by place, as indexes into the book. Each list is sorted by `order`, then by position in the
/// book; outlets are sorted from the highest `order` down.
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
    /// True if `depth` counts from the beginning of the chat.
    pub from_start: bool,
    /// Role of the message that the entries become.
    pub role: MessageRole,
    /// Indexes of the entries in the book.
    pub entries: Vec<usize>,
}

impl LoreSlots {
    /// Sorts the active entries of a book into their places; `active` holds their indexes.
    pub(super) fn from_active(book: &[LoreEntry], active: &[usize]) -> LoreSlots {
        let mut sorted = active.to_vec();
        sorted.sort_by_key(|&index| (book[index].order, index));
        let mut slots = LoreSlots::default();
        for index in sorted {
            let entry = &book[index];
            match entry.position {
                EntryPosition::BeforeChar => slots.lore_before.push(index),
                EntryPosition::AfterChar => slots.lore_after.push(index),
                EntryPosition::NoteTop => slots.note_top.push(index),
                EntryPosition::NoteBottom => slots.note_bottom.push(index),
                EntryPosition::ExamplesBefore => slots.examples_before.push(index),
                EntryPosition::ExamplesAfter => slots.examples_after.push(index),
                EntryPosition::Personality => slots.personality.push(index),
                EntryPosition::Scenario => slots.scenario.push(index),
                EntryPosition::Outlet => slots.outlets.entry(entry.outlet.clone()).or_default().push(index),
                EntryPosition::AtDepth => slots.push_at_depth(entry, index),
            }
        }
        for outlet in slots.outlets.values_mut() {
            outlet.sort_by_key(|&index| (std::cmp::Reverse(book[index].order), index));
        }
        slots.depth.sort_by_key(|slot| (slot.from_start, slot.depth, slot.role));
        slots
    }

    /// Adds an entry among the messages; entries with the same place and role share a slot.
    fn push_at_depth(&mut self, entry: &LoreEntry, index: usize) {
        let key = (entry.from_start, entry.depth, entry.role);
        match self.depth.iter_mut().find(|slot| (slot.from_start, slot.depth, slot.role) == key) {
            Some(slot) => slot.entries.push(index),
            None => {
                let (from_start, depth, role) = key;
                self.depth.push(DepthSlot { depth, from_start, role, entries: vec![index] });
            }
        }
    }
}
