//! Changes by the other servers that share the database: keys, settings and the usage of keys are seen within
//! two seconds, and the runs of a server that is gone are taken over.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock;
use crate::base::metrics::Metrics;
use crate::base::settings::Settings;
use crate::http::app::App;
use crate::http::takeover;
use crate::run::quotas;
use crate::store::StoreError;

/// Pause between two looks at the database.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks for changes and abandoned runs until the server stops. Returns at once if no other server can use the
/// database.
pub(crate) async fn run(app: Arc<App>) {
    if app.store.cluster().is_none() {
        return;
    }
    let mut seen_changes = None;
    loop {
        if let Err(error) = refresh(&app, &mut seen_changes).await {
            tracing::warn!(%error, "changes of other servers could not be read");
        }
        match takeover::take_over_abandoned(&app).await {
            Ok(0) => {}
            Ok(count) => {
                Metrics::add(&app.metrics.takeovers, count);
                tracing::warn!(count, "messages of a server that is gone were taken over");
            }
            Err(error) => tracing::warn!(%error, "abandoned messages could not be listed; trying again"),
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = app.shutdown.cancelled() => return,
        }
    }
}

/// Reads keys and settings if any server has changed them since `seen_changes`, and the usage of keys.
async fn refresh(app: &App, seen_changes: &mut Option<i64>) -> Result<(), StoreError> {
    let Some(cluster) = app.store.cluster() else { return Ok(()) };
    let changes = cluster.shared_version().await?;
    if *seen_changes != Some(changes) {
        {
            let _change_guard = app.keys.change_lock.lock().await;
            app.keys.replace(app.store.keys().await?);
        }
        let _change_guard = app.settings_change.lock().await;
        app.replace_settings(Settings::from_stored(app.store.settings().await?));
        *seen_changes = Some(changes);
    }
    let today = quotas::day(clock::now());
    app.quotas.raise(&today, super::token_usage(&*app.store, &today).await?.into_iter());
    Ok(())
}
