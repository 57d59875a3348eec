//! What tells that a reply begins with events.

use crate::event::{EventKind, kind_of};

/// Whether a name is that of an event of the contract (J-050, R-76). Others tell nothing.
pub(super) fn is_event(name: &str) -> bool {
    kind_of(name) == Some(EventKind::Contract)
}

/// Tells the names that an event of a list may have.
pub(super) fn may_be(name: &str) -> bool {
    matches!(kind_of(name), Some(EventKind::Contract | EventKind::System))
}

/// Tells a whole reply by the names of its events: an answer is among them, and nothing stands behind their end.
pub(super) fn is_whole(names: &[&str]) -> bool {
    let last = names.iter().rfind(|name| is_event(name));
    names.contains(&"final_delta")
        && last.is_some_and(|name| matches!(*name, "final_delta" | "serp_queries" | "final_end"))
}
