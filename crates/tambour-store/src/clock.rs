//! Clock of what is stored: that of the database that servers share, so that a wrong clock of one of them changes
//! nothing; without such a database that of this machine.

use std::sync::{PoisonError, RwLock};
use std::time::Instant;

use jiff::Timestamp;

/// Time of the database, and when this process asked for it. A process uses one database.
static DATABASE_TIME: RwLock<Option<(Instant, Timestamp)>> = RwLock::new(None);

/// Returns the current time.
#[must_use]
pub fn now() -> Timestamp {
    let Some((asked_at, time)) = *DATABASE_TIME.read().unwrap_or_else(PoisonError::into_inner) else {
        return Timestamp::now();
    };
    time.checked_add(asked_at.elapsed()).unwrap_or(time)
}

/// Sets the time of the database, for which this process asked at `asked_at`.
pub(crate) fn set(asked_at: Instant, time: Timestamp) {
    *DATABASE_TIME.write().unwrap_or_else(PoisonError::into_inner) = Some((asked_at, time));
}
