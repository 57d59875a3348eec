//! Watch over event streams whose clients have stopped reading.

use std::sync::Arc;
use std::time::Duration;

use crate::base::fail;
use crate::http::app::App;

/// Closes stalled streams periodically until the server stops.
pub(crate) async fn watch_streams(app: Arc<App>) {
    loop {
        let patience = Duration::from_millis(app.loaded_config().config.reader_idle_ms);
        tokio::select! {
            () = tokio::time::sleep((patience / 4).clamp(Duration::from_millis(20), Duration::from_secs(5))) => {}
            () = app.shutdown.cancelled() => return,
        }
        fail::point("watch");
        app.streams.close_stalled(patience);
    }
}
