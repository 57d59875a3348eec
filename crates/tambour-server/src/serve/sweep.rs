//! Retention sweep: deletes expired messages and dialogues, and erases deleted data from the files.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::base::fail;
use crate::http::app::App;
use crate::run::request_repeats;
use crate::run::turns::QueuePlace;
use crate::store::{Retention, StoreError};

/// Interval between retention sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Pause before emptying the write-ahead file is tried again, when readers prevented it.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the server stops.
pub(crate) async fn run(app: Arc<App>) {
    // Covers data deleted right before the last stop.
    let mut due = true;
    loop {
        match expire(&app).await {
            Ok(found) => due |= found,
            Err(error) => tracing::warn!(%error, "expired messages could not be deleted"),
        }
        app.claims.drop_expired(None);
        match app.store.delete_responses(&request_repeats::repeat_since()).await {
            Ok(found) => due |= found,
            Err(error) => tracing::warn!(%error, "expired responses could not be deleted"),
        }
        fail::point("sweep");
        if due {
            match app.store.sweep(&app.shutdown).await {
                Ok(is_done) => due = !is_done,
                Err(error) => tracing::warn!(%error, "deleted data is still in the files; trying again"),
            }
        }
        tokio::select! {
            () = app.deletion_notify.notified() => due = true,
            () = tokio::time::sleep(if due { RETRY_PAUSE } else { SWEEP_INTERVAL }) => {}
            () = app.shutdown.cancelled() => return,
        }
    }
}

/// Deletes expired messages and dialogues; returns `true` if there were any.
async fn expire(app: &App) -> Result<bool, StoreError> {
    let retention = app.loaded_config().config.retention;
    let age = retention.days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let before = age.and_then(|age| Timestamp::now().checked_sub(age).ok()).map(|time| format!("{time:.3}"));
    let retention = Retention { before: before.as_deref(), bytes: retention.bytes };
    let mut found = expire_dialogues(app, retention).await?;
    loop {
        let expired_ids = app.store.expired_messages(retention).await?;
        if expired_ids.is_empty() || app.shutdown.is_cancelled() {
            return Ok(found);
        }
        tracing::info!(messages = expired_ids.len(), "deleting expired messages");
        app.store.delete_messages(&expired_ids).await?;
        found = true;
    }
}

/// Deletes expired dialogues without a running turn; returns `true` if there were any.
async fn expire_dialogues(app: &App, retention: Retention<'_>) -> Result<bool, StoreError> {
    let mut found = false;
    let (by_time, by_size) =
        (Retention { bytes: None, ..retention }, Retention { before: None, ..retention });
    for retention in [by_time, by_size] {
        for id in app.store.expired_dialogues(retention).await? {
            fail::point("sweep.listed");
            if app.shutdown.is_cancelled() {
                return Ok(found);
            }
            // Holding the turn keeps other turns from running between the check and the deletion.
            let QueuePlace::Ready(_turn) = app.turns.enqueue(&id) else { continue };
            fail::point("sweep.dialogue");
            // `close_if_idle` fails if a turn has begun, and lets none begin afterwards.
            if is_over(app, &id, retention).await? && app.store.close_if_idle(&id) {
                tracing::info!(dialogue = id, "deleting an expired dialogue");
                app.store.delete_dialogue(&id).await?;
                found = true;
            }
        }
    }
    Ok(found)
}

/// Checks that a dialogue is still expired: it may have changed since it was listed.
async fn is_over(app: &App, id: &str, retention: Retention<'_>) -> Result<bool, StoreError> {
    let Some(before) = retention.before else { return Ok(true) };
    Ok(app.store.dialogue(id).await?.is_some_and(|row| *row.changed < *before))
}
