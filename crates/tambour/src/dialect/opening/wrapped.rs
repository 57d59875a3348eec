//! A list of objects under the only key of an object that is the whole reply, as services write lists that
//! must be objects.

use super::objects::{Found, Key, Told};
use super::{Extent, Needed, Wrapped};
use crate::dialect::Entry;
use crate::lex::fence::Fence;

/// The current list, or the finished one.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// Keys of each object in the list.
    pub(super) keys: Vec<Vec<Key>>,
    /// Set while the list is open.
    pub(super) open: bool,
    /// Set while its last object is open.
    pub(super) inside: bool,
    /// Set if the list holds anything but objects.
    pub(super) others: bool,
}

impl Items {
    /// Starts a list.
    pub(super) fn begin() -> Items {
        Items { open: true, ..Items::default() }
    }

    /// Returns the names of the complete objects, if all have one.
    fn names(&self, needed: &Needed) -> Option<Vec<&str>> {
        let complete = self.keys.len() - usize::from(self.inside);
        let name = |keys: &Vec<Key>| keys.iter().position(|key| needed.is(key));
        self.keys[..complete].iter().map(|keys| keys[name(keys)?].text.as_deref()).collect()
    }
}

/// Returns the evidence of an object for a dialect whose objects may be listed under this key; `None` if it
/// has no such key.
pub(super) fn tells(found: &Found, entry: &Entry, text: &str, extent: Extent) -> Option<Told> {
    let Wrapped { names, item, whole } = entry.opening.wrapped?;
    let key = found.keys.first().filter(|key| names.contains(&key.name.as_str()))?;
    let Some(items) = &found.items else {
        // The list may begin next.
        let waits = found.first && key.value.is_none() && found.end.is_none() && extent != Extent::All;
        return waits.then_some(Told::Perhaps);
    };
    let named = items.names(entry.opening.keys.first()?);
    let fits = found.first && found.keys.len() == 1 && key.text.is_none() && !items.others;
    let Some(named) = named.filter(|named| fits && named.iter().all(|name| item(name))) else {
        return Some(Told::Nothing);
    };
    Some(match found.end {
        // An incomplete object is no evidence.
        None if extent == Extent::All => Told::Nothing,
        None => Told::Perhaps,
        Some(end) if !whole(&named) || !ends(&text[end..]) => Told::Nothing,
        Some(_) if extent == Extent::All => Told::Dialect(entry.name),
        // More text may follow.
        Some(_) => Told::Perhaps,
    })
}

/// Returns whether only white space and a fence line precede the object.
pub(super) fn begins(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || Fence::of(before).is_some()
}

/// Returns whether only white space and a closing fence follow the object.
fn ends(behind: &str) -> bool {
    let behind = behind.trim();
    behind.is_empty() || behind.bytes().all(|byte| matches!(byte, b'`' | b'~'))
}
