//! Ids, secrets and the time.

use uuid::Uuid;

/// A new id, sortable by time, with a prefix that says what it names.
pub(crate) fn new(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}

/// A new secret: 244 random bits.
pub(crate) fn secret() -> String {
    format!("tb_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// The time, RFC 3339 in UTC with milliseconds.
pub(crate) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
