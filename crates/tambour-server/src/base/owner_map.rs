//! One shared value per owner: created on first use, dropped with its last holder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Map from an owner to its shared value. Holds weak references only.
pub(crate) struct OwnerMap<T> {
    values: Mutex<HashMap<String, Weak<T>>>,
}

impl<T> Default for OwnerMap<T> {
    fn default() -> OwnerMap<T> {
        OwnerMap { values: Mutex::default() }
    }
}

impl<T> OwnerMap<T> {
    /// Returns the value of an owner; creates it if nobody holds one.
    pub(crate) fn get(&self, owner: &str, new_value: impl FnOnce() -> T) -> Arc<T> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.get(owner).and_then(Weak::upgrade) {
            return value;
        }
        // Entries whose value was dropped are removed before the map would grow.
        if values.len() == values.capacity() {
            values.retain(|_, value| value.strong_count() > 0);
        }
        let value = Arc::new(new_value());
        values.insert(owner.to_owned(), Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_anew_when_nobody_holds_it() {
        let values = OwnerMap::default();
        let first = values.get("a", || 1);
        assert_eq!((*values.get("a", || 2), *values.get("b", || 3)), (1, 3));
        drop(first);
        assert_eq!(*values.get("a", || 4), 4);
        (0..1000).for_each(|number| drop(values.get(&number.to_string(), || number)));
        assert!(values.values.lock().unwrap().len() < 100);
    }
}
