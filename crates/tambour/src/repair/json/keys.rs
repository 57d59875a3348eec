//! Keys of objects: detection of duplicates (P-030), and reuse of key buffers.

use std::hash::{BuildHasher, RandomState};

use crate::finding::clip;
use crate::finding::{Doubt, FindingReport};
use crate::repair::rules;
use crate::span::{Extent, Place};

/// Pool of buffers for keys, reused from object to object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KeyBuffers(Vec<String>);

/// Maximum number of buffers in the pool.
const MAX_BUFFERS: usize = 16;
/// Maximum capacity in bytes of a buffer in the pool.
const MAX_BUFFER_LEN: usize = 1 << 10;

impl KeyBuffers {
    /// Returns `key` in a buffer of the pool, or in a new one.
    pub(super) fn fill(&mut self, key: &str) -> String {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.push_str(key);
        buffer
    }

    /// Returns the buffers of keys to the pool, as far as they fit.
    pub(super) fn recycle(&mut self, keys: impl Iterator<Item = String>) {
        let small_keys = keys.filter(|key| key.capacity() <= MAX_BUFFER_LEN);
        for mut key in small_keys.take(MAX_BUFFERS.saturating_sub(self.0.len())) {
            key.clear();
            self.0.push(key);
        }
    }
}

/// A key that occurs again in its object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateKey {
    /// The key, truncated to 40 characters.
    pub key: String,
    /// First occurrence: the key and its value.
    pub first: Extent,
    /// Second occurrence: the key and its value.
    pub second: Extent,
    /// Number of further duplicate keys that have no entry in the list; `first` and `second` cover them too.
    pub other_count: usize,
    /// Number of open brackets around the key; the smallest one if the entry covers several keys.
    depth: usize,
}

/// Maximum number of duplicate keys listed for one value.
const MAX_DUPLICATES: usize = 16;

impl DuplicateKey {
    fn new(key: &str, first: Extent, second: Place, depth: usize) -> DuplicateKey {
        let key = clip(key, 40).into_owned();
        let second = Extent { place: second, end: 0 };
        DuplicateKey { key, first, second, other_count: 0, depth }
    }

    /// Adds a duplicate key to the list of a value. The end of its second value is not known yet.
    pub(super) fn add(list: &mut Vec<DuplicateKey>, key: &str, first: Extent, second: Place, depth: usize) {
        if list.len() < MAX_DUPLICATES {
            return list.push(DuplicateKey::new(key, first, second, depth));
        }
        let last = &mut list[MAX_DUPLICATES - 1];
        last.other_count += 1;
        last.first = last.first.join(first);
        // 0 means that the end is not known yet.
        last.second.end = 0;
        last.depth = last.depth.min(depth);
    }

    /// Report for a reader that keeps the last value; it covers the first, which is dropped.
    #[must_use]
    pub fn report_last_kept(&self) -> FindingReport {
        self.report(self.first).with_repair("kept the last value")
    }

    /// Report for a reader that keeps the first value, since it was sent already; it covers the second.
    #[must_use]
    pub fn report_first_kept(&self) -> FindingReport {
        self.report(self.second).with_repair("kept the first value, which was sent")
    }

    /// Report that covers one of the two occurrences, without a repair.
    #[must_use]
    pub fn report(&self, Extent { place, end }: Extent) -> FindingReport {
        let others_text = match self.other_count {
            0 => String::new(),
            count => format!(", and {count} more keys"),
        };
        let message = format!("the key `{}` occurs twice{others_text}", self.key);
        FindingReport::new(&rules::DUPLICATE_KEY, place, end, message).with_doubt(Doubt::DuplicateKey)
    }
}

/// Sets the end of those second values that have no end yet, for duplicate keys at this depth or deeper.
#[inline]
pub(super) fn end_duplicates(duplicates: &mut [DuplicateKey], depth: usize, end: usize) {
    for duplicate in duplicates.iter_mut().filter(|entry| entry.second.end == 0 && entry.depth >= depth) {
        duplicate.second.end = end;
    }
}

/// Number of keys of an object up to which each new key is compared with all others.
const LINEAR_KEYS: usize = 16;

/// Index of the keys of a large object: a hash table with open addressing, from a key to its position.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyIndex {
    hasher: RandomState,
    /// For each slot, the position of its key plus one, or zero if it is free. The length is a power of two.
    slots: Vec<u32>,
    /// Number of slots in use.
    used: usize,
}

impl KeyIndex {
    /// Inserts the key `name` at the position `at`; returns the position of an earlier equal key, which the
    /// new position replaces in the index with `replaces_earlier`. `key` returns the key at a position.
    fn insert<'k>(
        &mut self,
        at: usize,
        name: &str,
        key: &impl Fn(usize) -> &'k str,
        replaces_earlier: bool,
    ) -> Option<usize> {
        if 2 * self.used >= self.slots.len() {
            // The table grows, so that at most half of its slots are in use.
            let used_slots = std::mem::take(&mut self.slots).into_iter().filter(|&slot| slot > 0);
            let entries: Vec<u32> = used_slots.collect();
            self.slots = vec![0; (4 * entries.len()).next_power_of_two().max(4 * LINEAR_KEYS)];
            for entry in entries {
                let slot = self.find_slot(key(entry as usize - 1), key);
                self.slots[slot] = entry;
            }
        }
        let slot = self.find_slot(name, key);
        let earlier_entry = self.slots[slot];
        if earlier_entry == 0 || replaces_earlier {
            self.slots[slot] = u32::try_from(at + 1).unwrap_or(u32::MAX);
        }
        self.used += usize::from(earlier_entry == 0);
        earlier_entry.checked_sub(1).map(|position| position as usize)
    }

    /// Slot of the key called `name`, or the free slot for it.
    fn find_slot<'k>(&self, name: &str, key: &impl Fn(usize) -> &'k str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(name) as usize & mask;
        while self.slots[slot] > 0 && key(self.slots[slot] as usize - 1) != name {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// Returns the position of the last key equal to `name` among the `count` keys so far; `key` returns the key
/// at a position. The caller then adds `name`: with `replaces_earlier` always, at position `count`; otherwise
/// only if it is new. `index` is built once there are many keys.
pub(super) fn find_key<'k>(
    count: usize,
    key: impl Fn(usize) -> &'k str,
    name: &str,
    index: &mut Option<Box<KeyIndex>>,
    replaces_earlier: bool,
) -> Option<usize> {
    if count < LINEAR_KEYS {
        return (0..count).rev().find(|&at| key(at) == name);
    }
    let index = index.get_or_insert_with(|| {
        // The last of several equal keys is found.
        let replaces_earlier = true;
        let mut index = Box::<KeyIndex>::default();
        for at in 0..count {
            index.insert(at, key(at), &key, replaces_earlier);
        }
        index
    });
    index.insert(count, name, &key, replaces_earlier)
}
