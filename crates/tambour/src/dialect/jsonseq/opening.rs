//! What tells that a reply begins with events.

use crate::event::{EventKind, kind_of};

/// Whether a name is that of an event of the contract (J-050, R-76). Others tell nothing.
pub(super) fn is_event(name: &str) -> bool {
    kind_of(name) == Some(EventKind::Contract)
}
