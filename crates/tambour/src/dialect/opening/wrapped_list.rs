//! A list of objects under the only key of an object that is the whole reply, as services write lists that
//! must be objects.

use super::objects::{FoundObject, ObjectEvidence, ObjectKey};
use super::{NeededKey, PrefixExtent, WrappedList};
use crate::dialect::DialectEntry;
use crate::lex::fence::Fence;

/// The current list, or the finished one.
#[derive(Debug, Default)]
pub(super) struct WrappedItems {
    /// Keys of each object in the list.
    pub(super) keys: Vec<Vec<ObjectKey>>,
    /// Set while the list is open.
    pub(super) is_open: bool,
    /// Set while its last object is open.
    pub(super) is_item_open: bool,
    /// Set if the list holds anything but objects.
    pub(super) has_other_values: bool,
}

impl WrappedItems {
    /// Starts a list.
    pub(super) fn begin() -> WrappedItems {
        WrappedItems { is_open: true, ..WrappedItems::default() }
    }

    /// Returns the names of the complete objects, if all have one.
    fn names(&self, needed_key: &NeededKey) -> Option<Vec<&str>> {
        let complete_count = self.keys.len() - usize::from(self.is_item_open);
        let name = |keys: &Vec<ObjectKey>| keys.iter().position(|key| needed_key.matches_name(key));
        self.keys[..complete_count].iter().map(|keys| keys[name(keys)?].text.as_deref()).collect()
    }
}

/// Returns the evidence of an object for a dialect whose objects may be listed under this key; `None` if it
/// has no such key.
pub(super) fn wrapped_evidence(
    found: &FoundObject,
    entry: &DialectEntry,
    text: &str,
    extent: PrefixExtent,
) -> Option<ObjectEvidence> {
    let WrappedList { names, item_test, reply_test } = entry.opening.wrapped_list?;
    let key = found.keys.first().filter(|key| names.contains(&key.name.as_str()))?;
    let Some(items) = &found.items else {
        // The list may begin next.
        let must_wait =
            found.is_first && key.value.is_none() && found.end.is_none() && extent != PrefixExtent::All;
        return must_wait.then_some(ObjectEvidence::Possible);
    };
    let item_names = items.names(entry.opening.keys.first()?);
    let is_list_object =
        found.is_first && found.keys.len() == 1 && key.text.is_none() && !items.has_other_values;
    let Some(item_names) =
        item_names.filter(|item_names| is_list_object && item_names.iter().all(|name| item_test(name)))
    else {
        return Some(ObjectEvidence::Absent);
    };
    Some(match found.end {
        // An incomplete object is no evidence.
        None if extent == PrefixExtent::All => ObjectEvidence::Absent,
        None => ObjectEvidence::Possible,
        Some(end) if !reply_test(&item_names) || !is_reply_end(&text[end..]) => ObjectEvidence::Absent,
        Some(_) if extent == PrefixExtent::All => ObjectEvidence::Dialect(entry.name),
        // More text may follow.
        Some(_) => ObjectEvidence::Possible,
    })
}

/// Returns whether only white space and a fence line precede the object.
pub(super) fn is_reply_start(before: &str) -> bool {
    let before = before.trim();
    before.is_empty() || Fence::parse(before).is_some()
}

/// Returns whether only white space and a closing fence follow the object.
fn is_reply_end(text_after: &str) -> bool {
    let text_after = text_after.trim();
    text_after.is_empty() || text_after.bytes().all(|byte| matches!(byte, b'`' | b'~'))
}
