//! Detection of a reply that begins with events, for `auto`.

use crate::event::{EventKind, parse_kind};

/// Returns true for the name of a contract event (J-050, R-76). Other names give no evidence.
pub(super) fn is_contract_event(name: &str) -> bool {
    parse_kind(name) == Some(EventKind::Contract)
}

/// Returns true for a name that an event in a list may have.
pub(super) fn may_be_event(name: &str) -> bool {
    matches!(parse_kind(name), Some(EventKind::Contract | EventKind::System))
}

/// Recognizes a complete reply by its event names: it has an answer and nothing follows the end.
pub(super) fn is_complete_reply(names: &[&str]) -> bool {
    let last = names.iter().rfind(|name| is_contract_event(name));
    names.contains(&"final_delta")
        && last.is_some_and(|name| matches!(*name, "final_delta" | "serp_queries" | "final_end"))
}
