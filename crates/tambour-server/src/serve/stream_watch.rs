//! Watches for event streams whose clients have stopped reading, and closes them.

use std::sync::Arc;
use std::time::Duration;

use crate::base::fail;
use crate::http::app::App;

/// Closes stalled streams periodically until the server stops.
pub(crate) async fn watch_streams(app: Arc<App>) {
    loop {
        let idle_limit = Duration::from_millis(app.loaded_config().config.reader_idle_ms);
        // A quarter of the limit, so that a stream is closed soon after the limit is reached. Bounded, so
        // that extreme limits cause neither constant checks nor long delays.
        let interval = (idle_limit / 4).clamp(Duration::from_millis(20), Duration::from_secs(5));
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = app.shutdown.cancelled() => return,
        }
        fail::point("watch");
        app.streams.close_stalled(idle_limit);
    }
}
