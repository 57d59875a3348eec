//! Retention sweep: deletes expired messages and dialogues, drops responses that are no longer kept for
//! repeated requests, and erases deleted data from the files.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use crate::base::clock;
use crate::base::fail;
use crate::http::app::App;
use crate::run::request_repeats;
use crate::store::{Retention, StoreError};

/// Interval between retention sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Pause before another attempt to erase deleted data, if readers of the database prevented the last one.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Sweeps at intervals, and after deletions, until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    // True while deleted data may still be in the files. True at first, since the last process may have
    // stopped before it erased everything.
    let mut needs_erasure = true;
    loop {
        app.memory_responses.drop_stale(None);
        let is_on_duty = is_on_duty(&app).await;
        if is_on_duty {
            match expire(&app).await {
                Ok(has_deleted) => needs_erasure |= has_deleted,
                Err(error) => tracing::warn!(%error, "expired messages could not be deleted"),
            }
            match app.store.delete_responses(&request_repeats::repeat_since()).await {
                Ok(has_deleted) => needs_erasure |= has_deleted,
                Err(error) => tracing::warn!(%error, "expired responses could not be deleted"),
            }
        }
        fail::point("sweep");
        // A shared database is swept at each interval: its logs are kept in one part for each day.
        if needs_erasure || (is_on_duty && app.store.cluster().is_some()) {
            match app.store.sweep(&app.shutdown).await {
                Ok(is_erased) => needs_erasure = !is_erased,
                Err(error) => tracing::warn!(%error, "deleted data is still in the files; trying again"),
            }
        }
        tokio::select! {
            () = app.deletion_notify.notified() => needs_erasure = true,
            () = tokio::time::sleep(if needs_erasure { RETRY_PAUSE } else { SWEEP_INTERVAL }) => {}
            () = app.shutdown.cancelled() => return,
        }
    }
}

/// Returns `true` if this server sweeps: one of the servers that share the database does.
async fn is_on_duty(app: &App) -> bool {
    let Some(cluster) = app.store.cluster() else { return true };
    cluster.hold_task_lease("sweep").await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the database does not say which server sweeps");
        false
    })
}

/// Deletes expired dialogues and messages. Returns `true` if any was deleted.
async fn expire(app: &App) -> Result<bool, StoreError> {
    let retention = app.loaded_config().config.retention;
    let age = retention.days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let before = age.and_then(|age| clock::now().checked_sub(age).ok()).map(|time| format!("{time:.3}"));
    let retention = Retention { before: before.as_deref(), bytes: retention.bytes };
    let mut has_deleted = expire_dialogues(app, retention).await?;
    loop {
        let expired_ids = app.store.expired_messages(retention).await?;
        if expired_ids.is_empty() || app.shutdown.is_cancelled() {
            return Ok(has_deleted);
        }
        tracing::info!(messages = expired_ids.len(), "deleting expired messages");
        app.store.delete_messages(&expired_ids).await?;
        has_deleted = true;
    }
}

/// Deletes expired dialogues without a running turn. Returns `true` if any was deleted.
async fn expire_dialogues(app: &App, retention: Retention<'_>) -> Result<bool, StoreError> {
    let mut has_deleted = false;
    let (by_time, by_size) =
        (Retention { bytes: None, ..retention }, Retention { before: None, ..retention });
    // Listed in two passes, since `is_still_expired` must know which of the two limits a dialogue exceeds.
    for retention in [by_time, by_size] {
        for id in app.store.expired_dialogues(retention).await? {
            fail::point("sweep.listed");
            if app.shutdown.is_cancelled() {
                return Ok(has_deleted);
            }
            // Holding the dialogue's place in its queue keeps turns from running between the check and the
            // deletion.
            let Some(_guard) = app.conversation_queues.try_enter(&id).await else { continue };
            fail::point("sweep.dialogue");
            // `close_if_idle` fails if a turn has begun, and lets none begin afterwards.
            if is_still_expired(app, &id, retention).await? && app.store.close_if_idle(&id).await? {
                tracing::info!(dialogue = id, "deleting an expired dialogue");
                app.store.delete_dialogue(&id).await?;
                has_deleted = true;
            }
        }
    }
    Ok(has_deleted)
}

/// Checks that a dialogue is still too old, since it may have changed after it was listed. A dialogue that
/// was listed because of the total size (`retention.before` is absent) still counts as expired.
async fn is_still_expired(app: &App, id: &str, retention: Retention<'_>) -> Result<bool, StoreError> {
    let Some(before) = retention.before else { return Ok(true) };
    Ok(app.store.dialogue(id).await?.is_some_and(|row| *row.changed < *before))
}
