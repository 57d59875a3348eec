//! Ids, secrets and timestamps.

use uuid::Uuid;

use crate::clock;

/// Returns a new id, sortable by time, with a prefix that names its kind.
pub fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

/// Returns a new secret with 244 random bits.
pub fn new_secret() -> String {
    format!("tb_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Returns the current time: RFC 3339, UTC, milliseconds.
pub fn now() -> String {
    format!("{:.3}", clock::now())
}
