//! A list of objects under the only key of an object that is the whole reply, as services write lists that have to be an object.

use super::objects::{Found, Key, Told};
use super::{Extent, Needed, Wrapped};
use crate::dialect::Entry;
use crate::lex::fence::Fence;

/// The list under way, or what came of it.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The keys of each object in it.
    pub(super) keys: Vec<Vec<Key>>,
    /// Set while the list, and its last object, go on.
    pub(super) open: bool,
    pub(super) inside: bool,
    /// Set where the list holds something else.
    pub(super) others: bool,
}

impl Items {
    /// A list begins.
    pub(super) fn begin() -> Items {
        Items { open: true, ..Items::default() }
    }

    /// The names of the objects that are complete, if all have one.
    fn names(&self, needed: &Needed) -> Option<Vec<&str>> {
        let complete = self.keys.len() - usize::from(self.inside);
        let name = |keys: &Vec<Key>| keys.iter().position(|key| needed.is(key));
        self.keys[..complete].iter().map(|keys| keys[name(keys)?].text.as_deref()).collect()
    }
}

/// Verdict of an object on a dialect whose objects may stand in a list under this key; `None`: it is no such object.
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
        // What is not complete is none.
        None if extent == Extent::All => Told::Nothing,
        None => Told::Perhaps,
        Some(end) if !whole(&named) || !ends(&text[end..]) => Told::Nothing,
        Some(_) if extent == Extent::All => Told::Dialect(entry.name),
        // More may follow.
        Some(_) => Told::Perhaps,
    })
}

/// Checks that nothing but white space and the line of a fence stands in front of the object.
pub(super) fn begins(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || Fence::of(before).is_some()
}

/// The same behind it.
fn ends(behind: &str) -> bool {
    let behind = behind.trim();
    behind.is_empty() || behind.bytes().all(|byte| matches!(byte, b'`' | b'~'))
}
