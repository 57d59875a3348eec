//! What tells that a reply begins with events.

use crate::event::{EventKind, kind_of};

/// Whether a name is that of an event of the contract (J-050, R-76). Others tell nothing.
pub(super) fn is_event(name: &str) -> bool {
    kind_of(name) == Some(EventKind::Contract)
}

/// Whether an event of a list may be called so.
pub(super) fn may_be(name: &str) -> bool {
    matches!(kind_of(name), Some(EventKind::Contract | EventKind::System))
}

/// Whether events of these names are a reply: an answer is among them, and nothing stands behind their end.
pub(super) fn is_whole(names: &[&str]) -> bool {
    let last = names.iter().rfind(|name| is_event(name));
    names.contains(&"final_delta")
        && last.is_some_and(|name| matches!(*name, "final_delta" | "serp_queries" | "final_end"))
}
